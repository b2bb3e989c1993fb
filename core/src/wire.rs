//! Frames: the envelope around a message, and the length of both.
//!
//! A frame is [`VERSION`], the protocol's kind, and then the [`Envelope`] in postcard's encoding.
//! Kinds below 128 belong to these crates; the others are free for your own protocols. The content
//! of frames of a kind implements [`Message`]. Messages add up their own lengths with the functions
//! here, so that a machine that keeps a byte budget needs no encoder; tests compare both.
//!
//! Lists in messages are [`List`]s, which never reserve memory for a length that a frame only
//! claims. A sender fits them into a frame through [`Room`].

#[cfg(feature = "serde")]
pub mod items;
mod list;
mod room;

pub use list::{IntoIter, List};
pub use room::Room;

use crate::Member;

/// The version of the frame format. Frames of another version are dropped and counted.
pub const VERSION: u8 = 1;

/// The first byte of a sealed datagram, in the place of the version of an unsealed frame.
pub const SEALED: u8 = 0xA1;

/// The number of bytes before the envelope: version and kind.
pub const HEADER_LEN: usize = 2;

/// The longest encoding of a [`Member`]: ten bytes of id and five of incarnation.
pub const MEMBER_MAX_LEN: usize = 15;

/// The content of frames of one kind.
pub trait Message {
    /// The kind in the header of these frames.
    const KIND: u8;

    /// The length in bytes in postcard's encoding, without header and sender.
    fn encoded_len(&self) -> usize;
}

/// A message with its sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Envelope<T> {
    /// The sender, in its present life.
    pub from: Member,
    /// The content.
    pub message: T,
}

/// The length of an unsigned integer in LEB128, as postcard writes it: 1 to 10 bytes.
#[must_use]
pub const fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// The length of an encoded member.
#[must_use]
pub const fn member_len(member: Member) -> usize {
    varint_len(member.id.0) + varint_len(member.incarnation.0 as u64)
}

/// The length of the whole frame in which `from` sends `message`: header, sender, message.
#[must_use]
pub fn frame_len(from: Member, message: &impl Message) -> usize {
    HEADER_LEN + member_len(from) + message.encoded_len()
}

/// The length of a byte string, including its length prefix.
#[must_use]
pub const fn bytes_len(count: usize) -> usize {
    varint_len(count as u64) + count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_grow_every_seven_bits() {
        for (value, len) in [
            (0, 1),
            (127, 1),
            (128, 2),
            (16_383, 2),
            (16_384, 3),
            (u64::MAX, 10),
        ] {
            assert_eq!(varint_len(value), len, "{value}");
        }
        assert_eq!(member_len(Member::new(u64::MAX, u32::MAX)), MEMBER_MAX_LEN);
        assert_eq!(bytes_len(128), 130);
    }
}
