//! The gate: its rules against a model, and with real threads.

#![cfg(feature = "std")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "helpers of tests are tests, too"
)]

mod ends;
mod threads;
mod turns;

use core::num::NonZeroUsize;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use selvedge_core::shared::gate::{self, EnterError, GateCommand, Limits};

type Gate = gate::Gate<u64, u64>;
type Controller = gate::Controller<u64, u64>;
type Guard = gate::Guard<u64, u64>;
type Entering = Pin<Box<dyn Future<Output = Result<Guard, EnterError<u64>>> + Send>>;

fn channel(waiters: usize, handovers: u32) -> (Gate, Controller) {
    let waiters = NonZeroUsize::new(waiters).unwrap();
    gate::channel(Limits { waiters, handovers })
}

fn entering(gate: &Gate) -> Entering {
    let gate = gate.clone();
    Box::pin(async move { gate.enter().await })
}

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Starts to wait.
fn waiting(gate: &Gate) -> Entering {
    let mut future = entering(gate);
    assert!(poll(future.as_mut()).is_pending());
    future
}

/// The guard of a user whose turn has come.
fn enter(future: &mut Entering) -> Guard {
    let Poll::Ready(Ok(guard)) = poll(future.as_mut()) else {
        panic!("it was let in")
    };
    guard
}

/// The first guard of an entry with this token.
fn inside(gate: &Gate, controller: &mut Controller, token: u64) -> Guard {
    let mut future = waiting(gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(token).unwrap();
    enter(&mut future)
}

/// Checks that the next command is Exit, and exits.
fn exits(controller: &mut Controller) {
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Exit)));
    assert_eq!(controller.try_recv(), Ok(None));
    controller.released().unwrap();
}

/// A waker that counts its calls.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Bell {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
