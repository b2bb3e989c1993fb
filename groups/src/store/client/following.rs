//! Prefixes that a node watches.

use alloc::vec::Vec;

use selvedge_core::BoundedMap;

use crate::store::{Changes, EntryChange, Key, Position, StoreReject, StoreRequest};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Following {
    prefix: Key,
    /// The number of answers with changes.
    number: u64,
    since: Position,
    /// The latest version of the map in an answer.
    seen: u64,
    /// True if the leader has answered the last request.
    is_answered: bool,
}

/// The prefixes of one map that a node watches, by the application's tickets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PrefixWatches(BoundedMap<u64, Following>);

/// An answer with changes, for the application: the version is that of the map if there are no more.
pub(super) type Report = (Vec<EntryChange>, Option<u64>);

impl PrefixWatches {
    pub(super) const fn new(limit: usize) -> Self {
        Self(BoundedMap::new(limit))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn watch(
        &mut self,
        ticket: u64,
        (prefix, since): (Key, u64),
        full: StoreReject,
    ) -> Result<StoreRequest, StoreReject> {
        if self.0.contains(&ticket) {
            return Err(StoreReject::Ticket { ticket });
        }
        let following = Following {
            prefix,
            number: 0,
            since: Position::at(since),
            seen: since,
            is_answered: false,
        };
        let request = following.request(ticket);
        self.0.insert(ticket, following).map_err(|_| full)?;
        Ok(request)
    }

    /// Ends a watch. Returns true if there is one.
    pub(super) fn unwatch(&mut self, ticket: u64) -> bool {
        self.0.remove(&ticket).is_some()
    }

    /// Handles the end of a watch, since the map has forgotten changes. Returns true if a watch waits for this answer.
    pub(super) fn on_compacted(&mut self, ticket: u64, number: u64) -> bool {
        let is_present = self.0.get(&ticket).is_some_and(|it| it.number == number);
        is_present && self.unwatch(ticket)
    }

    /// Handles an answer. Returns its changes, if they are news, and the request for more.
    pub(super) fn on_changed(
        &mut self,
        ticket: u64,
        number: u64,
        found: Changes,
    ) -> Option<(Report, StoreRequest)> {
        let following = self.0.get_mut(&ticket)?;
        if following.number != number {
            return None; // It was received before.
        }
        if found.version < following.seen {
            return None; // A former leader sent it, which does not know what was changed since.
        }
        following.seen = found.version;
        following.is_answered = true;
        following.since = following.since.after(&following.prefix, &found);
        if found.changes.is_empty() {
            return None;
        }
        following.number += 1;
        following.is_answered = false;
        let version = found.is_last.then_some(found.version);
        let report = (found.changes.into_iter().collect(), version);
        Some((report, following.request(ticket)))
    }

    /// The requests that are due: of all prefixes, or of those without an answer.
    pub(super) fn on_tick(&self, is_renewal: bool) -> Vec<StoreRequest> {
        let due = self.0.iter().filter(|it| is_renewal || !it.1.is_answered);
        due.map(|(&ticket, it)| it.request(ticket)).collect()
    }
}

impl Following {
    fn request(&self, watch: u64) -> StoreRequest {
        StoreRequest::WatchPrefix {
            watch,
            number: self.number,
            prefix: self.prefix.clone(),
            since: self.since.clone(),
        }
    }
}
