//! The gate: its rules against a model, and with real threads.

#![cfg(feature = "std")]
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "helpers of tests are tests, too"
)]

use core::num::NonZeroUsize;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;
use std::thread;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_camera::gate::{
    self, Closed, EnterError, Limits, OutOfTurn, Report, Stage, TryEnterError, Wish,
};

type Gate = gate::Gate<u64, u64>;
type Keeper = gate::Keeper<u64, u64>;
type Guard = gate::Guard<u64, u64>;
type Entering = Pin<Box<dyn Future<Output = Result<Guard, EnterError<u64>>> + Send>>;

fn channel(waiters: usize, handovers: u32) -> (Gate, Keeper) {
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

/// What a turn gives.
fn enter(future: &mut Entering) -> Guard {
    let Poll::Ready(Ok(guard)) = poll(future.as_mut()) else {
        panic!("it was let in")
    };
    guard
}

/// The first guard of an entry with this token.
fn inside(gate: &Gate, keeper: &mut Keeper, token: u64) -> Guard {
    let mut future = waiting(gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(token).unwrap();
    enter(&mut future)
}

/// The next wish is Exit, and the node exits.
fn exits(keeper: &mut Keeper) {
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Exit)));
    assert_eq!(keeper.try_recv(), Ok(None));
    keeper.released().unwrap();
}

/// Counts how often it is woken.
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

#[test]
fn turns_come_in_the_order_in_which_the_wait_began() {
    let (gate, mut keeper) = channel(3, 0);
    let mut first = waiting(&gate);
    let mut second = waiting(&gate);
    // To poll again does not cost the place.
    assert!(poll(first.as_mut()).is_pending());
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    assert_eq!(keeper.try_recv(), Ok(None));
    keeper.entered(7).unwrap();
    assert!(poll(second.as_mut()).is_pending());
    let guard = enter(&mut first);
    assert_eq!(guard.token(), 7);
    assert_eq!(keeper.try_recv(), Ok(None));
    guard.exit();
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(8).unwrap();
    assert_eq!(enter(&mut second).token(), 8);
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Ok(None));
}

#[test]
fn an_entry_is_handed_over_as_often_as_it_may_be_and_the_token_stays() {
    let (gate, mut keeper) = channel(3, 1);
    let guard = inside(&gate, &mut keeper, 7);
    let mut second = waiting(&gate);
    let mut third = waiting(&gate);
    drop(guard);
    assert_eq!(keeper.try_recv(), Ok(None));
    let guard = enter(&mut second);
    assert_eq!(guard.token(), 7);
    drop(guard);
    assert!(poll(third.as_mut()).is_pending());
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(8).unwrap();
    drop(enter(&mut third));
    // Whoever comes before the Exit is taken is handed over to as well, once.
    let guard = enter(&mut entering(&gate));
    assert_eq!((guard.token(), keeper.try_recv()), (8, Ok(None)));
    drop(guard);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    exits(&mut keeper);
}

#[test]
fn to_hand_over_without_end_needs_no_exit() {
    let (gate, mut keeper) = channel(1, u32::MAX);
    drop(inside(&gate, &mut keeper, 7));
    for _ in 0..1_000 {
        assert_eq!(gate.blocking_enter().unwrap().token(), 7);
    }
    exits(&mut keeper);
}

#[test]
fn more_than_may_wait_are_refused_and_a_place_that_is_given_up_is_free() {
    let (gate, mut keeper) = channel(2, 0);
    let first = waiting(&gate);
    let _second = waiting(&gate);
    assert_eq!(
        gate.blocking_enter().unwrap_err(),
        EnterError::Full { limit: 2 }
    );
    drop(first);
    let _third = waiting(&gate);
    assert_eq!(
        gate.blocking_enter_timeout(Duration::MAX).unwrap_err(),
        EnterError::Full { limit: 2 }
    );
    // One that was refused and has not heard of it still has its place.
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.refused(3).unwrap();
    assert_eq!(
        gate.blocking_enter().unwrap_err(),
        EnterError::Full { limit: 2 }
    );
}

#[test]
fn whoever_gives_up_has_the_enter_cancelled_unless_somebody_else_came() {
    let (gate, mut keeper) = channel(2, 0);
    let first = waiting(&gate);
    drop(first);
    assert_eq!(keeper.try_recv(), Ok(None), "nothing was asked yet");
    let first = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    drop(first);
    let second = waiting(&gate);
    assert_eq!(
        keeper.try_recv(),
        Ok(None),
        "the Enter serves the second one"
    );
    drop(second);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Cancel)));
    let mut third = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(None), "the Cancel has to end first");
    keeper.released().unwrap();
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(7).unwrap();
    assert_eq!(enter(&mut third).token(), 7);
}

#[test]
fn a_turn_that_comes_too_late_goes_to_the_next_one_or_back() {
    let (gate, mut keeper) = channel(2, 0);
    let first = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    drop(first);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Cancel)));
    keeper.entered(7).unwrap();
    exits(&mut keeper);

    // Admitted, and dropped before it came for it: nobody was there, so it is no hand-over.
    let first = waiting(&gate);
    let mut second = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(8).unwrap();
    drop(first);
    assert_eq!(enter(&mut second).token(), 8);
    exits(&mut keeper);
}

#[test]
fn a_refusal_goes_to_the_one_for_whom_the_node_asked() {
    let (gate, mut keeper) = channel(2, 0);
    let mut first = waiting(&gate);
    let mut second = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.refused(3).unwrap();
    assert!(poll(second.as_mut()).is_pending());
    let refused = poll(first.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(refused, Poll::Ready(EnterError::Refused(3)));

    // The second one's Enter is refused when it has gone, and a third one does not hear of it.
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    drop(second);
    let mut third = waiting(&gate);
    keeper.refused(4).unwrap();
    assert!(poll(third.as_mut()).is_pending());
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    drop(third);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Cancel)));
    keeper.refused(5).unwrap();
    assert_eq!(keeper.try_recv(), Ok(None));
}

#[test]
fn whoever_only_tries_never_has_the_node_ask() {
    let (gate, mut keeper) = channel(1, 1);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    assert_eq!(keeper.try_recv(), Ok(None));
    let guard = inside(&gate, &mut keeper, 7);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    drop(guard);
    let guard = gate.try_enter().unwrap();
    assert_eq!(guard.token(), 7);
    drop(guard);
    exits(&mut keeper);
    keeper.close();
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::Closed);
}

#[test]
fn time_runs_out_for_threads_and_tasks() {
    let (gate, mut keeper) = channel(2, 0);
    let error = gate
        .blocking_enter_timeout(Duration::from_millis(1))
        .unwrap_err();
    assert_eq!(error, EnterError::TimedOut);
    assert_eq!(keeper.try_recv(), Ok(None));
    let over = AtomicBool::new(false);
    let timer = core::future::poll_fn(|_| {
        if over.load(Ordering::SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    let mut late = Box::pin(gate.enter_until(timer));
    assert!(poll(late.as_mut()).is_pending());
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    over.store(true, Ordering::SeqCst);
    let outcome = poll(late.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(outcome, Poll::Ready(EnterError::TimedOut));
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Cancel)));
    keeper.released().unwrap();

    // A turn that has come is taken though the time is over.
    over.store(false, Ordering::SeqCst);
    let mut late = Box::pin(gate.enter_until(core::future::poll_fn(|_| {
        if over.load(Ordering::SeqCst) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })));
    assert!(poll(late.as_mut()).is_pending());
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(7).unwrap();
    over.store(true, Ordering::SeqCst);
    assert!(matches!(poll(late.as_mut()), Poll::Ready(Ok(_))));
}

#[test]
fn a_thread_that_waits_for_some_time_is_woken_before_it_is_over() {
    let (gate, mut keeper) = channel(1, 0);
    let host = thread::spawn(move || {
        assert_eq!(keeper.recv_timeout(Duration::MAX), Ok(Some(Wish::Enter)));
        keeper.entered(7).unwrap();
        assert_eq!(keeper.blocking_recv(), Ok(Wish::Exit));
    });
    let guard = gate.blocking_enter_timeout(Duration::MAX).unwrap();
    assert_eq!(guard.token(), 7);
    drop(guard);
    host.join().unwrap();
}

#[test]
fn a_fenced_guard_hears_of_it_and_its_entry_is_not_handed_over() {
    let (gate, mut keeper) = channel(1, 5);
    keeper.fenced();
    let guard = inside(&gate, &mut keeper, 7);
    assert!(!guard.is_fenced(), "the fence was before");
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    {
        let mut fenced = pin!(guard.fenced());
        let mut cx = Context::from_waker(&waker);
        assert!(fenced.as_mut().poll(&mut cx).is_pending());
        keeper.fenced();
        assert_eq!(bell.count(), 1);
        assert_eq!(fenced.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    }
    assert!(guard.is_fenced() && !guard.is_closed());
    assert_eq!(guard.blocking_fenced(), Ok(()));
    let mut next = waiting(&gate);
    drop(guard);
    assert!(poll(next.as_mut()).is_pending());
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(8).unwrap();
    assert!(!enter(&mut next).is_fenced());
}

#[test]
fn an_entry_that_is_fenced_before_somebody_came_for_it_says_so() {
    let (gate, mut keeper) = channel(2, 5);
    let mut first = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(7).unwrap();
    keeper.fenced();
    assert!(enter(&mut first).is_fenced());
    // Nobody is inside any more, and the Exit was not taken yet.
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    exits(&mut keeper);
}

#[test]
fn a_node_that_leaves_by_itself_fences_its_guard_and_waits_for_it_to_go() {
    let (gate, mut keeper) = channel(1, 5);
    let guard = inside(&gate, &mut keeper, 7);
    keeper.released().unwrap();
    assert!(guard.is_fenced());
    let mut next = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(None));
    drop(guard);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)), "and no Exit");
    keeper.entered(8).unwrap();
    assert_eq!(enter(&mut next).token(), 8);
}

#[test]
fn reports_out_of_turn_change_nothing_and_say_where_the_node_stands() {
    let (gate, mut keeper) = channel(1, 0);
    let wrong = |keeper: &mut Keeper, reports: &[Report], node| {
        for &report in reports {
            let outcome = match report {
                Report::Entered => keeper.entered(99),
                Report::Released => keeper.released(),
                Report::Refused => keeper.refused(99),
            };
            assert_eq!(outcome, Err(OutOfTurn { report, node }));
        }
    };
    let all = [Report::Entered, Report::Released, Report::Refused];
    wrong(&mut keeper, &all, Stage::Outside);
    let mut user = waiting(&gate);
    wrong(&mut keeper, &all, Stage::Outside);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    wrong(&mut keeper, &[Report::Released], Stage::Entering);
    keeper.entered(7).unwrap();
    let guard = enter(&mut user);
    let not_inside = [Report::Entered, Report::Refused];
    wrong(&mut keeper, &not_inside, Stage::Inside);
    assert_eq!(
        (guard.token(), guard.is_fenced(), keeper.try_recv()),
        (7, false, Ok(None))
    );
    drop(guard);
    wrong(&mut keeper, &not_inside, Stage::Inside);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Exit)));
    wrong(&mut keeper, &not_inside, Stage::Exiting);
    keeper.released().unwrap();
    wrong(&mut keeper, &all, Stage::Outside);
}

#[test]
fn a_closed_keeper_takes_nobody_in_and_sees_the_last_one_out() {
    let (gate, mut keeper) = channel(2, 5);
    let guard = inside(&gate, &mut keeper, 7);
    let mut next = waiting(&gate);
    keeper.close();
    assert!(guard.is_closed() && !guard.is_fenced());
    assert_eq!(guard.blocking_fenced(), Err(Closed));
    assert_eq!(gate.blocking_enter().unwrap_err(), EnterError::Closed);
    let closed = poll(next.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(closed, Poll::Ready(EnterError::Closed));
    assert_eq!(keeper.try_recv(), Ok(None));
    keeper.fenced();
    assert!(
        guard.is_fenced(),
        "it is told as long as the keeper is there"
    );
    assert_eq!(guard.blocking_fenced(), Ok(()));
    drop(guard);
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Err(Closed));
    assert_eq!(keeper.blocking_recv(), Err(Closed));
    assert_eq!(keeper.recv_timeout(Duration::MAX), Err(Closed));
}

#[test]
fn a_keeper_that_closes_cancels_and_lets_in_nobody_who_was_admitted() {
    let (gate, mut keeper) = channel(2, 0);
    let mut first = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.close();
    assert!(matches!(
        poll(first.as_mut()),
        Poll::Ready(Err(EnterError::Closed))
    ));
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Cancel)));
    keeper.released().unwrap();
    assert_eq!(keeper.try_recv(), Err(Closed));

    let (gate, mut keeper) = channel(2, 0);
    let mut first = waiting(&gate);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(7).unwrap();
    keeper.close();
    assert_eq!(keeper.try_recv(), Ok(None), "it may have come already");
    assert!(matches!(
        poll(first.as_mut()),
        Poll::Ready(Err(EnterError::Closed))
    ));
    exits(&mut keeper);
    assert_eq!(keeper.try_recv(), Err(Closed));
}

#[test]
fn a_keeper_that_is_gone_leaves_nobody_waiting_and_guards_go_quietly() {
    let (gate, mut keeper) = channel(1, 5);
    let guard = inside(&gate, &mut keeper, 7);
    let mut next = waiting(&gate);
    drop(keeper);
    assert!(guard.is_closed() && !guard.is_fenced());
    assert_eq!(guard.blocking_fenced(), Err(Closed));
    drop(guard);
    assert!(matches!(
        poll(next.as_mut()),
        Poll::Ready(Err(EnterError::Closed))
    ));
    assert_eq!(gate.blocking_enter().unwrap_err(), EnterError::Closed);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::Closed);
}

#[test]
fn without_gates_the_keeper_ends_when_the_node_is_outside() {
    let (gate, mut keeper) = channel(1, 0);
    let guard = inside(&gate, &mut keeper, 7);
    drop(gate);
    assert_eq!(keeper.try_recv(), Ok(None));
    drop(guard);
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Exit)));
    assert_eq!(keeper.try_recv(), Ok(None), "it is not outside yet");
    keeper.released().unwrap();
    assert_eq!(keeper.try_recv(), Err(Closed));
}

#[test]
fn wakers_are_given_up_with_those_who_wait() {
    let (gate, mut keeper) = channel(2, 0);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    assert!(keeper.poll_recv(&mut cx).is_pending());
    assert!(keeper.poll_recv(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&bell), 3);
    assert_eq!(keeper.try_recv(), Ok(None));
    let mut first = entering(&gate);
    for _ in 0..2 {
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert_eq!(bell.count(), 1, "to look meanwhile keeps the waker");
    }
    drop(first);
    assert_eq!(Arc::strong_count(&bell), 2);
    let guard = inside(&gate, &mut keeper, 7);
    {
        let mut fenced = pin!(guard.fenced());
        for _ in 0..2 {
            assert!(fenced.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(Arc::strong_count(&bell), 3);
    }
    assert_eq!(Arc::strong_count(&bell), 2);
    assert!(keeper.poll_recv(&mut cx).is_pending());
    drop(keeper);
    assert_eq!(Arc::strong_count(&bell), 2);
    assert_eq!(bell.count(), 1);
}

/// A future may go from one task to another.
#[test]
fn the_latest_waker_is_woken_and_the_former_one_is_not() {
    let (gate, mut keeper) = channel(1, 0);
    let bells = [(); 2].map(|()| Arc::new(Bell::default()));
    let wakers = bells.each_ref().map(|bell| Waker::from(Arc::clone(bell)));
    let counts = || bells.each_ref().map(|bell| bell.count());
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(keeper.poll_recv(&mut cx).is_pending());
    }
    let mut user = entering(&gate);
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(user.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(counts(), [0, 1], "the keeper's");
    assert_eq!(keeper.try_recv(), Ok(Some(Wish::Enter)));
    keeper.entered(7).unwrap();
    assert_eq!(counts(), [0, 2], "the user's");
    let guard = enter(&mut user);
    let mut fenced = pin!(guard.fenced());
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(fenced.as_mut().poll(&mut cx).is_pending());
    }
    keeper.fenced();
    assert_eq!(counts(), [0, 3], "the guard's");
}

#[test]
fn all_ends_go_to_other_threads_and_their_futures_too() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    fn sync<T: Sync>(value: T) -> T {
        value
    }
    let (gate, mut keeper) = channel(1, 0);
    let gate = send(sync(gate));
    drop(send(gate.enter()));
    drop(send(gate.enter_until(core::future::ready(()))));
    drop(send(keeper.recv()));
    let guard = send(sync(inside(&gate, &mut keeper, 7)));
    drop(send(guard.fenced()));
    assert_eq!(format!("{guard:?}"), "Guard { token: 7, .. }");
    drop(send(keeper));
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        EnterError::<u64>::Full { limit: 2 }.to_string(),
        "2 wait already: come back later, or raise Limits::waiters"
    );
    let report = OutOfTurn {
        report: Report::Released,
        node: Stage::Entering,
    };
    assert_eq!(
        report.to_string(),
        "Released was reported, and the node is Entering: report what came of a wish, once"
    );
}

/// Tells the seed when a test fails.
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

/// One user of the section among many. Returns how often it was inside.
fn visit(gate: &Gate, inside: &AtomicBool, mut dice: Dice) -> u64 {
    let mut turns = 0;
    for _ in 0..400 {
        let outcome = match dice.below(5) {
            0 => gate.blocking_enter_timeout(Duration::from_micros(dice.below(50) as u64)),
            1 => {
                // Gives up at once, or is lucky.
                match poll(entering(gate).as_mut()) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => continue,
                }
            }
            2 => gate.try_enter().map_err(|_| EnterError::TimedOut),
            _ => gate.blocking_enter(),
        };
        match outcome {
            Ok(guard) => {
                assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                if dice.one_in(4) {
                    thread::yield_now();
                }
                turns += 1;
                assert!(inside.swap(false, Ordering::SeqCst));
                drop(guard);
            }
            Err(EnterError::TimedOut | EnterError::Full { .. }) => {}
            Err(EnterError::Refused(reason)) => assert_eq!(reason, 13),
            Err(error) => panic!("{error}"),
        }
    }
    turns
}

/// A node that takes its time, refuses and is let in late. Returns how often it was inside.
fn host(mut keeper: Keeper, mut dice: Dice) -> u64 {
    let mut entries = 0;
    let mut pending = false;
    while let Ok(wish) = keeper.blocking_recv() {
        assert_eq!(pending, wish == Wish::Cancel, "{wish:?}");
        pending = false;
        match wish {
            Wish::Enter if dice.one_in(10) => keeper.refused(13).unwrap(),
            Wish::Enter if dice.one_in(3) => {
                pending = true;
                match keeper.recv_timeout(Duration::from_micros(20)).unwrap() {
                    None => {}
                    Some(wish) => {
                        assert_eq!(wish, Wish::Cancel);
                        if dice.one_in(2) {
                            keeper.released().unwrap();
                            pending = false;
                        }
                    }
                }
                if pending {
                    pending = false;
                    entries += 1;
                    keeper.entered(entries).unwrap();
                }
            }
            Wish::Enter => {
                entries += 1;
                keeper.entered(entries).unwrap();
            }
            Wish::Exit | Wish::Cancel => keeper.released().unwrap(),
        }
        if dice.one_in(50) {
            keeper.fenced();
        }
    }
    entries
}

#[test]
fn many_threads_share_one_section() {
    for (seed, handovers) in [(1, 0), (2, 3), (3, u32::MAX)] {
        let _told = Seed(seed);
        let (gate, keeper) = channel(4, handovers);
        let inside = Arc::new(AtomicBool::new(false));
        let host = thread::spawn(move || host(keeper, Dice::new(seed)));
        let users: Vec<_> = (0..8)
            .map(|user| {
                let (gate, inside) = (gate.clone(), Arc::clone(&inside));
                let dice = Dice::new(seed * 100 + user);
                thread::spawn(move || visit(&gate, &inside, dice))
            })
            .collect();
        drop(gate);
        let turns: u64 = users.into_iter().map(|user| user.join().unwrap()).sum();
        let entries = host.join().unwrap();
        println!("seed {seed}: {entries} entries, {turns} turns");
        assert!(turns > 100, "seed {seed}: nothing was put to the test");
        assert!(handovers > 0 || turns <= entries);
    }
}
