//! The subcommands. Each runs to its end and returns whether everything that it checked held.

pub(crate) mod check;
pub(crate) mod claims;
pub(crate) mod live;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use selvedge_lab::claims::Fault;
use selvedge_lab::claims::celect::e11::SettingError;
use selvedge_lab::claims::celect::e11::live::LiveError;
use selvedge_sim::check::ExploreError;
use thiserror::Error;

/// An error that ended a command early. One line names the request, the fault, and the remedy.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The asynchronous runtime did not start.
    #[error("cannot start the runtime: {0}: see whether this process may open more files")]
    Runtime(io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}: choose another place with --out", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The terminal was closed.
    #[error("cannot write to the standard output: {0}: run it with an open one")]
    Output(io::Error),
    /// No list has that name.
    #[error("there are no checks named {name}: known are {known}, and each scenario by its name")]
    UnknownCheck { name: String, known: String },
    /// More than one scenario to explore.
    #[error("the Explorer serves one scenario; name one of these:\n  {known}")]
    ExploreOne { known: String },
    /// The Explorer does not run.
    #[error(transparent)]
    Explore(#[from] ExploreError),
    /// No claim has that name.
    #[error("there are no claims named {name}: known are {known}")]
    UnknownClaim { name: String, known: String },
    /// The text of a setting to measure live is invalid.
    #[error(transparent)]
    Setting(SettingError),
    /// The live measurement failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The program that the measured nodes run does not exist.
    #[error(
        "cannot find {}, the program to measure: build it beside this one \
         (`cargo build --release -p selvedge-cli`)", .0.display()
    )]
    NoCommand(PathBuf),
    /// A simulation beside it failed.
    #[error("{0} could not be simulated: {1}: please report this")]
    Simulated(String, Fault),
    /// Only elections are measured live.
    #[error("--live is for celect alone: leave out {0}")]
    LiveNames(String),
    /// A file cannot be read.
    #[error("cannot read {}: {source}: check the name", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file is not a shard of this run.
    #[error("cannot merge {}: {why}", path.display())]
    NoShard { path: PathBuf, why: String },
    /// All scenarios of these lists take long.
    #[error("there is nothing quick to check: add --deep, or name other lists")]
    NothingToCheck,
}

impl Failure {
    /// The exit status: 2 for a wrong call, as for wrong flags, 1 for a later error.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            Self::UnknownCheck { .. }
            | Self::ExploreOne { .. }
            | Self::UnknownClaim { .. }
            | Self::NothingToCheck
            | Self::Setting(_)
            | Self::LiveNames(_) => ExitCode::from(2),
            Self::Runtime(_)
            | Self::Live(_)
            | Self::Explore(_)
            | Self::NoCommand(_)
            | Self::Simulated(..)
            | Self::Write { .. }
            | Self::Read { .. }
            | Self::NoShard { .. }
            | Self::Output(_) => ExitCode::FAILURE,
        }
    }
}

/// Names as help shows them.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|it| format!("`{it}`")).collect();
    names.join(", ")
}
