//! Nodes that watch a prefix.

use alloc::vec::Vec;

use selvedge_core::wire::Room;
use selvedge_core::{BoundedMap, Member, NodeId};

use super::{LIMIT, PATIENCE, notify, refuse, room};
use crate::store::page::fill;
use crate::store::{
    Changes, Decided, EntryChange, Key, LeaderEffect, Position, Store, StoreAnswer,
};

type Out = Vec<LeaderEffect>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PrefixWatch {
    /// The node, in the life that asked last.
    member: Member,
    number: u64,
    prefix: Key,
    since: Position,
    /// True if there are changes that the node does not have.
    is_behind: bool,
    /// The number of ticks since the node's last request.
    silent: u8,
}

/// The nodes that watch a prefix, by node and the node's name of the watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PrefixWatchers {
    frame_budget: u16,
    watches: BoundedMap<(NodeId, u64), PrefixWatch>,
}

impl PrefixWatchers {
    pub(super) const fn new(frame_budget: u16) -> Self {
        Self {
            frame_budget,
            watches: BoundedMap::new(LIMIT),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.watches.is_empty()
    }

    pub(super) fn on_watch(
        &mut self,
        state: &Store,
        (from, watch): (Member, u64),
        (number, prefix, since): (u64, Key, Position),
        out: &mut Out,
    ) {
        let place = (from.id, watch);
        let former = self.watches.get(&place);
        let is_late = former.is_some_and(|it| {
            it.member.supersedes(from) || it.member == from && it.number > number
        });
        if is_late {
            return;
        }
        // The leader knows how far the map went on without a change of this prefix.
        let same =
            former.filter(|it| it.member == from && it.number == number && it.prefix == prefix);
        let since = same.map_or(since, |it| it.since.clone());
        let watching = PrefixWatch {
            member: from,
            number,
            prefix,
            since,
            is_behind: false,
            silent: 0,
        };
        if self.watches.insert(place, watching).is_err() {
            return refuse(from, out);
        }
        if let Some(watching) = self.watches.get_mut(&place) {
            watching.send(state, watch, room(self.frame_budget), out);
        }
    }

    pub(super) fn on_unwatch(&mut self, from: Member, watch: u64) {
        let place = (from.id, watch);
        if self.watches.get(&place).is_some_and(|it| it.member == from) {
            self.watches.remove(&place);
        }
    }

    pub(super) fn on_applied(&mut self, state: &Store, decided: &Decided, out: &mut Out) {
        let room = room(self.frame_budget);
        self.watches.retain(|&(_, watch), it| {
            let is_news = decided
                .changed
                .iter()
                .any(|key| key.starts_with(&*it.prefix));
            match (it.is_behind, is_news) {
                (true, _) => {} // It gets the rest when it has what was sent.
                (false, true) => it.send(state, watch, room, out),
                // The state may have changes that follow this one.
                (false, false) => it.advance(decided.version),
            }
            true
        });
    }

    /// Sends changes again that a node has not acknowledged, and forgets nodes that do not ask any more.
    pub(super) fn on_tick(&mut self, state: &Store, out: &mut Out) {
        let room = room(self.frame_budget);
        self.watches.retain(|&(_, watch), it| {
            it.silent += 1;
            let is_kept = it.silent < PATIENCE;
            if is_kept && it.is_behind {
                it.send(state, watch, room, out);
            }
            is_kept
        });
    }
}

impl PrefixWatch {
    /// The node has all changes up to this version. It may know a later one, from another leader.
    fn advance(&mut self, version: u64) {
        if version > self.since.version {
            self.since = Position::at(version);
        }
    }

    fn send(&mut self, state: &Store, watch: u64, room: Room, out: &mut Out) {
        let number = self.number;
        let Some(changes) = state.changes(&self.prefix, &self.since) else {
            self.is_behind = true;
            return notify(self.member, StoreAnswer::Compacted { watch, number }, out);
        };
        let version = state.version();
        let changes = changes
            .into_iter()
            .map(|(version, key, entry)| EntryChange {
                key: key.clone(),
                version,
                entry: entry.cloned(),
            });
        let (changes, is_last) = fill(room, changes);
        self.is_behind = !changes.is_empty();
        if !self.is_behind {
            self.advance(version);
        }
        let found = Changes {
            version,
            changes,
            is_last,
        };
        let changed = StoreAnswer::PrefixChanged {
            watch,
            number,
            found,
        };
        notify(self.member, changed, out);
    }
}
