//! Tags: the application's data about a node, which all other nodes receive with its addresses.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

/// The number of bytes of the metadata that tags leave free, for the node's addresses.
const RESERVED: usize = 88;

/// The tags of a node: names, each with a value of text or of any bytes. All members have them with
/// the next news ([`MemberInfo::tags`](crate::MemberInfo::tags)).
///
/// A node's tags have at most 512 bytes in all: names, values, two bytes for each tag, and one more for
/// each name and value from 128 bytes. That is 88 bytes less than
/// [`metadata_limit`](selvedge_membership::Config::metadata_limit), 600 by default; the rest is for
/// addresses. An application that has bytes and no names makes them the value of one tag: up to 509
/// bytes under an empty name.
///
/// A clone is O(1), a lookup and a change are O(length).
///
/// ```
/// use selvedge_udp::Tags;
///
/// let mut tags = Tags::from([("role", "storage"), ("rack", "2")]);
/// tags.set("build", [0xC0, 0xFF]);
/// assert_eq!(tags.get("role"), Some("storage"));
/// assert_eq!(tags.bytes("build"), Some(&[0xC0, 0xFF][..]));
/// assert_eq!(tags.get("build"), None, "no text");
/// assert_eq!(tags.iter().count(), 3);
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Tags {
    /// Names in ascending order, each with its value; `None` for no tags.
    bytes: Option<Arc<[u8]>>,
}

/// Tags that are too long for the node's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the tags have {len} bytes, but at most {limit} are allowed: shorten them, or raise metadata_limit on all \
     nodes, of which {RESERVED} bytes are for addresses"
)]
pub struct TagsTooLong {
    /// The refused length.
    pub len: usize,
    /// The longest allowed length.
    pub limit: usize,
}

impl Tags {
    /// No tags.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a name, and replaces a former one.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let mut tags: BTreeMap<_, _> = self.iter().collect();
        tags.insert(name, value.as_ref());
        *self = Self::of(&tags);
    }

    /// Removes a name with its value, if it is there.
    pub fn remove(&mut self, name: &str) {
        let mut tags: BTreeMap<_, _> = self.iter().collect();
        tags.remove(name);
        *self = Self::of(&tags);
    }

    /// The value of a name, if it is text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        str::from_utf8(self.bytes(name)?).ok()
    }

    /// The value of a name.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.iter();
        all.find(|&(it, _)| it == name).map(|(_, value)| value)
    }

    /// The names with their values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut rest = self.encoded();
        core::iter::from_fn(move || {
            let (tag, behind) = take(rest)?;
            rest = behind;
            Some(tag)
        })
    }

    /// Returns true if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_none()
    }

    /// The length in bytes, for which there is a limit.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        self.encoded().len()
    }

    /// The bytes that other nodes receive.
    pub(crate) fn encoded(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or_default()
    }

    /// Reads tags from the bytes of [`encoded`](Self::encoded). `None` for any others.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut tags, mut rest) = (BTreeMap::new(), bytes);
        while !rest.is_empty() {
            let ((name, value), behind) = take(rest)?;
            tags.insert(name, value);
            rest = behind;
        }
        // A name that is there twice, or in another place, and a length in another form.
        Some(Self::of(&tags)).filter(|it| it.encoded() == bytes)
    }

    /// Checks that the tags fit into metadata of at most `room` bytes.
    pub(crate) fn check(&self, room: usize) -> Result<(), TagsTooLong> {
        let (len, limit) = (self.encoded_len(), room.saturating_sub(RESERVED));
        if len > limit {
            return Err(TagsTooLong { len, limit });
        }
        Ok(())
    }

    fn of(tags: &BTreeMap<&str, &[u8]>) -> Self {
        let mut bytes = Vec::new();
        for tag in tags {
            // Text and bytes can always be written.
            bytes = postcard::to_extend(&tag, bytes).unwrap_or_default();
        }
        let bytes = (!bytes.is_empty()).then(|| bytes.into());
        Self { bytes }
    }
}

/// A name and its value.
type Tag<'a> = (&'a str, &'a [u8]);

/// Reads the first tag, and returns it with the bytes behind it.
fn take(bytes: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    postcard::take_from_bytes(bytes).ok()
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Tags {
    /// Of a name that is there twice, the last value counts.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(tags: I) -> Self {
        let tags: Vec<_> = tags.into_iter().collect();
        let tags = tags
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()));
        Self::of(&tags.collect())
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>, const COUNT: usize> From<[(N, V); COUNT]> for Tags {
    fn from(tags: [(N, V); COUNT]) -> Self {
        tags.into_iter().collect()
    }
}

impl fmt::Display for Tags {
    /// Writes `rack=2, role=storage`. Other nodes chose the bytes: those that are no printable text are
    /// escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (name, value)) in self.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            let value = String::from_utf8_lossy(value);
            write!(f, "{comma}{}={}", name.escape_debug(), value.escape_debug())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = self
            .iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(value)));
        f.debug_map().entries(tags).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_tags_in_one_form_or_none(bytes in proptest::collection::vec(0_u8..5, 0..20)) {
            if let Some(tags) = Tags::decode(&bytes) {
                prop_assert_eq!(tags.encoded(), &bytes);
                prop_assert_eq!(&tags.iter().collect::<Tags>(), &tags);
            }
        }

        #[test]
        fn tags_return(
            given in proptest::collection::btree_map(".{0,3}", proptest::collection::vec(any::<u8>(), 0..200), 0..6),
        ) {
            let tags: Tags = given.iter().collect();
            let read = Tags::decode(tags.encoded()).unwrap();
            let found: BTreeMap<_, _> = read.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            prop_assert_eq!(&found, &given);
            // One after another, in any order.
            let mut again = Tags::new();
            for (name, value) in given.iter().rev() {
                again.set(name, "a former value");
                again.set(name, value);
            }
            prop_assert_eq!(&again, &tags);
            for name in given.keys() {
                again.remove(name);
            }
            prop_assert_eq!(again, Tags::new());
        }
    }

    /// The format, which nodes of other versions read.
    #[test]
    fn tags_are_written_in_the_order_of_their_names() {
        let tags = Tags::from([("role", &b"db"[..]), ("", &[255; 130])]);
        let first = [&[0, 130, 1][..], &[255; 130]].concat();
        assert_eq!(tags.encoded(), [&first[..], b"\x04role\x02db"].concat());
        assert_eq!(tags.encoded_len(), 3 + 130 + 2 + 4 + 2);
        assert_eq!(
            Tags::from([("a", "1"), ("a", "2")]).encoded(),
            b"\x01a\x012"
        );
        assert_eq!(Tags::new().encoded(), b"");
    }

    #[test]
    fn other_bytes_are_no_tags() {
        for bytes in [
            // Cut short, no text, a name twice, names out of order, a length in two bytes.
            &b"\x01a"[..],
            b"\x01a\x02b",
            b"\x01\xFF\x01b",
            b"\x01a\x01b\x01a\x01c",
            b"\x01b\x00\x01a\x00",
            b"\x81\x00a\x01b",
            b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01a",
        ] {
            assert_eq!(Tags::decode(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_value_may_be_no_text_and_is_printed_all_the_same() {
        let tags = Tags::from([("b\x1B[2J", &b"\xFF"[..]), ("a", b"line\n")]);
        assert_eq!(tags.to_string(), "a=line\\n, b\\u{1b}[2J=\u{FFFD}");
        assert_eq!(
            format!("{tags:?}"),
            r#"{"a": "line\n", "b\u{1b}[2J": "\u{FFFD}"}"#.replace("\\u{FFFD}", "\u{FFFD}")
        );
        assert_eq!(
            (tags.get("a"), tags.get("b\x1B[2J")),
            (Some("line\n"), None)
        );
    }

    #[test]
    fn tags_fit_up_to_the_limit_and_the_error_names_both_lengths() {
        let tags = |len| Tags::from([("", vec![0; len])]);
        assert_eq!(tags(509).check(600), Ok(()));
        let error = tags(510).check(600).unwrap_err();
        assert_eq!((error.len, error.limit), (513, 512));
        assert!(error.to_string().contains("513 bytes, but at most 512"));
        assert_eq!(tags(1).check(32).unwrap_err().limit, 0);
        assert_eq!(Tags::new().check(32), Ok(()));
    }
}
