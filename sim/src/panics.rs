//! Panics of machines as texts, so that a trace or a story can end with one.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use std::panic::{self, PanicHookInfo, catch_unwind};
use std::sync::Once;

thread_local! {
    /// True while a panic of this thread will be caught.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// The place of the last panic that was caught.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Does `work`, and returns the text of its panic if it panics. After a panic, the caller uses
/// nothing that `work` has changed.
///
/// The panic's own report on the standard error is suppressed, on this thread alone: a search for a
/// short list of operations meets the same panic a thousand times. A build that aborts on panics
/// aborts here, too, and with its report.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    if cfg!(panic = "abort") {
        return Ok(work());
    }
    listen();
    let before = IS_CAUGHT.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    done.map_err(|payload| {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("its payload is no text");
        match PLACE.take() {
            Some(place) => format!("panicked at {place}: {text}"),
            // Another hook was set since.
            None => format!("panicked: {text}"),
        }
    })
}

/// Sets a hook, once for the whole process: two threads that set and restore hooks in turn would
/// restore each other's.
fn listen() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            if IS_CAUGHT.get() {
                PLACE.set(info.location().map(ToString::to_string));
            } else {
                loud(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_told_with_its_place_and_its_text() {
        let index = usize::try_from(std::process::id()).unwrap();
        let notified = caught(|| [0_u8; 3][index.max(3)]).unwrap_err();
        assert!(
            notified.starts_with("panicked at sim/src/panics.rs:"),
            "{notified}"
        );
        assert!(
            notified.contains(": index out of bounds: the len is 3"),
            "{notified}"
        );
        let notified = caught(|| panic::panic_any(7)).unwrap_err();
        assert!(notified.ends_with(": its payload is no text"), "{notified}");
        assert_eq!(caught(|| 7), Ok(7));
    }

    #[test]
    fn what_panics_within_is_caught_there() {
        let notified = caught(|| {
            let inner = caught(|| panic!("inner")).unwrap_err();
            assert!(inner.ends_with(": inner"), "{inner}");
            panic!("outer")
        });
        assert!(notified.unwrap_err().ends_with(": outer"));
        assert!(!IS_CAUGHT.get());
    }
}
