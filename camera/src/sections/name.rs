//! The names of sections.

use core::fmt;
use core::str::{self, FromStr};

use selvedge_core::wire::bytes_len;
use thiserror::Error;

/// The name of a section: 1 to 16 bytes of UTF-8, held inline. Two nodes use the same section
/// if they use the same bytes.
///
/// ```
/// use selvedge_camera::sections::Name;
///
/// let door: Name = "door/3".parse()?;
/// assert_eq!(door.as_str(), "door/3");
/// assert!("".parse::<Name>().is_err() && "seventeen letters".parse::<Name>().is_err());
/// # Ok::<(), selvedge_camera::sections::NameError>(())
/// ```
// Unused bytes are 0, so that the derived comparisons are those of the strings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl Name {
    /// The longest name, in bytes.
    pub const MAX_LEN: usize = 16;

    /// The longest encoding: a name with its length in front.
    pub const MAX_ENCODED_LEN: usize = bytes_len(Self::MAX_LEN);

    /// The name with these characters.
    ///
    /// # Errors
    /// When it is empty or too long.
    pub fn new(name: &str) -> Result<Self, NameError> {
        let len = name.len();
        let mut bytes = [0; Self::MAX_LEN];
        match bytes.get_mut(..len) {
            Some(place) if len > 0 => place.copy_from_slice(name.as_bytes()),
            Some(_) | None => return Err(NameError { len }),
        }
        // At most 16.
        let len = len as u8;
        Ok(Self { bytes, len })
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.len)).unwrap_or_default();
        // It came from a string.
        str::from_utf8(bytes).unwrap_or_default()
    }

    /// The length in postcard's encoding: 2 to 17 bytes.
    #[must_use]
    pub const fn encoded_len(&self) -> usize {
        bytes_len(self.len as usize)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Quoted: a name from a peer may hold any characters.
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A string that is not a valid name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "the name has {len} bytes: give a section 1 to {} bytes of UTF-8",
    Name::MAX_LEN
)]
pub struct NameError {
    /// The number of bytes in the string.
    pub len: usize,
}

#[cfg(feature = "serde")]
mod wire {
    use core::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Name;

    impl Serialize for Name {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    impl<'de> Deserialize<'de> for Name {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            // Read in place: a length that a frame only claims reserves no memory.
            deserializer.deserialize_str(Read)
        }
    }

    struct Read;

    impl Visitor<'_> for Read {
        type Value = Name;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "1 to {} bytes of UTF-8", Name::MAX_LEN)
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
            Name::new(name).map_err(E::custom)
        }
    }
}

#[cfg(feature = "arbitrary")]
impl<'a> arbitrary::Arbitrary<'a> for Name {
    fn arbitrary(input: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let name: &str = input.arbitrary()?;
        // Most strings are too long: their beginning, up to where a character ends, is a name.
        let fits = |end: &usize| *end <= Self::MAX_LEN && name.is_char_boundary(*end);
        let end = (1..=name.len()).rev().find(fits).unwrap_or_default();
        name.get(..end)
            .and_then(|name| Self::new(name).ok())
            .ok_or(arbitrary::Error::IncorrectFormat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    #[test]
    fn a_name_has_1_to_16_bytes_and_returns_as_it_was() {
        for name in ["a", "über", "0123456789abcdef", "a\0"] {
            assert_eq!(Name::new(name).unwrap().as_str(), name);
            assert_eq!(Name::new(name).unwrap().to_string(), name);
        }
        assert_eq!(Name::new(""), Err(NameError { len: 0 }));
        let long = Name::new("0123456789abcdefg").unwrap_err();
        assert_eq!(
            long.to_string(),
            "the name has 17 bytes: give a section 1 to 16 bytes of UTF-8"
        );
    }

    #[test]
    fn names_are_ordered_and_told_apart_as_strings_are() {
        let strings = ["", "\0", "a", "a\0", "a\0b", "ab", "b"];
        let names: Vec<Name> = strings.iter().filter_map(|it| it.parse().ok()).collect();
        assert_eq!(names.len(), strings.len() - 1);
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
    }
}
