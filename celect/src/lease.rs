//! The lease: the time until which a leader leads, and at which its followers give it up.
//!
//! # Argument
//!
//! Let a follower give a leader up when it has received no renewal for a lease L by its own clock,
//! where L is the leader's setting and part of each LEADER. Let a leader use the shorter lease T = L
//! less [`Config::drift`](crate::Config::drift) by its own clock, so that T passes before L whenever
//! the rates of the two clocks differ by no more than the drift.
//!
//! 1. Renewal r is sent at s(r). Its expiry, a timer of its own, is armed *in that step*, for
//!    s(r) + T. Nothing moves it.
//! 2. A node that acknowledges r, or a later renewal, received it at s(r) or later, and gives the
//!    leader up at s(r) + T or later.
//! 3. An expiry is disarmed only when enough nodes have acknowledged a later renewal, which has its
//!    own expiry. So the leader has ended by s(r) + T, where r is the latest renewal that enough
//!    nodes have acknowledged: not later than any of these nodes gives it up.
//! 4. All of this depends on the time at which a renewal was *sent*, and not on timely steps. A late
//!    acknowledgement, a timer that ticks late, and a host that sleeps and then handles its overdue
//!    inputs in any order move none of these moments. If the host wakes later than s(r) + T the
//!    expiry ticks with the rest; until it has ticked, [`Celect::leads_until`] lies in the past.
//! 5. Until enough nodes have acknowledged the first renewal, which is the announcement itself, no
//!    node is known to follow. The leader announces itself, or no node would learn of it, but
//!    `leads_until` is `None`. So a node that reads its appointment late, when others have elected
//!    again, does not believe that it leads.
//!
//! Where c is 0 and no node is listed, a renewal is sent to no node and needs no acknowledgement.
//! Then the leader depends on no follower, and a follower that was falsely declared failed to it
//! gives it up while it leads. Every rule that lets the last node of a mesh lead has this weakness.
//!
//! The clock of a host may not run slower than the drift allows, and may not stop: a clock that
//! stands still while the host sleeps violates the assumption.
//!
//! Renewals are sent every third of T, so besides the latest at most three have not expired: that
//! bounds the timers. A leader that has four on their way when the next is due has ended.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Context, Incarnation, Member, NodeId, Span, Time, Untracked};

use crate::config::MILLION;
use crate::leadership::Leadership;
use crate::{Attribute, Ballot, Celect, Event, Timer};

/// The largest number of renewals on their way, with the renewal that enough nodes acknowledged.
const ON_THE_WAY: usize = 4;

/// The renewals of this node's own lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    /// Renewals with an armed expiry, in order. Enough nodes have acknowledged the first renewal, or
    /// it is the announcement.
    sent: Vec<Sent>,
    /// The last renewal that each node has acknowledged. All lives of a node count as one.
    acknowledged: BoundedMap<NodeId, (Incarnation, u32)>,
    /// The time until which enough nodes follow. The timers decide; this is for the host.
    until: Untracked<Option<Time>>,
}

/// A renewal on its way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent {
    renewal: u32,
    /// True if it was sent to any node.
    is_sent: bool,
    /// The number of nodes that have acknowledged it, or a later renewal.
    received: usize,
    over: Untracked<Time>,
}

impl Sent {
    /// The timer of its expiry.
    const fn timer(&self) -> Timer {
        Timer::Expiry((self.renewal % ON_THE_WAY as u32) as u8)
    }
}

impl Lease {
    /// Returns a lease without renewals. It counts as many followers as nodes can be remembered, plus
    /// the initiator.
    const fn new(peer_limit: usize, until: Untracked<Option<Time>>) -> Self {
        Self {
            sent: Vec::new(),
            acknowledged: BoundedMap::new(peer_limit.saturating_mul(2).saturating_add(3)),
            until,
        }
    }

    /// The number of renewals on their way, and of nodes that acknowledged any of them.
    #[cfg(feature = "check")]
    pub(crate) fn sizes(&self) -> (usize, usize) {
        (self.sent.len(), self.acknowledged.len())
    }

    /// Returns true if `follower` acknowledged a renewal that has not expired.
    #[cfg(feature = "check")]
    pub(crate) fn rests_on(&self, follower: Member) -> bool {
        let acknowledged = self.acknowledged.get(&follower.id);
        acknowledged.is_some_and(|&(life, renewal)| {
            life == follower.incarnation && self.position(renewal).is_some()
        })
    }

    fn is_full(&self) -> bool {
        self.sent.len() >= ON_THE_WAY
    }

    fn position(&self, renewal: u32) -> Option<usize> {
        self.sent.iter().position(|it| it.renewal == renewal)
    }

    /// Counts the acknowledgement of a renewal by `from`, and returns the renewal's position.
    /// O(log n).
    fn acknowledge(&mut self, from: Member, renewal: u32) -> Option<usize> {
        let at = self.position(renewal)?;
        let before = self.acknowledged.get(&from.id);
        let before = before.and_then(|&(_, it)| self.position(it));
        let first = before.map_or(0, |it| it + 1);
        if first <= at {
            let acknowledged = (from.incarnation, renewal);
            let taken = self.acknowledged.insert(from.id, acknowledged);
            debug_assert!(taken.is_ok(), "{from} was notified and is not remembered");
            // An acknowledgement that is not remembered could count twice, so it must not count.
            taken.ok()?;
            let received = self.sent.iter_mut().take(at + 1).skip(first);
            received.for_each(|it| it.received += 1);
        }
        Some(at)
    }

    /// Drops the acknowledgements of a node that is forgotten, which could count twice if it came
    /// back. O(log n).
    pub(crate) fn forget(&mut self, node: NodeId) {
        let acknowledged = self.acknowledged.remove(&node);
        if let Some(at) = acknowledged.and_then(|(_, it)| self.position(it)) {
            let received = self.sent.iter_mut().take(at + 1);
            received.for_each(|it| it.received = it.received.saturating_sub(1));
        }
    }

    /// Finds the latest renewal, up to position `last`, that c nodes have acknowledged, and at least
    /// one if it was sent to any. It takes the place of the renewals before it, whose expiries are
    /// disarmed.
    fn settle<A: Attribute>(&mut self, last: usize, c: usize, cx: &mut Context<'_, Celect<A>>) {
        let is_enough = |it: &Sent| it.received >= c.max(it.is_sent.into());
        let sent = self.sent.iter().take(last.saturating_add(1));
        if let Some(at) = sent.clone().rposition(is_enough) {
            *self.until = self.sent.get(at).map(|it| *it.over);
            for it in self.sent.drain(..at) {
                cx.disarm(it.timer());
            }
        }
    }

    fn disarm<A: Attribute>(&self, cx: &mut Context<'_, Celect<A>>) {
        for sent in &self.sent {
            cx.disarm(sent.timer());
        }
    }

    /// Forgets the acknowledgements of renewals that have expired. O(n log n).
    fn tidy(&mut self) {
        let sent = &self.sent;
        let is_sent = |renewal: u32| sent.iter().any(|it| it.renewal == renewal);
        self.acknowledged
            .retain(|_, (_, renewal)| is_sent(*renewal));
    }

    /// The nodes that acknowledged a renewal that has not expired.
    fn followers(&self) -> impl Iterator<Item = Member> + '_ {
        let member = |(&id, &(incarnation, _))| Member { id, incarnation };
        self.acknowledged.iter().map(member)
    }
}

impl<A: Attribute> Celect<A> {
    /// Returns the time until which this node leads, by the clock that its host gives the driver.
    /// `None` when it does not lead, and until enough nodes have acknowledged it for the first time; a
    /// moment in the past when its lease has expired and the timer has not ticked yet. Without
    /// [`Config::lease`](crate::Config::lease) it is the largest [`Time`].
    ///
    /// A host that writes as the leader checks this time right before, and sends its
    /// [ballot](Self::leads) with each write. The ballot lets the resource refuse a write that was
    /// delayed too long, or that an election has overtaken.
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        self.leads()?;
        match (&self.lease, self.config.lease) {
            (Some(lease), Some(_)) => *lease.until,
            (None, Some(_)) => None,
            (_, None) => Some(Time(u64::MAX)),
        }
    }

    /// Begins the lease of a new ballot, by which we lead and which is announced now.
    pub(crate) fn begin_lease(&mut self, is_sent: bool, cx: &mut Context<'_, Self>) {
        let before = self.lease.take();
        if let Some(before) = &before {
            before.disarm(cx);
        }
        if self.config.lease.is_none() {
            return;
        }
        // The followers by an earlier ballot still follow us.
        let until = before.map(|it| it.until).unwrap_or_default();
        self.lease = Some(Lease::new(self.config.peer_limit as usize, until));
        self.send_renewal(0, is_sent, cx);
        // A node that knows no other node needs no acknowledgement.
        self.settle_lease(usize::MAX, cx);
    }

    /// Records the renewal that is sent now.
    fn send_renewal(&mut self, renewal: u32, is_sent: bool, cx: &mut Context<'_, Self>) {
        let Some(span) = self.config.lease else {
            return; // Without a lease nothing is renewed.
        };
        let term = self.term(span);
        if let Some(lease) = &mut self.lease {
            let sent = Sent {
                renewal,
                is_sent,
                received: 0,
                over: Untracked(cx.now() + term),
            };
            cx.arm(sent.timer(), term);
            lease.sent.push(sent);
        }
        cx.arm(Timer::Renew, Span(term.0 / 3));
    }

    /// Returns the length of the lease by the leader's own clock: `drift` less than by its followers'
    /// clocks.
    fn term(&self, lease: Span) -> Span {
        let (drift, million) = (u64::from(self.config.drift), u64::from(MILLION));
        // In two parts, so that 64 bits are enough.
        let slower = lease.0 / million * drift + lease.0 % million * drift / million;
        Span(lease.0.saturating_sub(slower))
    }

    /// Handles the acknowledgement of our renewal.
    pub(crate) fn on_renewal_ack(
        &mut self,
        from: Member,
        ballot: Ballot,
        renewal: u32,
        cx: &mut Context<'_, Self>,
    ) {
        if self.leads() != Some(ballot) {
            return;
        }
        let lease = self.lease.as_mut();
        if let Some(at) = lease.and_then(|it| it.acknowledge(from, renewal)) {
            self.settle_lease(at, cx);
        }
    }

    fn settle_lease(&mut self, last: usize, cx: &mut Context<'_, Self>) {
        let c = usize::from(self.bound().0);
        if let Some(lease) = &mut self.lease {
            lease.settle(last, c, cx);
        }
    }

    /// Renews our lease, a third of it after the last renewal. All followers receive it, also followers
    /// that our list lacks.
    pub(crate) fn on_renew(&mut self, cx: &mut Context<'_, Self>) {
        if self.leads().is_none() || self.lease.is_none() {
            return;
        }
        // A renewal that was sent to no node counts only at the next one: a host that slept must not
        // renew an expired lease in one step.
        self.settle_lease(usize::MAX, cx);
        if self.lease.as_ref().is_some_and(Lease::is_full) {
            self.end(cx);
            return;
        }
        if let Some(lease) = &mut self.lease {
            lease.tidy();
        }
        let Some(leader) = &mut self.leader else {
            return; // A stray tick.
        };
        leader.renewal = leader.renewal.wrapping_add(1);
        let leader = *leader;
        let followers = self.lease.iter().flat_map(Lease::followers);
        let unlisted =
            followers.filter(|&it| !self.peers.is_listed(it) && !self.peers.has_ended(it));
        let listed = self.peers.len();
        let room = (self.config.peer_limit as usize + 1).saturating_sub(listed);
        let unlisted: Vec<Member> = unlisted.take(room).collect();
        let is_sent = self.announce(leader, unlisted, cx);
        self.send_renewal(leader.renewal, is_sent, cx);
    }

    /// Begins the lease of the leader that we follow again, as it has sent LEADER.
    pub(crate) fn renewed(&self, cx: &mut Context<'_, Self>) {
        match self.leader {
            Some(leader) if leader.lost => {}
            Some(leader) if leader.lease > Span::ZERO => cx.arm(Timer::Lease, leader.lease),
            Some(_) | None => cx.disarm(Timer::Lease),
        }
    }

    /// Gives up the leader that we follow: it sent no renewal for a lease.
    pub(crate) fn on_lease_over(&mut self, cx: &mut Context<'_, Self>) {
        let follows = |it: &&mut Leadership| !it.lost && it.member != self.me;
        let Some(leader) = self.leader.as_mut().filter(follows) else {
            return; // It is lost already, or this node leads.
        };
        leader.lost = true;
        let event = Event::LeaseExpired {
            leader: leader.member,
            ballot: leader.ballot,
        };
        self.forget_leader(cx);
        cx.event(event);
        if self.config.reelect {
            self.begin_soon(cx);
        }
    }

    /// Ends our lease if a renewal has expired and too few nodes have acknowledged a later renewal.
    pub(crate) fn on_expiry(&mut self, slot: u8, cx: &mut Context<'_, Self>) {
        let is_it = |it: &Sent| it.timer() == Timer::Expiry(slot);
        let lease = self.lease.as_ref();
        if lease.is_some_and(|it| it.sent.iter().any(is_it)) {
            self.end(cx);
        }
    }

    /// Ends our lease.
    fn end(&mut self, cx: &mut Context<'_, Self>) {
        let Some(ballot) = self.leads() else {
            return; // It has ended already.
        };
        if let Some(leader) = &mut self.leader {
            leader.lost = true;
        }
        self.forget_leader(cx);
        self.stop_leading(cx);
        // A node that received LEADER only now would follow us for a lease.
        self.end_announcement(cx);
        cx.event(Event::Ended(ballot));
        // The nodes that could elect another leader may have forgotten us.
        if self.config.reelect {
            self.watch(cx);
        }
    }

    /// Ends the work of a leader.
    pub(crate) fn stop_leading(&mut self, cx: &mut Context<'_, Self>) {
        if let Some(lease) = self.lease.take() {
            lease.disarm(cx);
        }
        cx.disarm(Timer::Renew);
        cx.disarm(Timer::Majority);
        cx.disarm(Timer::Measure);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn sent(renewal: u32) -> Sent {
        Sent {
            renewal,
            is_sent: true,
            received: 0,
            over: Untracked(Time::ZERO),
        }
    }

    /// Nodes that are forgotten and come back within one renewal.
    #[test]
    fn who_is_forgotten_takes_no_memory_and_counts_once() {
        let mut lease = Lease::new(3, Untracked(None));
        lease.sent.extend([sent(0), sent(1)]);
        let received =
            |it: &Lease| -> Vec<usize> { it.sent.iter().map(|it| it.received).collect() };
        let [one, two, three] = [1, 2, 3].map(|id| Member::new(id, 0));
        lease.acknowledge(one, 1);
        lease.acknowledge(two, 0);
        assert_eq!(received(&lease), [2, 1]);
        for _ in 0..3 {
            lease.forget(one.id);
            lease.forget(three.id);
            assert_eq!(received(&lease), [1, 0]);
            assert_eq!(lease.acknowledged.len(), 1);
            lease.acknowledge(one, 1);
        }
        assert_eq!(received(&lease), [2, 1]);
        // A renewal that has expired no longer counts.
        lease.sent.remove(0);
        lease.forget(two.id);
        assert_eq!(received(&lease), [1]);
    }
}
