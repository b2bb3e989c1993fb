//! The promises of a cluster as properties, and the scenarios that check them.
//!
//! A group is an ideal register here: it decides on one proposal after another, and its leader
//! learns of that later. The leader may be replaced at any moment; the one before it may go on to
//! receive requests, to answer from its old state and to propose. The network reorders, and loses
//! and doubles within bounds. Routines are scripts with leaders that do not fail. Where the paper's
//! rule breaks a promise, the scenario comes twice under one name.
//!
//! Timeouts are longer than any delivery and any decision.

mod cluster;
mod edits;
mod errata;
mod party;
mod script;
mod sound;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_sim::check::{Bounds, Expected, Model, Scenario, State, Trial};

use self::cluster::{Cluster, Ways};
use self::party::Role;
pub use self::party::{Ask, Party, Payload, Tick};
pub use self::script::Until;
use self::script::{Play, Script, Stage};
use super::{Devices, Limits, Published, Timer};
use crate::Patience;

const CLUSTER: Member = Member::new(0, 0);

/// Time is not modelled.
const SOON: Span = Span::millis(1);

type Mesh = State<Party>;

/// A cluster of devices 1 to n, routines, and the faults.
#[derive(Clone, Copy, Debug)]
struct Setup {
    devices: u64,
    /// Node 1 is the first.
    routines: &'static [Play],
    /// The number of times that each is triggered.
    runs: &'static [usize],
    /// The events at the cluster, in order.
    befalls: &'static [Fate],
    /// True if time passes between a proposal, the decision, and the moment when the leader learns
    /// of it.
    lags: bool,
    /// True if two nodes lead in turn.
    returns: bool,
    /// The generations of the site; none where it does not change.
    sites: &'static [Edition],
    bounds: Bounds,
    rules: &'static [Published],
    promises: &'static [Promise],
    sees: &'static [Sight],
}

/// An event at the cluster, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Another leader takes over.
    TakeOver,
    /// Another leader takes over, whose site has this generation.
    Lead(u32),
    /// Device 1 reports this.
    Report(i32),
}

/// A generation of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Edition {
    devices: &'static [u64],
    routines: &'static [u64],
}

/// A promise, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    /// Theorem 3.
    Exclusion,
    /// The condition on which theorem 3 rests: a routine that executes holds its devices in the
    /// decided state.
    Held,
    /// Theorem 5, for one cluster.
    Progress,
    /// A routine that watches sees the latest status at last.
    Seen,
    /// A command that may be given once is given once, and none that has ended.
    Once,
    /// A command is given for a claim that holds the device, and no host has one while another
    /// claim does.
    ActsForHolder,
    /// A group that has followed the last site goes on to, whichever leaders come.
    Follows,
    /// The group follows the last site in the end; its devices are free, and its routines have run.
    Arrives,
}

/// An event that must happen in some run, so that a scenario in which nothing happens does not
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// A routine executes.
    Executes,
    /// The group has followed the last site, after an older leader led again.
    Follows,
    /// A claim waits.
    Waits,
    /// A routine tries a second time, and executes.
    ExecutesAgain,
    /// A command was given under another leader.
    Orders,
    /// A routine has seen the status of this version.
    Seen(u64),
}

const PATIENT: Play = Play {
    devices: &[1],
    patience: Patience::Queues,
    attempts: 1,
    acts: None,
    hurries: false,
    watches: false,
    since: 0,
    until: None,
};

const HASTY: Play = Play {
    patience: Patience::Leaves,
    attempts: 2,
    ..PATIENT
};

const WATCHER: Play = Play {
    watches: true,
    ..PATIENT
};

const LOCKS: Setup = Setup {
    devices: 1,
    routines: &[PATIENT],
    runs: &[1],
    befalls: &[],
    lags: true,
    returns: false,
    sites: &[],
    bounds: Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: None,
        early_ticks: None,
    },
    rules: &[],
    promises: &[Promise::Exclusion, Promise::Held, Promise::Progress],
    sees: &[Sight::Executes],
};

/// All scenarios: first the rules of this crate, which must hold, then published rules, which must
/// break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(sound::deep().into_iter().map(Scenario::deep));
    all.extend(errata::pairs());
    all.extend(edits::quick());
    all.extend(edits::deep().into_iter().map(Scenario::deep));
    all.extend(edits::pairs());
    all
}

const fn faults(drops: u32, duplicates: u32) -> Bounds {
    Bounds {
        drops,
        duplicates,
        ..LOCKS.bounds
    }
}

impl Trial for Setup {
    const PROTOCOL: &'static str = "kgroup";

    type Rule = Published;
    type Promise = &'static [Promise];

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], promises: &'static [Promise]) -> Self {
        Self {
            rules,
            promises,
            sees: &[],
            ..self
        }
    }
}

impl Setup {
    fn model(self) -> Model<Party> {
        let first = (1..=self.devices).map(NodeId);
        let state = Devices::new(first, Limits::new());
        let ways = Ways {
            lags: self.lags,
            returns: self.returns,
        };
        let cluster = Cluster::new(state.published(self.rules), ways, self.sites);
        let scripts = (1..)
            .zip(self.routines)
            .map(|(id, &play)| Party::new(id, Role::Routine(Script::new(id, play, self.rules))));
        let cluster = Party::new(0, Role::Cluster(Box::new(cluster)));
        let parties = [cluster].into_iter().chain(scripts).collect();
        let ask = |it: &Fate| match *it {
            Fate::TakeOver => Ask::TakeOver,
            Fate::Lead(generation) => Ask::Lead(generation),
            Fate::Report(value) => Ask::Report(NodeId(1), value.into()),
        };
        let asks: Vec<Ask> = self.befalls.iter().map(ask).collect();
        let mut model = Model::new(parties, Party::me)
            .bounds(self.bounds)
            .start(|_, _, party, cx| {
                if let Role::Cluster(it) = &mut party.role {
                    it.begin(cx);
                }
                Ok(())
            })
            .commands(0, asks)
            .show(Party::show)
            .tick_when(may_tick);
        if self.rules.is_empty() {
            model = model.never_rejects("no message is refused");
        }
        for (at, &runs) in self.runs.iter().enumerate() {
            let until = self.routines.get(at).and_then(|it| it.until);
            let asks = vec![Ask::Run; runs].into_iter().chain(until.map(Ask::Site));
            model = model.commands(at + 1, asks.collect::<Vec<_>>());
        }
        for &promise in self.promises {
            model = self.promise(model, promise);
        }
        for &sight in self.sees {
            let name = match sight {
                Sight::Executes => "a routine executes",
                Sight::Waits => "a claim waits",
                Sight::Follows => "the group follows the last site",
                Sight::ExecutesAgain => "a routine executes at its second try",
                Sight::Orders => "a command is given under another leader",
                Sight::Seen(_) => "the last status is seen",
            };
            model = model.sometimes(name, move |mesh: &Mesh| is_seen(mesh, sight));
        }
        model
    }

    fn promise(self, model: Model<Party>, promise: Promise) -> Model<Party> {
        let devices = move || (1..=self.devices).map(NodeId);
        match promise {
            Promise::Exclusion => model.always(
                "no two routines execute with one device (theorem 3)",
                move |mesh: &Mesh| {
                    let users = |device| scripts(mesh).filter(move |it| it.executes_with(device));
                    devices().all(|it| users(it).count() <= 1)
                },
            ),
            Promise::Held => model.always(
                "a routine that executes holds its devices (lemma of theorem 3)",
                move |mesh: &Mesh| {
                    let Some(state) = cluster(mesh).map(Cluster::state) else {
                        return false;
                    };
                    let holds =
                        |it: &Script| it.devices().all(|at| state.holder(at) == Some(it.claim));
                    scripts(mesh)
                        .filter(|it| it.stage == Stage::Executes)
                        .all(holds)
                },
            ),
            Promise::Progress => model.progress(
                "all runs end, and all devices are free (theorem 5)",
                move |mesh: &Mesh| is_over(mesh, self) && !mesh.is_busy(),
            ),
            Promise::Seen => model.progress(
                "a routine that watches sees the latest status",
                |mesh: &Mesh| {
                    let latest = cluster(mesh).map(Cluster::state);
                    let latest = latest.and_then(|it| Some(it.status(NodeId(1))?.version));
                    let mut watchers = scripts(mesh).filter(|it| it.watches());
                    watchers.all(|it| it.seen == latest)
                },
            ),
            Promise::Once => model.always(
                "a command that may be given once is, and none that has ended",
                |mesh: &Mesh| {
                    let is_once = |it: &Cluster| it.given_once.is_sorted_by(|one, next| one < next);
                    cluster(mesh).is_some_and(|it| is_once(it) && !it.gives_ended)
                },
            ),
            Promise::ActsForHolder => model.always(
                "a device acts for the claim that has it, and for none while another one does",
                |mesh: &Mesh| {
                    let Some(cluster) = cluster(mesh) else {
                        return true;
                    };
                    let state = cluster.state();
                    if cluster.gives_for_none {
                        return false;
                    }
                    let is_for_holder = |device| {
                        let (holder, act) = (state.holder(device), state.act(device));
                        holder.is_none() || act.is_some_and(|it| holder == Some(it.claim))
                    };
                    let mut orders = cluster.orders.iter();
                    orders.all(|it| is_for_holder(it.ticket.device))
                },
            ),
            Promise::Follows => model.always(
                "a group that has followed a site does not go back behind it",
                |mesh: &Mesh| cluster(mesh).is_some_and(|it| !it.goes_back),
            ),
            Promise::Arrives => model.progress(
                "the group follows the last site, and all runs end",
                move |mesh: &Mesh| {
                    let follows = cluster(mesh).is_some_and(Cluster::follows_last);
                    follows && is_over(mesh, self) && !mesh.is_busy()
                },
            ),
        }
    }
}

fn scripts(mesh: &Mesh) -> impl Iterator<Item = &Script> {
    mesh.machines().filter_map(Party::script)
}

fn cluster(mesh: &Mesh) -> Option<&Cluster> {
    mesh.machines().find_map(Party::cluster)
}

fn is_over(mesh: &Mesh, setup: Setup) -> bool {
    let Some(state) = cluster(mesh).map(Cluster::state) else {
        return false;
    };
    let ran = |(at, runs): (usize, &usize)| {
        let until = setup.routines.get(at).and_then(|it| it.until.as_ref());
        let runs = &(*runs + until.into_iter().count());
        let issued = mesh.node(at + 1).map(|it| it.issued() as usize);
        issued == Some(*runs)
    };
    setup.runs.iter().enumerate().all(ran)
        && scripts(mesh).all(|it| it.stage == Stage::Idle)
        && state
            .ids()
            .all(|it| state.holder(it).is_none() && state.queue(it).next().is_none())
}

fn is_seen(mesh: &Mesh, sight: Sight) -> bool {
    match sight {
        Sight::Executes => scripts(mesh).any(|it| it.stage == Stage::Executes),
        Sight::ExecutesAgain => {
            scripts(mesh).any(|it| it.stage == Stage::Executes && it.claim.attempt == 2)
        }
        Sight::Follows => cluster(mesh).is_some_and(Cluster::follows_last),
        Sight::Waits => {
            let state = cluster(mesh).map(Cluster::state);
            state.is_some_and(|it| it.ids().any(|at| it.queue(at).next().is_some()))
        }
        Sight::Orders => cluster(mesh).is_some_and(|it| it.term > 0 && !it.orders.is_empty()),
        Sight::Seen(version) => scripts(mesh).any(|it| it.seen == Some(version)),
    }
}

/// The promises of clocks: only a lost request is repeated, and a command that a host has yet to
/// carry out is not overdue.
fn may_tick(mesh: &Mesh, _: usize, timer: Tick) -> bool {
    let cluster = cluster(mesh);
    let is_quiet = || !mesh.is_busy() && cluster.is_some_and(Cluster::is_settled);
    match timer {
        Tick::Decide | Tick::Learn | Tick::Device | Tick::Finish => true,
        // Pings are for the unit tests: here a leader compares its group with the site then.
        Tick::Leader(Timer::Ping) => is_quiet() && cluster.is_some_and(Cluster::lags_behind),
        Tick::Leader(Timer::Unanswered | Timer::Wake(_)) => false,
        Tick::Leader(Timer::Act(_)) => is_quiet() && cluster.is_some_and(|it| it.orders.is_empty()),
        Tick::Leader(Timer::Resend) | Tick::Resend => is_quiet(),
    }
}
