//! The rules: the users that wait, the user that is inside, and the next command for the machine.
//!
//! All of it stands behind one lock. Wakers and reasons are foreign code: they are handed out, to
//! be woken or dropped when the lock is free again.

use alloc::collections::BTreeMap;
use core::mem;
use core::task::{Poll, Waker};

use super::{Closed, EnterError, GateCommand, Limits, OutOfTurn, Report, Stage, TryEnterError};

#[derive(Debug)]
pub(super) struct State<T, R> {
    limits: Limits,
    node: Node<T>,
    /// The user that has the section, or was admitted and was not polled since.
    user: Option<User<T>>,
    /// The users that wait, longest waiting first.
    queue: BTreeMap<Ticket, Waker>,
    /// The reasons for the users whose Enter was refused, until these users poll.
    refused: BTreeMap<Ticket, R>,
    /// The users that wait for the present user to be fenced.
    watchers: BTreeMap<Ticket, Waker>,
    last: u64,
    /// The number of gates. Without any, no new user comes.
    gates: usize,
    /// True while users are admitted.
    open: bool,
    /// The controller, while it waits for a command.
    controller: Option<Waker>,
}

/// Numbers never repeat, and grow in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket(u64);

/// The state of the machine, as far as the controller knows.
#[derive(Clone, Copy, Debug)]
enum Node<T> {
    Outside,
    Entering {
        /// The user that caused it. It may have stopped waiting since.
        cause: Ticket,
    },
    Cancelling,
    Inside {
        token: T,
        /// The number of users that this entry has had, the present one included.
        users: u32,
        fenced: bool,
    },
    Exiting,
}

#[derive(Clone, Copy, Debug)]
struct User<T> {
    ticket: Ticket,
    /// Its own copy, because the entry may end while the user is still there.
    token: T,
    fenced: bool,
}

/// Wakers to call once the lock is free.
pub(super) type Woken = BTreeMap<Ticket, Waker>;

/// The waker and the reason of a user that leaves, to be dropped once the lock is free.
pub(super) type Left<R> = (Option<Waker>, Option<R>);

impl<T: Copy, R> State<T, R> {
    /// The state of one gate and one controller.
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            node: Node::Outside,
            user: None,
            queue: BTreeMap::new(),
            refused: BTreeMap::new(),
            watchers: BTreeMap::new(),
            last: 0,
            gates: 1,
            open: true,
            controller: None,
        }
    }

    /// Admits the user that may enter now, and returns the wakers to call: the user's, and the
    /// controller's if there is news for it. Called after each change. O(log n).
    pub(super) fn settle(&mut self) -> [Option<Waker>; 2] {
        let mut next = None;
        if self.is_free()
            && let Some((ticket, waker)) = self.queue.pop_first()
        {
            self.admit(ticket);
            next = Some(waker);
        }
        let controller = if self.request().is_some() || self.is_over() {
            self.controller.take()
        } else {
            None
        };
        [next, controller]
    }

    // Calls of users.

    /// Admits the user with this ticket, or keeps it waiting, from the first call on. A waker that
    /// is left in `waker` is no longer needed.
    pub(super) fn poll_enter(
        &mut self,
        place: &mut Option<Ticket>,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<T, EnterError<R>>> {
        let ticket = match *place {
            None => match self.try_enter() {
                Ok(token) => return Poll::Ready(Ok(token)),
                Err(TryEnterError::Closed) => return Poll::Ready(Err(EnterError::Closed)),
                Err(TryEnterError::WouldWait) => {
                    let limit = self.limits.waiters.get();
                    if self.queue.len() + self.refused.len() >= limit {
                        return Poll::Ready(Err(EnterError::Full { limit }));
                    }
                    *place.insert(self.ticket())
                }
            },
            Some(ticket) => {
                if let Some(reason) = self.refused.remove(&ticket) {
                    return Poll::Ready(Err(EnterError::Refused(reason)));
                }
                if !self.open {
                    return Poll::Ready(Err(EnterError::Closed));
                }
                if let Some(user) = self.user.filter(|user| user.ticket == ticket) {
                    // The user has its entry: from now on there is nothing to withdraw.
                    *place = None;
                    return Poll::Ready(Ok(user.token));
                }
                ticket
            }
        };
        if let Some(new) = waker.take() {
            *waker = self.queue.insert(ticket, new);
        }
        Poll::Pending
    }

    /// Admits a user if that takes no message. Users that wait are served first:
    /// [`settle`](Self::settle) has admitted them.
    pub(super) fn try_enter(&mut self) -> Result<T, TryEnterError> {
        if !self.open {
            return Err(TryEnterError::Closed);
        }
        if !self.is_free() {
            return Err(TryEnterError::WouldWait);
        }
        let ticket = self.ticket();
        self.admit(ticket).ok_or(TryEnterError::WouldWait)
    }

    /// Ends the wait of the user with this ticket. If it was admitted already, it counts as never
    /// admitted.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Left<R> {
        if self.user.is_some_and(|user| user.ticket == ticket) {
            self.user = None;
            if let Node::Inside { users, .. } = &mut self.node {
                *users = users.saturating_sub(1);
            }
        }
        (self.queue.remove(&ticket), self.refused.remove(&ticket))
    }

    /// Ends the turn of the user.
    pub(super) fn leave(&mut self) {
        self.user = None;
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.user.is_some_and(|user| user.fenced)
    }

    pub(super) const fn is_deserted(&self) -> bool {
        self.gates == 0
    }

    pub(super) const fn is_closed(&self) -> bool {
        !self.open
    }

    /// Waits for the user to be fenced, as [`poll_enter`](Self::poll_enter) waits.
    pub(super) fn poll_fenced(
        &mut self,
        place: &mut Option<Ticket>,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<(), Closed>> {
        if self.is_fenced() {
            return Poll::Ready(Ok(()));
        }
        if !self.open {
            return Poll::Ready(Err(Closed));
        }
        let ticket = match *place {
            None => *place.insert(self.ticket()),
            Some(ticket) => ticket,
        };
        if let Some(new) = waker.take() {
            *waker = self.watchers.insert(ticket, new);
        }
        Poll::Pending
    }

    pub(super) fn unwatch(&mut self, ticket: Ticket) -> Option<Waker> {
        self.watchers.remove(&ticket)
    }

    pub(super) const fn add_gate(&mut self) {
        self.gates += 1;
    }

    pub(super) const fn remove_gate(&mut self) {
        self.gates -= 1;
    }

    // Calls of the controller.

    /// Takes the next command. A waker that is left in `waker` is no longer needed. If it holds none,
    /// the task that waits goes on waiting.
    pub(super) fn poll_wish(
        &mut self,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<GateCommand, Closed>> {
        if let Some((request, node)) = self.request() {
            self.node = node;
            return Poll::Ready(Ok(request));
        }
        if self.is_over() {
            return Poll::Ready(Err(Closed));
        }
        if let Some(new) = waker.take() {
            *waker = self.controller.replace(new);
        }
        Poll::Pending
    }

    pub(super) fn entered(&mut self, token: T) -> Result<(), OutOfTurn> {
        match self.node {
            Node::Entering { .. } | Node::Cancelling => {
                self.node = Node::Inside {
                    token,
                    users: 0,
                    fenced: false,
                };
                Ok(())
            }
            Node::Outside | Node::Inside { .. } | Node::Exiting => {
                Err(self.out_of_turn(Report::Entered))
            }
        }
    }

    pub(super) fn released(&mut self) -> Result<Woken, OutOfTurn> {
        match self.node {
            Node::Cancelling | Node::Exiting => {
                self.node = Node::Outside;
                Ok(Woken::new())
            }
            Node::Inside { .. } => {
                let woken = self.fenced();
                self.node = Node::Outside;
                Ok(woken)
            }
            Node::Outside | Node::Entering { .. } => Err(self.out_of_turn(Report::Released)),
        }
    }

    /// Returns the waker to call, or the reason if no user waits for it any more.
    pub(super) fn refused(&mut self, reason: R) -> Result<Left<R>, (OutOfTurn, R)> {
        match self.node {
            Node::Entering { cause } => {
                self.node = Node::Outside;
                match self.queue.remove(&cause) {
                    Some(waker) => {
                        self.refused.insert(cause, reason);
                        Ok((Some(waker), None))
                    }
                    None => Ok((None, Some(reason))),
                }
            }
            Node::Cancelling => {
                self.node = Node::Outside;
                Ok((None, Some(reason)))
            }
            Node::Outside | Node::Inside { .. } | Node::Exiting => {
                Err((self.out_of_turn(Report::Refused), reason))
            }
        }
    }

    pub(super) fn fenced(&mut self) -> Woken {
        if let Node::Inside { fenced, .. } = &mut self.node {
            *fenced = true;
        }
        if let Some(user) = &mut self.user {
            user.fenced = true;
        }
        mem::take(&mut self.watchers)
    }

    /// Admits no more users. A user that was admitted and was not polled since finds that out at
    /// its next poll.
    pub(super) fn close(&mut self) -> [Woken; 2] {
        self.open = false;
        [mem::take(&mut self.queue), mem::take(&mut self.watchers)]
    }

    /// Removes the controller's waker: no task waits for commands any more.
    pub(super) const fn take_keeper(&mut self) -> Option<Waker> {
        self.controller.take()
    }

    fn ticket(&mut self) -> Ticket {
        self.last += 1;
        Ticket(self.last)
    }

    /// Makes this user the user of the entry.
    fn admit(&mut self, ticket: Ticket) -> Option<T> {
        let Node::Inside { token, users, .. } = &mut self.node else {
            return None;
        };
        *users = users.saturating_add(1);
        self.user = Some(User {
            ticket,
            token: *token,
            fenced: false,
        });
        Some(*token)
    }

    /// Returns true if a user may be admitted: the node is inside, no user is, and the entry may
    /// serve one more.
    const fn is_free(&self) -> bool {
        match self.node {
            Node::Inside { users, fenced, .. } => {
                self.user.is_none() && !fenced && users <= self.limits.handovers
            }
            Node::Outside | Node::Entering { .. } | Node::Cancelling | Node::Exiting => false,
        }
    }

    /// The next command for the machine, and the state of the node after it. The command is derived,
    /// not queued: a command whose reason disappears before it is taken does not come.
    fn request(&self) -> Option<(GateCommand, Node<T>)> {
        match self.node {
            Node::Outside if self.user.is_none() => {
                let (&cause, _) = self.queue.first_key_value()?;
                Some((GateCommand::Enter, Node::Entering { cause }))
            }
            Node::Entering { .. } if self.queue.is_empty() => {
                Some((GateCommand::Cancel, Node::Cancelling))
            }
            Node::Inside { .. } if self.user.is_none() => Some((GateCommand::Exit, Node::Exiting)),
            Node::Outside
            | Node::Entering { .. }
            | Node::Cancelling
            | Node::Inside { .. }
            | Node::Exiting => None,
        }
    }

    /// Returns true if no command will ever come. No user waits where no new user can come, because a
    /// user that waits has a gate.
    const fn is_over(&self) -> bool {
        let nobody_comes = !self.open || self.gates == 0;
        nobody_comes && matches!(self.node, Node::Outside)
    }

    const fn out_of_turn(&self, report: Report) -> OutOfTurn {
        let node = match self.node {
            Node::Outside => Stage::Outside,
            Node::Entering { .. } => Stage::Entering,
            Node::Cancelling => Stage::Cancelling,
            Node::Inside { .. } => Stage::Inside,
            Node::Exiting => Stage::Exiting,
        };
        OutOfTurn { report, node }
    }
}
