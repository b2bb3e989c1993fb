//! Commands about maps.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use humantime::parse_duration;
use selvedge_client::{Agent, Change, Entry, MapEvent};

use super::{Ask, Failure, given, output};

#[derive(Debug, Args)]
pub(crate) struct Maps {
    #[command(subcommand)]
    request: Request,
}

#[derive(Debug, Subcommand)]
enum Request {
    /// Print the value of an entry
    Get {
        map: String,
        key: String,
        /// Print its version instead: 0 if there is none
        #[arg(long)]
        version: bool,
    },
    /// Set an entry, and print its version
    Put {
        map: String,
        key: String,
        /// The value; without one, the standard input
        value: Option<String>,
        /// The time after which the entry ends, such as 10s
        #[arg(long, value_name = "TIME", value_parser = parse_duration)]
        ttl: Option<Duration>,
    },
    /// Set an entry if it has this version (0: if it is absent), and print its new version
    Cas {
        map: String,
        key: String,
        version: u64,
        /// The value; without one, the standard input
        value: Option<String>,
    },
    /// Remove an entry, and print the version of the map
    Del {
        map: String,
        key: String,
        /// Only if the entry has this version
        #[arg(long)]
        version: Option<u64>,
    },
    /// List the entries
    List {
        map: String,
        /// Only keys that begin with it
        #[arg(long, default_value = "")]
        prefix: String,
        /// Print each entry as one line of JSON
        #[arg(long)]
        json: bool,
    },
    /// Report all present entries, then changes until it is interrupted
    Watch {
        map: String,
        /// Only keys that begin with it
        #[arg(long, default_value = "")]
        prefix: String,
        /// Begin with the changes after this version, not with all entries
        #[arg(long, value_name = "VERSION")]
        since: Option<u64>,
        /// Print each report as one line of JSON
        #[arg(long)]
        json: bool,
    },
}

impl Ask for Maps {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        match self.request {
            Request::Get { map, key, version } => {
                match (agent.map(&map).get(&key).await?, version) {
                    (Some((_, version)), true) => output::line(&version.to_string())?,
                    (None, true) => output::line("0")?,
                    (Some((value, _)), false) => output::bytes(&value)?,
                    (None, false) => return Err(Failure::NoEntry(key)),
                }
            }
            Request::Put {
                map,
                key,
                value,
                ttl,
            } => {
                let (map, value) = (agent.map(&map), given(value)?);
                let version = match ttl {
                    Some(ttl) => map.put_for(&key, value, ttl).await?,
                    None => map.put(&key, value).await?,
                };
                output::line(&version.to_string())?;
            }
            Request::Cas {
                map,
                key,
                version,
                value,
            } => {
                let value = given(value)?;
                let version = agent
                    .map(&map)
                    .compare_and_set(&key, version, value)
                    .await?;
                output::line(&version.to_string())?;
            }
            Request::Del { map, key, version } => {
                let version = agent.map(&map).delete(&key, version).await?;
                output::line(&version.to_string())?;
            }
            Request::List { map, prefix, json } => list(agent, &map, &prefix, json).await?,
            Request::Watch {
                map,
                prefix,
                since,
                json,
            } => {
                watch(agent, &map, &prefix, since, json).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Lists in parts, each of its own version: answers are limited.
async fn list(agent: &Agent, map: &str, prefix: &str, json: bool) -> Result<(), Failure> {
    let mut all: Vec<Entry> = Vec::new();
    loop {
        let after = all.last().map(|it| it.key.as_str());
        let part = agent.map(map).list(prefix, after).await?;
        // An agent that lists nothing more lists no more.
        let is_last = part.is_last || part.entries.is_empty();
        all.extend(part.entries);
        if is_last {
            break;
        }
    }
    if json {
        return all.iter().try_for_each(output::json);
    }
    let rows = all.iter().map(|it| {
        let session = it.session.clone().unwrap_or_default();
        [
            it.key.clone(),
            it.version.to_string(),
            session,
            output::shown(&it.value),
        ]
    });
    output::table(["KEY", "VERSION", "SESSION", "VALUE"], rows)
}

async fn watch(
    agent: &Agent,
    map: &str,
    prefix: &str,
    since: Option<u64>,
    json: bool,
) -> Result<(), Failure> {
    let mut events = agent.map(map).watch(prefix, since).await?;
    loop {
        let event = events.next().await?;
        match &event {
            event if json => output::json(event)?,
            MapEvent::Changed { changes, .. } => {
                changes.iter().try_for_each(|it| output::line(&text(it)))?;
            }
            MapEvent::Compacted => {
                output::line("changes are missing here: all present entries follow")?;
            }
            _ => {}
        }
    }
}

fn text(
    Change {
        key,
        version,
        entry,
    }: &Change,
) -> String {
    match entry {
        Some(entry) => format!("{version} {key} = {}", output::shown(&entry.value)),
        None => format!("{version} {key} was removed"),
    }
}
