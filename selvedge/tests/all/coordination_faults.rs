//! Random histories of a building whose nodes learn of each other by membership alone.
//!
//! One node at a time begins again without memory, or leaves; others are cut off, two at once as
//! well, and lose messages. The promises of k-groups for f = 1 hold then.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge::Command;
use selvedge_core::{Choose, Member, Ratio, Span};
use selvedge_groups::{
    GroupId, Start,
    store::{Expected, Operation, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup as kgroup;
use selvedge_kgroup::Site;
use selvedge_membership as membership;
use selvedge_sim::histories;
use selvedge_sim::histories::seeds;
use selvedge_sim::network::Link;

use crate::coordination::{Building, LAMPS, NODES, map};

const COUNT: usize = NODES as usize;
/// The longest time in which a group names the next life of a node, without faults.
const NAMED: Span = Span::secs(60);

struct Story {
    building: Building,
    rng: ChaCha8Rng,
    epoch: u64,
    tickets: u64,
    triggers: u64,
    /// The changes of the map that are requested and not answered.
    asked: BTreeSet<u64>,
    seen: usize,
    /// The ticket that each version answers.
    versions: BTreeMap<u64, u64>,
    executing: u64,
}

impl Story {
    fn new(seed: u64) -> Self {
        let mut building = Building::new(seed);
        building.run(Span::secs(20));
        Self {
            building,
            rng: ChaCha8Rng::seed_from_u64(seed),
            epoch: 1,
            tickets: 0,
            triggers: 0,
            asked: BTreeSet::new(),
            seen: 0,
            versions: BTreeMap::new(),
            executing: 0,
        }
    }

    fn pick(&mut self, below: usize) -> usize {
        self.rng.below(below as u64) as usize
    }

    /// A node that is up and has joined.
    fn listener(&mut self) -> Option<usize> {
        let at = self.pick(COUNT);
        let node = self.building.net.machine(at)?;
        (self.building.net.is_up(at) && node.kgroup().is_some()).then_some(at)
    }

    fn change(&mut self) -> Option<u64> {
        let at = self.listener()?;
        self.tickets += 1;
        let ticket = self.tickets;
        let expected = match self.pick(3) {
            0 => Expected::Any,
            1 => Expected::Absent,
            _ => Expected::Version(self.versions.keys().next_back().copied().unwrap_or(1)),
        };
        let value = Some(ticket.to_le_bytes().into_iter().collect());
        let key = "front";
        let operation = Operation::set(key, expected, value);
        let change = StoreCommand::Change { ticket, operation };
        self.building.ask_map(at, change);
        self.asked.insert(ticket);
        Some(ticket)
    }

    fn run(&mut self, span: Span) {
        self.building.run(span);
        let new = self.building.events[self.seen..].to_vec();
        self.seen = self.building.events.len();
        for (at, event) in new {
            if let kgroup::Event::Map {
                event: StoreEvent::Changed { ticket, stored },
                ..
            } = event
            {
                assert!(
                    self.asked.remove(&ticket),
                    "{at}: {ticket} is answered twice"
                );
                if let Stored::Done { version } = stored {
                    let other = self.versions.insert(version, ticket);
                    assert_eq!(
                        other, None,
                        "version {version} is two changes, {ticket} too"
                    );
                }
            }
        }
        let states = (0..COUNT).filter_map(|at| {
            let node = self.building.net.machine(at)?.kgroup()?;
            match node.held(Site::routine(0))? {
                kgroup::GroupState::Routine(state) => Some(state.instance()),
                _ => None,
            }
        });
        self.executing = self.executing.max(states.max().unwrap_or_default());
        assert!(self.executing <= self.triggers, "a trigger began two runs");
    }

    /// Makes one node lose its memory; it is named again before the next one does.
    fn forget(&mut self) {
        let at = self.pick(COUNT);
        if self.pick(3) == 0 {
            let leave = Command::Membership(membership::Command::Leave);
            self.building.net.command(at, leave).unwrap();
            let away = Span::secs(10) + self.span(30); // To leave takes a while.
            self.run(away);
            self.building.join(at);
        } else {
            let member = self.building.net.member(at).unwrap();
            self.building.net.crash(at).unwrap();
            let away = self.span(40);
            self.run(away);
            let next = Member::new(member.id.0, member.incarnation.0 + 1);
            let node = crate::coordination::node_of(next, Start::Restarted);
            self.building.net.restart(at, next, node).unwrap();
            let epoch = self.epoch;
            self.building.ask(at, kgroup::Command::SetEpoch(epoch));
            self.building.join(at);
        }
        self.run(NAMED);
    }

    fn span(&mut self, most: u64) -> Span {
        Span::millis(self.rng.below(1_000 * most))
    }

    fn next_epoch(&mut self) {
        self.epoch += 1;
        for at in 0..COUNT {
            if self.building.net.is_up(at) {
                let epoch = self.epoch;
                self.building.ask(at, kgroup::Command::SetEpoch(epoch));
            }
        }
    }

    fn cut(&mut self) {
        let first = self.pick(COUNT);
        let second = self.pick(COUNT);
        let side: BTreeSet<usize> = [first, second].into();
        let side: Vec<usize> = side.into_iter().collect();
        self.building.net.partition(&[side]).unwrap();
        for _ in 0..self.pick(4) {
            self.change();
            let span = self.span(20);
            self.run(span);
        }
        self.building.net.heal();
    }

    fn faults(&mut self) {
        for _ in 0..6 {
            let loss = [0, 1, 10][self.pick(3)];
            let link = Link {
                loss: Ratio::new(loss, 50),
                ..Link::default()
            };
            self.building.net.set_link(link).unwrap();
            match self.pick(6) {
                0 => self.forget(),
                1 | 2 => self.cut(),
                3 => self.next_epoch(),
                4 => {
                    if let Some(at) = self.listener() {
                        self.triggers += 1;
                        let id = self.triggers;
                        self.building.trigger(at, id);
                    }
                }
                _ => {
                    self.change();
                }
            }
            let span = self.span(10);
            self.run(span);
        }
    }

    fn end(&mut self) {
        self.building.net.set_link(Link::default()).unwrap();
        self.run(Span::secs(60));
        self.next_epoch(); // A leader that was cut off checks whether it still leads.
        self.run(Span::secs(60));
        for group in self.groups() {
            let leads = |at: &usize| {
                let node = self.building.net.machine(*at).unwrap().kgroup();
                node.is_some_and(|it| it.leads().any(|it| it == group))
            };
            let leaders: Vec<usize> = (0..COUNT).filter(leads).collect();
            assert_eq!(leaders.len(), 1, "{group:?} is led by {leaders:?}");
        }
        let before = self.building.done.len();
        self.triggers += 1;
        let id = self.triggers;
        let at = self.listener().unwrap();
        self.building.trigger(at, id);
        let asked = self.change().unwrap();
        self.run(Span::secs(30));
        assert!(!self.asked.contains(&asked), "a change is not answered");
        let done = &self.building.done[before..];
        assert_eq!(done, LAMPS, "the last run");
        assert!(self.building.reports() > 0);
    }

    fn groups(&self) -> Vec<GroupId> {
        let node = self.building.net.machine(0).unwrap().kgroup().unwrap();
        node.site().groups().chain([map()]).collect()
    }
}

#[test]
fn k_groups_keep_what_they_promise_beside_membership() {
    let mut changes = 0;
    let ran = histories(seeds(50), |seed| {
        let mut story = Story::new(seed);
        story.change();
        story.faults();
        story.end();
        changes += story.versions.len();
    });
    assert!(
        changes as u64 >= ran || ran == 1,
        "{changes} changes in {ran} histories"
    );
}
