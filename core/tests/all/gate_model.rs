//! The gate against a model of it: any calls in any order.

#![cfg(feature = "std")]
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "helpers of tests are tests, too"
)]

use core::num::NonZeroUsize;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;
use std::thread;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::shared::gate::{self, Closed, EnterError, GateCommand, Limits, TryEnterError};

type Gate = gate::Gate<u64, u64>;
type Controller = gate::Controller<u64, u64>;
type Guard = gate::Guard<u64, u64>;
type Entering = Pin<Box<dyn Future<Output = Result<Guard, EnterError<u64>>> + Send>>;
type Watching = Pin<Box<dyn Future<Output = Result<(), Closed>> + Send>>;

fn entering(gate: &Gate) -> Entering {
    let gate = gate.clone();
    Box::pin(async move { gate.enter().await })
}

/// The outcome that a user must find if it was polled at least once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Waits,
    Admitted,
    Refused(u64),
    Closed,
}

struct User {
    future: Entering,
    fate: Fate,
    bell: Arc<Bell>,
}

/// The state of the node, by the commands to the machine and its reports.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Node {
    Outside,
    /// For the user at this place in the order of arrival, as long as it waits.
    Entering(Option<usize>),
    Cancelling,
    Inside,
    Exiting,
}

/// A model that predicts the outcome of each call, from a list of users in the order of their
/// arrival.
struct Model {
    dice: Dice,
    limits: Limits,
    gate: Gate,
    controller: Controller,
    open: bool,
    node: Node,
    token: u64,
    /// The number of users that have had this entry.
    had: u64,
    fenced: bool,
    users: Vec<User>,
    guard: Option<Arc<Guard>>,
    watching: Vec<(Watching, Arc<Bell>)>,
    /// The number of calls of the controller's waker when it began to wait.
    waits: Option<(Arc<Bell>, usize)>,
    entries: u64,
    turns: u64,
}

impl Model {
    fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let limits = Limits {
            waiters: NonZeroUsize::new(1 + dice.below(4)).unwrap(),
            handovers: u32::try_from(dice.below(3)).unwrap(),
        };
        let (gate, controller) = gate::channel(limits);
        Self {
            dice,
            limits,
            gate,
            controller,
            open: true,
            node: Node::Outside,
            token: 0,
            had: 0,
            fenced: false,
            users: Vec::new(),
            guard: None,
            watching: Vec::new(),
            waits: None,
            entries: 0,
            turns: 0,
        }
    }

    fn step(&mut self) {
        match self.dice.below(20) {
            0..4 => self.arrive(),
            4..7 => self.poll_one(),
            7 => self.give_up(),
            8..10 => self.leave(),
            10..13 => self.take_request(),
            13..16 => self.report(),
            16 => self.report_wrongly(),
            17 => self.watch(),
            18 => self.attempt(),
            _ => match self.dice.below(8) {
                0..3 => self.fence(),
                3..5 => self.node_leaves(),
                5 if self.dice.one_in(100) => self.close(),
                _ => self.refuse(),
            },
        }
        self.admit();
        self.check();
    }

    fn is_taken(&self) -> bool {
        self.guard.is_some() || self.users.iter().any(|user| user.fate == Fate::Admitted)
    }

    fn is_free(&self) -> bool {
        self.node == Node::Inside
            && !self.fenced
            && self.had <= u64::from(self.limits.handovers)
            && !self.is_taken()
    }

    fn first(&self) -> Option<usize> {
        self.users.iter().position(|user| user.fate == Fate::Waits)
    }

    fn request(&self) -> Option<GateCommand> {
        match self.node {
            Node::Outside if !self.is_taken() && self.first().is_some() => Some(GateCommand::Enter),
            Node::Entering(_) if self.first().is_none() => Some(GateCommand::Cancel),
            Node::Inside if !self.is_taken() => Some(GateCommand::Exit),
            Node::Outside | Node::Entering(_) | Node::Cancelling | Node::Inside | Node::Exiting => {
                None
            }
        }
    }

    fn admit(&mut self) {
        if self.is_free()
            && let Some(first) = self.first()
        {
            self.users[first].fate = Fate::Admitted;
            self.had += 1;
        }
    }

    /// The users that can continue were woken, and no others.
    fn check(&mut self) {
        for user in &self.users {
            assert_eq!(user.bell.count() > 0, user.fate != Fate::Waits);
        }
        for (_, bell) in &self.watching {
            let over = self.fenced || !self.open;
            assert_eq!(bell.count() > 0, over);
        }
        if let Some(guard) = &self.guard {
            assert_eq!(guard.is_fenced(), self.fenced);
            assert_eq!(guard.is_closed(), !self.open);
        }
        let news = self.request().is_some() || !self.open && self.node == Node::Outside;
        if let Some((bell, before)) = &self.waits
            && news
        {
            assert!(bell.count() > *before, "the controller sleeps");
        }
    }

    fn arrive(&mut self) {
        let kept = self.users.iter();
        let kept = kept.filter(|user| matches!(user.fate, Fate::Waits | Fate::Refused(_)));
        let full = kept.count() >= self.limits.waiters.get();
        let mut future = entering(&self.gate);
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(guard)) => {
                assert!(self.open && self.is_free());
                self.had += 1;
                self.let_in(guard);
            }
            Poll::Ready(Err(EnterError::Closed)) => assert!(!self.open),
            Poll::Ready(Err(EnterError::Full { .. })) => {
                assert!(self.open && !self.is_free() && full);
            }
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => {
                assert!(self.open && !self.is_free() && !full);
                let fate = Fate::Waits;
                self.users.push(User { future, fate, bell });
            }
        }
    }

    fn let_in(&mut self, guard: Guard) {
        assert_eq!(guard.token(), self.token);
        assert!(self.guard.is_none());
        self.turns += 1;
        self.guard = Some(Arc::new(guard));
    }

    /// Forgets the user at this place in the order.
    fn forget(&mut self, index: usize) {
        drop(self.users.remove(index));
        if let Node::Entering(cause) = &mut self.node {
            *cause = match *cause {
                Some(cause) if cause == index => None,
                Some(cause) if cause > index => Some(cause - 1),
                cause => cause,
            };
        }
    }

    fn poll_one(&mut self) {
        if self.users.is_empty() {
            return;
        }
        let index = self.dice.below(self.users.len());
        let user = &mut self.users[index];
        // After the end no user gets in, though a user that was admitted had been woken for that.
        let fate = if user.fate == Fate::Admitted && !self.open {
            Fate::Closed
        } else {
            user.fate
        };
        let waker = Waker::from(Arc::clone(&user.bell));
        let outcome = user.future.as_mut().poll(&mut Context::from_waker(&waker));
        match (fate, outcome) {
            (Fate::Waits, Poll::Pending) => {}
            (Fate::Admitted, Poll::Ready(Ok(guard))) => {
                self.forget(index);
                self.let_in(guard);
            }
            (Fate::Refused(reason), Poll::Ready(Err(error))) => {
                assert_eq!(error, EnterError::Refused(reason));
                self.forget(index);
            }
            (Fate::Closed, Poll::Ready(Err(error))) => {
                assert_eq!(error, EnterError::Closed);
                self.give_up_at(index);
            }
            (fate, outcome) => panic!("{fate:?} gave {outcome:?}"),
        }
    }

    fn give_up(&mut self) {
        if !self.users.is_empty() {
            let index = self.dice.below(self.users.len());
            self.give_up_at(index);
        }
    }

    fn give_up_at(&mut self, index: usize) {
        if self.users[index].fate == Fate::Admitted && self.node == Node::Inside {
            self.had -= 1;
        }
        self.forget(index);
    }

    fn leave(&mut self) {
        self.watching.clear();
        self.guard = None;
    }

    fn watch(&mut self) {
        let Some(guard) = self.guard.clone() else {
            return;
        };
        let mut future: Watching = Box::pin(async move { guard.fenced().await });
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(Ok(())) => assert!(self.fenced),
            Poll::Ready(Err(Closed)) => assert!(!self.open && !self.fenced),
            Poll::Pending => {
                assert!(self.open && !self.fenced);
                self.watching.push((future, bell));
            }
        }
    }

    fn attempt(&mut self) {
        match self.gate.try_enter() {
            Ok(guard) => {
                assert!(self.open && self.is_free());
                self.had += 1;
                self.let_in(guard);
            }
            Err(TryEnterError::Closed) => assert!(!self.open),
            Err(TryEnterError::WouldWait) => assert!(self.open && !self.is_free()),
        }
    }

    fn take_request(&mut self) {
        let (bell, _) = self.waits.take().unwrap_or_default();
        let waker = Waker::from(Arc::clone(&bell));
        let before = bell.count();
        let found = self.controller.poll_recv(&mut Context::from_waker(&waker));
        let over = !self.open && self.node == Node::Outside;
        match self.request() {
            Some(request) => assert_eq!(found, Poll::Ready(Ok(request))),
            None if over => assert_eq!(found, Poll::Ready(Err(Closed))),
            None => {
                assert_eq!(found, Poll::Pending);
                self.waits = Some((bell, before));
            }
        }
        match self.request() {
            Some(GateCommand::Enter) => self.node = Node::Entering(self.first()),
            Some(GateCommand::Cancel) => self.node = Node::Cancelling,
            Some(GateCommand::Exit) => self.node = Node::Exiting,
            None => {}
        }
    }

    /// The machine reports the outcome of a command.
    fn report(&mut self) {
        let late = self.dice.one_in(3);
        match self.node {
            Node::Outside | Node::Inside => {}
            Node::Exiting => self.release(),
            Node::Cancelling if !late => self.release(),
            Node::Entering(_) | Node::Cancelling => {
                self.token += 1;
                self.entries += 1;
                self.controller.entered(self.token).unwrap();
                self.node = Node::Inside;
                (self.had, self.fenced) = (0, false);
            }
        }
    }

    fn release(&mut self) {
        self.controller.released().unwrap();
        self.node = Node::Outside;
    }

    fn refuse(&mut self) {
        self.token += 1;
        match self.node {
            Node::Entering(cause) => {
                self.controller.refused(self.token).unwrap();
                if let Some(cause) = cause
                    && self.users[cause].fate == Fate::Waits
                {
                    self.users[cause].fate = Fate::Refused(self.token);
                }
                self.node = Node::Outside;
            }
            Node::Cancelling => {
                self.controller.refused(self.token).unwrap();
                self.node = Node::Outside;
            }
            // No report was made: a later entry gets this number.
            Node::Outside | Node::Inside | Node::Exiting => self.token -= 1,
        }
    }

    fn report_wrongly(&mut self) {
        let outcome = match self.node {
            Node::Outside if self.dice.one_in(2) => self.controller.released(),
            Node::Entering(_) => self.controller.released(),
            Node::Outside | Node::Exiting => self.controller.entered(99),
            Node::Inside if self.dice.one_in(2) => self.controller.entered(99),
            Node::Inside => self.controller.refused(99),
            Node::Cancelling => return,
        };
        assert!(outcome.is_err());
    }

    fn fence(&mut self) {
        self.controller.fenced();
        if self.node == Node::Inside || self.is_taken() {
            self.fenced = true;
        }
    }

    fn node_leaves(&mut self) {
        if self.node == Node::Inside {
            self.release();
            self.fenced = true;
        }
    }

    fn close(&mut self) {
        self.controller.close();
        self.open = false;
        for user in &mut self.users {
            if user.fate == Fate::Waits {
                user.fate = Fate::Closed;
            }
        }
    }

    /// All users leave, and the machine exits.
    fn end(mut self) -> (u64, u64) {
        self.leave();
        while !self.users.is_empty() {
            self.give_up_at(0);
        }
        for _ in 0..4 {
            self.take_request();
            self.report();
        }
        drop(self.gate);
        assert_eq!(self.controller.try_recv(), Err(Closed));
        (self.entries, self.turns)
    }
}

#[test]
fn every_sequence_of_calls_does_what_the_model_says() {
    let (mut entries, mut turns) = (0, 0);
    for seed in 0..2_000 {
        let _notified = Seed(seed);
        let mut model = Model::new(seed);
        for _ in 0..1_500 {
            model.step();
        }
        let (more_entries, more_turns) = model.end();
        entries += more_entries;
        turns += more_turns;
    }
    println!("{entries} entries, {turns} turns");
    assert!(
        entries > 50_000 && turns > 50_000,
        "nothing was put to the test"
    );
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

/// Prints the seed when a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("seed {}", self.0);
        }
    }
}

struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.next_u64() % bound as u64).unwrap()
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}
