//! The possible next actions.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;

use super::{Action, DeviceLeader, Group, World, routine_group, who};
use crate::check::letter::{Letter, To};
use crate::check::setup::{Network, Setup, Who};
use crate::routines::{RoutineTimer, Stage};
use crate::{TriggerId, devices};

impl World {
    pub(super) fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for (at, letter) in self.letters.iter().enumerate() {
            let seats = (0..2).filter(|seat| self.is_for(letter.to, *seat));
            all.extend(seats.map(|seat| Action::Arrives { letter: at, seat }));
            if self.drops > 0 && !letter.is_trigger() {
                all.push(Action::Lost(at));
            }
        }
        let groups = (0..self.routines.len()).map(Who::Routine);
        for who in groups.chain((0..self.clusters.len()).map(Who::Cluster)) {
            self.group_actions(who, &mut all);
        }
        for (number, thing) in self.things.iter().enumerate() {
            all.extend((0..thing.notified.len()).map(|at| Action::Does(number, at)));
        }
        all.extend(self.changes.map(Action::Changes));
        all.extend(self.reports());
        let clocks = (0..self.clocks.len()).filter(|it| self.may_go_on(*it));
        all.extend(clocks.map(Action::Clock));
        all.extend(self.may_adopt().then_some(Action::Adopts));
        let anew = (0..self.clusters.len()).filter(|it| self.may_begin_anew(*it));
        all.extend(anew.map(Action::BeginsAnew));
        all
    }

    fn group_actions(&self, who: Who, all: &mut Vec<Action>) {
        let (pending, present) = match who {
            Who::Routine(number) => {
                let Some(group) = self.routines.get(number) else {
                    return;
                };
                for (seat, node) in group.seats.iter().enumerate() {
                    let timers = node.iter().flat_map(|it| it.timers.iter().copied());
                    let may = timers.filter(|it| self.may_tick(number, *it));
                    all.extend(may.map(|timer| Action::Routine(number, seat, timer)));
                }
                (group.pending.len(), group.present)
            }
            Who::Cluster(number) => {
                let Some(group) = self.clusters.get(number) else {
                    return;
                };
                for (seat, node) in group.seats.iter().enumerate() {
                    let timers = node.iter().flat_map(|it| it.timers.iter().copied());
                    let may = timers.filter(|it| self.may_tick_in_cluster(number, *it));
                    all.extend(may.map(|timer| Action::Cluster(number, seat, timer)));
                }
                (group.pending.len(), group.present)
            }
        };
        if pending > 0 {
            all.push(Action::Applies(who));
        }
        if self.takeovers > 0 && present == 0 && self.setup.may_change.contains(&who) {
            all.push(Action::TakesOver {
                who,
                keeps_pending: true,
            });
            if pending > 0 {
                all.push(Action::TakesOver {
                    who,
                    keeps_pending: false,
                });
            }
        }
    }

    /// Timeouts are longer than any delivery.
    fn may_resend(&self) -> bool {
        let is_quiet = |setup: &Setup| match setup.network {
            Network::Remembers => false,
            Network::Loses(_) => self.letters.iter().all(Letter::is_trigger),
        };
        is_quiet(&self.setup) && self.is_settled()
    }

    /// Returns true if all proposals are decided, and hosts have carried out all commands.
    pub(super) fn is_settled(&self) -> bool {
        let decided = self.routines.iter().all(|it| it.pending.is_empty())
            && self.clusters.iter().all(|it| it.pending.is_empty());
        decided && self.things.iter().all(|it| it.notified.is_empty())
    }

    fn may_tick_in_cluster(&self, number: usize, timer: devices::Timer) -> bool {
        match timer {
            devices::Timer::Resend => self.may_resend(),
            devices::Timer::Act(_) => self.takeovers < self.setup.takeovers && self.is_settled(),
            // Questions to routines are repeated at each.
            devices::Timer::Ping => self.may_resend() && self.is_closed(number),
            devices::Timer::Unanswered | devices::Timer::Wake(_) => false,
        }
    }

    fn may_tick(&self, number: usize, timer: RoutineTimer) -> bool {
        match timer {
            RoutineTimer::Resend => self.may_resend(),
            RoutineTimer::Hold => true,
            RoutineTimer::Command => self.setup.timeouts,
            RoutineTimer::Backoff => self.may_try(number),
        }
    }

    /// Two routines may hold each other up for ever, so from some try on they take turns: one waits
    /// until the other has ended, or until the other waits and holds no device.
    pub(super) fn may_try(&self, number: usize) -> bool {
        let Some(group) = self.routines.get(number) else {
            return false;
        };
        let attempt = match *group.state.stage() {
            Stage::AcquiringLocks { attempt } => attempt,
            Stage::NotTriggered | Stage::Executing { .. } | Stage::ReleasingLocks { .. } => {
                return true;
            }
        };
        if attempt < self.setup.attempts || self.holds_any(number) {
            return true;
        }
        // A device that is held until its last command is settled refuses each try until then.
        let is_free = |cluster: &Group<DeviceLeader>| {
            let state = &cluster.state;
            let is_settled = |it| state.act(it).is_none_or(|act| act.is_settled);
            state.ids().all(is_settled)
        };
        if !self.clusters.iter().all(is_free) {
            return false;
        }
        (0..self.routines.len())
            .filter(|it| *it != number)
            .all(|other| {
                let is_idle = self.is_done(other);
                let is_late = number < other && !self.has_any(other) && self.waits(other);
                is_idle || is_late
            })
    }

    /// A late try shows former leaders of clusters that they lead no longer: else they could answer
    /// for ever that a device is held.
    pub(super) fn retire(&mut self, number: usize) {
        if !self.waits(number) {
            return;
        }
        for cluster in &mut self.clusters {
            if cluster.present > 0
                && let Some(former) = cluster.seats.first_mut()
            {
                *former = None;
            }
        }
    }

    fn holds_any(&self, number: usize) -> bool {
        let devices = (0..self.setup.devices).map(NodeId);
        let claim = self
            .routines
            .get(number)
            .and_then(|it| it.state.claim(routine_group(number)));
        claim.is_some_and(|claim| {
            devices
                .map(|it| self.holder(it))
                .any(|it| it == Some(claim))
        })
    }

    /// Returns true if a device is held by some try of this routine.
    pub(super) fn has_any(&self, number: usize) -> bool {
        let mut devices = (0..self.setup.devices).map(NodeId);
        devices.any(|it| {
            let holder = self.holder(it);
            holder.is_some_and(|it| it.routine == routine_group(number))
        })
    }

    pub(super) fn waits(&self, number: usize) -> bool {
        let group = self.routines.get(number);
        group.is_some_and(|it| match *it.state.stage() {
            Stage::AcquiringLocks { attempt } => attempt >= self.setup.attempts,
            Stage::NotTriggered | Stage::Executing { .. } | Stage::ReleasingLocks { .. } => false,
        })
    }

    pub(super) fn is_done(&self, number: usize) -> bool {
        let all = self
            .routines
            .get(number)
            .zip(self.setup.routines.get(number));
        all.is_some_and(|(group, plan)| {
            let is_triggered = (0..plan.triggers).all(|it| group.state.has(TriggerId(it.into())));
            is_triggered && *group.state.stage() == Stage::NotTriggered
        })
    }

    /// Devices in another state than their groups know; devices with a command report when they
    /// have done it.
    fn reports(&self) -> Vec<Action> {
        let is_news = |device: &u64| {
            let thing = usize::try_from(*device)
                .ok()
                .and_then(|it| self.things.get(it));
            let cluster = self.cluster_of(NodeId(*device));
            let group = cluster.and_then(|it| self.clusters.get(it));
            let known = group.and_then(|it| it.state.status(NodeId(*device)));
            let value = thing.and_then(|it| it.value.as_ref());
            value.is_some() && known.is_some_and(|it| it.value.as_ref() != value)
        };
        let watched = self.setup.changes.iter().copied();
        watched.filter(is_news).map(Action::Reports).collect()
    }

    /// Returns true if a letter may arrive at the node in this seat of its group.
    pub(super) fn is_for(&self, to: To, seat: usize) -> bool {
        let group = match to {
            To::Group(group) => group,
            To::Node(node) if node.id.0 % 2 == seat as u64 => GroupId(node.id.0 / 2),
            To::Node(_) => return false,
        };
        match who(group) {
            Who::Routine(number) => {
                let group = self.routines.get(number);
                group.is_some_and(|it| it.is_seated(seat))
            }
            Who::Cluster(number) => {
                let group = self.clusters.get(number);
                group.is_some_and(|it| it.is_seated(seat))
            }
        }
    }
}
