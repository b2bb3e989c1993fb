//! The `selvedge` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod cli;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Coordination protocols for meshes and homes: watch them run, run one node or the routines of a
/// home, check what is promised and what the papers claim. Without a command, the demo runs.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    demo: cli::demo::Demo,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(cli::demo::Demo),
    Home(cli::home::Home),
    Node(cli::node::Node),
    Key(cli::key::Key),
    Check(cli::check::Check),
    Claims(cli::claims::Claims),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match arguments.command {
        None => arguments.demo.run(),
        Some(Command::Demo(demo)) => demo.run(),
        Some(Command::Home(home)) => home.run(),
        Some(Command::Node(node)) => node.run(),
        Some(Command::Key(key)) => key.run(),
        Some(Command::Check(check)) => check.run(),
        Some(Command::Claims(claims)) => claims.run(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("selvedge: {error}");
            error.status()
        }
    }
}
