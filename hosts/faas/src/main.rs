//! The `selvedge-faas` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod command;

use core::convert::Infallible;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::command::Failure;

/// Functions on nodes that mostly sleep: gateways, followers and clients over MQTT.
#[derive(Debug, Parser)]
#[command(name = "selvedge-faas", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Gateway(command::gateway::Gateway),
    Follower(command::follower::Follower),
    Submit(command::submit::Submit),
    Top(command::top::Top),
    Local(command::local::Local),
    Demo(command::demo::Demo),
    Measure(command::measure::Measure),
}

fn main() -> ExitCode {
    let never = |never: Infallible| match never {};
    let ended: Result<ExitCode, Failure> = match Arguments::parse().command {
        Command::Gateway(it) => it.run().map(never),
        Command::Follower(it) => it.run().map(never),
        Command::Submit(it) => it.run(),
        Command::Top(it) => it.run(),
        Command::Local(it) => it.run(),
        Command::Demo(it) => it.run(),
        Command::Measure(it) => it.run(),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("selvedge-faas: {error}");
        error.status()
    })
}
