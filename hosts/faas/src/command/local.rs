//! `selvedge-faas local`: gateways and followers on this machine, for trying functions.

use core::time::Duration;
use std::process::ExitCode;
use std::thread;

use clap::Args;

use super::Failure;
use super::interrupts::Interrupts;
use super::world::{Setting, World};

/// The longest time for the processes to start.
const BEGINNING: Duration = Duration::from_secs(60);
/// The interval at which requests to end are checked.
const LOOK: Duration = Duration::from_millis(50);

/// Run gateways and followers as processes on this machine, until Ctrl-C or SIGTERM, to try
/// functions
///
/// All their state is removed at the end.
#[derive(Debug, Args)]
pub(crate) struct Local {
    /// Number of gateways
    #[arg(long, default_value = "3")]
    gateways: u16,
    /// Number of followers, in units of up to seven
    #[arg(long, default_value = "5")]
    followers: u64,
    /// Port of the first gateway, at 127.0.0.1; the others listen at the ports that follow
    #[arg(long, default_value = "1883")]
    port: u16,
    /// Milliseconds for which a follower is awake in each period
    #[arg(long, default_value = "500")]
    active: u64,
    /// Milliseconds for which it sleeps
    #[arg(long, default_value = "1500")]
    asleep: u64,
    /// Bytes of memory that a function may take
    #[arg(long, default_value = "2097152")]
    memory: u32,
    /// Show the logs of the processes
    #[arg(long, short)]
    verbose: bool,
}

impl Local {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        if self.port.checked_add(self.gateways).is_none() {
            return Err(Failure::Usage("too few ports: give a lower --port"));
        }
        // Created before the directory, so that no signal leaves it behind.
        let interrupts = Interrupts::by_all()?;
        match self.serve(self.setting(&interrupts), &interrupts) {
            // Everything has been removed by now.
            Ok(()) | Err(Failure::Interrupted) => Ok(ExitCode::SUCCESS),
            Err(why) => Err(why),
        }
    }

    fn setting(&self, interrupts: &Interrupts) -> Setting {
        Setting {
            gateways: self.gateways.into(),
            followers: self.followers,
            active: self.active,
            asleep: self.asleep,
            port: Some(self.port),
            follower_flags: vec!["--memory".into(), self.memory.to_string()],
            is_verbose: self.verbose,
            interrupts: interrupts.clone(),
            ..Setting::default()
        }
    }

    fn serve(&self, setting: Setting, interrupts: &Interrupts) -> Result<(), Failure> {
        let world = World::start(setting)?;
        let all = u32::try_from(self.followers).unwrap_or(u32::MAX);
        let (status, _) = world.wait_until(BEGINNING, |it| is_up(it.followers, it.units, all))?;
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

/// Returns true if all followers are in units, and a function could run.
const fn is_up(followers: u32, units: u32, all: u32) -> bool {
    followers >= all && units > 0
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        local: Local,
    }

    #[test]
    fn what_a_user_says_reaches_the_processes() {
        let flags = "x --gateways 2 --followers 6 --port 9 --active 7 --asleep 8 --memory 5 -v";
        let local = Flags::parse_from(flags.split(' ')).local;
        let setting = local.setting(&Interrupts::default());
        assert_eq!((setting.gateways, setting.followers), (2, 6));
        assert_eq!((setting.active, setting.asleep), (7, 8));
        assert_eq!(setting.port, Some(9));
        assert_eq!(setting.follower_flags, ["--memory", "5"]);
        assert!(setting.is_verbose);
    }

    #[test]
    fn a_mesh_is_up_when_all_followers_are_there_and_have_a_unit() {
        assert!(is_up(5, 1, 5) && is_up(6, 2, 5));
        assert!(!is_up(4, 1, 5) && !is_up(5, 0, 5));
    }
}
