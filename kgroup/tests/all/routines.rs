//! The state of a routine's group.

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_core::{NodeId, Span};
use selvedge_kgroup::routines::{
    CLAUSE_MAX, ConfigError, DEVICES_MAX, Decided, Definition, End, Locking, Report, Retrigger,
    RoutineConfig, RoutineState, STEPS_MAX, Stage, StepOutcome, TRIGGERS_MAX, Taken, Update,
};
use selvedge_kgroup::{Delivery, Status, TriggerId};
use selvedge_replica::State as _;
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Priority, Routine, State, Step};

const LAMP: NodeId = NodeId(1);
const BLIND: NodeId = NodeId(2);
const SENSOR: NodeId = NodeId(3);

fn is(device: NodeId, value: &str) -> Condition<State> {
    Condition {
        device,
        comparison: Comparison::Equal,
        value: value.into(),
    }
}

/// The lamp must go on, the blind may go down if the lamp is on, the lamp may go off.
fn routine() -> Routine<State> {
    let best_effort = |device, value: &str| Step {
        priority: Priority::BestEffort,
        ..Step::new(device, value.into())
    };
    let steps = vec![
        Step::new(LAMP, "on".into()),
        Step {
            condition: Some(is(LAMP, "on").into()),
            ..best_effort(BLIND, "down")
        },
        best_effort(LAMP, "off"),
    ];
    Routine { steps }
}

fn definition(retrigger: Retrigger) -> Definition {
    Definition::new(routine())
        .with_clause(Clause::Is(is(SENSOR, "dark")))
        .with_retrigger(retrigger)
}

fn state(retrigger: Retrigger) -> RoutineState {
    RoutineState::new(definition(retrigger)).unwrap()
}

fn observed(version: u64, value: &str) -> Update {
    Update::Observed {
        device: SENSOR,
        status: Status {
            version,
            is_up: true,
            value: Some(value.into()),
        },
    }
}

fn trigger(id: u64) -> Update {
    Update::Trigger(TriggerId(id))
}

const fn locked(instance: u64, attempt: u32) -> Update {
    Update::Locked { instance, attempt }
}

const fn done(instance: u64, step: u16, outcome: StepOutcome) -> Update {
    Update::StepDone {
        instance,
        step,
        is_cleared: false,
        outcome,
    }
}

const fn released(instance: u64) -> Update {
    Update::Released { instance }
}

/// A whole run.
fn run(instance: u64) -> Vec<Update> {
    let cleared = Update::StepDone {
        instance,
        step: 1,
        is_cleared: true,
        outcome: StepOutcome::Failed,
    };
    vec![
        trigger(instance),
        locked(instance, 1),
        done(instance, 0, StepOutcome::Done),
        Update::Cleared { instance, step: 1 },
        cleared,
        done(instance, 2, StepOutcome::Unknown),
        released(instance),
    ]
}

fn end(state: &RoutineState) -> Option<End> {
    state.report().map(|it| it.end)
}

#[test]
fn a_run_goes_through_its_stages_and_is_reported() {
    let mut state = state(Retrigger::Ignore);
    assert_eq!(*state.stage(), Stage::NotTriggered);
    let names = run(1).into_iter().map(|update| {
        let decided = state.apply(&update);
        assert_ne!(decided, Decided::Nothing, "{update:?}");
        match state.stage() {
            Stage::NotTriggered => "rests",
            Stage::AcquiringLocks { .. } => "acquires",
            Stage::Executing { .. } => "executes",
            Stage::ReleasingLocks { .. } => "releases",
        }
    });
    let names: Vec<_> = names.collect();
    let executes = ["executes"; 4];
    assert_eq!(
        names,
        [&["acquires"][..], &executes, &["releases", "rests"]].concat()
    );
    let report = Report {
        instance: 1,
        end: End::Completed,
        steps: vec![StepOutcome::Done, StepOutcome::Failed, StepOutcome::Unknown],
    };
    assert_eq!(state.report(), Some(&report));
}

#[test]
fn a_command_that_must_succeed_ends_the_run() {
    for outcome in [StepOutcome::Failed, StepOutcome::Unknown] {
        let mut state = state(Retrigger::Ignore);
        for update in [trigger(1), locked(1, 1), done(1, 0, outcome)] {
            state.apply(&update);
        }
        assert_eq!(*state.stage(), Stage::ReleasingLocks { attempt: 1 });
        let report = Report {
            instance: 1,
            end: End::Failed { step: 0 },
            steps: vec![outcome, StepOutcome::NotReached, StepOutcome::NotReached],
        };
        assert_eq!(state.report(), Some(&report));
    }
}

#[test]
fn a_condition_that_holds_is_not_passed_over_any_more() {
    let mut state = state(Retrigger::Ignore);
    for update in run(1).iter().take(4) {
        state.apply(update);
    }
    let before = state.clone();
    assert_eq!(
        state.apply(&done(1, 1, StepOutcome::Skipped)),
        Decided::Nothing
    );
    assert_eq!(state, before);
}

#[test]
fn a_device_that_cannot_be_had_ends_the_run_before_it_begins() {
    let mut state = state(Retrigger::Ignore);
    state.apply(&trigger(1));
    let lacks = Update::NoDevice {
        instance: 1,
        attempt: 1,
        device: BLIND,
    };
    assert_eq!(state.apply(&lacks), Decided::Releases);
    assert_eq!(end(&state), Some(End::NoDevice { device: BLIND }));
    let steps = &state.report().unwrap().steps;
    assert_eq!(*steps, [StepOutcome::NotReached; 3]);
    assert_eq!(state.apply(&released(1)), Decided::Ends { instance: 1 });
}

#[test]
fn a_clause_triggers_when_it_becomes_true() {
    let mut state = state(Retrigger::QueueOnce);
    let mut taken = |version, value| {
        let decided = state.apply(&observed(version, value));
        let Decided::Observed { taken, .. } = decided else {
            panic!("{decided:?}");
        };
        taken
    };
    assert_eq!(
        taken(1, "dark"),
        Some(Taken::Runs { instance: 1 }),
        "it was unknown"
    );
    assert_eq!(taken(2, "dark"), None, "it stays true");
    assert_eq!(taken(3, "bright"), None);
    assert_eq!(taken(5, "dark"), Some(Taken::Queued));
    // Late, and another device's.
    assert_eq!(state.apply(&observed(4, "bright")), Decided::Nothing);
    let stranger = Update::Observed {
        device: LAMP,
        status: Status {
            version: 9,
            ..Status::default()
        },
    };
    assert_eq!(state.apply(&stranger), Decided::Nothing);
    assert_eq!(state.observed(SENSOR).unwrap().version, 5);
}

#[test]
fn a_device_that_does_not_answer_for_a_while_triggers_nothing() {
    let mut state = state(Retrigger::QueueOnce);
    state.apply(&observed(1, "dark"));
    for (version, is_up) in [(2, false), (3, true)] {
        let status = Status {
            version,
            is_up,
            value: Some("dark".into()),
        };
        let device = SENSOR;
        let decided = state.apply(&Update::Observed { device, status });
        assert_eq!(
            decided,
            Decided::Observed {
                device,
                taken: None
            }
        );
    }
}

#[test]
fn a_trigger_starts_one_run() {
    let mut state = state(Retrigger::QueueOnce);
    state.apply(&trigger(1));
    let again = state.apply(&trigger(1));
    let id = TriggerId(1);
    assert_eq!(again, Decided::Triggered { id, taken: None });
    assert!(!state.is_queued());
    // After this number of other triggers it is forgotten.
    for id in 0..=TRIGGERS_MAX as u64 {
        state.apply(&trigger(100 + id));
    }
    let id = TriggerId(1);
    let taken = Some(Taken::Queued);
    assert_eq!(state.apply(&trigger(1)), Decided::Triggered { id, taken });
}

/// The effect of the second of two triggers at each stage of the first run, and the runs in the
/// end.
#[test]
fn each_policy_says_what_a_trigger_does_while_it_runs() {
    let lengths = [
        (Retrigger::Ignore, [1, 1, 1, 1, 1, 1]),
        (Retrigger::QueueOnce, [2, 2, 2, 2, 2, 2]),
        // In the first stage nothing was done yet, so one run serves both.
        (Retrigger::Restart, [1, 2, 2, 2, 2, 2]),
    ];
    for (retrigger, runs) in lengths {
        for (at, runs) in (1..).zip(runs) {
            let mut state = state(retrigger);
            for (nth, update) in run(1).iter().enumerate() {
                if nth == at {
                    state.apply(&trigger(50));
                    state.apply(&trigger(51));
                }
                state.apply(update);
            }
            let cut = retrigger == Retrigger::Restart && (2..=4).contains(&at);
            let expected = if cut { End::Restarted } else { End::Completed };
            assert_eq!(end(&state), Some(expected), "{retrigger:?} at {at}");
            if cut {
                state.apply(&released(1));
            }
            assert_eq!(state.instance(), runs, "{retrigger:?} at {at}");
            assert!(!state.is_queued());
        }
    }
}

#[test]
fn a_definition_that_cannot_run_is_refused() {
    let good = || definition(Retrigger::Ignore);
    good().check().unwrap();
    let refuse = |change: fn(&mut Definition)| {
        let mut definition = good();
        change(&mut definition);
        let error = definition.check().unwrap_err();
        assert_eq!(RoutineState::new(definition).unwrap_err(), error);
        error
    };
    assert_eq!(refuse(|it| it.routine.steps.clear()), ConfigError::NoStep);
    let found = refuse(|it| {
        let step = it.routine.steps[0].clone();
        it.routine.steps.resize(257, step);
    });
    assert_eq!(found, ConfigError::Steps { found: 257 });
    let found = refuse(|it| it.deliveries.push(Delivery::AtMostOnce));
    assert_eq!(found, ConfigError::Deliveries { found: 4, steps: 3 });
    let found = refuse(|it| {
        it.routine.steps.clear();
        let step = |id| Step::new(NodeId(id), State::from("on"));
        it.routine.steps.extend((10..138).map(step));
        it.deliveries.resize(128, Delivery::AtLeastOnce);
    });
    assert_eq!(found, ConfigError::Devices { found: 129 });
    let found = refuse(|it| {
        let not = |inner| Clause::Not(Box::new(inner));
        let deep = (0..CLAUSE_MAX).fold(Clause::All(vec![]), |inner, _| not(inner));
        it.clause = Some(deep);
    });
    let parts = CLAUSE_MAX + 1;
    assert_eq!(found, ConfigError::Clause { found: parts });
    let found = refuse(|it| it.routine.steps[1].undo = Some("up".into()));
    assert_eq!(found, ConfigError::Undo { step: 1 });
    let found = refuse(|it| {
        let two = Clause::All(vec![is(LAMP, "on").into(), is(SENSOR, "on").into()]);
        it.routine.steps[0].condition = Some(two);
    });
    assert_eq!(found, ConfigError::Condition { step: 0 });
    let found = refuse(|it| it.routine.steps[2].timeout = Some(selvedge_core::Span::ZERO));
    assert_eq!(found, ConfigError::StepTimeout { step: 2 });
    assert_eq!(
        refuse(|it| it.command_timeout = selvedge_core::Span::ZERO),
        ConfigError::Timeout
    );
    assert_eq!(
        ConfigError::Deliveries { found: 4, steps: 3 }.to_string(),
        "4 deliveries are listed for 3 steps: list one for each step"
    );
}

#[test]
fn settings_out_of_their_range_are_refused() {
    RoutineConfig::new().check().unwrap();
    let short = RoutineConfig::new().with_backoff_most(selvedge_core::Span::millis(1));
    assert_eq!(
        short.check().unwrap_err().to_string(),
        "backoff_most is 1000 us: set it to 200000 us or more, up to 9223372036854775807 us"
    );
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let condition = || Clause::Is(is(SENSOR, "dark"));
    let clauses = [
        None,
        Some(Clause::All(vec![])),
        Some(Clause::Any(vec![
            Clause::Not(Box::new(condition())),
            Clause::All(vec![condition(), Clause::Is(is(LAMP, "off"))]),
            Clause::Is(is(BLIND, "up")),
        ])),
    ];
    for clause in clauses {
        let mut definition = definition(Retrigger::Restart).with_locking(Locking::Optimistic);
        definition.clause = clause;
        let mut state = RoutineState::new(definition).unwrap();
        for update in run(1) {
            let bytes = postcard::to_allocvec(&state).unwrap();
            assert_eq!(postcard::from_bytes::<RoutineState>(&bytes).unwrap(), state);
            state.apply(&update);
        }
    }
}

#[test]
fn a_clause_that_is_nested_too_deep_is_refused_without_harm() {
    let state = state(Retrigger::Ignore);
    let definition = postcard::to_allocvec(state.definition()).unwrap();
    let routine = postcard::to_allocvec(&routine()).unwrap();
    // A list of a million contraries, where the clause is.
    let mut bytes = routine;
    assert!(definition.starts_with(&bytes));
    bytes.extend(postcard::to_allocvec(&1_000_000_u32).unwrap());
    bytes.resize(bytes.len() + 1_000_000, 1);
    assert!(postcard::from_bytes::<Definition>(&bytes).is_err());
}

fn outcomes() -> impl Strategy<Value = StepOutcome> {
    prop::sample::select(vec![
        StepOutcome::Done,
        StepOutcome::Failed,
        StepOutcome::Unknown,
        StepOutcome::Skipped,
    ])
}

fn updates() -> impl Strategy<Value = Update> {
    let instance = 0..4_u64;
    let attempt = 1..4_u32;
    let step = 0..4_u16;
    prop_oneof![
        (1..6_u64, any::<bool>())
            .prop_map(|(version, it)| observed(version, if it { "dark" } else { "bright" })),
        (0..6_u64).prop_map(trigger),
        (instance.clone(), attempt.clone()).prop_map(|(it, attempt)| locked(it, attempt)),
        (instance.clone(), attempt.clone())
            .prop_map(|(instance, attempt)| Update::Retry { instance, attempt }),
        (instance.clone(), step.clone())
            .prop_map(|(instance, step)| Update::Cleared { instance, step }),
        (instance.clone(), step, any::<bool>(), outcomes()).prop_map(
            |(instance, step, is_cleared, outcome)| Update::StepDone {
                instance,
                step,
                is_cleared,
                outcome,
            }
        ),
        (instance.clone(), 0..4_u16, 0..9_u64).prop_map(|(instance, step, held)| Update::Held {
            instance,
            step,
            held: Span(held),
        }),
        (instance.clone(), attempt).prop_map(|(instance, attempt)| Update::NoDevice {
            instance,
            attempt,
            device: LAMP
        }),
        instance.prop_map(released),
    ]
}

/// The progress of a state: it never goes back.
fn progress(state: &RoutineState) -> (u64, u8, u32, usize, bool) {
    let (stage, attempt, over, is_cleared) = match state.stage() {
        Stage::AcquiringLocks { attempt } => (0, *attempt, 0, false),
        Stage::Executing {
            attempt,
            outcomes,
            is_cleared,
        } => (1, *attempt, outcomes.len(), *is_cleared),
        Stage::ReleasingLocks { attempt } => (2, *attempt, 0, false),
        Stage::NotTriggered => (3, 0, 0, false),
    };
    (state.instance(), stage, attempt, over, is_cleared)
}

proptest! {
    /// Updates in any order: a change is never undone, a repeated update changes nothing, and each
    /// run that is over was reported in full.
    #[test]
    fn updates_that_are_late_or_doubled_change_nothing(
        updates in vec(updates(), 0..80),
        policy in prop::sample::select(vec![
            Retrigger::Ignore,
            Retrigger::QueueOnce,
            Retrigger::Restart,
        ]),
    ) {
        let mut state = state(policy);
        let mut taken: Vec<Update> = Vec::new();
        for update in updates {
            let before = state.clone();
            let decided = state.apply(&update);
            let is_idle = matches!(
                decided,
                Decided::Nothing | Decided::Triggered { taken: None, .. }
            );
            if is_idle || matches!(decided, Decided::Triggered { taken: Some(Taken::Ignored), .. }) {
                prop_assert_eq!(progress(&before), progress(&state));
            }
            if is_idle {
                prop_assert_eq!(&before, &state);
            } else {
                prop_assert!(progress(&before) <= progress(&state));
                prop_assert!(before != state);
                taken.push(update);
            }
            if let Stage::ReleasingLocks { .. } = state.stage() {
                let report = state.report().unwrap();
                prop_assert_eq!(report.instance, state.instance());
                prop_assert_eq!(report.steps.len(), 3);
            }
            // All earlier updates, again: none changes anything.
            let mut again = state.clone();
            for update in &taken {
                again.apply(update);
            }
            prop_assert_eq!(&again, &state);
        }
    }

    /// A run with updates in their order ends as they state, with any other updates between.
    #[test]
    fn a_run_ends_as_its_steps_did(noise in vec((0..7_usize, 0..7_usize), 0..20), outcome in outcomes()) {
        let mut state = state(Retrigger::Ignore);
        let mut updates = run(1);
        updates[5] = done(1, 2, outcome);
        for at in 0..updates.len() {
            state.apply(&updates[at]);
            for &(after, late) in &noise {
                if after == at && late <= at {
                    state.apply(&updates[late]);
                }
            }
        }
        let steps = &state.report().unwrap().steps;
        prop_assert_eq!(steps, &vec![StepOutcome::Done, StepOutcome::Failed, outcome]);
        prop_assert_eq!(state.stage(), &Stage::NotTriggered);
    }
}

#[test]
fn a_definition_may_have_as_much_as_the_limits_say() {
    let step = |id: u64| Step::new(NodeId(id), "on".into());
    let steps = |ids: &mut dyn Iterator<Item = u64>| {
        let steps = ids.map(step).collect();
        Definition::new(Routine { steps })
    };
    let longest = steps(&mut core::iter::repeat_n(1, STEPS_MAX));
    assert_eq!(longest.check(), Ok(()));
    let most = steps(&mut (1..=DEVICES_MAX as u64));
    assert_eq!(most.check(), Ok(()));
    let not = |inner| Clause::Not(Box::new(inner));
    let deepest = (1..CLAUSE_MAX).fold(Clause::All(vec![]), |inner, _| not(inner));
    let definition = most.with_clause(deepest);
    assert_eq!(definition.check(), Ok(()));
    let bytes = postcard::to_allocvec(&definition).unwrap();
    let read: Definition = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(read, definition);
}

#[test]
fn a_run_that_waits_for_the_present_one_is_told_of() {
    let mut state = state(Retrigger::QueueOnce);
    state.apply(&trigger(1));
    assert!(!state.is_queued());
    state.apply(&trigger(2));
    assert!(state.is_queued());
}
