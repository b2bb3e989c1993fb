//! The trace of a history.

use alloc::collections::VecDeque;
use core::cell::RefCell;

/// The number of lines that are kept of a history that failed.
const LAST: usize = 100;

thread_local! {
    /// The last lines, where they are kept and not printed.
    static LINES: RefCell<Option<VecDeque<String>>> = const { RefCell::new(None) };
}

/// The lines of a history: its events, in words. `TRACE` prints them, and if a history fails the
/// last ones are printed.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    is_on: bool,
}

impl Trace {
    /// A trace that is on if lines are read.
    #[must_use]
    pub fn new() -> Self {
        let is_kept = LINES.with_borrow(Option::is_some);
        let is_on = is_kept || std::env::var_os("TRACE").is_some();
        Self { is_on }
    }

    /// Adds a line, if lines are read.
    pub fn line(self, text: impl FnOnce() -> String) {
        if !self.is_on {
            return;
        }
        let text = text();
        LINES.with_borrow_mut(|lines| match lines {
            None => eprintln!("{text}"),
            Some(lines) => {
                if lines.len() >= LAST {
                    lines.pop_front();
                }
                lines.push_back(text);
            }
        });
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

/// Does `work`, and returns the last lines of it.
pub(super) fn of(work: impl FnOnce()) -> VecDeque<String> {
    LINES.set(Some(VecDeque::new()));
    work();
    LINES.take().unwrap_or_default()
}
