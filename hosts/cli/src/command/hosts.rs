//! `selvedge agent`, `selvedge faas` and `selvedge hub`: start `selvedge-agent`, `selvedge-faas` and `selvedge-hub`.
//!
//! They are separate programs in separate workspaces, because they contain brokers, databases and
//! servers.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, io};

use clap::Args;

use super::Failure;
use super::lab::{cargo, profile, sibling};

/// A member of the mesh for the programs of this host, and commands that use it: locks, elections, maps, services
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Agent {
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Run functions on nodes that mostly sleep: gateways, followers and clients over MQTT
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Faas {
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

/// Run a home of real devices: routines, triggers, and a web page
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Hub {
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Agent {
    /// The exit status is the one of `selvedge-agent`, which has reported the reason.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        hand_over("agent", self.arguments)
    }
}

impl Faas {
    /// The exit status is the one of `selvedge-faas`, which has reported the reason.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        hand_over("faas", self.arguments)
    }
}

impl Hub {
    /// The exit status is the one of `selvedge-hub`, which has reported the reason.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        hand_over("hub", self.arguments)
    }
}

/// Replaces this program by the program of `host`.
fn hand_over(host: &'static str, arguments: Vec<OsString>) -> Result<ExitCode, Failure> {
    let failed = |source| Failure::NoHost { host, source };
    let here = env::current_exe().map_err(failed)?;
    let mut program = match cargo() {
        Some(cargo) => built_by(&cargo, &here, host),
        None => Command::new(sibling(&here, &format!("selvedge-{host}"))),
    };
    program.args(arguments);
    become_it(program).map_err(failed)
}

/// Replaces this process, so Ctrl-C and other signals go to the other program alone.
#[cfg(unix)]
fn become_it(mut program: Command) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;
    Err(program.exec())
}

#[cfg(not(unix))]
fn become_it(mut program: Command) -> io::Result<ExitCode> {
    let status = program.status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The cargo command that builds and runs the program, in the same profile; under `cargo run` only.
fn built_by(cargo: &OsString, here: &Path, host: &str) -> Command {
    let manifest = format!("../{host}/Cargo.toml");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let mut command = Command::new(cargo);
    // Not quiet: to build it takes minutes at first.
    command.args(["run", "--manifest-path"]);
    command.arg(manifest).args(profile(here)).arg("--");
    command
}
