//! How late the machine lets a thread go on that waits for a time.
//!
//! Limits in seconds count messages that get lost, and no processor that is busy with something else.
//! So a thread that does nothing sleeps and looks how late it is when it wakes up, while the demo
//! runs. It belongs to no node: nodes that have too much to do do not make it late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use selvedge_core::Span;
use selvedge_udp::Clock;

use super::promises::Promise;

/// How many times it looks in the time that is tolerated.
const LOOKS: u64 = 8;

/// The thread that looks.
#[derive(Debug)]
pub struct Watch {
    tolerated: Span,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Span>,
}

impl Watch {
    /// Begins to look. Up to `tolerated`, a delay is nothing that breaks a promise.
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

    /// What it has seen.
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

/// How late the machine was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// For how long a thread waited at most for a processor.
    pub longest: Span,
    /// For how long one may, by the settings.
    pub tolerated: Span,
}

impl Pace {
    /// Takes its verdict from each row that did not hold and needs a machine that is in time, if this
    /// one was not.
    pub fn excuse(self, table: &mut [Promise]) {
        if self.longest > self.tolerated {
            let late = table.iter_mut().filter(|it| it.timed && !it.held);
            late.for_each(|it| it.judged = false);
        }
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
        // Whatever the machine does, a nap ends no earlier than it is due.
        let watch = Watch::start(Span::millis(8));
        thread::sleep(core::time::Duration::from_millis(20));
        let pace = watch.finish();
        assert!(pace.longest > Span::ZERO, "{pace:?}");
        assert_eq!(pace.tolerated, Span::millis(8));
    }
}
