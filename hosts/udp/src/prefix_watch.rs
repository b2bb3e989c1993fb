//! Watches of the entries with a prefix, for the application.

use std::collections::BTreeMap;

use selvedge_core::shared::RecvError;
use selvedge_groups::GroupId;
use selvedge_groups::store::{
    ENTRIES_MAX, EntryChange, Key, REMOVED_MAX, StoreCommand, StoreEvent,
};
use selvedge_kgroup as kgroup;
use selvedge_membership::Event;

use crate::service::Error;
use crate::{Events, Handle, NodeEvent, block_on};

/// The most changes that a watch collects until it has all of a version. Where more come in the
/// meantime, it asks for all of them anew.
const COLLECTED: usize = 2 * (ENTRIES_MAX + REMOVED_MAX);

/// A report of a [`PrefixWatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefixNews {
    /// Entries were changed or removed.
    Changed {
        /// All changes up to this version of the map are reported now. A watch since this version continues
        /// here, also by another node.
        version: u64,
        /// The changes since the last report, by version and name: of several changes of an entry the last one.
        changes: Vec<EntryChange>,
    },
    /// The map has forgotten entries that were removed since the last report. The next report has all present
    /// entries, if there is one: forget the former ones.
    Compacted,
}

/// A watch of the entries of a map whose names begin alike. See
/// [`Map::watch_prefix`](crate::Map::watch_prefix).
///
/// Each change is reported once, except that of several changes of an entry between two reports the last one is
/// reported. A watch survives a reader that is too slow for the node's events and a new life of the
/// node: then it asks for the changes since its last report. It keeps its node running, as a [`Handle`] does,
/// and ends when it is dropped.
#[derive(Debug)]
pub struct PrefixWatch {
    node: Handle,
    map: GroupId,
    prefix: Key,
    events: Events,
    /// The version up to which all changes are reported.
    since: u64,
    /// The ticket of the present registration.
    ticket: Option<u64>,
    /// True if the machine has that, as far as this watch knows.
    is_registered: bool,
    /// Changes after `since`, not all of their version.
    collected: BTreeMap<Key, EntryChange>,
}

impl PrefixWatch {
    pub(crate) fn new(node: &Handle, map: GroupId, prefix: Key, since: u64) -> Self {
        Self {
            node: node.clone(),
            map,
            prefix,
            events: node.events(),
            since,
            ticket: None,
            is_registered: false,
            collected: BTreeMap::new(),
        }
    }

    /// The version of the map up to which all changes are reported.
    #[must_use]
    pub const fn since(&self) -> u64 {
        self.since
    }

    /// Waits for the next changes. A dropped future loses nothing.
    ///
    /// # Errors
    /// When the node takes no part in k-groups, has too many watches, or has stopped.
    pub async fn next(&mut self) -> Result<PrefixNews, Error> {
        loop {
            if !self.is_registered {
                self.register().await?;
            }
            match self.events.recv().await {
                Ok(observed) => {
                    if let Some(news) = self.news(observed.event) {
                        return Ok(news);
                    }
                }
                Err(RecvError::Lagged { .. }) => self.is_registered = false,
                Err(RecvError::Closed) => return Err(Error::Closed),
            }
        }
    }

    /// Does as [`next`](Self::next) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    ///
    /// # Panics
    /// In a task of a tokio runtime.
    pub fn blocking_next(&mut self) -> Result<PrefixNews, Error> {
        block_on(self.next())
    }

    /// Registers the watch, by a ticket of its own: late reports of former ones have others. What was collected
    /// comes again.
    pub(crate) async fn register(&mut self) -> Result<(), Error> {
        self.unregister();
        self.collected.clear();
        self.events = self.node.events();
        let ticket = self.node.kept.ticket();
        self.ticket = Some(ticket);
        let command = StoreCommand::WatchPrefix {
            ticket,
            prefix: self.prefix.clone(),
            since: self.since,
        };
        let map = self.map;
        let command = kgroup::Command::Map { map, command };
        self.node.ask(selvedge::Command::Groups(command)).await?;
        self.is_registered = true;
        Ok(())
    }

    fn unregister(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.node.kept.unwatch(self.map, ticket);
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are the application's"
    )]
    fn news(&mut self, event: NodeEvent) -> Option<PrefixNews> {
        // A new life of the node has no registration.
        if let NodeEvent::Membership(Event::Identified(_)) = event {
            self.is_registered = false;
        }
        let NodeEvent::Groups(kgroup::Event::Map { map, event }) = event else {
            return None;
        };
        match event {
            StoreEvent::PrefixChanged {
                ticket,
                changes,
                version,
            } if (map, Some(ticket)) == (self.map, self.ticket) => self.collect(changes, version),
            StoreEvent::Compacted { ticket } if (map, Some(ticket)) == (self.map, self.ticket) => {
                self.since = 0;
                self.is_registered = false;
                Some(PrefixNews::Compacted)
            }
            _ => None,
        }
    }

    /// Collects changes until they are all of a version. Before, a reader could not continue from it: a watch
    /// that begins with no entries gets no removed ones.
    fn collect(&mut self, changes: Vec<EntryChange>, version: Option<u64>) -> Option<PrefixNews> {
        let changes = changes.into_iter().map(|it| (it.key.clone(), it));
        self.collected.extend(changes);
        let Some(version) = version else {
            self.is_registered &= self.collected.len() <= COLLECTED;
            return None;
        };
        self.since = version;
        let collected = core::mem::take(&mut self.collected);
        let mut changes: Vec<EntryChange> = collected.into_values().collect();
        changes.sort_unstable_by(|a, b| (a.version, &a.key).cmp(&(b.version, &b.key)));
        Some(PrefixNews::Changed { version, changes })
    }
}

impl Drop for PrefixWatch {
    fn drop(&mut self) {
        self.unregister();
    }
}
