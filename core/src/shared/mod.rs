//! One driven machine, shared by many threads and tasks. Feature `std`.
//!
//! A [`Driver`](crate::Driver) has one owner: the host's loop. [`channel`] gives that loop a
//! [`Port`] to keep beside its driver, and the application a [`Handle`] to clone into as many
//! threads and tasks as it likes. Through it they submit commands, read a snapshot, and subscribe
//! to events. Every wait exists as a future, which runs on any executor, and as a call that blocks
//! its thread.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | every command that was submitted gets one outcome, never two, even if the host stops | the host answers or drops each [`Request`] that it took |
//! | commands are taken in the order in which they got into the queue | none |
//! | no reader holds a lock while it reads: a [snapshot](Handle::snapshot) never changes; a new snapshot replaces it | none |
//! | a reader that saw an event reads a snapshot that reflects it | the host hands both to [`Port::publish`] |
//! | a caller that got an outcome reads a snapshot that reflects the command | the host publishes before it answers |
//! | a wait for a snapshot ([`Handle::wait_for`]) ends with the first snapshot that the caller accepts, or when the host stops | the snapshot is still the latest one when the caller looks |
//! | a subscriber gets every event in order, or the number of events that it missed | none |
//! | memory is bounded by [`Limits`], however slow readers are | the limits hold for commands and events; each waiting thread or task adds a waker |
//! | when the port or the last handle is dropped, no call waits for it any more | none |
//!
//! Where the machine as a whole is inside or outside, as with a lock, threads and tasks queue for
//! it at a [`gate`].
//!
//! Locks are held to move a few pointers. No foreign code (a clone, a drop, a waker) runs under
//! one.
//!
//! # A host in a thread
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::shared::{self, Error, Limits, Request};
//! use selvedge_core::{Context, Driver, Effect, Input, Machine, Time};
//!
//! /// Adds up the numbers that it gets, to 100 at most.
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Sum(u32);
//!
//! impl Machine for Sum {
//!     type Message = ();
//!     type Timer = ();
//!     type Command = u32;
//!     type Event = u32;
//!     type Reject = &'static str;
//!
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Self::Reject> {
//!         let Input::Command(more) = input else { return Err("commands only") };
//!         if self.0 + more > 100 {
//!             return Err("more than 100");
//!         }
//!         self.0 += more;
//!         cx.event(self.0);
//!         Ok(())
//!     }
//! }
//!
//! let (handle, mut port) = shared::channel::<Sum, u32>(Limits::default(), 0);
//! let mut seen = handle.subscribe();
//!
//! let host = std::thread::spawn(move || {
//!     let mut rng = ChaCha8Rng::seed_from_u64(7);
//!     let mut driver = Driver::new(Sum(0));
//!     let mut events = Vec::new();
//!     // A host with timers waits with `recv_timeout` until the driver's deadline.
//!     while let Ok(Request { command, reply }) = port.blocking_recv() {
//!         let input = Input::Command(command);
//!         let outcome = driver.step(Time::ZERO, &mut rng, input, |effect| {
//!             if let Effect::Event(event) = effect {
//!                 events.push(event);
//!             }
//!         });
//!         port.publish(driver.machine().0, events.drain(..));
//!         reply.send(outcome);
//!     }
//! });
//!
//! assert_eq!(handle.blocking_submit(60), Ok(()));
//! assert_eq!(*handle.snapshot(), 60);
//! assert_eq!(handle.blocking_submit(41), Err(Error::Rejected("more than 100")));
//! assert_eq!(seen.blocking_recv(), Ok(60));
//!
//! // The last handle ends the loop, as it is written above.
//! drop(handle);
//! host.join().unwrap();
//! ```

mod commands;
mod error;
mod events;
pub mod gate;
mod handle;
mod outcome;
mod port;
mod service;
mod snapshot;
mod sync;
mod wait;

use alloc::sync::Arc;
use core::num::NonZeroUsize;

pub use self::error::{Closed, Error, RecvError, TrySubmitError};
pub use self::events::Subscriber;
pub use self::handle::Handle;
pub use self::outcome::{Outcome, Reply};
pub use self::port::{Port, Request};
pub use self::service::Service;
pub use self::sync::{block_on, block_on_for};

use self::commands::Commands;
use self::events::Ring;
use self::snapshot::Published;

/// The limits of a channel between a host and its application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of commands that may wait for the host. Default: 64.
    pub commands: NonZeroUsize,
    /// The number of events that are kept for all subscribers together. A subscriber that falls
    /// further behind gets the number of events that it missed. Default: 256.
    pub events: NonZeroUsize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            commands: NonZeroUsize::MIN.saturating_add(63),
            events: NonZeroUsize::MIN.saturating_add(255),
        }
    }
}

/// Creates a channel between an application and a machine `M`, or another [`Service`]. Readers get
/// `snapshot` until the host publishes.
#[must_use]
pub fn channel<M: Service, S>(limits: Limits, snapshot: S) -> (Handle<M, S>, Port<M, S>) {
    let shared = Arc::new(Shared {
        commands: Commands::new(limits.commands.get()),
        snapshot: Published::new(snapshot),
        events: Arc::new(Ring::new(limits.events.get())),
    });
    (Handle::new(Arc::clone(&shared)), Port::new(shared))
}

/// The state that both ends share. Each part has a lock of its own, and no code takes two of them.
#[derive(Debug)]
struct Shared<M: Service, S> {
    // A queue without locks needs unsafe code or another crate, and no measurement has shown these locks
    // to be slow.
    commands: Commands<M>,
    snapshot: Published<S>,
    events: Arc<Ring<M::Event>>,
}
