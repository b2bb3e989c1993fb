//! The host's end of a gate.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use crate::shared::sync::{block_on, block_on_for};

use super::{Closed, Gate, OutOfTurn, Shared, wake};

/// The host's end: it stands beside the driver in the host's loop.
///
/// The loop takes commands and passes them to the machine. It reports the machine's events to
/// the controller:
///
/// | command taken | report, once |
/// |---|---|
/// | [`Enter`](GateCommand::Enter) | [`entered`](Self::entered), or [`refused`](Self::refused), at once or later |
/// | [`Cancel`](GateCommand::Cancel) | [`released`](Self::released) when no Enter is pending any more; or [`entered`](Self::entered), if that came first |
/// | [`Exit`](GateCommand::Exit) | [`released`](Self::released) when it is outside |
/// | none | [`fenced`](Self::fenced) when the node is; [`released`](Self::released) when the machine has left the section by itself |
///
/// If the machine reports at once that it carried out the command, or that there was nothing to do,
/// the host reports at once. No command comes before that report.
///
/// A host that sleeps in something else, such as a blocking read from its socket, gives
/// [`poll_recv`](Self::poll_recv) a waker that interrupts that sleep, for instance by a datagram to
/// itself.
///
/// Dropping the controller [closes](Self::close) it, and the machine gets no more commands: a node that
/// is inside stays inside.
#[derive(Debug)]
pub struct Controller<T: Copy, R> {
    shared: Arc<Shared<T, R>>,
}

/// The next command for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GateCommand {
    /// Enter the section.
    Enter,
    /// Leave the section. Comes once for each time that the node was inside, unless it left by
    /// itself.
    Exit,
    /// Withdraw the Enter: no user waits any more.
    Cancel,
}

impl<T: Copy, R> Controller<T, R> {
    pub(super) const fn new(shared: Arc<Shared<T, R>>) -> Self {
        Self { shared }
    }

    /// Waits for a command. Cancel-safe: dropping the future loses no command.
    ///
    /// # Errors
    /// When no command will come: the node is outside, and all gates were dropped or the controller was
    /// [closed](Self::close).
    pub async fn recv(&mut self) -> Result<GateCommand, Closed> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Blocks this thread until there is a command.
    ///
    /// # Errors
    /// When no command will come.
    pub fn blocking_recv(&mut self) -> Result<GateCommand, Closed> {
        block_on(self.recv())
    }

    /// Blocks this thread until there is a command, for `timeout` at most. `None` when there is still
    /// none; it may return earlier than `timeout`, so read the clock.
    ///
    /// # Errors
    /// When no command will come. It then returns at once, so a host that continues must sleep by
    /// itself.
    pub fn recv_timeout(&mut self, timeout: Duration) -> Result<Option<GateCommand>, Closed> {
        block_on_for(self.recv(), timeout).transpose()
    }

    /// The next command, if there is one.
    ///
    /// # Errors
    /// When no command will come.
    pub fn try_recv(&mut self) -> Result<Option<GateCommand>, Closed> {
        match self.take_request(None) {
            Poll::Ready(request) => request.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// The next command. Without one, the task of `cx` is woken when that changes.
    ///
    /// # Errors
    /// When no command will come.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<GateCommand, Closed>> {
        self.take_request(Some(cx.waker().clone()))
    }

    /// Reports that the node is inside, and `token` fences this entry. The user that has waited
    /// longest has its turn. When no user waits any more, the next command is Exit.
    ///
    /// # Errors
    /// When no Enter is pending. Nothing changed: the machine is inside, and nothing will ask it to
    /// exit.
    pub fn entered(&mut self, token: T) -> Result<(), OutOfTurn> {
        self.shared.change(|state| state.entered(token))
    }

    /// Reports that the node is outside and asks for nothing. If it was still inside, the guard is
    /// fenced.
    ///
    /// # Errors
    /// When the node is not inside, and no Exit or Cancel was taken. Nothing changed.
    pub fn released(&mut self) -> Result<(), OutOfTurn> {
        let woken = self.shared.change(|state| state.released())?;
        wake(woken.into_values());
        Ok(())
    }

    /// Reports that the machine refused the Enter, or gave it up later. The user for which it was
    /// made gets the reason, if that user still waits. For other users the node asks again.
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

    /// Reports that the node was fenced: it may still be inside, and other nodes may be inside as
    /// well. The guard is notified, and this entry is not handed over. Exit follows when the guard
    /// is dropped. A machine that left the section by being fenced is reported as
    /// [`released`](Self::released) instead, and no Exit follows. Outside, nothing happens.
    pub fn fenced(&mut self) {
        let woken = self.shared.change(|state| state.fenced());
        wake(woken.into_values());
    }

    /// Admits no more users. Users that wait get [`EnterError::Closed`](super::EnterError::Closed).
    /// Commands still come until the node is outside.
    pub fn close(&mut self) {
        for woken in self.shared.change(|state| state.close()) {
            wake(woken.into_values());
        }
    }

    /// Returns true if all gates were dropped, so that no new user will wait. A guard may still
    /// exist.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.shared.change(|state| state.is_deserted())
    }

    /// Another gate, even if all others were dropped. The gate of a closed controller is closed, too.
    #[must_use]
    pub fn gate(&self) -> Gate<T, R> {
        self.shared.change(|state| state.add_gate());
        Gate::new(Arc::clone(&self.shared))
    }

    fn take_request(&mut self, mut waker: Option<Waker>) -> Poll<Result<GateCommand, Closed>> {
        let request = self.shared.change(|state| state.poll_wish(&mut waker));
        drop(waker);
        request
    }
}

impl<T: Copy, R> Drop for Controller<T, R> {
    fn drop(&mut self) {
        // No task is left to be woken by the last change.
        let waker = self.shared.change(|state| state.take_keeper());
        drop(waker);
        self.close();
    }
}
