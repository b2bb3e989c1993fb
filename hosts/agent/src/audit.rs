//! The audit: a line of JSON for each call that changes something, for each that is refused for want of a token, and
//! for the end of each hold. No line has a value, a token or the secret name of a hold.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use selvedge_http::Role;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::Failure;
use crate::config::AuditTo;
use crate::keeper::later;
use crate::lines::{Lines, Sink};
use crate::log::{self, Level, Log};

/// The most names in a line.
const NAMES: usize = 32;
/// The most characters of a name in a line. Names that are accepted have 255 bytes at most.
const CHARACTERS: usize = 256;
/// The least time between two lines in the log about a want of room.
const PACE: Duration = Duration::from_secs(60);

/// The audit. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audit(Option<Arc<On>>);

#[derive(Debug)]
struct On {
    to: To,
    log: Log,
    /// The time from which the log has another line about a want of room.
    reports_from: Mutex<Option<Instant>>,
}

#[derive(Debug)]
enum To {
    /// Lines among those of the log.
    Log {
        written: AtomicU64,
        lost: AtomicU64,
    },
    File(Lines),
}

/// The other end of a connection, or a signal.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum By {
    /// A process, by the credentials of its socket.
    Process {
        uid: u32,
        /// Missing where the system does not report it.
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<i32>,
    },
    Address {
        address: SocketAddr,
    },
    Signal {
        signal: &'static str,
    },
}

/// The client of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) by: Option<By>,
    pub(crate) role: Option<Role>,
    /// The names in the body of its request, once they are known.
    pub(crate) names: Arc<OnceLock<Names>>,
}

/// The things that a call is about, by their kinds.
pub(crate) type Names = Map<String, Value>;

/// A line, beside its time and its caller.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Event<'a> {
    /// The method and the pattern of the path; `end` for the end of a hold.
    pub(crate) call: &'a str,
    pub(crate) on: &'a Names,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    pub(crate) outcome: &'a str,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    #[serde(flatten)]
    by: Option<By>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(flatten)]
    event: Event<'a>,
}

impl Audit {
    /// # Errors
    /// When the file cannot be opened, or the thread does not start.
    pub(crate) fn start(to: &AuditTo, log: &Log) -> Result<Self, Failure> {
        let to = match to {
            AuditTo::Off => return Ok(Self(None)),
            AuditTo::Log => To::Log {
                written: AtomicU64::new(0),
                lost: AtomicU64::new(0),
            },
            AuditTo::File(path) => {
                let sink = Sink::File(log::appended(path)?);
                let (log, name) = (log.clone(), path.display().to_string());
                let report = move |error: Option<io::Error>| match error {
                    Some(error) => {
                        let why = format!(
                            "lines of the audit are lost: {name}: {error}: see whether its disk has room"
                        );
                        log.at(Level::Error, why);
                    }
                    None => log.line(format!("lines of the audit are written again: {name}")),
                };
                To::File(Lines::start("audit", sink, report).map_err(Failure::Runtime)?)
            }
        };
        Ok(Self(Some(Arc::new(On {
            to,
            log: log.clone(),
            reports_from: Mutex::default(),
        }))))
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a line. A line that finds no room is lost, and counted.
    pub(crate) fn note(&self, caller: &Caller, event: Event<'_>) {
        let Some(on) = self.0.as_deref() else {
            return;
        };
        let line = Line {
            time: log::now(),
            by: caller.by,
            role: caller.role.map(role),
            event,
        };
        // Only a map with keys that are not strings can fail, and there is none.
        let line = serde_json::to_string(&line).unwrap_or_default();
        let has_room = match &on.to {
            To::File(lines) => lines.write(line),
            To::Log { written, lost } => {
                let has_room = on.log.at(Level::Notice, format!("audit {line}"));
                let count = if has_room { written } else { lost };
                count.fetch_add(1, Ordering::Relaxed);
                has_room
            }
        };
        if !has_room && on.reports() {
            let why = "lines of the audit are lost: more come than are written: see selvedge_audit_lines_total";
            on.log.at(Level::Error, why);
        }
    }

    /// Opens the file anew; `None` without a file.
    pub(crate) async fn reopen(&self) -> Option<io::Result<()>> {
        match &self.0.as_ref()?.to {
            To::File(lines) => Some(lines.reopen().await),
            To::Log { .. } => None,
        }
    }

    /// Waits until all lines are written.
    pub(crate) async fn flush(&self) {
        if let Some(To::File(lines)) = self.0.as_ref().map(|it| &it.to) {
            lines.flush().await;
        }
    }

    /// The numbers of written and of lost lines.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let load = |it: &AtomicU64| it.load(Ordering::Relaxed);
        match self.0.as_ref().map(|it| &it.to) {
            None => (0, 0),
            Some(To::File(lines)) => lines.counts(),
            Some(To::Log { written, lost }) => (load(written), load(lost)),
        }
    }
}

impl On {
    /// Returns true if the log is to have a line about a want of room: a queue that is full, and then not, and then full
    /// again, does not fill the log.
    fn reports(&self) -> bool {
        let from = self.reports_from.lock();
        let mut from = from.unwrap_or_else(PoisonError::into_inner);
        let is_due = from.is_none_or(|it| it <= later(Duration::ZERO));
        if is_due {
            *from = Some(later(PACE));
        }
        is_due
    }
}

impl Caller {
    pub(crate) fn signal(signal: &'static str) -> Self {
        Self {
            by: Some(By::Signal { signal }),
            ..Self::default()
        }
    }

    /// Notes names in the body of the request.
    pub(crate) fn notes<'a>(&self, kind: &str, names: impl IntoIterator<Item = &'a str>) {
        let mut all: Vec<Value> = names.into_iter().take(NAMES + 1).map(name).collect();
        if all.len() > NAMES {
            all.truncate(NAMES);
            all.push("..".into());
        }
        let names = Names::from_iter([(kind.to_owned(), Value::Array(all))]);
        // A request has one body.
        self.names.set(names).ok();
    }
}

/// A name, not too long for a line, and without characters that control a terminal.
pub(crate) fn name(name: &str) -> Value {
    let short: String = name.chars().take(CHARACTERS).collect();
    short.replace(char::is_control, "\u{fffd}").into()
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Open => "open",
        Role::Full => "full",
        Role::Reader => "reader",
        Role::Stranger => "none",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Read as _};
    use std::os::fd::AsRawFd as _;

    use super::{Audit, Caller, Event, Names, name};
    use crate::config::{AuditTo, LogTo};
    use crate::log::Log;

    #[test]
    fn a_name_does_not_control_a_terminal() {
        assert_eq!(name("a\u{9b}2J\u{7f}\n"), "a\u{fffd}2J\u{fffd}\u{fffd}");
    }

    #[tokio::test]
    async fn a_queue_that_is_full_again_and_again_does_not_fill_the_log() {
        let (mut reader, writer) = io::pipe().unwrap();
        let name = format!("selvedge-audit-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let log = Log::start(&LogTo::File(path.clone())).unwrap();
        let pipe = format!("/proc/self/fd/{}", writer.as_raw_fd());
        let audit = Audit::start(&AuditTo::File(pipe.into()), &log).unwrap();
        let has_room = || {
            let lost = audit.counts().1;
            let event = Event {
                call: "reload",
                on: &Names::new(),
                status: None,
                outcome: "done",
            };
            audit.note(&Caller::default(), event);
            audit.counts().1 == lost
        };
        for _ in 0..3 {
            while has_room() {}
            reader.read_exact(&mut [0; 16_384]).unwrap();
            while !has_room() {}
        }
        log.flush().await;
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        fs::remove_file(path).unwrap();
    }
}
