//! Days of the week and the sun at the dispatcher.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, NodeId, Span, Time};
use selvedge_routine::sun::{Date, Sun, sun};
use selvedge_routine::trigger::{
    Command, Config, Day, Days, Dispatcher, Event, Reject, SunEvent, TimeOfDay, Trigger, Weekday,
};
use selvedge_routine::{Location, Number, Routine, State, Step};

struct Bench {
    driver: Driver<Dispatcher<State>>,
    rng: ChaCha8Rng,
    now: Time,
    /// The times at which the routine ran, in seconds.
    ran: Vec<u64>,
}

fn at(text: &str) -> TimeOfDay {
    TimeOfDay::parse(text).unwrap()
}

fn day(weekday: Weekday, sunrise: Option<&str>) -> Day {
    Day {
        weekday,
        sunrise: sunrise.map(at),
        sunset: None,
    }
}

impl Bench {
    fn new(trigger: Trigger<State>) -> Self {
        let mut bench = Self {
            driver: Driver::new(Dispatcher::new(Config::default()).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            ran: Vec::new(),
        };
        let steps = vec![Step::new(NodeId(1), "on".into())];
        let (name, routine) = ("r".into(), Routine { steps });
        bench.notify(Command::AddRoutine { name, routine });
        let name = "r".into();
        bench.notify(Command::AddTrigger { name, trigger });
        bench
    }

    fn step(&mut self, input: Input<Dispatcher<State>>) {
        let (now, ran) = (self.now, &mut self.ran);
        let warned = self.driver.step(now, &mut self.rng, input, |effect| {
            if let Effect::Event(Event::Submit { .. }) = effect {
                ran.push(now.0 / 1_000_000);
            }
        });
        warned.unwrap();
    }

    fn notify(&mut self, command: Command<State>) {
        self.step(Input::Command(command));
    }

    fn wait(&mut self, seconds: u64) {
        let until = self.now + Span::secs(seconds);
        while let Some(due) = self.driver.deadline().filter(|it| *it <= until) {
            self.now = self.now.max(due);
            let (now, ran) = (self.now, &mut self.ran);
            self.driver.expire(now, &mut self.rng, |effect| {
                if let Effect::Event(Event::Submit { .. }) = effect {
                    ran.push(now.0 / 1_000_000);
                }
            });
        }
        self.now = until;
    }
}

const DAY: u64 = 86_400;

fn weekly(days: &[Weekday], time: &str) -> Trigger<State> {
    let days = Days::new(days.iter().copied()).unwrap();
    Trigger::On { days, at: at(time) }
}

const fn sunrise(offset_ms: i32) -> Trigger<State> {
    Trigger::Sun {
        days: Days::ALL,
        event: SunEvent::Rise,
        offset_ms,
    }
}

#[test]
fn days_of_the_week_come_each_week() {
    let mut bench = Bench::new(weekly(&[Weekday::Monday, Weekday::Sunday], "00:00"));
    bench.notify(Command::SetClock(at("12:00")));
    bench.wait(3 * DAY);
    assert!(bench.ran.is_empty(), "which day it is is not known");
    // Thursday at noon; the midnight before Sunday is 2.5 days away.
    bench.notify(Command::SetToday(day(Weekday::Thursday, None)));
    bench.wait(14 * DAY);
    let midnight = 3 * DAY + DAY / 2;
    let expected: Vec<u64> = [2, 3, 9, 10].iter().map(|it| midnight + it * DAY).collect();
    assert_eq!(bench.ran, expected);
}

#[test]
fn a_correction_over_midnight_keeps_the_day() {
    for (shown, corrected) in [("23:59:50", "00:00:10"), ("00:00:10", "23:59:50")] {
        let mut bench = Bench::new(weekly(&[Weekday::Tuesday], "12:00"));
        bench.notify(Command::SetClock(at(shown)));
        let is_late = shown > corrected;
        let first = if is_late {
            Weekday::Monday
        } else {
            Weekday::Tuesday
        };
        bench.notify(Command::SetToday(day(first, None)));
        bench.notify(Command::SetClock(at(corrected)));
        bench.wait(7 * DAY);
        // Tuesday at noon, by the corrected clock.
        let noon = if is_late { DAY / 2 - 10 } else { DAY / 2 + 10 };
        assert_eq!(bench.ran, [noon], "{shown} {corrected}");
    }
    // Times that the correction steps over belong to the day before.
    let mut bench = Bench::new(weekly(&[Weekday::Monday], "23:59:55"));
    bench.notify(Command::SetClock(at("23:59:50")));
    bench.notify(Command::SetToday(day(Weekday::Monday, None)));
    bench.notify(Command::SetClock(at("00:00:10")));
    assert_eq!(bench.ran, [0]);
}

#[test]
fn the_sun_rises_each_day_once_at_its_own_time() {
    let mut bench = Bench::new(sunrise(-3_600_000));
    bench.notify(Command::SetClock(at("00:00")));
    bench.wait(DAY);
    assert!(bench.ran.is_empty(), "the sun is not known");
    bench.notify(Command::SetToday(day(Weekday::Monday, Some("06:00"))));
    bench.wait(5 * 3_600 + 1);
    assert_eq!(bench.ran, [DAY + 5 * 3_600]);
    // A time that is a little later is the same sunrise.
    bench.notify(Command::SetToday(day(Weekday::Monday, Some("06:05"))));
    bench.wait(1_200);
    assert_eq!(bench.ran.len(), 1);
    // The next day.
    bench.wait(DAY);
    assert_eq!(bench.ran[1..], [2 * DAY + 5 * 3_600 + 300]);
}

#[test]
fn a_polar_night_has_no_sunrise() {
    let mut bench = Bench::new(sunrise(0));
    bench.notify(Command::SetClock(at("00:00")));
    bench.notify(Command::SetToday(day(Weekday::Monday, Some("10:00"))));
    bench.notify(Command::SetToday(day(Weekday::Monday, None)));
    bench.wait(3 * DAY);
    assert!(bench.ran.is_empty());
    bench.notify(Command::SetToday(day(Weekday::Thursday, Some("11:00"))));
    bench.wait(DAY);
    assert_eq!(bench.ran, [3 * DAY + 11 * 3_600]);
}

#[test]
fn an_offset_of_more_than_half_a_day_is_refused() {
    let mut bench = Bench::new(sunrise(43_200_000));
    for offset_ms in [43_200_001, -43_200_001, i32::MIN] {
        let (name, trigger) = ("r".into(), sunrise(offset_ms));
        let command = Input::Command(Command::AddTrigger { name, trigger });
        let warned = bench
            .driver
            .step(bench.now, &mut bench.rng, command, |_| ());
        assert_eq!(warned, Err(Reject::Offset(offset_ms)));
    }
}

#[test]
fn days_are_some_days() {
    assert_eq!(Days::new([]), None);
    assert_eq!(Days::new(Weekday::ALL), Some(Days::ALL));
    let twice = [Weekday::Friday, Weekday::Friday];
    assert_eq!(Days::new(twice), Days::new([Weekday::Friday]));
    // The remainder of 2^64 - 1 and 7 is 1.
    assert_eq!(Weekday::Sunday.after(u64::MAX), Weekday::Monday);
    for (nth, it) in Weekday::ALL.into_iter().enumerate() {
        assert_eq!(Weekday::parse(it.short()), Some(it));
        assert_eq!(it.to_string(), it.short());
        assert_eq!(Weekday::Monday.after(nth as u64), it);
        assert_eq!(it.after(7), it);
        let one = Days::new([it]).unwrap();
        assert!(one.iter().eq([it]));
        assert!(
            Weekday::ALL
                .iter()
                .all(|other| one.has(*other) == (*other == it))
        );
    }
}

/// Midnight is the only time at which the day changes, however far the clock is set.
#[test]
fn a_clock_that_is_set_within_the_day_keeps_the_day() {
    for (shown, set) in [
        ("11:00", "11:00:30"),
        ("11:00:30", "11:00"),
        ("02:00", "11:00"),
        ("11:00", "02:00"),
    ] {
        let mut bench = Bench::new(weekly(&[Weekday::Tuesday], "12:00"));
        bench.notify(Command::SetClock(at(shown)));
        bench.notify(Command::SetToday(day(Weekday::Tuesday, None)));
        bench.notify(Command::SetClock(at(set)));
        bench.wait(DAY);
        let noon = u64::from(at("12:00").seconds() - at(set).seconds());
        assert_eq!(bench.ran, [noon], "{shown} {set}");
    }
}

/// The host had not ticked it yet when the clock was set back before it: it has come all the same,
/// and belongs to its day.
#[test]
fn a_time_that_has_come_belongs_to_the_day_on_which_it_came() {
    let mut bench = Bench::new(weekly(&[Weekday::Monday], "12:00"));
    bench.notify(Command::SetClock(at("11:59:59")));
    bench.notify(Command::SetToday(day(Weekday::Monday, None)));
    bench.now = bench.now + Span::secs(1);
    bench.notify(Command::SetClock(at("11:59:58")));
    assert_eq!(bench.ran, [1]);
    bench.wait(DAY);
    assert_eq!(bench.ran, [1], "it came once");
}

#[test]
fn a_sun_that_is_not_known_any_more_wakes_nobody() {
    let mut bench = Bench::new(sunrise(0));
    bench.notify(Command::SetClock(at("00:00")));
    bench.notify(Command::SetToday(day(Weekday::Monday, Some("10:00"))));
    assert!(bench.driver.deadline().is_some());
    bench.notify(Command::SetToday(day(Weekday::Tuesday, None)));
    assert_eq!(bench.driver.deadline(), None);
}

fn place(latitude: i64, longitude: i64) -> Location {
    let degrees = |it| Number::from_thousandths(it).unwrap();
    Location {
        latitude: degrees(latitude),
        longitude: degrees(longitude),
    }
}

const fn date(year: i32, month: u32, day: u32) -> Date {
    Date { year, month, day }
}

/// Sunrise and sunset as almanacs have them, which are good to a minute; these here to a few.
#[test]
fn the_sun_is_where_almanacs_have_it() {
    let hour = 3_600;
    let (berlin, sydney, quito) = (
        place(52_520, 13_405),
        place(-33_869, 151_209),
        place(-180, -78_468),
    );
    for (location, date, offset, rise, set) in [
        (berlin, date(2026, 6, 21), 2 * hour, "04:43", "21:33"),
        (berlin, date(2026, 12, 21), hour, "08:15", "15:54"),
        (sydney, date(2026, 12, 21), 11 * hour, "05:41", "20:05"),
        (quito, date(2026, 3, 20), -5 * hour, "06:18", "18:24"),
    ] {
        let Some(Sun::Rises { sunrise, sunset }) = sun(location, date, offset) else {
            panic!("{location:?} {date:?}");
        };
        for (found, expected) in [(sunrise, rise), (sunset, set)] {
            let away = found.seconds().abs_diff(at(expected).seconds());
            assert!(away <= 180, "{date:?}: {found} is not {expected}");
        }
    }
}

#[test]
fn near_the_poles_a_day_or_a_night_is_long() {
    let (june, december) = (date(2026, 6, 21), date(2026, 12, 21));
    for (latitude, summer, winter) in [
        (69_649, june, december),
        (90_000, june, december),
        (-69_649, december, june),
        (-90_000, december, june),
    ] {
        let location = place(latitude, 18_956);
        assert_eq!(sun(location, summer, 0), Some(Sun::PolarDay), "{latitude}");
        assert_eq!(
            sun(location, winter, 0),
            Some(Sun::PolarNight),
            "{latitude}"
        );
        let warned = summer.at(location, 0).unwrap();
        assert_eq!((warned.sunrise, warned.sunset), (None, None));
    }
}

#[test]
fn days_and_places_that_there_are_not_have_no_sun() {
    let berlin = place(52_520, 13_405);
    for (date, weekday) in [
        (date(1900, 1, 1), Some(Weekday::Monday)),
        (date(2026, 6, 21), Some(Weekday::Sunday)),
        (date(2200, 12, 31), Some(Weekday::Wednesday)),
        (date(1899, 12, 31), None),
        (date(2201, 1, 1), None),
        (date(2026, 2, 29), None),
        (date(2026, 0, 1), None),
    ] {
        assert_eq!(date.weekday(), weekday, "{date:?}");
        let warned = date.at(berlin, 0);
        assert_eq!(warned.map(|it| it.weekday), weekday, "{date:?}");
        assert_eq!(
            warned.is_some_and(|it| it.sunrise < it.sunset),
            weekday.is_some()
        );
        assert_eq!(sun(berlin, date, 0).is_some(), weekday.is_some());
    }
    for nowhere in [place(90_001, 0), place(-91_000, 0), place(0, 180_001)] {
        assert_eq!(sun(nowhere, date(2026, 6, 21), 0), None, "{nowhere:?}");
    }
}
