//! Decoding of the buckets' digests. The encoding is the encoding of an array.

use core::fmt;

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};

use super::{BUCKETS, Digest};

/// Reads one digest after the other. (serde's code for arrays reads each at a place of its own, and
/// takes 1 KB of flash.)
///
/// # Errors
/// The errors of the format, and when there are fewer digests than buckets.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<[Digest; BUCKETS], D::Error> {
    from.deserialize_tuple(BUCKETS, OneByOne)
}

struct OneByOne;

impl<'de> Visitor<'de> for OneByOne {
    type Value = [Digest; BUCKETS];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BUCKETS} digests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut buckets = [Digest::default(); BUCKETS];
        for (number, bucket) in buckets.iter_mut().enumerate() {
            let digest = items.next_element()?;
            *bucket = digest.ok_or_else(|| A::Error::invalid_length(number, &self))?;
        }
        Ok(buckets)
    }
}
