//! Plugs and strips of TP-Link's Kasa family, by their protocol on TCP port 9999.
//!
//! A frame is the length of its text, as four bytes with the highest first, and the text, in JSON, each byte
//! of which is combined by exclusive or with the one before it as it was sent; the first with 171. A plug
//! answers a command with its error code: 0 is proof that the relay has switched.

use core::time::Duration;
use std::io;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use serde::Deserialize;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout_at};

use super::{Device, half_way, relay, shown};

/// The value that the first byte is combined with.
const KEY: u8 = 171;
/// The longest answer, in bytes.
pub const LONGEST: usize = 16 * 1024;
/// The wait before a plug that does not accept a connection is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// The time for which a command that a plug has received and not answered may still take effect: a guess,
/// which a file may override.
const LATENESS: Span = Span::secs(5);

/// A plug, or one outlet of a strip.
#[derive(Clone, Debug)]
pub struct Kasa {
    /// A name or an address, with the port.
    address: String,
    /// The number of an outlet of a strip, from 0.
    outlet: Option<u8>,
    /// The id of the outlet, once it is known.
    child: Option<String>,
    /// Its state at the last question: true for on.
    was_on: Option<bool>,
    /// The reason why it did not answer.
    trouble: Option<String>,
}

/// An error of the connection to a plug, or of its answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KasaError {
    /// The connection failed.
    #[error("no connection ({0}): see whether it has power, and whether this is its address")]
    Connection(#[from] io::Error),
    /// An answer that claims to be longer than the limit.
    #[error("an answer of {0} bytes, the limit is {LONGEST}: see whether it is a Kasa device")]
    TooLong(u32),
    /// An answer that is not a plug's.
    #[error("an answer that cannot be decoded: {0}: see whether it is a Kasa device")]
    Form(#[from] serde_json::Error),
    /// The device reports that it cannot give its state.
    #[error("the device answers with error {0}: see whether it is a plug")]
    Code(i32),
    /// A device without a relay, such as a bulb.
    #[error("the device has no relay: see whether it is a plug")]
    NoRelay,
    /// The answer took too long.
    #[error("the device does not answer in time: see whether it has power")]
    Slow,
    /// The strip has no such outlet.
    #[error("the strip has no outlet {0}: outlets are numbered from 0")]
    NoOutlet(u8),
}

/// A frame with this text.
#[must_use]
pub fn encode(text: &str) -> Vec<u8> {
    let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut frame = len.to_be_bytes().to_vec();
    frame.extend(text.bytes().scan(KEY, |key, byte| {
        *key ^= byte;
        Some(*key)
    }));
    frame
}

/// The text of a frame, without its length.
#[must_use]
pub fn decode(body: &[u8]) -> Vec<u8> {
    let before = core::iter::once(KEY).chain(body.iter().copied());
    body.iter()
        .zip(before)
        .map(|(byte, key)| byte ^ key)
        .collect()
}

/// The part of a plug's description of itself that is needed here.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Info {
    #[serde(default)]
    err_code: i32,
    #[serde(default, rename = "deviceId")]
    device: String,
    relay_state: Option<u8>,
    #[serde(default)]
    children: Vec<Outlet>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Outlet {
    id: String,
    state: u8,
}

#[derive(Deserialize)]
struct Answer<T> {
    system: T,
}

#[derive(Deserialize)]
struct Notified {
    get_sysinfo: Info,
}

#[derive(Deserialize)]
struct Switched {
    set_relay_state: Code,
}

#[derive(Deserialize)]
struct Code {
    err_code: i32,
}

impl Info {
    /// The state, and the id of the outlet if it is one of a strip.
    fn of(self, outlet: Option<u8>) -> Result<(bool, Option<String>), KasaError> {
        if self.err_code != 0 {
            return Err(KasaError::Code(self.err_code));
        }
        match outlet {
            // A strip is on when one of its outlets is.
            None => match self.relay_state {
                Some(relay) => Ok((relay != 0, None)),
                None if self.children.is_empty() => Err(KasaError::NoRelay),
                None => Ok((self.children.iter().any(|it| it.state != 0), None)),
            },
            Some(nth) => {
                let child = self.children.into_iter().nth(nth.into());
                let child = child.ok_or(KasaError::NoOutlet(nth))?;
                // Some strips send only the end of an id.
                let id = match child.id.len() {
                    0..=2 => self.device + &child.id,
                    _ => child.id,
                };
                Ok((child.state != 0, Some(id)))
            }
        }
    }
}

/// The state in an answer to a question, without a connection.
///
/// # Errors
/// When it is not a plug's answer.
pub fn state_in(answer: &[u8], outlet: Option<u8>) -> Result<bool, KasaError> {
    let notified: Answer<Notified> = serde_json::from_slice(answer)?;
    Ok(notified.system.get_sysinfo.of(outlet)?.0)
}

impl Kasa {
    /// A plug at this address, with its port; or one outlet of a strip, from 0.
    #[must_use]
    pub const fn new(address: String, outlet: Option<u8>) -> Self {
        Self {
            address,
            outlet,
            child: None,
            was_on: None,
            trouble: None,
        }
    }

    async fn look(&mut self) -> Result<bool, KasaError> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let answer = exchange(&mut stream, r#"{"system":{"get_sysinfo":{}}}"#).await?;
        let notified: Answer<Notified> = serde_json::from_slice(&answer)?;
        let (is_on, child) = notified.system.get_sysinfo.of(self.outlet)?;
        self.child = child;
        self.was_on = Some(is_on);
        Ok(is_on)
    }
}

/// From here on, the connection is closed in order instead of reset.
#[allow(deprecated, reason = "without a span it does not block")]
fn close_in_order(stream: &TcpStream) -> io::Result<()> {
    stream.set_linger(None)
}

async fn exchange(stream: &mut TcpStream, text: &str) -> Result<Vec<u8>, KasaError> {
    // In one call: some devices do not reassemble a frame that arrives in two parts.
    stream.write_all(&encode(text)).await?;
    let len = stream.read_u32().await?;
    let fits = usize::try_from(len).ok().filter(|it| *it <= LONGEST);
    let mut body = vec![0; fits.ok_or(KasaError::TooLong(len))?];
    stream.read_exact(&mut body).await?;
    Ok(decode(&body))
}

impl Device for Kasa {
    fn lateness(&self) -> Span {
        LATENESS
    }

    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    async fn set(&mut self, state: &State, until: Instant) -> Outcome {
        let Some(is_on) = relay(state) else {
            return Outcome::Refused;
        };
        // Until the command is sent, a failed attempt can be repeated.
        let last = half_way(until, 4 * RETRY);
        let mut stream = loop {
            let ready = async {
                if self.outlet.is_some() && self.child.is_none() {
                    self.look().await?;
                }
                let stream = TcpStream::connect(&self.address).await?;
                // Bytes that the plug has not received when this is given up, or the process is killed, are
                // not sent.
                stream.set_zero_linger()?;
                Ok::<_, KasaError>(stream)
            };
            match timeout_at(last.into(), ready).await {
                // The host may have slept meanwhile.
                Ok(Ok(stream)) if Instant::now() < until => break stream,
                Ok(Err(why)) => {
                    self.trouble = Some(why.to_string());
                    if Instant::now() >= last {
                        return Outcome::Refused;
                    }
                    sleep(RETRY).await;
                }
                Ok(Ok(_)) => return Outcome::Refused,
                Err(_) => {
                    self.trouble = Some(KasaError::Slow.to_string());
                    return Outcome::Refused;
                }
            }
        };
        self.trouble = None;
        let context = match &self.child {
            // An id is hexadecimal; any other is not sent.
            Some(id) if !id.bytes().all(|it| it.is_ascii_hexdigit()) => return Outcome::Refused,
            Some(id) => format!(r#""context":{{"child_ids":["{id}"]}},"#),
            None => String::new(),
        };
        let text = format!(
            r#"{{{context}"system":{{"set_relay_state":{{"state":{}}}}}}}"#,
            u8::from(is_on)
        );
        let notified = async {
            let answer = exchange(&mut stream, &text).await?;
            // Where that fails the plug sees a reset, and has answered all the same.
            close_in_order(&stream).ok();
            let notified: Answer<Switched> = serde_json::from_slice(&answer)?;
            Ok::<_, KasaError>(notified.system.set_relay_state.err_code)
        };
        // The known state counts once: this future may be dropped at any point from here on.
        let was_on = self.was_on.take();
        let was_other = was_on == Some(!is_on);
        let half = half_way(until, Duration::MAX);
        match timeout_at(half.into(), notified).await {
            Ok(Ok(0)) => {
                self.was_on = Some(is_on);
                Outcome::Done
            }
            Ok(Ok(_)) => {
                self.was_on = was_on;
                Outcome::Refused
            }
            failed @ (Ok(Err(_)) | Err(_)) => {
                self.trouble = failed.ok().and_then(Result::err).map(|it| it.to_string());
                // It may have switched: it is asked as long as there is time. Only a change is proof, because
                // a command that it has received may act later.
                drop(stream);
                while was_other && Instant::now() < until {
                    if self.look().await.is_ok_and(|it| it == is_on) {
                        return Outcome::Done;
                    }
                    self.was_on = None;
                    sleep(RETRY).await;
                }
                Outcome::Unknown
            }
        }
    }

    async fn ask(&mut self) -> Option<State> {
        // In case this future is dropped before it ends.
        self.trouble = Some(KasaError::Slow.to_string());
        let found = self.look().await;
        self.trouble = found.as_ref().err().map(ToString::to_string);
        found.ok().map(shown)
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}
