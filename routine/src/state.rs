//! States, in the form for files and people.

use alloc::string::String;
use core::fmt;
use core::hash::Hash;

/// A state of a device: a number or a word, in the application's own type.
pub trait Value: Clone + Ord + Hash + fmt::Debug {}
impl<V: Clone + Ord + Hash + fmt::Debug> Value for V {}

/// A state of a device: a number (a temperature, a brightness) or a word (`ON`, `closed`).
///
/// Numbers compare as numbers, words by their letters, upper case first; every number comes before
/// every word. So it is seldom right to test whether a word is [`Less`](crate::Comparison::Less) or
/// [`Greater`](crate::Comparison::Greater) than a number: a heater that is `off` is `Greater` than
/// 20.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum State {
    /// A number.
    Number(Number),
    /// Anything else.
    Word(String),
}

/// A number of up to 12 digits before the point and 3 behind it: exact, unlike a float, so that
/// two states are equal or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Number(i64);

impl Number {
    /// The largest, in thousandths; the least is as far below zero.
    pub const MAX_THOUSANDTHS: i64 = 999_999_999_999_999;

    /// A number of thousandths; `None` beyond [`MAX_THOUSANDTHS`](Self::MAX_THOUSANDTHS).
    #[must_use]
    pub const fn from_thousandths(thousandths: i64) -> Option<Self> {
        if thousandths.unsigned_abs() > Self::MAX_THOUSANDTHS.unsigned_abs() {
            return None;
        }
        Some(Self(thousandths))
    }

    /// The value in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> i64 {
        self.0
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Number {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let thousandths = i64::deserialize(deserializer)?;
        let error = || serde::de::Error::custom("a number of more than 12 digits");
        Self::from_thousandths(thousandths).ok_or_else(error)
    }
}

#[cfg(feature = "arbitrary")]
impl<'a> arbitrary::Arbitrary<'a> for Number {
    fn arbitrary(bytes: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Self> {
        let range = -Self::MAX_THOUSANDTHS..=Self::MAX_THOUSANDTHS;
        Ok(Self(bytes.int_in_range(range)?))
    }
}

impl From<i32> for Number {
    fn from(whole: i32) -> Self {
        Self(i64::from(whole) * 1_000)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0.unsigned_abs() / 1_000, self.0.unsigned_abs() % 1_000);
        let sign = if self.0 < 0 { "-" } else { "" };
        match part {
            0 => write!(f, "{sign}{whole}"),
            _ if part % 100 == 0 => write!(f, "{sign}{whole}.{}", part / 100),
            _ if part % 10 == 0 => write!(f, "{sign}{whole}.{:02}", part / 10),
            _ => write!(f, "{sign}{whole}.{part:03}"),
        }
    }
}

impl From<i32> for State {
    fn from(whole: i32) -> Self {
        Self::Number(whole.into())
    }
}

impl From<&str> for State {
    fn from(word: &str) -> Self {
        Self::Word(word.into())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn numbers_compare_as_numbers_and_come_before_words() {
        let part = |it| State::Number(Number::from_thousandths(it).unwrap());
        let sorted = [
            part(-10_500),
            part(-1),
            9.into(),
            part(9_001),
            10.into(),
            "ON".into(),
            "off".into(),
        ];
        assert!(sorted.is_sorted());
        let texts = sorted.map(|it| it.to_string());
        assert_eq!(texts, ["-10.5", "-0.001", "9", "9.001", "10", "ON", "off"]);
    }

    #[test]
    fn a_number_beyond_its_range_is_none() {
        let max = Number::MAX_THOUSANDTHS;
        assert_eq!(Number::from_thousandths(max).unwrap().thousandths(), max);
        for beyond in [max + 1, -max - 1, i64::MIN] {
            assert_eq!(Number::from_thousandths(beyond), None);
        }
    }
}
