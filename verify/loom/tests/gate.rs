//! The gate of a section: no lost wake-up, no lost turn, never two guards at once, a clean end
//! while others wait.

#![cfg(loom)]
#![allow(
    clippy::std_instead_of_alloc,
    reason = "a test has std; it needs no second crate for the same names"
)]

use core::num::NonZeroUsize;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;

use loom::model::Builder;
use loom::thread;
use selvedge_core::shared::gate::{self, Closed, EnterError, GateCommand, Limits};

type Gate = gate::Gate<u8, u8>;
type Controller = gate::Controller<u8, u8>;
type Guard = gate::Guard<u8, u8>;

fn channel(handovers: u32) -> (Gate, Controller) {
    let waiters = NonZeroUsize::MIN.saturating_add(3);
    gate::channel(Limits { waiters, handovers })
}

/// Tries every order.
fn every_order(test: impl Fn() + Sync + Send + 'static) {
    orders(None, test);
}

/// Tries every order in which no thread is interrupted more than `bound` times where it could have
/// gone on. Most defects need two such interruptions.
fn orders(bound: impl Into<Option<usize>>, test: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = bound.into();
    builder.check(test);
}

/// A machine that carries out each command at once, and checks that the keeper keeps the order.
#[derive(Default)]
struct Node {
    entries: u8,
    cancels: u8,
    inside: bool,
    pending: bool,
}

impl Node {
    /// Carries out everything until no gate is left.
    fn serve(mut self, mut controller: Controller) -> Self {
        while let Ok(request) = controller.blocking_recv() {
            self.carry_out(request, &mut controller);
        }
        assert!(!self.inside && !self.pending);
        self
    }

    fn carry_out(&mut self, request: GateCommand, controller: &mut Controller) {
        self.command(request);
        match request {
            GateCommand::Enter => self.enter(controller),
            GateCommand::Exit | GateCommand::Cancel => controller.released().unwrap(),
        }
    }

    fn command(&mut self, request: GateCommand) {
        match request {
            GateCommand::Enter => {
                assert!(!self.inside && !self.pending);
                self.pending = true;
            }
            GateCommand::Exit => {
                assert!(self.inside);
                self.inside = false;
            }
            GateCommand::Cancel => {
                assert!(self.pending);
                self.pending = false;
                self.cancels += 1;
            }
        }
    }

    fn enter(&mut self, controller: &mut Controller) {
        self.entries += 1;
        self.pending = false;
        self.inside = true;
        controller.entered(self.entries).unwrap();
    }
}

/// Checks that no other thread is inside.
#[derive(Clone, Default)]
struct Section(Arc<AtomicBool>);

impl Section {
    /// Stays a while, so that others may try, and leaves.
    fn pass(&self, guard: Guard) -> u8 {
        assert!(!self.0.swap(true, Ordering::SeqCst), "two are inside");
        let token = guard.token();
        assert!(!guard.is_fenced());
        assert!(self.0.swap(false, Ordering::SeqCst));
        guard.exit();
        token
    }
}

#[test]
fn a_turn_wakes_whoever_waits_and_whoever_leaves_wakes_the_keeper() {
    every_order(|| {
        let (gate, controller) = channel(0);
        let host = thread::spawn(move || Node::default().serve(controller));
        let guard = gate.blocking_enter().unwrap();
        assert_eq!(guard.token(), 1);
        drop(gate);
        drop(guard);
        assert_eq!(host.join().unwrap().entries, 1);
    });
}

#[test]
fn two_threads_are_inside_one_after_the_other_each_with_its_own_entry() {
    orders(3, || {
        let (gate, controller) = channel(0);
        let section = Section::default();
        let users = [(); 2].map(|()| {
            let (gate, section) = (gate.clone(), section.clone());
            thread::spawn(move || section.pass(gate.blocking_enter().unwrap()))
        });
        drop(gate);
        assert_eq!(Node::default().serve(controller).entries, 2);
        let mut tokens = users.map(|user| user.join().unwrap());
        tokens.sort_unstable();
        assert_eq!(tokens, [1, 2]);
    });
}

#[test]
fn two_threads_to_whom_one_entry_is_handed_over_are_never_inside_together() {
    orders(3, || {
        let (gate, controller) = channel(1);
        let section = Section::default();
        let users = [(); 2].map(|()| {
            let (gate, section) = (gate.clone(), section.clone());
            thread::spawn(move || section.pass(gate.blocking_enter().unwrap()))
        });
        drop(gate);
        let entries = Node::default().serve(controller).entries;
        let tokens = users.map(|user| user.join().unwrap());
        assert_eq!(entries, tokens.into_iter().max().unwrap());
    });
}

#[test]
fn the_next_one_is_woken_when_it_is_handed_over() {
    every_order(|| {
        let (gate, mut controller) = channel(1);
        let other = gate.clone();
        let waiting = thread::spawn(move || other.blocking_enter().unwrap().token());
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Enter));
        {
            // Only reads the gate, so that the other thread is first.
            let mut second = pin!(gate.enter());
            let mut cx = Context::from_waker(Waker::noop());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            controller.entered(7).unwrap();
            assert_eq!(waiting.join().unwrap(), 7);
            assert!(matches!(second.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
        }
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Exit));
    });
}

#[test]
fn one_that_runs_out_of_time_never_takes_the_turn_of_the_next_one() {
    orders(3, || {
        let (gate, controller) = channel(0);
        let section = Section::default();
        let hasty = {
            let (gate, section) = (gate.clone(), section.clone());
            thread::spawn(move || match gate.blocking_enter_timeout(Duration::ZERO) {
                Ok(guard) => u8::from(section.pass(guard) > 0),
                Err(error) => {
                    assert_eq!(error, EnterError::TimedOut);
                    0
                }
            })
        };
        let patient = thread::spawn(move || {
            let guard = gate.blocking_enter().unwrap();
            section.pass(guard);
        });
        let node = Node::default().serve(controller);
        patient.join().unwrap();
        // An entry for each thread, and an entry that was given back if the hasty thread left too
        // late.
        let users = 1 + hasty.join().unwrap();
        assert!((users..=2).contains(&node.entries));
    });
}

#[test]
fn a_turn_that_nobody_waits_for_any_more_is_given_back() {
    every_order(|| {
        let (gate, controller) = channel(0);
        let user = thread::spawn(move || {
            let mut waiting = pin!(gate.enter());
            let mut cx = Context::from_waker(Waker::noop());
            waiting.as_mut().poll(&mut cx).is_pending()
        });
        let node = Node::default().serve(controller);
        assert!(user.join().unwrap());
        assert_eq!(node.cancels, 0, "each Enter was granted at once");
        assert!(node.entries <= 1);
    });
}

/// Takes the Enter, and lets the node in only when the next event of the gate arrives: then the
/// Enter is cancelled, or another thread has come.
#[test]
fn a_cancelled_enter_that_is_granted_all_the_same_is_used_or_given_back() {
    orders(3, || {
        let (gate, mut controller) = channel(0);
        let section = Section::default();
        let hasty = {
            let gate = gate.clone();
            thread::spawn(move || gate.blocking_enter_timeout(Duration::ZERO).is_ok())
        };
        let late = thread::spawn(move || {
            section.pass(gate.blocking_enter().unwrap());
        });
        let mut node = Node::default();
        let request = controller.blocking_recv().unwrap();
        node.command(request);
        if let Ok(Some(request)) = controller.try_recv() {
            assert_eq!(request, GateCommand::Cancel);
            node.cancels += 1;
        }
        node.enter(&mut controller);
        node.serve(controller);
        late.join().unwrap();
        hasty.join().unwrap();
    });
}

#[test]
fn an_enter_that_lost_its_reason_is_cancelled_and_the_keeper_is_woken_for_it() {
    every_order(|| {
        let (gate, mut controller) = channel(0);
        let user = thread::spawn(move || gate.blocking_enter_timeout(Duration::ZERO).unwrap_err());
        let mut node = Node::default();
        let mut requests = Vec::new();
        while let Ok(request) = controller.blocking_recv() {
            requests.push(request);
            node.command(request);
            if request == GateCommand::Cancel {
                controller.released().unwrap();
            }
        }
        assert_eq!(user.join().unwrap(), EnterError::TimedOut);
        assert!(requests.is_empty() || requests == [GateCommand::Enter, GateCommand::Cancel]);
    });
}

#[test]
fn a_refused_enter_wakes_the_one_for_whom_it_was_made_and_no_other() {
    orders(3, || {
        let (gate, mut controller) = channel(0);
        let users = [(); 2].map(|()| {
            let gate = gate.clone();
            thread::spawn(move || gate.blocking_enter().map(|guard| guard.token()))
        });
        drop(gate);
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Enter));
        controller.refused(9).unwrap();
        assert_eq!(Node::default().serve(controller).entries, 1);
        let outcomes = users.map(|user| user.join().unwrap());
        assert!(outcomes.contains(&Ok(1)));
        assert!(outcomes.contains(&Err(EnterError::Refused(9))));
    });
}

#[test]
fn a_refusal_that_meets_a_withdrawal_is_told_to_nobody_else() {
    orders(3, || {
        let (gate, mut controller) = channel(0);
        let mut cx = Context::from_waker(Waker::noop());
        let hasty = {
            let gate = gate.clone();
            let mut enter = Box::pin(async move { gate.enter().await.map(drop) });
            assert!(enter.as_mut().poll(&mut cx).is_pending());
            enter
        };
        let patient = thread::spawn(move || gate.blocking_enter().map(|guard| guard.token()));
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Enter));
        let withdrawal = thread::spawn(move || drop(hasty));
        controller.refused(9).unwrap();
        Node::default().serve(controller);
        withdrawal.join().unwrap();
        assert_eq!(patient.join().unwrap(), Ok(1));
    });
}

#[test]
fn a_fenced_guard_is_woken() {
    every_order(|| {
        let (gate, mut controller) = channel(1);
        let user = thread::spawn(move || {
            let guard = gate.blocking_enter().unwrap();
            let fenced = guard.blocking_fenced();
            (fenced, guard.is_fenced())
        });
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Enter));
        controller.entered(1).unwrap();
        controller.fenced();
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Exit));
        assert_eq!(user.join().unwrap(), (Ok(()), true));
    });
}

#[test]
fn a_node_that_leaves_by_itself_fences_its_guard_and_lets_nobody_in_meanwhile() {
    orders(3, || {
        let (gate, mut controller) = channel(1);
        let section = Section::default();
        let former = {
            let (gate, section) = (gate.clone(), section.clone());
            keeper_lets_in(&gate, &mut controller, move |guard| {
                assert!(!section.0.swap(true, Ordering::SeqCst));
                assert_eq!(guard.blocking_fenced(), Ok(()));
                assert!(section.0.swap(false, Ordering::SeqCst));
            })
        };
        let next = thread::spawn(move || section.pass(gate.blocking_enter().unwrap()));
        controller.released().unwrap();
        let node = Node {
            entries: 1,
            ..Node::default()
        };
        assert_eq!(node.serve(controller).entries, 2);
        former.join().unwrap();
        assert_eq!(next.join().unwrap(), 2);
    });
}

/// Spawns a thread with a guard of the entry 1.
fn keeper_lets_in(
    gate: &Gate,
    controller: &mut Controller,
    user: impl FnOnce(Guard) + Send + 'static,
) -> thread::JoinHandle<()> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut enter = pin!(gate.enter());
    assert!(enter.as_mut().poll(&mut cx).is_pending());
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(1).unwrap();
    let Poll::Ready(Ok(guard)) = enter.as_mut().poll(&mut cx) else {
        panic!("it was let in")
    };
    thread::spawn(move || user(guard))
}

#[test]
fn a_keeper_that_goes_wakes_all_that_wait() {
    orders(3, || {
        let (gate, mut controller) = channel(1);
        let inside = keeper_lets_in(&gate, &mut controller, |guard| {
            assert_eq!(guard.blocking_fenced(), Err(Closed));
            assert!(guard.is_closed() && !guard.is_fenced());
        });
        let waiting = thread::spawn(move || gate.blocking_enter().map(drop));
        drop(controller);
        let outcome = waiting.join().unwrap();
        inside.join().unwrap();
        assert_eq!(outcome, Err(EnterError::Closed));
    });
}

#[test]
fn a_closed_keeper_wakes_all_that_wait_and_sees_the_last_guard_out() {
    orders(3, || {
        let (gate, mut controller) = channel(1);
        let inside = keeper_lets_in(&gate, &mut controller, |guard| {
            assert_eq!(guard.blocking_fenced(), Err(Closed));
        });
        let other = gate.clone();
        let waiting = thread::spawn(move || other.blocking_enter().map(drop));
        controller.close();
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Exit));
        controller.released().unwrap();
        assert_eq!(controller.blocking_recv(), Err(Closed));
        assert_eq!(waiting.join().unwrap(), Err(EnterError::Closed));
        inside.join().unwrap();
        drop(gate);
    });
}

#[test]
fn a_keeper_that_goes_while_somebody_is_let_in_leaves_nobody_waiting() {
    every_order(|| {
        let (gate, mut controller) = channel(0);
        let user = thread::spawn(move || gate.blocking_enter().map(|guard| guard.token()));
        let entered = controller.try_recv() == Ok(Some(GateCommand::Enter));
        if entered {
            controller.entered(1).unwrap();
        }
        drop(controller);
        match user.join().unwrap() {
            Ok(token) => assert!(entered && token == 1),
            Err(error) => assert_eq!(error, EnterError::Closed),
        }
    });
}

#[test]
fn the_last_gate_wakes_the_keeper_when_it_goes() {
    every_order(|| {
        let (gate, mut controller) = channel(0);
        let other = gate.clone();
        let threads = [gate, other].map(|gate| thread::spawn(move || drop(gate)));
        assert_eq!(controller.blocking_recv(), Err(Closed));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn whoever_only_tries_gets_in_beside_nobody_and_keeps_no_entry() {
    orders(3, || {
        let (gate, mut controller) = channel(1);
        let section = Section::default();
        let former = {
            let section = section.clone();
            keeper_lets_in(&gate, &mut controller, move |guard| {
                section.pass(guard);
            })
        };
        let trying = thread::spawn(move || {
            if let Ok(guard) = gate.try_enter() {
                assert_eq!(section.pass(guard), 1);
            }
        });
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Exit));
        controller.released().unwrap();
        assert_eq!(controller.blocking_recv(), Err(Closed));
        former.join().unwrap();
        trying.join().unwrap();
    });
}

/// Calls back when it is woken and when it is dropped.
struct Meddler(gate::Gate<u8, Reason>);

/// Calls back when it is dropped.
#[derive(Debug)]
struct Reason(#[allow(dead_code, reason = "for its drop")] Option<gate::Gate<u8, Reason>>);

/// Takes the lock.
fn meddle(gate: &gate::Gate<u8, Reason>) {
    drop(gate.clone());
    assert!(gate.try_enter().is_err());
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        meddle(&self.0);
    }
}

impl Drop for Meddler {
    fn drop(&mut self) {
        meddle(&self.0);
    }
}

impl Drop for Reason {
    fn drop(&mut self) {
        self.0.iter().for_each(meddle);
    }
}

/// No lock is held while foreign code runs. If one were, loom would report a deadlock.
#[test]
fn wakers_and_reasons_may_call_back() {
    every_order(|| {
        let limits = Limits::default();
        let (gate, mut controller) = gate::channel::<u8, Reason>(limits);
        // Neither the former waker nor the present one is woken or dropped under the lock.
        let waker = || Waker::from(Arc::new(Meddler(gate.clone())));
        let poll = |future: core::pin::Pin<&mut dyn Future<Output = Result<_, _>>>| {
            future.poll(&mut Context::from_waker(&waker()))
        };
        for _ in 0..2 {
            assert!(
                controller
                    .poll_recv(&mut Context::from_waker(&waker()))
                    .is_pending()
            );
        }
        {
            // Refused, and the reason is not read.
            let mut first = pin!(gate.enter());
            for _ in 0..2 {
                assert!(poll(first.as_mut()).is_pending());
            }
            assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
            controller.refused(Reason(Some(gate.clone()))).unwrap();
        }
        {
            // Withdrawn before it is refused.
            let mut first = Box::pin(gate.enter());
            assert!(poll(first.as_mut()).is_pending());
            assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
            drop(first);
            controller.refused(Reason(Some(gate.clone()))).unwrap();
            assert!(controller.refused(Reason(Some(gate.clone()))).is_err());
        }
        let mut first = Box::pin(gate.enter());
        let mut second = Box::pin(gate.enter());
        let mut third = pin!(gate.enter());
        assert!(poll(first.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending());
        assert!(poll(third.as_mut()).is_pending());
        assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
        controller.entered(1).unwrap();
        let Poll::Ready(Ok(guard)) = poll(first.as_mut()) else {
            panic!("it was let in")
        };
        drop(second);
        {
            let mut fenced = pin!(guard.fenced());
            for _ in 0..2 {
                let waker = waker();
                let mut cx = Context::from_waker(&waker);
                assert!(fenced.as_mut().poll(&mut cx).is_pending());
            }
            controller.fenced();
        }
        // The third thread waits when the keeper goes, and so does the keeper.
        assert!(
            controller
                .poll_recv(&mut Context::from_waker(&waker()))
                .is_pending()
        );
        drop(controller);
        drop(guard);
        assert!(poll(third.as_mut()).is_ready());
    });
}
