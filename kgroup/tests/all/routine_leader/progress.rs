//! Answers to clusters that have lost their memory.

use super::*;
use selvedge_kgroup::{Delivery, Progress};

const CLUSTER: GroupId = GroupId(1);
const RESTS: u32 = u32::MAX;

/// The number of questions that wait at once until the state is up to date.
const QUESTIONS_MAX: usize = 64;

/// A cluster's leader asks about a device; nothing is answered before the state is up to date.
fn asks(bench: &mut Bench, device: u64) -> u64 {
    let request = Request::Progress {
        cluster: CLUSTER,
        device: NodeId(device),
        since: 7,
    };
    bench.notified.clear();
    bench.step(|leader, state, out| leader.on_asked(state, ASKER, &request, out));
    assert_eq!(bench.notified, []);
    bench.reads.pop().unwrap()
}

fn reads(bench: &mut Bench, number: u64) -> Option<(Progress, bool)> {
    bench.step(|leader, state, out| leader.on_readable(state, number, out));
    let Answer::Progress {
        cluster: CLUSTER,
        since: 7,
        progress,
        watches,
        ..
    } = bench.notified.pop()?
    else {
        panic!("it is another answer");
    };
    Some((progress, watches))
}

fn progress(bench: &mut Bench, device: u64) -> Progress {
    let number = asks(bench, device);
    reads(bench, number).unwrap().0
}

/// The steps are for device 1, the first one if device 2 is on.
fn conditional(delivery: Delivery) -> Definition {
    let step = Step {
        condition: Some(is_on(2).into()),
        ..set(1)
    };
    routine(vec![step, set(1)]).with_deliveries([delivery; 2])
}

#[test]
fn a_run_reports_its_stage() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    let rests = |instance| Progress::Over {
        claim: Claim {
            routine: ROUTINE,
            instance,
            attempt: RESTS,
        },
    };
    assert_eq!(progress(&mut bench, 1), rests(0));
    bench.trigger(1);
    let claim = bench.claim();
    assert_eq!(progress(&mut bench, 1), Progress::Acquires { claim });
    assert_eq!(progress(&mut bench, 4), rests(1), "it does not use it");
    bench.grant(1);
    let given = 0;
    assert_eq!(progress(&mut bench, 1), Progress::Executes { claim, given });
    bench.acted(1, 0, Outcome::Done);
    assert_eq!(progress(&mut bench, 1), Progress::Over { claim });
    bench.released(1, claim);
    assert_eq!(progress(&mut bench, 1), rests(1));
}

/// The cluster gives a command that was not given: it would end as unknown otherwise.
#[test]
fn a_command_counts_as_given_when_its_cluster_may_have_been_asked() {
    for delivery in [Delivery::AtMostOnce, Delivery::AtLeastOnce] {
        let is_once = delivery == Delivery::AtMostOnce;
        let mut bench = Bench::new(conditional(delivery));
        bench.trigger(1);
        bench.grant_all();
        let claim = bench.claim();
        let executes = |given| Progress::Executes { claim, given };
        assert_eq!(bench.asked(), [("read", 2)]);
        assert_eq!(progress(&mut bench, 1), executes(0));
        let answer = Answer::Read {
            device: NodeId(2),
            claim,
            step: 0,
            status: status(1, Some("on".into())),
        };
        bench.receive(2, answer);
        assert_eq!(bench.asked(), [("act", 1)]);
        assert_eq!(progress(&mut bench, 1), executes(is_once.into()));
        bench.acted(1, 0, Outcome::Unknown);
        let mut bench = Bench::new(routine(vec![set(1), set(1)]).with_deliveries([delivery; 2]));
        bench.trigger(1);
        bench.grant_all();
        let claim = bench.claim();
        let executes = |given| Progress::Executes { claim, given };
        assert_eq!(progress(&mut bench, 1), executes(is_once.into()));
        bench.acted(1, 0, Outcome::Done);
        let given = 1 + u16::from(is_once);
        assert_eq!(progress(&mut bench, 1), executes(given));
        bench.acted(1, 1, Outcome::Done);
        assert_eq!(bench.outcomes(), [StepOutcome::Done; 2]);
    }
}

#[test]
fn a_routine_reports_that_it_watches_and_answers_each_question_once() {
    let definition = routine(vec![set(1)]).with_clause(Clause::Is(is_on(3)));
    let mut bench = Bench::new(definition);
    let first = asks(&mut bench, 3);
    let second = asks(&mut bench, 1);
    assert!(!reads(&mut bench, second).unwrap().1);
    assert!(reads(&mut bench, first).unwrap().1);
    assert_eq!(reads(&mut bench, first), None);
}

/// It would answer that it rests, while a run of its lost memory may hold the device.
#[test]
fn a_routine_without_a_definition_leaves_a_question_unanswered() {
    let definition = routine(vec![set(1)]);
    let mut bench = Bench::new(definition);
    let number = asks(&mut bench, 1);
    let defined = core::mem::replace(&mut bench.state, RoutineState::undefined(1));
    assert_eq!(reads(&mut bench, number), None);
    let request = Request::Progress {
        cluster: CLUSTER,
        device: NodeId(1),
        since: 7,
    };
    bench.step(|leader, state, out| leader.on_asked(state, ASKER, &request, out));
    assert!(bench.reads.is_empty());
    bench.state = defined;
    let number = asks(&mut bench, 1);
    assert!(reads(&mut bench, number).is_some(), "it is asked again");
}

#[test]
fn the_oldest_question_makes_room_and_is_asked_again() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    let all: Vec<u64> = (0..=QUESTIONS_MAX).map(|_| asks(&mut bench, 1)).collect();
    assert_eq!(reads(&mut bench, all[0]), None);
    for &number in &all[1..] {
        assert!(reads(&mut bench, number).is_some());
    }
    let again = asks(&mut bench, 1);
    assert!(reads(&mut bench, again).is_some());
}
