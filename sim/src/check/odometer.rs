//! Every sequence of choices, one after the other.

use core::fmt;

use selvedge_core::{Choose, Ratio, Weights};

/// The number of choices in one step after which the odometer stops recording: a machine that draws
/// until it likes the outcome would otherwise never end.
const LONGEST: usize = 1_000;

/// The kind of question that a [`Choice`] answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// A number below a bound.
    Below,
    /// A yes with a given probability, else a no.
    Chance,
    /// An outcome among weighted ones.
    Weighted,
}

/// A choice that a machine made during a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Choice {
    /// The kind of question.
    pub asked: Asked,
    /// The answer: the number, 1 or 0 for yes or no, or the weighted outcome's position.
    pub outcome: u64,
    /// The number of possible outcomes; outcomes of weight 0 do not count.
    pub of: u64,
    /// The answer's position among the possible outcomes, from 0. Differs from `outcome` where
    /// weights of 0 are skipped.
    rank: u64,
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.asked, self.outcome) {
            (Asked::Below, outcome) => write!(f, "{outcome} below {}", self.of),
            (Asked::Chance, 0) => f.write_str("no"),
            (Asked::Chance, _) => f.write_str("yes"),
            (Asked::Weighted, outcome) => write!(f, "outcome {outcome}, one of {}", self.of),
        }
    }
}

/// Why the sequences of a step could not be enumerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It never stopped making choices.
    Endless,
    /// It asked something else after the same answers.
    Unrepeatable,
}

/// A source of choices that goes through all outcomes instead of drawing one.
///
/// Run a step, then [`advance`](Self::advance), and run the step again from the same state, until
/// `advance` returns false: all sequences were tried. An outcome that is impossible in production
/// is not tried: a [`Ratio`] of never or always, a weight of 0.
///
/// ```
/// use selvedge_core::{Choose, Ratio};
/// use selvedge_sim::check::Odometer;
///
/// let mut odometer = Odometer::new();
/// let mut seen = Vec::new();
/// loop {
///     let coin = odometer.chance(Ratio::new(1, 100));
///     seen.push((coin, if coin { odometer.below(2) } else { 9 }));
///     if !odometer.advance() {
///         break;
///     }
/// }
/// assert_eq!(seen, [(false, 9), (true, 0), (true, 1)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Odometer {
    digits: Vec<Choice>,
    /// The number of digits that this run has read.
    read: usize,
    /// Moves on after [`LONGEST`], so that loops that wait for one outcome meet it.
    spin: u64,
    fault: Option<Fault>,
}

impl Odometer {
    /// An odometer at the first sequence.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            digits: Vec::new(),
            read: 0,
            spin: 0,
            fault: None,
        }
    }

    /// Goes on to the next sequence. Returns false after the last sequence: then the odometer is at
    /// the first again.
    pub fn advance(&mut self) -> bool {
        self.digits.truncate(self.read);
        self.read = 0;
        while let Some(last) = self.digits.last_mut() {
            if last.rank + 1 < last.of {
                last.rank += 1;
                return true;
            }
            self.digits.pop();
        }
        false
    }

    /// The choices of the current run.
    #[must_use]
    pub fn choices(&self) -> &[Choice] {
        self.digits.get(..self.read).unwrap_or_default()
    }

    /// Returns to the first sequence.
    pub(super) fn reset(&mut self) {
        self.digits.clear();
        self.read = 0;
        self.fault = None;
    }

    pub(super) const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// The rank of this choice in this run; `outcome` converts a rank.
    fn draw(&mut self, asked: Asked, of: u64, outcome: impl FnOnce(u64) -> u64) -> u64 {
        if self.read >= LONGEST {
            self.fault = Some(Fault::Endless);
            self.spin = self.spin.wrapping_add(1);
            return outcome(self.spin % of);
        }
        if self.read == self.digits.len() {
            self.digits.push(Choice {
                asked,
                outcome: 0,
                of,
                rank: 0,
            });
        }
        let Some(digit) = self.digits.get_mut(self.read) else {
            return outcome(0);
        };
        self.read += 1;
        if digit.asked != asked || digit.of != of {
            self.fault = Some(Fault::Unrepeatable);
            return outcome(0);
        }
        digit.outcome = outcome(digit.rank);
        digit.outcome
    }
}

impl Choose for Odometer {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        self.draw(Asked::Below, bound, |rank| rank)
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        if ratio.numerator == 0 || ratio.denominator == 0 {
            return false;
        }
        if ratio.numerator >= ratio.denominator {
            return true;
        }
        self.draw(Asked::Chance, 2, |rank| rank) == 1
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        let possible = || (0..weights.len()).filter(|&outcome| weights.weight(outcome) > 0);
        let of = possible().count();
        if of <= 1 {
            return possible().next();
        }
        let position = |rank: u64| {
            let rank = usize::try_from(rank).unwrap_or(usize::MAX);
            possible().nth(rank).map_or(0, |outcome| outcome as u64)
        };
        let outcome = self.draw(Asked::Weighted, of as u64, position);
        usize::try_from(outcome).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::WeightTree;

    fn all<T>(mut run: impl FnMut(&mut Odometer) -> T) -> Vec<T> {
        let mut odometer = Odometer::new();
        let mut seen = Vec::new();
        loop {
            seen.push(run(&mut odometer));
            if !odometer.advance() {
                return seen;
            }
        }
    }

    #[test]
    fn every_sequence_comes_once() {
        let seen = all(|odometer| (odometer.below(2), odometer.below(3)));
        assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn what_cannot_happen_is_not_tried() {
        let mut weights = WeightTree::default();
        for weight in [0, 5, 0, 1] {
            assert!(weights.push(weight));
        }
        assert_eq!(all(|o| o.weighted(&weights)), [Some(1), Some(3)]);
        assert_eq!(all(|o| o.weighted(&WeightTree::default())), [None]);
        assert_eq!(all(|o| o.chance(Ratio::NEVER)), [false]);
        assert_eq!(all(|o| o.chance(Ratio::ALWAYS)), [true]);
        assert_eq!(all(|o| o.chance(Ratio::new(1, 1_000))), [false, true]);
        assert_eq!(all(|o| (o.below(0), o.below(1))), [(0, 0)]);
    }

    #[test]
    fn a_machine_that_draws_for_ever_is_found_out() {
        let mut odometer = Odometer::new();
        while odometer.below(3) != 2 {}
        assert_eq!(odometer.fault(), Some(Fault::Endless));
    }

    #[test]
    fn a_machine_that_asks_differently_is_found_out() {
        let mut odometer = Odometer::new();
        odometer.below(2);
        odometer.advance();
        odometer.below(3);
        assert_eq!(odometer.fault(), Some(Fault::Unrepeatable));
    }
}
