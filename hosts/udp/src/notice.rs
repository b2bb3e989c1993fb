//! Two processes with one id, in a sealed mesh: how both detect each other.
//!
//! A node that knows the later start of a node refuses all datagrams of the earlier one, unread. So
//! the earlier process is mute, and gets no answers. Therefore the node that refuses such a
//! datagram sends a notice to its source, with the later start and its address. The earlier process
//! forwards the notice to the later one. Both emit an event
//! ([`NodeEvent::Twin`](super::NodeEvent::Twin)).
//!
//! A notice is true, whichever datagram caused it: the refusing node has opened a datagram of that
//! epoch. The later process concludes that there is an earlier one when it opens a notice about its
//! own epoch that is sealed under its own id: only a former process with that id sends it, and only
//! after some node has opened a datagram of that epoch. So recordings of former lives prove
//! nothing, and no node starts a notice about its own id: it only forwards those of other nodes.
//! Notices are kind 6 and never sent in the clear. A node sends one a second at most.
//!
//! The later start may also be a former life of the node itself, under a clock that was ahead. When
//! its clock has passed that start, or was set right, the node takes a new epoch and is accepted
//! again. So two processes with different clocks may change roles once; they do not take turns.

use std::net::SocketAddr;

use selvedge_core::wire::{self, varint_len};
use selvedge_core::{NodeId, Span, Time};
use serde::{Deserialize, Serialize};

use selvedge_seal::Epoch;

use crate::event::Twin;

/// The kind of a notice's frame.
pub(crate) const KIND: u8 = 6;

/// The time between two notices, and between two equal events.
const EVERY: Span = Span::secs(1);
const EMIT_EVERY: Span = Span::secs(60);

/// A notice of a later start of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Notice {
    /// The node.
    pub(crate) id: NodeId,
    /// The later start.
    pub(crate) epoch: u64,
    /// Its address.
    pub(crate) address: Option<SocketAddr>,
}

impl wire::Message for Notice {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        let address = self.address.map_or(0, |address| {
            let ip = if address.is_ipv4() { 4 } else { 16 };
            1 + ip + varint_len(address.port().into())
        });
        varint_len(self.id.0) + varint_len(self.epoch) + 1 + address
    }
}

/// The meaning of a notice for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The others refuse this process: forward the notice to the later start.
    Superseded(Twin),
    /// The others refuse another process because of this one.
    Superseding(Twin),
    /// It is about other nodes, or outdated.
    Nothing,
}

/// The relation of a later start of this node to this process, by this node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Later {
    /// It is in the future: a former life under a clock that was ahead, or another process with
    /// such a clock.
    Ahead,
    /// It was before this start, or was ahead at its first notice.
    Former,
    /// Another process started while this one ran.
    Twin,
}

impl Later {
    /// The relation of the start `later`, `since_start` after this one, `since_1970` by the
    /// system's clock, which may have been set meanwhile. `ahead` is the start that was ahead
    /// before.
    pub(crate) fn of(
        later: Epoch,
        since_1970: u64,
        since_start: Span,
        ahead: Option<Epoch>,
    ) -> Self {
        let started = since_1970.saturating_sub(since_start.0);
        if later > Epoch::new(since_1970, 0) {
            Self::Ahead
        } else if later < Epoch::new(started, 0) || ahead == Some(later) {
            Self::Former
        } else {
            Self::Twin
        }
    }
}

impl Notice {
    /// The meaning of a notice from `sender` at `source` for the node `me` of this epoch.
    pub(crate) fn meaning(
        &self,
        (me, epoch): (NodeId, Epoch),
        (sender, source): (NodeId, SocketAddr),
    ) -> Meaning {
        if self.id != me {
            Meaning::Nothing
        } else if self.epoch > epoch.0 {
            Meaning::Superseded(Twin {
                address: self.address,
                is_later: true,
            })
        } else if self.epoch == epoch.0 && sender == me {
            Meaning::Superseding(Twin {
                address: Some(source),
                is_later: false,
            })
        } else {
            Meaning::Nothing
        }
    }
}

/// The times of the last notice and the last event.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paces {
    sent: Option<Time>,
    emitted: Option<Time>,
}

impl Paces {
    /// Returns true if a notice may be sent now, and counts it as sent.
    pub(crate) fn send(&mut self, now: Time) -> bool {
        is_due(&mut self.sent, now, EVERY)
    }

    /// Returns true if an event may be emitted now, and counts it as emitted.
    pub(crate) fn emit(&mut self, now: Time) -> bool {
        is_due(&mut self.emitted, now, EMIT_EVERY)
    }
}

fn is_due(last: &mut Option<Time>, now: Time, every: Span) -> bool {
    let due = last.is_none_or(|last| now.since(last) >= every);
    if due {
        *last = Some(now);
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_id_is_concerned_and_only_by_what_is_new() {
        let here = SocketAddr::from(([127, 0, 0, 1], 1));
        let there = SocketAddr::from(([127, 0, 0, 1], 2));
        let me = (NodeId(7), Epoch(50));
        let notice = |id, epoch| Notice {
            id: NodeId(id),
            epoch,
            address: Some(there),
        };
        let from = |sender| (NodeId(sender), here);
        let later = Twin {
            address: Some(there),
            is_later: true,
        };
        let earlier = Twin {
            address: Some(here),
            is_later: false,
        };
        for (notice, sender, meaning) in [
            (notice(7, 51), 3, Meaning::Superseded(later)),
            (notice(7, 51), 7, Meaning::Superseded(later)),
            (notice(7, 50), 7, Meaning::Superseding(earlier)),
            // Some node has opened a datagram of this process, and no more.
            (notice(7, 50), 3, Meaning::Nothing),
            // A recording of an earlier life.
            (notice(7, 49), 7, Meaning::Nothing),
            (notice(8, 51), 7, Meaning::Nothing),
        ] {
            assert_eq!(notice.meaning(me, from(sender)), meaning, "{notice:?}");
        }
    }

    #[test]
    fn a_former_life_is_told_from_another_process_by_the_clock() {
        let epoch = |seconds: u64| Epoch::new(seconds * 1_000_000, 7);
        let of = |later, now: u64, up, ahead: Option<u64>| {
            Later::of(
                epoch(later),
                now * 1_000_000,
                Span::secs(up),
                ahead.map(epoch),
            )
        };
        // This process started at 100.
        for (later, now, up, ahead, meaning) in [
            (103, 105, 5, None, Later::Twin),
            (130, 105, 5, None, Later::Ahead),
            (130, 129, 29, Some(130), Later::Ahead),
            (130, 131, 31, Some(130), Later::Former),
            // A start that was ahead proves nothing about another one.
            (130, 131, 31, Some(120), Later::Twin),
            // It started at 100 by a clock that was set to 5,000 after 3 s.
            (4_000, 5_002, 5, None, Later::Former),
            (4_999, 5_002, 5, None, Later::Twin),
        ] {
            assert_eq!(of(later, now, up, ahead), meaning, "{later} at {now}");
        }
        // A process that starts at this very moment, or together with this process, started while
        // it ran.
        let at = |seconds: u64| Epoch::new(seconds * 1_000_000, 0);
        for later in [100, 105] {
            let meaning = Later::of(at(later), 105_000_000, Span::secs(5), None);
            assert_eq!(meaning, Later::Twin, "{later}");
        }
    }

    #[test]
    fn each_has_a_pace_of_its_own() {
        let mut paces = Paces::default();
        let at = |millis| Time::ZERO + Span::millis(millis);
        assert!(paces.send(at(5)) && !paces.send(at(1_004)) && paces.send(at(1_005)));
        assert!(paces.emit(at(5)) && !paces.emit(at(60_004)) && paces.emit(at(60_005)));
    }
}
