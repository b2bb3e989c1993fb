//! Settings that take effect while an agent runs: the keys, and the tags in its file. Files of the log and of the
//! audit are opened anew.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use selvedge_udp::{Handle, Tags};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::Failure;
use crate::audit::{Audit, Caller, Event, Names};
use crate::config::Settings;
use crate::growth::Founders;
use crate::log::{Level, Log};

/// The settings that take effect without another start.
const AT_ONCE: [&str; 3] = ["key", "group-reads-key", "tags"];

/// The places that settings come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The flags and the environment, which stand above the file.
    pub flags: Settings,
    /// A file in TOML.
    pub file: Option<PathBuf>,
}

impl Source {
    /// The settings as of now.
    ///
    /// # Errors
    /// When the file cannot be read, or a name or a value in it is wrong.
    pub fn settings(&self) -> Result<Settings, Failure> {
        let file = self.file.as_deref().map(Settings::read).transpose()?;
        Ok(self.flags.clone().over(file.unwrap_or_default()))
    }
}

/// The outcome for a part of the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It was read, and is in force.
    Applied,
    /// There is nothing to change.
    Unchanged,
    /// It stays as it was.
    Failed,
}

/// A part of the settings.
#[derive(Clone, Debug, Serialize)]
struct Part {
    part: &'static str,
    outcome: Outcome,
    detail: String,
}

/// The outcome of a reload.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Reloaded {
    parts: Vec<Part>,
    /// The settings that differ from those in force, and that the next start reads.
    at_next_start: Vec<String>,
}

/// Reads the settings again. Clones are of the same one.
#[derive(Clone, Debug)]
pub(crate) struct Reloader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    source: Source,
    /// Those in force. While one reload runs, others wait.
    settings: Mutex<Settings>,
    node: &'static Handle,
    founders: Founders,
    log: Log,
    audit: Audit,
}

impl Reloader {
    pub(crate) fn new(
        (source, settings): (Source, Settings),
        (node, founders): (&'static Handle, Founders),
        (log, audit): (Log, Audit),
    ) -> Self {
        Self(Arc::new(Shared {
            source,
            settings: Mutex::new(settings),
            node,
            founders,
            log,
            audit,
        }))
    }

    /// Reads the settings again, and applies those that can change, because a signal came.
    pub(crate) async fn reload_by(&self, signal: &'static str) {
        let reloaded = self.reload().await;
        let event = Event {
            call: "reload",
            on: &reloaded.names(),
            status: None,
            // As of a request: the names have the parts that failed.
            outcome: "done",
        };
        self.0.audit.note(&Caller::signal(signal), event);
    }

    /// Reads the settings again, and applies those that can change.
    pub(crate) async fn reload(&self) -> Reloaded {
        let it = &*self.0;
        let mut settings = it.settings.lock().await;
        let mut parts = Vec::new();
        let mut at_next_start = Vec::new();
        match it.source.settings() {
            Ok(next) => {
                parts.push(it.set_keys(&settings, &next).await);
                parts.push(it.set_tags(&mut settings, &next).await);
                at_next_start = settings.differing(&next);
                at_next_start.retain(|it| !AT_ONCE.contains(&&**it));
            }
            Err(failure) => {
                let detail = format!("the settings stay as they are: {failure}");
                parts.push(part("settings", Outcome::Failed, detail));
            }
        }
        // The log first: what follows is in its new file.
        parts.extend(opened("log", it.log.reopen().await));
        parts.extend(opened("audit", it.audit.reopen().await));
        for Part {
            outcome, detail, ..
        } in &parts
        {
            let level = match outcome {
                Outcome::Applied => Level::Notice,
                Outcome::Unchanged => Level::Info,
                Outcome::Failed => Level::Error,
            };
            it.log.at(level, detail);
        }
        Reloaded {
            parts,
            at_next_start,
        }
    }
}

impl Reloaded {
    /// The parts, for the audit.
    pub(crate) fn names(&self) -> Names {
        let of = |outcome| {
            let parts = self.parts.iter().filter(|it| it.outcome == outcome);
            parts.map(|it| it.part).collect::<Vec<_>>().into()
        };
        Names::from_iter([
            ("applied".to_owned(), of(Outcome::Applied)),
            ("failed".to_owned(), of(Outcome::Failed)),
        ])
    }
}

impl Shared {
    /// Gives the node the tags of the settings, if they changed.
    async fn set_tags(&self, settings: &mut Settings, next: &Settings) -> Part {
        let (outcome, detail) = if next.tags == settings.tags {
            // A request may have replaced tags that are in the file as they were.
            let detail = "the tags in the settings are as they were";
            (Outcome::Unchanged, detail.to_owned())
        } else {
            let mut tags: Tags = next.tags.iter().collect();
            self.founders.mark(&mut tags);
            match self.node.set_tags(tags).await {
                Ok(()) => {
                    settings.tags.clone_from(&next.tags);
                    let detail = "the tags are those in the settings";
                    (Outcome::Applied, detail.to_owned())
                }
                Err(error) => {
                    let detail = format!("the tags stay as they are: {error}");
                    (Outcome::Failed, detail)
                }
            }
        };
        part("tags", outcome, detail)
    }

    /// Gives the node the keys that the file has now.
    async fn set_keys(&self, settings: &Settings, next: &Settings) -> Part {
        let (outcome, detail) = match (&settings.key, &next.key) {
            (None, None) => {
                let detail = "this node sends in the clear, as before";
                (Outcome::Unchanged, detail.to_owned())
            }
            (None, Some(_)) => {
                let detail = "this node sends in the clear, and has its keys at the next start";
                (Outcome::Failed, detail.to_owned())
            }
            (Some(_), None) => {
                let detail = "the keys stay as they are: the settings name no key file";
                (Outcome::Failed, detail.to_owned())
            }
            (Some(_), Some(path)) => match self.read_keys(next, path).await {
                Ok(detail) => (Outcome::Applied, detail),
                Err(failure) => {
                    let detail = format!("the keys stay as they are: {failure}");
                    (Outcome::Failed, detail)
                }
            },
        };
        part("keys", outcome, detail)
    }

    /// Returns a line about the keys.
    async fn read_keys(&self, next: &Settings, path: &std::path::Path) -> Result<String, Failure> {
        let keys = next.keys(path)?;
        let names: Vec<String> = keys.names().map(|it| it.to_string()).collect();
        self.node.set_keys(keys).await?;
        let names = names.join(", ");
        Ok(format!("keys from now on: {names}; the first one seals"))
    }
}

const fn part(part: &'static str, outcome: Outcome, detail: String) -> Part {
    Part {
        part,
        outcome,
        detail,
    }
}

/// The part of a file of lines; `None` where there is none.
fn opened(name: &'static str, reopened: Option<io::Result<()>>) -> Option<Part> {
    Some(match reopened? {
        Ok(()) => {
            let detail = format!("the file of the {name} was opened anew");
            part(name, Outcome::Applied, detail)
        }
        Err(error) => {
            let detail = format!("the file of the {name} stays the former one: {error}");
            part(name, Outcome::Failed, detail)
        }
    })
}
