//! The scheduling delay of the machine, measured while the demo runs.
//!
//! Limits in seconds allow for messages that get lost, and not for a processor that is busy with other
//! programs. A thread of its own sleeps again and again, and notes how late it wakes up. It does no
//! work for a node: a node with too much work delays itself and not this thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use selvedge_core::Span;
use selvedge_udp::Clock;

use super::promises::Promise;

/// The number of naps in the tolerated time.
const LOOKS: u64 = 8;

/// The thread that measures.
#[derive(Debug)]
pub struct Watch {
    tolerated: Span,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Span>,
}

impl Watch {
    /// Begins to measure. The settings allow for a delay of `tolerated`.
    #[must_use]
    pub fn start(tolerated: Span) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let (clock, nap) = (Clock::start(), Span(tolerated.0 / LOOKS));
            let mut longest = Span::ZERO;
            while !seen.load(Ordering::Relaxed) {
                let due = clock.now() + nap;
                thread::sleep(nap.into());
                longest = longest.max(clock.now().since(due));
            }
            longest
        });
        Self {
            tolerated,
            is_over,
            thread,
        }
    }

    /// Ends the thread and returns its measurement.
    #[must_use]
    pub fn finish(self) -> Pace {
        self.is_over.store(true, Ordering::Relaxed);
        Pace {
            tolerated: self.tolerated,
            // It does not panic.
            longest: self.thread.join().unwrap_or_default(),
        }
    }
}

/// The measured delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The longest wait of a thread for a processor.
    pub longest: Span,
    /// The longest wait that the settings allow for.
    pub tolerated: Span,
}

impl Pace {
    /// Marks the timed rows that did not hold as not judged, if the machine was slower than the
    /// settings allow.
    pub fn excuse(self, table: &mut [Promise]) {
        if self.longest > self.tolerated {
            let late = table.iter_mut().filter(|it| it.timed && !it.held);
            late.for_each(|it| it.judged = false);
        }
    }

    /// The delay in words, with the rows that depend on it.
    #[must_use]
    pub fn explain(self, table: &[Promise]) -> String {
        let Self { longest, tolerated } = self;
        let timed = table.iter().filter(|it| it.timed);
        let timed: Vec<&str> = timed.map(|it| it.id.as_str()).collect();
        format!(
            "the machine was late by {longest:?} at most; if it is late by more than {tolerated:?}, rows that depend on its speed are not judged where they do not hold: {}",
            timed.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Vec<Promise> {
        let rows = [(false, false), (false, true), (true, false), (true, true)];
        let row = |(timed, held)| Promise {
            id: String::new(),
            promise: String::new(),
            unit: "s",
            limit: 0.0,
            seen: None,
            held,
            timed,
            judged: true,
            why: String::new(),
        };
        rows.map(row).into()
    }

    #[test]
    fn what_did_not_hold_in_time_is_judged_unless_the_machine_was_late() {
        let tolerated = Span::millis(60);
        let broken = |longest| {
            let mut table = table();
            Pace { longest, tolerated }.excuse(&mut table);
            table.iter().map(Promise::is_broken).collect::<Vec<_>>()
        };
        assert_eq!(broken(tolerated), [true, false, true, false]);
        assert_eq!(broken(tolerated + Span(1)), [true, false, false, false]);
    }

    #[test]
    fn a_watch_sees_what_it_slept_too_long() {
        // On any machine, a nap ends no earlier than its due time.
        let watch = Watch::start(Span::millis(8));
        thread::sleep(core::time::Duration::from_millis(20));
        let pace = watch.finish();
        assert!(pace.longest > Span::ZERO, "{pace:?}");
        assert_eq!(pace.tolerated, Span::millis(8));
    }
}
