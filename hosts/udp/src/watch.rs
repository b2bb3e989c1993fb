//! Watches of map entries, for the application.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_core::shared::{RecvError, TrySubmitError};
use selvedge_groups::GroupId;
use selvedge_groups::store::{Entry, Key, StoreCommand, StoreEvent, StoreReject};
use selvedge_kgroup as kgroup;
use selvedge_membership::Event;

use crate::service::{Command, Error, Reject};
use crate::{Events, Handle, NodeEvent, block_on};

/// The number of watches of each entry, which share one registration in the machine. It is 0 for an entry
/// whose registration has not ended yet, because too many commands waited.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watches(Arc<Mutex<BTreeMap<Name, usize>>>);

type Name = (GroupId, Key);

impl Watches {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch of a map's entry, which returns it now and after changes. See
/// [`Map::watch`](crate::Map::watch).
///
/// Contents between two reports may be skipped; the last one is reported. A watch survives a reader
/// that is too slow for the node's events and a new life of the node: then it reads the entry
/// again. It keeps its node running, as a [`Handle`] does, and ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    node: Handle,
    name: Name,
    events: Events,
    /// True if the machine has the registration, as far as this watch knows.
    is_registered: bool,
    reported: Option<Option<Entry>>,
}

impl Watch {
    pub(crate) fn new(node: &Handle, group: GroupId, key: Key) -> Self {
        let name = (group, key);
        *node.watches.lock().entry(name.clone()).or_default() += 1;
        Self {
            node: node.clone(),
            name,
            events: node.events(),
            is_registered: false,
            reported: None,
        }
    }

    /// Waits for the next content of the entry; the first call returns the present one. `None`
    /// means that the entry does not exist. A dropped future loses nothing.
    ///
    /// # Errors
    /// When the node takes no part in k-groups, has too many watches, or has stopped.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if !self.is_registered {
                self.register().await?;
            }
            match self.events.recv().await {
                Ok(observed) => {
                    if let Some(entry) = self.news(observed.event) {
                        self.reported = Some(entry.clone());
                        return Ok(entry);
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
    pub fn blocking_next(&mut self) -> Result<Option<Entry>, Error> {
        block_on(self.next())
    }

    /// Registers the entry, or registers it again, so that the machine reports it. One command does both:
    /// the registration is shared, and a caller that gives up in between would end it for the others.
    pub(crate) async fn register(&mut self) -> Result<(), Error> {
        self.events = self.node.events();
        loop {
            let ends = end_unused(&self.node);
            match self
                .node
                .ask(command(&self.name, StoreCommand::Watch))
                .await
            {
                // The registrations that have ended meanwhile leave room.
                Err(Error::Rejected(Reject::Node(selvedge::Reject::Groups(
                    kgroup::Reject::Map(StoreReject::Full { .. }),
                )))) if ends > 0 => {}
                registered => {
                    registered?;
                    self.is_registered = true;
                    return Ok(());
                }
            }
        }
    }

    /// The entry, if an event has news of it.
    fn news(&mut self, event: NodeEvent) -> Option<Option<Entry>> {
        // A new life of the node has no registration.
        if let NodeEvent::Membership(Event::Identified(_)) = event {
            self.is_registered = false;
        }
        if let NodeEvent::Groups(kgroup::Event::Map { map, event }) = event
            && let StoreEvent::Watched { key, entry } = event
            && self.name == (map, key)
        {
            // Another watch of the entry registers again, so the machine reports it once more.
            let version = |it: &Entry| it.version;
            let known = self.reported.as_ref();
            let is_older = known.is_some_and(|known| {
                entry.is_some() && entry.as_ref().map(version) < known.as_ref().map(version)
            });
            return (known != Some(&entry) && !is_older).then_some(entry);
        }
        None
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut all = self.node.watches.lock();
        let count = all.get(&self.name).copied().unwrap_or_default();
        if count > 1 {
            all.insert(self.name.clone(), count - 1);
            return;
        }
        all.insert(self.name.clone(), 0);
        drop(all);
        end_unused(&self.node);
    }
}

/// Ends the registrations of entries without a watch, as many as there is room for commands; the next
/// registration ends others. Returns the number of entries that had no watch.
fn end_unused(node: &Handle) -> usize {
    // Within the lock: a new watch of an entry registers it after this.
    let mut all = node.watches.lock();
    let unused: Vec<Name> = all
        .iter()
        .filter(|it| *it.1 == 0)
        .map(|it| it.0.clone())
        .collect();
    for name in &unused {
        let unwatch = Command::Machine(command(name, StoreCommand::Unwatch));
        match node.shared.try_submit(unwatch) {
            Err(TrySubmitError::Full { .. }) => break,
            // A node that has stopped has no registration.
            Ok(_) | Err(TrySubmitError::Closed { .. }) => all.remove(name),
        };
    }
    unused.len()
}

fn command(name: &Name, command: impl Fn(Key) -> StoreCommand) -> selvedge::Command {
    let (map, command) = (name.0, command(name.1.clone()));
    selvedge::Command::Groups(kgroup::Command::Map { map, command })
}
