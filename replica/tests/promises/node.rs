//! One node: its clock, its storage, and its host while it is up.

use std::collections::{BTreeMap, VecDeque};

use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};
use selvedge_replica::{Config, Fact, Stored};

use crate::oracle::Log;
use crate::world::{Machine, Real};

pub(crate) enum Item {
    Effect(Effect<Machine>),
    /// What the host may show once all facts before it are stored.
    Observe {
        version: u64,
        state: Option<Log>,
        readable: Vec<(u64, u64)>,
        forgotten: Vec<(Member, u64)>,
    },
}

pub(crate) enum Write {
    Facts(Vec<Fact<Log>>),
    Base(Box<Stored<Log>>),
}

#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) base: Option<Stored<Log>>,
    pub(crate) facts: Vec<Fact<Log>>,
}

impl Disk {
    pub(crate) fn take(&mut self, write: Write) {
        match write {
            Write::Facts(facts) => self.facts.extend(facts),
            Write::Base(base) => {
                self.base = Some(*base);
                self.facts.clear();
            }
        }
    }
}

/// A node while it is up.
pub(crate) struct Host {
    pub(crate) me: Member,
    pub(crate) driver: Driver<Machine>,
    pub(crate) barrier: Barrier<Item>,
    pub(crate) writes: VecDeque<(Mark, Write)>,
    pub(crate) inbox: VecDeque<Input<Machine>>,
    pub(crate) tick_at: Option<Real>,
    pub(crate) unavailable: bool,
    pub(crate) next_read: u64,
    pub(crate) shown: u64,
    pub(crate) told: BTreeMap<u64, Delta>,
}

pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) life: u32,
    /// Its first life.
    pub(crate) begins: u32,
    pub(crate) stores: bool,
    /// The life in which what it stored began.
    pub(crate) born: u32,
    pub(crate) newcomer: bool,
    /// It never comes up.
    pub(crate) never: bool,
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

    /// In the life in which its memory began, or begins.
    pub(crate) fn voter(&self) -> Member {
        let life = if self.stores { self.born } else { self.life };
        Member::new(self.id, life)
    }

    /// Whether its memory, as it is or would be, holds what was done under this name.
    pub(crate) fn answers_to(&self, named: Member) -> bool {
        let life = named.incarnation.0;
        let lives = self.voter().incarnation.0..=self.life;
        named.id.0 == self.id
            && match life {
                0 => self.voter().incarnation.0 == self.begins,
                _ => lives.contains(&life),
            }
    }
}
