//! What happens in a history, in words.

use alloc::collections::VecDeque;
use core::cell::RefCell;

/// The number of lines that are kept of a history that failed.
const LAST: usize = 200;

thread_local! {
    /// The last lines, where they are kept and not printed.
    static LINES: RefCell<Option<VecDeque<String>>> = const { RefCell::new(None) };
}

/// Returns true if someone reads what happens.
pub(super) fn is_on() -> bool {
    LINES.with_borrow(Option::is_some) || std::env::var_os("TRACE").is_some()
}

/// One more line.
pub(super) fn line(text: String) {
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

/// Does `work`, and returns the last lines of it.
pub(super) fn of(work: impl FnOnce()) -> VecDeque<String> {
    LINES.set(Some(VecDeque::new()));
    work();
    LINES.take().unwrap_or_default()
}
