//! A check that the node's datagrams go out.

use std::io;

use selvedge_core::{Span, Time};

use crate::event::Unsent;

/// The failures in a row that are reported.
const FAILURES: u64 = 3;
/// The time between two reports.
const EVERY: Span = Span::secs(60);

/// A count of failures in a row.
///
/// One receiver that cannot be sent to is no news: others are sent to within two periods.
#[derive(Debug)]
pub(crate) struct Sends {
    patience: Span,
    succeeded: Time,
    in_a_row: u64,
    reported: Option<Time>,
    is_failing: bool,
    /// True if the present run of failures was reported.
    is_reported: bool,
}

impl Sends {
    pub(crate) const fn new(period: Span, now: Time) -> Self {
        Self {
            patience: Span(period.0.saturating_mul(2)),
            succeeded: now,
            in_a_row: 0,
            reported: None,
            is_failing: false,
            is_reported: false,
        }
    }

    /// Counts a success. Returns true if it ends a reported run of failures.
    pub(crate) const fn succeeded(&mut self, now: Time) -> bool {
        (self.succeeded, self.in_a_row) = (now, 0);
        self.is_failing = false;
        core::mem::replace(&mut self.is_reported, false)
    }

    /// Counts a failure. Returns a report, if one is due.
    pub(crate) fn failed(&mut self, error: &io::Error, now: Time) -> Option<Unsent> {
        self.in_a_row += 1;
        self.is_failing |= self.in_a_row >= FAILURES && now.since(self.succeeded) >= self.patience;
        if !self.is_failing
            || self.is_reported
            || self.reported.is_some_and(|at| now.since(at) < EVERY)
        {
            return None;
        }
        (self.reported, self.is_reported) = (Some(now), true);
        Some(Unsent {
            in_a_row: self.in_a_row,
            error: error.to_string(),
        })
    }

    /// True while all sends fail, whether that was reported or not.
    pub(crate) const fn is_failing(&self) -> bool {
        self.is_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_are_reported_once_until_one_goes_out() {
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        let error = io::Error::other("no network");
        let mut sends = Sends::new(Span::secs(1), at(0));
        // Too few, and too early.
        assert_eq!(sends.failed(&error, at(10)), None);
        assert!(!sends.succeeded(at(10)));
        for _ in 0..9 {
            assert_eq!(sends.failed(&error, at(11)), None);
        }
        let unsent = sends.failed(&error, at(12)).unwrap();
        assert_eq!((unsent.in_a_row, &*unsent.error), (10, "no network"));
        assert_eq!(sends.failed(&error, at(100)), None);
        assert!(sends.succeeded(at(100)) && !sends.succeeded(at(100)));
        let mut fails = (101..200).map(|it| sends.failed(&error, at(it)));
        assert_eq!(fails.position(|it| it.is_some()), Some(2));
    }

    #[test]
    fn a_second_failure_within_a_minute_is_known_at_once() {
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        let error = io::Error::other("no network");
        let mut sends = Sends::new(Span::secs(1), at(0));
        let fail = |sends: &mut Sends, seconds: core::ops::RangeInclusive<u64>| {
            let mut reports = 0;
            for second in seconds {
                reports += u32::from(sends.failed(&error, at(second)).is_some());
            }
            reports
        };
        assert_eq!((fail(&mut sends, 1..=3), sends.is_failing()), (1, true));
        assert!(sends.succeeded(at(4)) && !sends.is_failing());
        assert_eq!((fail(&mut sends, 5..=7), sends.is_failing()), (0, true));
        // The end of a run that was not reported is not reported.
        assert!(!sends.succeeded(at(8)) && !sends.is_failing());
        // It is reported when the minute is over.
        assert_eq!((fail(&mut sends, 9..=62), sends.is_failing()), (0, true));
        assert_eq!(fail(&mut sends, 63..=63), 1);
        assert!(sends.succeeded(at(64)));
    }

    #[test]
    fn what_comes_and_goes_is_reported_once_a_minute() {
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        let error = io::Error::other("no network");
        let mut sends = Sends::new(Span::secs(1), at(0));
        let mut reports = 0;
        for second in 0..600 {
            if second % 10 == 0 {
                sends.succeeded(at(second));
            }
            reports += u32::from(sends.failed(&error, at(second)).is_some());
        }
        assert_eq!(reports, 10);
    }
}
