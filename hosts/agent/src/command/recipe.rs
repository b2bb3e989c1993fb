//! Commands about services, queues and counters.

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
    },
    /// Take the oldest item and print it; status 124 when none came
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

impl Ask for Queue {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        match self.request {
            QueueRequest::Push { name, value } => {
                let version = agent.push(&name, given(value)?).await?;
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
