//! Lines for the operator: on the standard output, the standard error, in the journal of systemd, or in a file.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::SystemTime;

use rustix::fs::fstat;

use crate::Failure;
use crate::config::LogTo;
use crate::lines::{Appended, Lines, Sink};

/// The importance of a line, as in syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error,
    Warning,
    Notice,
    Info,
}

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The line alone.
    Plain,
    /// Behind its level, as systemd reads it.
    Journal,
    /// Behind its time and its level.
    Dated,
}

/// The log. Lines that find no room are lost, and counted.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    lines: Lines,
    form: Form,
    has_file: bool,
}

impl Log {
    /// # Errors
    /// When the file cannot be opened, or the thread does not start.
    pub(crate) fn start(to: &LogTo) -> Result<Self, Failure> {
        let (sink, form) = match to {
            LogTo::Stdout => (Sink::Stdout, form_of(io::stdout())),
            LogTo::Stderr => (Sink::Stderr, form_of(io::stderr())),
            LogTo::Journal => (Sink::Stderr, Form::Journal),
            LogTo::File(path) => (Sink::File(appended(path)?), Form::Dated),
        };
        let has_file = matches!(sink, Sink::File(_));
        let name = match to {
            LogTo::File(path) => path.display().to_string(),
            LogTo::Stdout | LogTo::Stderr | LogTo::Journal => String::new(),
        };
        let report = move |error: Option<io::Error>| {
            // There is no other place, which may be closed, and a standard output without a reader is no loss.
            if let Some(error) = error.filter(|_| has_file) {
                let why = format!("selvedge-agent: lines of the log are lost: {name}: {error}");
                writeln!(io::stderr(), "{why}").ok();
            }
        };
        let lines = Lines::start("log", sink, report).map_err(Failure::Runtime)?;
        Ok(Self {
            lines,
            form,
            has_file,
        })
    }

    /// Writes news.
    pub(crate) fn line(&self, line: impl AsRef<str>) {
        self.at(Level::Info, line);
    }

    /// Writes a line of this level. Returns false if there is no room.
    pub(crate) fn at(&self, level: Level, line: impl AsRef<str>) -> bool {
        self.lines.write(self.form.text(level, line.as_ref()))
    }

    /// Opens the file anew; `None` without a file.
    pub(crate) async fn reopen(&self) -> Option<io::Result<()>> {
        match self.has_file {
            true => Some(self.lines.reopen().await),
            false => None,
        }
    }

    /// Waits until all lines are written.
    pub(crate) async fn flush(&self) {
        self.lines.flush().await;
    }

    /// The number of lost lines.
    pub(crate) fn lost(&self) -> u64 {
        self.lines.counts().1
    }
}

impl Level {
    /// The number of syslog.
    const fn number(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Notice => 5,
            Self::Info => 6,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}

impl Form {
    fn text(self, level: Level, line: &str) -> String {
        let start = match self {
            Self::Plain => return line.to_owned(),
            Self::Journal => format!("<{}>", level.number()),
            Self::Dated => format!("{} {} ", now(), level.text()),
        };
        // An error of a file of settings has several lines.
        let lines: Vec<_> = line.lines().map(|it| format!("{start}{it}")).collect();
        lines.join("\n")
    }
}

/// The time, as lines have it.
pub(crate) fn now() -> String {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    let now = SystemTime::now();
    humantime::format_rfc3339_millis(now).to_string()
}

/// Opens a file for lines.
pub(crate) fn appended(path: &Path) -> Result<Appended, Failure> {
    Appended::open(path).map_err(|it| Failure::File {
        path: path.to_owned(),
        why: format!("lines cannot be written: {it}"),
    })
}

/// The form of lines for this stream: systemd reports the socket of its journal.
fn form_of(stream: impl AsFd) -> Form {
    match is_journal(stream, env::var_os("JOURNAL_STREAM").as_deref()) {
        true => Form::Journal,
        false => Form::Plain,
    }
}

/// Returns true if the stream is the one of this device and inode, as `DEVICE:INODE`.
fn is_journal(stream: impl AsFd, journal: Option<&OsStr>) -> bool {
    let Some((journal, it)) = journal.zip(fstat(stream).ok()) else {
        return false;
    };
    journal == OsStr::new(&format!("{}:{}", it.st_dev, it.st_ino))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs::{File, metadata};
    use std::os::unix::fs::MetadataExt as _;

    use super::{Form, Level, is_journal};

    #[test]
    fn lines_for_the_journal_have_their_level() {
        let text = |level| Form::Journal.text(level, "one\ntwo");
        assert_eq!(text(Level::Warning), "<4>one\n<4>two");
        assert_eq!(text(Level::Info), "<6>one\n<6>two");
        assert_eq!(Form::Plain.text(Level::Error, "one\ntwo"), "one\ntwo");
        let dated = Form::Dated.text(Level::Error, "one");
        assert!(dated.ends_with("Z error one"), "{dated}");
    }

    #[test]
    fn the_journal_is_known_by_its_socket() {
        let path = std::env::current_exe().unwrap();
        let (it, file) = (metadata(&path).unwrap(), File::open(&path).unwrap());
        let name = format!("{}:{}", it.dev(), it.ino());
        assert!(is_journal(&file, Some(OsStr::new(&name))));
        let other = format!("{}:{}", it.dev(), it.ino() + 1);
        assert!(!is_journal(&file, Some(OsStr::new(&other))));
        assert!(!is_journal(&file, None));
    }
}
