//! Failures and restarts of nodes, and their epochs.

use alloc::string::String;

use selvedge_core::{Choose, NodeId};
use selvedge_groups::{GroupId, Item};
use selvedge_replica::{Body, Entry};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Operation, Seat};

use super::World;
use crate::{Command, Payload, Update};

impl World {
    pub(super) fn next_epoch(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        if byte & 3 == 0 {
            // One clock runs ahead, or goes back.
            let epoch = self.epoch + u64::from(byte >> 4);
            let epoch = Command::SetEpoch(epoch.saturating_sub(4));
            return self.play(Operation::Command(seat, epoch), bytes);
        }
        self.epoch += 1;
        for at in 0..self.mesh.seats().len() {
            if byte >> 3 & 1 << at == 0 {
                let epoch = Command::SetEpoch(self.epoch);
                self.play(Operation::Command(at, epoch), bytes)?;
            }
        }
        Ok(())
    }

    /// All others receive a report that a node failed, whether it did or not: its groups get other
    /// leaders soon.
    pub(super) fn oust(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Fail(at, seat), bytes)?;
        }
        Ok(())
    }

    /// A node stops, or begins its next life.
    pub(super) fn fall(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let is_up = self.mesh.seat(seat).is_some_and(Seat::is_up);
        let byte = bytes.take();
        let settings = &self.watch.settings;
        let may_fall = settings.is_durable || settings.is_careless || self.may_forget(seat);
        if is_up && !may_fall {
            return Ok(());
        }
        if is_up && byte & 3 == 0 {
            self.play(Operation::Crash(seat), bytes)?;
            return match byte & 4 {
                0 => self.play(Operation::Announce(seat), bytes),
                _ => Ok(()),
            };
        }
        self.start(seat, bytes)
    }

    /// A node begins its next life.
    pub(super) fn start<C: Choose>(&mut self, seat: usize, choices: &mut C) -> Result<(), String> {
        self.play(Operation::Restart(seat), choices)?;
        let epoch = Command::SetEpoch(self.epoch);
        self.play(Operation::Command(seat, epoch), choices)?;
        self.play(Operation::Introduce(seat), choices)?;
        self.play(Operation::Announce(seat), choices)
    }

    /// Returns true if a quorum of the other members of each group has its memory, and no change of
    /// members is under way: that change would count on their former lives.
    fn may_forget(&self, seat: usize) -> bool {
        let me = self.mesh.seat(seat).map(Seat::me).unwrap_or_default();
        let registry = Some(GroupId::REGISTRY);
        let registry = registry.filter(|it| self.watch.oracle.configuration(*it).is_some());
        let mut groups = self.watch.settings.groups().chain(registry);
        groups.all(|group| {
            let Some(newest) = self.watch.oracle.configuration(group) else {
                return false;
            };
            let remembers = |id: NodeId| {
                let at = self.mesh.position(id);
                let machine = at.and_then(|at| self.mesh.machine(at));
                let replica = machine.and_then(|it| it.groups().replica(group));
                replica.is_some_and(|it| it.configuration() == newest && it.votes())
            };
            let members = newest.members().map(|it| it.member.id);
            let others = members.filter(|id| *id != me.id && remembers(*id)).count();
            others * 2 > newest.voters.len() && !self.is_changing(group)
        })
    }

    /// Returns true if another configuration of a group is on its way.
    fn is_changing(&self, group: GroupId) -> bool {
        let mut machines = self.mesh.seats().iter().filter_map(Seat::machine);
        let mut letters = self.mesh.in_flight().iter();
        machines.any(|it| it.groups().is_changing(group))
            || letters.any(|it| it.message.items.iter().any(|it| carries(it, group)))
    }
}

/// Returns true if a part of a message has a group's next configuration in it.
fn carries(item: &Item<Update, Payload>, group: GroupId) -> bool {
    let Item::Replica { group: of, message } = item else {
        return false;
    };
    let (Body::Accept { entries, .. }
    | Body::Learn { entries, .. }
    | Body::Promise { tail: entries, .. }) = &message.body
    else {
        return false;
    };
    let seals = |it: &Entry<Update>| matches!(it, Entry::Configure(_));
    *of == group && entries.iter().any(seals)
}
