//! The `selvedge` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod command;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Coordination protocols for meshes and homes: watch them run, run one node or the routines of a
/// home, check the protocols' promises and the papers' claims. Without a command, the demo runs.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: command::demo::Mesh,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(command::demo::Demo),
    Home(command::home::Home),
    Node(command::node::Node),
    Key(command::key::Key),
    Keys(command::key::Keys),
    /// Try every order of events within bounds: Selvedge's rules hold, the published rules break
    Check(command::lab::Lab),
    /// Repeat the papers' experiments and compare the figures: a table, claims.json and a page of
    /// plots
    Claims(command::lab::Lab),
    Agent(command::hosts::Agent),
    Faas(command::hosts::Faas),
    Hub(command::hosts::Hub),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let held = |held| {
        if held {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    };
    let ended = match arguments.command {
        None => arguments.demo.run().map(held),
        Some(Command::Demo(demo)) => demo.run().map(held),
        Some(Command::Home(home)) => home.run().map(held),
        Some(Command::Node(node)) => node.run().map(held),
        Some(Command::Key(key)) => key.run().map(held),
        Some(Command::Keys(keys)) => keys.run().map(held),
        Some(Command::Check(lab)) => lab.run("check"),
        Some(Command::Claims(lab)) => lab.run("claims"),
        Some(Command::Agent(agent)) => agent.run(),
        Some(Command::Faas(faas)) => faas.run(),
        Some(Command::Hub(hub)) => hub.run(),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("selvedge: {error}");
        error.status()
    })
}
