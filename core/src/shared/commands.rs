//! The queue of commands between handles and port.

use alloc::collections::VecDeque;
use core::mem;
use core::task::{Context, Poll, Waker};

use super::outcome;
use super::service::OutcomeOf;
use super::sync::{Mutex, lock};
use super::wait::{Place, Waiters};
use super::{Closed, Request, Service, TrySubmitError};

#[derive(Debug)]
pub(super) struct Commands<M: Service> {
    state: Mutex<State<M>>,
}

#[derive(Debug)]
struct State<M: Service> {
    /// Not a `BoundedQueue`, which keeps a refused item: a refused command goes back to its caller.
    queue: VecDeque<Request<M>>,
    limit: usize,
    /// The number of handles. Without any, no more commands come.
    handles: usize,
    /// True while commands are admitted.
    open: bool,
    /// The port, while it waits for a command.
    port: Option<Waker>,
    /// The submitters that wait for room.
    room: Waiters,
}

/// An admitted command, and the port's waker to call when the lock is free.
type Admitted<M> = (OutcomeOf<M>, Option<Waker>);

impl<M: Service> Commands<M> {
    /// A queue for one handle and one port.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                limit,
                handles: 1,
                open: true,
                port: None,
                room: Waiters::default(),
            }),
        }
    }

    pub(super) fn try_submit(
        &self,
        command: M::Command,
    ) -> Result<OutcomeOf<M>, TrySubmitError<M::Command>> {
        let (outcome, port) = lock(&self.state).admit(command)?;
        wake(port);
        Ok(outcome)
    }

    pub(super) fn poll_recv(&self, cx: &Context<'_>) -> Poll<Result<Request<M>, Closed>> {
        self.pop(Some(cx.waker().clone()))
    }

    pub(super) fn try_recv(&self) -> Result<Option<Request<M>>, Closed> {
        match self.pop(None) {
            Poll::Ready(request) => request.map(Some),
            Poll::Pending => Ok(None),
        }
    }

    /// Removes the oldest command and returns it; without any, keeps `waker` for the next one.
    /// Without a waker the port goes on waiting.
    fn pop(&self, waker: Option<Waker>) -> Poll<Result<Request<M>, Closed>> {
        let mut state = lock(&self.state);
        if let Some(request) = state.queue.pop_front() {
            let room = state.room.take();
            drop(state);
            room.wake();
            return Poll::Ready(Ok(request));
        }
        if !state.open || state.handles == 0 {
            return Poll::Ready(Err(Closed));
        }
        let former = waker.and_then(|waker| state.port.replace(waker));
        drop(state);
        drop(former);
        Poll::Pending
    }

    /// Admits no more commands. The commands in the queue stay.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.open = false;
        let room = state.room.take();
        drop(state);
        room.wake();
    }

    /// Closes the queue, and refuses the commands in it.
    pub(super) fn shut_down(&self) {
        self.close();
        let mut state = lock(&self.state);
        let queue = mem::take(&mut state.queue);
        let port = state.port.take();
        drop(state);
        drop(port);
        for request in queue {
            request.reply.refuse();
        }
    }

    pub(super) fn add_handle(&self) {
        lock(&self.state).handles += 1;
    }

    pub(super) fn remove_handle(&self) {
        let mut state = lock(&self.state);
        state.handles -= 1;
        let port = if state.handles == 0 {
            state.port.take()
        } else {
            None
        };
        drop(state);
        wake(port);
    }
}

impl<M: Service> State<M> {
    fn admit(&mut self, command: M::Command) -> Result<Admitted<M>, TrySubmitError<M::Command>> {
        if !self.open {
            return Err(TrySubmitError::Closed { command });
        }
        if self.queue.len() >= self.limit {
            let limit = self.limit;
            return Err(TrySubmitError::Full { command, limit });
        }
        let (reply, outcome) = outcome::pair();
        self.queue.push_back(Request { command, reply });
        Ok((outcome, self.port.take()))
    }
}

/// A caller that waits for room. When dropped, it waits no more.
pub(super) struct Submitter<'a, M: Service> {
    commands: &'a Commands<M>,
    place: Place,
}

impl<'a, M: Service> Submitter<'a, M> {
    pub(super) fn new(commands: &'a Commands<M>) -> Self {
        Self {
            commands,
            place: Place::default(),
        }
    }

    /// Takes the command out of `command` and submits it as soon as there is room.
    ///
    /// All submitters that wait are woken when a command is taken. To wake one alone would be
    /// cheaper, but then a woken submitter that is dropped would have to wake the next one.
    pub(super) fn poll_submit(
        &mut self,
        command: &mut Option<M::Command>,
        cx: &Context<'_>,
    ) -> Poll<Result<OutcomeOf<M>, Closed>> {
        let Some(wanted) = command.take() else {
            return Poll::Pending;
        };
        let waker = cx.waker().clone();
        let mut state = lock(&self.commands.state);
        match state.admit(wanted) {
            Ok((outcome, port)) => {
                drop(state);
                wake(port);
                Poll::Ready(Ok(outcome))
            }
            Err(TrySubmitError::Full { command: back, .. }) => {
                let former = state.room.register(&mut self.place, waker);
                drop(state);
                drop(former);
                *command = Some(back);
                Poll::Pending
            }
            Err(TrySubmitError::Closed { command: back }) => {
                drop(state);
                *command = Some(back);
                Poll::Ready(Err(Closed))
            }
        }
    }
}

impl<M: Service> Drop for Submitter<'_, M> {
    fn drop(&mut self) {
        let waker = lock(&self.commands.state).room.remove(&self.place);
        drop(waker);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
