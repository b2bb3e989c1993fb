//! How all nodes hear who leads: LEADER is acknowledged, and forwarded by nodes that know others
//! than the leader does.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::iter;

use selvedge_core::{Context, Incarnation, Member, NodeId};

use crate::machine::Leadership;
use crate::message::{LEADER_MAX_LEN, Message, cut};
use crate::{Attribute, Ballot, Celect, Timer};

/// The nodes that this node tells, and the nodes that have not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Telling {
    ballot: Ballot,
    renewal: u32,
    pub(crate) pending: BTreeSet<Member>,
    /// How often LEADER was sent again.
    tries: u8,
    /// LEADER was sent often enough. A node that has not heard is told when there is news of it.
    pub(crate) is_given_up: bool,
    /// The nodes that need not be told by others, as far as they fit a frame.
    told: Arc<[Member]>,
}

impl<A: Attribute> Celect<A> {
    /// We lead: tells all nodes on our list, and `besides`. Returns whether that is any node.
    pub(crate) fn tell_all(
        &mut self,
        leader: Leadership,
        besides: impl IntoIterator<Item = Member>,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let mut pending: BTreeSet<Member> = self.peers.iter().collect();
        pending.extend(besides);
        let is_told = !pending.is_empty();
        if self.config.retries == 0 {
            cx.multicast(Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                lease: leader.lease,
                gone: leader.lost,
                told: Arc::default(),
            });
        } else {
            self.tell(leader, pending, &[], cx);
        }
        is_told
    }

    /// Tells the nodes on our list that neither the leader nor `from` told. O(N), once a ballot and
    /// renewal: a node that a list does not name is found in no other way.
    pub(crate) fn pass_on(
        &mut self,
        leader: Leadership,
        from: Member,
        told: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.retries == 0 {
            return;
        }
        // Every sound node sends the list in order.
        let told = if told.is_sorted_by(|one, other| one < other) {
            Cow::Borrowed(told)
        } else {
            let told: BTreeSet<Member> = told.iter().copied().collect();
            Cow::Owned(told.into_iter().collect())
        };
        let mut others = told.iter().peekable();
        let pending = self.peers.iter().filter(|it| {
            while others.next_if(|&told| told < it).is_some() {}
            others.peek() != Some(&it) && *it != from && *it != leader.member
        });
        let pending = pending.collect();
        self.tell(leader, pending, &told, cx);
    }

    /// Tells `pending`; the nodes in `told` are told by others, and are in order.
    fn tell(
        &mut self,
        leader: Leadership,
        pending: BTreeSet<Member>,
        told: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        if pending.is_empty() {
            self.tell_no_longer(cx);
            return;
        }
        let mut room = self.config.list_room(LEADER_MAX_LEN);
        let all = union(pending.iter().copied(), told.iter().copied());
        let telling = Telling {
            ballot: leader.ballot,
            renewal: leader.renewal,
            told: cut(all, &mut room),
            pending,
            tries: 0,
            is_given_up: false,
        };
        for &member in &telling.pending {
            cx.send(member, telling.message(leader));
        }
        self.telling = Some(telling);
        cx.arm(Timer::Tell, self.config.resend);
    }

    /// There is no node to tell, or nothing to tell.
    pub(crate) fn tell_no_longer(&mut self, cx: &mut Context<'_, Self>) {
        self.telling = None;
        cx.disarm(Timer::Tell);
    }

    /// A node came onto our list and must hear who leads. The leader tells it. As it may be missing
    /// from the leader's list, the nodes that are among the c + f + 2 lowest on their own lists
    /// tell it too; the leader mostly is among these. At most f of the lowest are dead, and c lack
    /// the newcomer.
    pub(crate) fn tell_newcomer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let last = usize::from(self.tolerates().0) + usize::from(self.config.f) + 1;
        if self.leads().is_some() || self.peers.owner_at() <= last {
            self.tell_one(member, cx);
        }
    }

    fn tell_one(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let is_present = |it: &Leadership| !it.lost && !self.peers.is_gone(it.member);
        let Some(leader) = self.leader.filter(is_present) else {
            return;
        };
        if leader.member == member || self.config.retries == 0 {
            return;
        }
        if !self.peers.is_listed(member) {
            // Only nodes on the list are waited for: they are bounded.
            self.say(member, leader, cx);
            return;
        }
        match &mut self.telling {
            Some(telling) => {
                // Others that wait must not wait longer for each newcomer.
                let is_armed = !telling.pending.is_empty() && !telling.is_given_up;
                telling.pending.insert(member);
                telling.tries = 0;
                telling.is_given_up = false;
                cx.send(member, telling.message(leader));
                if !is_armed {
                    cx.arm(Timer::Tell, self.config.resend);
                }
            }
            None => {
                let told: BTreeSet<Member> = self.peers.iter().chain([self.me]).collect();
                let told: Vec<Member> = told.into_iter().collect();
                self.tell(leader, BTreeSet::from([member]), &told, cx);
            }
        }
    }

    /// A node on our list is alive: if it has not heard who leads, it is told for longer. What
    /// others wait for is not put off.
    pub(crate) fn tell_longer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let Some(telling) = &mut self.telling else {
            return;
        };
        if !telling.pending.contains(&member) {
            return;
        }
        if telling.is_given_up {
            self.tell_one(member, cx);
        } else {
            telling.tries = 0;
        }
    }

    /// Says who leads, once.
    pub(crate) fn say(&self, to: Member, leader: Leadership, cx: &mut Context<'_, Self>) {
        let told = self.peers.iter().chain([self.me]);
        let mut room = self.config.list_room(LEADER_MAX_LEN);
        cx.send(
            to,
            Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                lease: leader.lease,
                gone: leader.lost,
                told: cut(told, &mut room),
            },
        );
    }

    pub(crate) fn acknowledge(
        &self,
        to: Member,
        ballot: Ballot,
        renewal: u32,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.retries > 0 {
            cx.send(to, Message::Heard { ballot, renewal });
        }
    }

    pub(crate) fn acknowledged(
        &mut self,
        from: Member,
        ballot: Ballot,
        renewal: u32,
        cx: &mut Context<'_, Self>,
    ) {
        let mut was_told = false;
        if let Some(telling) = &mut self.telling
            && (telling.ballot, telling.renewal) == (ballot, renewal)
        {
            was_told = telling.pending.remove(&from);
            if telling.pending.is_empty() {
                self.telling = None;
            }
        }
        // The acknowledgement of a node that was told earlier may be late. Other nodes are not
        // counted, as they are not bounded.
        if was_told || self.peers.is_listed(from) {
            self.renewal_heard(from, ballot, renewal, cx);
        }
    }

    /// Lives of the node `id` that are gone need not hear.
    pub(crate) fn stop_telling(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let Some(telling) = &mut self.telling else {
            return;
        };
        let life = |life| Member {
            id,
            incarnation: Incarnation(life),
        };
        let lives = || life(0)..=life(u32::MAX);
        let is_gone = |it: &&Member| self.peers.is_gone(**it);
        while let Some(&gone) = telling.pending.range(lives()).find(is_gone) {
            telling.pending.remove(&gone);
        }
        if telling.pending.is_empty() {
            self.tell_no_longer(cx);
        }
    }

    pub(crate) fn tell_again(&mut self, cx: &mut Context<'_, Self>) {
        let (Some(telling), Some(leader)) = (&mut self.telling, self.leader) else {
            return;
        };
        if telling.pending.is_empty() {
            return;
        }
        if telling.tries >= self.config.retries {
            self.counters.unheard += telling.pending.len() as u64;
            telling.is_given_up = true;
            return;
        }
        telling.tries += 1;
        for &member in &telling.pending {
            cx.send(member, telling.message(leader));
        }
        cx.arm(Timer::Tell, self.config.resend);
    }
}

impl Telling {
    fn message(&self, leader: Leadership) -> Message {
        Message::Leader {
            ballot: self.ballot,
            leader: leader.member,
            renewal: self.renewal,
            lease: leader.lease,
            gone: leader.lost,
            told: self.told.clone(),
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
