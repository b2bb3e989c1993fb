//! Nodes that start and stop: with their disks, or without memory.

use std::sync::Arc;

use selvedge_core::durable::{Barrier, Durable};
use selvedge_core::{Delta, Driver, Input, Member, NodeId};
use selvedge_groups::{self as groups, Fact, Start};
use selvedge_kgroup::{Command, GroupState, Kgroup, Reject, Site};

use super::disk::Out;
use super::{MS, World};
use crate::story::Break;

pub(crate) struct Node {
    pub(crate) driver: Option<Driver<Kgroup>>,
    pub(crate) life: u32,
    pub(crate) has_disk: bool,
    pub(crate) has_begun: bool,
    pub(crate) has_lost: bool,
    pub(crate) file: Arc<Site>,
    pub(crate) offset: u64,
    pub(crate) asleep_until: u64,
    pub(crate) disk: Vec<Fact<GroupState>>,
    pub(super) barrier: Barrier<Out>,
    pub(super) writing: Option<Vec<Fact<GroupState>>>,
    pub(super) wake_at: u64,
}

impl Node {
    pub(crate) fn machine(&self) -> Option<&Kgroup> {
        self.driver.as_ref().map(Driver::machine)
    }

    /// Returns true if facts wait until they are stored, and all effects behind them.
    pub(super) fn waits(&self) -> bool {
        self.has_disk && self.barrier.waiting() > 0
    }
}

impl World {
    /// Adds a node that has never run.
    pub(crate) fn add(&mut self, node: NodeId, has_disk: bool, file: Arc<Site>, life: u32) {
        let offset = self.dice.below(1 << 40);
        self.nodes.entry(node).or_insert(Node {
            driver: None,
            life,
            has_disk,
            has_begun: false,
            has_lost: false,
            file,
            offset,
            asleep_until: 0,
            disk: Vec::new(),
            barrier: Barrier::new(usize::MAX),
            writing: None,
            wake_at: u64::MAX,
        });
    }

    /// Starts a node that is stopped: with its disk, or without memory.
    pub(crate) fn start(&mut self, node: NodeId, file: Option<Arc<Site>>) {
        let config = self.config;
        let now = self.now;
        let Some(found) = self.nodes.get_mut(&node) else {
            return;
        };
        if found.driver.is_some() {
            return;
        }
        if let Some(file) = file {
            found.file = file;
        }
        let mut former = None;
        if found.has_begun {
            former = Some(Member::new(node.0, found.life));
            found.life += 1;
        }
        // A disk that began without memory stays so: each life with it begins as the first one did.
        let mut is_fresh = !found.has_begun || found.has_disk && !found.has_lost;
        if self.broken == Some(Break::Memory) {
            is_fresh = true;
            found.disk.clear();
        }
        let start = if is_fresh {
            Start::Fresh
        } else {
            Start::Restarted
        };
        found.has_begun = true;
        found.asleep_until = 0;
        found.barrier = Barrier::new(usize::MAX);
        found.writing = None;
        found.wake_at = u64::MAX;
        let me = Member::new(node.0, found.life);
        let (own, life) = (found.file.generation(), found.life);
        let mut machine = match Kgroup::new(me, config, Arc::clone(&found.file), start) {
            Ok(machine) => machine,
            Err(error) => {
                self.is_unusable |= matches!(error, Reject::Groups(groups::Reject::Room { .. }));
                self.oracle
                    .fail(now, format!("node {node} cannot begin: {error}"));
                return;
            }
        };
        let facts = found.disk.clone();
        for fact in &facts {
            if let Err(damage) = machine.fold(fact) {
                self.oracle
                    .fail(now, format!("node {node} refuses its facts: {damage}"));
                return;
            }
        }
        if former.is_some() && facts.is_empty() {
            self.oracle.lost.insert(node);
        }
        self.oracle.started(now, node, &machine, !facts.is_empty());
        found.driver = Some(Driver::new(machine));
        self.note(|| format!("{me} starts: {start:?}, file {own}, {} facts", facts.len()));
        self.input(node, Input::Command(Command::SetEpoch(self.epoch)));
        for other in self.alive() {
            if other == node {
                continue;
            }
            let there = Member::new(other.0, self.nodes[&other].life);
            self.report(node, life, Delta::Joined(there), 200 * MS);
            let their_life = self.nodes[&other].life;
            let soon = 500 * MS;
            if let Some(former) = former.filter(|_| self.dice.percent(60)) {
                self.report(other, their_life, Delta::Confirmed(former), soon);
            }
            self.report(other, their_life, Delta::Joined(me), soon);
        }
    }

    /// Stops a node at once: without a disk its memory is gone, with one a part of the last write.
    pub(crate) fn stop(&mut self, node: NodeId) {
        let found = self.nodes.get_mut(&node).unwrap();
        if found.driver.take().is_none() {
            return;
        }
        let life = found.life;
        let writing = found.writing.take().unwrap_or_default();
        let kept = self.dice.below(writing.len() as u64 + 1) as usize;
        if found.has_disk {
            found.disk.extend(writing.into_iter().take(kept));
        }
        self.note(|| format!("{node} stops"));
        let now = self.now;
        self.oracle.stopped(now, node, life);
        self.suspect(node, life);
    }
}
