//! Arguments of functions, and their text.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::hash::{Hash, Hasher};
use core::num::IntErrorKind;
use core::str::FromStr;

use selvedge_core::wire::items;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The prefix of bytes in hexadecimal.
const HEX: &str = "hex:";

/// An argument of a function.
///
/// Its text, in both directions:
///
/// | argument | text | also read |
/// |---|---|---|
/// | `I32` | `7` | `7i32`; bits in hexadecimal: `0xffffffff` is -1 |
/// | `I64` | `7i64` | `0xffi64` |
/// | `F64` | `1.5`, `1e300`, `inf`, `NaN` | `2f64` |
/// | `F32` | `1.5f32`, `NaNf32` | `2f32` |
/// | `Bytes` | `hex:00ff` | `text:abc` |
///
/// A number without a suffix is an `I32` if it has only digits, and an `F64` otherwise.
///
/// Two arguments are equal if their bits are: a NaN equals itself, and 0.0 is not -0.0.
///
/// ```
/// use selvedge_faas::Argument;
///
/// assert_eq!("7".parse(), Ok(Argument::I32(7)));
/// assert_eq!("text:abc".parse::<Argument>()?.to_string(), "hex:616263");
/// # Ok::<(), selvedge_faas::ArgumentError>(())
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Argument {
    /// A whole number of 32 bits; WebAssembly does not define whether it has a sign.
    I32(i32),
    /// A whole number of 64 bits.
    I64(i64),
    /// A number of 32 bits.
    F32(f32),
    /// A number of 64 bits.
    F64(f64),
    /// Bytes.
    Bytes(#[serde(with = "items")] Vec<u8>),
}

impl Argument {
    /// Its bytes: numbers in little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::I32(number) => number.to_le_bytes().into(),
            Self::I64(number) => number.to_le_bytes().into(),
            Self::F32(number) => number.to_le_bytes().into(),
            Self::F64(number) => number.to_le_bytes().into(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }

    /// The parts that two equal arguments share.
    fn bits(&self) -> (u8, u64, &[u8]) {
        match self {
            Self::I32(number) => (0, u64::from(number.cast_unsigned()), &[]),
            Self::I64(number) => (1, number.cast_unsigned(), &[]),
            Self::F32(number) => (2, u64::from(number.to_bits()), &[]),
            Self::F64(number) => (3, number.to_bits(), &[]),
            Self::Bytes(bytes) => (4, 0, bytes),
        }
    }
}

impl PartialEq for Argument {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}

impl Eq for Argument {}

impl Hash for Argument {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{:?}` of a number with a fraction parses as such: 2.0, not 2. All NaNs have the same
        // text.
        match self {
            Self::I32(number) => write!(f, "{number}"),
            Self::I64(number) => write!(f, "{number}i64"),
            Self::F32(number) => write!(f, "{number:?}f32"),
            Self::F64(number) => write!(f, "{number:?}"),
            Self::Bytes(bytes) => {
                f.write_str(HEX)?;
                bytes.iter().try_for_each(|it| write!(f, "{it:02x}"))
            }
        }
    }
}

impl FromStr for Argument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        if let Some(digits) = text.strip_prefix(HEX) {
            return from_hex(digits).map(Self::Bytes).ok_or(ArgumentError::Hex);
        }
        if let Some(text) = text.strip_prefix("text:") {
            return Ok(Self::Bytes(text.as_bytes().to_vec()));
        }
        if let Some(digits) = text.strip_suffix("i64") {
            return whole(digits, i64::from_str, |it| {
                u64::from_str_radix(it, 16).map(u64::cast_signed)
            })
            .map(Self::I64);
        }
        if let Some(digits) = text.strip_suffix("i32") {
            return i32_of(digits);
        }
        // 0xff32 ends in f32, and is whole.
        if text.starts_with("0x")
            || text
                .bytes()
                .all(|it| matches!(it, b'-' | b'+' | b'0'..=b'9'))
        {
            return i32_of(text);
        }
        if let Some(digits) = text.strip_suffix("f32") {
            let number = digits.parse().map_err(|_| ArgumentError::Syntax)?;
            // All NaNs have the same text, so all are parsed as the same NaN.
            return Ok(Self::F32(if f32::is_nan(number) {
                f32::NAN
            } else {
                number
            }));
        }
        let digits = text.strip_suffix("f64").unwrap_or(text);
        let number = digits.parse().map_err(|_| ArgumentError::Syntax)?;
        Ok(Self::F64(if f64::is_nan(number) {
            f64::NAN
        } else {
            number
        }))
    }
}

fn i32_of(digits: &str) -> Result<Argument, ArgumentError> {
    let bits = |it: &str| u32::from_str_radix(it, 16).map(u32::cast_signed);
    whole(digits, i32::from_str, bits).map(Argument::I32)
}

/// A whole number, in decimal or its bits in hexadecimal.
fn whole<T>(
    text: &str,
    decimal: impl Fn(&str) -> Result<T, core::num::ParseIntError>,
    bits: impl Fn(&str) -> Result<T, core::num::ParseIntError>,
) -> Result<T, ArgumentError> {
    let number = match text.strip_prefix("0x") {
        // The parser takes a sign, which bits do not have.
        Some(digits) if digits.starts_with(['+', '-']) => return Err(ArgumentError::Syntax),
        Some(digits) => bits(digits),
        None => decimal(text),
    };
    number.map_err(|error| {
        let kind = error.kind();
        match matches!(kind, IntErrorKind::PosOverflow | IntErrorKind::NegOverflow) {
            true => ArgumentError::TooLarge,
            false => ArgumentError::Syntax,
        }
    })
}

/// The bytes of an even number of hexadecimal digits.
pub(super) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let nibble = |it: u8| char::from(it).to_digit(16);
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => u8::try_from(nibble(high)? << 4 | nibble(low)?).ok(),
            _ => None,
        })
        .collect()
}

/// A result as text for people: unchanged if it is text without control characters, without
/// characters that change the direction of text, and without `hex:` at its beginning; otherwise in
/// hexadecimal after `hex:`. Line feeds and tabs are allowed. Two results have two texts.
#[must_use]
pub fn text_of(result: &[u8]) -> String {
    let is_let_through = |it: char| is_plain(it) || matches!(it, '\n' | '\t');
    match core::str::from_utf8(result) {
        Ok(text) if text.chars().all(is_let_through) && !text.starts_with(HEX) => {
            String::from(text)
        }
        _ => {
            let mut text = String::from(HEX);
            for byte in result {
                // Writing to a string does not fail.
                if write!(text, "{byte:02x}").is_err() {
                    break;
                }
            }
            text
        }
    }
}

/// Returns true if a character is shown as itself, in its place: it is no control character, no end
/// of a line or a paragraph, and does not change the direction of text.
pub(crate) fn is_plain(it: char) -> bool {
    !it.is_control()
        && !matches!(it, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// An error about an argument's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ArgumentError {
    /// It is no number, and has no prefix.
    #[error("not an argument: write 7, 7i64, 1.5, 1.5f32, hex:00ff or text:abc")]
    Syntax,
    /// A number does not fit.
    #[error("the number does not fit: 7i64 has 64 bits, 7 and 7i32 have 32")]
    TooLarge,
    /// `hex:` is not followed by pairs of hexadecimal digits.
    #[error("hex: needs pairs of hexadecimal digits, as in hex:00ff")]
    Hex,
}
