//! The events that a hub may emit, by its documentation.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{NodeId, Time};
use selvedge_safehome::{
    AbortReason, Mode, Outcome, Placed, Priority, Reject, Routine, RoutineId, Scheduler,
    SkipReason, Step, Terms, UndoStatus, Urgency, Visibility,
};

use crate::promises::things::Thing;

/// The outcome of a command of a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    Done,
    Skipped(SkipReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Accepted,
    Started,
    Aborting(AbortReason),
    Aborted,
    Committed,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) routine: Routine<u8>,
    pub(crate) stage: Stage,
    pub(crate) fates: Vec<Fate>,
    /// The last outcome of its command that was open.
    pub(crate) last: Option<Outcome>,
    /// Its long command, on this device and until then.
    pub(crate) holds: Option<(NodeId, Time)>,
    pub(crate) touched: BTreeSet<NodeId>,
    pub(crate) is_cancelled: bool,
    pub(crate) terms: Terms,
    /// It superseded others.
    took: bool,
    /// It may be held back though nothing on its devices keeps it.
    may_be_held: bool,
}

impl Record {
    pub(crate) fn new(routine: Routine<u8>, terms: Terms) -> Self {
        Self {
            fates: vec![Fate::Open; routine.steps.len()],
            routine,
            stage: Stage::Accepted,
            last: None,
            holds: None,
            touched: BTreeSet::new(),
            is_cancelled: false,
            terms,
            took: false,
            may_be_held: false,
        }
    }

    /// It belongs to the runs of this key.
    fn is_of(&self, other: &Self) -> bool {
        self.terms.key().is_some() && self.terms.key() == other.terms.key()
    }

    const fn is_held(&self) -> bool {
        self.may_be_held && matches!(self.stage, Stage::Accepted)
    }

    /// The number of the next command.
    pub(crate) fn at(&self) -> usize {
        let open = self.fates.iter().position(|it| *it == Fate::Open);
        open.unwrap_or(self.fates.len())
    }

    pub(crate) const fn is_finished(&self) -> bool {
        matches!(self.stage, Stage::Aborted | Stage::Committed)
    }

    fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Accepted | Stage::Started) && !self.is_cancelled
    }

    fn sets(&self) -> BTreeSet<NodeId> {
        self.routine.steps.iter().map(|it| it.device).collect()
    }

    /// The devices that did commands of it.
    fn did(&self) -> BTreeSet<NodeId> {
        let steps = self.routine.steps.iter().zip(&self.fates);
        let done = steps.filter(|(_, fate)| **fate == Fate::Done);
        done.map(|(step, _)| step.device).collect()
    }

    fn asks(&self) -> bool {
        self.routine.steps.iter().any(|it| it.condition.is_some())
    }

    /// Both set the same devices, and neither asks for a state.
    fn is_like(&self, other: &Self) -> bool {
        !self.asks() && !other.asks() && self.sets() == other.sets()
    }

    fn needs(&self, device: NodeId) -> bool {
        let mut left = self.routine.steps.iter().skip(self.at());
        left.any(|it| it.device == device)
    }

    fn uses(&self, device: NodeId) -> bool {
        self.touched.contains(&device) || self.needs(device)
    }
}

type Found = Result<(), String>;

fn must(holds: bool, what: &str) -> Found {
    if holds { Ok(()) } else { Err(what.into()) }
}

#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) records: BTreeMap<RoutineId, Record>,
    pub(crate) order: Vec<Placed<u8>>,
    last_token: u64,
    /// The last urgent manual change.
    pub(crate) hand: Option<(NodeId, Urgency)>,
}

impl Oracle {
    /// A routine was taken.
    pub(crate) fn submitted(&mut self, id: RoutineId, mut record: Record) -> Found {
        let is_queued = |it: &Record| matches!(it.terms.mode(), Mode::Queued { .. });
        let unfinished = || self.records.values().filter(|it| !it.is_finished());
        record.may_be_held =
            is_queued(&record) || unfinished().any(|it| it.is_held() && it.is_like(&record));
        let mut mates = unfinished().filter(|it| it.is_of(&record));
        match record.terms.mode() {
            Mode::Parallel => {}
            Mode::Single => must(mates.next().is_none(), "another run is unfinished")?,
            Mode::Restart => record.took = mates.next().is_some(),
            Mode::Queued { limit } => {
                must(mates.count() < limit.get().into(), "too many runs wait")?;
            }
        }
        self.records.insert(id, record);
        Ok(())
    }

    /// Checks that a routine may be refused for this reason.
    pub(crate) fn refused(&self, record: &Record, why: Reject) -> Found {
        let unfinished = self.records.iter().filter(|it| !it.1.is_finished());
        let mut mates = unfinished.filter(|it| it.1.is_of(record));
        let many = mates.clone().count();
        let first = mates.next().map(|it| *it.0);
        match (why, record.terms.mode()) {
            (Reject::Unfinished { routine }, Mode::Single) => {
                must(first == Some(routine), "that is not the first run")
            }
            (
                Reject::QueueFull {
                    routine,
                    limit: notified,
                },
                Mode::Queued { limit },
            ) => {
                let is_full = many >= usize::from(limit.get()) && limit == notified;
                must(is_full && first == Some(routine), "there is room")
            }
            (why, _) => Err(format!("that is no reason: {why}")),
        }
    }

    /// The hold of a routine ends early.
    pub(crate) fn cut(&mut self, id: RoutineId, device: NodeId, by: Option<RoutineId>) -> Found {
        // It may hold another device than the one that it still needs.
        self.is_preempted(id, None, by)?;
        let record = self.records.get_mut(&id).ok_or("nobody knows it")?;
        let at = record.at().checked_sub(1).ok_or("it has done nothing")?;
        let step = &record.routine.steps[at];
        must(step.preemptible && step.device == device, "it may hold")?;
        must(record.holds.is_some(), "it holds nothing")?;
        record.holds = None;
        Ok(())
    }

    fn is_preempted(&self, id: RoutineId, device: Option<NodeId>, by: Option<RoutineId>) -> Found {
        let urgency = self.records[&id].terms.urgency;
        match by {
            Some(by) => {
                let theirs = &self.records[&by];
                must(theirs.terms.urgency > urgency, "that is no more urgent")?;
                must(theirs.is_live(), "that is over")
            }
            None => {
                let (at, hand) = self.hand.ok_or("there was no hand")?;
                must(hand > urgency, "that hand was no more urgent")?;
                must(device.is_none_or(|it| it == at), "the hand was elsewhere")
            }
        }
    }

    /// Checks the terms of a routine at the moment when its command is issued.
    fn keeps_terms(&self, id: RoutineId, device: NodeId) -> Found {
        let record = &self.records[&id];
        for (&other, theirs) in &self.records {
            let is_before = other < id && theirs.is_of(record);
            match record.terms.mode() {
                Mode::Queued { .. } => {
                    must(
                        !is_before || theirs.is_finished(),
                        "a run before it goes on",
                    )?;
                }
                Mode::Restart => must(!is_before || !theirs.is_live(), "it is not superseded")?,
                Mode::Single | Mode::Parallel => {}
            }
            let is_urgent = theirs.terms.urgency > record.terms.urgency;
            let waits = theirs.is_live() && !theirs.is_held() && theirs.needs(device);
            must(!(is_urgent && waits), "what is urgent waits for it")?;
        }
        Ok(())
    }

    /// The routine goes from one stage to another.
    pub(crate) fn stage(&mut self, id: RoutineId, from: Stage, to: Stage) -> Found {
        let record = self.records.get_mut(&id).ok_or("nobody knows it")?;
        must(record.stage == from, "it is at another stage")?;
        record.stage = to;
        Ok(())
    }

    /// Checks that this command may be issued now to that device.
    pub(crate) fn issued(
        &mut self,
        (visibility, scheduler): (Visibility, Option<Scheduler>),
        thing: &Thing,
        (token, value, routine): (u64, u8, Option<RoutineId>),
        now: Time,
    ) -> Found {
        must(token > self.last_token, "a token comes twice")?;
        self.last_token = token;
        must(thing.is_notified_up, "a command to a device that is down")?;
        must(thing.open.is_none(), "two commands on their way")?;
        let is_settled = thing.doubt.is_none_or(|it| it.2 <= now);
        must(is_settled, "a command while another one may act late")?;
        let Some(id) = routine else {
            return must(!thing.is_stuck, "a rollback of a device that is stuck");
        };
        let record = &self.records[&id];
        let takes_over = record.took || record.terms.urgency > Urgency::default();
        must(
            !thing.is_barred || takes_over,
            "a routine's command before a rollback",
        )?;
        self.keeps_terms(id, thing.id)?;
        must(
            record.stage == Stage::Started,
            "it has not started, or is over",
        )?;
        must(!record.is_cancelled, "it is cancelled")?;
        must(record.holds.is_none_or(|it| it.1 <= now), "it still holds")?;
        let step = record.routine.steps.get(record.at());
        let is_next = step.is_some_and(|it| (it.device, it.value) == (thing.id, value));
        must(is_next, "it is not the next command")?;
        for (&other, theirs) in self.records.iter().filter(|it| *it.0 != id) {
            goes_beside(visibility, record, theirs, now)?;
            if !theirs.is_live() || !theirs.needs(thing.id) {
                continue;
            }
            let is_before = other < id;
            must(
                !(is_before && record.is_like(theirs)),
                "it overtakes its like",
            )?;
            let in_order = scheduler == Some(Scheduler::FirstCome);
            must(
                // A routine that was held back comes behind others that were admitted before it.
                !(is_before && in_order && !theirs.may_be_held),
                "it does not come behind all",
            )?;
            let is_between = theirs.touched.contains(&thing.id);
            must(!is_between, "it goes between two commands")?;
        }
        let record = self.records.get_mut(&id).unwrap();
        record.touched.insert(thing.id);
        Ok(())
    }

    pub(crate) fn skipped(
        &mut self,
        id: RoutineId,
        at: u16,
        why: SkipReason,
        things: &[Thing],
    ) -> Found {
        self.is_true(id, at, why, things)?;
        let record = self.records.get_mut(&id).unwrap();
        let priority = record.routine.steps[usize::from(at)].priority;
        let may_be = why == SkipReason::Condition || priority == Priority::BestEffort;
        must(may_be, "a command that must succeed is passed over")?;
        record.fates[usize::from(at)] = Fate::Skipped(why);
        record.last = None;
        Ok(())
    }

    /// Checks that this is the reason why the next command of the routine was not done.
    fn is_true(&self, id: RoutineId, at: u16, why: SkipReason, things: &[Thing]) -> Found {
        let record = &self.records[&id];
        must(
            usize::from(at) == record.at(),
            "it is another command's turn",
        )?;
        let step = &record.routine.steps[record.at()];
        let asked = |device| step.condition.as_ref().is_some_and(|it| it.asks(device));
        let thing = |device: NodeId| things.iter().find(|it| it.id == device).unwrap();
        match why {
            SkipReason::Condition => must(step.condition.is_some(), "it asks nothing"),
            SkipReason::Down(device) => {
                let is_its = device == step.device || asked(device);
                must(
                    is_its && !thing(device).is_notified_up,
                    "that device is not down",
                )
            }
            SkipReason::Refused => must(record.last == Some(Outcome::Refused), "nobody refused it"),
            SkipReason::Unknown => must(
                record.last == Some(Outcome::Unknown),
                "its outcome is known",
            ),
            SkipReason::StateUnknown(device) => {
                must(asked(device), "it does not ask that")?;
                let thing = thing(device);
                must(!thing.is_known || thing.is_stuck, "that state is known")
            }
        }
    }

    pub(crate) fn aborting(&mut self, id: RoutineId, why: AbortReason, things: &[Thing]) -> Found {
        let record = &self.records[&id];
        must(
            matches!(record.stage, Stage::Accepted | Stage::Started),
            "it is over",
        )?;
        match why {
            AbortReason::Cancelled => must(record.is_cancelled, "nobody cancelled it")?,
            AbortReason::Step(at, skip) => {
                self.is_true(id, at, skip, things)?;
                let step = &record.routine.steps[record.at()];
                must(step.priority == Priority::Must, "it need not be done")?;
                must(skip != SkipReason::Condition, "that ends nothing")?;
            }
            AbortReason::Superseded(by) => {
                let theirs = &self.records[&by];
                let is_its = by > id && theirs.is_of(record) && theirs.took;
                must(is_its, "that does not supersede it")?;
            }
            AbortReason::Preempted { by, device, .. } => {
                self.is_preempted(id, Some(device), by)?;
            }
            AbortReason::Device { .. } | AbortReason::LeaseExpired { .. } => {}
        }
        if let Some(device) = why.device(&record.routine) {
            let step = why.step().map(usize::from);
            let step = step.and_then(|it| record.routine.steps.get(it));
            let needs = |it: &Step<u8>| it.devices().any(|at| at == device);
            must(step.is_none_or(needs), "that command does not need it")?;
        }
        self.records.get_mut(&id).unwrap().stage = Stage::Aborting(why);
        Ok(())
    }

    pub(crate) fn aborted(
        &mut self,
        id: RoutineId,
        why: AbortReason,
        undo: &[(NodeId, UndoStatus)],
        things: &mut [Thing],
    ) -> Found {
        let record = self.records.get_mut(&id).unwrap();
        must(record.stage == Stage::Aborting(why), "for another reason")?;
        record.stage = Stage::Aborted;
        let notified: BTreeSet<NodeId> = undo.iter().map(|it| it.0).collect();
        must(notified.len() == undo.len(), "a device comes twice")?;
        must(record.touched.is_subset(&notified), "a device is missing")?;
        for (device, undo) in undo {
            let thing = things.iter_mut().find(|it| it.id == *device).unwrap();
            match undo {
                UndoStatus::NotNeeded => {}
                UndoStatus::Begun | UndoStatus::Pending => {
                    thing.is_begun = true;
                    thing.is_barred |= thing.open.is_none();
                }
                UndoStatus::Stuck => must(thing.is_stuck, "it is not stuck")?,
                UndoStatus::Impossible => must(!thing.is_known, "the state before is known")?,
            }
        }
        Ok(())
    }

    pub(crate) fn committed(&mut self, id: RoutineId, now: Time) -> Found {
        let record = self.records.get_mut(&id).unwrap();
        must(
            record.stage == Stage::Started || record.stage == Stage::Accepted,
            "it is over",
        )?;
        must(!record.is_cancelled, "it is cancelled")?;
        must(record.at() == record.fates.len(), "it is not at its end")?;
        must(record.holds.is_none_or(|it| it.1 <= now), "it still holds")?;
        record.stage = Stage::Committed;
        Ok(())
    }

    /// Checks that the order explains the end, if the beginning is known.
    pub(crate) fn explains(&self, beginning: &[Option<u8>], things: &[Thing]) -> Found {
        let mut serial: BTreeMap<NodeId, Option<u8>> = things
            .iter()
            .map(|it| it.id)
            .zip(beginning.iter().copied())
            .collect();
        let mut notified: Vec<RoutineId> = Vec::new();
        for placed in &self.order {
            match placed {
                Placed::Set { device, state } => {
                    serial.insert(*device, *state);
                }
                Placed::Routine(id) => {
                    let record = &self.records[id];
                    must(record.stage == Stage::Committed, "it is not committed")?;
                    must(!notified.contains(id), "it has two places in the order")?;
                    // A skipped command has no effect that needs an order.
                    let is_later = |it: &&RoutineId| {
                        let theirs = &self.records[*it];
                        let shares = || !theirs.did().is_disjoint(&record.did());
                        **it > *id && theirs.is_like(record) && shares()
                    };
                    let like = notified.iter().find(is_later);
                    must(like.is_none(), "the last of those that set the same loses")?;
                    notified.push(*id);
                    follow(record, &mut serial, things)?;
                }
                Placed::Failed(_) | Placed::Restarted(_) => {}
            }
        }
        let committed = self
            .records
            .values()
            .filter(|it| it.stage == Stage::Committed);
        must(
            notified.len() == committed.count(),
            "one has no place in the order",
        )?;
        for thing in things.iter().filter(|it| it.is_notified_up && !it.is_stuck) {
            let expected = serial[&thing.id];
            if expected.is_some_and(|it| it != thing.state) {
                return Err(format!("{} should be in {expected:?}", thing.id));
            }
        }
        Ok(())
    }
}

/// Checks that a command of one routine may be issued while the other one is at its stage.
fn goes_beside(visibility: Visibility, record: &Record, theirs: &Record, now: Time) -> Found {
    let device = record.routine.steps[record.at()].device;
    let is_held = theirs.is_live()
        && theirs
            .holds
            .is_some_and(|(at, until)| at == device && now < until);
    must(!is_held, "it uses what another one holds")?;
    let runs = matches!(theirs.stage, Stage::Started | Stage::Aborting(_))
        && theirs.at() < theirs.fates.len();
    match visibility {
        Visibility::GlobalStrict | Visibility::StrongGlobalStrict => {
            must(!runs, "two run at a time")
        }
        Visibility::PartitionedStrict => {
            let shared = record
                .sets()
                .intersection(&theirs.sets())
                .any(|&it| record.uses(it) && theirs.uses(it));
            must(!(runs && shared), "two with a common device run at a time")
        }
        Visibility::Weak | Visibility::Eventual => Ok(()),
    }
}

/// The effects of one routine that runs alone.
fn follow(record: &Record, serial: &mut BTreeMap<NodeId, Option<u8>>, things: &[Thing]) -> Found {
    for (step, fate) in record.routine.steps.iter().zip(&record.fates) {
        let condition = step.condition.as_ref();
        let stuck = |device| things.iter().any(|it| it.id == device && it.is_stuck);
        if let Some(condition) = condition.filter(|it| !it.devices().any(stuck)) {
            let holds = condition.holds(&|device| serial[&device].as_ref());
            let was = match fate {
                Fate::Skipped(SkipReason::Condition) => Some(false),
                Fate::Done => Some(true),
                Fate::Open | Fate::Skipped(_) => holds,
            };
            must(was == holds, "a condition saw another state")?;
        }
        if *fate == Fate::Done {
            serial.insert(step.device, Some(step.value));
        }
    }
    Ok(())
}
