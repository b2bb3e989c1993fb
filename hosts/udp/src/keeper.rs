//! The task's part of what the application keeps in the machine.

use selvedge_core::Time;
use selvedge_groups::GroupId;
use selvedge_groups::store::StoreEvent;
use selvedge_kgroup::Event;

use crate::kept::{All, Keeping, Kept, Name, Standing, Step};
use crate::service::Asked;

/// The end of the task.
#[derive(Debug)]
pub(crate) struct Keeper(pub(crate) Kept);

/// Something that a handle left to the task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Errand {
    Unwatch(GroupId, u64),
    Session(Name, Step),
}

impl Keeper {
    /// Handles an event of a session, or of a change that ends one; returns all others.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are the application's"
    )]
    pub(crate) fn on_event(&self, event: Event) -> Option<Event> {
        let Event::Map {
            map,
            event: ref of_map,
        } = event
        else {
            return Some(event);
        };
        let mut all = self.0.lock();
        match *of_map {
            StoreEvent::SessionKept { session, until } => {
                let Some(keeping) = all.sessions.get(&(map, session)) else {
                    return Some(event);
                };
                keeping.set(|it| it.keep(until));
                None
            }
            StoreEvent::SessionOver { session } => {
                all.end((map, session)).is_none().then_some(event)
            }
            StoreEvent::Changed { ticket, .. } => {
                let ends = all.sessions.iter();
                let mut ends = ends.filter(|it| it.1.step == Step::Ends(Asked::Map(ticket)));
                let Some((&name, _)) = ends.next() else {
                    return Some(event);
                };
                all.end(name);
                None
            }
            _ => Some(event),
        }
    }

    /// A new life of the node has nothing of the former one.
    pub(crate) fn begin_again(&self) {
        let mut all = self.0.lock();
        all.unwatched.clear();
        for keeping in all.sessions.values_mut() {
            keeping.step = match keeping.step {
                Step::Kept => Step::Keep,
                Step::Ends(_) => Step::End,
                step @ (Step::Keep | Step::Stop | Step::End) => step,
            };
        }
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        for keeping in self.0.lock().sessions.values_mut() {
            if !matches!(keeping.step, Step::Ends(_)) {
                keeping.end();
            }
        }
    }

    /// Returns true if no session is kept alive, or ends.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().sessions.is_empty()
    }

    /// The errands for the machine; those that it refuses stay.
    pub(crate) fn errands(&self) -> Vec<Errand> {
        let mut all = self.0.lock();
        let unwatched = core::mem::take(&mut all.unwatched).into_iter();
        let sessions = all.sessions.iter().map(|(&name, it)| (name, it.step));
        let sessions = sessions.filter(|it| matches!(it.1, Step::Keep | Step::Stop | Step::End));
        let unwatched = unwatched.map(|(map, ticket)| Errand::Unwatch(map, ticket));
        let sessions = sessions.map(|(name, step)| Errand::Session(name, step));
        unwatched.chain(sessions).collect()
    }

    /// The machine has accepted a step: another one follows, or nothing.
    pub(crate) fn done(&self, name: Name, next: Option<Step>) {
        let mut all = self.0.lock();
        match next {
            Some(next) => {
                if let Some(keeping) = all.sessions.get_mut(&name) {
                    keeping.step = next;
                }
            }
            None => {
                all.sessions.remove(&name);
            }
        }
    }

    /// The next time at which a session may have ended.
    pub(crate) fn next_lapse(&self) -> Option<Time> {
        let all = self.0.lock();
        let standings = all.sessions.values().map(|it| *it.standing.borrow());
        let kept = standings.filter(|it| !it.has_lapsed);
        kept.filter_map(|it| it.until).min()
    }

    /// Reports sessions that may have ended.
    pub(crate) fn lapse(&self, now: Time) {
        for keeping in self.0.lock().sessions.values() {
            let lapses = |it: &Standing| !it.has_lapsed && it.until.is_some_and(|it| it <= now);
            let _changed = keeping.standing.send_if_modified(|it| {
                let lapses = lapses(it);
                it.has_lapsed |= lapses;
                lapses
            });
        }
    }
}

impl All {
    /// A session is over.
    fn end(&mut self, name: Name) -> Option<()> {
        let keeping: Keeping = self.sessions.remove(&name)?;
        keeping.set(|it| it.is_over = true);
        Some(())
    }
}

impl Standing {
    fn keep(&mut self, until: Time) {
        if !self.is_ending {
            self.until = self.until.max(Some(until));
            self.has_lapsed = false;
        }
    }
}

impl Drop for Keeper {
    /// Nobody keeps sessions alive any more.
    fn drop(&mut self) {
        for (_, keeping) in core::mem::take(&mut self.0.lock().sessions) {
            keeping.set(|it| it.is_closed = true);
        }
    }
}
