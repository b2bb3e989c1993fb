//! A node: a driven machine, its generator, and its counts.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Driver, Machine, Member, Ratio, Time};

use crate::facts::Facts;

use super::storage::Disk;
use super::{DutyCycle, NodeCounters};

pub(super) struct Node<M: Machine> {
    pub(super) member: Member,
    pub(super) driver: Driver<M>,
    pub(super) rng: ChaCha8Rng,
    pub(super) duty: Option<DutyCycle>,
    /// The chance that it loses a message that it sends or receives.
    pub(super) loss: Ratio,
    pub(super) lives: u32,
    pub(super) counters: NodeCounters,
    pub(super) last_reject: Option<M::Reject>,
    /// `None` in a network without storage.
    pub(super) disk: Option<Disk<M>>,
    /// Refused ticks of former lives: a driver counts its own only.
    refused_before: u64,
}

/// The generator of a node, or (stream 0) of the network: one key, a stream for each, so that the
/// draws of one never affect another.
pub(super) fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

impl<M: Machine> Node<M> {
    pub(super) fn new(member: Member, machine: M, rng: ChaCha8Rng) -> Self {
        Self {
            member,
            driver: Driver::new(machine),
            rng,
            duty: None,
            loss: Ratio::NEVER,
            lives: 1,
            counters: NodeCounters::default(),
            last_reject: None,
            disk: None,
            refused_before: 0,
        }
    }

    pub(super) fn is_awake(&self, at: Time) -> bool {
        self.duty.is_none_or(|duty| duty.is_awake(at))
    }

    /// The time to look at its timers next: not before `from`, and not while it sleeps.
    pub(super) fn alarm(&self, from: Time) -> Option<Time> {
        let due = self.driver.deadline()?.max(from);
        Some(self.duty.map_or(due, |duty| duty.awake_from(due)))
    }

    /// Removes the timers and the unstored facts, and keeps the machine for reading. The first
    /// `kept` facts of a write in progress are stored nevertheless.
    pub(super) fn crash(&mut self, facts: Option<Facts<M>>, kept: u64) {
        let mut machine = self.driver.machine().clone();
        if let (Some(disk), Some(facts)) = (&mut self.disk, facts) {
            disk.crash(facts, kept, &mut self.counters);
            machine.clone_from(&disk.image);
        }
        self.replace(machine);
    }

    pub(super) fn restart(&mut self, member: Member, machine: M) {
        if let Some(disk) = &mut self.disk {
            disk.image.clone_from(&machine);
        }
        self.replace(machine);
        self.member = member;
        self.lives = self.lives.saturating_add(1);
    }

    pub(super) fn counters(&self) -> NodeCounters {
        NodeCounters {
            rejected_ticks: self.refused_before + self.driver.refused_ticks(),
            ..self.counters
        }
    }

    fn replace(&mut self, machine: M) {
        self.refused_before += self.driver.refused_ticks();
        self.driver = Driver::new(machine);
    }
}
