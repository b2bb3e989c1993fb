//! The format of a datagram: version, kind, then sender and message in postcard's encoding.

use alloc::vec::Vec;

use postcard::ser_flavors::Flavor;
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, HEADER_LEN, Message, SEALED, VERSION, frame_len};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The reason why bytes are no valid frame, or a message cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// More bytes than a frame may have.
    #[error(
        "{len} bytes in a datagram, but at most {limit} are allowed: share one frame_budget in the mesh"
    )]
    Oversize {
        /// The number of bytes, at least.
        len: usize,
        /// The largest number of bytes.
        limit: usize,
    },
    /// A sealed datagram, where frames are sent in the clear.
    #[error("the datagram is sealed, but this node uses no key: give it the mesh's key")]
    Sealed,
    /// Another version of the frame format.
    #[error(
        "the frame has version {found}, this node supports {VERSION}: upgrade the older of the two"
    )]
    Version {
        /// The version in the frame.
        found: u8,
    },
    /// Another protocol.
    #[error(
        "expected a frame of protocol {expected}, got {found}: run the same protocols on all nodes of a mesh, and no other program on their port"
    )]
    Kind {
        /// The protocol in the frame.
        found: u8,
        /// The protocol of the socket.
        expected: u8,
    },
    /// Other bytes: cut short, followed by more, or no frame at all.
    #[error("not a frame, or a damaged one: find the program that sends to this port")]
    Malformed,
}

/// Writes the frame of `message` from `from` into `frame`, replacing its content.
///
/// # Errors
/// [`FrameError::Oversize`] when it becomes longer than `budget`; `frame` is empty then.
pub fn encode<T: Message + Serialize>(
    from: Member,
    message: &T,
    budget: usize,
    frame: &mut Vec<u8>,
) -> Result<(), FrameError> {
    frame.clear();
    frame.extend([VERSION, T::KIND]);
    let envelope = Envelope { from, message };
    let written = postcard::serialize_with_flavor(&envelope, Append(frame));
    let len = frame.len();
    if written.is_err() || len > budget {
        frame.clear();
        return Err(FrameError::Oversize { len, limit: budget });
    }
    debug_assert_eq!(len, frame_len(from, message), "a message knows its length");
    Ok(())
}

/// Reads a frame. Any bytes may be given.
///
/// # Errors
/// When the bytes are not exactly one frame of this message's kind within `budget`.
pub fn decode<T: Message + DeserializeOwned>(
    bytes: &[u8],
    budget: usize,
) -> Result<Envelope<T>, FrameError> {
    if bytes.len() > budget {
        return Err(FrameError::Oversize {
            len: bytes.len(),
            limit: budget,
        });
    }
    let (header, body) = bytes
        .split_first_chunk::<HEADER_LEN>()
        .ok_or(FrameError::Malformed)?;
    match *header {
        [VERSION, found] if found == T::KIND => {}
        [VERSION, found] => {
            return Err(FrameError::Kind {
                found,
                expected: T::KIND,
            });
        }
        [SEALED, _] => return Err(FrameError::Sealed),
        [found, _] => return Err(FrameError::Version { found }),
    }
    match postcard::take_from_bytes(body) {
        Ok((envelope, [])) => Ok(envelope),
        Ok(_) | Err(_) => Err(FrameError::Malformed),
    }
}

/// A buffer to which postcard appends, for repeated use.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
