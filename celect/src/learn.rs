//! Deltas of the membership service, and their effects.

use selvedge_core::roster::Standing;
use selvedge_core::{Context, Delta, Member, NodeId, Span};

use crate::{Attribute, Celect, Event, Reject, Timer};

impl<A: Attribute> Celect<A> {
    pub(crate) fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(delta) = self.peers.about_others(delta)? else {
            return Ok(());
        };
        let member = delta.member();
        let Some(standing) = Standing::after(delta) else {
            self.peers.suspect(member);
            return Ok(());
        };
        let was_listed = self.peers.is_listed(member);
        self.remember(member, standing);
        if standing == Standing::Listed {
            self.welcome(member, was_listed, cx);
        }
        // This comes first, because an election that begins now asks the nodes on the list, and
        // counts our own.
        self.give_place(cx);
        self.look_for_the_gone(member, cx);
        self.look_for_majority(cx);
        Ok(())
    }

    /// Records the standing of a life, also of a life that finds no place on the list.
    fn remember(&mut self, member: Member, standing: Standing) {
        let is_refused = standing == Standing::Listed && !self.peers.has_place_for(member);
        let standing = if is_refused {
            self.counters.no_room += 1;
            Standing::Met
        } else {
            standing
        };
        if standing != Standing::Listed {
            let leader = self.leader.map(|it| it.member);
            let forgotten = self.peers.make_room_for(member, leader);
            debug_assert!(forgotten.is_ok(), "there is a node to spare");
            if let Ok(Some(forgotten)) = forgotten {
                self.forget(forgotten.id);
            }
        }
        let taken = self.peers.set(member, standing, &self.attribute);
        debug_assert!(taken.is_ok(), "room was made for {member:?}");
    }

    /// Drops the state of a node that is forgotten.
    fn forget(&mut self, node: NodeId) {
        if let Some(lease) = &mut self.lease {
            lease.forget(node);
        }
        if let Some(run) = &mut self.run {
            run.forget(node);
        }
    }

    /// Handles a life that is present.
    fn welcome(&mut self, member: Member, was_listed: bool, cx: &mut Context<'_, Self>) {
        if let Some(leader) = &mut self.leader
            && leader.member == member
            && leader.lost
            // A lease that ran out is renewed by the leader alone.
            && leader.lease == Span::ZERO
        {
            leader.lost = false;
            leader.asked = 0;
            let leader = *leader;
            cx.disarm(Timer::Start);
            self.rejoin(leader, cx);
            cx.event(Event::Regained {
                leader: member,
                ballot: leader.ballot,
            });
        }
        if was_listed {
            self.prolong_announcement(member, cx);
        } else {
            self.announce_to_newcomer(member, cx);
        }
    }

    /// Ends all that depends on a dead life of the node `member`. A later life ends the former.
    fn look_for_the_gone(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(leader) = self.leader
            && leader.member.id == member.id
            && self.peers.has_ended(leader.member)
        {
            self.lose(cx);
        }
        self.drop_from_announcement(member.id, cx);
        self.drop_from_run(cx);
        if let Some(awaited) = self.awaited
            && self.peers.has_ended(awaited.initiator)
            && awaited.initiator.id == member.id
            && !self.rules.gives_up()
        {
            self.begin_soon(cx);
        }
    }

    /// Gives free places on the list to the nodes that have waited longest.
    fn give_place(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(member) = self.peers.next_in_turn() {
            self.remember(member, Standing::Listed);
            self.announce_to_newcomer(member, cx);
        }
    }
}
