//! Bytes that steer a run.

use selvedge_core::{Choose, Ratio, Weights};

/// Bytes as operations and choices, from a fuzzer or a property test. After the last byte, every
/// further byte is zero.
///
/// ```
/// use selvedge_core::Choose;
/// use selvedge_sim::Bytes;
///
/// let mut bytes = Bytes::new(&[7, 9, 1, 2]);
/// assert_eq!((bytes.take(), bytes.pick(4)), (7, 1));
/// assert_eq!(bytes.below(1_000), 258);
/// assert!(bytes.is_empty());
/// assert_eq!((bytes.take(), bytes.below(1_000)), (0, 0));
/// ```
#[derive(Clone, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// A reader of all of `rest`.
    #[must_use]
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Takes the next byte; 0 when none is left.
    pub const fn take(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&first, rest)) => {
                self.rest = rest;
                first
            }
            None => 0,
        }
    }

    /// Picks a number below `of`; 0 if `of` is 0.
    pub fn pick(&mut self, of: usize) -> usize {
        usize::from(self.take()).checked_rem(of).unwrap_or_default()
    }

    /// Flips a coin.
    pub const fn flip(&mut self) -> bool {
        self.take().is_multiple_of(2)
    }

    /// Returns true if no byte is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Can return every possible outcome, including unlikely ones.
impl Choose for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let wide = u64::from(self.take()) << 8 | u64::from(self.take());
        if bound <= 1 << 16 {
            return wide % bound;
        }
        // Enough to reach both ends.
        bound / (1 << 16) * wide
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        ratio.numerator > 0 && (ratio.numerator >= ratio.denominator || self.flip())
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        let mut possible = (0..weights.len()).filter(|&outcome| weights.weight(outcome) > 0);
        let count = possible.clone().count();
        let chosen = usize::from(self.take()).checked_rem(count)?;
        possible.nth(chosen)
    }
}
