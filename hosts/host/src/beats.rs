//! Heartbeats between peers, and the consequences.

use std::collections::BTreeMap;

use selvedge_core::{Delta, Member, NodeId, Span, Time, wire};
use serde::{Deserialize, Serialize};

/// The number of this host's own heartbeats after which a silent peer has failed. Heartbeats are
/// counted, and not time: a process that was suspended finds no peer failed for its own sleep.
pub(crate) const SILENT: u32 = 5;

/// The sender is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Here;

impl wire::Message for Here {
    const KIND: u8 = 10;

    fn encoded_len(&self) -> usize {
        0
    }
}

/// A heartbeat that is sent each period, and the listed peers from which datagrams came.
#[derive(Debug)]
pub(crate) struct Beats {
    period: Span,
    next: Time,
    seen: BTreeMap<NodeId, Seen>,
}

#[derive(Debug)]
struct Seen {
    /// In its latest life.
    member: Member,
    silent: u32,
}

impl Beats {
    pub(crate) const fn new(period: Span) -> Self {
        let seen = BTreeMap::new();
        Self {
            period,
            next: Time::ZERO,
            seen,
        }
    }

    /// When the next heartbeat is due.
    pub(crate) const fn next(&self) -> Time {
        self.next
    }

    /// A datagram of a listed peer came: the changes of membership that follow, in order.
    pub(crate) fn received(&mut self, from: Member) -> [Option<Delta>; 2] {
        let new = Seen {
            member: from,
            silent: 0,
        };
        let Some(seen) = self.seen.get_mut(&from.id) else {
            self.seen.insert(from.id, new);
            return [Some(Delta::Joined(from)), None];
        };
        let former = seen.member;
        if former.supersedes(from) {
            return [None; 2];
        }
        let silent = core::mem::replace(seen, new).silent;
        if former != from {
            [Some(Delta::Confirmed(former)), Some(Delta::Joined(from))]
        } else {
            [(silent >= SILENT).then_some(Delta::Refuted(from)), None]
        }
    }

    /// The peers that failed by now, if a heartbeat is due.
    pub(crate) fn beat(&mut self, now: Time) -> Option<Vec<Delta>> {
        if now < self.next {
            return None;
        }
        self.next = now + self.period;
        let mut failed = Vec::new();
        for seen in self.seen.values_mut() {
            seen.silent = seen.silent.saturating_add(1);
            if seen.silent == SILENT {
                failed.push(Delta::Failed(seen.member));
            }
        }
        Some(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_joins_fails_when_it_is_silent_is_refuted_and_begins_a_later_life() {
        let mut beats = Beats::new(Span::secs(1));
        let [first, later] = [0, 1].map(|life| Member::new(2, life));
        let joined = [Some(Delta::Joined(first)), None];
        assert_eq!(
            (beats.received(first), beats.received(first)),
            (joined, [None; 2])
        );
        let mut now = Time::ZERO;
        for nth in 1..=SILENT + 2 {
            let failed = match nth {
                SILENT => vec![Delta::Failed(first)],
                _ => vec![],
            };
            assert_eq!(beats.beat(now), Some(failed), "{nth}");
            assert_eq!(beats.beat(now), None);
            now = beats.next();
        }
        assert_eq!(beats.received(first), [Some(Delta::Refuted(first)), None]);
        let again = [Some(Delta::Confirmed(first)), Some(Delta::Joined(later))];
        assert_eq!(beats.received(later), again);
        // A datagram of the former life that was late.
        assert_eq!(beats.received(first), [None; 2]);
    }
}
