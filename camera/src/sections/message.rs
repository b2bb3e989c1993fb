//! The messages: all that nodes send to each other.

use selvedge_core::wire;

use super::Name;

/// The protocol's kind in a frame header.
pub const KIND: u8 = 3;

/// One message about one section.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Message {
    /// The section.
    pub section: Name,
    /// The message in that section.
    pub message: crate::Message,
}

impl Message {
    /// The length of the message in postcard's encoding, in bytes.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.section.encoded_len() + self.message.encoded_len()
    }
}

impl wire::Message for Message {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        self.encoded_len()
    }
}
