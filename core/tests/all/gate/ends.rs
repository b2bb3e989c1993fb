//! The end of an entry, of a controller and of a wait.

use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use selvedge_core::shared::gate::{
    Closed, EnterError, GateCommand, OutOfTurn, Report, Stage, TryEnterError,
};

use super::{Bell, Controller, channel, enter, entering, exits, inside, poll, waiting};

#[test]
fn a_fenced_guard_hears_of_it_and_its_entry_is_not_handed_over() {
    let (gate, mut controller) = channel(1, 5);
    controller.fenced();
    let guard = inside(&gate, &mut controller, 7);
    assert!(!guard.is_fenced(), "the fence was before");
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    {
        let mut fenced = pin!(guard.fenced());
        let mut cx = Context::from_waker(&waker);
        assert!(fenced.as_mut().poll(&mut cx).is_pending());
        controller.fenced();
        assert_eq!(bell.count(), 1);
        assert_eq!(fenced.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    }
    assert!(guard.is_fenced() && !guard.is_closed());
    assert_eq!(guard.blocking_fenced(), Ok(()));
    let mut next = waiting(&gate);
    drop(guard);
    assert!(poll(next.as_mut()).is_pending());
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(8).unwrap();
    assert!(!enter(&mut next).is_fenced());
}

#[test]
fn an_entry_that_is_fenced_before_somebody_came_for_it_says_so() {
    let (gate, mut controller) = channel(2, 5);
    let mut first = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(7).unwrap();
    controller.fenced();
    assert!(enter(&mut first).is_fenced());
    // No user is inside any more, and the Exit was not taken yet.
    assert_eq!(gate.try_enter().unwrap_err(), TryEnterError::WouldWait);
    exits(&mut controller);
}

#[test]
fn a_node_that_leaves_by_itself_fences_its_guard_and_waits_for_it_to_go() {
    let (gate, mut controller) = channel(1, 5);
    let guard = inside(&gate, &mut controller, 7);
    controller.released().unwrap();
    assert!(guard.is_fenced());
    let mut next = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(None));
    drop(guard);
    assert_eq!(
        controller.try_recv(),
        Ok(Some(GateCommand::Enter)),
        "and no Exit"
    );
    controller.entered(8).unwrap();
    assert_eq!(enter(&mut next).token(), 8);
}

#[test]
fn reports_out_of_turn_change_nothing_and_say_where_the_node_stands() {
    let (gate, mut controller) = channel(1, 0);
    let wrong = |controller: &mut Controller, reports: &[Report], node| {
        for &report in reports {
            let outcome = match report {
                Report::Entered => controller.entered(99),
                Report::Released => controller.released(),
                Report::Refused => controller.refused(99),
            };
            assert_eq!(outcome, Err(OutOfTurn { report, node }));
        }
    };
    let all = [Report::Entered, Report::Released, Report::Refused];
    wrong(&mut controller, &all, Stage::Outside);
    let mut user = waiting(&gate);
    wrong(&mut controller, &all, Stage::Outside);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    wrong(&mut controller, &[Report::Released], Stage::Entering);
    controller.entered(7).unwrap();
    let guard = enter(&mut user);
    let not_inside = [Report::Entered, Report::Refused];
    wrong(&mut controller, &not_inside, Stage::Inside);
    assert_eq!(
        (guard.token(), guard.is_fenced(), controller.try_recv()),
        (7, false, Ok(None))
    );
    drop(guard);
    wrong(&mut controller, &not_inside, Stage::Inside);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Exit)));
    wrong(&mut controller, &not_inside, Stage::Exiting);
    controller.released().unwrap();
    wrong(&mut controller, &all, Stage::Outside);
}

#[test]
fn a_closed_keeper_takes_nobody_in_and_sees_the_last_one_out() {
    let (gate, mut controller) = channel(2, 5);
    let guard = inside(&gate, &mut controller, 7);
    let mut next = waiting(&gate);
    controller.close();
    assert!(guard.is_closed() && !guard.is_fenced());
    assert_eq!(guard.blocking_fenced(), Err(Closed));
    assert_eq!(gate.blocking_enter().unwrap_err(), EnterError::Closed);
    let closed = poll(next.as_mut()).map(|outcome| outcome.unwrap_err());
    assert_eq!(closed, Poll::Ready(EnterError::Closed));
    assert_eq!(controller.try_recv(), Ok(None));
    controller.fenced();
    assert!(guard.is_fenced(), "the controller still reports the fence");
    assert_eq!(guard.blocking_fenced(), Ok(()));
    drop(guard);
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Err(Closed));
    assert_eq!(controller.blocking_recv(), Err(Closed));
    assert_eq!(controller.recv_timeout(Duration::MAX), Err(Closed));
}

#[test]
fn a_keeper_that_closes_cancels_and_lets_in_nobody_who_was_admitted() {
    let (gate, mut controller) = channel(2, 0);
    let mut first = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.close();
    assert!(matches!(
        poll(first.as_mut()),
        Poll::Ready(Err(EnterError::Closed))
    ));
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Cancel)));
    controller.released().unwrap();
    assert_eq!(controller.try_recv(), Err(Closed));

    let (gate, mut controller) = channel(2, 0);
    let mut first = waiting(&gate);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(7).unwrap();
    controller.close();
    assert_eq!(controller.try_recv(), Ok(None), "it may have come already");
    assert!(matches!(
        poll(first.as_mut()),
        Poll::Ready(Err(EnterError::Closed))
    ));
    exits(&mut controller);
    assert_eq!(controller.try_recv(), Err(Closed));
}

#[test]
fn a_keeper_that_is_gone_leaves_nobody_waiting_and_guards_go_quietly() {
    let (gate, mut controller) = channel(1, 5);
    let guard = inside(&gate, &mut controller, 7);
    let mut next = waiting(&gate);
    drop(controller);
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
    let (gate, mut controller) = channel(1, 0);
    let guard = inside(&gate, &mut controller, 7);
    drop(gate);
    assert_eq!(controller.try_recv(), Ok(None));
    drop(guard);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Exit)));
    assert_eq!(controller.try_recv(), Ok(None), "it is not outside yet");
    controller.released().unwrap();
    assert_eq!(controller.try_recv(), Err(Closed));
}

#[test]
fn wakers_are_given_up_with_those_who_wait() {
    let (gate, mut controller) = channel(2, 0);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut cx = Context::from_waker(&waker);
    assert!(controller.poll_recv(&mut cx).is_pending());
    assert!(controller.poll_recv(&mut cx).is_pending());
    assert_eq!(Arc::strong_count(&bell), 3);
    assert_eq!(controller.try_recv(), Ok(None));
    let mut first = entering(&gate);
    for _ in 0..2 {
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert_eq!(bell.count(), 1, "to look meanwhile keeps the waker");
    }
    drop(first);
    assert_eq!(Arc::strong_count(&bell), 2);
    let guard = inside(&gate, &mut controller, 7);
    {
        let mut fenced = pin!(guard.fenced());
        for _ in 0..2 {
            assert!(fenced.as_mut().poll(&mut cx).is_pending());
        }
        assert_eq!(Arc::strong_count(&bell), 3);
    }
    assert_eq!(Arc::strong_count(&bell), 2);
    assert!(controller.poll_recv(&mut cx).is_pending());
    drop(controller);
    assert_eq!(Arc::strong_count(&bell), 2);
    assert_eq!(bell.count(), 1);
}

/// A future may move from one task to another.
#[test]
fn the_latest_waker_is_woken_and_the_former_one_is_not() {
    let (gate, mut controller) = channel(1, 0);
    let bells = [(); 2].map(|()| Arc::new(Bell::default()));
    let wakers = bells.each_ref().map(|bell| Waker::from(Arc::clone(bell)));
    let counts = || bells.each_ref().map(|bell| bell.count());
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(controller.poll_recv(&mut cx).is_pending());
    }
    let mut user = entering(&gate);
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(user.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(counts(), [0, 1], "the controller's");
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(7).unwrap();
    assert_eq!(counts(), [0, 2], "the user's");
    let guard = enter(&mut user);
    let mut fenced = pin!(guard.fenced());
    for waker in &wakers {
        let mut cx = Context::from_waker(waker);
        assert!(fenced.as_mut().poll(&mut cx).is_pending());
    }
    controller.fenced();
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
    let (gate, mut controller) = channel(1, 0);
    let gate = send(sync(gate));
    drop(send(gate.enter()));
    drop(send(gate.enter_until(core::future::ready(()))));
    drop(send(controller.recv()));
    let guard = send(sync(inside(&gate, &mut controller, 7)));
    drop(send(guard.fenced()));
    assert_eq!(format!("{guard:?}"), "Guard { token: 7, .. }");
    drop(send(controller));
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(
        EnterError::<u64>::Full { limit: 2 }.to_string(),
        "2 callers wait already: try again later, or raise Limits::waiters"
    );
    let report = OutOfTurn {
        report: Report::Released,
        node: Stage::Entering,
    };
    assert_eq!(
        report.to_string(),
        "Released was reported while the node is Entering: report the outcome of each command once"
    );
}

/// A controller without gates makes another one, and its users queue behind the guard that still
/// exists.
#[test]
fn a_keeper_makes_another_gate_when_all_are_gone() {
    let (gate, mut controller) = channel(2, 0);
    let guard = inside(&gate, &mut controller, 7);
    drop(gate);
    assert!(controller.is_deserted());
    let again = controller.gate();
    assert!(!controller.is_deserted());
    let mut next = entering(&again);
    assert!(poll(next.as_mut()).is_pending());
    drop(guard);
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Exit)));
    controller.released().unwrap();
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Enter)));
    controller.entered(8).unwrap();
    let Poll::Ready(Ok(guard)) = poll(next.as_mut()) else {
        panic!("it is the next user's turn");
    };
    assert_eq!(guard.token(), 8);
    // Two gates are counted as two: the controller continues when one of them is dropped.
    let third = controller.gate();
    drop((again, next, guard));
    assert_eq!(controller.try_recv(), Ok(Some(GateCommand::Exit)));
    controller.released().unwrap();
    assert_eq!(controller.try_recv(), Ok(None));
    drop(third);
    assert_eq!(controller.try_recv(), Err(Closed));
    // The gate of a closed controller is closed.
    controller.close();
    assert_eq!(
        controller.gate().try_enter().unwrap_err(),
        TryEnterError::Closed
    );
}
