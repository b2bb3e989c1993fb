//! `selvedge-faas measure`: times, loads and rates, as tables in Markdown.

mod crowd;
mod duty;
mod energy;
mod load;
mod rate;
mod stream;
mod times;

use std::process::ExitCode;
use std::{fs, thread};

use clap::{Args, Subcommand};
use selvedge_faas::client;

use super::Failure;

/// Measure gateways and followers that it starts as processes, and print tables in Markdown
///
/// Exit status: 0 if each task had the right answer, and, for `rate`, if a rate is within the
/// limit; else 1. Other work of this machine affects all figures.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Duty(duty::Duty),
    Crowd(crowd::Crowd),
    Rate(rate::Rate),
}

impl Measure {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let is_right = match self.what {
            What::Duty(it) => it.run()?,
            What::Crowd(it) => it.run()?,
            What::Rate(it) => it.run()?,
        };
        Ok(match is_right {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }
}

/// The seed argument.
#[derive(Clone, Copy, Debug, Args)]
struct SeedArgs {
    /// Seed of the times at which followers begin their periods, and tasks are submitted
    #[arg(long)]
    seed: Option<u64>,
}

impl SeedArgs {
    fn seed(self) -> Result<u64, Failure> {
        Ok(match self.seed {
            Some(seed) => seed,
            None => client::any_id()?.0,
        })
    }
}

/// The machine and the build of the measurement, as one line.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|it| it.strip_prefix("model name"));
    let model = model
        .and_then(|it| it.split_once(':'))
        .map(|it| it.1.trim());
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let build = match cfg!(debug_assertions) {
        true => "debug build",
        false => "release build",
    };
    let model = model.unwrap_or("a machine without a name");
    format!("{model}, {cores} cores, {build}; load before: {load}")
}
