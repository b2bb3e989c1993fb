//! The commands that are clients of a running agent.

mod child;
mod hold;
mod map;
mod mesh;
mod output;
mod query;
mod recipe;

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use selvedge_client::{Agent, Error, Kind};

/// The exit status of a call that cannot be, as of the parser of arguments.
const WRONG: u8 = 2;
/// The exit status when a comparison failed.
const MISMATCH: u8 = 3;
/// The exit status when a hold was lost: a temporary failure in `sysexits.h`.
const LOST: u8 = 75;
/// The exit status when a wait was over, as of `timeout`.
const OVER: u8 = 124;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the members of the mesh
    Members(To<mesh::Members>),
    /// Print the state of the agent
    Info(To<mesh::Info>),
    /// Report members, leaders and messages until it is interrupted
    Monitor(To<mesh::Monitor>),
    /// Let the agent leave the mesh and end
    Leave(To<mesh::Leave>),
    /// Let the agent read its settings again, as SIGHUP does; status 1 when a part of them failed
    Reload(To<mesh::Reload>),
    /// Report that a member has failed for certain
    Confirm(To<mesh::Confirm>),
    /// Send a message to all members
    Event(To<mesh::Event>),
    /// Ask all members, and print the answers of the programs there
    Query(To<query::Query>),
    /// Run a program for each question with a name, and send its output as the answer
    Answer(To<query::Answer>),
    /// Replace the tags of the agent
    Tags(To<mesh::Tags>),
    /// Change the nodes that hold maps
    Nodes(To<mesh::Nodes>),
    /// Read and change a map
    Map(To<map::Maps>),
    /// Run a program while a lock is held, of one name or of several
    Lock(To<hold::Lock>),
    /// List the holders of a lock, and the requests that wait for it
    Holders(To<recipe::Holders>),
    /// Run a program while the agent leads an election
    Elect(To<hold::Elect>),
    /// List the candidates of an election that wait
    Candidates(To<recipe::Candidates>),
    /// Let another candidate lead an election whose leader uses this agent
    HandOver(To<recipe::HandOver>),
    /// Run a program while a permit is held
    Semaphore(To<hold::Semaphore>),
    /// List an address of a service: while a program runs, or until it is interrupted
    Register(To<hold::Register>),
    /// List the addresses of a service
    Resolve(To<recipe::Resolve>),
    /// Append to a queue, and take from it
    Queue(To<recipe::Queue>),
    /// Read a counter, and add to it
    Counter(To<recipe::Counter>),
}

/// A request, and the agent that gets it.
#[derive(Debug, Args)]
pub(crate) struct To<T: Args> {
    #[command(flatten)]
    request: T,
    /// The agent, as http://HOST:PORT or unix:/PATH
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "SELVEDGE_AGENT",
        default_value = "http://127.0.0.1:7780",
        global = true
    )]
    agent: String,
    /// A file with the token that the agent asks for
    #[arg(
        long,
        value_name = "FILE",
        env = "SELVEDGE_AGENT_TOKEN_FILE",
        global = true
    )]
    token_file: Option<PathBuf>,
}

/// A request of a command.
pub(crate) trait Ask {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure>;
}

/// A command that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Agent(#[from] Error),
    #[error("{path}: {source}: name a file with the agent's token", path = .0.display(), source = .1)]
    TokenFile(PathBuf, io::Error),
    #[error("there is no entry {0:?}: list the entries")]
    NoEntry(String),
    #[error("no candidate {0:?} waits: see `selvedge-agent candidates`")]
    NoCandidate(String),
    #[error("{0}: {1}: give a program that can be run")]
    Program(String, io::Error),
    #[error("{0} may have been lost, so its program was ended: start it again")]
    Lost(String),
    #[error("the value: {0}: give it as an argument or on the standard input")]
    Input(io::Error),
    #[error("the output: {0}: write it to a file or a pipe that is open")]
    Output(io::Error),
    #[error("signals: {0}: start fewer programs")]
    Signals(io::Error),
    #[error("cannot start the runtime: {0}: check the limit on open files")]
    Runtime(io::Error),
}

/// Carries a command out, and returns the exit status of the process.
pub(crate) fn main(command: Command) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(command.run()),
        Err(error) => Err(Failure::Runtime(error)),
    };
    ended.unwrap_or_else(|failure| failure.report())
}

impl Command {
    /// Carries it out. Returns the status of a program that was run.
    async fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Members(it) => it.run().await,
            Self::Info(it) => it.run().await,
            Self::Monitor(it) => it.run().await,
            Self::Leave(it) => it.run().await,
            Self::Reload(it) => it.run().await,
            Self::Confirm(it) => it.run().await,
            Self::Event(it) => it.run().await,
            Self::Query(it) => it.run().await,
            Self::Answer(it) => it.run().await,
            Self::Tags(it) => it.run().await,
            Self::Nodes(it) => it.run().await,
            Self::Map(it) => it.run().await,
            Self::Lock(it) => it.run().await,
            Self::Holders(it) => it.run().await,
            Self::Elect(it) => it.run().await,
            Self::Candidates(it) => it.run().await,
            Self::HandOver(it) => it.run().await,
            Self::Semaphore(it) => it.run().await,
            Self::Register(it) => it.run().await,
            Self::Resolve(it) => it.run().await,
            Self::Queue(it) => it.run().await,
            Self::Counter(it) => it.run().await,
        }
    }
}

impl<T: Args + Ask> To<T> {
    async fn run(self) -> Result<ExitCode, Failure> {
        let mut agent = Agent::new(&self.agent)?;
        if let Some(path) = self.token_file {
            let token = fs::read_to_string(&path).map_err(|it| Failure::TokenFile(path, it))?;
            agent = agent.with_token(token.trim())?;
        }
        self.request.ask(&agent).await
    }
}

impl Failure {
    /// Writes it to the standard error, as one line, and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("selvedge-agent: {}", output::plain(&self.to_string()));
        ExitCode::from(match self {
            Self::Agent(error) => match (error, error.kind()) {
                (Error::Address(_) | Error::Token, _) | (_, Some(Kind::BadRequest)) => WRONG,
                (_, Some(Kind::Mismatch)) => MISMATCH,
                (_, Some(Kind::Timeout)) => OVER,
                _ => 1,
            },
            Self::Lost(_) => LOST,
            Self::NoCandidate(_) => MISMATCH,
            Self::TokenFile(..)
            | Self::NoEntry(_)
            | Self::Program(..)
            | Self::Input(_)
            | Self::Output(_)
            | Self::Runtime(_)
            | Self::Signals(_) => 1,
        })
    }
}

/// A value of the command line, or the standard input without one.
fn given(value: Option<String>) -> Result<Vec<u8>, Failure> {
    if let Some(value) = value {
        return Ok(value.into_bytes());
    }
    let mut bytes = Vec::new();
    io::stdin()
        .read_to_end(&mut bytes)
        .map_err(Failure::Input)?;
    Ok(bytes)
}
