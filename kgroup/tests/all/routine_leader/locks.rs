//! Devices of a run: how it gets them, holds them, and leaves them to the next one.

use super::*;

#[test]
fn sequential_locks_are_asked_for_one_by_one_in_order_each_once() {
    let mut bench = Bench::new(routine(vec![set(3), set(1), set(3), set(2)]));
    bench.trigger(1);
    for device in [1, 2, 3] {
        assert_eq!(bench.asked(), [("lock", device)]);
        bench.tick(RoutineTimer::Resend);
        assert_eq!(bench.asked(), [("lock", device)], "it is asked again");
        assert!(matches!(
            bench.state.stage(),
            Stage::AcquiringLocks { attempt: 1 }
        ));
        bench.grant(device);
    }
    assert_eq!(bench.asked(), [("act", 3)]);
    assert!(matches!(bench.state.stage(), Stage::Executing { .. }));
}

#[test]
fn an_optimistic_try_gives_all_back_and_the_next_one_waits() {
    let definition = routine(vec![set(1), set(2)]).with_locking(Locking::Optimistic);
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    let mut wait = Span::millis(200);
    for attempt in 1..=10 {
        let all = core::mem::take(&mut bench.asked);
        let names: Vec<_> = all.iter().map(named).collect();
        assert_eq!(names, [("lock", 1), ("lock", 2)]);
        let leaves = |it: &Request| {
            matches!(
                it,
                Request::Lock {
                    patience: Patience::Leaves,
                    ..
                }
            )
        };
        assert!(all.iter().all(leaves));
        let claim = bench.claim();
        assert_eq!(claim.attempt, attempt);
        bench.grant(1);
        bench.receive(
            2,
            Answer::Busy {
                device: NodeId(2),
                claim,
            },
        );
        // Also the device that was not granted, and again until each has answered.
        for _ in 0..2 {
            assert_eq!(bench.asked(), [("release", 1), ("release", 2)]);
            bench.tick(RoutineTimer::Resend);
        }
        bench.asked();
        assert_eq!(bench.armed.get(&RoutineTimer::Backoff), Some(&wait));
        wait = Span(wait.0 * 2).min(Span::secs(10));
        bench.released(1, claim);
        // Either may come last, the answer or the end of the wait.
        if attempt % 2 == 0 {
            bench.tick(RoutineTimer::Backoff);
            assert_eq!(bench.asked(), []);
            bench.released(2, claim);
        } else {
            bench.released(2, claim);
            assert_eq!(bench.asked(), []);
            bench.tick(RoutineTimer::Backoff);
        }
    }
}

#[test]
fn a_long_command_holds_its_device_and_then_the_next_one_is_given() {
    let hold = Span::secs(60);
    let definition = routine(vec![Step { hold, ..set(1) }, set(2)]);
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    bench.grant_all();
    assert_eq!(bench.asked(), [("act", 1)]);
    assert!(bench.armed.contains_key(&RoutineTimer::Command));
    bench.acted(1, 0, Outcome::Done);
    assert_eq!(bench.asked(), []);
    assert!(!bench.armed.contains_key(&RoutineTimer::Command));
    assert_eq!(bench.hold(), hold);
    assert_eq!(bench.asked(), [("act", 2)]);
}

#[test]
fn a_leader_that_takes_over_takes_what_is_left_of_a_hold() {
    let hold = Span::secs(60);
    let mut bench = Bench::new(routine(vec![Step { hold, ..set(1) }, set(2)]));
    bench.trigger(1);
    bench.grant_all();
    for leaders in 1.. {
        bench.acted(1, 0, Outcome::Done);
        for _ in 0..3 {
            bench.tick(RoutineTimer::Hold);
            if bench.state.step() == Some(1) {
                return;
            }
        }
        assert!(leaders < 60, "held for {:?}", bench.state.held());
        let group_of = |device: NodeId| (device.0 < 50).then_some(GroupId(device.0));
        bench.leader = RoutineLeader::new(RoutineConfig::new(), ROUTINE, &bench.state, group_of);
        bench.armed.clear();
        bench.step(|leader, state, out| leader.on_leads(state, out));
    }
}

#[test]
fn a_run_that_begins_anew_does_not_wait_for_what_holds_a_device() {
    let hold = Span::secs(60);
    let definition = routine(vec![Step { hold, ..set(1) }, set(2)]);
    for triggers_early in [true, false] {
        let mut bench = Bench::new(definition.clone().with_retrigger(Retrigger::Restart));
        bench.trigger(1);
        bench.grant_all();
        if triggers_early {
            bench.trigger(2);
            assert_eq!(bench.state.step(), Some(0), "the command is waited for");
            bench.acted(1, 0, Outcome::Done);
        } else {
            bench.acted(1, 0, Outcome::Done);
            bench.trigger(2);
        }
        assert_eq!(
            bench.outcomes(),
            [StepOutcome::Done, StepOutcome::NotReached]
        );
        assert!(!bench.armed.contains_key(&RoutineTimer::Hold));
        let claim = bench.claim();
        bench.released(1, claim);
        assert_eq!(bench.state.instance(), 1, "all of it is given back first");
        bench.released(2, claim);
        assert_eq!(bench.state.instance(), 2);
        let triggered = RoutineEvent::Triggered { instance: 2 };
        assert!(bench.events.contains(&triggered));
    }
}
