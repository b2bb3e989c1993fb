//! Where the paper's rules break, and ours do not.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Member};
use selvedge_sim::check::{Bounds, Scenario};

use super::setup::Ask::{Configure, Propose};
use super::setup::Setup;
use super::setup::Sight::{AllApplied, Configured, Leaders};
use super::{breaks, holds};
use crate::Published;

const THREE: &[u64] = &[1, 2, 3];
const ONE_FAILED: Delta = Delta::Failed(Member::new(1, 0));

/// A setup in which rules are tried.
struct Case {
    name: &'static str,
    setup: Setup,
    /// States under our rules.
    states: usize,
    rule: &'static [Published],
    /// Steps until it breaks.
    steps: usize,
}

pub(super) fn pairs() -> Vec<Scenario> {
    let both = |it: Case| {
        [
            holds(it.name, it.states, it.setup),
            breaks(it.name, it.steps, it.setup, it.rule),
        ]
    };
    cases().into_iter().flat_map(both).collect()
}

fn cases() -> Vec<Case> {
    let tickless = Bounds {
        ticks: Some(0),
        ..Setup::CALM
    };
    let crash = Bounds {
        crashes: 1,
        ..tickless
    };
    vec![
        Case {
            name: "G2: the leader that applied an update crashes",
            setup: Setup {
                led_by: Some(1),
                ends: &[1],
                ends_late: true,
                bounds: crash,
                ends_within: None,
                sees: &[AllApplied(2), Leaders(2)],
                ..Setup::of(THREE, &[&[Propose(11)], &[Propose(22)]])
            },
            states: 35_825,
            rule: &[Published::AdoptsConfirmed],
            steps: 11,
        },
        Case {
            name: "G4: the leader goes over to another configuration",
            setup: Setup {
                led_by: Some(1),
                first: &[(1, Configure(&[1])), (1, Propose(11)), (2, Propose(22))],
                told: &[(2, ONE_FAILED), (3, ONE_FAILED)],
                bounds: tickless,
                ends_within: None,
                most_ballots: Some(2),
                sees: &[AllApplied(1), Configured(2)],
                ..Setup::of(THREE, &[])
            },
            states: 3_817,
            rule: &[Published::SeparateSuccessors],
            steps: 4,
        },
    ]
}
