//! Where the paper's rules break, and ours do not.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Scenario};

use super::party::{LIAR, SLOW};
use super::setup::{Offload, Promise, Setup};
use super::{full, holds};
use crate::Published;

pub(super) fn pairs() -> Vec<Scenario> {
    let all = gone().into_iter().chain(present());
    all.flat_map(Case::pair).collect()
}

/// A setup in which a published rule is tried.
struct Case {
    name: &'static str,
    setup: Setup,
    /// States under our rules.
    states: usize,
    rules: &'static [Published],
    /// Whether the published rule is that orchestrators count the votes.
    believes: bool,
    /// The promise that it breaks.
    breaks: &'static [Promise],
    /// Steps until it breaks.
    steps: usize,
}

impl Case {
    fn pair(self) -> [Scenario; 2] {
        let published = Setup {
            rules: self.rules,
            counts_votes: self.setup.counts_votes && !self.believes,
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

/// Errata Q4, Q6 and Q7: a follower is gone, or is taken for gone.
fn gone() -> Vec<Case> {
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
            states: 13_302,
            rules: &[Published::VotesOnce],
            believes: false,
            breaks: &[Promise::Value],
            steps: 6,
        },
        Case {
            name: "Q7: a follower is not in the unit any more",
            setup: Setup {
                followers: &[1, 2, 2],
                offload: Offload::Never,
                suspects: &[2],
                suspects_late: true,
                bounds: TICKS,
                promises: &[Promise::Backed, Promise::Voted],
                ..Setup::PLAIN
            },
            states: 99_252,
            rules: &[Published::AnyVote],
            believes: false,
            breaks: &[Promise::Backed],
            steps: 8,
        },
        Case {
            name: "Q4: an orchestrator says another answer when a follower is gone",
            setup: Setup {
                followers: &[1, 2, 2],
                offload: Offload::Never,
                suspects: &[2],
                suspects_late: true,
                bounds: TICKS,
                promises: &[Promise::OneAnswer, Promise::Heard, Promise::Voted],
                ..Setup::PLAIN
            },
            states: 99_252,
            rules: &[Published::AnyAttempt],
            believes: false,
            breaks: &[Promise::OneAnswer],
            steps: 11,
        },
    ]
}

/// Errata Q5 and Q9: all followers stay.
fn present() -> Vec<Case> {
    vec![
        Case {
            name: "Q5: the others vote before the orchestrator has its own value",
            setup: Setup {
                followers: &[SLOW + 1, 2],
                ..Setup::PLAIN
            },
            states: 4_683,
            rules: &[Published::FirstHalf],
            believes: false,
            breaks: &[Promise::Right],
            steps: 6,
        },
        Case {
            name: "Q5: an orchestrator lies",
            setup: Setup {
                followers: &[LIAR, 1, 1],
                counts_votes: true,
                ..Setup::PLAIN
            },
            states: 11_184,
            rules: &[],
            believes: true,
            breaks: &[Promise::Right],
            steps: 8,
        },
        Case {
            name: "Q9: two followers, of which one moves",
            setup: Setup {
                followers: &[1, 1],
                moves: 1,
                promises: &[Promise::Rest],
                ..Setup::PLAIN
            },
            states: 528,
            rules: &[Published::AlwaysFew],
            believes: false,
            breaks: &[Promise::Rest],
            steps: 12,
        },
    ]
}

/// One follower is taken for gone, and one more timer expires.
const TICKS: Bounds = Bounds {
    ticks: Some(1),
    ..Setup::PLAIN.bounds
};
