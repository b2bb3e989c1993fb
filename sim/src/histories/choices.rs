//! The source of draws.

use alloc::rc::Rc;
use core::cell::RefCell;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Ratio, Weights};

/// The source of all draws of a history: a generator, or a list of earlier draws.
///
/// ```
/// use selvedge_core::Choose;
/// use selvedge_sim::histories::Choices;
///
/// let mut choices = Choices::list(vec![3, 70]);
/// assert_eq!((choices.below(6), choices.below(6), choices.below(6)), (3, 5, 0));
/// ```
#[derive(Debug)]
pub struct Choices {
    source: Source,
    /// The draws up to now, if they are kept.
    drawn: Option<Drawn>,
}

/// A record of draws, which outlives a run that panics.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawn(Rc<RefCell<Vec<u64>>>);

impl Drawn {
    /// Takes the draws up to now.
    pub(super) fn take(&self) -> Vec<u64> {
        self.0.take()
    }
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one a history")]
enum Source {
    Seed(ChaCha8Rng),
    List(alloc::vec::IntoIter<u64>),
}

impl Choices {
    /// Draws of a generator.
    #[must_use]
    pub fn seed(seed: u64) -> Self {
        Self {
            source: Source::Seed(ChaCha8Rng::seed_from_u64(seed)),
            drawn: None,
        }
    }

    /// A source of these draws; a draw that is too high for a question counts as the highest
    /// answer. All draws after the end are zero.
    #[must_use]
    pub fn list(draws: Vec<u64>) -> Self {
        Self {
            source: Source::List(draws.into_iter()),
            drawn: None,
        }
    }

    /// Adds a record of all draws.
    pub(super) fn kept(mut self) -> (Self, Drawn) {
        let drawn = Drawn::default();
        self.drawn = Some(drawn.clone());
        (self, drawn)
    }

    /// Returns true in this share of 100 cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Picks one of these, all equally likely; the default if the list is empty.
    pub fn pick<T: Clone + Default>(&mut self, of: &[T]) -> T {
        let at = self.below(of.len() as u64);
        let at = usize::try_from(at).unwrap_or_default();
        of.get(at).cloned().unwrap_or_default()
    }
}

impl Choose for Choices {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let drawn = match &mut self.source {
            Source::Seed(rng) => rng.below(bound),
            Source::List(list) => list.next().unwrap_or_default().min(bound - 1),
        };
        if let Some(all) = &self.drawn {
            all.0.borrow_mut().push(drawn);
        }
        drawn
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        let Ratio {
            numerator,
            denominator,
        } = ratio;
        if numerator == 0 || denominator == 0 {
            return false;
        }
        numerator >= denominator || self.below(denominator.into()) < numerator.into()
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        match weights.total() {
            0 => None,
            total => Some(weights.locate(self.below(total))),
        }
    }
}

/// Shortens a list of draws with which `fails` holds: leaves out runs of draws, then makes draws
/// smaller. Calls `fails` at most `most` times.
pub(super) fn shrink(
    mut draws: Vec<u64>,
    most: u64,
    mut fails: impl FnMut(&[u64]) -> Option<Vec<u64>>,
) -> Vec<u64> {
    let mut left = most;
    let mut attempt = |list: &[u64], left: &mut u64| {
        *left = left.checked_sub(1)?;
        fails(list)
    };
    let mut size = draws.len().next_power_of_two();
    while size > 0 && left > 0 {
        let mut end = draws.len();
        while end > 0 && left > 0 {
            let first = end.saturating_sub(size);
            let without = [
                draws.get(..first).unwrap_or_default(),
                draws.get(end..).unwrap_or_default(),
            ];
            match attempt(&without.concat(), &mut left) {
                // The draws that the run made, which may be fewer than the list.
                Some(shorter) if shorter.len() < draws.len() => draws = shorter,
                _ => {}
            }
            end = first.min(draws.len());
        }
        size /= 2;
    }
    for at in 0..draws.len() {
        for smaller in [0, 1] {
            let mut other = draws.clone();
            match other.get_mut(at) {
                Some(draw) if *draw > smaller => *draw = smaller,
                _ => break,
            }
            if let Some(found) = attempt(&other, &mut left) {
                if found.len() <= draws.len() {
                    draws = found;
                }
                break;
            }
        }
    }
    draws
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_fails_becomes_short_and_small() {
        // Fails if there is a pair of draws of which the first is over 40 and the second odd.
        let fails = |list: &[u64]| {
            let (mut choices, drawn) = Choices::list(list.to_vec()).kept();
            for _ in 0..100 {
                let (first, second) = (choices.below(100), choices.below(10));
                if first > 40 && second % 2 == 1 {
                    return Some(drawn.take());
                }
            }
            None
        };
        let mut choices = Choices::seed(7);
        let long: Vec<u64> = (0..400)
            .map(|at| choices.below([100, 10][at % 2]))
            .collect();
        let short = shrink(long, 2_000, fails);
        assert!(short.len() <= 2 && short.last() == Some(&1), "{short:?}");
        assert!(fails(&short).is_some());
    }
}
