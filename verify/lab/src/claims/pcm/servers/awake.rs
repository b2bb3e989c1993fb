//! The time for which a node is awake.

use selvedge_core::{Span, Time};

/// The cycle of a node: it can be used, then it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) active: Span,
    pub(crate) asleep: Span,
}

impl Cycle {
    pub(crate) fn period(self) -> Span {
        self.active + self.asleep
    }
}

/// A sum of the time for which a node was awake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Awake {
    since: Option<Time>,
    total: Span,
}

impl Awake {
    pub(crate) fn wake(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    pub(crate) fn sleep(&mut self, now: Time) {
        if let Some(since) = self.since.take() {
            self.total = self.total + now.since(since);
        }
    }

    /// The time awake, up to now.
    pub(crate) fn until(&self, now: Time) -> Span {
        let present = self.since.map_or(Span::ZERO, |it| now.since(it));
        self.total + present
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_awake_is_the_sum_of_what_lies_between_waking_and_sleeping() {
        let mut awake = Awake::default();
        awake.wake(Time(5));
        awake.wake(Time(7));
        assert_eq!(awake.until(Time(8)), Span(3));
        awake.sleep(Time(10));
        awake.sleep(Time(11));
        assert_eq!(awake.until(Time(20)), Span(5));
        awake.wake(Time(20));
        assert_eq!(awake.until(Time(21)), Span(6));
    }
}
