//! Commands about services, queues and counters, and looks at locks and elections.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use humantime::parse_duration;
use selvedge_client::{Agent, Instance};

use super::{Ask, Failure, given, output};

#[derive(Debug, Args)]
pub(crate) struct Resolve {
    service: String,
    /// Print them again at each change, until it is interrupted
    #[arg(long)]
    watch: bool,
    /// Print each instance as one line of JSON; with --watch, each list
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Holders {
    lock: String,
    /// Print each one as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Candidates {
    election: String,
    /// Print each one as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HandOver {
    election: String,
    /// The candidate: the number of its member, or its session as `candidates` prints it; the first one without it
    #[arg(long, value_name = "MEMBER|SESSION")]
    to: Option<String>,
    /// The wait for the leader's program to let go, up to 1h. One that does not leads on unless this is longer than its
    /// time to live
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    wait: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Queue {
    #[command(subcommand)]
    request: QueueRequest,
}

#[derive(Debug, Subcommand)]
enum QueueRequest {
    /// Append an item, and print the version of the map
    Push {
        name: String,
        /// The item; without one, the standard input
        value: Option<String>,
        /// The priority: smaller ones are taken first
        #[arg(long, value_name = "N", default_value_t = Agent::PRIORITY)]
        priority: u32,
    },
    /// Take the item of the smallest priority, the oldest among equal ones, and print it; status 124 when none came
    Pop {
        name: String,
        /// The wait for an item, up to 1h
        #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
        wait: Duration,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Counter {
    #[command(subcommand)]
    request: CounterRequest,
}

#[derive(Debug, Subcommand)]
enum CounterRequest {
    /// Print the number
    Get { name: String },
    /// Add to it, and print the sum
    Add {
        name: String,
        #[arg(default_value_t = 1, allow_negative_numbers = true)]
        summand: i64,
    },
}

impl Ask for Resolve {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        if !self.watch {
            let instances = agent.resolve(&self.service).await?;
            match self.json {
                true => instances.iter().try_for_each(output::json)?,
                false => table(&instances)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        let mut events = agent.follow(&self.service).await?;
        loop {
            let instances = events.next().await?;
            match self.json {
                true => output::json(&instances)?,
                false => table(&instances)?,
            }
        }
    }
}

impl Ask for Holders {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let places = agent.lock_places(&self.lock).await?;
        match self.json {
            true => places.iter().try_for_each(output::json)?,
            false => {
                let rows = places.iter().map(|it| {
                    let state = match (it.has_it, it.is_shared) {
                        (true, false) => "has it",
                        (true, true) => "shares it",
                        (false, false) => "waits",
                        (false, true) => "waits to share",
                    };
                    let (session, token) = (it.session.clone(), it.token.to_string());
                    [it.member.to_string(), session, token, state.to_owned()]
                });
                output::table(["MEMBER", "SESSION", "TOKEN", "STATE"], rows)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Candidates {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let candidates = agent.candidates(&self.election).await?;
        match self.json {
            true => candidates.iter().try_for_each(output::json)?,
            false => {
                let rows = candidates.iter().map(|it| {
                    let session = it.session.clone().unwrap_or_default();
                    let value = output::shown(&it.value);
                    [it.priority.to_string(), session, value]
                });
                output::table(["PRIORITY", "SESSION", "VALUE"], rows)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for HandOver {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let Self { election, to, wait } = self;
        let session = match to {
            // The first one of that member.
            Some(member) if member.parse::<u64>().is_ok() => {
                let start = format!("{member}.");
                let candidates = agent.candidates(&election).await?.into_iter();
                let mut sessions = candidates.filter_map(|it| it.session);
                let found = sessions.find(|it| it.starts_with(&start));
                Some(found.ok_or(Failure::NoCandidate(member))?)
            }
            to => to,
        };
        let agent = agent.clone().with_wait(wait);
        let handed = agent.hand_over_election(&election, session.as_deref());
        handed.await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Queue {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        match self.request {
            QueueRequest::Push {
                name,
                value,
                priority,
            } => {
                let value = given(value)?;
                let version = match priority {
                    Agent::PRIORITY => agent.push(&name, value).await?,
                    _ => agent.push_with_priority(&name, priority, value).await?,
                };
                output::line(&version.to_string())?;
            }
            QueueRequest::Pop { name, wait } => {
                output::bytes(&agent.clone().with_wait(wait).pop(&name).await?)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Counter {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let number = match self.request {
            CounterRequest::Get { name } => agent.count(&name).await?,
            CounterRequest::Add { name, summand } => agent.add(&name, summand).await?,
        };
        output::line(&number.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn table(instances: &[Instance]) -> Result<(), Failure> {
    let rows = instances
        .iter()
        .map(|it| [it.instance.to_string(), it.address.clone()]);
    output::table(["INSTANCE", "ADDRESS"], rows)
}
