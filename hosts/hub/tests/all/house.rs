//! The state machines of a home together, with devices and a disk that are lists.

mod shown;

use std::collections::{BTreeMap, VecDeque};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{NodeId, Span, Time};
use selvedge_hub::device::Report;
use selvedge_hub::event_loop::Readers;
use selvedge_hub::house::{
    Cause, Counts, End, Happening, House, KEPT, Memory, Moment, PlaceView, Refusal, Todo, Undone,
};
use selvedge_hub::http::metrics::{Metrics, write_seconds};
use selvedge_routine::file::Home;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_routine::{Location, Number, State};
use selvedge_safehome::{Config, Outcome, RoutineId};

use crate::support::HOME;

struct World {
    home: Home,
    house: House,
    memory: Memory,
    states: BTreeMap<NodeId, State>,
    /// Devices that refuse.
    broken: Vec<NodeId>,
    reports: VecDeque<(NodeId, Report)>,
    now: Time,
    sets: usize,
}

impl World {
    fn new() -> Self {
        Self::of(HOME)
    }

    fn of(file: &str) -> Self {
        let home = Home::read(file.as_bytes()).unwrap();
        let house = begin(&home, None, Time::ZERO);
        let states = home.initial.clone();
        let memory = Memory {
            base: house.saved().clone(),
            steps: Vec::new(),
            runs: BTreeMap::new(),
        };
        let mut world = Self {
            home,
            house,
            memory,
            states,
            broken: Vec::new(),
            reports: VecDeque::new(),
            now: Time::ZERO,
            sets: 0,
        };
        world.house.take_changes();
        world
    }

    fn id(&self, name: &str) -> NodeId {
        self.home.catalogue.id(name).unwrap()
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.now,
            wall: 1_000 + self.now.0 / 1_000,
        }
    }

    fn run(&mut self, name: &str) -> RoutineId {
        let id = self.house.run(name, self.moment()).unwrap();
        self.settle();
        id
    }

    /// Stores the changes, and carries out the orders.
    fn settle(&mut self) {
        self.store();
        self.carry_out();
    }

    fn store(&mut self) {
        let changes = self.house.take_changes();
        self.memory.steps.extend(changes.steps);
        self.memory.runs.extend(changes.runs);
    }

    fn carry_out(&mut self) {
        for todo in self.house.take_todo() {
            match todo {
                Todo::Set {
                    device,
                    token,
                    state,
                    until,
                } => {
                    assert!(until > self.now, "a command without time");
                    self.sets += 1;
                    let outcome = if self.broken.contains(&device) {
                        Outcome::Refused
                    } else {
                        self.states.insert(device, state);
                        Outcome::Done
                    };
                    self.reports
                        .push_back((device, Report::Outcome { token, outcome }));
                }
                Todo::Ask { device, token } => {
                    let state = self.states[&device].clone();
                    self.reports
                        .push_back((device, Report::Answered { token, state }));
                }
            }
        }
    }

    fn go_on(&mut self) -> bool {
        let is_on = self.step();
        self.settle();
        is_on
    }

    /// Handles the next report, or else the next deadline; `false` if there is neither.
    fn step(&mut self) -> bool {
        if let Some((device, report)) = self.reports.pop_front() {
            self.house
                .take(Happening::Report(device, report), self.moment());
        } else if let Some(deadline) = self.house.deadline() {
            self.now = self.now.max(deadline);
            self.house.expire(self.moment());
        } else {
            return false;
        }
        true
    }

    fn end(&mut self) {
        while self.go_on() {}
        assert!(self.house.hub().is_quiet());
    }

    /// The process stops and begins again from the disk. Reports on their way are lost.
    fn restart(&mut self) {
        self.reports.clear();
        self.now = self.now + Span::secs(1);
        self.house = begin(&self.home, Some(self.memory.clone()), self.now);
        self.memory.base = self.house.saved().clone();
        self.memory.steps.clear();
        let changes = self.house.take_changes();
        self.memory.runs.extend(changes.runs);
        self.settle();
    }

    fn shown(&self) -> [String; 3] {
        ["lamp", "lock", "fan"].map(|it| self.states[&self.id(it)].to_string())
    }
}

fn begin(home: &Home, memory: Option<Memory>, now: Time) -> House {
    let moment = Moment { now, wall: 1_000 };
    let rng = ChaCha12Rng::seed_from_u64(7);
    House::new(
        home,
        Config::default(),
        |_| Span::ZERO,
        &[],
        memory,
        rng,
        moment,
    )
    .unwrap()
}

#[test]
fn a_routine_runs_and_a_trigger_follows() {
    let mut world = World::new();
    let evening = world.run("evening");
    world.end();
    // The lock was shut, and "light" waits for that.
    assert_eq!(world.shown(), ["dim", "shut", "3"]);
    let records: Vec<_> = world.house.records().latest().collect();
    assert_eq!(records.len(), 2);
    let of = |id| world.house.records().get(id).unwrap();
    assert_eq!(of(evening).name, "evening");
    assert_eq!(of(evening).place, Some(1));
    assert!(matches!(of(evening).ended, Some((_, End::Committed))));
    assert_eq!(records[0].1.name, "light");
    assert_eq!(records[0].1.place, Some(2));
}

#[test]
fn what_became_of_commands_and_runs_is_counted() {
    let mut world = World::new();
    world.run("evening");
    world.end();
    let counts = world.house.view().counts;
    assert_eq!((counts.accepted, counts.committed), (2, 2));
    // Three by "evening", and one by "light", which follows.
    assert_eq!((counts.done, counts.refused, counts.unknown), (4, 0, 0));
    world.broken.push(world.id("fan"));
    world.run("rest");
    world.end();
    let counts = world.house.view().counts;
    assert_eq!((counts.accepted, counts.aborted), (3, 1));
    assert_eq!((counts.done, counts.refused), (4, 1));
}

#[test]
fn a_routine_that_fails_is_undone_and_says_why() {
    let mut world = World::new();
    world.broken.push(world.id("lock"));
    let id = world.run("evening");
    world.end();
    assert_eq!(world.shown(), ["off", "open", "0"]);
    let record = world.house.records().get(id).unwrap();
    let Some((_, End::Aborted { why, undo })) = &record.ended else {
        panic!("{record:?}");
    };
    assert_eq!(why, "the device refused at command 3, to \"lock\"");
    let done = [
        ("fan".to_string(), Undone::Restored),
        ("lamp".into(), Undone::Restored),
    ];
    assert!(done.iter().all(|it| undo.contains(it)), "{undo:?}");
    assert!(record.is_over());
}

/// For runs of persons and of triggers.
#[test]
fn runs_have_the_mode_of_the_file_and_triggers_cool_down() {
    let mut world = World::of(
        r#"{
      "devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "lock", "initial": "open"}, {"DevID": "fan", "initial": 0}],
      "routines": [
        {"RoutineName": "once", "mode": "single", "CommandList": [{"DevID": "fan", "Action": 2, "hold_ms": 1000}]},
        {"RoutineName": "again", "mode": "restart", "CommandList": [{"DevID": "fan", "Action": 3, "hold_ms": 1000}]},
        {"RoutineName": "stop", "urgency": 1, "CommandList": [{"DevID": "fan", "Action": 0}]},
        {"RoutineName": "shut", "CommandList": [{"DevID": "lock", "Action": "shut"}, {"DevID": "lock", "Action": "open"}]},
        {"RoutineName": "light", "CommandList": [{"DevID": "lamp", "Action": "on"}]}],
      "triggers": [
        {"RoutineName": "once", "manual": true},
        {"RoutineName": "light", "when": {"DevID": "lock", "equal": "shut"}, "cooldown_ms": 60000}]
    }"#,
    );
    world.run("once");
    let refused = world.house.run("once", world.moment());
    assert!(matches!(refused, Err(Refusal::Hub(why)) if why.contains("unfinished")));
    world.end();
    let [first, second] = [0; 2].map(|_| world.run("again"));
    let stop = world.run("stop");
    world.end();
    for (id, by) in [(first, second), (second, stop)] {
        let record = world.house.records().get(id).unwrap();
        let Some((_, End::Aborted { why, .. })) = &record.ended else {
            panic!("{record:?}");
        };
        assert!(why.contains(&format!("routine {by}")), "{why}");
    }
    for _ in 0..2 {
        world.run("shut");
        world.end();
    }
    let records = world.house.records().latest();
    let lights = records.filter(|it| it.1.name == "light").count();
    assert_eq!(
        lights, 1,
        "the second one came while its trigger cools down"
    );
}

#[test]
fn days_and_the_sun_are_known_where_the_file_says_where_the_home_is() {
    let date = Date {
        year: 2026,
        month: 6,
        day: 21,
    };
    let degrees = |it| Number::from_thousandths(it).unwrap();
    let berlin = Location {
        latitude: degrees(52_520),
        longitude: degrees(13_405),
    };
    let sunset = date.at(berlin, 7_200).unwrap().sunset.unwrap();
    let before = |seconds| TimeOfDay::from_seconds(sunset.seconds() - seconds).unwrap();
    let mut world = World::of(&format!(
        r#"{{
      "devices": [{{"DevID": "lamp"}}],
      "location": {{"latitude": 52.52, "longitude": 13.405}},
      "routines": [
        {{"RoutineName": "sunset", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}},
        {{"RoutineName": "sunday", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}},
        {{"RoutineName": "monday", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}}],
      "triggers": [
        {{"RoutineName": "sunset", "at": "sunset", "offset_ms": -1000}},
        {{"RoutineName": "sunday", "at": "{at}", "days": ["sun"]}},
        {{"RoutineName": "monday", "at": "{at}", "days": ["mon"]}}]
    }}"#,
        at = before(2)
    ));
    let clock = Happening::Clock(before(5), date, 7_200);
    world.house.take(clock, world.moment());
    world.settle();
    while !world.reports.is_empty() || world.house.deadline() < Some(Time(60_000_000)) {
        assert!(world.go_on());
    }
    let records = world.house.records().latest();
    let mut names: Vec<_> = records.map(|it| it.1.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["sunday", "sunset"]);
}

#[test]
fn what_is_unknown_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let before = world.house.saved().clone();
    let refused = world.house.run("evning", world.moment());
    assert!(matches!(refused, Err(Refusal::Unknown(why)) if why.contains("\"evning\"")));
    let refused = world.house.cancel(RoutineId(9), world.moment());
    assert!(matches!(refused, Err(Refusal::Unknown(why)) if why.contains('9')));
    assert_eq!(*world.house.saved(), before);
    assert!(world.house.take_changes().is_empty());
}

/// The process stops after each number of steps, and again at once or a little later.
#[test]
fn a_stop_at_any_step_loses_no_run_and_doubles_none() {
    let mut stops = 0;
    for at in 0..200 {
        // Also before the orders are sent to the devices.
        for (again, is_notified) in [(0, true), (1, false), (3, true)] {
            let mut world = World::new();
            let ids = [world.run("evening"), world.run("slow")];
            let is_stopped = (0..at).all(|_| world.go_on());
            if !is_notified {
                world.step();
                world.store();
            }
            world.restart();
            for _ in 0..again {
                world.go_on();
            }
            world.restart();
            world.end();
            stops += usize::from(is_stopped);
            let records = world.house.records();
            for id in ids {
                let record = records.get(id).unwrap();
                let is_done = matches!(record.ended, Some((_, End::Committed)));
                assert!(
                    is_done && record.place.is_some(),
                    "stop at {at}: {record:?}"
                );
            }
            let mut order: Vec<_> = records.latest().collect();
            order.sort_by_key(|it| it.1.place);
            let mut states: BTreeMap<_, _> = world.home.initial.clone();
            for (_, record) in order {
                let steps = record.routine.steps.iter();
                states.extend(steps.map(|it| (it.device, it.value.clone())));
            }
            assert_eq!(world.states, states, "stop at {at}");
            // Five commands, and the command of "light": a finished command is not repeated. A command for a
            // state that another run has already brought about is not given after a restart.
            let fewest = if is_notified { 6 } else { 5 };
            assert!(
                (fewest..=6).contains(&world.sets),
                "stop at {at}: {}",
                world.sets
            );
        }
    }
    assert!(stops > 15, "{stops}");
}

#[test]
fn what_a_device_says_again_is_no_step() {
    let mut world = World::new();
    let lamp = world.id("lamp");
    let notify = |world: &mut World, state: &str| {
        let report = Report::Observed(state.into());
        world
            .house
            .take(Happening::Report(lamp, report), world.moment());
        world.house.take_changes().steps.len()
    };
    assert_eq!(notify(&mut world, "off"), 0);
    assert_eq!(notify(&mut world, "on"), 1);
    assert_eq!(notify(&mut world, "on"), 0);
}

#[test]
fn a_device_that_refuses_to_be_brought_back_is_said_to() {
    let mut world = World::new();
    let id = world.run("evening");
    while world.shown()[0] != "on" {
        world.go_on();
    }
    world.broken.extend([world.id("lamp"), world.id("fan")]);
    world.end();
    let record = world.house.records().get(id).unwrap();
    let Some((_, End::Aborted { undo, .. })) = &record.ended else {
        panic!("{record:?}");
    };
    assert!(undo.contains(&("lamp".into(), Undone::Stuck)), "{undo:?}");
    assert_eq!(world.memory.runs[&id], *record);
}

impl World {
    /// Takes all reports, and lets no time pass.
    fn receive(&mut self) {
        while !self.reports.is_empty() {
            self.go_on();
        }
    }

    /// Runs a routine, and no device answers its commands.
    fn run_unanswered(&mut self, name: &str) -> RoutineId {
        let id = self.house.run(name, self.moment()).unwrap();
        self.store();
        self.house.take_todo();
        id
    }

    fn report(&mut self, name: &str, report: Report) {
        let happening = Happening::Report(self.id(name), report);
        self.house.take(happening, self.moment());
        self.settle();
    }
}

#[test]
fn a_trigger_whose_run_is_refused_is_counted() {
    let mut world = World::of(
        r#"{
      "devices": [{"DevID": "lamp"}, {"DevID": "fan", "initial": 0}],
      "routines": [{"RoutineName": "once", "mode": "single", "CommandList": [{"DevID": "fan", "Action": 2}]}],
      "triggers": [{"RoutineName": "once", "when": {"DevID": "lamp", "equal": "on"}}]
    }"#,
    );
    world.run_unanswered("once");
    for refused in 1..3 {
        world.report("lamp", Report::Observed("on".into()));
        assert_eq!(world.house.refused(), refused);
        assert!(world.house.take_news(), "it is shown");
        world.report("lamp", Report::Observed("off".into()));
    }
    assert_eq!(world.house.view().counts.accepted, 1);
}

#[test]
fn the_run_with_this_number_is_cancelled_or_else_the_latest() {
    let mut world = World::new();
    let ids = [0; 3].map(|_| world.run_unanswered("rest"));
    let cancel = |world: &mut World, id| {
        let found = world.house.cancel_of("rest", id, world.moment());
        world.store();
        found
    };
    assert_eq!(cancel(&mut world, Some(ids[1])), Ok(ids[1]));
    let why = cancel(&mut world, Some(ids[1])).unwrap_err().to_string();
    assert_eq!(
        why,
        format!("no run {} of \"rest\" is under way: see /api/home", ids[1])
    );
    assert_eq!(cancel(&mut world, None), Ok(ids[2]));
    let other = world.house.cancel_of("light", Some(ids[0]), world.moment());
    assert!(other.is_err(), "it is a run of another routine");
}
