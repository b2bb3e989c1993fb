//! The `selvedge-agent` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod command;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use selvedge_agent::config::Settings;
use selvedge_agent::reload::Source;
use selvedge_agent::{Failure, run};

/// A member of the mesh for the programs of one host, and commands that use it
#[derive(Debug, Parser)]
#[command(name = "selvedge-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent of this host: programs on it take locks, elect, register services and use maps
    ///
    /// Ctrl-C (SIGINT) or SIGTERM lets it leave. SIGHUP has it read its key file and the tags in its file of
    /// settings again, and open the files of its log and its audit anew.
    Run(Box<Run>),
    #[command(flatten)]
    Other(command::Command),
}

#[derive(Debug, Args)]
#[command(after_help = "Try it in two terminals:
  selvedge-agent run --id 1 --founders 1 --failures 0 --plain --forgets --listen 127.0.0.1:7001
  selvedge-agent lock printer -- sleep 10")]
struct Run {
    /// File in TOML with the settings, by the names of the flags
    #[arg(long, value_name = "FILE", env = "SELVEDGE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Run {
    fn run(self) -> Result<(), Failure> {
        run::run(Source {
            flags: self.settings,
            file: self.config,
        })
    }
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(it) => match it.run() {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("selvedge-agent: {failure}");
                ExitCode::FAILURE
            }
        },
        Command::Other(it) => command::main(it),
    }
}
