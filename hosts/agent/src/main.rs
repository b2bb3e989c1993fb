//! The `selvedge-agent` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use selvedge_agent::config::Settings;
use selvedge_agent::{Failure, run};

/// A member of the mesh for the programs of one host: locks, elections, maps and services over HTTP
#[derive(Debug, Parser)]
#[command(name = "selvedge-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent of this host
    Run(Box<Run>),
}

#[derive(Debug, Args)]
struct Run {
    /// File in TOML with the settings, by the names of the flags
    #[arg(long, value_name = "FILE", env = "SELVEDGE_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

impl Run {
    fn run(self) -> Result<(), Failure> {
        let file = match &self.config {
            Some(path) => Settings::read(path)?,
            None => Settings::default(),
        };
        run::run(&self.settings.over(file))
    }
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(it) => it.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("selvedge-agent: {failure}");
            ExitCode::FAILURE
        }
    }
}
