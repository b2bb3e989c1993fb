//! Where the paper's rules break, and ours do not.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::setup::{Offload, Promise, Setup};
use super::{full, holds};
use crate::Published;

pub(super) fn pairs() -> Vec<Scenario> {
    cases().into_iter().flat_map(Case::pair).collect()
}

/// A setup in which a published rule is tried.
struct Case {
    name: &'static str,
    setup: Setup,
    /// States under our rules.
    states: usize,
    rules: &'static [Published],
    /// The promise that it breaks.
    breaks: &'static [Promise],
    /// Steps until it breaks.
    steps: usize,
}

impl Case {
    fn pair(self) -> [Scenario; 2] {
        let published = Setup {
            rules: self.rules,
            promises: self.breaks,
            sees: &[],
            ..self.setup
        };
        [
            holds(self.name, self.states, self.setup),
            Scenario::breaks(full(self.name), self.steps, move || published.model()),
        ]
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "Q6: an orchestrator is gone that had votes",
            setup: Setup {
                offload: Offload::Never,
                bounds: Bounds {
                    crashes: 1,
                    ..Setup::PLAIN.bounds
                },
                promises: &[Promise::Value],
                ..Setup::PLAIN
            },
            states: 13_236,
            rules: &[Published::VotesOnce],
            breaks: &[Promise::Value],
            steps: 6,
        },
        Case {
            name: "Q7: a follower is not in the unit any more",
            setup: Setup {
                followers: &[1, 2, 2],
                offload: Offload::Never,
                suspects: &[2],
                promises: &[Promise::Backed],
                ..Setup::PLAIN
            },
            states: 152_795,
            rules: &[Published::AnyVote],
            breaks: &[Promise::Backed],
            steps: 8,
        },
        Case {
            name: "Q4: an orchestrator says another answer when a follower is gone",
            setup: Setup {
                followers: &[1, 2, 2],
                offload: Offload::Never,
                suspects: &[2],
                promises: &[Promise::OneAnswer, Promise::Heard],
                ..Setup::PLAIN
            },
            states: 152_795,
            rules: &[Published::AnyAttempt],
            breaks: &[Promise::OneAnswer],
            steps: 11,
        },
    ]
}
