//! A group keeps its leader when it meets a leader that most nodes do not follow.
//!
//! # Argument
//!
//! A node that is cut off alone elects itself, by a later ballot than its former group has. When it
//! comes back, the later ballot would lead. So LEADER marks leaders without a majority of the nodes
//! that they know, and a group whose leader has a majority does not follow such a leader.
//! The order of ballots stays the same: the group's leader takes a ballot above the other one, and
//! announces it.
//!
//! 1. A leader is `few` from when its list has no majority of the nodes that are listed or declared
//!    failed, itself included, or is empty, until a majority of them has acknowledged it. Nodes that
//!    keep their leader do not acknowledge. So a leader that comes back stays `few`, however fast its
//!    list fills.
//! 2. A follower that receives a later ballot of a `few` leader forwards it to its own leader. That
//!    leader, if it is not `few`, takes a later ballot; else it follows and acknowledges, and the
//!    follower follows too. A leader that sends no answer is lost like any leader, or the other
//!    leader repeats its announcement.
//! 3. A node that elects is `few` if its list lacks such a majority at any moment of the run, or if
//!    its former leader was `few`. QUERY and APPOINT have the mark, and a node that keeps its leader
//!    answers both with LEADER, for any ballots. The initiator answers with its own leader if that
//!    leader has the later ballot, as in point 2; it ends its run when it follows.
//! 4. Only a leader that is not `few` takes a ballot in this way, and only above a ballot of a leader
//!    that is `few` or has failed. There are no more of these than elections, so ballots stop
//!    growing, and the largest leads.
//!
//! A node that comes back may also make others believe that the leader failed. So a node asks a
//! leader that was declared failed whether it leads, up to
//! [`Config::attempts`](crate::Config::attempts) times, and elects when no answer arrives within
//! [`Config::timeout`](crate::Config::timeout).
//!
//! Where both are `few`, or neither is, the larger ballot leads. An election that begins in the group
//! ends with the lowest node as before.

use alloc::sync::Arc;

use selvedge_core::{Context, Member, Span};

use crate::leadership::Leadership;
use crate::message::Message;
use crate::{Attribute, Ballot, Celect, Timer};

impl<A: Attribute> Celect<A> {
    /// Returns true if this node keeps its leader, although a `few` leader, or an election of a `few`
    /// node, has a later ballot.
    pub(crate) fn keeps_leader(&self, from: Member, other: Ballot) -> bool {
        let is_kept = |it: Leadership| {
            let is_of_other_run = it.ballot < other && !it.ballot.same_run(other);
            !it.few && (!it.lost || it.asked > 0) && is_of_other_run
        };
        // A leader that names another leader follows it. A node that elects, or gave way to another
        // initiator, awaits a later leader.
        self.config.keeps_leader()
            && self
                .leader
                .is_some_and(|it| is_kept(it) && it.member != from)
            && self.run.is_none()
            && self.awaited.is_none()
            && self.epoch < u64::MAX
    }

    /// Asks our leader whether it still leads; if we lead, takes a later ballot.
    pub(crate) fn contest(
        &mut self,
        from: Member,
        received: Leadership,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(leader) = self.leader else {
            debug_assert!(false, "a leader is kept");
            return;
        };
        if leader.member == self.me {
            self.counters.kept += 1;
            self.epoch = self.epoch.saturating_add(1);
            let ballot = Ballot {
                epoch: self.epoch,
                initiator: self.me,
                step: 0,
            };
            self.lead((ballot, false), Some(from), cx);
            return;
        }
        // A leader that has failed is not followed, with any answer.
        self.contested = Some(received).filter(|it| !it.lost);
        self.ask_about(received, cx);
    }

    /// Ends this node's election if the node was `few` and `leader` has a majority.
    pub(crate) fn rejoin(&mut self, leader: Leadership, cx: &mut Context<'_, Self>) {
        if !leader.few && self.run.as_ref().is_some_and(|it| it.few) {
            self.run = None;
            cx.disarm(Timer::Answer);
        }
    }

    /// Asks our leader, which was declared failed, before another one is elected: the report may come
    /// from a node that was cut off and believes that all others failed. Returns true if an answer is
    /// awaited.
    pub(crate) fn ask_leader(&mut self, cx: &mut Context<'_, Self>) -> bool {
        let waits =
            self.config.keeps_leader() && self.config.reelect && self.config.patience > Span::ZERO;
        let is_open = |it: &&mut Leadership| !it.few && !self.peers.is_over(it.member);
        let Some(leader) = self.leader.as_mut().filter(is_open).filter(|_| waits) else {
            return false;
        };
        leader.asked = leader.asked.saturating_add(1);
        let question = Leadership {
            lost: true,
            ..*leader
        };
        self.ask_about(question, cx);
        true
    }

    /// Handles an overdue leader. A leader that has answered and is still declared failed is asked
    /// again.
    pub(crate) fn on_watch(&mut self, cx: &mut Context<'_, Self>) {
        let has_ended = |it: Leadership| !it.lost && self.peers.has_ended(it.member);
        let is_idle = self.run.is_none() && self.awaited.is_none();
        if is_idle && self.leader.is_some_and(has_ended) && self.ask_leader(cx) {
            self.begin_soon(cx);
        } else {
            self.begin_if_missed(cx);
        }
    }

    /// Elects, unless the leader should be asked once more.
    pub(crate) fn on_start(&mut self, cx: &mut Context<'_, Self>) {
        let is_open = |it: Leadership| (1..self.config.attempts).contains(&it.asked);
        let is_idle = self.run.is_none() && self.awaited.is_none();
        let asks = is_idle && self.misses_leader() && self.leader.is_some_and(is_open);
        if asks && self.ask_leader(cx) {
            self.begin_soon(cx);
        } else {
            self.begin_if_missed(cx);
        }
    }

    /// Answers a node that believes us failed. Returns true if we lead.
    pub(crate) fn answer_that_we_lead(
        &self,
        to: Member,
        ballot: Ballot,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let leader = self.leader.filter(|_| self.leads() == Some(ballot));
        if let Some(leader) = leader.filter(|_| self.config.keeps_leader()) {
            self.send_leader(to, leader, cx);
        }
        leader.is_some()
    }

    /// Sends our leader the announcement `received`.
    fn ask_about(&self, received: Leadership, cx: &mut Context<'_, Self>) {
        let Some(leader) = self.leader else {
            return; // No node leads.
        };
        let question = Message::Leader {
            ballot: received.ballot,
            leader: received.member,
            renewal: received.renewal,
            lease: received.lease,
            state: received.state(),
            // We announced it to no node.
            covered: Arc::default(),
        };
        cx.send(leader.member, question);
    }

    /// Follows the other leader: our own has acknowledged it and no longer leads.
    pub(crate) fn give_up_contest(
        &mut self,
        from: Member,
        ballot: Ballot,
        cx: &mut Context<'_, Self>,
    ) {
        let is_ours = self.leader.is_some_and(|it| it.member == from);
        if let Some(received) = self.contested.filter(|it| is_ours && it.ballot == ballot) {
            self.contested = None;
            self.on_leader(from, (received, false), &[], cx);
        }
    }

    /// Checks if a majority of the nodes that we know follows us. The loss of a majority counts only
    /// after [`Config::patience`](crate::Config::patience): a node that comes back may report all
    /// others as failed. O(n) while this node leads.
    pub(crate) fn look_for_majority(&mut self, cx: &mut Context<'_, Self>) {
        let lacks_majority = self.lacks_majority();
        if let Some(run) = &mut self.run {
            run.few |= lacks_majority;
        }
        let Some(leader) = self.leader.filter(|_| self.leads().is_some()) else {
            return;
        };
        if !leader.firm && self.is_followed_by_majority() {
            self.leader = Some(Leadership {
                firm: true,
                ..leader
            });
            if leader.few {
                self.tell_majority(false, cx);
            }
        } else if leader.few {
            // It stays so until a majority has acknowledged it.
        } else if !self.lacks_majority() {
            cx.disarm(Timer::Majority);
        } else if !leader.firm || self.config.patience == Span::ZERO {
            self.tell_majority(true, cx);
        } else {
            cx.arm(Timer::Majority, self.config.patience);
        }
    }

    /// Marks this leader as `few` when its list has had no majority for
    /// [`Config::patience`](crate::Config::patience).
    pub(crate) fn on_few(&mut self, cx: &mut Context<'_, Self>) {
        let leads = self.leader.filter(|it| self.leads().is_some() && !it.few);
        if leads.is_some() && self.lacks_majority() {
            self.tell_majority(true, cx);
        }
    }

    /// Announces to the followers if a majority follows us.
    fn tell_majority(&mut self, few: bool, cx: &mut Context<'_, Self>) {
        let Some(leader) = &mut self.leader else {
            return; // No node leads.
        };
        leader.few = few;
        leader.firm &= !few;
        // With a lease the next renewal announces it.
        if self.lease.is_none() {
            leader.renewal = leader.renewal.wrapping_add(1);
            let leader = *leader;
            self.announce(leader, None, cx);
        }
    }

    /// Returns true if a majority of the nodes that we know has acknowledged us. O(n) if half of the
    /// list has.
    fn is_followed_by_majority(&self) -> bool {
        let awaited = self.announcement.as_ref().map_or(&[][..], |it| &it.awaited);
        if awaited.len() > self.peers.len() {
            return false;
        }
        let follows = |it: &Member| awaited.binary_search(it).is_err();
        self.config.keeps_leader() && self.is_majority(self.peers.iter().filter(follows).count())
    }

    /// Returns true if the list of this node has no majority of the nodes that it knows, or its
    /// leader's last announcement had the mark.
    pub(crate) fn is_of_few(&self) -> bool {
        let follows_few = self.leader.is_some_and(|it| it.few);
        self.lacks_majority() || self.config.keeps_leader() && follows_few
    }

    /// Returns true if our list has no majority of the nodes that we know.
    pub(crate) fn lacks_majority(&self) -> bool {
        self.config.keeps_leader() && !self.is_majority(self.peers.len())
    }

    /// Returns true if `others` other nodes and this one are more than half of the nodes that are
    /// listed or failed, and not this node alone.
    fn is_majority(&self, others: usize) -> bool {
        let known = self.peers.len() + self.peers.failed() + 1;
        others > 0 && (others + 1) * 2 > known
    }
}
