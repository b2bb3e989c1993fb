//! The promises of groups as properties, and the scenarios that check them.
//!
//! Four nodes, of which three hold one group, as real replicas: nothing is idealised. The past of a
//! scenario is played in one order; from there each order of messages, ticks, commands, deltas,
//! losses and crashes within the bounds is explored. Timeouts are longer than any delivery.
//!
//! `selvedge-replica` checks that a group of replicas decides one history, for members that stay or
//! change once. Here nodes come back into a group that they left, and had voted in.

mod one;
mod past;
mod property;
mod setup;
mod site;
mod sound;
mod watch;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_replica::State;
use selvedge_sim::check::Scenario;
use serde::{Deserialize, Serialize};

use setup::{Kind, Setup};

use crate::GroupId;
use crate::{Begins, Groups, Published};

/// The scenarios: first those with this crate's rules, which must hold, then those that must break.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let mut all = sound::quick();
    all.extend(site::quick());
    let deep = sound::deep().into_iter().chain(site::deep());
    all.extend(deep.map(Scenario::deep));
    all.extend(sound::pairs());
    all.extend(site::pairs());
    all
}

/// A scenario under this crate's rules.
fn holds<K: Kind>(name: &str, states: usize, setup: Setup<K>) -> Scenario {
    Scenario::holds(full(name), states, move || setup.model())
}

/// A scenario under rules that break a promise after this number of steps.
fn breaks<K: Kind>(
    name: &str,
    steps: usize,
    setup: Setup<K>,
    rules: &'static [Published],
) -> Scenario {
    let setup = Setup {
        rules,
        safety_only: true,
        ..setup
    };
    Scenario::breaks(full(name), steps, move || setup.model())
}

/// The name in a list with scenarios of other crates.
fn full(name: &str) -> String {
    format!("groups/{name}")
}

/// A node of a scenario.
pub type Inner = Groups<Journal, u8>;

/// A state that keeps each update: each loss, copy or change of order shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal(pub Vec<u8>);

impl State for Journal {
    type Update = u8;
    /// The number of updates.
    type Outcome = usize;

    fn apply(&mut self, update: &u8) -> usize {
        self.0.push(*update);
        self.0.len()
    }
}

/// There is one group.
impl Begins for Journal {
    type Site = GroupId;

    fn groups(site: &GroupId) -> Vec<GroupId> {
        [*site].into()
    }

    fn begin(site: &GroupId, group: GroupId) -> Option<Self> {
        (group == *site).then(Self::default)
    }
}
