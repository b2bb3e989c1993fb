//! Scenarios in which the paper's rules break and this crate's rules hold.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Erratum, Scenario};

use super::party::{LIAR, SLOW};
use super::setup::{Offload, Promise, Setup};
use crate::Published;

pub(super) fn pairs() -> Vec<Scenario> {
    let all = ended().into_iter().chain(present());
    all.flat_map(Case::pair).collect()
}

type Case = Erratum<Setup>;

/// Errata Q4, Q6 and Q7: a follower has failed, or is taken for failed.
fn ended() -> Vec<Case> {
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
            promise: &[Promise::Value],
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
            promise: &[Promise::Backed],
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
                promises: &[Promise::OneAnswer, Promise::Received, Promise::Voted],
                ..Setup::PLAIN
            },
            states: 99_252,
            rules: &[Published::AnyAttempt],
            promise: &[Promise::OneAnswer],
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
            promise: &[Promise::Right],
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
            // No rule of the machines: the variant in which the orchestrator counts the votes.
            rules: &[],
            promise: &[Promise::Right],
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
            promise: &[Promise::Rest],
            steps: 12,
        },
    ]
}

/// Bounds in which one timer expires: the one by which a follower is taken for failed, or another.
const TICKS: Bounds = Bounds {
    ticks: Some(1),
    ..Setup::PLAIN.bounds
};
