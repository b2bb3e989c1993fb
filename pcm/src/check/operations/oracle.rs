//! The updates that the gateways have decided, in order, and the results of their followers.
//!
//! Facts contain the updates that gateways accept, and a version is the number of decided updates. So the
//! oracle has the updates in order, applies each to tables of its own, and checks the outcome. All
//! gateways must have equal tables at that version.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::hash::{BuildHasher as _, BuildHasherDefault};
use std::hash::DefaultHasher;

use selvedge_core::{Incarnation, Member, NodeId};
use selvedge_replica::{Entry, Fact, Proposal, State as _};

use super::backed::{List, have_voted, is_backed};
use crate::{
    Answer, Attachment, Bytes, Function, Outcome, Returned, Tables, TaskId, Update, Voters,
};

/// The history of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// Its answers with their voters: one, and one more each time that it was forgotten and submitted again.
    pub(super) answers: Vec<(Answer, Voters)>,
    is_over: bool,
    /// The function of the submission that was decided.
    function: Option<Function>,
    /// The number of times that it was given to a unit.
    attempts: u16,
    /// The lists of followers that the present attempt had.
    lists: Vec<List>,
    /// The results of followers, in any attempt.
    returned: Vec<(Member, Returned)>,
}

/// The history of the gateways' decisions.
#[derive(Debug)]
pub(super) struct Oracle {
    pub(super) tables: Tables,
    version: u64,
    /// A hash of the tables at each version.
    hashes: Vec<u64>,
    /// The entries that the gateway at each seat has accepted, by version.
    logs: Vec<BTreeMap<u64, Entry<Update>>>,
    /// The gateways that committed the end of a configuration, and its version.
    ended: Vec<(usize, u64)>,
    /// The last proposal of each gateway.
    admitted: BTreeMap<NodeId, (Incarnation, u64)>,
    pub(super) tasks: BTreeMap<TaskId, Known>,
    /// The followers that left last, the latest last.
    left: Vec<Attachment>,
    /// Values of functions, with their voters, from which the tables may answer a task without running it.
    values: BTreeSet<(Function, Bytes, Voters)>,
    /// True if no client is ever forgotten.
    remembers: bool,
    pub(super) applied: u64,
    pub(super) backed: u64,
    /// Tasks that were given to a unit again.
    pub(super) again: u64,
}

impl Oracle {
    pub(super) fn new(tables: Tables, gateways: usize, remembers: bool) -> Self {
        let mut oracle = Self {
            hashes: Vec::new(),
            tables,
            version: 0,
            logs: vec![BTreeMap::new(); gateways],
            ended: Vec::new(),
            admitted: BTreeMap::new(),
            tasks: BTreeMap::new(),
            left: Vec::new(),
            values: BTreeSet::new(),
            remembers,
            applied: 0,
            backed: 0,
            again: 0,
        };
        oracle.hashes.push(hash(&oracle.tables));
        oracle
    }

    /// The number of decided updates.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    /// Takes a fact that a gateway's host stores.
    pub(super) fn on_fact(&mut self, seat: usize, fact: &Fact<Tables>) {
        match fact {
            Fact::Accepted { after, entries, .. } | Fact::Learned { after, entries } => {
                if let Some(log) = self.logs.get_mut(seat) {
                    log.extend((*after + 1..).zip(entries.iter().cloned()));
                }
            }
            Fact::Committed(version) => self.ended.push((seat, *version)),
            Fact::Promised(_) | Fact::Installed(_) | Fact::Retired => {}
        }
    }

    /// The entry of a version, from the facts of the gateway that applies it. A gateway that received whole
    /// tables has not stored the entry; then it comes from a gateway that committed the end of a configuration
    /// at this version or later.
    fn entry(&self, seat: usize, version: u64) -> Option<Entry<Update>> {
        let ended = self.ended.iter().filter(|it| it.1 >= version);
        let mut seats = core::iter::once(seat).chain(ended.map(|it| it.0));
        seats.find_map(|it| self.logs.get(it)?.get(&version).cloned())
    }

    /// Notes a result of a follower, or a forged one in its name.
    pub(super) fn on_returned(&mut self, by: Member, task: TaskId, returned: &Returned) {
        let Some(known) = self.tasks.get_mut(&task) else {
            return;
        };
        let reported = (by, returned.clone());
        if !known.returned.contains(&reported) {
            known.returned.push(reported);
        }
    }

    /// Applies all updates up to a version, and compares the tables with those of a gateway.
    pub(super) fn look(
        &mut self,
        seat: usize,
        version: u64,
        tables: &Tables,
        is_liar: impl Fn(NodeId) -> bool,
    ) -> Result<(), String> {
        while self.version < version {
            let next = self.version + 1;
            let Some(entry) = self.entry(seat, next) else {
                return Err(format!("seat {seat} applies {next}, and has not stored it"));
            };
            if let Entry::Update(proposal) = entry
                && self.is_admitted(&proposal)
            {
                let update = &proposal.update;
                let taken = self.apply(update, &is_liar);
                taken.map_err(|why| format!("{why}, by {update:?} as version {next}"))?;
            }
            self.version = next;
            self.hashes.push(hash(&self.tables));
        }
        let at = usize::try_from(version).unwrap_or(usize::MAX);
        match self.hashes.get(at) {
            Some(known) if *known != hash(tables) => Err(format!(
                "seat {seat} has other tables at version {version}: {tables:?}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if a proposal is applied: each once, in its proposer's order.
    fn is_admitted(&mut self, proposal: &Proposal<Update>) -> bool {
        let Proposal {
            by, number, first, ..
        } = *proposal;
        // A proposer that the group has forgotten begins again with a number above 1.
        let begins = number == first;
        let is_next = match self.admitted.get(&by.id) {
            Some(&(life, last)) if life == by.incarnation => {
                number == last + 1 || begins && number > last
            }
            Some(&(life, _)) => begins && by.incarnation.newer_than(life),
            None => begins,
        };
        if is_next {
            self.admitted.insert(by.id, (by.incarnation, number));
        }
        is_next
    }

    fn apply(&mut self, update: &Update, is_liar: impl Fn(NodeId) -> bool) -> Result<(), String> {
        self.applied += 1;
        let mut before = None;
        if let Update::Attach(it) | Update::Purge(it) = update {
            before = self.tables.follower(it.member.id).cloned();
        }
        let outcome = self.tables.apply(update);
        match outcome {
            Outcome::Attached { ref tasks, .. } => {
                if let Update::Attach(reported) = update {
                    self.on_attached(reported, before.as_ref())?;
                }
                self.note_lists(tasks);
            }
            Outcome::Purged { ref tasks, .. } => {
                self.on_purged(update, before)?;
                self.note_lists(tasks);
            }
            Outcome::Assigned { task, .. } => self.on_assigned(task, update)?,
            Outcome::Ended { task, .. } => self.on_ended(task, update, is_liar)?,
            Outcome::Voted { .. } if !self.tables.limits().counts_votes => {
                return Err("gateways counted a vote, although orchestrators count".into());
            }
            Outcome::Stale
            | Outcome::NoRoom(_)
            | Outcome::Full(_)
            | Outcome::Clustered
            | Outcome::Measured
            | Outcome::Voted { .. }
            | Outcome::Open(_)
            | Outcome::Done(_)
            | Outcome::Forgotten(_) => {}
        }
        match self.tables.broken_invariant() {
            Some(what) => Err(format!("{what}: {:?}", self.tables)),
            None => Ok(()),
        }
    }

    /// Checks that no late message brings a follower back (erratum Q3).
    fn on_attached(
        &self,
        reported: &Attachment,
        before: Option<&Attachment>,
    ) -> Result<(), String> {
        let is_later = |than: &Attachment| {
            let (new, old) = (reported.member.incarnation, than.member.incarnation);
            new.newer_than(old) || new == old && reported.number > than.number
        };
        let of_it = |it: &&Attachment| it.member.id == reported.member.id;
        let left = self.left.iter().rev().find(of_it);
        match before.into_iter().chain(left).find(|it| !is_later(it)) {
            Some(known) => Err(format!("a late attachment counts, after {known:?}")),
            None => Ok(()),
        }
    }

    fn on_purged(&mut self, update: &Update, before: Option<Attachment>) -> Result<(), String> {
        let (Update::Purge(reported), Some(gone)) = (update, before) else {
            return Err("an unknown follower is purged".into());
        };
        if gone.member == reported.member && gone.number > reported.number {
            return Err(format!(
                "a follower with a later attachment is purged: {gone:?}"
            ));
        }
        self.left.retain(|it| it.member.id != gone.member.id);
        self.left.push(gone);
        let tombstones = self.tables.limits().tombstones as usize;
        let forgotten = self.left.len().saturating_sub(tombstones);
        self.left.drain(..forgotten);
        Ok(())
    }

    /// Notes the new lists of the followers that run these tasks.
    fn note_lists(&mut self, tasks: &[TaskId]) {
        for task in tasks {
            let known = self.tasks.entry(*task).or_default();
            if let Some(assignment) = self.tables.assignment(*task) {
                known.lists.push(List::of(assignment));
            }
        }
    }

    fn on_assigned(&mut self, task: TaskId, update: &Update) -> Result<(), String> {
        let known = self.tasks.entry(task).or_default();
        if known.is_over {
            if self.remembers {
                return Err(format!("{task:?} had ended, and is open again"));
            }
            (known.attempts, known.is_over) = (0, false);
        }
        if let Update::Submit { function, .. } = update {
            known.function = Some(function.clone());
        }
        known.lists.clear();
        let Some(assignment) = self.tables.assignment(task) else {
            return Ok(()); // It waits for a unit.
        };
        known.attempts += 1;
        self.again += u64::from(known.attempts > 1);
        if known.attempts != assignment.attempt || assignment.term != 0 {
            let attempts = known.attempts;
            return Err(format!("{assignment:?} is attempt {attempts}"));
        }
        known.lists.push(List::of(assignment));
        let unit = |it: &Member| {
            let here = self.tables.follower(it.id);
            here.filter(|here| here.member == *it)?;
            self.tables.unit_of(it.id)
        };
        let units: BTreeSet<Option<u32>> = assignment.electors.iter().map(unit).collect();
        let distinct: BTreeSet<NodeId> = assignment.electors.iter().map(|it| it.id).collect();
        let are_of_one = units.len() == 1 && !units.contains(&None);
        match are_of_one && distinct.len() == assignment.electors.len() {
            true => Ok(()),
            false => Err(format!("{assignment:?} is no unit")),
        }
    }

    fn on_ended(
        &mut self,
        task: TaskId,
        update: &Update,
        is_liar: impl Fn(NodeId) -> bool,
    ) -> Result<(), String> {
        let limits = *self.tables.limits();
        let answer = self.tables.answer(task).cloned();
        let answer = answer.ok_or_else(|| format!("{task:?} ended without an answer"))?;
        let voters: Voters = self.tables.voters(task).iter().copied().collect();
        let known = self.tasks.entry(task).or_default();
        if known.is_over && self.remembers {
            return Err(format!(
                "{task:?} ended twice: {:?}, {answer:?} of {voters:?}",
                known.answers
            ));
        }
        let is_as_promised = match update {
            Update::Submit { function, .. } => {
                let kept = |it: &Bytes| (function.clone(), it.clone(), voters.clone());
                matches!(&answer, Answer::Value(it) if self.values.contains(&kept(it)))
            }
            Update::Cancel(_) => answer == Answer::Cancelled && voters.is_empty(),
            Update::Retry { .. } => {
                answer == Answer::Unanswered
                    && voters.is_empty()
                    && known.attempts >= limits.attempts
            }
            Update::Answer {
                attempt,
                term,
                answer: reported,
                ..
            } => {
                let orchestrator = known.lists.last().and_then(List::orchestrator);
                let present = known.lists.last().map(|it| it.term);
                // An orchestrator that lies may send any answer (erratum Q5).
                let is_believed = orchestrator.is_some_and(|it| is_liar(it.id));
                self.backed += u64::from(!is_believed);
                let returned = (!is_believed).then_some(known.returned.as_slice());
                let last = known.lists.last();
                !limits.counts_votes
                    && last.is_some_and(|it| have_voted(&answer, &voters, it, returned))
                    && *reported == answer
                    && (Some(*attempt), Some(*term)) == (Some(known.attempts), present)
                    && (is_believed || is_backed(&answer, *term, &known.lists, &known.returned))
            }
            Update::Vote { .. } => {
                self.backed += 1;
                let last = known.lists.last();
                let term = last.map_or(0, |it| it.term);
                let returned = Some(known.returned.as_slice());
                limits.counts_votes
                    && last.is_some_and(|it| have_voted(&answer, &voters, it, returned))
                    && is_backed(&answer, term, &known.lists, &known.returned)
            }
            Update::Attach(_) | Update::Purge(_) | Update::Cluster { .. } | Update::Hops(_) => {
                false
            }
        };
        if !is_as_promised {
            return Err(format!(
                "{task:?} ended with {answer:?} of {voters:?}, known as {known:?}"
            ));
        }
        known.is_over = true;
        known.answers.push((answer.clone(), voters.clone()));
        if let (Answer::Value(value), Some(function)) = (answer, known.function.clone()) {
            self.values.insert((function, value, voters));
        }
        Ok(())
    }
}

fn hash(tables: &Tables) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(tables)
}
