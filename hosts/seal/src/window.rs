//! The received counters of one sender: RFC 6479.

/// Words of the ring; the window is all of them except the word that is being filled.
const WORDS: u64 = 17;
const BITS: u64 = u64::BITS as u64;

/// A ring of bits over the latest counters. Moving it clears whole words, so it never shifts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    seen: [u64; WORDS as usize],
    /// The highest counter that was received, plus one; 0 at the start.
    next: u64,
}

/// The place of a counter in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Not received yet.
    New,
    /// Received already.
    Replayed,
    /// Further back than the window remembers.
    TooOld,
}

impl Window {
    /// The number of latest counters that are remembered at least.
    pub(super) const LEN: u64 = (WORDS - 1) * BITS;

    pub(super) const fn new() -> Self {
        Self {
            seen: [0; WORDS as usize],
            next: 0,
        }
    }

    /// The place of `counter`, without noting it.
    pub(super) fn place(&self, counter: u64) -> Place {
        if counter >= self.next {
            Place::New
        } else if self.next - counter > Self::LEN {
            Place::TooOld
        } else if self.word(counter) & bit(counter) != 0 {
            Place::Replayed
        } else {
            Place::New
        }
    }

    /// Notes a new counter of a datagram with a verified tag.
    pub(super) fn note(&mut self, counter: u64) {
        if counter >= self.next {
            // The words between the highest counter and this one hold bits of much older counters.
            let newest = self.next.checked_sub(1).map_or(0, |last| last / BITS);
            let words = (counter / BITS).saturating_sub(newest).min(WORDS);
            for step in 0..words {
                let index = (counter / BITS).wrapping_sub(step) % WORDS;
                if let Some(word) = self.seen.get_mut(index as usize) {
                    *word = 0;
                }
            }
            self.next = counter.saturating_add(1);
        }
        let index = (counter / BITS % WORDS) as usize;
        if let Some(word) = self.seen.get_mut(index) {
            *word |= bit(counter);
        }
    }

    fn word(&self, counter: u64) -> u64 {
        let index = (counter / BITS % WORDS) as usize;
        self.seen.get(index).copied().unwrap_or_default()
    }
}

const fn bit(counter: u64) -> u64 {
    1 << (counter % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Steps forth and back around the window's edges, against a set of all received counters.
        #[test]
        fn remembers_what_a_set_remembers(
            steps in proptest::collection::vec(
                prop_oneof![
                    4 => -3_i64..4,
                    2 => -1_100_i64..-900,
                    1 => 60_i64..70,
                    1 => 900_i64..1_300,
                    1 => -1_300_i64..1_300,
                ],
                0..300,
            ),
        ) {
            let mut window = Window::new();
            let mut seen = BTreeSet::new();
            let mut highest = 0_u64;
            for step in steps {
                let counter = highest.saturating_add_signed(step);
                let last = seen.last().copied();
                let expected = if seen.contains(&counter) && last < Some(counter + Window::LEN) {
                    Place::Replayed
                } else if last.is_some_and(|last| last >= counter + Window::LEN) {
                    Place::TooOld
                } else {
                    Place::New
                };
                prop_assert_eq!(window.place(counter), expected, "{} of {:?}", counter, last);
                if expected == Place::New {
                    window.note(counter);
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }

    #[test]
    fn the_last_counters_of_all_are_kept_apart() {
        let mut window = Window::new();
        window.note(u64::MAX - 1);
        assert_eq!(window.place(u64::MAX - 1), Place::Replayed);
        assert_eq!(window.place(u64::MAX - 2), Place::New);
        assert_eq!(window.place(5), Place::TooOld);
    }
}
