//! Lines for the operator, on the standard output.

use std::io::{self, Write as _};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

/// The most lines that wait.
const LINES: usize = 1_024;

/// Writes lines on a thread of its own: a reader that stalls, or that has gone, delays nothing. Lines that find no
/// room are dropped.
#[derive(Clone, Debug)]
pub(crate) struct Log(SyncSender<String>);

impl Log {
    /// # Errors
    /// When the thread does not start.
    pub(crate) fn start() -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(LINES);
        thread::Builder::new().name("log".into()).spawn(move || {
            for line in waiting {
                // No one reads it any more.
                writeln!(io::stdout(), "{line}").ok();
            }
        })?;
        Ok(Self(lines))
    }

    pub(crate) fn line(&self, line: String) {
        // There is no room.
        self.0.try_send(line).ok();
    }
}
