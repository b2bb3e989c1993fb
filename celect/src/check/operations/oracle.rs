//! The leaders and their ballots, checked against the promises.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use selvedge_core::{Effect, Member, NodeId};

use super::Summary;
use super::settings::Order;
use crate::run::Run;
use crate::{Ballot, Celect, Event, Message};

/// The basis of a run.
#[derive(Default)]
struct Basis {
    /// The nodes that have been up since it began, each with the nodes whose lists lacked it at some
    /// moment.
    lacked: BTreeMap<Member, BTreeSet<NodeId>>,
    /// The number of appointments of each node by each ballot.
    appointed: BTreeMap<Member, BTreeMap<Ballot, u32>>,
}

/// An observer of all nodes of a mesh.
#[derive(Default)]
pub(super) struct Oracle {
    /// The runs in progress, by their initiators.
    runs: BTreeMap<Member, Basis>,
    /// First ballots of runs.
    begun: BTreeSet<Ballot>,
    /// The node that each ballot appointed.
    named: BTreeMap<Ballot, Member>,
    /// The node that took the lead by each ballot.
    taken: BTreeMap<Ballot, Member>,
    /// The last ballot in each node's events.
    last: BTreeMap<Member, Ballot>,
    /// Leaderships that ended by themselves.
    ended: BTreeSet<Ballot>,
    seen: Summary,
}

impl Oracle {
    pub(super) fn dies(&mut self, member: Member) {
        self.runs.remove(&member);
        for basis in self.runs.values_mut() {
            basis.lacked.remove(&member);
        }
    }

    /// Records which nodes lack which others now.
    pub(super) fn look<'a>(&mut self, machines: impl Iterator<Item = &'a Celect<Order>> + Clone) {
        for initiator in machines.clone().filter(|it| it.run.is_some()) {
            self.runs.entry(initiator.me).or_insert_with(|| Basis {
                lacked: machines
                    .clone()
                    .map(|it| (it.me, BTreeSet::new()))
                    .collect(),
                ..Basis::default()
            });
        }
        for basis in self.runs.values_mut() {
            for (member, lacked) in &mut basis.lacked {
                let lacks = |it: &&Celect<Order>| {
                    it.me != *member && !it.members().any(|other| other == *member)
                };
                lacked.extend(machines.clone().filter(lacks).map(|it| it.me.id));
            }
        }
    }

    /// Checks a step of a node that ran this election before it. [`look`](Self::look) was called after
    /// the step.
    pub(super) fn step(
        &mut self,
        before: Option<&Run>,
        after: &Celect<Order>,
        effects: &[Effect<Celect<Order>>],
    ) -> Result<(), String> {
        for effect in effects {
            match effect {
                Effect::Event(event) => self.notified(after.me, event)?,
                Effect::Send {
                    to,
                    message: Message::Appoint { ballot, .. },
                } => self.appoints(after.me, *ballot, *to)?,
                Effect::Send { .. } | Effect::Multicast { .. } => {}
            }
        }
        if let Some(ballot) = after.leads() {
            if self.taken.get(&ballot) != Some(&after.me) || self.ended.contains(&ballot) {
                return Err(format!("{:?} leads by {ballot:?} untold", after.me));
            }
            if self.last.get(&after.me) != Some(&ballot) {
                return Err(format!("{:?} told of another one than itself", after.me));
            }
        }
        let gives_way =
            |it: &Effect<Celect<Order>>| matches!(it, Effect::Event(Event::Yielded { .. }));
        if !effects.iter().any(gives_way) {
            self.judge(before, after, effects)?;
        }
        if after.run.is_none() {
            self.runs.remove(&after.me);
        }
        Ok(())
    }

    /// Checks that a node which ends a run has not elected a node above a node that was up throughout,
    /// was on enough lists, and answers in time (theorem 1).
    fn judge(
        &mut self,
        before: Option<&Run>,
        after: &Celect<Order>,
        effects: &[Effect<Celect<Order>>],
    ) -> Result<(), String> {
        let (Some(run), Some(leader)) = (before, after.leader) else {
            return Ok(());
        };
        let is_over = after.run.is_none() && leader.ballot.same_run(run.ballot);
        let (Some(basis), true) = (self.runs.get(&after.me), is_over) else {
            return Ok(());
        };
        if after.config.protocol.prefers() {
            return Ok(());
        }
        let concluded = effects.iter().find_map(|effect| match effect {
            Effect::Event(Event::Concluded {
                missing_from: c, ..
            }) => Some(*c),
            Effect::Event(_) | Effect::Send { .. } | Effect::Multicast { .. } => None,
        });
        let c = usize::from(concluded.unwrap_or(run.bound.0));
        let attempts = u32::from(after.config.attempts);
        // The node that was appointed last may have been passed over just now.
        let is_last = |member: &Member| {
            let lasts = basis.appointed.iter().filter_map(|(who, it)| {
                let (ballot, _) = it.last_key_value()?;
                Some((ballot, who))
            });
            lasts.max().is_some_and(|(_, who)| who == member)
        };
        let was_silent = |member: &Member| {
            let counts = basis.appointed.get(member);
            counts.is_some_and(|it| it.values().any(|&count| count >= attempts))
        };
        let is_safe = |(member, lacked): &(&Member, &BTreeSet<NodeId>)| {
            lacked.len() <= c
                && !((run.exclude.contains(*member) || is_last(member)) && was_silent(member))
        };
        let there = basis.lacked.iter().filter(is_safe).map(|(&it, _)| it);
        let Some(lowest) = there.min_by_key(|&it| after.key_of(it)) else {
            return Ok(());
        };
        self.seen.judged += 1;
        self.seen.lower += u64::from(after.key_of(leader.member) < after.key_of(lowest));
        if after.key_of(leader.member) > after.key_of(lowest) {
            return Err(format!(
                "{:?} elected {:?}, and {lowest:?} was there, lacked by {:?}: {run:?}",
                after.me,
                leader.member,
                basis.lacked.get(&lowest)
            ));
        }
        Ok(())
    }

    fn appoints(&mut self, who: Member, ballot: Ballot, whom: Member) -> Result<(), String> {
        if ballot.initiator != who {
            return Err(format!("{who:?} appoints by {ballot:?}"));
        }
        let named = *self.named.entry(ballot).or_insert(whom);
        if named != whom {
            return Err(format!("{ballot:?} appoints {named:?} and {whom:?}"));
        }
        if let Some(basis) = self.runs.get_mut(&who) {
            let counts = basis.appointed.entry(whom).or_default();
            *counts.entry(ballot).or_default() += 1;
        }
        Ok(())
    }

    fn notified(&mut self, who: Member, event: &Event) -> Result<(), String> {
        match event {
            Event::Electing(ballot) => {
                self.seen.elections += 1;
                if !self.begun.insert(*ballot) || ballot.initiator != who {
                    return Err(format!("{who:?} began a second run with {ballot:?}"));
                }
            }
            Event::Elected { leader, ballot } => self.elected(who, *leader, *ballot)?,
            Event::Yielded { ballot, to } => {
                self.seen.yielded += 1;
                if to <= ballot {
                    return Err(format!("{who:?} gave {ballot:?} up for {to:?}"));
                }
            }
            Event::Deposed { ballot, by } => {
                self.seen.deposed += 1;
                if by <= ballot || self.taken.get(ballot) != Some(&who) {
                    return Err(format!("{who:?}, {ballot:?}, is deposed by {by:?}"));
                }
            }
            Event::Lost { .. } => self.seen.lost += 1,
            Event::LeaseExpired { .. } => self.seen.leases_over += 1,
            Event::Ended(ballot) => {
                self.seen.leases_over += 1;
                if self.taken.get(ballot) != Some(&who) || !self.ended.insert(*ballot) {
                    return Err(format!("{who:?} ended {ballot:?}"));
                }
            }
            Event::Regained { ballot, .. } => {
                if self.last.get(&who) != Some(ballot) {
                    return Err(format!(
                        "{who:?} regained {ballot:?}, which it did not follow"
                    ));
                }
            }
            Event::Stalled { .. } => self.seen.starved += 1,
            Event::Concluded { .. }
            | Event::Measured(_)
            | Event::Unmeasured(_)
            | Event::BoundChanged { .. } => {}
        }
        Ok(())
    }

    fn elected(&mut self, who: Member, leader: Member, ballot: Ballot) -> Result<(), String> {
        if let Some(last) = self.last.insert(who, ballot)
            && last >= ballot
        {
            return Err(format!("{who:?} went from {last:?} back to {ballot:?}"));
        }
        if leader == who {
            self.seen.led += 1;
            if self.taken.insert(ballot, who).is_some() {
                return Err(format!("{ballot:?} was used twice, by {who:?} at last"));
            }
        } else if self.taken.get(&ballot) != Some(&leader) {
            return Err(format!(
                "{who:?} follows {leader:?}, who never took {ballot:?}"
            ));
        }
        Ok(())
    }

    /// Adds the observations.
    pub(super) fn report(&self, summary: &mut Summary) {
        let seen = &self.seen;
        for (sum, one) in [
            (&mut summary.elections, seen.elections),
            (&mut summary.led, seen.led),
            (&mut summary.deposed, seen.deposed),
            (&mut summary.yielded, seen.yielded),
            (&mut summary.lost, seen.lost),
            (&mut summary.leases_over, seen.leases_over),
            (&mut summary.starved, seen.starved),
            (&mut summary.judged, seen.judged),
            (&mut summary.lower, seen.lower),
        ] {
            *sum += one;
        }
    }
}
