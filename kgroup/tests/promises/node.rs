//! One node: its clock, its storage, and its host while it is up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Driver, Effect, Input, Member, Time};
use selvedge_groups::{Fact, GroupId};
use selvedge_kgroup::{Config, Held, Kgroup};

use crate::runs::Named;
use crate::world::Real;

/// What a step asks of the host, and when it did.
pub(crate) struct Item {
    pub(crate) effect: Effect<Kgroup>,
    pub(crate) said: Real,
    /// For a command: for which claim it is.
    pub(crate) named: Option<Named>,
}

pub(crate) enum Write {
    Facts(Vec<Fact<Held>>),
    /// In place of all facts so far.
    All(Vec<Fact<Held>>),
    /// In place of all facts of one group.
    Base(Box<Fact<Held>>),
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) facts: Vec<Fact<Held>>,
}

impl Disk {
    pub(crate) fn take(&mut self, write: Write) {
        match write {
            Write::Facts(facts) => self.facts.extend(facts),
            Write::All(facts) => self.facts = facts,
            Write::Base(fact) => {
                self.facts.retain(|it| it.group() != fact.group());
                self.facts.push(*fact);
            }
        }
    }

    /// Drops what a later fact stands for.
    pub(crate) fn compact(&mut self) {
        let mut covered = BTreeSet::new();
        let mut kept = Vec::new();
        for fact in self.facts.drain(..).rev() {
            if covered.contains(&fact.group()) {
                continue;
            }
            if fact.is_base() {
                covered.insert(fact.group());
            }
            kept.push(fact);
        }
        kept.reverse();
        self.facts = kept;
    }
}

/// What waits for a host that sleeps, or is behind with its storage.
pub(crate) struct Waiting {
    pub(crate) input: Input<Kgroup>,
    pub(crate) sent: Real,
}

/// A node while it is up.
pub(crate) struct Host {
    pub(crate) me: Member,
    pub(crate) driver: Driver<Kgroup>,
    pub(crate) barrier: Barrier<Item>,
    pub(crate) writes: VecDeque<(Mark, Write)>,
    pub(crate) inbox: VecDeque<Waiting>,
    pub(crate) tick_at: Option<Real>,
    /// Where it asks: the entries that it watches.
    pub(crate) watches: BTreeSet<(GroupId, String)>,
    pub(crate) shown: BTreeMap<(GroupId, String), u64>,
}

pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) life: u32,
    /// Whether a life of it began.
    pub(crate) was_up: bool,
    pub(crate) stores: bool,
    pub(crate) config: Config,
    pub(crate) host: Option<Host>,
    pub(crate) disk: Disk,
    pub(crate) asleep: bool,
    /// Where its clock stands still while it sleeps.
    pub(crate) paused_at: Option<Real>,
    pub(crate) paused: Real,
    pub(crate) offset: u64,
    pub(crate) slow_ppm: u64,
    pub(crate) limit: usize,
}

impl Node {
    pub(crate) fn local(&self, real: Real) -> Time {
        let running = self.paused_at.unwrap_or(real) - self.paused;
        Time(self.offset + running - running * self.slow_ppm / 1_000_000)
    }

    pub(crate) fn real(&self, local: Time, now: Real) -> Real {
        let missing = local.0.saturating_sub(self.local(now).0);
        now + missing * 1_000_000 / (1_000_000 - self.slow_ppm) + 1
    }

    pub(crate) fn member(&self) -> Member {
        Member::new(self.id, self.life)
    }
}
