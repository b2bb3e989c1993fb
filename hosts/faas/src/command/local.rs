//! `selvedge-faas local`: gateways and followers on this machine, to try functions with.

use core::time::Duration;
use std::process::ExitCode;
use std::thread;

use clap::Args;

use super::Failure;
use super::interrupts::Interrupts;
use super::world::{Setting, World};

/// How long the processes may take to come up.
const BEGINNING: Duration = Duration::from_secs(60);
/// How often to look whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// Run gateways and followers as processes on this machine, until Ctrl-C or SIGTERM, to try functions
/// with
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
        // Before there is a directory that would be left.
        let interrupts = Interrupts::by_all()?;
        let setting = Setting {
            gateways: self.gateways.into(),
            followers: self.followers,
            active: self.active,
            asleep: self.asleep,
            port: Some(self.port),
            follower_flags: vec!["--memory".into(), self.memory.to_string()],
            is_verbose: self.verbose,
            interrupts: interrupts.clone(),
            ..Setting::default()
        };
        match self.serve(setting, &interrupts) {
            // All is gone by now.
            Ok(()) | Err(Failure::Interrupted) => Ok(ExitCode::SUCCESS),
            Err(why) => Err(why),
        }
    }

    fn serve(&self, setting: Setting, interrupts: &Interrupts) -> Result<(), Failure> {
        let world = World::start(setting)?;
        let all = u32::try_from(self.followers).unwrap_or(u32::MAX);
        let (status, _) = world.wait_until(BEGINNING, |it| it.followers >= all && it.units > 0)?;
        let (gateways, followers, units) = (self.gateways, status.followers, status.units);
        println!(
            "{gateways} gateways, and {followers} followers in {units} units: submit functions with"
        );
        println!("--gateway {}, and end this with Ctrl-C", world.address(1));
        while interrupts.count_so_far() == 0 {
            thread::sleep(LOOK);
        }
        Ok(())
    }
}
