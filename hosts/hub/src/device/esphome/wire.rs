//! What goes over a connection to ESPHome's native API: frames, in the clear or by Noise, and messages.

use std::io;

use prost::Message;
use snow::{HandshakeState, TransportState};
use thiserror::Error;

/// How many bytes a frame may have.
pub const LONGEST: usize = 16 * 1024;
/// What both sides say of their handshake.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
const PROLOGUE: &[u8] = b"NoiseAPIInit\0\0";
/// The first byte of a frame.
const CLEAR: u8 = 0;
const NOISE: u8 = 1;
/// What Noise adds to a message.
const TAG: usize = 16;

/// The kinds of messages that are used here, by their numbers in ESPHome's `api.proto`.
pub mod kind {
    /// A client is there.
    pub const HELLO: u16 = 1;
    /// A client says its password.
    pub const AUTHENTICATE: u16 = 3;
    /// Whether that was right.
    pub const AUTHENTICATED: u16 = 4;
    /// The other side wants to end.
    pub const DISCONNECT: u16 = 5;
    /// It may.
    pub const DISCONNECTED: u16 = 6;
    /// Is it there?
    pub const PING: u16 = 7;
    /// It is.
    pub const PONG: u16 = 8;
    /// What is there?
    pub const LIST: u16 = 11;
    /// There is a light.
    pub const LIGHT: u16 = 15;
    /// There is a switch.
    pub const SWITCH: u16 = 17;
    /// That was all.
    pub const LISTED: u16 = 19;
    /// In which states is it? And from now on?
    pub const STATES: u16 = 20;
    /// A light is in this state.
    pub const LIGHT_STATE: u16 = 24;
    /// A switch is in this state.
    pub const SWITCH_STATE: u16 = 26;
    /// A light is to be so.
    pub const SET_LIGHT: u16 = 32;
    /// A switch is to be so.
    pub const SET_SWITCH: u16 = 33;
}

/// The first message of a client.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    /// What it is.
    #[prost(string, tag = "1")]
    pub client: String,
    /// The version of the protocol.
    #[prost(uint32, tag = "2")]
    pub major: u32,
    /// Its part behind the point.
    #[prost(uint32, tag = "3")]
    pub minor: u32,
}

/// Whether a password was wrong.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Authenticated {
    /// It was.
    #[prost(bool, tag = "1")]
    pub is_wrong: bool,
}

/// A switch or a light that a device has.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Entity {
    /// Its name as one word; newer devices leave it out.
    #[prost(string, tag = "1")]
    pub object: String,
    /// By which it is known.
    #[prost(fixed32, tag = "2")]
    pub key: u32,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// The state of a switch or a light; and what a switch is told.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Relay {
    /// Which one.
    #[prost(fixed32, tag = "1")]
    pub key: u32,
    /// Whether it is on.
    #[prost(bool, tag = "2")]
    pub is_on: bool,
}

/// What a light is told.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SetLight {
    /// Which one.
    #[prost(fixed32, tag = "1")]
    pub key: u32,
    /// Whether a state is said.
    #[prost(bool, tag = "2")]
    pub has_state: bool,
    /// Whether it is to be on.
    #[prost(bool, tag = "3")]
    pub is_on: bool,
}

/// Why a connection does not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The connection failed.
    #[error("no connection ({0}): see whether it has power, and whether this is its address")]
    Connection(#[from] io::Error),
    /// It takes too long.
    #[error(
        "the device is not ready within 10 s: see whether it is an ESPHome device, and how busy it is"
    )]
    Slow,
    /// It is longer than any frame is.
    #[error("a frame of {0} bytes, and {LONGEST} are read: see whether it is an ESPHome device")]
    TooLong(usize),
    /// It is no frame.
    #[error("a frame that begins with {0}: see whether it is an ESPHome device")]
    NoFrame(u8),
    /// The device wants a key.
    #[error("the device wants a key: say \"key\", as it is in its api.encryption.key")]
    NeedsKey,
    /// The device has no key.
    #[error("the device speaks in the clear: leave \"key\" out")]
    NeedsNoKey,
    /// The handshake, or what came by Noise, failed.
    #[error("no connection with this key ({0}): see the device's api.encryption.key")]
    Noise(String),
    /// A message does not read.
    #[error("a message that is not understood: {0}: see whether it is an ESPHome device")]
    Message(#[from] prost::DecodeError),
    /// The device wants a password.
    #[error("the device wants a password: give it a key instead (api.encryption.key)")]
    Password,
    /// The device has no such entity.
    #[error("the device has no switch and no light {0:?}: it has {1}")]
    NoEntity(String, String),
}

/// One side of a connection's frames, without the connection.
#[derive(Debug)]
pub enum Codec {
    /// In the clear.
    Clear,
    /// By Noise, before it is known whether the other side has the same key.
    Greeting(Box<HandshakeState>, bool),
    /// By Noise.
    Noise(Box<TransportState>),
}

/// A message: its kind, and its bytes.
pub type Packet = (u16, Vec<u8>);

impl Codec {
    /// A client's side, with this key if there is one; and what it says first.
    ///
    /// # Errors
    /// When there is no chance.
    pub fn new(key: Option<&[u8; 32]>) -> Result<(Self, Vec<u8>), WireError> {
        let Some(key) = key else {
            return Ok((Self::Clear, Vec::new()));
        };
        let noise = |it: snow::Error| WireError::Noise(it.to_string());
        let pattern = PATTERN.parse().map_err(noise)?;
        let builder = snow::Builder::new(pattern).prologue(PROLOGUE);
        let builder = builder.and_then(|it| it.psk(0, key));
        let mut handshake = builder.and_then(|it| it.build_initiator()).map_err(noise)?;
        let mut begin = vec![0; 128];
        let len = handshake.write_message(&[], &mut begin).map_err(noise)?;
        begin.truncate(len);
        let mut first = vec![NOISE, 0, 0];
        first.extend(frame(&[&[0], &*begin].concat()));
        Ok((Self::Greeting(Box::new(handshake), false), first))
    }

    /// Whether messages can be sent.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !matches!(self, Self::Greeting(..))
    }

    /// A frame with this message.
    ///
    /// # Errors
    /// When the greeting is not over, which is a defect.
    pub fn encode(&mut self, kind: u16, message: &impl Message) -> Result<Vec<u8>, WireError> {
        let body = message.encode_to_vec();
        match self {
            Self::Clear => {
                let mut out = vec![CLEAR];
                varint(body.len(), &mut out);
                varint(kind.into(), &mut out);
                out.extend(body);
                Ok(out)
            }
            Self::Greeting(..) => Err(WireError::Noise("the greeting is not over".into())),
            Self::Noise(transport) => {
                let len = u16::try_from(body.len()).unwrap_or(u16::MAX);
                let plain = [&kind.to_be_bytes()[..], &len.to_be_bytes(), &body].concat();
                let mut out = vec![0; plain.len() + TAG];
                let noise = |it: snow::Error| WireError::Noise(it.to_string());
                let len = transport.write_message(&plain, &mut out).map_err(noise)?;
                out.truncate(len);
                Ok(frame(&out))
            }
        }
    }

    /// Takes the next message from what came. `None` until one is there in whole.
    ///
    /// # Errors
    /// When what came is no message.
    pub fn decode(&mut self, came: &mut Vec<u8>) -> Result<Option<Packet>, WireError> {
        loop {
            let found = match self {
                Self::Clear => return take_clear(came),
                Self::Greeting(..) | Self::Noise(_) => take_noise(came)?,
            };
            let Some(body) = found else {
                return Ok(None);
            };
            if let Self::Noise(transport) = self {
                return open(transport, &body).map(Some);
            }
            self.greet(&body)?;
        }
    }

    /// The other side says its name, and then its half of the handshake.
    fn greet(&mut self, body: &[u8]) -> Result<(), WireError> {
        let Self::Greeting(handshake, is_named) = self else {
            return Ok(());
        };
        if !*is_named {
            *is_named = true;
            return match body.first() {
                Some(&NOISE) => Ok(()),
                _ => Err(WireError::Noise("another protocol".into())),
            };
        }
        match body.split_first() {
            Some((0, theirs)) => {
                let mut nothing = vec![0; LONGEST];
                let read = handshake.read_message(theirs, &mut nothing);
                read.map_err(|it| WireError::Noise(it.to_string()))?;
            }
            _ => {
                let why = String::from_utf8_lossy(body.get(1..).unwrap_or_default());
                return Err(WireError::Noise(why.into()));
            }
        }
        let Self::Greeting(handshake, _) = core::mem::replace(self, Self::Clear) else {
            return Ok(());
        };
        let transport = handshake.into_transport_mode();
        let transport = transport.map_err(|it| WireError::Noise(it.to_string()))?;
        *self = Self::Noise(Box::new(transport));
        Ok(())
    }
}

fn frame(body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len()).unwrap_or(u16::MAX);
    [&[NOISE], &len.to_be_bytes()[..], body].concat()
}

fn varint(number: usize, out: &mut Vec<u8>) {
    prost::encoding::encode_varint(number as u64, out);
}

fn take_clear(came: &mut Vec<u8>) -> Result<Option<Packet>, WireError> {
    match came.first() {
        None => return Ok(None),
        Some(&CLEAR) => {}
        Some(&NOISE) => return Err(WireError::NeedsKey),
        Some(&other) => return Err(WireError::NoFrame(other)),
    }
    let mut rest = came.get(1..).unwrap_or_default();
    let mut numbers = [0; 2];
    for number in &mut numbers {
        // It ends within five bytes, or is longer than any frame is: also where all of it came at once.
        match rest.iter().take(5).position(|it| it & 0x80 == 0) {
            None if rest.len() < 5 => return Ok(None),
            None => return Err(WireError::TooLong(usize::MAX)),
            Some(_) => *number = prost::encoding::decode_varint(&mut rest)?,
        }
    }
    let len = usize::try_from(numbers[0]).unwrap_or(usize::MAX);
    if len > LONGEST {
        return Err(WireError::TooLong(len));
    }
    let Some(body) = rest.get(..len) else {
        return Ok(None);
    };
    // Kinds of other numbers are passed over.
    let packet = (u16::try_from(numbers[1]).unwrap_or(0), body.to_vec());
    let taken = came.len() - rest.len() + len;
    came.drain(..taken);
    Ok(Some(packet))
}

fn take_noise(came: &mut Vec<u8>) -> Result<Option<Vec<u8>>, WireError> {
    let [first, high, low, ..] = came[..] else {
        return match came.first() {
            Some(&CLEAR) => Err(WireError::NeedsNoKey),
            _ => Ok(None),
        };
    };
    match first {
        NOISE => {}
        CLEAR => return Err(WireError::NeedsNoKey),
        other => return Err(WireError::NoFrame(other)),
    }
    let len = usize::from(u16::from_be_bytes([high, low]));
    if len > LONGEST {
        return Err(WireError::TooLong(len));
    }
    let Some(body) = came.get(3..3 + len) else {
        return Ok(None);
    };
    let body = body.to_vec();
    came.drain(..3 + len);
    Ok(Some(body))
}

fn open(transport: &mut TransportState, body: &[u8]) -> Result<Packet, WireError> {
    let mut plain = vec![0; body.len()];
    let len = transport.read_message(body, &mut plain);
    let len = len.map_err(|it| WireError::Noise(it.to_string()))?;
    plain.truncate(len);
    match plain[..] {
        [high, low, _, _, ..] => {
            plain.drain(..4);
            Ok((u16::from_be_bytes([high, low]), plain))
        }
        _ => Err(WireError::Noise("a message without its kind".into())),
    }
}
