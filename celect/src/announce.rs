//! The announcement of a leader: LEADER is acknowledged, and forwarded by nodes that know other nodes
//! than the leader does.
//!
//! LEADER names its receivers, and a node forwards it to the nodes of its list that are not named.
//! So with lists that hardly differ it is sent once to each node.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::iter;

use selvedge_core::{Context, Member, NodeId, Pending};

use crate::leadership::Leadership;
use crate::message::{LEADER_MAX_LEN, Message, cut};
use crate::sorted;
use crate::{Attribute, Ballot, Celect, Timer};

/// An announcement by this node, and the nodes that have not acknowledged it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Announcement {
    /// The ballot and the renewal in LEADER, and the number of repeats.
    leader: Pending<(Ballot, u32)>,
    /// The nodes that have not acknowledged it, in order. A lookup is O(log n), and a removal moves
    /// the nodes behind.
    pub(crate) awaited: Vec<Member>,
    /// True if all repeats were sent. A node in `awaited` gets more when there is news of it.
    pub(crate) is_given_up: bool,
    /// The nodes to which others need not forward LEADER, as far as they fit a frame.
    covered: Arc<[Member]>,
}

impl<A: Attribute> Celect<A> {
    /// Announces this node as leader to all nodes on its list, and to `besides`. Returns true if that
    /// is any node.
    pub(crate) fn announce(
        &mut self,
        leader: Leadership,
        besides: impl IntoIterator<Item = Member>,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let mut awaited: Vec<Member> = self.peers.iter().collect();
        for member in besides {
            sorted::insert(&mut awaited, member);
        }
        let is_sent = !awaited.is_empty();
        if self.config.retries == 0 {
            cx.multicast(Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                lease: leader.lease,
                state: leader.state(),
                covered: Arc::default(),
            });
        } else {
            self.begin_announcement(leader, awaited, &[], cx);
        }
        is_sent
    }

    /// Forwards LEADER to the nodes on our list to which neither the leader nor `from` sent it. O(N),
    /// once per ballot and renewal: a node that a list does not name is found in no other way.
    pub(crate) fn pass_on(
        &mut self,
        leader: Leadership,
        from: Member,
        covered: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.retries == 0 {
            return;
        }
        // Every correct node sends the list in order.
        let covered = if covered.is_sorted_by(|one, other| one < other) {
            Cow::Borrowed(covered)
        } else {
            let mut in_order = Vec::new();
            for &member in covered {
                sorted::insert(&mut in_order, member);
            }
            Cow::Owned(in_order)
        };
        let mut others = covered.iter().peekable();
        let awaited = self.peers.iter().filter(|it| {
            while others.next_if(|&covered| covered < it).is_some() {}
            others.peek() != Some(&it) && *it != from && *it != leader.member
        });
        let awaited = awaited.collect();
        self.begin_announcement(leader, awaited, &covered, cx);
    }

    /// Sends LEADER to `awaited`, which are in order. Others send it to the nodes in `covered`, which
    /// are in order.
    fn begin_announcement(
        &mut self,
        leader: Leadership,
        awaited: Vec<Member>,
        covered: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        if awaited.is_empty() {
            self.end_announcement(cx);
            return;
        }
        let mut room = self.config.list_room(LEADER_MAX_LEN);
        let all = union(awaited.iter().copied(), covered.iter().copied());
        let announcement = Announcement {
            leader: Pending::new((leader.ballot, leader.renewal)),
            covered: cut(all, &mut room),
            awaited,
            is_given_up: false,
        };
        for &member in &announcement.awaited {
            cx.send(member, announcement.message(leader));
        }
        self.announcement = Some(announcement);
        cx.arm(Timer::Resend, self.config.resend);
    }

    /// Ends the announcement.
    pub(crate) fn end_announcement(&mut self, cx: &mut Context<'_, Self>) {
        self.announcement = None;
        cx.disarm(Timer::Resend);
    }

    /// Notifies a node that came onto our list of the leader. The leader does this. As the node may
    /// be missing from the leader's list, the nodes that are among the c + f + 2 lowest on their own
    /// lists do it too; the leader mostly is among these. At most f of the lowest are dead, and c
    /// lack the newcomer.
    pub(crate) fn announce_to_newcomer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let last = usize::from(self.bound().0) + usize::from(self.config.failures) + 1;
        if self.leads().is_some() || self.peers.owner_at() <= last {
            self.announce_to(member, cx);
        }
    }

    fn announce_to(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let is_present = |it: &Leadership| !it.lost && !self.peers.has_ended(it.member);
        let Some(leader) = self.leader.filter(is_present) else {
            return; // No known node leads.
        };
        if leader.member == member || self.config.retries == 0 {
            return;
        }
        if !self.peers.is_listed(member) {
            // Only nodes on the list are awaited: their number is bounded.
            self.send_leader(member, leader, cx);
            return;
        }
        match &mut self.announcement {
            Some(announcement) => {
                // A newcomer does not postpone the repeats for the other nodes.
                let is_armed = !announcement.is_given_up;
                sorted::insert(&mut announcement.awaited, member);
                announcement.leader.renew();
                announcement.is_given_up = false;
                cx.send(member, announcement.message(leader));
                if !is_armed {
                    cx.arm(Timer::Resend, self.config.resend);
                }
            }
            None => {
                let mut covered: Vec<Member> = self.peers.iter().collect();
                sorted::insert(&mut covered, self.me);
                self.begin_announcement(leader, vec![member], &covered, cx);
            }
        }
    }

    /// Repeats LEADER for longer, because `member`, a node on our list, is alive and may not have
    /// acknowledged it. The repeats for others are not postponed.
    pub(crate) fn prolong_announcement(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let Some(announcement) = &mut self.announcement else {
            return; // All have acknowledged.
        };
        if announcement.awaited.binary_search(&member).is_err() {
            return; // It has acknowledged.
        }
        if announcement.is_given_up {
            self.announce_to(member, cx);
        } else {
            announcement.leader.renew();
        }
    }

    /// Sends LEADER once.
    pub(crate) fn send_leader(&self, to: Member, leader: Leadership, cx: &mut Context<'_, Self>) {
        let covered = self.peers.iter().chain([self.me]);
        let mut room = self.config.list_room(LEADER_MAX_LEN);
        cx.send(
            to,
            Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                lease: leader.lease,
                state: leader.state(),
                covered: cut(covered, &mut room),
            },
        );
    }

    pub(crate) fn send_leader_ack(
        &self,
        to: Member,
        ballot: Ballot,
        renewal: u32,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.retries > 0 {
            cx.send(to, Message::LeaderAck { ballot, renewal });
        }
    }

    pub(crate) fn on_leader_ack(
        &mut self,
        from: Member,
        ballot: Ballot,
        renewal: u32,
        cx: &mut Context<'_, Self>,
    ) {
        let mut was_awaited = false;
        if let Some(announcement) = &mut self.announcement
            && announcement.leader.is_answered_by(&(ballot, renewal))
        {
            was_awaited = sorted::remove(&mut announcement.awaited, &from);
            if announcement.awaited.is_empty() {
                self.announcement = None;
            }
        }
        // The acknowledgement of an earlier LEADER may be late. Nodes off the list are not counted,
        // as their number is not bounded.
        if was_awaited || self.peers.is_listed(from) {
            self.on_renewal_ack(from, ballot, renewal, cx);
        }
        self.look_for_majority(cx);
        self.give_up_contest(from, ballot, cx);
    }

    /// Drops dead lives of the node `id` from the announcement.
    pub(crate) fn drop_from_announcement(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(announcement) = &mut self.announcement else {
            return; // All have acknowledged.
        };
        let awaited = &mut announcement.awaited;
        let mut at = awaited.partition_point(|it| it.id < id);
        while let Some(&member) = awaited.get(at).filter(|it| it.id == id) {
            if self.peers.has_ended(member) {
                awaited.remove(at);
            } else {
                at += 1;
            }
        }
        if awaited.is_empty() {
            self.end_announcement(cx);
        }
    }

    pub(crate) fn on_resend(&mut self, cx: &mut Context<'_, Self>) {
        let (Some(announcement), Some(leader)) = (&mut self.announcement, self.leader) else {
            return; // The last acknowledgement leaves the timer armed.
        };
        if !announcement.leader.again(self.config.retries) {
            self.counters.unanswered += announcement.awaited.len() as u64;
            announcement.is_given_up = true;
            return;
        }
        for &member in &announcement.awaited {
            cx.send(member, announcement.message(leader));
        }
        cx.arm(Timer::Resend, self.config.resend);
    }
}

impl Announcement {
    fn message(&self, leader: Leadership) -> Message {
        let &(ballot, renewal) = self.leader.question();
        Message::Leader {
            ballot,
            leader: leader.member,
            renewal,
            lease: leader.lease,
            state: leader.state(),
            covered: self.covered.clone(),
        }
    }
}

/// Returns all members of two ordered lists, each once and in order.
fn union(
    one: impl Iterator<Item = Member>,
    other: impl Iterator<Item = Member>,
) -> impl Iterator<Item = Member> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    iter::from_fn(move || {
        let order = match (one.peek(), other.peek()) {
            (Some(first), Some(second)) => first.cmp(second),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match order {
            Ordering::Less => one.next(),
            Ordering::Greater => other.next(),
            Ordering::Equal => {
                other.next();
                one.next()
            }
        }
    })
}
