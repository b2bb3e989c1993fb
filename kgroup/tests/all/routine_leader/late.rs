//! Late, doubled and foreign answers, and decisions that take a while.

use super::*;
use selvedge_kgroup::Delivery;

/// The number of nodes with questions for runs that a leader answers at once.
const ASKERS_MAX: usize = 64;

fn conditional() -> Definition {
    let step = Step {
        condition: Some(is_on(2).into()),
        ..set(1)
    };
    routine(vec![step, set(3)])
}

fn read(claim: Claim, step: u16, value: &str) -> Answer {
    Answer::Read {
        device: NodeId(2),
        claim,
        step,
        status: status(1, Some(value.into())),
    }
}

const fn no_device(device: u64) -> Answer {
    let device = NodeId(device);
    Answer::NoDevice {
        device,
        routine: ROUTINE,
        generation: 0,
    }
}

#[test]
fn a_device_that_its_group_does_not_know_ends_the_step_that_waits_for_it() {
    let mut bench = Bench::new(conditional());
    bench.trigger(1);
    bench.grant_all();
    assert_eq!(bench.asked(), [("read", 2)]);
    bench.receive(1, no_device(1));
    assert_eq!(bench.state.step(), Some(0), "the command is not asked yet");
    bench.receive(2, no_device(2));
    assert_eq!(bench.outcomes()[0], StepOutcome::Failed);

    let mut bench = Bench::new(conditional());
    bench.trigger(1);
    bench.grant_all();
    let claim = bench.claim();
    bench.receive(2, read(claim, 0, "on"));
    bench.receive(2, no_device(2));
    assert_eq!(bench.state.step(), Some(0), "its condition is decided");
    bench.receive(3, no_device(3));
    assert_eq!(bench.state.step(), Some(0), "the turn of that one comes");
    bench.receive(1, no_device(1));
    // It may have been given, and done, before the device was removed.
    assert_eq!(bench.outcomes()[0], StepOutcome::Unknown);
}

#[test]
fn a_state_that_is_read_late_or_for_another_step_decides_nothing() {
    let mut bench = Bench::new(conditional());
    bench.trigger(1);
    bench.grant_all();
    let claim = bench.claim();
    let other = Claim {
        attempt: claim.attempt + 1,
        ..claim
    };
    bench.receive(2, read(claim, 1, "off"));
    bench.receive(2, read(other, 0, "off"));
    assert_eq!(bench.asked(), [("read", 2)]);
    assert_eq!(bench.state.step(), Some(0));
    bench.receive(2, read(claim, 0, "on"));
    assert_eq!(bench.asked(), [("act", 1)]);
    bench.receive(2, read(claim, 0, "off"));
    assert_eq!(bench.state.step(), Some(0));
    bench.acted(1, 0, Outcome::Done);
    assert_eq!(bench.asked(), [("act", 3)]);
}

#[test]
fn a_claim_that_comes_late_is_tried_again() {
    let definition = || routine(vec![set(1)]).with_clause(Clause::Is(is_on(5)));
    let attempt = |device: u64, change: fn(Claim) -> Claim| {
        let mut bench = Bench::new(definition());
        bench.trigger(1);
        let claim = change(bench.claim());
        let over = Answer::Over {
            device: NodeId(device),
            claim,
        };
        bench.receive(device, over);
        bench.claim().attempt
    };
    let other = |claim: Claim| Claim {
        instance: claim.instance + 1,
        ..claim
    };
    assert_eq!(attempt(1, |it| it), 2);
    assert_eq!(attempt(1, other), 1);
    assert_eq!(attempt(5, |it| it), 1, "it is not locked");
}

#[test]
fn what_was_given_back_of_another_claim_or_device_does_not_count() {
    let definition = routine(vec![set(1)]).with_clause(Clause::Is(is_on(5)));
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    bench.grant_all();
    bench.acted(1, 0, Outcome::Done);
    let claim = bench.claim();
    let stage = || Stage::ReleasingLocks { attempt: 1 };
    let other = Claim {
        instance: claim.instance + 1,
        ..claim
    };
    bench.released(1, other);
    assert_eq!(*bench.state.stage(), stage());
    bench.released(5, claim);
    assert_eq!(*bench.state.stage(), stage());
    bench.released(1, claim);
    assert_eq!(*bench.state.stage(), Stage::NotTriggered);
}

#[test]
fn a_command_is_held_whatever_else_is_decided_meanwhile() {
    let hold = Span::secs(60);
    let definition = routine(vec![Step { hold, ..set(1) }, set(2)]);
    let mut bench = Bench::new(definition.with_clause(Clause::Is(is_on(5))));
    bench.trigger(1);
    bench.grant_all();
    bench.acted(1, 0, Outcome::Done);
    bench.asked();
    let shown = |routine| Answer::Status {
        device: NodeId(5),
        routine,
        status: status(1, Some("off".into())),
    };
    bench.receive(5, shown(GroupId(ROUTINE.0 + 4)));
    assert_eq!(bench.asked(), [], "shown to another routine");
    bench.receive(5, shown(ROUTINE));
    assert_eq!(bench.asked(), [("seen", 5)]);
    assert_eq!(bench.state.step(), Some(0));
    assert!(bench.armed.contains_key(&RoutineTimer::Hold));
}

#[test]
fn a_command_says_how_often_it_may_reach_its_device() {
    let deliveries = [Delivery::AtMostOnce, Delivery::AtLeastOnce];
    let definition = routine(vec![set(1), set(2)]).with_deliveries(deliveries);
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    bench.grant_all();
    for (step, expected) in (0..).zip(deliveries) {
        let asked = core::mem::take(&mut bench.asked);
        let [Request::Act { delivery, .. }] = asked[..] else {
            panic!("{asked:?}");
        };
        assert_eq!(delivery, expected);
        bench.acted(u64::from(step) + 1, step, Outcome::Done);
    }
}

/// A leader whose group takes a while.
#[test]
fn nodes_that_trigger_are_told_of_their_own_trigger_when_it_is_decided() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    let mut out = Vec::new();
    let mut ask = |from, id| {
        let request = Request::Trigger(TriggerId(id));
        let Bench { leader, state, .. } = &mut bench;
        leader.on_asked(state, from, &request, &mut out);
    };
    let askers = 10..10 + ASKERS_MAX as u64;
    for id in askers {
        ask(Member::new(id, 0), 1);
    }
    ask(ASKER, 2);
    ask(ASKER, 1);
    let proposed = |id| Effect::Propose(Update::Trigger(TriggerId(id)));
    let proposals = out.iter().filter(|it| matches!(it, Effect::Propose(_)));
    assert_eq!(
        proposals.cloned().collect::<Vec<_>>(),
        [proposed(1), proposed(2)],
        "each once"
    );
    let mut notified_of = |id| {
        let mut effects = Vec::new();
        let Bench { leader, state, .. } = &mut bench;
        let decided = state.apply(&Update::Trigger(TriggerId(id)));
        leader.on_applied(state, &decided, &mut effects);
        let notified = effects.iter().filter(
            |it| matches!(it, Effect::Answer { answer: Answer::Triggered(it), .. } if it.0 == id),
        );
        let others = effects
            .iter()
            .filter(|it| matches!(it, Effect::Answer { .. }));
        assert_eq!(notified.clone().count(), others.count());
        notified.count()
    };
    assert_eq!(notified_of(2), 0, "there was no room: it asks again");
    assert_eq!(notified_of(1), ASKERS_MAX);

    let mut bench = Bench::new(routine(vec![set(1)]));
    let mut notified = Vec::new();
    for id in [1, 2] {
        let request = Request::Trigger(TriggerId(id));
        let Bench { leader, state, .. } = &mut bench;
        leader.on_asked(state, ASKER, &request, &mut Vec::new());
    }
    for id in [1, 2, 2] {
        let Bench { leader, state, .. } = &mut bench;
        let decided = state.apply(&Update::Trigger(TriggerId(id)));
        let mut effects = Vec::new();
        leader.on_applied(state, &decided, &mut effects);
        notified.extend(effects.into_iter().filter_map(|it| match it {
            Effect::Answer { answer, .. } => Some(answer),
            _ => None,
        }));
    }
    assert_eq!(notified, [1, 2].map(|id| Answer::Triggered(TriggerId(id))));
}

#[test]
fn what_is_proposed_and_not_decided_is_proposed_again_on_a_tick_alone() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    bench.trigger(1);
    let (claim, device) = (bench.claim(), NodeId(1));
    let mut proposed = |call: &dyn Fn(&mut RoutineLeader, &RoutineState, &mut Out)| {
        let mut effects = Vec::new();
        call(&mut bench.leader, &bench.state, &mut effects);
        let proposals = effects.iter().filter(|it| matches!(it, Effect::Propose(_)));
        proposals.count()
    };
    let granted = Answer::Granted { device, claim };
    let over = Answer::Over { device, claim };
    assert_eq!(
        proposed(&|leader, state, out| leader.on_answered(state, GroupId(1), &granted, out)),
        1
    );
    for count in [1, 0] {
        assert_eq!(
            proposed(&|leader, state, out| leader.on_answered(state, GroupId(1), &over, out)),
            count
        );
    }
    assert_eq!(
        proposed(&|leader, state, out| leader.on_tick(state, RoutineTimer::Resend, out)),
        2
    );
}

#[test]
fn an_answer_to_a_command_that_is_over_changes_nothing() {
    let hold = Span::secs(60);
    let definition = routine(vec![Step { hold, ..set(1) }, set(2)]);
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    bench.grant_all();
    bench.acted(1, 0, Outcome::Done);
    // It was done, and the device is held: another leader's outcome of the same command is late.
    bench.acted(1, 0, Outcome::Failed);
    assert_eq!(bench.state.step(), Some(0));
    assert!(bench.armed.contains_key(&RoutineTimer::Hold));
    assert_eq!(bench.hold(), hold);
    assert_eq!(bench.state.step(), Some(1));
    bench.acted(1, 0, Outcome::Failed);
    assert_eq!(bench.state.step(), Some(1), "that was the step before");
    bench.acted(2, 1, Outcome::Done);
    assert_eq!(bench.outcomes(), [StepOutcome::Done; 2]);
}

/// The timeout of a command does not count the time for which its device sleeps.
#[test]
fn a_command_that_waits_for_its_device_to_wake_is_not_overdue() {
    let slow = Step {
        timeout: Some(Span::secs(4)),
        ..set(1)
    };
    let mut bench = Bench::new(routine(vec![slow, set(2)]));
    bench.trigger(1);
    bench.grant_all();
    let (device, claim) = (NodeId(1), bench.claim());
    let asleep = |step| Answer::Asleep {
        device,
        claim,
        step,
    };
    let armed = |bench: &mut Bench| bench.armed.remove(&RoutineTimer::Command);
    assert_eq!(armed(&mut bench), Some(Span::secs(4)));
    bench.receive(1, asleep(0));
    assert_eq!(armed(&mut bench), Some(Span::secs(4)));
    bench.receive(1, asleep(1));
    assert_eq!(armed(&mut bench), None, "another step");
    bench.receive(1, asleep(0));
    bench.tick(RoutineTimer::Command);
    assert_eq!(bench.outcomes()[0], StepOutcome::Unknown);
    armed(&mut bench);
    bench.receive(1, asleep(0));
    assert_eq!(armed(&mut bench), None, "it comes late");
}

#[test]
fn a_run_that_restarts_does_not_wait_for_a_device_to_wake() {
    let definition = routine(vec![set(1), set(2)]).with_retrigger(Retrigger::Restart);
    let mut bench = Bench::new(definition);
    bench.trigger(1);
    bench.grant_all();
    let (device, claim) = (NodeId(1), bench.claim());
    bench.trigger(2);
    assert_eq!(bench.state.step(), Some(0));
    let step = 0;
    let answer = Answer::Asleep {
        device,
        claim,
        step,
    };
    bench.receive(1, answer);
    let report = bench.state.report().unwrap();
    let expected = [StepOutcome::Unknown, StepOutcome::NotReached];
    assert_eq!(report.steps, expected);
}
