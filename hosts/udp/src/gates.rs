//! The keepers of a node's gates: what threads and tasks wish goes to the sections, and what these
//! emit comes back.

use core::future::poll_fn;
use core::task::Poll;
use std::collections::BTreeMap;

use selvedge_camera::sections::{Command, Event, Name};
use selvedge_camera::{Refusal, Token};
use selvedge_core::shared::gate::{self, Keeper, Limits, Wish};
use thiserror::Error;

use selvedge::Reject;

/// A gate to one lock of the mesh. Cloned into threads and tasks, it gives a [`Guard`] with the
/// fencing token to one of them in the whole mesh at a time.
pub type Gate = gate::Gate<Token, NoEntry>;

/// Holds a lock of the mesh until it is dropped, or until the node is fenced.
pub type Guard = gate::Guard<Token, NoEntry>;

/// Why a node did not get a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NoEntry {
    /// Too few nodes can be reached. Try again later.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine refused the command.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// Another node remembered a later life of this one, so the node took a life after that. Try
    /// again.
    #[error("the node began a new life while it waited: try again")]
    NewLife,
}

/// How a section is opened, and how its gates queue.
pub(crate) type Settings = (Option<selvedge_camera::Config>, Limits);

/// The keepers of all gates of one node.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    all: BTreeMap<Name, Section>,
}

#[derive(Debug)]
struct Section {
    keeper: Keeper<Token, NoEntry>,
    settings: Settings,
    /// Whether the section is open. Before, no user can enter, and all wait.
    is_open: bool,
}

impl Gates {
    /// Another gate to a section that has been asked for before, also when all its gates are gone
    /// and it is still in use. `None` when there is no such section.
    pub(crate) fn get(&self, name: Name) -> Option<Gate> {
        self.all.get(&name).map(|it| it.keeper.gate())
    }

    /// The settings of a section that has been asked for before.
    pub(crate) fn settings(&self, name: Name) -> Option<Settings> {
        self.all.get(&name).map(|it| it.settings)
    }

    /// A gate to a section that is to be opened, instead of the one that had this name.
    pub(crate) fn add(&mut self, name: Name, settings: Settings) -> Gate {
        let (gate, keeper) = gate::channel(settings.1);
        let section = Section {
            keeper,
            settings,
            is_open: false,
        };
        self.all.insert(name, section);
        gate
    }

    /// How many sections other than `name` have a gate.
    pub(crate) fn others(&self, name: Name) -> usize {
        let others = self.all.iter().filter(|&(&other, _)| other != name);
        others.filter(|(_, it)| !it.keeper.is_deserted()).count()
    }

    /// Whether a section is open, or has a gate.
    pub(crate) fn is_in_use(&self, name: Name) -> bool {
        let section = self.all.get(&name);
        section.is_some_and(|it| it.is_open || !it.keeper.is_deserted())
    }

    /// Whether some section is still to be closed, as all gates to it are gone.
    pub(crate) fn is_closing(&self) -> bool {
        let mut all = self.all.values();
        all.any(|it| it.is_open && it.keeper.is_deserted())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The commands that open what is not open yet.
    pub(crate) fn to_open(&self) -> Vec<(Name, Command)> {
        let closed = self.all.iter().filter(|(_, section)| !section.is_open);
        closed
            .map(|(&name, section)| {
                let (config, _) = section.settings;
                (name, Command::Open { name, config })
            })
            .collect()
    }

    /// The section is open.
    pub(crate) fn opened(&mut self, name: Name) {
        if let Some(section) = self.all.get_mut(&name) {
            section.is_open = true;
        }
    }

    /// Gives up a section: its gates are closed.
    pub(crate) fn remove(&mut self, name: Name) {
        self.all.remove(&name);
    }

    /// Admits no more users. Those that are inside may stay. What was never open is gone.
    pub(crate) fn close(&mut self) {
        self.all.retain(|_, section| section.is_open);
        for section in self.all.values_mut() {
            section.keeper.close();
        }
    }

    /// The next command for a section. [`Command::Close`]: no user will come any more.
    pub(crate) async fn next(&mut self) -> Command {
        poll_fn(|cx| {
            for (&name, section) in self.all.iter_mut().filter(|(_, it)| it.is_open) {
                match section.keeper.poll_recv(cx) {
                    Poll::Ready(Ok(Wish::Enter)) => return Poll::Ready(Command::Enter(name)),
                    Poll::Ready(Ok(Wish::Exit)) => return Poll::Ready(Command::Exit(name)),
                    Poll::Ready(Ok(Wish::Cancel)) => return Poll::Ready(Command::Cancel(name)),
                    Poll::Ready(Err(gate::Closed)) => return Poll::Ready(Command::Close(name)),
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The machine refused a command of [`next`](Self::next).
    pub(crate) fn on_refused(&mut self, command: Command, reject: Reject) {
        let (Command::Enter(name) | Command::Exit(name) | Command::Cancel(name)) = command else {
            return;
        };
        let Some(section) = self.all.get_mut(&name) else {
            return;
        };
        let reported = if matches!(command, Command::Enter(_)) {
            section.keeper.refused(reject.into())
        } else {
            // The machine is outside already.
            section.keeper.released()
        };
        debug_assert!(reported.is_ok(), "{command:?}: {reported:?}");
    }

    /// A section emitted an event.
    pub(crate) fn on_event(&mut self, Event { section, event }: Event) {
        use selvedge_camera::Event as It;
        // A section that was given up may still emit what its last command caused.
        let Some(it) = self.all.get_mut(&section) else {
            return;
        };
        let keeper = &mut it.keeper;
        let reported = match event {
            It::Entered(token) => keeper.entered(token),
            It::Released(_) | It::Cancelled => keeper.released(),
            It::Refused(why) => keeper.refused(why.into()),
            It::Fenced(_) => {
                keeper.fenced();
                Ok(())
            }
            It::Waiting(_) | It::SlowPath | It::PassedOver(_) => Ok(()),
            _ => {
                debug_assert!(false, "no gate knows what to do on {event:?}");
                Ok(())
            }
        };
        debug_assert!(reported.is_ok(), "{section:?}: {event:?}: {reported:?}");
    }

    /// The node has a new life, in which no section is open. Guards are fenced, and users that wait
    /// are refused.
    pub(crate) fn begin_anew(&mut self) {
        for section in self.all.values_mut().filter(|it| it.is_open) {
            section.is_open = false;
            let keeper = &mut section.keeper;
            // Inside, leaving or withdrawing; else waiting; else there is nothing to report.
            let _reported = keeper.released().is_ok() || keeper.refused(NoEntry::NewLife).is_ok();
        }
    }
}
