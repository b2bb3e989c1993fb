//! Frames and messages of ESPHome's native API, encrypted by Noise or not.

use std::io;

use prost::Message;
use snow::{HandshakeState, TransportState};
use thiserror::Error;

/// The longest frame, in bytes.
pub const LONGEST: usize = 16 * 1024;
/// The parameters of the handshake, the same on both sides.
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
const PROLOGUE: &[u8] = b"NoiseAPIInit\0\0";
/// The first byte of a frame.
const CLEAR: u8 = 0;
const NOISE: u8 = 1;
/// The length that Noise adds to a message, in bytes.
const TAG: usize = 16;

/// The kinds of messages that are used here, by their numbers in ESPHome's `api.proto`.
pub mod kind {
    /// A client introduces itself.
    pub const HELLO: u16 = 1;
    /// A client sends its password.
    pub const AUTHENTICATE: u16 = 3;
    /// The answer to a password.
    pub const AUTHENTICATED: u16 = 4;
    /// A request to end the connection.
    pub const DISCONNECT: u16 = 5;
    /// The answer to that request.
    pub const DISCONNECTED: u16 = 6;
    /// A ping.
    pub const PING: u16 = 7;
    /// The answer to a ping.
    pub const PONG: u16 = 8;
    /// A request for the list of entities.
    pub const LIST: u16 = 11;
    /// A light, in the list.
    pub const LIGHT: u16 = 15;
    /// A switch, in the list.
    pub const SWITCH: u16 = 17;
    /// The end of the list.
    pub const LISTED: u16 = 19;
    /// A request for all states, and for each later change.
    pub const STATES: u16 = 20;
    /// The state of a light.
    pub const LIGHT_STATE: u16 = 24;
    /// The state of a switch.
    pub const SWITCH_STATE: u16 = 26;
    /// A command to a light.
    pub const SET_LIGHT: u16 = 32;
    /// A command to a switch.
    pub const SET_SWITCH: u16 = 33;
}

/// The first message of a client.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    /// The name of the client.
    #[prost(string, tag = "1")]
    pub client: String,
    /// The major version of the protocol.
    #[prost(uint32, tag = "2")]
    pub major: u32,
    /// The minor version of the protocol.
    #[prost(uint32, tag = "3")]
    pub minor: u32,
}

/// The answer to a password.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Authenticated {
    /// True if the password was wrong.
    #[prost(bool, tag = "1")]
    pub is_wrong: bool,
}

/// A switch or a light that a device has.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Entity {
    /// Its name as one word; newer devices leave it out.
    #[prost(string, tag = "1")]
    pub object: String,
    /// The number that other messages name it by.
    #[prost(fixed32, tag = "2")]
    pub key: u32,
    /// Its name.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// The state of a switch or a light; also the command to a switch.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Relay {
    /// The key of the entity.
    #[prost(fixed32, tag = "1")]
    pub key: u32,
    /// True if it is on.
    #[prost(bool, tag = "2")]
    pub is_on: bool,
}

/// A command to a light.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SetLight {
    /// The key of the light.
    #[prost(fixed32, tag = "1")]
    pub key: u32,
    /// True if `is_on` is part of the command.
    #[prost(bool, tag = "2")]
    pub has_state: bool,
    /// True to switch it on.
    #[prost(bool, tag = "3")]
    pub is_on: bool,
}

/// An error that ends a connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// The connection failed.
    #[error("no connection ({0}): see whether it has power, and whether this is its address")]
    Connection(#[from] io::Error),
    /// The device takes too long.
    #[error(
        "the device is not ready within 10 s: see whether it is an ESPHome device, and how busy it is"
    )]
    Slow,
    /// A frame that is longer than the limit.
    #[error("a frame of {0} bytes, the limit is {LONGEST}: see whether it is an ESPHome device")]
    TooLong(usize),
    /// Bytes that are not a frame.
    #[error("a frame that begins with {0}: see whether it is an ESPHome device")]
    NoFrame(u8),
    /// The device requires a key.
    #[error("the device requires a key: set \"key\" to its api.encryption.key")]
    NeedsKey,
    /// The device has no key.
    #[error("the device does not encrypt: remove \"key\"")]
    NeedsNoKey,
    /// The handshake or the decryption failed.
    #[error("no connection with this key ({0}): see the device's api.encryption.key")]
    Noise(String),
    /// A message that cannot be decoded.
    #[error("a message that cannot be decoded: {0}: see whether it is an ESPHome device")]
    Message(#[from] prost::DecodeError),
    /// The device requires a password.
    #[error("the device requires a password: give it a key instead (api.encryption.key)")]
    Password,
    /// The device has no such entity.
    #[error("the device has no switch and no light {0:?}: name one of {1}")]
    NoEntity(String, String),
}

/// The frames of one side of a connection, without I/O.
#[derive(Debug)]
pub enum Codec {
    /// Not encrypted.
    Clear,
    /// In the handshake of Noise, before it is known whether the other side has the same key.
    Greeting(Box<HandshakeState>, bool),
    /// Encrypted by Noise.
    Noise(Box<TransportState>),
}

/// A message: its kind, and its bytes.
pub type Packet = (u16, Vec<u8>);

impl Codec {
    /// The codec of a client, with this key if it has one, and the first bytes to send.
    ///
    /// # Errors
    /// When random numbers are not available.
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

    /// Returns true if messages can be sent.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        !matches!(self, Self::Greeting(..))
    }

    /// A frame with this message.
    ///
    /// # Errors
    /// When the handshake has not ended, which is a defect.
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
            Self::Greeting(..) => Err(WireError::Noise("the handshake has not ended".into())),
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

    /// Takes the next message from the received bytes; `None` until one is complete.
    ///
    /// # Errors
    /// When the bytes are not a message.
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

    /// Handles the other side's name, and then its half of the handshake.
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
        // The number ends within five bytes, or is larger than any frame: also where all bytes arrived at
        // once.
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
    // Larger numbers become 0, which is no kind in use.
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
