//! The order of turns, and users that stop waiting.

use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::thread;

use selvedge_core::shared::gate::{EnterError, GateCommand, TryEnterError};

use super::{channel, enter, entering, exits, inside, poll, waiting};

#[test]
fn turns_come_in_the_order_in_which_the_wait_began() {
    let (gate, mut controller) = channel(3, 0);
    let mut first = waiting(&gate);
    let mut second = waiting(&gate);
    // Polling again does not lose the place.
    assert!(poll(first.as_mut()).is_pending());
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    assert_eq!(controller.try_recv(), Ok(None));
    controller.entered(7).unwrap();
    assert!(poll(second.as_mut()).is_pending());
    let guard = enter(&mut first);
    assert_eq!(guard.token(), 7);
    assert_eq!(controller.try_recv(), Ok(None));
    guard.exit();
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(8).unwrap();
    assert_eq!(enter(&mut second).token(), 8);
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Ok(None));
}

#[test]
fn an_entry_is_handed_over_as_often_as_it_may_be_and_the_token_stays() {
    let (gate, mut controller) = channel(3, 1);
    let guard = inside(&gate, &mut controller, 7);
    let mut second = waiting(&gate);
    let mut third = waiting(&gate);
    drop(guard);
    assert_eq!(controller.try_recv(), Ok(None));
    let guard = enter(&mut second);
    assert_eq!(guard.token(), 7);
    drop(guard);
    assert!(poll(third.as_mut()).is_pending());
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(8).unwrap();
    drop(enter(&mut third));
    // A user that comes before the Exit is taken gets the entry handed over as well, once.
    let guard = enter(&mut entering(&gate));
    assert_eq!((guard.token(), controller.try_recv()), (8, Ok(None)));
    drop(guard);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    exits(&mut controller);
}

#[test]
fn to_hand_over_without_end_needs_no_exit() {
    let (gate, mut controller) = channel(1, u32::MAX);
    drop(inside(&gate, &mut controller, 7));
    for _ in 0..1_000 {
        assert_eq!(gate.blocking_enter().unwrap().token(), 7);
    }
    exits(&mut controller);
}

#[test]
fn more_than_may_wait_are_refused_and_a_place_that_is_given_up_is_free() {
    let (gate, mut controller) = channel(2, 0);
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
    // A user that was refused and was not polled since still has its place.
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.refused(3).unwrap();
    assert_eq!(
        gate.blocking_enter().unwrap_err(),
        EnterError::Full { limit: 2 }
    );
}

#[test]
fn whoever_gives_up_has_the_enter_cancelled_unless_somebody_else_came() {
    let (gate, mut controller) = channel(2, 0);
    let first = waiting(&gate);
    drop(first);
    assert_eq!(controller.try_recv(), Ok(None), "nothing was asked yet");
    let first = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    drop(first);
    let second = waiting(&gate);
    assert_eq!(
        controller.try_recv(),
        Ok(None),
        "the Enter serves the second one"
    );
    drop(second);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Cancel)));
    let mut third = waiting(&gate);
    assert_eq!(
        controller.try_recv(),
        Ok(None),
        "the Cancel has to end first"
    );
    controller.released().unwrap();
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(7).unwrap();
    assert_eq!(enter(&mut third).token(), 7);
}

#[test]
fn a_turn_that_comes_too_late_goes_to_the_next_one_or_back() {
    let (gate, mut controller) = channel(2, 0);
    let first = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    drop(first);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Cancel)));
    controller.entered(7).unwrap();
    exits(&mut controller);

    // Admitted, and dropped before it was polled: no user had the entry, so it is no hand-over.
    let first = waiting(&gate);
    let mut second = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(8).unwrap();
    drop(first);
    assert_eq!(enter(&mut second).token(), 8);
    exits(&mut controller);
}

#[test]
fn a_refusal_goes_to_the_one_for_whom_the_node_asked() {
    let (gate, mut controller) = channel(2, 0);
    let mut first = waiting(&gate);
    let mut second = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.refused(3).unwrap();
    assert!(poll(second.as_mut()).is_pending());
    let refused = poll(first.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(refused, Poll::Ready(EnterError::Refused(3)));

    // The second user's Enter is refused after it has stopped waiting, and a third one does not see
    // that.
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    drop(second);
    let mut third = waiting(&gate);
    controller.refused(4).unwrap();
    assert!(poll(third.as_mut()).is_pending());
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    drop(third);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Cancel)));
    controller.refused(5).unwrap();
    assert_eq!(controller.try_recv(), Ok(None));
}

#[test]
fn whoever_only_tries_never_has_the_node_ask() {
    let (gate, mut controller) = channel(1, 1);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    assert_eq!(controller.try_recv(), Ok(None));
    let guard = inside(&gate, &mut controller, 7);
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    drop(guard);
    let guard = gate.try_enter().unwrap();
    assert_eq!(guard.token(), 7);
    drop(guard);
    exits(&mut controller);
    controller.close();
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::Closed);
}

#[test]
fn time_runs_out_for_threads_and_tasks() {
    let (gate, mut controller) = channel(2, 0);
    let error = gate
        .blocking_enter_timeout(Duration::from_millis(1))
        .unwrap_err();
    assert_eq!(error, EnterError::TimedOut);
    assert_eq!(controller.try_recv(), Ok(None));
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
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    over.store(true, Ordering::SeqCst);
    let outcome = poll(late.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(outcome, Poll::Ready(EnterError::TimedOut));
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Cancel)));
    controller.released().unwrap();

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
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(7).unwrap();
    over.store(true, Ordering::SeqCst);
    assert!(matches!(poll(late.as_mut()), Poll::Ready(Ok(_))));
}

#[test]
fn a_thread_that_waits_for_some_time_is_woken_before_it_is_over() {
    let (gate, mut controller) = channel(1, 0);
    let host = thread::spawn(move || {
        assert_eq!(
            controller.recv_timeout(Duration::MAX),
            Ok(Some(GateCommand::Enter))
        );
        controller.entered(7).unwrap();
        assert_eq!(controller.blocking_recv(), Ok(GateCommand::Exit));
    });
    let guard = gate.blocking_enter_timeout(Duration::MAX).unwrap();
    assert_eq!(guard.token(), 7);
    drop(guard);
    host.join().unwrap();
}
