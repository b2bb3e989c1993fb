//! Late requests and reports, and clocks that are set: the house, and its event loop.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{NodeId, Span, Time};
use selvedge_hub::device::Report;
use selvedge_hub::event_loop::reports::reporter;
use selvedge_hub::event_loop::{EventLoop, Readers, Request};
use selvedge_hub::house::{End, Happening, House, Moment, Todo};
use selvedge_hub::http::metrics::write_seconds;
use selvedge_hub::store::Store;
use selvedge_routine::file::Home;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_safehome::{Config, Outcome, RoutineId};
use tokio::sync::oneshot;

use crate::support::{Dir, HOME};

fn house(file: &str) -> (House, Home) {
    let home = Home::read(file.as_bytes()).unwrap();
    let rng = ChaCha12Rng::seed_from_u64(7);
    let none = |_| Span::ZERO;
    let house = House::new(&home, Config::default(), none, &[], None, rng, at(0)).unwrap();
    (house, home)
}

/// The moment this number of milliseconds after the start.
fn at(ms: u64) -> Moment {
    Moment {
        now: Time(ms * 1_000),
        wall: ms,
    }
}

/// The only order, which must be a command.
fn command(house: &mut House) -> (NodeId, u64) {
    match house.take_todo().as_slice() {
        [Todo::Set { device, token, .. }] => (*device, *token),
        other => panic!("{other:?}"),
    }
}

fn outcome(token: u64, outcome: Outcome) -> Report {
    Report::Outcome { token, outcome }
}

/// A house with a routine that was begun six seconds ago, after which the disk was slow: its run, and its
/// command.
fn behind(dir: &Dir) -> (House, Store, RoutineId, (NodeId, u64)) {
    let (mut house, home) = house(HOME);
    let id = house.run("light", at(0)).unwrap();
    let (lamp, token) = command(&mut house);
    assert_eq!(Some(lamp), home.catalogue.id("lamp"));
    let (mut store, _) = Store::open(dir.path()).unwrap();
    let names = house.names().clone();
    let changes = house.take_changes();
    store.begin(&names, &changes, house.saved()).unwrap();
    (house, store, id, (lamp, token))
}

/// Runs the event loop until it is asked to stop, with the requests that have come meanwhile.
fn keep(house: House, store: Store, requests: Receiver<Request>) {
    let event_loop = EventLoop {
        notify: Readers::new(&house, None),
        house,
        store,
        requests,
        orders: BTreeMap::new(),
        start: Instant::now().checked_sub(Duration::from_secs(6)).unwrap(),
        writes: write_seconds(),
    };
    event_loop.run().unwrap();
}

#[test]
fn an_outcome_that_waits_while_the_disk_is_slow_is_in_time() {
    let dir = Dir::new("slow-disk");
    let (house, store, id, (lamp, token)) = behind(&dir);
    let (to, requests) = channel();
    reporter(lamp, to.clone())(outcome(token, Outcome::Done));
    let (ask, answer) = oneshot::channel();
    to.send(Request::Show(id, ask)).unwrap();
    to.send(Request::Stop).unwrap();
    keep(house, store, requests);
    let run = answer.blocking_recv().unwrap().unwrap();
    assert_eq!((run.what, run.why), ("done", None));
}

/// The time of its command has ended, but nothing has looked for an outcome.
#[test]
fn a_hub_that_is_told_to_end_while_the_disk_is_slow_undoes_nothing() {
    let dir = Dir::new("slow-end");
    let (house, store, id, _) = behind(&dir);
    let (to, requests) = channel();
    to.send(Request::Stop).unwrap();
    keep(house, store, requests);
    let (_, found) = Store::open(dir.path()).unwrap();
    let memory = found.memory.unwrap();
    let record = memory.runs.get(&id).unwrap();
    assert_eq!(record.ended, None, "{record:?}");
}

#[test]
fn an_overdue_command_is_unknown_and_what_comes_of_it_later_is_no_report_too_many() {
    let (mut house, _) = house(HOME);
    house.run("light", at(0)).unwrap();
    let (lamp, token) = command(&mut house);
    house.expire(at(5_000));
    assert_eq!(house.view().counts.unknown, 1);
    house.take(
        Happening::Report(lamp, outcome(token, Outcome::Unknown)),
        at(5_001),
    );
    assert_eq!((house.view().counts.unknown, house.refused()), (1, 0));
    house.take_news();
    house.take(
        Happening::Report(lamp, outcome(token, Outcome::Done)),
        at(5_002),
    );
    assert_eq!((house.view().counts.done, house.refused()), (0, 1));
    assert!(house.take_news(), "it is shown");
}

/// A person switches it on and off again before the device refuses the command.
#[test]
fn a_state_that_is_said_while_a_command_is_on_its_way_is_heard_also_where_it_is_known() {
    let (mut house, _) = house(HOME);
    let id = house.run("light", at(0)).unwrap();
    let (lamp, token) = command(&mut house);
    for state in ["dim", "off"] {
        let reported = Report::Observed(state.into());
        house.take(Happening::Report(lamp, reported), at(10));
    }
    house.take(
        Happening::Report(lamp, outcome(token, Outcome::Refused)),
        at(20),
    );
    assert_eq!(house.hub().state(lamp), Some(&"off".into()));
    let ended = &house.records().get(id).unwrap().ended;
    assert!(matches!(ended, Some((_, End::Aborted { .. }))), "{ended:?}");
    // A state that is known and expected is not stored.
    house.take_changes();
    house.take(
        Happening::Report(lamp, Report::Observed("off".into())),
        at(30),
    );
    assert!(house.take_changes().is_empty());
}

/// The local clock on the day on which it is set back, this number of seconds ahead of UTC.
fn clock(text: &str, ahead: i32) -> Happening {
    let date = Date {
        year: 2026,
        month: 10,
        day: 25,
    };
    Happening::Clock(TimeOfDay::parse(text).unwrap(), date, ahead)
}

/// A home with a routine at each of these times, named by it.
fn with_times(times: &[&str]) -> House {
    let one = |it: &&str| {
        let routine = format!(
            r#"{{"RoutineName": "{it}", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}}"#
        );
        let trigger = format!(r#"{{"RoutineName": "{it}", "at": "{it}"}}"#);
        (routine, trigger)
    };
    let (routines, triggers): (Vec<_>, Vec<_>) = times.iter().map(one).unzip();
    let file = format!(
        r#"{{"devices": [{{"DevID": "lamp"}}], "routines": [{}], "triggers": [{}]}}"#,
        routines.join(","),
        triggers.join(",")
    );
    house(&file).0
}

/// Lets time pass up to this moment, as the event loop does; `shows` is the local clock at a moment.
fn pass(house: &mut House, ms: u64, shows: impl Fn(u64) -> Happening) {
    while let Some(due) = house.deadline().filter(|it| *it <= at(ms).now) {
        let now = at(due.0 / 1_000);
        if house.is_trigger_due(now.now) {
            house.take(shows(now.wall), now);
        }
        house.expire(now);
        house.take_todo();
    }
}

fn ran(house: &House) -> Vec<&str> {
    let mut names: Vec<_> = house
        .records()
        .latest()
        .map(|it| it.1.name.as_str())
        .collect();
    names.reverse();
    names
}

#[test]
fn what_comes_when_summer_time_begins_runs_and_what_it_leaves_out_does_not() {
    let mut house = with_times(&["02:00", "02:30", "03:00", "03:00:05", "03:00:20"]);
    house.take(clock("01:59:45", 3_600), at(0));
    // By the old clock it is two. The house learns that it is three, and so are all later times.
    pass(&mut house, 15_000, |_| clock("03:00", 7_200));
    house.expire(at(15_000));
    pass(&mut house, 60_000, |_| clock("03:00:20", 7_200));
    assert_eq!(ran(&house), ["03:00", "03:00:05", "03:00:20"]);
    // Nothing was due at two, so that the clock is read late.
    let mut house = with_times(&["02:30", "03:00", "03:00:05", "03:00:20"]);
    house.take(clock("01:59:45", 3_600), at(0));
    house.take(clock("03:00:15", 7_200), at(30_000));
    house.expire(at(30_000));
    assert_eq!(ran(&house).len(), 2, "{:?}", ran(&house));
    pass(&mut house, 60_000, |_| clock("03:00:20", 7_200));
    assert_eq!(ran(&house).len(), 3, "{:?}", ran(&house));
    assert!(!ran(&house).contains(&"02:30"));
}

#[test]
fn the_hour_at_whose_end_summer_time_ends_comes_twice_and_what_is_at_its_end_once() {
    let mut house = with_times(&["02:30", "03:00"]);
    house.take(clock("02:29:59", 7_200), at(0));
    pass(&mut house, 2_000, |_| clock("02:30", 7_200));
    assert_eq!(ran(&house), ["02:30"]);
    pass(&mut house, 1_801_000, |_| clock("02:00", 3_600));
    assert_eq!(ran(&house), ["02:30"]);
    pass(&mut house, 2 * 3_600_000, |ms| match ms {
        ..4_000_000 => clock("02:30", 3_600),
        _ => clock("03:00", 3_600),
    });
    assert_eq!(ran(&house), ["02:30", "02:30", "03:00"]);
}

/// The clock of the process stands still while the host sleeps.
#[test]
fn a_time_that_a_host_slept_through_does_not_come_when_it_wakes() {
    let mut house = with_times(&["07:00"]);
    house.take(clock("06:59:50", 3_600), at(0));
    pass(&mut house, 60_000, |_| clock("15:00", 3_600));
    assert_eq!(ran(&house), [""; 0]);
}

#[test]
fn the_zone_that_is_named_is_the_one_that_counts() {
    if !std::path::Path::new("/usr/share/zoneinfo/Europe/Berlin").exists() {
        println!("skipped: no zones are installed: see whether there is a package tzdata");
        return;
    }
    let dir = Dir::new("zone");
    std::fs::write(dir.path().join("home.json"), HOME).unwrap();
    for (name, notified) in [
        ("Europe/Berlin", "name=\"Europe/Berlin\""),
        ("Europe/Nowhere", "times of day are in UTC"),
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge-hub"))
            .arg(dir.path().join("home.json"))
            .arg("--state")
            .arg(dir.path().join("state"))
            .args(["--http", "127.0.0.1:0"])
            .env("TZ", name)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let stderr = child.stderr.take().unwrap();
        let lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
        let found = lines
            .map_while(Result::ok)
            .take_while(|_| Instant::now() < until)
            .take_while(|it| !it.contains("the page is at"))
            .any(|it| it.contains(notified));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found, "{name}");
    }
}
