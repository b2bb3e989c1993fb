//! `selvedge faas` and `selvedge hub`: hand over to `selvedge-faas` and `selvedge-hub`.
//!
//! They are programs of their own, in a workspace of their own, because they have brokers, databases and
//! servers inside.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::{env, io};

use clap::Args;

use super::Failure;
use super::lab::{cargo, profile, sibling};

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

/// Run a home of real devices: routines, triggers, and a page to look at
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

impl Faas {
    /// Its exit status is that of `selvedge-faas`, which has said why.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        hand_over("faas", self.arguments)
    }
}

impl Hub {
    /// Its exit status is that of `selvedge-hub`, which has said why.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        hand_over("hub", self.arguments)
    }
}

/// The program of this host takes over.
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

/// Ctrl-C and other signals are for the other program alone: it takes this one's place.
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

/// Under `cargo run` it is built when it is asked for, in the same profile.
fn built_by(cargo: &OsString, here: &Path, host: &str) -> Command {
    let manifest = format!("../{host}/Cargo.toml");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest);
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--manifest-path"]);
    command.arg(manifest).args(profile(here)).arg("--");
    command
}
