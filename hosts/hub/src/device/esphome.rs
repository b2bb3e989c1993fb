//! Switches and lights of ESPHome devices, by their native API on TCP port 6053.
//!
//! The hub stays connected. A device handles one message after the other, so the hub sends a ping after each
//! command: the state that the device reports after its answer to the ping is its state after the command,
//! and so is proof.

mod session;
pub mod wire;

use core::fmt;
use core::pin::Pin;
use core::time::Duration;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::time::{sleep, timeout, timeout_at};

use self::session::Session;
use self::wire::{Codec, Packet, WireError};
use super::{Device, Received, half_way, relay, shown};

/// The wait before a device that does not accept a connection is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// The time within which a device must be connected and have reported its state. It does not count as
/// available before.
const OPEN: Duration = Duration::from_secs(10);
/// The time for which a command that a device has received and not answered may still take effect: a guess,
/// which a file may override.
const LATENESS: Span = Span::secs(5);

/// A switch or a light of an ESPHome device.
pub struct Esphome {
    /// A name or an address, with the port.
    address: String,
    /// The name of the switch or light.
    entity: String,
    key: Option<[u8; 32]>,
    session: Option<Session>,
    /// A session that is being opened: one look may be too short for it.
    opening: Option<Opening>,
    /// The state that it reported last: true for on.
    was_on: Option<bool>,
    /// The reason why it did not answer.
    trouble: Option<String>,
}

/// A session, and the state that the device was in when it began.
type Opening = Pin<Box<dyn Future<Output = Result<(Session, bool), WireError>> + Send>>;

impl fmt::Debug for Esphome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is secret.
        f.debug_struct("Esphome")
            .field("address", &self.address)
            .field("entity", &self.entity)
            .finish_non_exhaustive()
    }
}

impl Esphome {
    /// A switch or a light of a device at this address, with its port, and the device's key if it has one.
    #[must_use]
    pub const fn new(address: String, entity: String, key: Option<[u8; 32]>) -> Self {
        Self {
            address,
            entity,
            key,
            session: None,
            opening: None,
            was_on: None,
            trouble: None,
        }
    }

    /// Continues to open a session. The future may be dropped at any point.
    async fn open(&mut self) -> Result<bool, WireError> {
        let opening = self.opening.get_or_insert_with(|| {
            let (address, key, entity) = (self.address.clone(), self.key, self.entity.clone());
            Box::pin(async move {
                let open = Session::open(&address, key.as_ref(), &entity);
                timeout(OPEN, open).await.unwrap_or(Err(WireError::Slow))
            })
        });
        let opened = opening.as_mut().await;
        self.opening = None;
        self.trouble = opened.as_ref().err().map(ToString::to_string);
        let (session, is_on) = opened?;
        self.session = Some(session);
        self.was_on = Some(is_on);
        Ok(is_on)
    }

    /// Asks for its present state.
    async fn question(&mut self) -> Result<bool, WireError> {
        if self.session.is_none() {
            // The state that it reports first may be older than this question.
            self.open().await?;
        }
        // Dropping this future ends the session, so that no later question gets the answer to this one.
        let Some(mut session) = self.session.take() else {
            return Err(WireError::Slow);
        };
        let asked = session.ask().await;
        self.trouble = asked.as_ref().err().map(ToString::to_string);
        let is_on = asked?;
        self.session = Some(session);
        self.was_on = Some(is_on);
        Ok(is_on)
    }
}

/// The messages in bytes that arrive in parts of this size, up to the first invalid one. For the fuzz target.
pub(crate) fn packets(bytes: &[u8], key: Option<&[u8; 32]>, part: usize) -> Vec<Packet> {
    let (mut came, mut all) = (Vec::new(), Vec::new());
    let Ok((mut codec, _)) = Codec::new(key) else {
        return all;
    };
    for part in bytes.chunks(part.min(bytes.len()).max(1)) {
        came.extend(part);
        loop {
            match codec.decode(&mut came) {
                Ok(Some(packet)) => all.push(packet),
                Ok(None) => break,
                Err(_) => return all,
            }
        }
    }
    all
}

/// The last state in the messages of a device that sends only these bytes. For the fuzz target.
pub(crate) async fn last_state(bytes: &[u8], entity: &str) -> Option<bool> {
    let stream = tokio::io::join(bytes, tokio::io::sink());
    let mut session = Session::begin(stream, None, entity).await.ok()?;
    let mut last = session.ask().await.ok()?;
    while let Ok(state) = session.state().await {
        last = state;
    }
    Some(last)
}

impl Device for Esphome {
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
        let mut session = loop {
            // A kept session may be dead: a question finds out.
            match timeout_at(last.into(), self.question()).await {
                // The host may have slept meanwhile.
                Ok(Ok(_)) if Instant::now() >= until => return Outcome::Refused,
                Ok(Ok(_)) => match self.session.take() {
                    Some(it) => break it,
                    None => return Outcome::Refused,
                },
                Ok(Err(_)) if Instant::now() < last => sleep(RETRY).await,
                Ok(Err(_)) | Err(_) => return Outcome::Refused,
            }
        };
        // The known state counts once: this future may be dropped at any point from here on.
        let was_other = self.was_on.take() == Some(!is_on);
        let notified = async {
            session.set(is_on).await?;
            let mut found = session.ask().await?;
            // It may report that it is on its way before it has arrived.
            while found != is_on {
                found = session.state().await?;
            }
            Ok::<_, WireError>(session)
        };
        let half = half_way(until, Duration::MAX);
        if let Ok(Ok(session)) = timeout_at(half.into(), notified).await {
            self.session = Some(session);
            self.was_on = Some(is_on);
            return Outcome::Done;
        }
        // It may have switched: it is asked as long as there is time. Only a change is proof, because a
        // command that it has received may act later.
        while was_other && Instant::now() < until {
            if self.question().await.is_ok_and(|it| it == is_on) {
                return Outcome::Done;
            }
            self.was_on = None;
            sleep(RETRY).await;
        }
        Outcome::Unknown
    }

    async fn ask(&mut self) -> Option<State> {
        self.question().await.ok().map(shown)
    }

    async fn look(&mut self) -> Option<State> {
        let found = match self.session {
            Some(_) => self.question().await,
            None => self.open().await,
        };
        found.ok().map(shown)
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    async fn receive(&mut self) -> Received {
        let Some(session) = &mut self.session else {
            // This continues the session that a look began; the next look begins another.
            return match self.opening {
                Some(_) => match self.open().await {
                    Ok(is_on) => Received::State(shown(is_on)),
                    Err(_) => core::future::pending().await,
                },
                None => core::future::pending().await,
            };
        };
        match session.state().await {
            Ok(is_on) => {
                self.was_on = Some(is_on);
                Received::State(shown(is_on))
            }
            Err(_) => {
                self.session = None;
                Received::Ended
            }
        }
    }
}
