//! The gates of a node: what threads and tasks wish goes to its sections, and what these tell comes
//! back.

use core::future::poll_fn;
use core::task::Poll;
use std::collections::BTreeMap;

use selvedge_camera::sections::{Command, Event, Name};
use selvedge_camera::{Refusal, Token};
use selvedge_core::shared::gate::{self, Gate, Keeper, Limits, Wish};
use thiserror::Error;

use selvedge::Reject;

/// A gate to one section of the mesh. Cloned into threads and tasks, it gives a
/// [guard](gate::Guard) with the fencing token to one of them in the whole mesh at a time.
pub type SectionGate = Gate<Token, NoEntry>;

/// What a [`SectionGate`] gives to whose turn it is.
pub type SectionGuard = gate::Guard<Token, NoEntry>;

/// Why a node did not get in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoEntry {
    /// The section refused: too few nodes can be reached. Try again later.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The machine did not take the command.
    #[error(transparent)]
    Reject(#[from] Reject),
    /// The node took a later life, for somebody remembered a former one. Try again.
    #[error("the node began a new life while it waited: try again")]
    NewLife,
}

/// The keepers of all gates of one node.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    all: BTreeMap<Name, Lock>,
    /// Those that take the place of one whose gates are gone, as soon as its section is closed.
    next: BTreeMap<Name, Lock>,
}

#[derive(Debug)]
struct Lock {
    keeper: Keeper<Token, NoEntry>,
    config: Option<selvedge_camera::Config>,
    /// Whether the section is open; before, nobody can enter, and everybody waits.
    is_open: bool,
}

impl Locks {
    /// A gate to a section that is to be opened. `None` when it has one: that can be cloned.
    pub(crate) fn add(
        &mut self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
    ) -> Option<SectionGate> {
        if self.has_gate(name) {
            return None;
        }
        let (gate, keeper) = gate::channel(limits);
        let is_open = false;
        let lock = Lock {
            keeper,
            config,
            is_open,
        };
        if self.all.get(&name).is_some_and(|former| former.is_open) {
            self.next.insert(name, lock);
        } else {
            self.all.insert(name, lock);
        }
        Some(gate)
    }

    /// How many sections there are gates to.
    pub(crate) fn gates(&self) -> usize {
        let all = self.all.values().chain(self.next.values());
        all.filter(|it| !it.keeper.is_deserted()).count()
    }

    pub(crate) fn has_gate(&self, name: Name) -> bool {
        let both = [self.all.get(&name), self.next.get(&name)];
        let mut both = both.into_iter().flatten();
        both.any(|it| !it.keeper.is_deserted())
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
        let closed = self.all.iter().filter(|(_, lock)| !lock.is_open);
        closed
            .map(|(&name, lock)| {
                let config = lock.config;
                (name, Command::Open { name, config })
            })
            .collect()
    }

    /// The section is open.
    pub(crate) fn opened(&mut self, name: Name) {
        if let Some(lock) = self.all.get_mut(&name) {
            lock.is_open = true;
        }
    }

    /// Gives up a gate: those who wait at it are told that it is closed.
    pub(crate) fn remove(&mut self, name: Name) {
        self.all.remove(&name);
        if let Some(next) = self.next.remove(&name) {
            self.all.insert(name, next);
        }
    }

    /// Takes nobody in any more; who is inside may stay. What was never open is gone.
    pub(crate) fn close(&mut self) {
        self.next.clear();
        self.all.retain(|_, lock| lock.is_open);
        for lock in self.all.values_mut() {
            lock.keeper.close();
        }
    }

    /// What a section is to be commanded next. [`Command::Close`]: nobody will come any more.
    pub(crate) async fn next(&mut self) -> Command {
        poll_fn(|cx| {
            for (&name, lock) in self.all.iter_mut().filter(|(_, lock)| lock.is_open) {
                match lock.keeper.poll_recv(cx) {
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

    /// What came of a command of [`next`](Self::next), if the machine refused it.
    pub(crate) fn refused(&mut self, command: Command, reject: Reject) {
        let (Command::Enter(name) | Command::Exit(name) | Command::Cancel(name)) = command else {
            return;
        };
        let Some(lock) = self.all.get_mut(&name) else {
            return;
        };
        let reported = if matches!(command, Command::Enter(_)) {
            lock.keeper.refused(reject.into())
        } else {
            // The machine is outside already.
            lock.keeper.released()
        };
        debug_assert!(reported.is_ok(), "{command:?}: {reported:?}");
    }

    /// What a section tells.
    pub(crate) fn told(&mut self, Event { section, event }: Event) {
        use selvedge_camera::Event as It;
        let Some(lock) = self.all.get_mut(&section) else {
            return;
        };
        let keeper = &mut lock.keeper;
        let reported = match event {
            It::Entered(token) => keeper.entered(token),
            It::Released(_) | It::Cancelled => keeper.released(),
            It::Refused(why) => keeper.refused(why.into()),
            It::Fenced(_) => {
                keeper.fenced();
                Ok(())
            }
            It::Waiting(_) | It::SlowPath | It::PassedOver(_) => Ok(()),
        };
        debug_assert!(reported.is_ok(), "{section:?}: {event:?}: {reported:?}");
    }

    /// The node has a new life, and no section is open there. Guards are fenced, who waits is told.
    pub(crate) fn begin_anew(&mut self) {
        for lock in self.all.values_mut().filter(|lock| lock.is_open) {
            lock.is_open = false;
            // Inside, leaving or withdrawing; else waiting; else nothing is to be told.
            let _was_told =
                lock.keeper.released().is_ok() || lock.keeper.refused(NoEntry::NewLife).is_ok();
        }
    }
}
