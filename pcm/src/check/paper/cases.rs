//! Scenarios in which a rule of the paper breaks a promise, and the rule that replaces it keeps it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::Delta;
use selvedge_sim::check::{Bounds, Erratum, Expected, Model, Scenario, State, Trial, holds};

use super::dispatcher::{Ask, Dispatcher, Timer, member};
use super::rules::Published;
use super::tables::Label;
#[cfg(doc)]
use super::tables::Shared;
use super::watch::Watch;

type Mesh = State<Dispatcher, Watch>;

/// The properties of Figure 2 that gateways must keep, in a form that can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// "At most one RM can be elected in a given era."
    ElectionSafety,
    /// "If two tables contain an entry with the same index and era, then the tables are identical in all
    /// entries": two tables with one label, from any gateway and at any time.
    TableMatching,
    /// "If a new node or task is committed in a given era, then that entry will be present [..] for all
    /// higher-numbered eras and table indexes": a table has every version that was committed under an
    /// earlier label.
    Completeness,
    /// "If [..] not up to date, refuse the package" (Figure 3, step 1).
    Forwards,
    /// "Eras will be numbered with a consecutive integer, and they will end with an election" (section
    /// 4.1).
    Consecutive,
}

/// Gateways 1 to n of the paper, of which 1 manages, and the faults of a scenario.
#[derive(Clone, Copy, Debug)]
struct Paper {
    gateways: u64,
    /// The gateways that a gateway, by id, has discovered. A gateway that is not listed knows all.
    known: &'static [(u64, &'static [u64])],
    /// The table of all gateways at first; see [`Shared::table`].
    table: [u8; 2],
    asks: &'static [(u64, &'static [Ask])],
    /// The gateways, by id, at which timers expire.
    ticks_at: &'static [u64],
    /// Pairs of gateways, by id: the first may take the second for failed.
    misses: &'static [(u64, u64)],
    /// The gateways, by id, that may crash.
    crashes_at: &'static [u64],
    bounds: Bounds,
    rules: &'static [Published],
    promises: &'static [Promise],
    /// True if in some run another gateway must manage.
    changes: bool,
}

const ALL: &[Promise] = &[
    Promise::ElectionSafety,
    Promise::TableMatching,
    Promise::Completeness,
    Promise::Forwards,
    Promise::Consecutive,
];

const THREE: Paper = Paper {
    gateways: 3,
    known: &[],
    table: [0; 2],
    asks: &[],
    ticks_at: &[2, 3],
    misses: &[],
    crashes_at: &[],
    bounds: Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: Some(2),
        early_ticks: None,
    },
    rules: &[],
    promises: ALL,
    changes: true,
};

impl Paper {
    fn model(self) -> Model<Dispatcher, Watch> {
        let every: Vec<u64> = (1..=self.gateways).collect();
        let dispatchers = every.iter().map(|&me| {
            let known = self.known.iter().find(|it| it.0 == me);
            let known = known.map_or(every.as_slice(), |it| it.1);
            Dispatcher::new(me, self.gateways, known, self.table, self.rules)
        });
        let id = |it: &Dispatcher| member(it.me);
        let mut model = Model::observed(dispatchers.collect(), id, Watch::of(&self.table))
            .bounds(self.bounds)
            .start(|_, _, it, cx| {
                it.begin(cx);
                Ok(())
            })
            .restart(|_, _, remains| remains.again())
            .crash_when(move |_, node| self.crashes_at.contains(&(node as u64 + 1)))
            .tick_when(move |_, node, _: Timer| self.ticks_at.contains(&(node as u64 + 1)));
        for &(at, asks) in self.asks {
            model = model.commands(place(at), asks);
        }
        for at in every {
            let missed = self.misses.iter().filter(|it| it.0 == at);
            let missed: Vec<Delta> = missed.map(|it| Delta::Failed(member(it.1))).collect();
            model = model.deltas(place(at), missed);
        }
        for &promise in self.promises {
            model = promised(model, promise);
        }
        if self.changes {
            model = model.sometimes("another gateway manages", |mesh: &Mesh| {
                mesh.observer().managed.values().any(|it| *it != 0)
            });
        }
        let changes = |it: &(u64, &[Ask])| it.1.iter().any(|it| matches!(it, Ask::Change(_)));
        if self.changes && self.asks.iter().any(changes) {
            let first = Label { era: 1, index: 0 };
            model = model.sometimes("what is asked is committed", move |mesh: &Mesh| {
                mesh.observer().committed.values().any(|it| it.1 > first)
            });
        }
        model
    }
}

impl Trial for Paper {
    const PROTOCOL: &'static str = "pcm";

    type Rule = Published;
    type Promise = &'static [Promise];

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], promises: &'static [Promise]) -> Self {
        Self {
            rules,
            promises,
            changes: false,
            ..self
        }
    }
}

fn place(id: u64) -> usize {
    usize::try_from(id.saturating_sub(1)).unwrap_or_default()
}

fn promised(model: Model<Dispatcher, Watch>, promise: Promise) -> Model<Dispatcher, Watch> {
    let (name, holds): (_, fn(&Watch) -> bool) = match promise {
        Promise::ElectionSafety => ("one gateway manages an era (election safety)", |it| {
            !it.two_manage
        }),
        Promise::TableMatching => ("tables with one label are one (table matching)", |it| {
            !it.differs
        }),
        Promise::Completeness => (
            "a table has what was committed before it (resource manager completeness)",
            Watch::is_complete,
        ),
        Promise::Forwards => ("no table gives way to an earlier one", |it| !it.went_back),
        Promise::Consecutive => ("eras are numbered one after another", |it| !it.is_skipped),
    };
    model.always(name, move |mesh: &Mesh| holds(mesh.observer()))
}

type Case = Erratum<Paper>;

/// Each rule of the paper, and the rule that replaces it, in one scenario each.
pub(in super::super) fn pairs() -> Vec<Scenario> {
    let all = elections().into_iter().chain(bases()).chain(tables());
    all.flat_map(Case::pair).collect()
}

/// Larger scenarios of the rules that hold.
pub(in super::super) fn deep() -> Vec<Scenario> {
    let crash = Bounds {
        crashes: 1,
        restarts: 1,
        ..THREE.bounds
    };
    let again = Paper {
        crashes_at: &[1, 2],
        bounds: crash,
        ..THREE
    };
    let changes = Paper {
        asks: &[(1, &[Ask::Change(0)])],
        ..THREE
    };
    let rebases = Paper {
        gateways: 4,
        asks: &[(2, &[Ask::Rebase(1)])],
        known: &[(2, &[1, 2, 4]), (3, &[3, 4])],
        ..THREE
    };
    let all = [
        ("eras: two gateways stand, one begins again", 317_893, again),
        (
            "eras: two gateways stand, a table changes",
            1_520_678,
            changes,
        ),
        (
            "eras: two gateways stand, the base changes",
            1_828_329,
            rebases,
        ),
    ];
    all.map(|(name, states, setup)| holds(name, states, setup))
        .into()
}

/// Erratum Q1, and erratum Q9 about eras.
fn elections() -> Vec<Case> {
    vec![
        Case {
            name: "Q1: two gateways miss each other (the majority of those available)",
            setup: Paper {
                gateways: 2,
                ticks_at: &[1, 2],
                misses: &[(1, 2), (2, 1)],
                crashes_at: &[1],
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ticks: Some(3),
                    ..THREE.bounds
                },
                ..THREE
            },
            states: 18_234,
            rules: &[Published::MajorityOfAvailable],
            promise: &[Promise::ElectionSafety],
            steps: 5,
        },
        Case {
            name: "Q1: a gateway has discovered no other (each its own list)",
            setup: Paper {
                known: &[(2, &[1, 2]), (3, &[3])],
                ..THREE
            },
            states: 28,
            rules: &[Published::OwnList],
            promise: &[Promise::ElectionSafety],
            steps: 4,
        },
        Case {
            name: "Q1: a gateway that voted begins again (volatile era and vote)",
            setup: Paper {
                known: &[(2, &[1, 2]), (3, &[1, 3])],
                crashes_at: &[1],
                bounds: Bounds {
                    crashes: 1,
                    restarts: 1,
                    ..THREE.bounds
                },
                ..THREE
            },
            states: 228,
            rules: &[Published::VolatileVote],
            promise: &[Promise::ElectionSafety],
            steps: 8,
        },
        Case {
            name: "Q1: a manager has a better one follow it (succession without votes)",
            setup: Paper {
                asks: &[(1, &[Ask::HandOver(2)])],
                ticks_at: &[3],
                bounds: ONE_TICK,
                ..THREE
            },
            states: 13_698,
            rules: &[Published::NamedSuccessor],
            promise: &[Promise::ElectionSafety],
            steps: 5,
        },
        Case {
            name: "Q9: a manager is silent (an era that is raised twice)",
            setup: THREE,
            states: 35_288,
            rules: &[Published::RaisesTwice],
            promise: &[Promise::Consecutive],
            steps: 1,
        },
    ]
}

/// Erratum Q2.
fn bases() -> Vec<Case> {
    vec![
        Case {
            name: "Q2: a gateway is missed (a base that counts at once)",
            setup: Paper {
                asks: &[(1, &[Ask::Rebase(3), Ask::Change(0)])],
                known: &[(1, &[1, 2]), (2, &[2, 3])],
                ticks_at: &[2],
                bounds: ONE_TICK,
                ..THREE
            },
            states: 10_512,
            rules: &[Published::BaseAtOnce],
            promise: &[Promise::Completeness],
            steps: 5,
        },
        // Manager 2 does not know 3, and 3 neither 1 nor 2: messages between them are lost.
        Case {
            name: "Q2: another candidate of the era (a base that leaves the vote)",
            setup: Paper {
                gateways: 4,
                asks: &[(2, &[Ask::Rebase(1)])],
                known: &[(2, &[1, 2, 4]), (3, &[3, 4]), (4, &[4])],
                ..THREE
            },
            states: 10_980,
            rules: &[Published::VoteAfterBase],
            promise: &[Promise::ElectionSafety],
            steps: 12,
        },
    ]
}

/// Erratum Q3.
fn tables() -> Vec<Case> {
    const CHANGE: Paper = Paper {
        asks: &[(1, &[Ask::Change(0)])],
        bounds: ONE_TICK,
        ..THREE
    };
    vec![
        Case {
            name: "Q3: two candidates, two tables (candidates label them)",
            setup: Paper {
                known: &[(2, &[1, 2]), (3, &[1, 3])],
                bounds: THREE.bounds,
                ..CHANGE
            },
            states: 1_227,
            rules: &[Published::CandidateLabels],
            promise: &[Promise::TableMatching],
            steps: 4,
        },
        Case {
            name: "Q3: a candidate missed what is committed (votes without a table)",
            setup: Paper {
                known: &[(3, &[2, 3])],
                ticks_at: &[3],
                ..CHANGE
            },
            states: 1_569,
            rules: &[Published::SilentVotes],
            promise: &[Promise::Completeness],
            steps: 6,
        },
        Case {
            name: "Q3: a former manager's table comes late (era or index greater)",
            setup: Paper {
                known: &[(2, &[2, 3])],
                ticks_at: &[2],
                ..CHANGE
            },
            states: 1_569,
            rules: &[Published::EitherGreater],
            promise: &[Promise::Forwards],
            steps: 5,
        },
        Case {
            name: "Q3: an entry changes that another follows (a conflict truncates)",
            setup: Paper {
                table: [1, 1],
                asks: &[(2, &[Ask::Change(0)])],
                ticks_at: &[3],
                ..CHANGE
            },
            states: 2_849,
            rules: &[Published::Truncates],
            promise: &[Promise::Completeness],
            steps: 2,
        },
        Case {
            name: "Q3: a follower was purged (merges append)",
            setup: Paper {
                table: [1, 0],
                known: &[(1, &[1, 2]), (2, &[2, 3]), (3, &[2, 3])],
                bounds: Bounds {
                    ticks: Some(3),
                    ..THREE.bounds
                },
                ..CHANGE
            },
            states: 27_778,
            rules: &[Published::AppendingMerge],
            promise: &[Promise::Completeness],
            steps: 9,
        },
    ]
}

const ONE_TICK: Bounds = Bounds {
    ticks: Some(1),
    ..THREE.bounds
};
