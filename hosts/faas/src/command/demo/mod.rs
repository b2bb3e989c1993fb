//! `selvedge-faas demo`: gateways and followers as processes, some of which are killed.

mod plan;
mod tally;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use selvedge_core::Span;
use selvedge_faas::client::{self, Client};

use self::plan::{Plan, Turn};
use self::tally::Tally;
use super::world::{Setting, World};
use super::{Failure, gcd};

/// The longest time for the processes to start.
const BEGINNING: Duration = Duration::from_secs(60);
/// The time to wait for answers after the last task.
const PATIENCE: Duration = Duration::from_secs(90);

/// Run gateways and followers as processes, kill some of them, and count the answers of each task
///
/// Exit status: 0 if each task had exactly one answer, and the right one; else 1.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seconds for which tasks are submitted
    #[arg(long, default_value = "30")]
    seconds: u64,
    /// Number of gateways
    #[arg(long, default_value = "3")]
    gateways: u64,
    /// Number of followers: from 2
    #[arg(long, default_value = "15", value_parser = clap::value_parser!(u64).range(2..))]
    followers: u64,
    /// Milliseconds for which a follower is awake in each period
    #[arg(long, default_value = "1000")]
    active: u64,
    /// Milliseconds for which it sleeps
    #[arg(long, default_value = "1000")]
    asleep: u64,
    /// Milliseconds between two tasks
    #[arg(long, default_value = "250")]
    every: u64,
    /// Kill nothing
    #[arg(long)]
    calm: bool,
    /// A mosquitto for each gateway, instead of the broker inside
    #[arg(long, value_name = "PROGRAM")]
    mosquitto: Option<std::path::PathBuf>,
    /// Seed of the choice of processes to kill
    #[arg(long)]
    seed: Option<u64>,
    /// Show the logs of the processes
    #[arg(long, short)]
    verbose: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => client::any_id()?.0,
        };
        println!("seed {seed}");
        let mut world = World::start(self.setting())?;
        let (status, took) = world.wait_until(BEGINNING, |it| it.units > 0)?;
        let (followers, units) = (status.followers, status.units);
        let took = took.as_millis();
        println!("{followers} followers in {units} units after {took} ms");
        let plan = match self.calm {
            true => Plan::default(),
            false => Plan::new(seed, self.seconds, self.gateways, self.followers),
        };
        let client = world.client()?;
        println!("{} gateways keep the module", gcd::put(&client)?);
        let tally = self.stream(&mut world, plan, &client)?;
        drop(world);
        print!("{}", tally.table());
        Ok(match tally.is_right() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    fn setting(&self) -> Setting {
        Setting {
            gateways: self.gateways,
            followers: self.followers,
            active: self.active,
            asleep: self.asleep,
            mosquitto: self.mosquitto.clone(),
            is_verbose: self.verbose,
            ..Setting::default()
        }
    }

    /// Submits tasks, kills and starts processes as planned, and collects answers.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn stream(&self, world: &mut World, plan: Plan, client: &Client) -> Result<Tally, Failure> {
        let (begun, mut tally) = (Instant::now(), Tally::default());
        let end = Duration::from_secs(self.seconds);
        let every = Duration::from_millis(self.every.max(1));
        let (mut next, mut turns) = (Duration::ZERO, plan.turns.into_iter().peekable());
        loop {
            let now = begun.elapsed();
            while let Some(turn) = turns.next_if(|it| it.at <= now) {
                self.turn(world, &turn, &mut tally)?;
            }
            if now < end && next <= now {
                next += every;
                let token = tally.submit(begun.elapsed());
                client.submit(token, gcd::function(token)?);
            }
            let is_over = now >= end && tally.waiting() == 0 && turns.peek().is_none();
            if is_over || now > end + PATIENCE {
                return Ok(tally);
            }
            // A short wait, so that the plan continues.
            if let Some(notified) = client.wait(Span::millis(20)) {
                tally.receive(notified, begun.elapsed());
            }
        }
    }

    fn turn(&self, world: &mut World, turn: &Turn, tally: &mut Tally) -> Result<(), Failure> {
        let what = if turn.starts { "start" } else { "kill" };
        let name = if turn.id <= self.gateways {
            "gateway"
        } else {
            "follower"
        };
        println!(
            "{:>5.1} s  {what} {name} {}",
            turn.at.as_secs_f32(),
            turn.id
        );
        if turn.starts {
            return world.start_node(turn.id);
        }
        tally.kills += 1;
        world.kill(turn.id);
        Ok(())
    }
}
