//! The `selvedge-lab` command, which `selvedge check` and `selvedge claims` run.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod command;

use std::process::ExitCode;

use clap::Parser;

/// Check the protocols' promises, and measure the papers' claims
#[derive(Debug, Parser)]
#[command(name = "selvedge-lab", bin_name = "selvedge", version)]
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
