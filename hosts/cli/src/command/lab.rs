//! `selvedge check` and `selvedge claims`: start `selvedge-lab`.
//!
//! The laboratory is a separate program, because it takes longer to build than everything else:
//! users of a node or of the demo do not wait for it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;

use super::Failure;

/// Arguments that are passed on unchanged.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Lab {
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
}

impl Lab {
    /// The exit status is the one of the laboratory, which has reported the reason.
    pub(crate) fn run(self, command: &str) -> Result<ExitCode, Failure> {
        let here = env::current_exe().map_err(Failure::NoLab)?;
        let mut lab = match cargo() {
            Some(cargo) => built_by(&cargo, &here),
            None => Command::new(sibling(&here, "selvedge-lab")),
        };
        let status = lab
            .arg(command)
            .args(self.arguments)
            .status()
            .map_err(Failure::NoLab)?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

/// The cargo that runs this command; `None` if it was started in another way.
pub(super) fn cargo() -> Option<OsString> {
    // Another package's build or test may have started this command, and then cargo would look for
    // the other program there.
    let is_ours = env::var("CARGO_PKG_NAME").is_ok_and(|it| it == env!("CARGO_PKG_NAME"));
    env::var_os("CARGO").filter(|_| is_ours)
}

/// The path of a program in the same directory.
pub(super) fn sibling(here: &Path, name: &str) -> PathBuf {
    here.with_file_name(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// The profile that this command was built in, as cargo's arguments.
pub(super) fn profile(here: &Path) -> Vec<OsString> {
    let folder = here.parent().and_then(Path::file_name).unwrap_or_default();
    match folder == "debug" {
        true => Vec::new(),
        false => vec!["--profile".into(), folder.into()],
    }
}

/// The cargo command that builds and runs the laboratory, in the same profile; under `cargo run`
/// only.
fn built_by(cargo: &OsString, here: &Path) -> Command {
    let mut command = Command::new(cargo);
    // Not quiet: to build it takes minutes at first.
    command.args(["run", "--package", "selvedge-lab"]);
    command.args(profile(here)).arg("--");
    command
}
