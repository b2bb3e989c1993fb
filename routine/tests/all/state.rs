//! How numbers and times of day are shown and stored.

use selvedge_routine::Number;
use selvedge_routine::trigger::TimeOfDay;

#[test]
fn a_number_is_shown_in_the_shortest_way_that_says_it() {
    for thousandths in (-2_100..2_100).chain([-20_500, 10_000, 100_000, 123_456_789]) {
        let number = Number::from_thousandths(thousandths).unwrap();
        let shown = number.to_string();
        let (whole, part) = shown.split_once('.').unwrap_or((&shown, ""));
        let read = format!("{whole}{part:0<3}").parse::<i64>().unwrap();
        assert_eq!(read, thousandths, "{shown}");
        assert!(
            !part.ends_with('0') && !shown.ends_with('.') && shown != "-0",
            "{shown}"
        );
    }
}

#[test]
fn what_is_stored_is_read_again_and_no_more_than_that() {
    let max = Number::MAX_THOUSANDTHS;
    for thousandths in [-max, -1, 0, 1, max] {
        let number = Number::from_thousandths(thousandths).unwrap();
        let stored = serde_json::to_string(&number).unwrap();
        assert_eq!(serde_json::from_str::<Number>(&stored).unwrap(), number);
    }
    for beyond in [-max - 1, max + 1, i64::MIN, i64::MAX] {
        assert!(serde_json::from_str::<Number>(&beyond.to_string()).is_err());
    }
    for seconds in [0, 1, 45_000, TimeOfDay::DAY - 1] {
        let time = TimeOfDay::from_seconds(seconds).unwrap();
        let stored = serde_json::to_string(&time).unwrap();
        assert_eq!(serde_json::from_str::<TimeOfDay>(&stored).unwrap(), time);
    }
    for beyond in [TimeOfDay::DAY, u32::MAX] {
        assert!(serde_json::from_str::<TimeOfDay>(&beyond.to_string()).is_err());
    }
}
