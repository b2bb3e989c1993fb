//! How all hear who leads: acknowledged, forwarded by those who know others than the leader does,
//! and renewed where there is a lease.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, Span};

use crate::machine::Leadership;
use crate::message::{FIXED_MAX_LEN, Members, Message, cut};
use crate::run::put;
use crate::{Attribute, Ballot, Celect, Timer};

/// Whom we tell, and who has not heard yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Telling {
    ballot: Ballot,
    renewal: u32,
    pub(crate) pending: Vec<Member>,
    /// How often it was sent again.
    tries: u8,
    /// Those who need not be told by others, as far as they fit a frame.
    told: Members,
    /// How many were told, and how many of them have heard: counted where there is a lease.
    asked: u16,
    heard: u16,
}

impl<A: Attribute> Celect<A> {
    /// We lead: tells all on our list, and who appointed us.
    pub(crate) fn tell_all(
        &mut self,
        leader: Leadership,
        by: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.retries == 0 {
            cx.multicast(Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                told: Members::new(),
            });
            return;
        }
        let mut pending: Vec<Member> = self.peers.iter().collect();
        if let Some(by) = by {
            put(&mut pending, by);
        }
        self.tell(leader, pending, &[], cx);
    }

    /// Tells those of our list whom neither the leader nor `from` told.
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
        let knows = |it: &Member| *it == from || *it == leader.member || told.contains(it);
        let pending = self.peers.iter().filter(|it| !knows(it)).collect();
        self.tell(leader, pending, told, cx);
    }

    fn tell(
        &mut self,
        leader: Leadership,
        pending: Vec<Member>,
        told: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        let mut budget = self.config.list_budget(FIXED_MAX_LEN);
        let mut all = pending.clone();
        told.iter().for_each(|&it| put(&mut all, it));
        let mut telling = Telling {
            ballot: leader.ballot,
            renewal: leader.renewal,
            told: cut(all, &mut budget),
            asked: 0,
            heard: 0,
            pending,
            tries: 0,
        };
        for &member in &telling.pending {
            cx.send(member, telling.message(leader.member));
        }
        if self.config.lease.is_some() {
            telling.asked = u16::try_from(telling.pending.len()).unwrap_or(u16::MAX);
        } else if telling.pending.is_empty() {
            self.telling = None;
            cx.disarm(Timer::Tell);
            return;
        }
        self.telling = Some(telling);
        cx.arm(Timer::Tell, self.config.resend);
    }

    /// Somebody came onto our list: if we lead it must hear so.
    pub(crate) fn tell_newcomer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if self.leads().is_none() || self.config.retries == 0 {
            return;
        }
        let Some(leader) = self.leader else {
            return;
        };
        match &mut self.telling {
            Some(telling) => {
                put(&mut telling.pending, member);
                telling.tries = 0;
                cx.send(member, telling.message(leader.member));
                cx.arm(Timer::Tell, self.config.resend);
            }
            None => self.tell(leader, [member].into(), &[], cx),
        }
    }

    /// Says who leads, once.
    pub(crate) fn say(&self, to: Member, leader: Leadership, cx: &mut Context<'_, Self>) {
        let told = self.peers.iter().chain([self.me]);
        let mut budget = self.config.list_budget(FIXED_MAX_LEN);
        cx.send(
            to,
            Message::Leader {
                ballot: leader.ballot,
                leader: leader.member,
                renewal: leader.renewal,
                told: cut(told, &mut budget),
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

    pub(crate) fn acknowledged(&mut self, from: Member, ballot: Ballot, renewal: u32) {
        let leased = self.config.lease.is_some();
        let Some(telling) = &mut self.telling else {
            return;
        };
        if (telling.ballot, telling.renewal) != (ballot, renewal) {
            return;
        }
        if let Ok(at) = telling.pending.binary_search(&from) {
            telling.pending.remove(at);
            if leased {
                telling.heard = telling.heard.saturating_add(1);
            } else if telling.pending.is_empty() {
                self.telling = None;
            }
        }
    }

    /// Whoever is gone need not hear.
    pub(crate) fn stop_telling(&mut self, cx: &mut Context<'_, Self>) {
        let Some(telling) = &mut self.telling else {
            return;
        };
        telling.pending.retain(|&it| !self.peers.is_gone(it));
        if telling.pending.is_empty() {
            cx.disarm(Timer::Tell);
            if self.config.lease.is_none() {
                self.telling = None;
            }
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
            if self.config.lease.is_none() {
                self.telling = None;
            }
            return;
        }
        telling.tries += 1;
        for &member in &telling.pending {
            cx.send(member, telling.message(leader.member));
        }
        cx.arm(Timer::Tell, self.config.resend);
    }

    /// The leader spoke: its lease begins again.
    pub(crate) fn renewed(&self, cx: &mut Context<'_, Self>) {
        if let Some(lease) = self.config.lease
            && self.leader().is_some()
        {
            cx.arm(Timer::Lease, lease);
        }
    }

    /// We lead, and a third of the lease has passed.
    pub(crate) fn renew(&mut self, cx: &mut Context<'_, Self>) {
        let (Some(lease), Some(_)) = (self.config.lease, self.leads()) else {
            return;
        };
        if let Some(telling) = &self.telling
            && telling.heard >= telling.asked.min(self.config.c.max(1))
        {
            // Counted from when that was sent, so that we end before those who heard it.
            let left = self.term(lease) - Self::third(lease);
            cx.arm(Timer::Lease, left);
        }
        let Some(leader) = &mut self.leader else {
            return;
        };
        leader.renewal = leader.renewal.wrapping_add(1);
        let leader = *leader;
        self.tell_all(leader, None, cx);
        cx.arm(Timer::Renew, Self::third(lease));
    }

    pub(crate) const fn third(lease: Span) -> Span {
        Span(lease.0 / 3)
    }

    /// How long a leader leads by its own clock: `drift` less than by its followers'.
    pub(crate) fn term(&self, lease: Span) -> Span {
        let slower = u128::from(lease.0) * u128::from(self.config.drift) / 1_000_000;
        Span(lease.0 - u64::try_from(slower).unwrap_or(lease.0))
    }
}

impl Telling {
    fn message(&self, leader: Member) -> Message {
        Message::Leader {
            ballot: self.ballot,
            leader,
            renewal: self.renewal,
            told: self.told.clone(),
        }
    }
}
