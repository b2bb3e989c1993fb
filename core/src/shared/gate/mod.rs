//! One critical section, shared by the threads and tasks of a node. Feature `std`.
//!
//! In a mesh a node enters as one: it asks once, is let in once and exits once. [`channel`] gives
//! the application a [`Gate`] to clone into as many threads and tasks as it likes. These users
//! queue for the section, and the user that is next gets a [`Guard`]. The host's loop keeps the
//! [`Controller`] beside its driver: the controller returns the next command for the machine ([`GateCommand`]),
//! and the host reports the outcome to it. Nothing here knows the machine, which supplies its
//! fencing tokens `T`, and its reasons `R` to refuse.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | at most one guard of a gate exists, and while it is not [fenced](Guard::is_fenced) the node is inside | the host reports each change of the node; a guard is not notified sooner than the host |
//! | users get their turn in the order in which they began to wait | they poll when they are woken |
//! | the machine is commanded in turns: Enter, then Cancel or Exit, and nothing until that has ended | the host carries out each command that it took |
//! | a user that stops waiting leaves no trace: a turn that comes in that moment goes to the next one, or the node exits or cancels | the future is dropped, not forgotten |
//! | between two users the node exits, unless [`Limits::handovers`] lets it hand over; a fenced entry is never handed over | none |
//! | the reason of a refused Enter goes to the user for which it was made, and to no other | none |
//! | when the controller is closed or dropped, no user waits for it any more | none |
//! | when all gates were dropped, the controller is notified once the node is outside | guards leave, and the host reports |
//! | memory is bounded by [`Limits`] | each thread or task that waits for [`Guard::fenced`] adds a waker |
//!
//! It does **not** promise that no other node is inside: a guard may be fenced, and be notified
//! late. The resource that the section protects should check the [token](Guard::token) and refuse
//! lower tokens.
//!
//! A lock is held to move a few pointers. No foreign code (a waker, the drop of a reason) runs
//! under it.
//!
//! # Users and a host
//!
//! ```
//! use core::convert::Infallible;
//! use selvedge_core::shared::gate::{self, Limits, GateCommand};
//!
//! let (gate, mut controller) = gate::channel::<u64, Infallible>(Limits::default());
//!
//! // A host whose node is alone, so that each command takes effect at once. Other hosts step
//! // their driver with the command, and report when the machine's events say so.
//! let host = std::thread::spawn(move || {
//!     let mut entries = 0;
//!     while let Ok(request) = controller.blocking_recv() {
//!         match request {
//!             GateCommand::Enter => {
//!                 entries += 1;
//!                 controller.entered(entries).unwrap();
//!             }
//!             GateCommand::Exit | GateCommand::Cancel => controller.released().unwrap(),
//!         }
//!     }
//!     entries
//! });
//!
//! let users = [(); 3].map(|()| {
//!     let gate = gate.clone();
//!     std::thread::spawn(move || {
//!         let guard = gate.blocking_enter().unwrap();
//!         // Change the protected resource here, and pass it the token.
//!         guard.token()
//!     })
//! });
//! let mut tokens = users.map(|user| user.join().unwrap());
//! tokens.sort_unstable();
//! assert_eq!(tokens, [1, 2, 3]);
//!
//! // The last gate ends the loop, as it is written above.
//! drop(gate);
//! assert_eq!(host.join().unwrap(), 3);
//! ```

mod controller;
mod entrance;
mod error;
mod guard;
mod state;

use alloc::sync::Arc;
use core::num::NonZeroUsize;

use crate::shared::sync::{Mutex, lock};

pub use self::controller::{Controller, GateCommand};
pub use self::entrance::Gate;
pub use self::error::{Closed, EnterError, OutOfTurn, Report, Stage, TryEnterError};
pub use self::guard::Guard;

use self::state::State;

/// The number of users that may wait at a gate, and the number of hand-overs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of users that may wait for their turn. Default: 64.
    pub waiters: NonZeroUsize,
    /// The number of times that one entry of the node is handed over to the next local user, with
    /// the same token. Each time saves the messages of an exit and an entry, and lets other nodes
    /// wait longer. Default: 0, so after each user the node exits, and other nodes have their turn.
    pub handovers: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            waiters: NonZeroUsize::MIN.saturating_add(63),
            handovers: 0,
        }
    }
}

/// Creates a gate to the section that one node enters, and its controller. `T` is the fencing token of
/// an entry, `R` the machine's reason to refuse one.
#[must_use]
pub fn channel<T: Copy, R>(limits: Limits) -> (Gate<T, R>, Controller<T, R>) {
    let shared = Arc::new(Shared {
        state: Mutex::new(State::new(limits)),
    });
    (Gate::new(Arc::clone(&shared)), Controller::new(shared))
}

/// The state that gates, guards and the controller share.
#[derive(Debug)]
struct Shared<T, R> {
    state: Mutex<State<T, R>>,
}

impl<T: Copy, R> Shared<T, R> {
    /// Changes the state, and then, with the lock free again, wakes the tasks that this concerns.
    /// Wakers and reasons that `change` returns must be woken or dropped by the caller, not inside
    /// it.
    fn change<O>(&self, change: impl FnOnce(&mut State<T, R>) -> O) -> O {
        let mut state = lock(&self.state);
        let outcome = change(&mut state);
        let woken = state.settle();
        drop(state);
        wake(woken.into_iter().flatten());
        outcome
    }
}

fn wake(wakers: impl IntoIterator<Item = core::task::Waker>) {
    for waker in wakers {
        waker.wake();
    }
}
