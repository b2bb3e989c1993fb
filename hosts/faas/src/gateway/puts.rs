//! Modules that were put, and wait to be kept: so many at a time, for each is written to the disk before the
//! next, and a gateway does other work between.

use std::collections::VecDeque;

use selvedge_core::Member;

use crate::notice::Notice;

/// How many modules are kept in one round.
const ROUND: usize = 16;
/// How many wait.
const WAITING: usize = 64;

/// Modules that wait, with those that put them.
#[derive(Debug, Default)]
pub(super) struct Puts(VecDeque<(Member, Notice)>);

impl Puts {
    /// Whether there is room for it; else it is put again.
    pub(super) fn add(&mut self, from: Member, put: Notice) -> bool {
        let has_room = self.0.len() < WAITING;
        if has_room {
            self.0.push_back((from, put));
        }
        has_room
    }

    /// Those of one round, in the order of their coming.
    pub(super) fn round(&mut self) -> Vec<(Member, Notice)> {
        let count = ROUND.min(self.0.len());
        self.0.drain(..count).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_modules_is_taken_in_rounds_and_bounded() {
        let mut puts = Puts::default();
        let put = |number: usize| Notice::Put {
            module: number.to_be_bytes().into_iter().collect(),
            spreads: true,
        };
        let from = Member::new(9, 1);
        for number in 0..WAITING {
            assert!(puts.add(from, put(number)));
        }
        assert!(!puts.add(from, put(WAITING)));
        let mut number = 0;
        while !puts.is_empty() {
            let round = puts.round();
            assert_eq!(round.len(), ROUND);
            for it in round {
                assert_eq!(it, (from, put(number)));
                number += 1;
            }
        }
        assert_eq!(number, WAITING);
        assert_eq!(puts.round(), []);
    }
}
