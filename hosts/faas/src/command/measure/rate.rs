//! `selvedge-faas measure rate`: the number of tasks a second that one gateway handles.

use core::time::Duration;

use clap::Args;

use super::machine;
use super::stream::{Answers, Stream};
use super::times::ms;
use crate::command::world::{Setting, World};
use crate::command::{Failure, gcd};

/// The longest time until all followers are in units.
const BEGINNING: Duration = Duration::from_secs(60);

/// Search for the highest steady rate of tasks at which one gateway's answers come within a limit
///
/// Units are always awake. The rate doubles until p99 is above the limit or a task has no right
/// answer; then the steps become smaller.
#[derive(Debug, Args)]
pub(crate) struct Rate {
    /// Number of units of followers
    #[arg(long, default_value = "4")]
    units: u64,
    /// Number of followers in a unit: from 3
    #[arg(long, default_value = "3")]
    unit: u64,
    /// Milliseconds within which 99 of 100 answers must come
    #[arg(long, default_value = "250")]
    limit: u64,
    /// Seconds for which each rate is tried
    #[arg(long, default_value = "5")]
    seconds: u64,
    /// First rate, in tasks a second
    #[arg(long, default_value = "10")]
    first: u64,
    /// Highest rate to try, in tasks a second
    #[arg(long, default_value = "100000")]
    most: u64,
    /// Number of times the step is halved at the end
    #[arg(long, default_value = "4")]
    halves: u32,
}

impl Rate {
    pub(super) fn run(self) -> Result<bool, Failure> {
        let (machine, units) = (machine(), self.units);
        println!(
            "One gateway and {units} units of {} followers that are always awake; {} s a rate; p99 up to {} ms; \
             no seed, for nothing is drawn; {machine}\n",
            self.unit, self.seconds, self.limit
        );
        println!(
            "| tasks a second | tasks | median ms | p99 ms | wrong, refused, missing | submitted late ms | within \
             |\n|---|---|---|---|---|---|---|"
        );
        let mut best = None;
        let mut try_rate = |rate: u64| -> Result<bool, Failure> {
            let count = rate * self.seconds;
            let answers = self.try_rate(rate, count)?;
            let is_within = self.is_within(&answers);
            print_row(rate, count, &answers, is_within);
            if is_within {
                best = best.max(Some((rate, answers.times.percent(99))));
            }
            Ok(is_within)
        };
        let (mut good, mut bad) = (0, self.first.max(1));
        while bad <= self.most && try_rate(bad)? {
            (good, bad) = (bad, bad * 2);
        }
        for _ in 0..self.halves {
            let middle = u64::midpoint(good, bad);
            if middle == good || bad > self.most {
                break;
            }
            match try_rate(middle)? {
                true => good = middle,
                false => bad = middle,
            }
        }
        match best {
            Some((rate, p99)) => println!("\n{rate} tasks a second, with p99 at {} ms", ms(p99)),
            None => println!("\nno rate is within the limit"),
        }
        Ok(best.is_some())
    }

    /// Tries a rate with new processes: the backlog of a rate that is too high would count in the
    /// next one.
    fn try_rate(&self, rate: u64, count: u64) -> Result<Answers, Failure> {
        let followers = self.units * self.unit;
        let world = World::start(Setting {
            gateways: 1,
            followers,
            active: 1_000,
            gateway_flags: vec!["--unit".into(), self.unit.to_string()],
            ..Setting::default()
        })?;
        let (all, units) = (followers as u32, self.units as u32);
        world.wait_until(BEGINNING, |it| it.followers == all && it.units == units)?;
        let client = world.client()?;
        gcd::put(&client)?;
        // A few tasks bring the module to the followers.
        let few = self.units * 4;
        stream(1, few, Duration::from_millis(50)).run(&client)?;
        let every = Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX);
        stream(1 + few, count, every).run(&client)
    }

    fn is_within(&self, answers: &Answers) -> bool {
        answers.is_right() && ms(answers.times.percent(99)) <= self.limit.into()
    }
}

const fn stream(first: u64, count: u64, every: Duration) -> Stream {
    let patience = Duration::from_secs(20);
    Stream {
        first,
        count,
        every,
        patience,
    }
}

fn print_row(rate: u64, count: u64, answers: &Answers, is_within: bool) {
    println!(
        "| {rate} | {count} | {} | {} | {}, {}, {} | {} | {} |",
        ms(answers.times.percent(50)),
        ms(answers.times.percent(99)),
        answers.wrong,
        answers.refused,
        answers.missing,
        ms(answers.late),
        if is_within { "yes" } else { "no" },
    );
}
