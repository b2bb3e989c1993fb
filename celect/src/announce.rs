//! How all nodes hear who leads: LEADER is acknowledged, and forwarded by nodes that know others
//! than the leader does.
//!
//! LEADER names its receivers, and a node forwards it to the nodes of its list that are not named. So with
//! lists that hardly differ it is sent once to each node.

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

/// The nodes that this node tells, and the nodes that have not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Announcement {
    /// The ballot and the renewal that LEADER says, and how often it was sent again.
    leader: Pending<(Ballot, u32)>,
    /// The nodes that have not acknowledged it, in order. To look one up takes O(log n), and to
    /// take it out moves those behind it.
    pub(crate) awaited: Vec<Member>,
    /// LEADER was sent often enough. A node that has not heard is told when there is news of it.
    pub(crate) is_given_up: bool,
    /// The nodes that others need not tell, as far as they fit a frame.
    covered: Arc<[Member]>,
}

impl<A: Attribute> Celect<A> {
    /// We lead: tells all nodes on our list, and `besides`. Returns whether that is any node.
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

    /// Tells the nodes on our list that neither the leader nor `from` told. O(N), once a ballot and
    /// renewal: a node that a list does not name is found in no other way.
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
        // Every sound node sends the list in order.
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

    /// Tells `awaited`, which are in order. Others tell the nodes in `covered`, which are in order.
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

    /// There is no node to tell, or nothing to tell.
    pub(crate) fn end_announcement(&mut self, cx: &mut Context<'_, Self>) {
        self.announcement = None;
        cx.disarm(Timer::Resend);
    }

    /// A node came onto our list and must hear who leads. The leader tells it. As it may be missing
    /// from the leader's list, the nodes that are among the c + f + 2 lowest on their own lists
    /// tell it too; the leader mostly is among these. At most f of the lowest are dead, and c lack
    /// the newcomer.
    pub(crate) fn announce_to_newcomer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let last = usize::from(self.tolerates().0) + usize::from(self.config.f) + 1;
        if self.leads().is_some() || self.peers.owner_at() <= last {
            self.announce_to(member, cx);
        }
    }

    fn announce_to(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let is_present = |it: &Leadership| !it.lost && !self.peers.is_gone(it.member);
        let Some(leader) = self.leader.filter(is_present) else {
            return; // No node leads, as far as is known.
        };
        if leader.member == member || self.config.retries == 0 {
            return;
        }
        if !self.peers.is_listed(member) {
            // Only nodes on the list are waited for: they are bounded.
            self.send_leader(member, leader, cx);
            return;
        }
        match &mut self.announcement {
            Some(announcement) => {
                // Others that wait must not wait longer for each newcomer.
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

    /// A node on our list is alive: if it has not heard who leads, it is told for longer. What
    /// others wait for is not put off.
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

    /// Says who leads, once.
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
        // The acknowledgement of a node that was told earlier may be late. Other nodes are not
        // counted, as they are not bounded.
        if was_awaited || self.peers.is_listed(from) {
            self.on_renewal_ack(from, ballot, renewal, cx);
        }
        self.look_for_majority(cx);
        self.give_up_contest(from, ballot, cx);
    }

    /// Lives of the node `id` that are gone need not hear.
    pub(crate) fn drop_from_announcement(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(announcement) = &mut self.announcement else {
            return; // All have acknowledged.
        };
        let awaited = &mut announcement.awaited;
        let mut at = awaited.partition_point(|it| it.id < id);
        while let Some(&member) = awaited.get(at).filter(|it| it.id == id) {
            if self.peers.is_gone(member) {
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
            self.counters.unheard += announcement.awaited.len() as u64;
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

/// All members of two lists that are in order, each once and in order.
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
