//! Postcard's encoding, and its lengths.

use alloc::vec::Vec;

use postcard::ser_flavors::Size;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The length of `value` in postcard's encoding. A value that cannot be encoded is longer than any
/// frame.
pub(crate) fn encoded_len(value: &impl Serialize) -> usize {
    postcard::serialize_with_flavor(value, Size::default()).unwrap_or(usize::MAX / 2)
}

/// `value` in postcard's encoding; `None` if it has none.
pub(crate) fn encode(value: &impl Serialize) -> Option<Vec<u8>> {
    postcard::to_allocvec(value).ok()
}

/// The value that all of these bytes encode.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(value)
}
