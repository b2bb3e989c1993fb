//! Answers to an initiator.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, Rank};

use crate::attribute::key;
use crate::pool::Pool;
use crate::run::first;
use crate::sorted;
use crate::{Attribute, Ballot, Celect};

impl<A: Attribute> Celect<A> {
    /// Handles an answer to our run.
    pub(crate) fn on_response(
        &mut self,
        from: Member,
        ballot: Ballot,
        [candidates, unhealthy, known]: [&[Member]; 3],
        cx: &mut Context<'_, Self>,
    ) {
        let needed = self.needed();
        let (any_run, (wanted, _)) = (self.rules.any_run(), self.wanted());
        let Some(run) = &mut self.run else {
            self.counters.stale += 1;
            return;
        };
        let is_asked = any_run || run.ballot == ballot && run.asked.binary_search(&from).is_ok();
        if !is_asked || run.answers() >= needed {
            self.counters.stale += 1;
            return;
        }
        if let Some(over) = self.hidden_behind(candidates) {
            let has_room =
                |it| (self.run.as_ref()).is_some_and(|run| run.has_room(it, &self.config));
            // The sender may know another node below it and must be asked without it. If this made us
            // forget another excluded node, the sender would name that one next, and so on for ever.
            if has_room(over) {
                self.pass_over(over, cx);
            } else {
                self.counters.stale += 1;
            }
            return;
        }
        let Some(run) = &mut self.run else {
            debug_assert!(false, "the run went on a moment ago");
            return;
        };
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let candidates = first(candidates, x);
        if candidates.len() < x && run.is_cut_short(candidates) {
            self.counters.stale += 1;
            return;
        }
        // Two lives of a node have one list.
        run.answered.retain(|it| it.id != from.id);
        sorted::insert(&mut run.answered, from);
        let y = run.y.into();
        if !known.is_empty() {
            self.meet(first(known, wanted), cx);
        }
        self.absorb(candidates, first(unhealthy, y), false);
        self.evaluate(cx);
    }

    /// Learns of nodes that may be asked, and asks as many as are still wanted.
    fn meet(&mut self, known: &[Member], cx: &mut Context<'_, Self>) {
        let (wanted, _) = self.wanted();
        let (me, peers) = (self.me, &self.peers);
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run meets others");
            return;
        };
        let mut new = Vec::new();
        for &member in known {
            // A listed node may be dead, and must not take the place of another node.
            let is_met = member.id == me.id
                || peers.is_listed(member)
                || peers.has_ended(member)
                || run.exclude.contains(&member)
                || run.met.contains(&member);
            if run.met.len() < wanted && !is_met {
                sorted::insert(&mut run.met, member);
                sorted::insert(&mut new, member);
            }
        }
        if new.is_empty() {
            return;
        }
        run.overdue = 0;
        let missing = wanted.saturating_sub(run.asked.len());
        let new = Pool::of(&new).draw(missing, cx);
        self.ask(&new, cx);
    }

    /// Returns a node that hides others in an answer: its life has certainly ended, or the answer
    /// names its former life and the present life is passed over. With preferences it does no harm.
    fn hidden_behind(&self, candidates: &[Member]) -> Option<Member> {
        let run = self.run.as_ref()?;
        let is_skipped = self.rules.skips_locally() || self.rules.retries_the_dead();
        if is_skipped || self.config.protocol.prefers() {
            return None;
        }
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let named = candidates.iter().copied().take(x);
        let lowest = named
            .filter(|it| !run.exclude.contains(it))
            .take(run.x.into());
        let mut lowest = lowest.map(|it| (it, self.peers.latest(it)));
        let over = lowest.find(|&(named, latest)| {
            let is_passed_over = latest != named && run.exclude.contains(&latest);
            is_passed_over || self.peers.is_over(latest)
        });
        over.map(|(named, _)| named)
    }

    /// Adds an answer to the run's candidates.
    pub(crate) fn absorb(&mut self, candidates: &[Member], unhealthy: &[Member], own: bool) {
        let reports = self.reports();
        let prefers = self.config.protocol.prefers() || self.rules.skips_locally();
        // A sender that names a former life does not know the present life.
        let present = |it: Member| self.peers.latest(it);
        let Some(run) = &mut self.run else {
            debug_assert!(false, "a run has answers");
            return;
        };
        let before = run.candidates.first().copied();
        for member in candidates.iter().copied().map(present) {
            // Most answers name the same nodes, and a rank is a hash.
            let is_known =
                |&(_, other): &(Rank, Member)| other == member || other.supersedes(member);
            let is_passed_over = self.peers.is_over(member) || run.exclude.contains(&member);
            if is_passed_over || run.candidates.iter().any(is_known) {
                continue;
            }
            run.candidates
                .retain(|&(_, other)| !member.supersedes(other));
            sorted::insert(&mut run.candidates, key(&self.attribute, member));
        }
        for &member in unhealthy {
            sorted::insert(&mut run.unhealthy, member);
        }
        if !prefers {
            // Only the lowest candidate matters.
            run.candidates.truncate(1);
            if reports {
                let lowest = run.candidates.first().copied();
                if lowest != before {
                    run.agreed = 0;
                }
                let mut named = candidates.iter().copied().map(present);
                let names_it = lowest.is_some_and(|(_, it)| named.any(|other| other == it));
                run.agreed += u16::from(names_it && !own);
            }
        }
    }
}
