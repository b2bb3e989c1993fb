//! Triggers of time at one node, whose clock is the group's: the meaning of occurrences.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Member, Span, Time};
use selvedge_groups::{Node, Place, Selection, Start};
use selvedge_kgroup::routines::{
    ConfigError, Definition, INTERVAL_LEAST, RoutineEvent, RoutineState, TIMES_MAX, WallClock,
};
use selvedge_kgroup::{Command, Config, Event, GroupState, Kgroup, LeaderEvent, Site};
use selvedge_routine::State;
use selvedge_routine::trigger::{Clause, Days, SunEvent, TimeOfDay, Trigger, Weekday};
use selvedge_routine::{Comparison, Condition, LONGEST_LATENESS};

use selvedge_sim::network::Link;

use crate::building::{Building, device, switching};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Monday, 2 March 2026.
const MONDAY: u64 = 20_514 * DAY;

fn time(text: &str) -> TimeOfDay {
    TimeOfDay::parse(text).unwrap()
}

fn timed(trigger: Trigger<State>) -> Definition {
    switching(&[1], "on").with_trigger(trigger)
}

fn utc(utc: u64) -> WallClock {
    WallClock {
        utc: Span(utc),
        ..WallClock::default()
    }
}

/// The only node of a site.
struct Alone {
    driver: Driver<Kgroup>,
    rng: ChaCha8Rng,
    now: Time,
    left_out: Vec<u64>,
}

impl Alone {
    /// It leads, and its clock shows this.
    fn at(definition: Definition, shown: WallClock) -> Self {
        let place = Place([0; 3]);
        let selection = Selection::new().with_failures(0);
        let site = Site::new(selection, [Node::new(1, place)], [(device(1), place)], 1).unwrap();
        let site = Arc::new(site.with_routine(definition).unwrap());
        let node = Kgroup::new(Member::new(1, 0), Config::new(), site, Start::Fresh).unwrap();
        let mut it = Self {
            driver: Driver::new(node),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            left_out: Vec::new(),
        };
        it.command(Command::SetEpoch(1));
        it.command(Command::SetClock(shown));
        it.wait(5 * SECOND);
        it
    }

    fn command(&mut self, command: Command) {
        let left_out = &mut self.left_out;
        let taken =
            (self.driver).step(self.now, &mut self.rng, Input::Command(command), |effect| {
                note(&effect, left_out)
            });
        taken.unwrap();
    }

    fn set(&mut self, shown: WallClock) {
        self.command(Command::SetClock(shown));
        // Its own group decides at once.
        self.wait(SECOND / 10);
    }

    fn wait(&mut self, micros: u64) {
        let end = self.now + Span(micros);
        while let Some(due) = self.driver.deadline().filter(|it| *it <= end) {
            self.now = due.max(self.now);
            let left_out = &mut self.left_out;
            (self.driver).expire(self.now, &mut self.rng, |effect| note(&effect, left_out));
        }
        self.now = end;
    }

    fn state(&self) -> &RoutineState {
        match self.driver.machine().held(Site::routine(0)) {
            Some(GroupState::Routine(state)) => state,
            other => panic!("{other:?}"),
        }
    }

    /// The number of runs: each fails in time, for no host answers.
    fn runs(&self) -> u64 {
        self.state().instance()
    }
}

fn note(effect: &Effect<Kgroup>, left_out: &mut Vec<u64>) {
    if let Effect::Event(Event::Leader { event, .. }) = effect
        && let LeaderEvent::Routine(RoutineEvent::LeftOut { count, .. }) = event
    {
        left_out.push(*count);
    }
}

#[test]
fn a_time_of_day_starts_the_routine_once_a_day() {
    let mut node = Alone::at(timed(Trigger::At(time("06:30"))), utc(MONDAY + 6 * HOUR));
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_513), 0));
    node.wait(29 * MINUTE);
    assert_eq!(node.runs(), 0);
    node.wait(MINUTE);
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_514), 1));
    // The clock is set back, and it is half past six again.
    node.set(utc(MONDAY + 6 * HOUR));
    node.wait(HOUR);
    assert_eq!(node.runs(), 1);
    node.wait(DAY);
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_515), 2));
    assert!(node.left_out.is_empty());
}

#[test]
fn a_time_of_day_comes_by_the_local_clock_and_on_its_days_alone() {
    let days = Days::new([Weekday::Tuesday, Weekday::Friday]).unwrap();
    let at = time("00:30");
    let shown = WallClock {
        ahead: -3_600,
        ..utc(MONDAY)
    };
    let mut node = Alone::at(timed(Trigger::On { days, at }), shown);
    // Of Friday.
    assert_eq!(node.state().occurrence(0), Some(20_511));
    node.wait(DAY + HOUR);
    assert_eq!(node.runs(), 0, "Tuesday begins in the zone");
    node.wait(HOUR / 2);
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_515), 1));
    node.wait(3 * DAY - MINUTE);
    assert_eq!(node.runs(), 1);
    node.wait(MINUTE);
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_518), 2));
    assert!(node.left_out.is_empty());
}

#[test]
fn an_occurrence_that_is_too_late_is_left_out_and_counted() {
    let definition = timed(Trigger::At(time("06:30"))).with_lateness(Span(10 * MINUTE));
    let mut node = Alone::at(definition, utc(MONDAY));
    node.set(utc(MONDAY + 6 * HOUR + 40 * MINUTE));
    assert_eq!((node.runs(), &*node.left_out), (1, &[][..]), "just in time");
    node.set(utc(MONDAY + DAY + 6 * HOUR + 41 * MINUTE));
    assert_eq!((node.runs(), &*node.left_out), (1, &[1][..]));
    node.set(utc(MONDAY + 10 * DAY + 6 * HOUR + 35 * MINUTE));
    assert_eq!((node.runs(), &*node.left_out), (2, &[1, 8][..]));
}

#[test]
fn of_days_that_passed_only_those_of_the_trigger_are_counted() {
    let days = Days::new([Weekday::Monday, Weekday::Thursday]).unwrap();
    let at = time("12:00");
    let mut node = Alone::at(timed(Trigger::On { days, at }), utc(MONDAY + 13 * HOUR));
    // Thursday, Monday and Thursday are passed over, and on Monday it runs.
    node.set(utc(MONDAY + 14 * DAY + 12 * HOUR));
    assert_eq!((node.runs(), &*node.left_out), (1, &[3][..]));
}

#[test]
fn an_interval_counts_by_utc_whatever_the_local_clock_shows() {
    let definition = timed(Trigger::Every(Span(10 * MINUTE)));
    let mut node = Alone::at(definition, utc(MONDAY + 5 * MINUTE));
    for runs in 1..4 {
        node.wait(10 * MINUTE);
        assert_eq!(node.runs(), runs);
        let now = node.driver.machine().clock(node.now).unwrap();
        // Summer time begins, or ends.
        node.set(WallClock {
            ahead: 3_600 * (runs as i32 % 2),
            ..now
        });
    }
    let number = (MONDAY + 35 * MINUTE) / (10 * MINUTE);
    assert_eq!(node.state().occurrence(0), Some(number));
    assert!(node.left_out.is_empty());
}

#[test]
fn a_time_that_the_clock_steps_over_in_spring_comes_after_the_step_and_in_autumn_comes_once() {
    let definition = timed(Trigger::At(time("02:30")));
    let mut node = Alone::at(definition, utc(MONDAY + 119 * MINUTE));
    node.wait(MINUTE);
    let summer = |utc: WallClock| WallClock {
        ahead: 3_600,
        ..utc
    };
    node.set(summer(utc(MONDAY + 120 * MINUTE)));
    assert_eq!(node.runs(), 1);
    node.wait(DAY - 30 * MINUTE);
    assert_eq!(node.runs(), 2, "half past two in summer time");
    node.set(utc(MONDAY + DAY + 2 * HOUR));
    node.wait(2 * HOUR);
    assert_eq!((node.runs(), &*node.left_out), (2, &[][..]));
}

#[test]
fn the_sun_sets_once_a_day_though_its_time_changes() {
    let sets = Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Set,
        offset_ms: -1_800_000,
    };
    let shown = |at, sunset: Option<&str>| WallClock {
        sunset: sunset.map(time),
        ..utc(at)
    };
    let mut node = Alone::at(timed(sets), shown(MONDAY, None));
    node.wait(DAY / 2);
    assert_eq!(
        node.state().occurrence(0),
        None,
        "no time of sunset is known"
    );
    node.set(shown(MONDAY + DAY / 2, Some("18:00")));
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_513), 0));
    node.wait(5 * HOUR + HOUR / 2);
    assert_eq!(node.runs(), 1);
    // The next day's report comes early, and its time is later.
    node.set(shown(MONDAY + 17 * HOUR + 31 * MINUTE, Some("18:02")));
    node.wait(2 * MINUTE);
    assert_eq!(node.runs(), 1);
    node.wait(DAY);
    assert_eq!((node.state().occurrence(0), node.runs()), (Some(20_515), 2));
}

#[test]
fn a_definition_with_a_time_that_cannot_work_is_refused() {
    let with = |trigger| switching(&[1], "on").with_trigger(trigger).check();
    let short = INTERVAL_LEAST - Span(1);
    let error = ConfigError::Interval {
        trigger: 0,
        found: short,
    };
    assert_eq!(with(Trigger::Every(short)), Err(error));
    assert_eq!(with(Trigger::Every(INTERVAL_LEAST)), Ok(()));
    let sun = |offset_ms| Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Rise,
        offset_ms,
    };
    let error = ConfigError::Offset {
        trigger: 0,
        found: -43_200_001,
    };
    assert_eq!(with(sun(-43_200_001)), Err(error));
    assert_eq!(with(sun(43_200_000)), Ok(()));
    let error = ConfigError::NoTime { trigger: 0 };
    assert_eq!(with(Trigger::Manual), Err(error));
    let clause = Clause::Is(Condition {
        device: device(1),
        comparison: Comparison::Equal,
        value: "on".into(),
    });
    assert_eq!(with(Trigger::When(clause)), Err(error));
    let late = switching(&[1], "on").with_lateness(LONGEST_LATENESS + Span(1));
    let found = late.lateness;
    assert_eq!(late.check(), Err(ConfigError::Lateness { found }));
    let every = |it: Definition, _| it.with_trigger(Trigger::Every(INTERVAL_LEAST));
    let most = (0..TIMES_MAX).fold(switching(&[1], "on"), every);
    assert_eq!(most.check(), Ok(()));
    let found = TIMES_MAX + 1;
    let error = ConfigError::Times { found };
    assert_eq!(every(most, found).check(), Err(error));
}

/// No more than one clock of three is wrong at any time.
#[test]
fn a_clock_that_is_set_right_takes_its_report_back() {
    const YEAR: u64 = 365 * DAY;
    let routine = timed(Trigger::At(time("06:30")));
    let mut house = Building::new(1, 3, 2, 1, Link::default(), [routine]);
    let early = MONDAY + 5 * HOUR;
    let set = |house: &mut Building, at: usize, shown: u64| {
        let command = Command::SetClock(utc(shown));
        house.net.command(at, command).unwrap();
    };
    (0..3).for_each(|at| set(&mut house, at, early));
    house.run(Span::secs(10));
    assert_eq!(house.routine(0).occurrence(0), Some(20_513));
    set(&mut house, 0, early + YEAR);
    house.run(Span::secs(10));
    set(&mut house, 0, early);
    house.run(Span::secs(60));
    set(&mut house, 1, early + YEAR);
    house.run(Span::secs(60));
    let state = house.routine(0);
    assert_eq!((state.occurrence(0), state.instance()), (Some(20_513), 0));
    // By the two right clocks.
    for at in [0, 2] {
        set(&mut house, at, early + 2 * HOUR);
    }
    house.run(Span::secs(60));
    let state = house.routine(0);
    assert_eq!((state.occurrence(0), state.instance()), (Some(20_514), 1));
}

/// The two that were set right go on to count, also for a trigger that comes each second.
#[test]
fn clocks_that_were_set_right_count_again_at_once() {
    let routine = timed(Trigger::Every(Span::secs(1)));
    let mut house = Building::new(1, 3, 2, 1, Link::default(), [routine]);
    let show = |house: &mut Building, at: usize, more: u64| {
        let shown = MONDAY + house.net.now().since(Time::ZERO).0 + more;
        let command = Command::SetClock(utc(shown));
        house.net.command(at, command).unwrap();
    };
    (0..3).for_each(|at| show(&mut house, at, 0));
    house.run(Span::secs(10));
    let group = Site::routine(0);
    let last = (0..3).find(|at| house.leader(group)[0] != *at).unwrap();
    for at in (0..3).filter(|at| *at != last) {
        show(&mut house, at, DAY);
        house.run(Span::secs(2));
        show(&mut house, at, 0);
        house.run(Span::secs(2));
    }
    house.kill(last);
    house.run(Span::secs(5));
    let before = house.routine(0).occurrence(0).unwrap();
    house.run(Span::secs(10));
    let after = house.routine(0).occurrence(0).unwrap();
    assert!((9..=11).contains(&(after - before)), "{before}, {after}");
}

/// The node forgets its wrong report, and its leader does not.
#[test]
fn a_node_that_restarts_with_a_right_clock_takes_its_report_back() {
    const YEAR: u64 = 365 * DAY;
    let routine = timed(Trigger::At(time("06:30")));
    let mut house = Building::new(1, 3, 2, 1, Link::default(), [routine]);
    let early = MONDAY + 5 * HOUR;
    let set = |house: &mut Building, at: usize, shown: u64| {
        let command = Command::SetClock(utc(shown));
        house.net.command(at, command).unwrap();
    };
    (0..3).for_each(|at| set(&mut house, at, early));
    house.run(Span::secs(10));
    let leader = house.leader(Site::routine(0))[0];
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    set(&mut house, others[0], early + YEAR);
    house.run(Span::secs(10));
    let facts: Vec<_> = {
        let node = house.net.machine(others[0]).unwrap();
        node.groups().stored().collect()
    };
    house.begin_again_with(others[0], &facts);
    set(&mut house, others[0], early);
    house.run(Span::secs(60));
    set(&mut house, others[1], early + YEAR);
    house.run(Span::secs(60));
    assert_eq!(house.routine(0).occurrence(0), Some(20_513));
}
