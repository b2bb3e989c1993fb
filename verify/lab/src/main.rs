//! The `selvedge-lab` command: what `selvedge check` and `selvedge claims` run.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod command;

use std::process::ExitCode;

use clap::Parser;

/// Check what is promised, and measure what the papers claim
#[derive(Debug, Parser)]
#[command(name = "selvedge-lab", version)]
enum Command {
    Check(command::check::Check),
    Claims(command::claims::Claims),
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Check(check) => check.run(),
        Command::Claims(claims) => claims.run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("selvedge-lab: {error}");
            error.status()
        }
    }
}
