//! One node: its clock, its storage, and its host while it is up.

use alloc::collections::{BTreeMap, VecDeque};

use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

use super::{History, Real};

/// An effect or a note of a step.
#[derive(Debug)]
pub enum Item<H: History> {
    /// An effect of the machine, when the machine had it, and [how deep](super::Hosts::depth).
    Effect(Effect<H::Machine>, Real, u32),
    /// A note, which waits for all facts before it.
    Note(H::Note),
}

/// A write to storage.
#[derive(Debug)]
pub enum Write<H: History> {
    /// Facts to append.
    Facts(Vec<H::Fact>),
    /// A base in place of facts: see [`History::replace`].
    Base(Box<H::Base>),
}

/// The contents of storage.
#[derive(Debug)]
pub struct Disk<H: History> {
    /// The base, in place of all facts before it.
    pub base: Option<H::Base>,
    /// The facts since.
    pub facts: Vec<H::Fact>,
}

impl<H: History> Default for Disk<H> {
    fn default() -> Self {
        Self {
            base: None,
            facts: Vec::new(),
        }
    }
}

/// An input that waits for a host that sleeps, or that is behind with its storage.
#[derive(Debug)]
pub struct Waiting<H: History> {
    /// The input.
    pub input: Input<H::Machine>,
    /// The time at which it was sent.
    pub sent: Real,
    /// [How deep](super::Hosts::depth).
    pub depth: u32,
}

/// A node while it is up.
#[derive(Debug)]
pub struct Host<H: History> {
    /// Its life.
    pub me: Member,
    /// Its machine, with timers.
    pub driver: Driver<H::Machine>,
    /// Effects and notes that wait for facts.
    pub barrier: Barrier<Item<H>>,
    /// Writes that are not completed, in order.
    pub writes: VecDeque<(Mark, Write<H>)>,
    /// Inputs that the machine has not taken.
    pub inbox: VecDeque<Waiting<H>>,
    /// The time at which its timers are looked at next.
    pub tick_at: Option<Real>,
    /// The last news of each other node.
    pub notified: BTreeMap<u64, Delta>,
    /// The protocol's data of this life.
    pub own: H::Life,
}

/// The settings of a node, and its state that outlasts its lives.
#[derive(Debug)]
pub struct Node<H: History> {
    /// Its id.
    pub id: u64,
    /// Its present life, or its next one if it is down.
    pub life: u32,
    /// Its first life.
    pub begins: u32,
    /// The life in which its stored state began.
    pub born: u32,
    /// True if its host stores facts.
    pub stores: bool,
    /// True if it stays down.
    pub never: bool,
    /// Its host, while it is up.
    pub host: Option<Host<H>>,
    /// Its storage.
    pub disk: Disk<H>,
    /// True until it wakes.
    pub asleep: bool,
    /// The time at which its clock stands still while it sleeps.
    pub paused_at: Option<Real>,
    /// The total time for which its clock stood still.
    pub paused: Real,
    /// The lead of its clock.
    pub offset: u64,
    /// The parts of a million by which its clock is slow.
    pub slow_ppm: u64,
    /// The number of effects that may wait for storage.
    pub limit: usize,
    /// The protocol's data of it.
    pub own: H::Node,
}

/// A life of a node that is about to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The node in this life.
    pub me: Member,
    /// True if it is the node's first one.
    pub is_first: bool,
}

impl<H: History> Node<H> {
    /// A node that is down, with a clock that is right.
    pub fn new(id: u64, begins: u32, own: H::Node) -> Self {
        Self {
            id,
            life: begins,
            begins,
            born: begins,
            stores: false,
            never: false,
            host: None,
            disk: Disk::default(),
            asleep: false,
            paused_at: None,
            paused: 0,
            offset: 0,
            slow_ppm: 0,
            limit: 0,
            own,
        }
    }

    /// Its present life, or its next one.
    #[must_use]
    pub const fn member(&self) -> Member {
        Member::new(self.id, self.life)
    }

    /// The life that is up.
    #[must_use]
    pub fn me(&self) -> Option<Member> {
        self.host.as_ref().map(|it| it.me)
    }

    /// Its machine, while it is up.
    #[must_use]
    pub fn machine(&self) -> Option<&H::Machine> {
        self.host.as_ref().map(|it| it.driver.machine())
    }

    /// Returns true if nothing keeps the host from running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let ready = |host: &Host<H>| host.barrier.ready().is_ok();
        !self.asleep && self.host.as_ref().is_some_and(ready)
    }

    /// The time on its clock.
    #[must_use]
    pub fn local(&self, real: Real) -> Time {
        let running = self.paused_at.unwrap_or(real) - self.paused;
        Time(self.offset + running - running * self.slow_ppm / 1_000_000)
    }

    /// The real time of a time on its clock, if it does not stand still.
    #[must_use]
    pub fn real(&self, local: Time, now: Real) -> Real {
        let missing = local.0.saturating_sub(self.local(now).0);
        now + missing * 1_000_000 / (1_000_000 - self.slow_ppm) + 1
    }

    /// Loses the storage of a node that is down.
    pub fn lose_storage(&mut self) {
        self.disk = Disk::default();
        self.born = self.life;
    }

    /// Lets its clock go on.
    pub(super) fn goes_on(&mut self, now: Real) {
        self.asleep = false;
        if let Some(since) = self.paused_at.take() {
            self.paused += now - since;
        }
    }
}
