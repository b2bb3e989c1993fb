//! Encoding of lists that are no [`List`](super::List): for `Box<[T]>`, `Arc<[T]>` and `Vec<T>` in
//! messages, as `#[serde(with = "selvedge_core::wire::items")]`.
//!
//! Items are decoded one by one: a length that a frame only claims reserves no memory. The encoding
//! is the encoding of a slice.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes `items`.
///
/// # Errors
/// The errors of the format.
pub fn serialize<T: Serialize, S: Serializer>(items: &[T], to: S) -> Result<S::Ok, S::Error> {
    items.serialize(to)
}

/// Reads a list.
///
/// # Errors
/// The errors of the format, and of an item.
pub fn deserialize<'de, T, L, D>(from: D) -> Result<L, D::Error>
where
    T: Deserialize<'de>,
    L: From<Vec<T>>,
    D: Deserializer<'de>,
{
    one_by_one::<Vec<T>, T, D>(from).map(L::from)
}

/// Reads a list that grows with each item, without its length in advance.
pub(super) fn one_by_one<'de, L, T, D>(from: D) -> Result<L, D::Error>
where
    L: Default + Extend<T>,
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    from.deserialize_seq(OneByOne(PhantomData))
}

struct OneByOne<L, T>(PhantomData<(L, T)>);

impl<'de, L: Default + Extend<T>, T: Deserialize<'de>> Visitor<'de> for OneByOne<L, T> {
    type Value = L;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<L, A::Error> {
        let mut list = L::default();
        while let Some(item) = items.next_element()? {
            list.extend(Some(item));
        }
        Ok(list)
    }
}
