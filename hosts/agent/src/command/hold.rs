//! Commands that run a program while something is held.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use selvedge_client::{Agent, Error, Hold, Kind};

use super::{Ask, Failure, child};

/// The longest wait of one request.
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// The name; with several, all of them are held, or none
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Hold it together with others that share it, and never while another one has it alone
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Elect {
    name: String,
    /// The value that others see while it leads
    #[arg(long, default_value = "")]
    value: String,
    /// The priority: where no one leads, the smallest one does
    #[arg(long, value_name = "N", default_value_t = Agent::PRIORITY)]
    priority: u32,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Semaphore {
    name: String,
    /// The number of permits, which all programs give alike
    #[arg(long, value_name = "N")]
    permits: u32,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Args)]
pub(crate) struct Register {
    service: String,
    address: String,
    /// The number of the instance; without it, a random one
    #[arg(long, value_name = "N")]
    instance: Option<u64>,
    #[command(flatten)]
    ttl: Ttl,
    /// The program. Without one, the command runs until it is interrupted
    #[arg(last = true, value_name = "CMD")]
    program: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    ttl: Ttl,
    /// The wait until it is held, up to 1h; 0s is one attempt at a lock. Without it, there is no limit. Status 124 when it is over
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    wait: Option<Duration>,
    /// The program. Its environment has the fencing token, `SELVEDGE_FENCING_TOKEN=MAP:VERSION`. When the hold may be
    /// lost, it gets SIGTERM, after an eighth of the TTL (from 100 ms to 5 s) SIGKILL, and the status is 75. SIGINT,
    /// SIGTERM, SIGHUP and SIGQUIT are passed on. A shell that is CMD ends only itself: let it `exec` its last program
    #[arg(last = true, required = true, value_name = "CMD")]
    program: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Ttl {
    /// The time for which it is held after the agent has failed, from 1s to 1day
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10s")]
    ttl: Duration,
}

impl Ask for Lock {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let Self { names, shared, run } = self;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        run.while_held(agent, async |agent, ttl| match (&names[..], shared) {
            ([name], false) => agent.lock(name, ttl).await,
            ([name], true) => agent.lock_shared(name, ttl).await,
            (names, false) => agent.lock_all(names, ttl).await,
            (names, true) => agent.lock_all_shared(names, ttl).await,
        })
        .await
    }
}

impl Ask for Elect {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let (name, priority) = (&self.name, self.priority);
        self.run
            .while_held(agent, async |agent, ttl| {
                let value = self.value.clone();
                match priority {
                    Agent::PRIORITY => agent.campaign(name, value, ttl).await,
                    _ => {
                        let campaign = agent.campaign_with_priority(name, priority, value, ttl);
                        campaign.await
                    }
                }
            })
            .await
    }
}

impl Ask for Semaphore {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let Self { name, permits, run } = self;
        run.while_held(agent, async |agent, ttl| {
            agent.permit(&name, permits, ttl).await
        })
        .await
    }
}

impl Ask for Register {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let (instance, ttl) = (self.instance, self.ttl.ttl);
        let hold = agent
            .register(&self.service, instance, &self.address, ttl)
            .await?;
        match self.program.split_first() {
            Some((program, arguments)) => child::run(program, arguments, hold).await,
            None => child::stay(hold).await,
        }
    }
}

impl Run {
    /// Runs the program while there is a hold.
    async fn while_held(
        &self,
        agent: &Agent,
        take: impl AsyncFn(&Agent, Duration) -> Result<Hold, Error>,
    ) -> Result<ExitCode, Failure> {
        let agent = agent.clone().with_wait(self.wait.unwrap_or(HOUR));
        let hold = loop {
            match take(&agent, self.ttl.ttl).await {
                Err(error) if self.wait.is_none() && error.kind() == Some(Kind::Timeout) => {}
                taken => break taken?,
            }
        };
        // The parser requires a program.
        let (program, arguments) = self.program.split_first().unzip();
        child::run(
            program.unwrap_or(&OsString::new()),
            arguments.unwrap_or_default(),
            hold,
        )
        .await
    }
}
