//! `selvedge-faas local`: gateways and followers on this machine, to try functions with.

use core::time::Duration;
use std::process::ExitCode;

use clap::Args;

use super::Failure;
use super::world::{Setting, World};

/// How long the processes may take to come up.
const BEGINNING: Duration = Duration::from_secs(60);

/// Run gateways and followers as processes on this machine, until Ctrl-C, to try functions with
///
/// What they hold goes with them.
#[derive(Debug, Args)]
pub(crate) struct Local {
    /// How many gateways
    #[arg(long, default_value = "3")]
    gateways: u16,
    /// How many followers, in units of up to seven
    #[arg(long, default_value = "5")]
    followers: u64,
    /// Where the first gateway listens, at 127.0.0.1; the others listen at the ports that follow
    #[arg(long, default_value = "1883")]
    port: u16,
    /// For how many milliseconds a follower is awake in each period
    #[arg(long, default_value = "500")]
    active: u64,
    /// For how many milliseconds it sleeps
    #[arg(long, default_value = "1500")]
    asleep: u64,
    /// How many bytes of memory a function may take
    #[arg(long, default_value = "2097152")]
    memory: u32,
    /// Show what the processes say
    #[arg(long, short)]
    verbose: bool,
}

impl Local {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        if self.port.checked_add(self.gateways).is_none() {
            return Err(Failure::Usage("too few ports: say a lower --port"));
        }
        let world = World::start(Setting {
            gateways: self.gateways.into(),
            followers: self.followers,
            active: self.active,
            asleep: self.asleep,
            port: Some(self.port),
            follower_flags: vec!["--memory".into(), self.memory.to_string()],
            is_verbose: self.verbose,
            ..Setting::default()
        })?;
        let all = u32::try_from(self.followers).unwrap_or(u32::MAX);
        let (status, _) = world.wait_until(BEGINNING, |it| it.followers >= all && it.units > 0)?;
        let (gateways, followers, units) = (self.gateways, status.followers, status.units);
        println!(
            "{gateways} gateways, and {followers} followers in {units} units: submit functions with"
        );
        println!("--gateway {}, and end this with Ctrl-C", world.address(1));
        // Without a handler Ctrl-C would end this process alone, and leave the directory.
        wait_for_ctrl_c()?;
        drop(world);
        Ok(ExitCode::SUCCESS)
    }
}

fn wait_for_ctrl_c() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Signal)?;
    let pressed = runtime.block_on(tokio::signal::ctrl_c());
    pressed.map_err(Failure::Signal)
}
