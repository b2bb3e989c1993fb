//! What the application keeps in the machine by its handles: sessions and watches of prefixes. Handles
//! may be dropped in any thread, so a drop leaves an errand to the task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_core::Time;
use selvedge_groups::GroupId;
use selvedge_groups::store::SessionId;
use tokio::sync::{Notify, watch};

use crate::service::Asked;

/// A session of a map.
pub(crate) type Name = (GroupId, SessionId);

/// The sessions and watches of a node, for its handles and its task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    all: Mutex<All>,
    errands: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct All {
    pub(crate) sessions: BTreeMap<Name, Keeping>,
    /// Watches of prefixes that have ended, by map and ticket.
    pub(crate) unwatched: Vec<(GroupId, u64)>,
    /// The ticket of the last watch of a prefix.
    ticket: u64,
    /// The tickets of watches that have not ended.
    watched: BTreeSet<u64>,
}

/// A session that this node keeps alive.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// The number of its owners.
    owners: usize,
    pub(crate) step: Step,
    pub(crate) standing: watch::Sender<Standing>,
}

/// The next step with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The machine is to keep it alive.
    Keep,
    /// The machine keeps it alive.
    Kept,
    /// It is to be kept alive no longer.
    Stop,
    /// It is to end.
    End,
    /// This change ends it.
    Ends(Asked),
}

/// The state of a session, as far as this node knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The time until which it lives; `None` before an answer.
    pub(crate) until: Option<Time>,
    /// True if a command to end it is on its way: a late answer does not make it alive again.
    pub(crate) is_ending: bool,
    /// True if that time has passed.
    pub(crate) has_lapsed: bool,
    /// True if it is over.
    pub(crate) is_over: bool,
    /// True if the node has stopped.
    pub(crate) is_closed: bool,
}

/// An owner of a session. The last one that is dropped stops keeping it alive.
#[derive(Debug)]
pub(crate) struct Owner {
    kept: Kept,
    pub(crate) name: Name,
    pub(crate) standing: watch::Receiver<Standing>,
    /// True if its drop ends the session.
    ends: AtomicBool,
}

impl Kept {
    pub(crate) fn lock(&self) -> MutexGuard<'_, All> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An owner of a session, which is kept alive from now on if it was not.
    pub(crate) fn own(&self, name: Name, step: Step, ends: bool) -> Arc<Owner> {
        let mut all = self.lock();
        let keeping = all.sessions.entry(name).or_insert_with(|| Keeping {
            owners: 0,
            step,
            standing: watch::Sender::default(),
        });
        keeping.owners += 1;
        if keeping.step == Step::Stop {
            keeping.step = Step::Keep;
        }
        Arc::new(Owner {
            kept: self.clone(),
            name,
            standing: keeping.standing.subscribe(),
            ends: AtomicBool::new(ends),
        })
    }

    /// A ticket for a watch of a prefix, which no other has.
    pub(crate) fn ticket(&self) -> u64 {
        let mut all = self.lock();
        all.ticket += 1;
        let ticket = all.ticket;
        all.watched.insert(ticket);
        ticket
    }

    /// Ends a watch of a prefix.
    pub(crate) fn unwatch(&self, map: GroupId, ticket: u64) {
        let mut all = self.lock();
        all.watched.remove(&ticket);
        all.unwatched.push((map, ticket));
        drop(all);
        self.0.errands.notify_one();
    }

    /// Returns true if the watch of this ticket has not ended. Its command may arrive after its end.
    pub(crate) fn is_watched(&self, ticket: u64) -> bool {
        self.lock().watched.contains(&ticket)
    }

    /// Waits for an errand.
    pub(crate) async fn errand(&self) {
        self.0.errands.notified().await;
    }
}

impl Keeping {
    /// It is to end: from now on no owner takes it for alive.
    pub(crate) fn end(&mut self) {
        self.step = Step::End;
        self.set(Standing::lapse);
    }

    /// Changes the standing, for all owners.
    pub(crate) fn set(&self, change: impl FnOnce(&mut Standing)) {
        self.standing.send_modify(change);
    }
}

impl Standing {
    /// A command to end it is on its way.
    const fn lapse(&mut self) {
        (self.until, self.has_lapsed, self.is_ending) = (None, true, true);
    }
}

impl Owner {
    /// A command to end it is on its way: from now on no owner takes it for alive.
    pub(crate) fn lapse(&self) {
        if let Some(keeping) = self.kept.lock().sessions.get_mut(&self.name) {
            keeping.set(Standing::lapse);
        }
    }

    /// Has its drop end the session, or not.
    pub(crate) fn set_ends(&self, ends: bool) {
        self.ends.store(ends, Ordering::Relaxed);
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        if let Some(keeping) = self.kept.lock().sessions.get_mut(&self.name) {
            keeping.step = Step::Stop;
            keeping.set(|it| it.is_over = true);
        }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let mut all = self.kept.lock();
        let Some(keeping) = all.sessions.get_mut(&self.name) else {
            return; // It is over.
        };
        keeping.owners = keeping.owners.saturating_sub(1);
        let is_kept = matches!(keeping.step, Step::Keep | Step::Kept);
        if is_kept && *self.ends.get_mut() {
            keeping.end();
        } else if is_kept && keeping.owners == 0 {
            keeping.step = Step::Stop;
        }
        drop(all);
        self.kept.0.errands.notify_one();
    }
}
