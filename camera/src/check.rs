//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by whoever
//! composes Camera with other machines. Each scenario explores every order of messages, ticks,
//! losses, crashes, restarts and deltas within its bounds. Where the thesis' rule breaks a promise,
//! the scenario comes twice under one name: with the published rules, which must break, and with
//! ours, which must hold.
//!
//! Timeouts are longer than any delivery in all of them, and OKs are not refreshed but where it is
//! said.

mod errata;
mod setup;

use alloc::vec::Vec;

use selvedge_sim::check::{Bounds, Expected, Scenario};

pub use setup::{Setup, Watch};

use crate::Command::{Cancel, Enter, Exit};
use crate::Published;

/// What is checked: first ours, which must hold, then what must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound();
    all.extend(errata::pairs());
    all.extend(errata::parts());
    all
}

/// A scenario under our rules.
fn holds(name: &str, states: usize, setup: Setup) -> Scenario {
    Scenario::new(name, Expected::Holds { states }, move || setup.model())
}

/// A scenario under rules that break a promise after so many steps.
fn breaks(name: &str, steps: usize, setup: Setup, rules: &'static [Published]) -> Scenario {
    let setup = Setup { rules, ..setup };
    Scenario::new(name, Expected::Breaks { steps }, move || setup.model()).published()
}

/// Everything at once, under our rules.
fn sound() -> Vec<Scenario> {
    const VISIT: &[crate::Command] = &[Enter, Exit];
    const TWICE: &[crate::Command] = &[Enter, Exit, Enter, Exit];
    const GIVE_UP: &[crate::Command] = &[Enter, Cancel, Enter, Exit];
    let two = Setup::full(2);
    let three = Setup::full(3);
    let calm = Setup::CALM;
    alloc::vec![
        holds("2 nodes, 2 visits", 0, two.visits(&[TWICE, TWICE])),
        holds("3 nodes, 2 requesters", 0, three.visits(&[VISIT, VISIT])),
        holds("3 nodes, 3 requesters", 0, three.visits(&[VISIT, VISIT, VISIT])),
        holds(
            "2 nodes, loss and duplicate",
            0,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..calm
                },
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "2 nodes, loss, OKs refreshed",
            0,
            Setup {
                bounds: Bounds { drops: 1, ..calm },
                refresh: true,
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "2 nodes, cancel and loss",
            0,
            Setup {
                bounds: Bounds { drops: 1, ..calm },
                // Who is inside when it wants to give up stays there.
                progress: false,
                ..two.visits(&[GIVE_UP, VISIT])
            },
        ),
        holds(
            "2 nodes, permissions kept, loss and duplicate",
            0,
            Setup {
                bounds: Bounds {
                    drops: 1,
                    duplicates: 1,
                    ..calm
                },
                keep: true,
                slack: 2,
                ..two.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "3 nodes that do not know each other, permissions kept",
            0,
            Setup {
                keep: true,
                slack: 1,
                lists: &[&[3], &[3], &[]],
                ..three.visits(&[TWICE, VISIT])
            },
        ),
        holds(
            "crash of a requester, who is confirmed dead",
            0,
            Setup {
                bounds: Bounds {
                    crashes: 1,
                    ..calm
                },
                ends: &[1],
                ..three.visits(&[VISIT, VISIT])
            },
        ),
        holds(
            "crash and comeback with memory lost",
            0,
            Setup {
                upper: 3,
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ..calm
                },
                ends: &[1, 2],
                ..three.visits(&[VISIT, VISIT])
            },
        ),
    ]
}
