//! Another definition.

use selvedge_routine::trigger::Trigger;

use selvedge_kgroup::Due;

use super::*;

fn define(generation: u32, definition: &Definition) -> Update {
    Update::Define {
        generation,
        definition: postcard::to_allocvec(definition).unwrap(),
    }
}

/// Device n is looked after by group n.
fn renew(bench: &mut Bench) {
    let group_of = |device: NodeId| Some(GroupId(device.0));
    bench.step(|leader, state, out| {
        if leader.is_outdated(state) {
            leader.renew(state, group_of, out);
        }
    });
}

fn sync(bench: &mut Bench, generation: u32, definition: &Definition) {
    bench.step(|leader, state, out| leader.sync(state, generation, Some(definition), out));
    renew(bench);
}

fn run(bench: &mut Bench, device: u64) {
    bench.grant_all();
    let claim = bench.claim();
    bench.acted(device, 0, Outcome::Done);
    bench.released(device, claim);
    renew(bench);
}

#[test]
fn a_routine_at_rest_takes_another_definition_at_once_and_watches_anew() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    let next = routine(vec![set(2)]).with_clause(Clause::Is(is_on(3)));
    sync(&mut bench, 1, &next);
    assert_eq!(bench.state.definition(), &next);
    assert_eq!(bench.asked(), [("watch", 3)]);
    bench.trigger(1);
    assert_eq!(bench.asked(), [("lock", 2)]);
}

#[test]
fn a_run_ends_under_its_definition_and_the_next_one_has_the_other() {
    let queues = |device| routine(vec![set(device)]).with_retrigger(Retrigger::QueueOnce);
    let mut bench = Bench::new(queues(1));
    bench.trigger(1);
    bench.trigger(2);
    sync(&mut bench, 1, &queues(2));
    assert_eq!(bench.state.definition(), &queues(1));
    assert_eq!(bench.state.pending(), Some(&queues(2)));
    run(&mut bench, 1);
    assert_eq!(bench.state.definition(), &queues(2));
    assert_eq!((bench.state.instance(), bench.claim().instance), (2, 2));
    let instance = 2;
    assert!(bench.events.contains(&RoutineEvent::Triggered { instance }));
    assert_eq!(bench.asked.last().map(named), Some(("lock", 2)));
    run(&mut bench, 2);
    assert_eq!(bench.state.stage(), &Stage::NotTriggered);
    assert!(bench.state.has(TriggerId(1)));
}

#[test]
fn a_definition_of_an_earlier_site_or_of_bad_bytes_changes_nothing() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    let (second, third) = (routine(vec![set(2)]), routine(vec![set(3)]));
    sync(&mut bench, 3, &third);
    let before = bench.state.clone();
    let mut cut = define(4, &second);
    if let Update::Define { definition, .. } = &mut cut {
        definition.pop();
    }
    for update in [
        define(2, &second),
        define(3, &second),
        cut,
        define(4, &routine(vec![])),
    ] {
        bench.state.apply(&update);
        assert_eq!(bench.state, before, "{update:?}");
    }
    // A leader of the earlier site proposes nothing.
    sync(&mut bench, 2, &second);
    assert_eq!(bench.state, before);
}

/// Founders begin with one state, whatever sites they have.
#[test]
fn a_routine_without_a_definition_leaves_triggers_unanswered() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    bench.state = RoutineState::undefined(0);
    let before = bench.state.clone();
    renew(&mut bench);
    bench.trigger(1);
    assert_eq!((&bench.state, bench.notified.len()), (&before, 0));
    bench.state.apply(&Update::Trigger(TriggerId(1)));
    assert_eq!(bench.state, before);
    sync(&mut bench, 1, &routine(vec![set(2)]));
    bench.trigger(1);
    assert_eq!(bench.notified, [Answer::Triggered(TriggerId(1))]);
    run(&mut bench, 2);
    assert_eq!(bench.outcomes(), [StepOutcome::Done]);
}

/// Interval 7,000 of the trigger before is no day of the next one.
#[test]
fn an_occurrence_of_another_definition_does_not_count() {
    let every = |span| routine(vec![set(1)]).with_trigger(Trigger::Every(span));
    let mut bench = Bench::new(every(Span::secs(1)));
    let due = |since, occurrence| Due {
        since,
        trigger: 0,
        occurrence,
        is_late: false,
    };
    bench.state.apply(&Update::Due(due(0, 7_000)));
    assert_eq!(bench.state.occurrence(0), Some(7_000));
    sync(&mut bench, 2, &every(Span::secs(100)));
    assert_eq!(bench.state.occurrence(0), None);
    bench.state.apply(&Update::Due(due(0, 7_001)));
    assert_eq!(bench.state.occurrence(0), None);
    bench.state.apply(&Update::Due(due(2, 70)));
    assert_eq!(bench.state.occurrence(0), Some(70));
    assert_eq!(bench.state.instance(), 0);
}

/// A cluster's leader that has not adopted the site yet does not know the device.
#[test]
fn a_refusal_from_an_earlier_site_does_not_end_a_run() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    sync(&mut bench, 2, &routine(vec![set(2)]));
    bench.trigger(1);
    let device = NodeId(2);
    let refusal = |generation| Answer::NoDevice {
        device,
        routine: ROUTINE,
        generation,
    };
    bench.receive(2, refusal(1));
    assert_eq!(bench.state.stage(), &Stage::AcquiringLocks { attempt: 1 });
    bench.receive(2, refusal(2));
    assert_eq!(bench.state.report().unwrap().end, End::NoDevice { device });
}
