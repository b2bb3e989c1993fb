//! The decisions of all groups, compared with the promises.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Time};
use selvedge_groups::GroupId;
use selvedge_replica::Configuration;

use super::asked::Asked;
use super::history::MapHistory;
use super::home::Home;
use super::settings::ACT_TIMEOUT;
use super::summary::Summary;
use crate::devices::{Act, Ticket};
use crate::routines::{Report, RoutineEvent, RoutineState, Stage, StepOutcome};
use crate::{Delivery, GroupState, Kgroup, Outcome, Site, Status};

struct Latest {
    version: u64,
    held: GroupState,
}

/// A command in its last seen state, and the moment from which leaders should handle it.
#[derive(Clone, Debug)]
struct Known {
    act: Act,
    since: BTreeMap<Member, Time>,
}

pub(super) struct Oracle {
    site: Arc<Site>,
    /// The last seen state of each group at each node.
    seen: BTreeMap<(usize, GroupId), (u64, u64)>,
    history: BTreeMap<(GroupId, u64), Vec<u8>>,
    latest: BTreeMap<GroupId, Latest>,
    newest: BTreeMap<GroupId, Configuration>,
    by_number: BTreeMap<(GroupId, u64), Configuration>,
    acts: BTreeMap<Ticket, Known>,
    given: BTreeMap<Ticket, u64>,
    reports: BTreeMap<(GroupId, u64), Report>,
    map: MapHistory,
}

impl Oracle {
    pub(super) const fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            seen: BTreeMap::new(),
            history: BTreeMap::new(),
            latest: BTreeMap::new(),
            newest: BTreeMap::new(),
            by_number: BTreeMap::new(),
            acts: BTreeMap::new(),
            given: BTreeMap::new(),
            reports: BTreeMap::new(),
            map: MapHistory::new(),
        }
    }

    /// The latest state in which a group was seen.
    pub(super) fn held(&self, group: GroupId) -> Option<&GroupState> {
        self.latest.get(&group).map(|it| &it.held)
    }

    pub(super) const fn map(&self) -> &MapHistory {
        &self.map
    }

    /// The newest configuration of a group.
    pub(super) fn configuration(&self, group: GroupId) -> Option<&Configuration> {
        self.newest.get(&group)
    }

    /// The number of reported runs of a routine.
    pub(super) fn runs(&self, routine: GroupId) -> usize {
        self.reports
            .range((routine, 0)..=(routine, u64::MAX))
            .count()
    }

    /// A node begins another life.
    pub(super) fn forget(&mut self, at: usize) {
        self.seen.retain(|it, _| it.0 != at);
    }

    /// A node has taken a step.
    pub(super) fn look(
        &mut self,
        (at, now): (usize, Time),
        node: &Kgroup,
        asked: &Asked,
        summary: &mut Summary,
    ) -> Result<(), String> {
        let mut is_new = false;
        for group in node.groups().groups() {
            let Some(replica) = node.groups().replica(group) else {
                continue;
            };
            let configuration = replica.configuration();
            let place = (replica.version(), configuration.number);
            if self.seen.insert((at, group), place) == Some(place) {
                continue;
            }
            if !configuration.voters.is_empty() {
                self.on_configuration(group, configuration, summary)?;
            }
            if let Some(held) = replica.state() {
                is_new |= self.on_state((group, replica.version()), held, now, asked, summary)?;
            }
        }
        match is_new {
            true => self.check_locks(summary),
            false => Ok(()),
        }
    }

    fn on_configuration(
        &mut self,
        group: GroupId,
        configuration: &Configuration,
        summary: &mut Summary,
    ) -> Result<(), String> {
        let number = configuration.number;
        let first = self.by_number.get(&(group, number));
        if let Some(first) = first {
            return match first == configuration {
                true => Ok(()),
                false => Err(format!("{group:?} is {first:?} and {configuration:?}")),
            };
        }
        self.by_number
            .insert((group, number), configuration.clone());
        let newest = self.newest.get(&group).map(|it| it.number);
        if newest.is_none_or(|it| it < number) {
            summary.configured += u64::from(newest.is_some());
            self.newest.insert(group, configuration.clone());
        }
        Ok(())
    }

    fn on_state(
        &mut self,
        (group, version): (GroupId, u64),
        held: &GroupState,
        now: Time,
        asked: &Asked,
        summary: &mut Summary,
    ) -> Result<bool, String> {
        let bytes = postcard::to_allocvec(held).unwrap_or_default();
        match self.history.get(&(group, version)) {
            Some(known) if *known != bytes => {
                return Err(format!(
                    "{group:?} has two states at version {version}: {held:?}"
                ));
            }
            Some(_) => {}
            None => {
                self.history.insert((group, version), bytes);
            }
        }
        if let GroupState::Map(map) = held {
            self.map.see(map, asked)?;
        }
        let latest = self.latest.get(&group);
        if latest.is_some_and(|it| it.version >= version) {
            return Ok(false);
        }
        if let GroupState::Devices(devices) = held {
            for device in devices.ids() {
                if let Some(act) = devices.act(device) {
                    summary.taken_over += u64::from(self.on_act(device, act, now)?);
                }
            }
        }
        if let GroupState::Routine(routine) = held {
            check_runs(group, routine, asked)?;
        }
        let held = held.clone();
        self.latest.insert(group, Latest { version, held });
        Ok(true)
    }

    /// Returns true if another leader handles the command now.
    fn on_act(&mut self, device: NodeId, act: &Act, since: Time) -> Result<bool, String> {
        let number = act.number;
        let ticket = Ticket { device, number };
        let new = || Known {
            act: act.clone(),
            since: BTreeMap::from([(act.by, since)]),
        };
        let entry = self.acts.entry(ticket).or_insert_with(new);
        if entry.act.by != act.by {
            entry.since.insert(act.by, since);
        }
        let known = &mut entry.act;
        let is_same = (known.claim, known.step, &known.value) == (act.claim, act.step, &act.value);
        if !is_same || known.outcome.is_some() && known.outcome != act.outcome {
            return Err(format!("{ticket:?} is {known:?} and {act:?}"));
        }
        known.outcome = act.outcome;
        let before = core::mem::replace(&mut known.by, act.by);
        Ok(before != act.by)
    }

    /// Theorem 3: a routine that executes holds all its devices.
    fn check_locks(&self, summary: &mut Summary) -> Result<(), String> {
        for (&group, latest) in &self.latest {
            let GroupState::Routine(routine) = &latest.held else {
                continue;
            };
            let Stage::Executing { .. } = routine.stage() else {
                continue;
            };
            let claim = routine.claim(group);
            summary.executing += 1;
            for device in routine.definition().locks() {
                let holder = self.devices_of(device).and_then(|it| it.holder(device));
                if holder != claim {
                    return Err(format!(
                        "{claim:?} executes, and {holder:?} holds {device:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    fn devices_of(&self, device: NodeId) -> Option<&crate::devices::Devices> {
        match self.held(self.site.cluster_of(device)?)? {
            GroupState::Devices(devices) => Some(devices),
            GroupState::Routine(_) | GroupState::Map(_) | GroupState::Registry(_) => None,
        }
    }

    /// The known status of a device.
    pub(super) fn status(&self, device: NodeId) -> Option<&Status> {
        self.devices_of(device)?.status(device)
    }

    /// A leader gives its host a command: returns true if it is in time. The promise leaves out a
    /// command that is given later: the leader slept, and another leader may have handled the
    /// command.
    pub(super) fn on_given(
        &mut self,
        me: Member,
        now: Time,
        ticket: Ticket,
        summary: &mut Summary,
    ) -> Result<bool, String> {
        summary.given += 1;
        let Some(known) = self.acts.get(&ticket) else {
            return Ok(false); // Decided and over within one step.
        };
        let given = self.given.entry(ticket).or_default();
        *given += 1;
        if known.act.delivery == Delivery::AtMostOnce && *given > 1 {
            return Err(format!("{me:?} gives {ticket:?} again: {known:?}"));
        }
        let since = known.since.get(&me);
        let is_in_time = since.is_some_and(|it| now.since(*it) < ACT_TIMEOUT);
        let latest = self.devices_of(ticket.device);
        let present = latest.and_then(|it| it.act(ticket.device));
        if present.is_some_and(|it| it.number == ticket.number) {
            return Ok(is_in_time);
        }
        summary.stale += 1;
        match is_in_time {
            true => Err(format!("{me:?} gives {known:?}, and {present:?} follows")),
            false => Ok(false),
        }
    }

    /// A device does a command that was given and done in time: the device belongs to the command's
    /// claim, or to no claim.
    pub(super) fn on_done(&self, ticket: Ticket) -> Result<(), String> {
        let (Some(known), Some(devices)) = (self.acts.get(&ticket), self.devices_of(ticket.device))
        else {
            return Ok(());
        };
        let claim = known.act.claim;
        let holder = devices.holder(ticket.device);
        let number = devices.act(ticket.device).map(|it| it.number);
        let is_own = holder.is_none_or(|it| it == claim) && number == Some(ticket.number);
        match is_own {
            true => Ok(()),
            false => Err(format!(
                "{known:?} is done; {holder:?} has it, and {number:?} follows"
            )),
        }
    }

    /// The leader of a routine reports the outcome of a run.
    pub(super) fn on_routine(
        &mut self,
        group: GroupId,
        event: &RoutineEvent,
        home: &Home,
        summary: &mut Summary,
    ) -> Result<(), String> {
        let RoutineEvent::Reports(report) = event else {
            return Ok(());
        };
        let key = (group, report.instance);
        if let Some(known) = self.reports.get(&key) {
            return match known == report {
                true => Ok(()),
                false => Err(format!("{key:?} is {known:?} and {report:?}")),
            };
        }
        summary.runs += 1;
        self.reports.insert(key, report.clone());
        for (step, outcome) in report.steps.iter().enumerate() {
            self.check_step(key, step, *outcome, home)?;
        }
        Ok(())
    }

    fn check_step(
        &self,
        (group, instance): (GroupId, u64),
        step: usize,
        outcome: StepOutcome,
        home: &Home,
    ) -> Result<(), String> {
        let is_of = |it: &Act| {
            let claim = it.claim;
            (claim.routine, claim.instance, usize::from(it.step)) == (group, instance, step)
        };
        let mut acts = self.acts.iter().filter(|it| is_of(&it.1.act));
        let act = acts.next().map(|it| (it.0, &it.1.act));
        let wrong = |why| {
            Err(format!(
                "{group:?} {instance} {step} {outcome:?}: {why}: {act:?}"
            ))
        };
        if acts.next().is_some() {
            return wrong("two commands");
        }
        match (outcome, act) {
            (StepOutcome::Done, Some((ticket, act))) => {
                // Not checked where another command followed in the same step.
                let is_done = act.outcome.is_none_or(|it| it == Outcome::Done);
                match is_done && home.done.contains_key(ticket) {
                    true => Ok(()),
                    false => wrong("the device did not do it"),
                }
            }
            (StepOutcome::Skipped | StepOutcome::NotReached, Some(_)) => wrong("it was decided"),
            (StepOutcome::Failed, Some((ticket, _))) => {
                let failed = home.failed.contains_key(ticket);
                match failed || !home.given.contains_key(ticket) {
                    true => Ok(()),
                    false => wrong("the device did not fail"),
                }
            }
            (StepOutcome::Done, None) => wrong("what was done was decided"),
            (StepOutcome::Skipped | StepOutcome::NotReached | StepOutcome::Failed, None)
            | (StepOutcome::Unknown, _) => Ok(()),
        }
    }
}

/// A trigger starts one run at most.
fn check_runs(group: GroupId, routine: &RoutineState, asked: &Asked) -> Result<(), String> {
    if routine.definition().clause.is_some() {
        return Ok(()); // A clause starts runs, too.
    }
    let triggers = asked.triggers.iter().filter(|it| it.0 == group).count() as u64;
    let more = u64::from(routine.is_queued());
    match routine.instance() + more <= triggers {
        true => Ok(()),
        false => Err(format!(
            "{group:?} has {triggers} triggers and is {routine:?}"
        )),
    }
}
