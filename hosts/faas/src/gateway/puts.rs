//! A queue of modules that were put: a few are kept at a time, because each is written to the disk
//! before the next, and a gateway does other work between.

use std::collections::VecDeque;

use selvedge_core::Member;

use crate::notice::Notice;

/// The number of modules kept in one round.
const ROUND: usize = 16;
/// The number of modules that may wait.
const WAITING: usize = 64;

/// Waiting modules, each with the node that put it.
#[derive(Debug, Default)]
pub(super) struct Puts(VecDeque<(Member, Notice)>);

impl Puts {
    /// Adds a module. Returns false if the queue is full; the node puts it again.
    pub(super) fn add(&mut self, from: Member, put: Notice) -> bool {
        let has_room = self.0.len() < WAITING;
        if has_room {
            self.0.push_back((from, put));
        }
        has_room
    }

    /// The modules of one round, in order of arrival.
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
