//! The promises as properties, and the scenarios that check them.
//!
//! One list, [`scenarios`], is run by this crate's tests, by `selvedge check`, and by crates
//! that compose membership with other machines. Each scenario explores every order of messages,
//! ticks, losses, crashes and restarts within its bounds, and every draw of a target or relay.
//!
//! The settings are the tightest that keep the number of states finite ([`tight`]): no jitter, one
//! relay or none, a suspicion of two periods, news that is sent a few times. Ages and health are
//! off, because they count and decide nothing here; feedback only changes the probability of a
//! choice, and here every choice is made. Timeouts are longer than any delivery, except for a
//! bounded number of early ticks: each of these makes a false suspicion, or a second question,
//! possible.

pub mod operations;
mod promises;
mod settings;
mod witness;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_sim::check::{Bounds, Scenario};

use crate::{Command, Published};
pub use promises::{
    Checked, forward, lists_become_the_truth, never_stuck, promised, removable, timed, used_once,
};
pub use settings::{Start, mesh, tight};
pub use witness::Witness;

/// Timeouts are longer than any delivery.
const CALM: Bounds = Bounds {
    drops: 0,
    duplicates: 0,
    crashes: 0,
    restarts: 0,
    deltas: None,
    ticks: None,
    early_ticks: Some(0),
};

/// All scenarios: first our rules, which must hold, then the published rules, which must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = failures();
    all.extend(lives_and_joins());
    all.extend(hearsay());
    all.extend(deep());
    all.extend(published());
    all
}

/// Crashes, losses and false suspicions among three nodes that know each other.
fn failures() -> Vec<Scenario> {
    let crash = Bounds { crashes: 1, ..CALM };
    vec![
        holds("crash", 1_944, Start::meshed(3, crash)),
        holds(
            "crash and loss",
            70_439,
            Start::meshed(3, Bounds { drops: 1, ..crash }),
        ),
        holds("crash and loss, a relay, suspicions told late", 21_746, {
            let mut start = Start::meshed(3, Bounds { drops: 1, ..crash });
            start.config.relays = 1;
            start.config.publish_after = 2;
            start
        }),
        holds("crash, loss and duplicate, suspicions told late", 77_421, {
            let bounds = Bounds {
                drops: 1,
                duplicates: 1,
                ..crash
            };
            let mut start = Start::meshed(3, bounds);
            start.config.publish_after = 2;
            start
        }),
        holds(
            "crash and false suspicion",
            89_789,
            Start::meshed(
                3,
                Bounds {
                    early_ticks: Some(1),
                    ..crash
                },
            ),
        ),
        holds("crash, loss and comparison of lists", 32_030, {
            let mut start = Start::meshed(3, Bounds { drops: 1, ..crash });
            start.config.publish_after = 2;
            start.config.sync_after = 1;
            start
        }),
        holds("crash and loss, needless probes left out", 92_299, {
            let mut start = Start::meshed(3, Bounds { drops: 1, ..crash });
            start.config.publish_after = 2;
            start.config.suppress_probes = true;
            start
        }),
        holds("crash and comeback, needless probes left out", 6_181, {
            let bounds = Bounds {
                drops: 1,
                restarts: 1,
                ..crash
            };
            let mut start = Start {
                comeback: 0,
                ..Start::meshed(2, bounds)
            };
            start.config.suppress_probes = true;
            start
        }),
    ]
}

/// Joining, leaving and coming back, with and without memory.
fn lives_and_joins() -> Vec<Scenario> {
    let back = Bounds {
        drops: 1,
        crashes: 1,
        restarts: 1,
        ..CALM
    };
    let with_comeback = |comeback| Start {
        comeback,
        meshed: 1,
        ..Start::meshed(2, back)
    };
    let left = Command::Leave;
    let again = Command::Join {
        seeds: vec![NodeId(0)],
    };
    vec![
        holds(
            "join, crash and comeback with memory",
            6_748,
            with_comeback(1),
        ),
        holds(
            "join, crash and comeback under the same number",
            8_257,
            with_comeback(0),
        ),
        holds(
            "join, crash and comeback under a lower number",
            8_075,
            with_comeback(-1),
        ),
        unnoticed("crash and comeback unnoticed", 278, {
            Start::unnoticed(Bounds { drops: 0, ..back })
        }),
        unnoticed(
            "crash, loss and comeback unnoticed, comparison of lists",
            27_719,
            {
                let mut start = Start::unnoticed(back);
                start.config.sync_after = 1;
                start
            },
        ),
        holds(
            "two nodes that are each other's seeds",
            496,
            Start {
                meshed: 0,
                ..Start::meshed(2, Bounds { drops: 1, ..CALM })
            },
        ),
        commanded(
            "leave and loss",
            89_268,
            Start::meshed(3, Bounds { drops: 1, ..CALM }),
            vec![left.clone()],
        ),
        commanded(
            "leave, come back and loss",
            1_007,
            Start::meshed(2, Bounds { drops: 1, ..CALM }),
            vec![left, again],
        ),
    ]
}

/// Members that believe each other within bounds.
fn hearsay() -> Vec<Scenario> {
    let bounded = |mut start: Start| {
        start.config.hearsay_limit = 1;
        start
    };
    let back = Bounds {
        crashes: 1,
        restarts: 1,
        ..CALM
    };
    vec![
        holds(
            "crash and loss, hearsay within bounds",
            96_029,
            bounded(Start::meshed(
                3,
                Bounds {
                    drops: 1,
                    crashes: 1,
                    ..CALM
                },
            )),
        ),
        commanded(
            "leave, hearsay within bounds",
            1_309,
            bounded(Start::meshed(3, CALM)),
            vec![Command::Leave],
        ),
        holds(
            "3 nodes, crash and comeback with memory, hearsay within bounds",
            109_950,
            bounded(Start::meshed(3, back)),
        ),
        holds(
            "3 nodes, crash and comeback under the same number, hearsay within bounds",
            158_517,
            bounded(Start {
                comeback: 0,
                ..Start::meshed(3, back)
            }),
        )
        .deep(),
    ]
}

/// Larger scenarios, for `--deep`.
fn deep() -> Vec<Scenario> {
    let back = Bounds {
        crashes: 1,
        restarts: 1,
        ..CALM
    };
    vec![
        holds(
            "3 nodes, crash and comeback with memory",
            57_771,
            Start::meshed(3, back),
        )
        .deep(),
        holds(
            "3 nodes, crash and comeback under the same number",
            89_076,
            {
                Start {
                    comeback: 0,
                    ..Start::meshed(3, back)
                }
            },
        )
        .deep(),
        holds("2 nodes, everything at once", 636_624, {
            let bounds = Bounds {
                drops: 1,
                duplicates: 1,
                early_ticks: Some(1),
                ..back
            };
            let mut start = Start {
                comeback: 0,
                ..Start::meshed(2, bounds)
            };
            start.config.publish_after = 2;
            start.config.sync_after = 1;
            start
        })
        .deep(),
        holds(
            "4 nodes, crash",
            243_388,
            Start::meshed(4, Bounds { crashes: 1, ..CALM }),
        )
        .deep(),
        holds("4 nodes, crash, suspicions told late", 627_276, {
            let mut start = Start::meshed(4, Bounds { crashes: 1, ..CALM });
            start.config.publish_after = 2;
            start
        })
        .deep(),
        holds("4 nodes, loss, suspicions told late", 180_415, {
            let mut start = Start::meshed(4, Bounds { drops: 1, ..CALM });
            start.config.publish_after = 2;
            start
        })
        .deep(),
    ]
}

/// Each published rule with the one promise that it breaks, and the number of steps; and our rule
/// in its place, which keeps that promise, with the number of states.
fn published() -> Vec<Scenario> {
    let suspicion = Bounds {
        early_ticks: Some(1),
        ..CALM
    };
    let crash = Bounds {
        drops: 1,
        crashes: 1,
        ..CALM
    };
    let back = Bounds {
        crashes: 1,
        restarts: 1,
        ..CALM
    };
    let anew = Start {
        comeback: 0,
        ..Start::meshed(2, back)
    };
    let pairs = [
        Erratum {
            name: "a declared failure is final",
            rule: Published::FailureIsFinal,
            start: Start::meshed(3, suspicion),
            promise: never_stuck,
            steps: 9,
            states: 21_674,
        },
        Erratum {
            name: "a suspicion learned from others has no timer",
            rule: Published::NoTimerForNews,
            start: Start::meshed(3, crash),
            promise: removable,
            steps: 8,
            states: 70_439,
        },
        Erratum {
            name: "the timer of a refuted suspicion still acts",
            rule: Published::RefutedTimerActs,
            start: Start::meshed(3, suspicion),
            promise: timed,
            steps: 4,
            states: 21_674,
        },
        Erratum {
            name: "a member ignores old claims about itself",
            rule: Published::OldClaimIsIgnored,
            start: Start::meshed(3, suspicion),
            promise: never_stuck,
            steps: 12,
            states: 21_674,
        },
        Erratum {
            name: "a node that asks is let in under its number",
            rule: Published::FormerLifeIsWelcome,
            start: anew,
            promise: used_once,
            steps: 4,
            states: 770,
        },
    ];
    pairs.into_iter().flat_map(Erratum::scenarios).collect()
}

/// A rule that breaks a promise, and the number of steps that it takes.
struct Erratum {
    name: &'static str,
    rule: Published,
    start: Start,
    promise: fn(Checked) -> Checked,
    steps: usize,
    states: usize,
}

impl Erratum {
    fn scenarios(self) -> [Scenario; 2] {
        let Self {
            name,
            rule,
            start,
            promise,
            steps,
            states,
        } = self;
        let theirs = Start {
            rule: Some(rule),
            ..start.clone()
        };
        [
            Scenario::breaks(full(name), steps, move || promise(mesh(&theirs))),
            Scenario::holds(full(name), states, move || promise(mesh(&start))),
        ]
    }
}

fn holds(name: &str, states: usize, start: Start) -> Scenario {
    Scenario::holds(full(name), states, move || promised(mesh(&start)))
}

/// A scenario as in [`holds`], without the promise that no life is used twice, which depends on a number that the
/// node never had.
fn unnoticed(name: &str, states: usize, start: Start) -> Scenario {
    Scenario::holds(full(name), states, move || {
        lists_become_the_truth(never_stuck(removable(forward(timed(mesh(&start))))))
    })
}

/// A scenario as in [`holds`], with commands for the second node.
fn commanded(name: &str, states: usize, start: Start, commands: Vec<Command>) -> Scenario {
    Scenario::holds(full(name), states, move || {
        promised(mesh(&start).commands(1, commands.clone()))
    })
}

/// The name, as it stands in a list with scenarios of other crates.
fn full(name: &str) -> String {
    format!("membership/{name}")
}
