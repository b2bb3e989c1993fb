//! Times of day, and the effect of setting the clock.

use super::*;

#[test]
fn a_time_of_day_comes_each_day_once_the_clock_is_known() {
    let mut bench = Bench::new();
    let id = bench.at("06:30");
    assert!(bench.pass(3 * DAY).is_empty());
    bench.notify(clock("06:00")).unwrap();
    let start = bench.now.0 / 1_000_000;
    let came = bench.pass(3 * DAY);
    let expected = [1_800, DAY + 1_800, 2 * DAY + 1_800];
    assert_eq!(came, expected.map(|it| start + it));
    assert_eq!(bench.runs[0].2, Cause::Trigger(id));
    // A trigger that is added later knows the clock, too.
    bench.at("06:00:10");
    assert_eq!(bench.pass(11).len(), 1);
}

#[test]
fn a_time_that_is_now_comes_now() {
    let mut bench = Bench::new();
    bench.at("06:30");
    bench.notify(clock("06:30")).unwrap();
    assert_eq!(bench.pass(DAY - 1), [0]);
}

/// Each second of the day at which the clock may be corrected around a trigger's time, by each
/// length up to the limit: it comes once.
#[test]
fn a_small_correction_leaves_nothing_out_and_repeats_nothing() {
    let limit = CORRECTION.0 / 1_000_000;
    let noon = 43_200_u32;
    for before in 0..3 * limit {
        for correction in 0..=2 * limit {
            let mut bench = Bench::new();
            bench.at("12:00");
            let start = noon - limit as u32;
            let time =
                |seconds: u64| Command::SetClock(TimeOfDay::from_seconds(seconds as u32).unwrap());
            bench.notify(time(start.into())).unwrap();
            bench.pass(before);
            let shown = u64::from(start) + before + correction - limit;
            bench.notify(time(shown)).unwrap();
            bench.pass(10 * limit);
            assert_eq!(
                bench.runs.len(),
                1,
                "{before} s later the clock went from {} to {shown}",
                u64::from(start) + before
            );
        }
    }
}

/// The clock is set back again and again, each time by less than the limit.
#[test]
fn small_corrections_in_a_row_repeat_nothing() {
    let mut bench = Bench::new();
    bench.notify(clock("11:59:50")).unwrap();
    bench.at("12:00");
    for _ in 0..5 {
        bench.pass(50);
        bench.notify(clock("11:59:50")).unwrap();
    }
    bench.pass(600);
    assert_eq!(bench.runs.len(), 1);
}

/// A host may set the clock before it ticks the timers that are due.
#[test]
fn a_time_that_has_come_is_not_lost_when_the_clock_is_set_before_it_is_ticked() {
    for late in 0..3 {
        for shown in ["06:29:58", "06:30:00", "06:30:05", "06:30:50"] {
            let mut bench = Bench::new();
            bench.notify(clock("06:29:59")).unwrap();
            bench.at("06:30");
            bench.now = bench.now + Span::secs(1 + late);
            bench.notify(clock(shown)).unwrap();
            bench.pass(60);
            assert_eq!(
                bench.runs.len(),
                1,
                "{late} s late the clock was set to {shown}"
            );
        }
    }
}

/// Summer time ends at this moment, or the host has slept for hours.
#[test]
fn a_time_that_has_come_does_not_run_where_a_new_clock_shows_another() {
    for shown in ["02:00", "12:00", "02:58:58", "03:01:01"] {
        let mut bench = Bench::new();
        bench.notify(clock("02:59:59")).unwrap();
        bench.at("03:00");
        bench.now = bench.now + Span::secs(1);
        bench.notify(clock(shown)).unwrap();
        bench.pass(1);
        assert!(bench.runs.is_empty(), "{shown} {:?}", bench.runs);
        assert_eq!(bench.pass(DAY).len(), 1, "{shown}");
    }
}

#[test]
fn a_large_step_leaves_out_and_repeats() {
    let mut bench = Bench::new();
    bench.at("02:30");
    // Summer time begins: 02:00 becomes 03:00.
    bench.notify(clock("01:59")).unwrap();
    bench.pass(60);
    bench.notify(clock("03:00")).unwrap();
    assert!(bench.pass(3_600).is_empty());
    // It ends: 03:00 becomes 02:00.
    bench.notify(clock("02:00")).unwrap();
    assert_eq!(bench.pass(3_600).len(), 1);
    bench.notify(clock("02:00")).unwrap();
    assert_eq!(bench.pass(3_600).len(), 1);
}

/// A correction runs the times that it leaps over, and no others: a time that is still to come, be
/// it seconds or hours ahead, comes when the clock shows it.
#[test]
fn a_correction_runs_nothing_before_its_time() {
    let noon = 43_200_u32;
    let limit = u32::try_from(CORRECTION.0 / 1_000_000).unwrap();
    let time = |seconds| Command::SetClock(TimeOfDay::from_seconds(seconds).unwrap());
    for ahead in (1..=2 * limit).chain([3_600, 43_000]) {
        for forward in [1, limit / 2, limit] {
            let mut bench = Bench::new();
            bench.at("12:00");
            bench.notify(time(noon - ahead)).unwrap();
            bench.notify(time(noon - ahead + forward)).unwrap();
            bench.pass(DAY / 2);
            let came: Vec<u64> = bench.runs.iter().map(|it| it.0).collect();
            let expected = u64::from(ahead.saturating_sub(forward));
            assert_eq!(
                came,
                [expected],
                "{ahead} s ahead, corrected by {forward} s"
            );
        }
    }
}

/// The last midnight that a `Time` can hold.
#[test]
fn a_clock_that_was_set_ages_ago_still_goes_right() {
    let day = DAY * 1_000_000;
    let mut bench = Bench::new();
    bench.notify(clock("00:00")).unwrap();
    bench.now = Time(u64::MAX / day * day);
    bench.at("00:10");
    let midnight = bench.now.0 / 1_000_000;
    assert_eq!(bench.pass(1_200), [midnight + 600]);
}
