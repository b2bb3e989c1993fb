//! `selvedge-faas follower`.

use core::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use selvedge_core::{NodeId, Span};
use selvedge_faas::Limits;
use selvedge_faas::executor::{Executor, Hash, Wasm};
use selvedge_faas::follower::{self, Options, Room};
use selvedge_pcm::DutyCycle;
use selvedge_pcm::follower::Config;

use super::{ChildArgs, Failure, FindArgs};

/// Run a follower: it sleeps most of the time, and runs functions while it is awake
#[derive(Debug, Args)]
pub(crate) struct Follower {
    /// Id of this follower; each node has its own
    #[arg(long)]
    id: u64,
    #[command(flatten)]
    find: FindArgs,
    /// Time in each period for which it can be used: 500ms, 1s
    #[arg(long, value_parser = milliseconds, default_value = "1s")]
    active: u32,
    /// Time in each period for which it does other work
    #[arg(long, value_parser = milliseconds, default_value = "0s")]
    busy: u32,
    /// Time in each period for which it sleeps
    #[arg(long, value_parser = milliseconds, default_value = "9s")]
    asleep: u32,
    /// Longest time of a function
    #[arg(long, value_parser = milliseconds, default_value = "5s")]
    time: u32,
    /// Bytes of memory that a function may take; equal at all followers
    #[arg(long, default_value = "2097152")]
    memory: u32,
    /// Fuel that a function may take, about one for each instruction; equal at all followers
    #[arg(long, default_value = "100000000")]
    fuel: u64,
    /// Directory for modules, which the follower uses again after a restart. Each follower needs
    /// its own: two would remove each other's files
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Bytes of modules that stay there; the oldest are removed first
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "4194304",
        requires = "state"
    )]
    state_bytes: u64,
    /// Executor of functions
    #[arg(long, value_enum, default_value = "wasm")]
    executor: ExecutorArg,
    /// Log to the standard error when a phase begins, where modules come from, and the counters
    /// until then
    #[arg(long, short)]
    verbose: bool,
    #[command(flatten)]
    child: ChildArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExecutorArg {
    /// WebAssembly
    Wasm,
    /// Nothing: the value of a function is the SHA-256 of its code and its modules. For tests
    Hash,
}

impl Follower {
    pub(crate) fn run(self) -> Result<Infallible, Failure> {
        self.child.obey();
        let duty = DutyCycle {
            active_ms: self.active,
            busy_ms: self.busy,
            asleep_ms: self.asleep,
        };
        let id = NodeId(self.id);
        let options = Options {
            id,
            gateways: self.find.find(id)?,
            access: self.find.access.access()?,
            config: Config::new(duty)
                .with_time(Span::millis(self.time.into()))
                .with_memory(self.memory),
            room: self.state.map(|dir| Room {
                dir,
                bytes: self.state_bytes,
            }),
            is_verbose: self.verbose,
        };
        let executor: Arc<dyn Executor> = match self.executor {
            ExecutorArg::Hash => Arc::new(Hash),
            ExecutorArg::Wasm => {
                let limits = Limits::new()
                    .with_memory(self.memory)
                    .with_fuel(self.fuel)
                    .with_result(options.config.result);
                Arc::new(Wasm::new(limits, self.verbose)?)
            }
        };
        Ok(follower::run(options, executor)?)
    }
}

/// A time with its unit, in milliseconds.
fn milliseconds(text: &str) -> Result<u32, &'static str> {
    let units = [("ms", 1), ("s", 1_000), ("min", 60_000)];
    let unit = units
        .iter()
        .find_map(|it| Some((text.strip_suffix(it.0)?, it.1)));
    let number = unit.and_then(|it| Some((it.0.parse::<u32>().ok()?, it.1)));
    let time = number.and_then(|it| it.0.checked_mul(it.1));
    time.ok_or("give a whole number and ms, s or min, as in 500ms")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        follower: Follower,
    }

    /// A client compiles a module within those limits, to see whether followers would run it.
    #[test]
    fn a_follower_that_says_nothing_has_the_limits_of_the_library() {
        let flags = "x --id 101 --gateway 1=127.0.0.1:1883";
        let follower = Flags::parse_from(flags.split(' ')).follower;
        let limits = Limits::new();
        assert_eq!(
            (follower.memory, follower.fuel),
            (limits.memory, limits.fuel)
        );
    }

    #[test]
    fn times_have_a_unit() {
        for (text, time) in [("0s", 0), ("500ms", 500), ("9s", 9_000), ("2min", 120_000)] {
            assert_eq!(milliseconds(text), Ok(time), "{text}");
        }
        for text in ["", "9", "s", "-1s", "1.5s", "99999999999s", "9999999min"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }
}
