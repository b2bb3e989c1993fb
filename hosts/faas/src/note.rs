//! The log of a process, on its standard error.

use std::io::{self, Write};

use crate::call::is_plain;

/// Writes one line. Its parts may come from anywhere: characters that would begin another line, or
/// change how the line is shown, are escaped. If the standard error is closed the line is lost, and
/// the process goes on.
pub(crate) fn note(line: &str) {
    note_to(&mut io::stderr().lock(), line);
}

fn note_to(out: &mut impl Write, line: &str) {
    let mut escaped = String::with_capacity(line.len() + 1);
    for it in line.chars() {
        match is_plain(it) {
            true => escaped.push(it),
            false => escaped.extend(it.escape_default()),
        }
    }
    escaped.push('\n');
    // One write, so that lines of threads do not mix. A failure cannot be reported anywhere.
    let _said = out.write_all(escaped.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_one_line() {
        let mut out = Vec::new();
        note_to(&mut out, "says: a\nb\r\t\u{1b}[2J\u{202e}\u{2028}c °");
        let shown = "says: a\\nb\\r\\t\\u{1b}[2J\\u{202e}\\u{2028}c °\n";
        assert_eq!(String::from_utf8(out).unwrap(), shown);
    }

    /// A closed output.
    #[derive(Default)]
    struct Closed(usize);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn what_nobody_hears_is_no_failure() {
        let mut closed = Closed::default();
        note_to(&mut closed, "is closed");
        assert_eq!(closed.0, 1);
    }
}
