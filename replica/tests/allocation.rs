//! In steady state an update allocates nothing, at the leader as at the others, with any number of
//! members, where the update and the state allocate nothing themselves.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

extern crate alloc;

use alloc::collections::VecDeque;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Effect, Input, Member};
use selvedge_replica::{Command, Config, Configuration, Event, Message, Replica, State};
use serde::{Deserialize, Serialize};

use counting::{ByHand, Host, allocations};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Sum(u64);

impl State for Sum {
    type Update = u64;
    type Outcome = u64;

    fn apply(&mut self, add: &u64) -> u64 {
        self.0 = self.0.wrapping_add(*add);
        self.0
    }
}

/// A group of which the first member leads.
struct Group<H> {
    members: Vec<H>,
    rng: ChaCha8Rng,
    /// Receiver, sender and message; has room enough not to allocate itself.
    wire: VecDeque<(usize, Member, Message<u64>)>,
    applied: u64,
    facts: u64,
    /// The number of allocations in steps of the leader, and of the others.
    allocated: [u64; 2],
}

fn member(node: usize) -> Member {
    Member::new(node as u64, 0)
}

impl<H: Host<Replica<Sum>>> Group<H> {
    fn new(members: usize) -> Self {
        let first = Configuration::of((0..members).map(member));
        let make = |node| {
            Replica::new(member(node), Config::new(), first.clone(), Sum::default()).unwrap()
        };
        let mut group = Self {
            members: (0..members).map(|node| H::new(make(node))).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            wire: VecDeque::with_capacity(8_192),
            applied: 0,
            facts: 0,
            allocated: [0, 0],
        };
        group.step(0, Input::Command(Command::Campaign));
        group.carry();
        assert!(group.members[0].machine().leads());
        group
    }

    fn step(&mut self, at: usize, input: Input<Replica<Sum>>) {
        let Self {
            members,
            rng,
            wire,
            applied,
            facts,
            allocated,
        } = self;
        let me = member(at);
        allocated[usize::from(at > 0)] += allocations(|| {
            members[at].step(rng, input, &mut |effect| match effect {
                Effect::Send { to, message } => wire.push_back((to.id.0 as usize, me, message)),
                Effect::Event(Event::Applied { .. }) => *applied += 1,
                Effect::Event(Event::Fact(_)) => *facts += 1,
                Effect::Multicast { .. } | Effect::Event(_) => {}
            });
        });
    }

    fn carry(&mut self) {
        while let Some((to, from, message)) = self.wire.pop_front() {
            self.step(to, Input::Message { from, message });
        }
    }

    /// Proposes a number of updates, with a number in flight at once. Returns the number of
    /// allocations.
    fn updates(&mut self, count: u64, at_once: u64) -> [u64; 2] {
        self.allocated = [0, 0];
        for _ in 0..count / at_once {
            for add in 0..at_once {
                self.step(0, Input::Command(Command::Propose(add)));
            }
            self.carry();
        }
        self.allocated
    }
}

/// More entries than are kept for members that lack them: the window is full then.
const MANY: u64 = 640;

fn updates_allocate_nothing<H: Host<Replica<Sum>>>() {
    for members in [3, 5, 31] {
        for at_once in [1, 16] {
            let mut group = Group::<H>::new(members);
            group.updates(MANY, at_once);
            (group.applied, group.facts) = (0, 0);
            let allocated = group.updates(MANY, at_once);
            assert_eq!(
                allocated,
                [0, 0],
                "{members} members, {at_once} updates at once"
            );
            // Each update is applied and stored by all, the last ones a little later.
            assert_eq!(group.applied, MANY * members as u64);
            assert_eq!(group.facts, MANY * members as u64);
        }
    }
}

#[test]
fn an_update_allocates_nothing() {
    updates_allocate_nothing::<ByHand<Replica<Sum>>>();
}

#[test]
#[cfg(not(debug_assertions))]
fn the_driver_allocates_nothing_for_an_update() {
    updates_allocate_nothing::<selvedge_core::Driver<Replica<Sum>>>();
}
