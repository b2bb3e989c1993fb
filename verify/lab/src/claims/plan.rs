//! The trials to run, their order, and their division into shards.

use core::str::FromStr;
use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use thiserror::Error;

use super::{Claim, Experiment};

/// The papers' largest number of trials: `--trials` asks for a part of each paper's trials, and
/// this number for all of them.
const FULL: u64 = 1_000;

/// A trial of an experiment.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The setting.
    pub experiment: Experiment,
    /// The number of the trial, from 0.
    pub trial: u32,
    /// The seed that it is drawn from.
    pub seed: u64,
}

/// All trials of some claims.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The trials, in the order in which they are run.
    pub units: Vec<Unit>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The number of the part, from 1.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
}

impl Plan {
    /// The trials of `claims`, each setting once. An experiment of which the paper ran 1,000
    /// trials gets `asked` of them, others in proportion, each at least one and at most the paper's
    /// number or `asked`, whichever is larger.
    ///
    /// They come in an order in which all experiments advance together, so that a run that is cut
    /// short has some trials of every experiment.
    #[must_use]
    pub fn new(claims: &[Claim], asked: u32, seed: u64) -> Self {
        let experiments: BTreeMap<&str, &Experiment> = claims
            .iter()
            .flat_map(|claim| &claim.experiments)
            .map(|experiment| (experiment.name.as_str(), experiment))
            .collect();
        let mut units: Vec<(u64, Unit)> = Vec::new();
        for experiment in experiments.into_values() {
            let share = u64::from(asked) * u64::from(experiment.trials) / FULL;
            let trials = share.max(1);
            for trial in 0..trials {
                let trial_number = u32::try_from(trial).unwrap_or(u32::MAX);
                let unit = Unit {
                    experiment: experiment.clone(),
                    trial: trial_number,
                    seed: seed_of(seed, trial_number),
                };
                units.push(((trial + 1) * FULL / trials, unit));
            }
        }
        // Stable: among equals by name, then by trial.
        units.sort_by_key(|&(progress, _)| progress);
        Self {
            units: units.into_iter().map(|(_, unit)| unit).collect(),
        }
    }

    /// Keeps the trials of this shard.
    #[must_use]
    pub fn shard(self, shard: Shard) -> Self {
        let nth = shard.number.saturating_sub(1);
        Self {
            units: self
                .units
                .into_iter()
                .skip(nth)
                .step_by(shard.of.max(1))
                .collect(),
        }
    }
}

/// The seed of a trial. Trials of one number share it in all settings, so that these are compared
/// in the same places, with the same failures.
fn seed_of(seed: u64, trial: u32) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(trial));
    rng.next_u64()
}

/// An error in the text of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a shard: give I/N with I from 1 to N, as in 2/8")]
pub struct ShardError(String);

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Self { number, of }),
            Some(_) | None => Err(ShardError(text.to_owned())),
        }
    }
}
