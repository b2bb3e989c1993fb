//! The application's calls for the locks of the mesh.

use core::fmt;
use core::future::{Future, poll_fn, ready};
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use selvedge_camera::sections::Name;
use selvedge_core::Member;
use selvedge_core::shared::block_on_for;
use selvedge_core::shared::gate::{EnterError, Limits};
use thiserror::Error;

use crate::gates::{Gate, Guard, NoEntry, Settings};
use crate::service::{Answer, Command, Error, misplaced};
use crate::{Handle, block_on};

impl Handle {
    /// Takes the lock of this name: waits until no other thread, task or node has it. Its guard
    /// releases it when dropped, and has the fencing token: send the token to the resource that the lock
    /// protects, and let the resource refuse lower tokens. Compare whole tokens, not their numbers: two
    /// members may enter with equal numbers and differ in [`by`](selvedge_core::Stamp::by).
    ///
    /// A caller that asks before the node has joined waits until it has. A dropped future stops
    /// waiting, so any timeout may be put around it; [`lock_until`](Self::lock_until) names the
    /// members that a lock waited for. If a holder dies, others wait for it until its end is
    /// certain: see [A dead holder of a lock](crate#a-dead-holder-of-a-lock).
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = node.lock("printer".parse()?).await?;
    /// println!("the printer is ours, with token {:?}", guard.token());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the node was started without [`Setup::locks`](crate::Setup::locks), has too many locks
    /// or has stopped; when too many users wait, or too few nodes can be reached.
    pub async fn lock(&self, name: Name) -> Result<Guard, LockError> {
        let gate = self.gate(name).await?;
        Ok(gate.enter().await?)
    }

    /// Does as [`lock`](Self::lock) until `timer` is ready, for instance the `sleep` of a runtime.
    ///
    /// # Errors
    /// As there, and [`LockError::TimedOut`] with the members that it waits for.
    pub async fn lock_until(
        &self,
        name: Name,
        timer: impl Future<Output = ()>,
    ) -> Result<Guard, LockError> {
        let gate = self.gate(name).await?;
        self.enter_until(name, pin!(gate.enter()), timer).await
    }

    /// Does as [`lock`](Self::lock) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_lock(&self, name: Name) -> Result<Guard, LockError> {
        block_on(self.lock(name))
    }

    /// Does as [`blocking_lock`](Self::blocking_lock), and gives up after `timeout`.
    ///
    /// # Errors
    /// As there, and [`LockError::TimedOut`] with the members that it waits for.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_lock_timeout(&self, name: Name, timeout: Duration) -> Result<Guard, LockError> {
        let gate = block_on(self.gate(name))?;
        let mut enters = pin!(gate.enter());
        // A user is woken when its turn has come or never will, and not before: so when this gives
        // up the time has passed.
        match block_on_for(enters.as_mut(), timeout) {
            Some(entered) => Ok(entered?),
            None => block_on(self.enter_until(name, enters, ready(()))),
        }
    }

    /// The members for which the lock of this name waits here, in order: its holder, all that have
    /// their turn before this node, and, soon after the request, all that have not answered yet.
    /// Empty where this node has the lock, does not ask for it, or has not joined, and where it asks
    /// through the whole mesh ([`Config::slow_path`](selvedge_camera::Config::slow_path)) and knows
    /// of no rival.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn waits_for(&self, name: Name) -> Result<Box<[Member]>, Error> {
        let answer = self.shared.submit(Command::WaitsFor(name)).await?;
        let Answer::Members(members) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(members)
    }

    /// Does as [`waits_for`](Self::waits_for) and blocks this thread meanwhile, for as long as the
    /// node takes to answer.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_waits_for(&self, name: Name) -> Result<Box<[Member]>, Error> {
        block_on(self.waits_for(name))
    }

    /// A gate to the lock of this name. It has more ways to wait than [`lock`](Self::lock), and
    /// as long as a gate exists the node keeps its knowledge of the lock, so the next turn is cheaper.
    /// All gates of one name queue together.
    ///
    /// After the last gate and the last guard are dropped the section is closed here. The node still
    /// takes part for other nodes.
    ///
    /// # Errors
    /// When the node was started without [`Setup::locks`](crate::Setup::locks), has too many locks
    /// or has stopped.
    pub async fn gate(&self, name: Name) -> Result<Gate, Error> {
        self.ask_gate(name, None).await
    }

    /// Does as [`gate`](Self::gate) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_gate(&self, name: Name) -> Result<Gate, Error> {
        block_on(self.gate(name))
    }

    /// A gate to a section with these settings, or with those of all sections where `config` is
    /// `None`, and with these limits of its queue. In one mesh all nodes give a section the same
    /// settings, of which [`Setup::takeover`](crate::Setup::takeover) is one. The limits are this
    /// node's: all its gates to the section share one queue.
    ///
    /// # Errors
    /// As [`gate`](Self::gate); when the settings cannot work; and
    /// [`Reject::OtherSettings`](crate::Reject::OtherSettings) when the section is in use here
    /// with other settings or other limits.
    pub async fn gate_with(
        &self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
    ) -> Result<Gate, Error> {
        self.ask_gate(name, Some((config, limits))).await
    }

    async fn ask_gate(&self, name: Name, settings: Option<Settings>) -> Result<Gate, Error> {
        let answer = self.shared.submit(Command::Gate { name, settings }).await?;
        let Answer::Gate(gate) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(gate)
    }

    /// Waits for a user's turn until `timer` is ready. It keeps its place until the node has
    /// answered for which members it waits: without it, for none.
    async fn enter_until(
        &self,
        name: Name,
        mut enters: Pin<&mut impl Future<Output = Result<Guard, EnterError<NoEntry>>>>,
        timer: impl Future<Output = ()>,
    ) -> Result<Guard, LockError> {
        let mut gives_up = pin!(async {
            timer.await;
            self.waits_for(name).await
        });
        poll_fn(|cx| match enters.as_mut().poll(cx) {
            Poll::Ready(entered) => Poll::Ready(Ok(entered?)),
            Poll::Pending => gives_up.as_mut().poll(cx).map(|waits_for| {
                let waits_for = waits_for?;
                Err(LockError::TimedOut { waits_for })
            }),
        })
        .await
    }
}

/// The reason why a lock was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LockError {
    /// The node has no such lock, or has stopped.
    #[error(transparent)]
    Unavailable(#[from] Error),
    /// The lock was not given.
    #[error(transparent)]
    NotEntered(#[from] EnterError<NoEntry>),
    /// It was not given in time.
    #[error("the lock was not given in time{}", Awaited(waits_for))]
    TimedOut {
        /// The members of [`Handle::waits_for`] at that moment.
        waits_for: Box<[Member]>,
    },
}

/// The part of the message that names the members, and the remedy.
struct Awaited<'a>(&'a [Member]);

impl fmt::Display for Awaited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((first, others)) = self.0.split_first() else {
            return f.write_str(
                ", and no known member delays it: drop the guards of this node, wait until it has joined, or wait longer",
            );
        };
        write!(f, ": it waits for {first}")?;
        for other in others {
            write!(f, ", {other}")?;
        }
        f.write_str(
            "; wait longer, or for a dead one start it again, confirm its end, or set a takeover",
        )
    }
}
