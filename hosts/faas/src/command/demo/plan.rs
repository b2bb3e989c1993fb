//! The plan of kills and starts.

use core::time::Duration;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::Choose as _;

use crate::command::world::FOLLOWERS;

/// A kill or a start of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) at: Duration,
    /// The process: first the gateways, then the followers.
    pub(super) id: u64,
    pub(super) starts: bool,
}

/// All kills and starts, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    pub(super) turns: Vec<Turn>,
}

/// The time between two kills of gateways. At most a minority is dead at a time.
const GATEWAYS: u64 = 12;
const DEAD: Duration = Duration::from_secs(5);

impl Plan {
    /// A plan with a gateway each 12 seconds, and followers between: each is started again after 5
    /// seconds.
    pub(super) fn new(seed: u64, seconds: u64, gateways: u64, followers: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut turns = Vec::new();
        let mut kill = |at: u64, id: u64| {
            let at = Duration::from_secs(at);
            let turn = |at, starts| Turn { at, id, starts };
            turns.extend([turn(at, false), turn(at + DEAD, true)]);
        };
        for at in (4..seconds).step_by(GATEWAYS as usize) {
            kill(at, 1 + rng.below(gateways));
        }
        // Two at a time, and no process again before it is back.
        for at in (8..seconds).step_by(6) {
            let one = rng.below(followers);
            kill(at, FOLLOWERS + one);
            kill(
                at,
                FOLLOWERS + (one + 1 + rng.below(followers - 1)) % followers,
            );
        }
        turns.sort_by_key(|it| (it.at, it.id, it.starts));
        Self { turns }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_minority_of_gateways_is_dead_at_a_time_and_all_come_back() {
        for seed in 0..50 {
            let (mut dead, mut kills) = (BTreeSet::new(), 0);
            for turn in Plan::new(seed, 60, 3, 15).turns {
                match turn.starts {
                    true => assert!(dead.remove(&turn.id), "seed {seed}: {turn:?}"),
                    false => assert!(dead.insert(turn.id), "seed {seed}: {turn:?}"),
                }
                kills += u64::from(!turn.starts);
                let gateways = dead.iter().filter(|it| **it < FOLLOWERS).count();
                assert!(gateways <= 1, "seed {seed}");
            }
            assert!(dead.is_empty(), "seed {seed}");
            assert_eq!(kills, 5 + 18);
        }
    }
}
