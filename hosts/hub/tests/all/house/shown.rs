//! The view of a house: runs, devices, and counters.

use super::*;

/// There is less room for it when the routine before it has held its device for a while.
#[test]
fn what_is_said_of_a_run_beforehand_is_what_happens_then() {
    let mut world = World::of(
        r#"{
      "devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "lock", "initial": "open"}, {"DevID": "fan", "initial": 0}],
      "routines": [
        {"RoutineName": "long", "CommandList": [
          {"DevID": "fan", "Action": 2, "hold_ms": 10000}, {"DevID": "lamp", "Action": "on"}]},
        {"RoutineName": "short", "CommandList": [{"DevID": "lamp", "Action": "dim", "hold_ms": 4000}]}]
    }"#,
    );
    for (later, begins) in [(0, true), (9, false)] {
        world.run("long");
        world.step();
        world.settle();
        world.now = world.now + Span::secs(later);
        let preview = world.house.preview("short", world.moment()).unwrap();
        let id = world.run("short");
        let record = world.house.records().get(id).unwrap();
        assert_eq!(record.started.is_some(), begins, "{record:?}");
        assert_eq!(preview.waits.is_none(), begins, "{preview:?}");
        world.end();
    }
}

#[test]
fn what_happened_is_counted() {
    let mut world = World::new();
    for _ in 0..2 {
        world.run("light");
        world.receive();
    }
    world.broken.push(world.id("fan"));
    for _ in 0..3 {
        world.run("rest");
        world.receive();
    }
    let counts = Counts {
        accepted: 5,
        committed: 2,
        aborted: 3,
        done: 2,
        refused: 3,
        unknown: 0,
    };
    assert_eq!(world.house.view().counts, counts);
    // Outcomes that the hub does not expect any more.
    for (token, refused) in [(999, 1), (998, 2)] {
        let outcome = Outcome::Done;
        world.report("fan", Report::Outcome { token, outcome });
        assert_eq!(world.house.refused(), refused);
        assert_eq!(world.house.view().refused, refused);
    }
    world.broken.clear();
    for unknown in 1..3 {
        world.house.run("rest", world.moment()).unwrap();
        world.store();
        let todo = world.house.take_todo();
        let [Todo::Set { token, .. }] = todo[..] else {
            panic!("{todo:?}");
        };
        let outcome = Outcome::Unknown;
        world.report("fan", Report::Outcome { token, outcome });
        world.receive();
        assert_eq!(world.house.view().counts.unknown, unknown);
    }
    let counts = world.house.view().counts;
    assert_eq!((counts.accepted, counts.aborted), (7, 5));
    assert_eq!(counts.refused, 3, "no outcome is counted as another");
}

#[test]
fn the_latest_fifty_runs_are_shown_and_all_that_are_not_finished() {
    let mut world = World::new();
    let rest = world.run_unanswered("rest");
    let mut latest = rest;
    for _ in 0..60 {
        latest = world.run("light");
        world.receive();
    }
    let view = world.house.view();
    assert_eq!(view.runs.len(), 51);
    assert_eq!((view.runs[0].id, view.runs[50].id), (latest.0, rest.0));
    assert!(
        view.runs[..50]
            .iter()
            .all(|it| it.what == "done" && it.at.is_none())
    );
    let shown = &view.runs[50];
    assert_eq!((shown.what, shown.at), ("runs", Some(0)));
    let record = world.house.records().get(rest).unwrap();
    assert_eq!(world.house.run_view(rest, record), *shown);
    // A second run waits for the first.
    let second = world.run_unanswered("rest");
    let third = world.run("light");
    let shown = |id| {
        world
            .house
            .run_view(id, world.house.records().get(id).unwrap())
    };
    assert_eq!(shown(second).what, "waits");
    let why = format!("it waits for routine {rest} on \"fan\"");
    assert_eq!(shown(second).why, Some(why));
    assert_eq!((shown(third).what, shown(third).at), ("runs", Some(0)));
    world.house.cancel(rest, world.moment()).unwrap();
    let shown = world
        .house
        .run_view(rest, world.house.records().get(rest).unwrap());
    assert_eq!(
        (shown.what, shown.why),
        ("aborting", Some("it was cancelled".into()))
    );
}

/// The process began 1 s after the start of 1970.
#[test]
fn times_are_those_of_the_clock_on_the_wall() {
    let mut world = World::new();
    world.now = world.now + Span::secs(2);
    let id = world.run_unanswered("slow");
    world.now = world.now + Span::secs(3);
    world.report("lock", Report::Observed("ajar".into()));
    let view = world.house.view();
    let run = &view.runs[0];
    assert_eq!((run.id, run.came, run.started), (id.0, 3_000, Some(3_000)));
    assert_eq!(
        (run.since, run.until),
        (Some(3_000), Some(8_000)),
        "5 s for the lamp"
    );
    let lamp = view.devices.iter().find(|it| it.name == "lamp").unwrap();
    let place = PlaceView {
        run: id.0,
        stage: "begun",
        start: 3_000,
        end: 4_600,
    };
    assert_eq!(lamp.lineage, [place], "held for 1.5 s, and 0.1 s to set it");
    let fan = view.devices.iter().find(|it| it.name == "fan").unwrap();
    assert_eq!(
        (fan.lineage[0].stage, fan.lineage[0].run),
        ("planned", id.0)
    );
    assert!(view.devices.iter().all(|it| it.up));
    world.report("lock", Report::Down);
    let up = |world: &World| {
        world
            .house
            .view()
            .devices
            .iter()
            .map(|it| it.up)
            .collect::<Vec<_>>()
    };
    assert_eq!(up(&world), [true, true, false], "fan, lamp, lock");
    world.report("lock", Report::Up);
    assert_eq!(up(&world), [true; 3]);
}

#[test]
fn what_is_passed_over_and_brought_back_is_told_with_the_run() {
    let mut world = World::of(
        r#"{
      "devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "lock"}, {"DevID": "fan", "initial": 0}],
      "routines": [{"RoutineName": "r", "CommandList": [
        {"DevID": "lamp", "Action": "on", "if": {"DevID": "fan", "equal": 5}},
        {"DevID": "lamp", "Action": "on", "Priority": "BEST_EFFORT", "if": {"DevID": "lock", "equal": 5}},
        {"DevID": "fan", "Action": 3, "Priority": "BEST_EFFORT"},
        {"DevID": "fan", "Action": 4}]}]
    }"#,
    );
    let refused = world.run("r");
    world.receive();
    let shown = |world: &World, id| {
        world
            .house
            .run_view(id, world.house.records().get(id).unwrap())
    };
    assert_eq!(
        shown(&world, refused).notes,
        [
            "command 1: its condition did not hold",
            "command 2: the state of \"lock\" was unknown"
        ]
    );
    assert_eq!(shown(&world, refused).cause, Cause::Hand);
    assert_eq!(shown(&world, refused).place, Some(1));
    world.broken.push(world.id("fan"));
    let undone = world.run("r");
    world.receive();
    let found = shown(&world, undone);
    assert_eq!(found.what, "undone");
    assert_eq!(
        found.why.unwrap(),
        "the device refused at command 4, to \"fan\""
    );
    assert_eq!(
        found.notes[2..],
        [
            "command 3: the device refused",
            "lock needs no undoing",
            "fan needs no undoing"
        ]
    );
    assert_eq!(found.place, None);
}

#[test]
fn what_is_shown_is_counted_for_prometheus() {
    let mut world = World::new();
    world.run("light");
    world.receive();
    let rest = [0; 3].map(|_| world.run_unanswered("rest"));
    world.house.cancel(rest[0], world.moment()).unwrap();
    world.store();
    world.report("lock", Report::Down);
    let notify = Readers::new(&world.house, None);
    let text = Metrics::new(notify.view.subscribe(), write_seconds())
        .text()
        .unwrap();
    for line in [
        "selvedge_hub_runs_accepted_total 4",
        "selvedge_hub_runs_ended_total{end=\"done\"} 1",
        "selvedge_hub_runs_ended_total{end=\"undone\"} 0",
        "selvedge_hub_refused_total 0",
        "selvedge_hub_commands_total{outcome=\"done\"} 1",
        "selvedge_hub_runs{what=\"waits\"} 2",
        "selvedge_hub_runs{what=\"runs\"} 0",
        "selvedge_hub_runs{what=\"aborting\"} 1",
        "selvedge_hub_devices{up=\"true\"} 2",
        "selvedge_hub_devices{up=\"false\"} 1",
        "selvedge_hub_write_seconds_count 0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
}

#[test]
fn what_becomes_of_devices_is_told_with_the_run() {
    let mut world = World::new();
    world.broken.push(world.id("lock"));
    let id = world.run("evening");
    let notes = |world: &World| {
        let record = world.house.records().get(id).unwrap();
        world.house.run_view(id, record).notes
    };
    while world.house.records().get(id).unwrap().ended.is_none() {
        world.go_on();
    }
    let brought = |how: &str| [format!("fan {how}"), format!("lamp {how}")];
    assert_eq!(notes(&world)[1..], brought("is brought back"));
    world.receive();
    assert_eq!(notes(&world)[1..], brought("was brought back"));
}

/// A client that waits for its end receives it.
#[test]
fn a_run_that_ends_after_a_thousand_later_ones_is_told_of() {
    let mut world = World::new();
    let rest = world.run_unanswered("rest");
    let mut first = None;
    for _ in 0..KEPT {
        let id = world.run("light");
        first = first.or(Some(id));
        world.receive();
    }
    let kept = |world: &World, id| world.house.records().get(id).is_some();
    assert!(kept(&world, first.unwrap()));
    while world
        .house
        .records()
        .get(rest)
        .is_some_and(|it| it.ended.is_none())
    {
        assert!(world.step());
    }
    let record = world.house.records().get(rest).unwrap().clone();
    assert!(matches!(record.ended, Some((_, End::Aborted { .. }))));
    let changes = world.house.take_changes();
    assert_eq!(changes.runs[&rest], record);
    assert_eq!(changes.forgotten, [first.unwrap()]);
    assert!(!kept(&world, first.unwrap()));
}

/// The view has fewer runs than are kept.
#[test]
fn the_latest_run_of_each_routine_is_told_as_long_as_it_is_kept() {
    let mut world = World::new();
    let first = world.run("rest");
    world.now = world.now + Span::secs(5);
    world.house.expire(world.moment());
    world.settle();
    let mut last = world.run("light");
    for _ in 0..100 {
        last = world.run("light");
    }
    let shown = world.house.view().runs;
    assert!(shown.iter().all(|it| it.name != "rest"), "{}", shown.len());
    let latest = world.house.latest_runs();
    let latest: Vec<_> = latest.iter().map(|it| (&*it.name, it.id)).collect();
    assert_eq!(latest, [("light", last.0), ("rest", first.0)]);
}
