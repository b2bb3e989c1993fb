//! The syntax tree of a file: lists, maps and scalars, each with its place.
//!
//! Both formats are read to this tree, so that refusals and their texts are the same.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{Fault, FileError};

/// The depth to which lists and maps may be nested.
pub(super) const DEEPEST: usize = 64;

/// The largest file, in bytes. Reading takes up to 80 times as much memory, for lists of next to nothing.
pub(super) const LARGEST: usize = 1 << 23;

/// The number of characters that an error quotes.
const SHOWN: usize = 60;

/// A place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Mark {
    /// The line, from 1; 0 without a text.
    pub(super) line: usize,
    /// The column in characters, from 1.
    pub(super) column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) data: Data,
    pub(super) mark: Mark,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Null,
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    Word(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) mark: Mark,
    pub(super) value: Node,
}

impl Node {
    /// The value, for people.
    pub(super) fn shown(&self) -> String {
        match &self.data {
            Data::Null => "nothing".into(),
            Data::Bool(it) => it.to_string(),
            Data::Number(text) => short(text),
            Data::Word(text) => format!("{:?}", short(text)),
            Data::List(_) => "a list".into(),
            Data::Map(_) => "an object".into(),
        }
    }
}

impl<D: Into<Data>> From<D> for Node {
    fn from(data: D) -> Self {
        Self {
            data: data.into(),
            mark: Mark::default(),
        }
    }
}

impl From<&str> for Data {
    fn from(word: &str) -> Self {
        Self::Word(word.into())
    }
}

impl From<Vec<Node>> for Data {
    fn from(list: Vec<Node>) -> Self {
        Self::List(list)
    }
}

impl From<Vec<Entry>> for Data {
    fn from(map: Vec<Entry>) -> Self {
        Self::Map(map)
    }
}

/// The text, shortened to the number of characters that an error quotes.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.into(),
    }
}

/// The path to a value, from the top of the file.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Top,
    Key(&'a Self, &'a str),
    Nth(&'a Self, usize),
}

impl<'a> Place<'a> {
    pub(super) const fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub(super) const fn nth(&'a self, nth: usize) -> Self {
        Self::Nth(self, nth)
    }

    pub(super) fn fault(&self, mark: Mark, fault: Fault) -> FileError {
        FileError::Meaning {
            path: self.to_string(),
            fault,
            line: mark.line,
            column: mark.column,
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => Ok(()),
            Self::Key(parent, key) => {
                parent.fmt(f)?;
                let is_first = matches!(parent, Self::Top);
                let is_plain =
                    !key.is_empty() && key.chars().all(|it| it.is_alphanumeric() || it == '_');
                match (is_first, is_plain) {
                    (true, true) => f.write_str(&short(key)),
                    (false, true) => write!(f, ".{}", short(key)),
                    (_, false) => write!(f, "[{:?}]", short(key)),
                }
            }
            Self::Nth(parent, nth) => write!(f, "{parent}[{nth}]"),
        }
    }
}

/// The decimal number in units of 10 to the power of minus `places`; `None` if the text is no
/// number, is no whole number of units, or has more than 30 digits.
pub(super) fn scaled(text: &str, places: i64) -> Option<i128> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, power) = match rest.split_once(['e', 'E']) {
        Some((number, power)) => (number, power.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = || whole.bytes().chain(part.bytes());
    if digits().next().is_none() || !digits().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let behind = digits().rev().take_while(|it| *it == b'0').count();
    let count = whole.len() + part.len() - behind;
    let mut found: i128 = 0;
    let mut length = 0;
    for digit in digits().take(count).skip_while(|it| *it == b'0') {
        length += 1;
        if length > 30 {
            return None;
        }
        found = found * 10 + i128::from(digit - b'0');
    }
    let behind = i64::try_from(behind).ok()?;
    let fraction = i64::try_from(part.len()).ok()?;
    let shift = i64::from(power) - fraction + behind + places;
    if found == 0 {
        return Some(0);
    }
    for _ in 0..shift.clamp(0, 31) {
        length += 1;
        found = found.checked_mul(10)?;
    }
    if shift < 0 || length > 30 {
        return None;
    }
    Some(if is_negative { -found } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_exact_or_none() {
        for (text, thousandths) in [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("21", Some(21_000)),
            ("21.5", Some(21_500)),
            ("-0.001", Some(-1)),
            ("2.1e1", Some(21_000)),
            ("2100e-2", Some(21_000)),
            ("1e-3", Some(1)),
            ("0e999999", Some(0)),
            ("0.1000000", Some(100)),
            (".5", Some(500)),
            ("5.", Some(5_000)),
            ("+5", Some(5_000)),
            ("0.0001", None),
            ("1e-4", None),
            ("1e300", None),
            ("1e99999999999", None),
            ("12345678901234567890123456789012", None),
            ("", None),
            (".", None),
            ("-", None),
            ("1e", None),
            ("1 000", None),
            ("1.2.3", None),
        ] {
            assert_eq!(scaled(text, 3), thousandths, "{text}");
        }
        assert_eq!(scaled("1.5", 0), None);
        let longest = "1".repeat(30);
        assert_eq!(scaled(&longest, 0), longest.parse().ok());
        assert_eq!(scaled(&"1".repeat(31), 0), None);
        assert_eq!(scaled(&longest, 1), None);
        assert_eq!(scaled("1", 29), Some(10_i128.pow(29)));
        assert_eq!(scaled("1", 30), None);
        assert_eq!(scaled("18446744073709551615", 0), Some(u64::MAX.into()));
    }
}
