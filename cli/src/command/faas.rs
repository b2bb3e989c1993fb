//! `selvedge faas`: hands over to `selvedge-faas`.
//!
//! It is a program of its own, in a workspace of its own, because it has a broker and a database inside.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

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

impl Faas {
    /// Its exit status is that of `selvedge-faas`, which has said why.
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let here = env::current_exe().map_err(Failure::NoFaas)?;
        let mut faas = match cargo() {
            Some(cargo) => built_by(&cargo, &here),
            None => Command::new(sibling(&here, "selvedge-faas")),
        };
        faas.args(self.arguments);
        become_it(faas)
    }
}

/// Ctrl-C and other signals are for the other program alone: it takes this one's place.
#[cfg(unix)]
fn become_it(mut faas: Command) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt as _;
    Err(Failure::NoFaas(faas.exec()))
}

#[cfg(not(unix))]
fn become_it(mut faas: Command) -> Result<ExitCode, Failure> {
    let status = faas.status().map_err(Failure::NoFaas)?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Under `cargo run` it is built when it is asked for, in the same profile.
fn built_by(cargo: &OsString, here: &Path) -> Command {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hosts/faas/Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--manifest-path"]);
    command.arg(manifest).args(profile(here)).arg("--");
    command
}
