//! The rules of routines, from the records of devices and the reports of groups.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Effect, Member, NodeId};
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::routines::{
    Definition, Report, RoutineEvent, RoutineState, Stage, StepOutcome,
};
use selvedge_kgroup::{
    Claim, Command, Delivery, Event, GroupState, Kgroup, LeaderEvent, Site, TriggerId,
};
use selvedge_routine::State;
use selvedge_sim::histories::History;

use crate::times::Times;
use crate::world::World;

/// A run: a routine, and its number.
type Run = (GroupId, u64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    claim: Claim,
    step: u16,
    delivery: Delivery,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    ticket: Ticket,
    named: Named,
    did: bool,
}

#[derive(Default)]
pub(crate) struct Runs {
    named: BTreeMap<Ticket, Named>,
    by_step: BTreeMap<(Run, u16), Ticket>,
    given: BTreeMap<Ticket, Vec<Member>>,
    /// In the order in which devices saw them.
    arrivals: Vec<Arrival>,
    outcomes: BTreeMap<(Run, u16), StepOutcome>,
    reports: BTreeMap<Run, Report>,
    /// The requests to a node, in its present life or its next one.
    pub(crate) asked: BTreeSet<(u64, GroupId, TriggerId)>,
    notified: BTreeSet<(Member, GroupId, TriggerId)>,
    pub(crate) ids: BTreeMap<GroupId, u64>,
    /// The least number of runs for each request.
    least: BTreeMap<(u64, GroupId, TriggerId), u64>,
    pub(crate) instances: BTreeMap<GroupId, u64>,
    pub(crate) is_off: bool,
    /// Messages come later than devices may act: a device may act for an earlier claim.
    pub(crate) is_late: bool,
    /// Commands that a host reported as failed.
    pub(crate) failed: BTreeSet<Ticket>,
    definitions: BTreeMap<Run, Definition>,
    /// Runs of definitions that a later generation brought.
    renewed: BTreeSet<Run>,
    /// Routines that had a clause.
    clauses: BTreeSet<GroupId>,
    /// The commands that hosts were given.
    values: BTreeMap<Ticket, State>,
    /// A host of a group of one may lose a run of which others have seen commands.
    pub(crate) forgets: bool,
}

impl Runs {
    pub(crate) fn commands(&self) -> u64 {
        self.arrivals.len() as u64
    }

    pub(crate) fn renewed(&self) -> u64 {
        self.renewed.len() as u64
    }

    /// The claim of a command, if it is known.
    pub(crate) fn claim_of(&self, ticket: Ticket) -> Option<Claim> {
        self.named.get(&ticket).map(|it| it.claim)
    }

    /// The commands to devices so far, of routines that are not in a site.
    pub(crate) fn arrivals_without(&self, site: &Site) -> usize {
        let is_gone = |it: &&Arrival| site.definition(it.named.claim.routine).is_none();
        self.arrivals.iter().filter(is_gone).count()
    }

    pub(crate) fn reports(&self) -> u64 {
        self.reports.len() as u64
    }

    /// The name of a run that no node has asked for yet.
    pub(crate) fn next_id(&self, routine: GroupId) -> u64 {
        self.ids.get(&routine).copied().unwrap_or(0) + 1
    }

    pub(crate) fn name(&mut self, ticket: Ticket, named: Named) {
        let before = *self.named.entry(ticket).or_insert(named);
        let same = (before.claim, before.step) == (named.claim, named.step);
        assert!(same, "{ticket:?} is {before:?}, and {named:?}");
        let run = (named.claim.routine, named.claim.instance);
        let other = *self.by_step.entry((run, named.step)).or_insert(ticket);
        assert_eq!(other, ticket, "two commands for one step: {named:?}");
    }

    /// A host is given a command.
    pub(crate) fn given(&mut self, me: Member, ticket: Ticket, value: &State) {
        self.values.insert(ticket, value.clone());
        let hosts = self.given.entry(ticket).or_default();
        hosts.push(me);
        if self.is_off {
            return;
        }
        let named = self.named[&ticket];
        if named.delivery == Delivery::AtMostOnce {
            assert_eq!(hosts.len(), 1, "{named:?} is given again: {hosts:?}");
        }
    }

    /// A device gets a command: none of a claim from which it was passed on.
    pub(crate) fn arrives(&mut self, ticket: Ticket, did: bool) {
        if self.is_off {
            return;
        }
        let named = self.named[&ticket];
        let here = |it: &&Arrival| it.ticket.device == ticket.device;
        let mut before = self.arrivals.iter().rev().filter(here);
        let is_passed = |it: &Arrival| it.named.claim != named.claim;
        if let Some(last) = before.next().filter(|it| is_passed(it)) {
            let again = before.any(|it| !is_passed(it));
            assert!(
                !again || self.is_late,
                "{named:?} after {last:?}, which had the device"
            );
        }
        let arrival = Arrival { ticket, named, did };
        self.arrivals.push(arrival);
    }

    pub(crate) fn triggered(&mut self, me: Member, routine: GroupId, id: TriggerId) {
        if self.is_off {
            return;
        }
        let was = self.asked.remove(&(me.id.0, routine, id));
        assert!(
            was,
            "{me:?} {id:?}: no node asked, or the answer came twice"
        );
        assert!(
            self.notified.insert((me, routine, id)),
            "the answer came twice"
        );
    }

    pub(crate) fn reported(&mut self, group: GroupId, event: RoutineEvent, may_lack: bool) {
        match event {
            RoutineEvent::Reports(report) => self.report(group, &report),
            RoutineEvent::NoDevice { device } => {
                assert!(self.is_off || may_lack, "no group looks after {device:?}");
            }
            _ => {}
        }
    }

    fn report(&mut self, group: GroupId, report: &Report) {
        if self.is_off {
            return;
        }
        let run = (group, report.instance);
        let before = self.reports.entry(run).or_insert_with(|| report.clone());
        assert_eq!(before, report, "two reports of {run:?}");
        for (step, &outcome) in report.steps.iter().enumerate() {
            self.outcome(run, step as u16, outcome);
        }
    }

    fn outcome(&mut self, run: Run, step: u16, outcome: StepOutcome) {
        let key = (run, step);
        let before = *self.outcomes.entry(key).or_insert(outcome);
        assert_eq!(before, outcome, "two outcomes of {run:?} {step}");
        let ticket = self.by_step.get(&key);
        match outcome {
            StepOutcome::Done => {
                let did = |it: &Arrival| Some(&it.ticket) == ticket && it.did;
                let done = self.arrivals.iter().any(did);
                assert!(done, "{run:?} {step} is reported as done");
            }
            StepOutcome::Skipped | StepOutcome::NotReached => {
                assert_eq!(ticket, None, "{run:?} {step} is {outcome:?}");
            }
            StepOutcome::Failed => {
                // A device that is down is given nothing.
                let fits = |it| self.failed.contains(it) || !self.given.contains_key(it);
                assert!(
                    ticket.is_none_or(fits),
                    "{run:?} {step} is reported as failed"
                );
            }
            StepOutcome::Unknown => {}
        }
    }

    /// Records a state of a routine that a node has stored.
    pub(crate) fn state(&mut self, group: GroupId, state: &RoutineState) {
        if self.is_off {
            return;
        }
        if let Some(report) = state.report() {
            self.report(group, &report.clone());
        }
        let run = (group, state.instance());
        if state.definition().clause.is_some() {
            self.clauses.insert(group);
        }
        if *state.stage() != Stage::NotTriggered {
            let definition = state.definition();
            let known = self.definitions.entry(run);
            let known = known.or_insert_with(|| definition.clone());
            assert_eq!(known, definition, "{run:?} has two definitions");
            if state.since() > 0 {
                self.renewed.insert(run);
            }
        }
        if let Stage::Executing { outcomes, .. } = state.stage() {
            for (step, &outcome) in outcomes.iter().enumerate() {
                self.outcome(run, step as u16, outcome);
            }
        }
        let most = self.instances.entry(group).or_default();
        *most = state.instance().max(*most);
    }

    /// A trigger is asked for while its routine is in this state, as far as any node knows.
    fn expects(&mut self, key: (u64, GroupId, TriggerId), state: Option<&RoutineState>) {
        use selvedge_kgroup::routines::Retrigger;
        let Some(state) = state else { return };
        let ignores = state.definition().retrigger == Retrigger::Ignore;
        let goes_on = match state.stage() {
            Stage::NotTriggered => false,
            Stage::AcquiringLocks { .. } => true,
            _ => ignores,
        };
        let runs = state.instance() + u64::from(!goes_on);
        self.least.insert(key, runs);
    }

    /// Checks the history of a run that has ended: runs of routines that share a device come one after another.
    pub(crate) fn check(&self, site: &Site) {
        if self.is_off {
            return;
        }
        self.check_steps();
        if self.is_late {
            return;
        }
        let mut commands: BTreeMap<Run, Vec<(usize, NodeId)>> = BTreeMap::new();
        let mut done = BTreeSet::new();
        for (at, it) in self.arrivals.iter().enumerate() {
            let run = (it.named.claim.routine, it.named.claim.instance);
            // A command without an answer may be done later.
            if self.outcomes.get(&(run, it.named.step)) == Some(&StepOutcome::Unknown) {
                continue;
            }
            // A command that is given again may come when the run is over: its device is held until then.
            if it.did && !done.insert(it.ticket) {
                continue;
            }
            commands
                .entry(run)
                .or_default()
                .push((at, it.ticket.device));
        }
        let locks = |run: &Run| self.definitions.get(run).map(Definition::locks);
        let locks: BTreeMap<Run, Vec<NodeId>> = commands
            .keys()
            .map(|run| (*run, locks(run).unwrap_or_default()))
            .collect();
        // What a removed routine holds is released device by device: a device on which a command is under way
        // later than others.
        let is_cut =
            |run: &Run| site.definition(run.0).is_none() && !self.reports.contains_key(run);
        for (one, of_one) in &commands {
            for (other, of_other) in commands.range(..one) {
                let shared = |it: &NodeId| locks[one].contains(it) && locks[other].contains(it);
                let share = locks[one].iter().any(shared);
                let piecewise = is_cut(one) || is_cut(other);
                let counts = |it: &&(usize, NodeId)| !piecewise || shared(&it.1);
                let span = |of: &[(usize, NodeId)]| {
                    let at = || of.iter().filter(counts).map(|it| it.0);
                    Some((at().min()?, at().max()?))
                };
                let apart = match (span(of_one), span(of_other)) {
                    (Some(a), Some(b)) => a.1 < b.0 || b.1 < a.0,
                    _ => true,
                };
                assert!(!share || apart, "{one:?} and {other:?} execute at once");
            }
        }
    }

    /// Each command is a step of the definition of its run.
    fn check_steps(&self) {
        for (ticket, value) in &self.values {
            let Named { claim, step, .. } = self.named[ticket];
            let Some(it) = self.definitions.get(&(claim.routine, claim.instance)) else {
                assert!(self.forgets, "no node knows the run of {claim:?}");
                continue;
            };
            let step = &it.routine.steps[usize::from(step)];
            assert_eq!(
                (step.device, &step.value),
                (ticket.device, value),
                "{claim:?}"
            );
        }
    }

    /// Checks counts when faults are over: each request led to a run, and each name to one at most.
    pub(crate) fn check_counts(&self, site: &Site, nodes: &[u64], times: &Times) {
        if self.is_off {
            return;
        }
        // A node that the site does not have waits until a site has it.
        let is_here = |it: &(u64, GroupId, TriggerId)| {
            nodes.contains(&it.0) && site.definition(it.1).is_some()
        };
        let open: Vec<_> = self.asked.iter().filter(|it| is_here(it)).collect();
        assert!(open.is_empty(), "not decided: {open:?}");
        for (nth, _) in site.routines() {
            let group = Site::routine(nth);
            let count = |map: &BTreeMap<GroupId, u64>| map.get(&group).copied().unwrap_or(0);
            let runs = count(&self.instances);
            let of_group = (self.least.iter()).filter(|it| it.0.1 == group && is_here(it.0));
            let least = of_group.map(|it| *it.1).max().unwrap_or(0);
            assert!(
                runs >= least,
                "{group:?} ran {runs} times, and {least} were asked"
            );
            let most = count(&self.ids).saturating_add(times.runs(group));
            assert!(
                self.clauses.contains(&group) || runs <= most,
                "{runs} runs of {most} wishes"
            );
        }
    }
}

impl World {
    /// The claim for which a command is given, as far as its leader knows.
    pub(crate) fn claim(&mut self, id: u64, effect: &Effect<Kgroup>) -> Option<(Ticket, Named)> {
        let Effect::Event(Event::Leader { group, event }) = effect else {
            return None;
        };
        let LeaderEvent::Devices(devices::Event::Act { ticket, .. }) = event else {
            return None;
        };
        if self.runs.is_off {
            return None;
        }
        let held = self.machine(id).unwrap().held(*group);
        if held.is_none() && self.failures() == 0 {
            // A group of one may pass its state on in the same step: the claim is not known any more.
            self.runs.is_off = true;
            return None;
        }
        let Some(GroupState::Devices(held)) = held else {
            panic!("{group:?} gives a command, and is no cluster");
        };
        let act = held.act(ticket.device).expect("a command");
        assert_eq!(act.number, ticket.number);
        let named = Named {
            claim: act.claim,
            step: act.step,
            delivery: act.delivery,
        };
        // A group of one has decided the next updates in the same step: it may have been released, and no
        // other claim has it before the command is over.
        let holder = held.holder(ticket.device);
        let replica = self.machine(id).unwrap().groups().replica(*group);
        let is_alone = replica.is_some_and(|it| it.configuration().voters.len() == 1);
        let fits = holder == Some(act.claim) || (is_alone && holder.is_none());
        assert!(fits, "{holder:?} has it");
        Some((*ticket, named))
    }

    /// Records the states of routines at the node.
    pub(crate) fn stages(&mut self, id: u64) {
        // A state that rests on facts that are not stored yet may be lost.
        let now = self.now;
        let host = self.hosts.nodes[&id].host.as_ref();
        let Some(host) = host.filter(|it| it.barrier.unstored() == 0) else {
            return;
        };
        let machine = host.driver.machine();
        // A routine that the latest site does not have may run where that is not known yet.
        let present = machine.site().routines().map(|it| Site::routine(it.0));
        let groups: BTreeSet<GroupId> = present.chain(self.routines()).collect();
        for group in groups {
            let version = machine.groups().replica(group).map(|it| it.version());
            if let (Some(version), Some(GroupState::Routine(state))) =
                (version, machine.held(group))
            {
                self.times.see(now, group, version, state);
                self.runs.state(group, state);
            }
        }
    }

    pub(crate) fn routines(&self) -> Vec<GroupId> {
        let routines = self.site.routines();
        routines.map(|it| Site::routine(it.0)).collect()
    }

    /// The latest state of a routine that any node knows.
    pub(crate) fn routine(&self, group: GroupId) -> Option<&RoutineState> {
        let versions = self.nodes.values().filter_map(|node| {
            let host = node.host.as_ref()?;
            let machine = host.driver.machine();
            if host.barrier.unstored() > 0 {
                return None;
            }
            let version = machine.groups().replica(group)?.version();
            match machine.held(group)? {
                GroupState::Routine(state) => Some((version, &**state)),
                _ => None,
            }
        });
        versions.max_by_key(|it| it.0).map(|it| it.1)
    }

    /// A node, or some, ask for a run.
    pub(crate) fn trigger(&mut self, id: u64) {
        let groups = self.routines();
        if groups.is_empty() {
            return;
        }
        let group = groups[self.below(groups.len() as u64) as usize];
        let number = self.runs.ids.get(&group).copied().unwrap_or(0);
        if number >= 60 {
            return; // The number of triggers that a group remembers.
        }
        let again = number > 0 && self.percent(20);
        let number = if again {
            1 + self.below(number)
        } else {
            number + 1
        };
        self.trigger_as(id, group, TriggerId(number));
        if self.percent(20) {
            let other = self.a_node();
            self.trigger_as(other, group, TriggerId(number));
        }
    }

    pub(crate) fn trigger_as(&mut self, id: u64, routine: GroupId, trigger: TriggerId) {
        let Some(me) = self.me(id) else {
            return;
        };
        let key = (id, routine, trigger);
        if !self.is_awake(id)
            || self.runs.asked.contains(&key)
            || self.runs.notified.contains(&(me, routine, trigger))
        {
            return;
        }
        let state = self.routine(routine).cloned();
        let known = self.runs.ids.get(&routine).copied().unwrap_or(0);
        self.runs.asked.insert(key);
        let command = Command::Trigger {
            routine,
            id: trigger,
        };
        if self
            .step(id, Some(selvedge_core::Input::Command(command)))
            .is_err()
        {
            self.runs.asked.remove(&key);
            return;
        }
        if trigger.0 > known {
            self.runs.ids.insert(routine, trigger.0);
            self.runs.expects(key, state.as_ref());
        }
        self.run(id);
    }

    /// A new life repeats the requests of the life before.
    pub(crate) fn ask_again(&mut self, id: u64) {
        let asked: Vec<_> = self
            .runs
            .asked
            .iter()
            .filter(|it| it.0 == id)
            .copied()
            .collect();
        for (_, routine, trigger) in asked {
            self.command(
                id,
                Command::Trigger {
                    routine,
                    id: trigger,
                },
            );
        }
    }
}
