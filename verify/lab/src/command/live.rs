//! `selvedge claims celect --live`.

use std::env;

use clap::Args;
use selvedge_core::Span;
use selvedge_lab::claims::Finding;
use selvedge_lab::claims::celect::e11::{
    Setting,
    judge::{Measured, judged},
    live::{Options, measure},
    simulated::{self, Place},
};

use super::Failure;

/// The settings of claim E11: real processes, and minutes of real time.
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// Run E11 instead: a mesh of processes on this machine, its cost while idle, and the time
    /// without a leader after the leader is killed. Minutes for each setting; Linux
    #[arg(long, conflicts_with_all = ["shard", "merge"])]
    live: bool,
    /// Number of processes
    #[arg(long, value_name = "COUNT", default_value_t = 16, requires = "live", value_parser = clap::value_parser!(u64).range(3..=64))]
    nodes: u64,
    /// Seconds measured while nothing happens
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "live", value_parser = clap::value_parser!(u64).range(2..))]
    idle: u64,
    /// Number of times that the leader is killed
    #[arg(long, value_name = "COUNT", default_value_t = 8, requires = "live")]
    kills: usize,
    /// Settings to measure: period, suspicion in periods and lease. The first one is judged
    #[arg(long, value_name = "MS[:PERIODS[:MS]]", num_args = 1.., requires = "live",
        default_values_t = DEFAULTS.iter().map(|text| (*text).to_owned()))]
    setting: Vec<String>,
    /// Number of crashes of the leader in each of the simulated settings of the curve; 0 for no
    /// curve
    #[arg(long, value_name = "COUNT", default_value_t = 40, requires = "live")]
    simulated: usize,
}

/// The setting that is meant to meet the goal, the defaults of `selvedge node`, and both with a
/// lease.
const DEFAULTS: [&str; 4] = ["3100:1", "1000", "3100:1:9300", "1000:-:9000"];
/// The settings of the curve: periods in milliseconds, and suspicions.
const PERIODS: [u64; 7] = [500, 1_000, 1_500, 2_000, 2_500, 3_100, 4_000];
const SUSPICIONS: [Option<u16>; 4] = [Some(1), Some(2), Some(4), None];
/// The time for which simulated nodes are idle.
const IDLE: Span = Span::secs(600);

impl Live {
    pub(crate) const fn is_asked_for(&self) -> bool {
        self.live
    }

    pub(crate) fn run(&self, seed: u64) -> Result<Vec<Finding>, Failure> {
        let read = |text: &String| text.parse().map_err(Failure::Setting);
        let settings = self.setting.iter().map(read);
        let settings = settings.collect::<Result<Vec<Setting>, _>>()?;
        let mut measured = Measured::default();
        let command = env::current_exe().map_err(Failure::Runtime)?;
        let command = command.with_file_name(format!("selvedge{}", env::consts::EXE_SUFFIX));
        if !command.is_file() {
            return Err(Failure::NoCommand(command));
        }
        for &setting in &settings {
            eprintln!("{setting}: {} processes start", self.nodes);
            let options = Options {
                command: command.clone(),
                nodes: self.nodes,
                idle: self.idle,
                kills: self.kills,
                setting,
                seed,
            };
            let report = measure(&options, |line| eprintln!("{setting}: {line}"))?;
            measured.live.push(report);
        }
        if self.simulated > 0 {
            self.simulate(&settings, seed, &mut measured)?;
        }
        Ok(judged(&measured))
    }

    fn simulate(
        &self,
        settings: &[Setting],
        seed: u64,
        measured: &mut Measured,
    ) -> Result<(), Failure> {
        let mut curve = settings.to_vec();
        for suspicion in SUSPICIONS {
            for period in PERIODS {
                let setting = Setting {
                    period: Span::millis(period),
                    suspicion,
                    lease: None,
                };
                if !curve.contains(&setting) {
                    curve.push(setting);
                }
            }
        }
        curve.sort_by_key(|it| (it.lease, it.suspicion, it.period));
        // 16 nodes, as in the thesis, for any number of live processes.
        let run = |setting: &Setting, place, crashes| {
            simulated::run(setting, place, 4, IDLE, crashes, seed)
                .map_err(|fault| Failure::Simulated(setting.to_string(), fault))
        };
        for (nth, setting) in curve.iter().enumerate() {
            eprintln!("simulated, {} of {}: {setting}", nth + 1, curve.len());
            let flat = run(setting, Place::Flat, self.simulated)?;
            measured.flat.push((*setting, flat));
        }
        for setting in settings {
            let grid = run(setting, Place::Grid, 0)?;
            measured.grid.push((*setting, grid));
            let unknown = run(setting, Place::Unknown, 0)?;
            measured.unknown.push((*setting, unknown));
        }
        Ok(())
    }
}
