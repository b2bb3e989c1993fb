//! The host's end.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use crate::shared::sync::{block_on, block_on_for};

use super::{Closed, Gate, OutOfTurn, Shared, wake};

/// The host's end: it stands beside the driver in the host's loop.
///
/// The loop takes wishes and commands the machine accordingly. It reports back what the machine
/// tells:
///
/// | wish taken | report, once |
/// |---|---|
/// | [`Enter`](Wish::Enter) | [`entered`](Self::entered), or [`refused`](Self::refused), at once or later |
/// | [`Cancel`](Wish::Cancel) | [`released`](Self::released) when there is no Enter any more; or [`entered`](Self::entered), if that came first |
/// | [`Exit`](Wish::Exit) | [`released`](Self::released) when it is outside |
/// | none | [`fenced`](Self::fenced) when the node is; [`released`](Self::released) when the machine has left the section by itself |
///
/// Where the machine says at once that it did what it was commanded, or that there was nothing to
/// do, the host reports at once. No wish comes before that report.
///
/// A host that sleeps in something else, such as a blocking read from its socket, gives
/// [`poll_recv`](Self::poll_recv) a waker that interrupts that sleep, for instance by a datagram to
/// itself.
///
/// Dropping the keeper [closes](Self::close) it, and the machine is told nothing more: a node that
/// is inside stays inside.
#[derive(Debug)]
pub struct Keeper<T: Copy, R> {
    shared: Arc<Shared<T, R>>,
}

/// What the machine is to be commanded next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    /// Enter the section.
    Enter,
    /// Leave the section. Comes once for each time that the node was inside, unless it left by
    /// itself.
    Exit,
    /// Withdraw the Enter: no user waits any more.
    Cancel,
}

impl<T: Copy, R> Keeper<T, R> {
    pub(super) const fn new(shared: Arc<Shared<T, R>>) -> Self {
        Self { shared }
    }

    /// Waits for a wish. Cancel-safe: a dropped future has taken nothing.
    ///
    /// # Errors
    /// When no wish will come: the node is outside, and all gates are gone or the keeper was
    /// [closed](Self::close).
    pub async fn recv(&mut self) -> Result<Wish, Closed> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Blocks this thread until there is a wish.
    ///
    /// # Errors
    /// When no wish will come.
    pub fn blocking_recv(&mut self) -> Result<Wish, Closed> {
        block_on(self.recv())
    }

    /// Blocks this thread until there is a wish, for `timeout` at most. `None` when there is still
    /// none. That may be earlier than asked, so look at the clock.
    ///
    /// # Errors
    /// When no wish will come; at once, so a host that goes on must sleep by itself.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<Wish>, Closed> {
        block_on_for(self.recv(), timeout).transpose()
    }

    /// The next wish, if there is one.
    ///
    /// # Errors
    /// When no wish will come.
    pub fn try_recv(&mut self) -> Result<Option<Wish>, Closed> {
        match self.take_wish(None) {
            Poll::Ready(wish) => wish.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// The next wish. Where there is none, the task of `cx` is woken when that changes.
    ///
    /// # Errors
    /// When no wish will come.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Wish, Closed>> {
        self.take_wish(Some(cx.waker().clone()))
    }

    /// The node is inside, and `token` fences this entry. The user that has waited longest has its
    /// turn. When no user waits any more, the next wish is Exit.
    ///
    /// # Errors
    /// When no Enter is pending. Nothing changed: the machine is inside, and nothing will ask it to
    /// exit.
    pub fn entered(&mut self, token: T) -> Result<(), OutOfTurn> {
        self.shared.change(|state| state.entered(token))
    }

    /// The node is outside and asks for nothing. If it was still inside, the guard is fenced.
    ///
    /// # Errors
    /// When nothing was to be released. Nothing changed.
    pub fn released(&mut self) -> Result<(), OutOfTurn> {
        let woken = self.shared.change(|state| state.released())?;
        wake(woken.into_values());
        Ok(())
    }

    /// The machine refused the Enter, or gave it up later. The user for which it was made hears of
    /// it, if that user still waits. For others the node asks anew.
    ///
    /// # Errors
    /// When no Enter is pending. Nothing changed.
    pub fn refused(&mut self, reason: R) -> Result<(), OutOfTurn> {
        match self.shared.change(|state| state.refused(reason)) {
            Ok((waiter, _nobody_hears_it)) => {
                wake(waiter);
                Ok(())
            }
            Err((out_of_turn, _)) => Err(out_of_turn),
        }
    }

    /// The node was fenced: it may still be inside, and others may be there as well. The guard
    /// hears of it, and this entry is not handed over. Exit follows when the guard is gone. A
    /// machine that left the section by being fenced is reported as [`released`](Self::released)
    /// instead, and there is no Exit. Outside, nothing happens.
    pub fn fenced(&mut self) {
        let woken = self.shared.change(|state| state.fenced());
        wake(woken.into_values());
    }

    /// Admits no more users. Those that wait get [`EnterError::Closed`](super::EnterError::Closed).
    /// Wishes still come until the node is outside.
    pub fn close(&mut self) {
        for woken in self.shared.change(|state| state.close()) {
            wake(woken.into_values());
        }
    }

    /// Whether all gates are gone, so that no new user will wait. A guard may still be there.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.shared.change(|state| state.is_deserted())
    }

    /// Another gate, also when all others are gone. One of a closed keeper is closed, too.
    #[must_use]
    pub fn gate(&self) -> Gate<T, R> {
        self.shared.change(|state| state.add_gate());
        Gate::new(Arc::clone(&self.shared))
    }

    fn take_wish(&mut self, mut waker: Option<Waker>) -> Poll<Result<Wish, Closed>> {
        let wish = self.shared.change(|state| state.poll_wish(&mut waker));
        drop(waker);
        wish
    }
}

impl<T: Copy, R> Drop for Keeper<T, R> {
    fn drop(&mut self) {
        // No task is left to be woken by the last change.
        let waker = self.shared.change(|state| state.take_keeper());
        drop(waker);
        self.close();
    }
}
