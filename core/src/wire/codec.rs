//! What travels, to bytes and back, in postcard's encoding.
//!
//! A device with postcard's own code spends more of its flash on the question whether each number
//! could be read than on reading it. Here only the end answers that question: input that ends too
//! early reads as zeros, output that finds no room is counted and not written.

mod decode;
mod encode;

use core::fmt::Display;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::decode::Reader;
use self::encode::Writer;

/// The bytes are not one whole message of this type; or its type has something in it that
/// [`decode`] does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("the bytes are not one whole message: drop the frame")]
pub struct Malformed;

/// The message was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum NotWritten {
    /// It is longer than the room for it.
    #[error("the message takes {len} bytes and has room for {room}: lend a longer buffer")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The length of the buffer.
        room: usize,
    },
    /// Its type has something in it that [`encode`] does not write.
    #[error(
        "the message has a number with a sign or a point in it, a map, or a list of unknown length: \
         encode it with postcard"
    )]
    Unsupported,
}

/// Reads a message in postcard's encoding, and no bytes more. O(length).
///
/// Takes what is made of structs, enums, tuples, options, lists, text, `bool` and unsigned numbers of
/// up to 64 bits: all messages of these crates. Reads and refuses the same bytes as postcard, and takes
/// less flash (`no_std/flash`). A length that a frame only claims reserves no memory where lists are
/// [`List`](super::List)s or [`items`](super::items).
///
/// # Errors
/// [`Malformed`] when the bytes are no such message, or go on behind it.
pub fn decode<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Malformed> {
    let mut reader = Reader::new(bytes);
    let message = T::deserialize(&mut reader)?;
    if reader.is_done() {
        Ok(message)
    } else {
        Err(Malformed)
    }
}

/// Writes a message in postcard's encoding to the beginning of `bytes`. Returns its length. O(length).
///
/// Writes what [`decode`] reads.
///
/// # Errors
/// [`NotWritten`] when there is no room for it, or when it has something else in it. The content of
/// `bytes` is undefined then.
pub fn encode<T: Serialize>(message: &T, bytes: &mut [u8]) -> Result<usize, NotWritten> {
    let room = bytes.len();
    let mut writer = Writer::new(bytes);
    if message.serialize(&mut writer).is_err() {
        return Err(NotWritten::Unsupported);
    }
    let len = writer.len();
    if len <= room {
        Ok(len)
    } else {
        Err(NotWritten::TooLong { len, room })
    }
}

impl serde::de::Error for Malformed {
    fn custom<T: Display>(_: T) -> Self {
        Self
    }
}

impl serde::ser::Error for NotWritten {
    fn custom<T: Display>(_: T) -> Self {
        Self::Unsupported
    }
}
