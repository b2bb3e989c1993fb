//! Figure 3 and table 2 of the paper, under every model.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, MODELS, at, long, maybe, set};
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_safehome::Visibility::{
    Eventual, GlobalStrict, PartitionedStrict, StrongGlobalStrict, Weak,
};
use selvedge_safehome::{Config, Event, Placed, RoutineId, Step, Visibility};

fn home(visibility: Visibility, devices: usize) -> Home {
    let config = Config::default()
        .with_visibility(visibility)
        .with_timeout(Span::secs(1));
    Home::new(config, devices)
}

/// The times at which a device that a routine may need fails, and is up again.
struct Case {
    what: &'static str,
    steps: fn() -> Vec<Step<u8>>,
    fails: u64,
    back: Option<u64>,
    /// The models that abort the routine.
    aborts: &'static [Visibility],
    /// The place of the failure under eventual and partitioned visibility, if the routine is done.
    before: bool,
}

const A: usize = 0;

/// First another device for 1 s, then A for 1 s, then the other one for 1 s again.
fn touches_a_between() -> Vec<Step<u8>> {
    let second = Span::secs(1);
    vec![long(1, 1, second), long(0, 1, second), long(1, 2, second)]
}

/// A twice, with another device between.
fn touches_a_twice() -> Vec<Step<u8>> {
    let second = Span::secs(1);
    vec![long(0, 1, second), long(1, 1, second), long(0, 2, second)]
}

fn never_touches_a() -> Vec<Step<u8>> {
    vec![long(1, 1, Span::secs(3))]
}

const GLOBAL: &[Visibility] = &[GlobalStrict, StrongGlobalStrict];
const ALL: &[Visibility] = &[
    GlobalStrict,
    StrongGlobalStrict,
    PartitionedStrict,
    Eventual,
];

const CASES: [Case; 8] = [
    Case {
        what: "fails and is back before the routine touches it",
        steps: touches_a_between,
        fails: 200,
        back: Some(700),
        aborts: GLOBAL,
        before: true,
    },
    Case {
        what: "fails before the routine touches it, and stays down",
        steps: touches_a_between,
        fails: 200,
        back: None,
        aborts: ALL,
        before: true,
    },
    Case {
        what: "fails during its command",
        steps: touches_a_between,
        fails: 1_500,
        back: None,
        aborts: ALL,
        before: false,
    },
    Case {
        what: "fails between two commands, and is back before the second one",
        steps: touches_a_twice,
        fails: 1_300,
        back: Some(1_700),
        aborts: ALL,
        before: false,
    },
    Case {
        what: "fails after its last command, and is back before the routine is done",
        steps: touches_a_between,
        fails: 2_300,
        back: Some(2_700),
        aborts: GLOBAL,
        before: false,
    },
    Case {
        what: "fails after its last command, and stays down",
        steps: touches_a_between,
        fails: 2_300,
        back: None,
        aborts: &[GlobalStrict, StrongGlobalStrict, PartitionedStrict],
        before: false,
    },
    Case {
        what: "fails before the last command is done, and is back",
        steps: touches_a_between,
        fails: 1_900,
        back: Some(2_000),
        aborts: ALL,
        before: false,
    },
    Case {
        what: "fails, and the routine never touches it",
        steps: never_touches_a,
        fails: 1_000,
        back: None,
        aborts: &[StrongGlobalStrict],
        before: true,
    },
];

/// Figure 3 with section 3's rules, and two more cases: the end of the routine, the states of the
/// devices, and the place of the failure in the order.
#[test]
fn failures_are_serialized_as_figure_3_says() {
    for case in &CASES {
        for visibility in MODELS {
            let what = format!("{}, under {visibility:?}", case.what);
            let mut home = home(visibility, 2);
            let routine = home.submit((case.steps)());
            home.pass(at(case.fails));
            home.flip(A);
            if let Some(back) = case.back {
                home.pass(at(back));
                home.flip(A);
            }
            home.rest();
            let aborts = case.aborts.contains(&visibility);
            assert_eq!(home.committed(routine).is_none(), aborts, "{what}");
            if case.back.is_none() {
                home.flip(A);
                home.rest();
            }
            if visibility == Weak {
                continue;
            }
            let last = |device| {
                let steps = (case.steps)();
                let of = |it: &&Step<u8>| it.device == NodeId(device);
                steps.iter().rev().find(of).map_or(0, |it| it.value)
            };
            let expected = if aborts { [0, 0] } else { [last(0), last(1)] };
            assert_eq!(home.states, expected, "{what}");
            let order = home.order();
            let place = |what: &Placed<u8>| order.iter().position(|it| it == what);
            let failed = place(&Placed::Failed(NodeId(0))).unwrap();
            let back = place(&Placed::Restarted(NodeId(0))).unwrap();
            assert!(failed < back, "{what}: {order:?}");
            match place(&Placed::Routine(routine)) {
                None => assert!(aborts, "{what}: {order:?}"),
                Some(it) => {
                    assert!(!aborts, "{what}: {order:?}");
                    assert_eq!(failed < it, case.before, "{what}: {order:?}");
                }
            }
        }
    }
}

/// A restart while a routine runs ends it under global visibility, also of a device that was down
/// when it began.
#[test]
fn a_restart_ends_a_routine_under_global_visibility() {
    for visibility in MODELS {
        for (steps, needs_it) in [
            (touches_a_between as fn() -> Vec<Step<u8>>, true),
            (never_touches_a, false),
        ] {
            let mut home = home(visibility, 2);
            home.flip(A);
            let routine = home.submit(steps());
            home.pass(at(500));
            home.flip(A);
            home.rest();
            let ends = match visibility {
                GlobalStrict => needs_it,
                StrongGlobalStrict => true,
                Weak | PartitionedStrict | Eventual => false,
            };
            assert_eq!(home.committed(routine).is_none(), ends, "{visibility:?}");
        }
    }
}

/// A device that joins with a new incarnation has failed in between, and its earlier incarnations
/// are over.
#[test]
fn a_new_life_is_a_failure_and_a_former_one_is_nothing() {
    for visibility in MODELS {
        let mut home = home(visibility, 2);
        home.receive(Delta::Joined(Member::new(0, 1)));
        let first = home.submit(touches_a_twice());
        home.pass(at(500));
        home.receive(Delta::Failed(Member::new(0, 0)));
        home.rest();
        assert!(home.committed(first).is_some(), "{visibility:?}");
        assert_eq!(home.order().len(), usize::from(visibility != Weak));
        let second = home.submit(touches_a_twice());
        home.wait(Span::millis(500));
        home.receive(Delta::Joined(Member::new(0, 2)));
        home.rest();
        let ends = visibility != Weak;
        assert_eq!(home.committed(second).is_none(), ends, "{visibility:?}");
        let device = NodeId(0);
        let events = [Placed::Failed(device), Placed::Restarted(device)];
        assert!(home.order().ends_with(&events), "{:?}", home.order());
    }
}

fn started(home: &Home, id: RoutineId) -> Time {
    home.when(&Event::Started(id)).unwrap()
}

/// Row 1: a window is closed and an AC switched on, both or none.
#[test]
fn cooling_is_done_as_a_whole_or_not_at_all() {
    for visibility in MODELS {
        let mut home = home(visibility, 2);
        home.flip(1);
        let routine = home.submit(vec![set(0, 1), set(1, 1)]);
        home.rest();
        let is_half_done = home.states == [1, 0];
        assert_eq!(is_half_done, visibility == Weak, "{visibility:?}");
        assert_eq!(home.committed(routine).is_some(), visibility == Weak);
    }
}

/// Row 2: no routine interrupts a coffee maker, not even under weak visibility: a long command
/// keeps its device.
#[test]
fn coffee_is_not_interrupted() {
    for visibility in MODELS {
        let mut home = home(visibility, 1);
        let coffee = || vec![long(0, 1, Span::secs(240)), set(0, 0)];
        home.submit(coffee());
        home.pass(at(60_000));
        home.submit(coffee());
        home.pass(at(239_000));
        assert_eq!(home.states, [1], "{visibility:?}");
        let issued = |it: &&(Time, Event<u8>)| matches!(it.1, Event::Issue { .. });
        assert_eq!(
            home.events.iter().filter(issued).count(),
            1,
            "{visibility:?}"
        );
        home.rest();
        assert_eq!(home.states, [0], "{visibility:?}");
    }
}

/// Rows 3 and 4: a routine that shares no device waits under global visibility only.
#[test]
fn routines_without_a_common_device_wait_under_global_visibility_only() {
    for visibility in MODELS {
        let mut home = home(visibility, 3);
        let first = home.submit(vec![long(0, 1, Span::secs(2_400)), set(0, 0)]);
        let second = home.submit(vec![set(1, 1), set(2, 1)]);
        home.rest();
        let is_global = GLOBAL.contains(&visibility);
        let waits = started(&home, second) >= home.committed(first).unwrap();
        assert_eq!(waits, is_global, "{visibility:?}");
    }
}

/// Under partitioned visibility no routine overtakes another that waits for a common device:
/// otherwise a routine that needs many devices would wait for ever.
#[test]
fn nobody_overtakes_who_waits_under_partitioned_visibility() {
    let mut home = home(PartitionedStrict, 2);
    home.submit(vec![long(0, 1, Span::secs(10))]);
    let waits = home.submit(vec![set(0, 2), set(1, 2)]);
    let late = home.submit(vec![set(1, 3)]);
    home.rest();
    assert!(started(&home, waits) < started(&home, late));
    assert_eq!(home.states, [2, 3]);
}

/// Row 5: two breakfasts are made one behind the other in a pipeline: 4 minutes of coffee and 5 of
/// pancakes each. Under weak visibility the second coffee comes before the first
/// maker is switched off, so that nothing is gained.
#[test]
fn breakfasts_are_pipelined_under_eventual_visibility() {
    for visibility in MODELS {
        let mut home = home(visibility, 2);
        let breakfast = || {
            let (coffee, pancakes) = (Span::secs(240), Span::secs(300));
            vec![
                long(0, 1, coffee),
                set(0, 0),
                long(1, 1, pancakes),
                set(1, 0),
            ]
        };
        let [first, second] = [home.submit(breakfast()), home.submit(breakfast())];
        home.rest();
        let end = home.committed(first).max(home.committed(second)).unwrap();
        let is_pipelined = end < at(2 * 540_000);
        assert_eq!(
            is_pipelined,
            visibility == Eventual,
            "{visibility:?}: {end:?}"
        );
        assert_eq!(home.states, [0, 0], "{visibility:?}");
    }
}

/// Row 6: the lights may fail, the door may not.
#[test]
fn leaving_home_needs_the_door_and_not_the_lights() {
    for visibility in MODELS {
        for down in [0, 1] {
            let mut home = home(visibility, 2);
            home.flip(down);
            let routine = home.submit(vec![maybe(0, 1), set(1, 1)]);
            home.rest();
            let is_done = home.committed(routine).is_some();
            assert_eq!(is_done, down == 0 || visibility == Weak, "{visibility:?}");
            let mut expected = [u8::from(is_done); 2];
            expected[down] = 0;
            assert_eq!(home.states, expected, "{visibility:?} without {down}");
        }
    }
}

/// Row 7: when any stage fails the whole pipeline stops, under strong global visibility.
#[test]
fn a_pipeline_stops_when_any_stage_fails() {
    for visibility in MODELS {
        let mut home = home(visibility, 3);
        let stage = home.submit(vec![long(0, 1, Span::secs(10)), set(1, 1)]);
        home.pass(at(5_000));
        home.flip(2);
        home.rest();
        let stops = home.committed(stage).is_none();
        assert_eq!(stops, visibility == StrongGlobalStrict, "{visibility:?}");
    }
}
