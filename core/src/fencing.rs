//! Fencing tokens in a fixed encoding, for resources that are no members of the mesh.

use core::fmt;
use core::str::FromStr;

use crate::{Member, Stamp};

/// A token that a lock's holder or a leader sends with each request to a resource outside of the
/// mesh: a database, a file, a device.
///
/// The resource keeps the largest token that it has received, and refuses requests with a smaller
/// one. So a holder that slept, and does not know yet that another one holds the lock, changes
/// nothing. Tokens are compared as bytes: in any language, as a key of a database, or as text
/// ([`Display`](fmt::Display) writes 48 hexadecimal digits, in the same order). The default is smaller
/// than all tokens in use.
///
/// Each lock and each election has an order of its own: a resource keeps one largest token for each
/// lock or election that guards it.
///
/// ```
/// use selvedge_core::{FencingToken, Member, Stamp};
///
/// let first = FencingToken::from(Stamp { number: 7, by: Member::new(2, 0) });
/// let later = FencingToken::from(Stamp { number: 8, by: Member::new(1, 0) });
/// assert!(FencingToken::default() < first && first < later);
/// assert!(first.to_be_bytes() < later.to_be_bytes());
///
/// let text = later.to_string();
/// assert_eq!(text, "000000000000000800000000000000010000000000000000");
/// assert_eq!(text.parse(), Ok(later));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct FencingToken([u8; Self::LEN]);

impl FencingToken {
    /// The length of a token in bytes.
    pub const LEN: usize = 24;

    /// The token of these bytes, as [`to_be_bytes`](Self::to_be_bytes) returned them.
    #[must_use]
    pub const fn from_be_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The token in bytes, in the order of tokens.
    #[must_use]
    pub const fn to_be_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// The token of these four numbers, compared from the first to the last.
    #[must_use]
    pub const fn from_parts(number: u64, id: u64, incarnation: u32, step: u32) -> Self {
        let bytes = ((number as u128) << 64) | id as u128;
        let rest = ((incarnation as u64) << 32) | step as u64;
        let (bytes, rest) = (bytes.to_be_bytes(), rest.to_be_bytes());
        let mut all = [0; Self::LEN];
        let (head, tail) = all.split_at_mut(16);
        head.copy_from_slice(&bytes);
        tail.copy_from_slice(&rest);
        Self(all)
    }
}

/// The token of a lock.
impl From<Stamp<Member>> for FencingToken {
    fn from(Stamp { number, by }: Stamp<Member>) -> Self {
        Self::from_parts(number, by.id.0, by.incarnation.0, 0)
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a fencing token has 48 hexadecimal digits, and this text has others: give one as it was printed"
)]
pub struct ParseTokenError;

impl FromStr for FencingToken {
    type Err = ParseTokenError;

    fn from_str(text: &str) -> Result<Self, ParseTokenError> {
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != Self::LEN || !rest.is_empty() {
            return Err(ParseTokenError);
        }
        let digit = |it: u8| char::from(it).to_digit(16).ok_or(ParseTokenError);
        let mut all = [0; Self::LEN];
        for (byte, &[high, low]) in all.iter_mut().zip(pairs) {
            *byte = (digit(high)? * 16 + digit(low)?) as u8;
        }
        Ok(Self(all))
    }
}
