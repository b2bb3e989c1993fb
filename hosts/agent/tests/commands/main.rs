//! Tests of the commands with an agent of their own.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic, and watch the program from outside"
)]

#[path = "../../../client/tests/all/fake.rs"]
mod fake;
mod held;
mod output;

use std::process::Stdio;

use fake::Fake;
use tokio::process::Command;

/// A call of a command with this agent, without a terminal.
fn command(fake: &Fake, arguments: &[&str]) -> Command {
    command_by(&[env!("CARGO_BIN_EXE_selvedge-agent")], fake, arguments)
}

/// The same, started by another program.
fn command_by(program: &[&str], fake: &Fake, arguments: &[&str]) -> Command {
    let (program, more) = program.split_first().unwrap();
    let mut command = Command::new(program);
    command
        .args(more)
        // The token of a server is not for its clients.
        .env("SELVEDGE_TOKEN_FILE", "/no/such/file")
        .env_remove("SELVEDGE_AGENT_TOKEN_FILE")
        .env("SELVEDGE_AGENT", &fake.address)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a command to its end: its status, standard output and standard error.
async fn run(fake: &Fake, arguments: &[&str]) -> (i32, String, String) {
    let output = command(fake, arguments).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().expect("an exit");
    (code, text(output.stdout), text(output.stderr))
}
