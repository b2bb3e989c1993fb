//! The results of trials, and how shards are merged.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The figures of a trial: whole numbers in an order that its experiment knows, `None` for an event
/// that did not happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample(pub Vec<Option<u64>>);

/// Trials by experiment and number, with their seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// The seed that all trials are drawn from.
    pub seed: u64,
    /// The number of trials requested.
    pub asked: u32,
    /// The claims requested.
    pub claims: Vec<String>,
    trials: BTreeMap<String, BTreeMap<u32, Sample>>,
}

/// The reason why shards are not of one run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// Their requests differ.
    #[error(
        "the shards are of different runs ({0} differs): give all of them the same names, --trials and --seed"
    )]
    OtherRun(&'static str),
    /// A trial has two different results.
    #[error(
        "trial {trial} of {experiment:?} has two different results: were the shards run by the same version?"
    )]
    TwoOutcomes {
        /// The setting.
        experiment: String,
        /// The number of the trial.
        trial: u32,
    },
}

impl Samples {
    /// Samples without trials.
    #[must_use]
    pub const fn new(seed: u64, asked: u32, claims: Vec<String>) -> Self {
        Self {
            seed,
            asked,
            claims,
            trials: BTreeMap::new(),
        }
    }

    /// Adds the figures of a trial.
    pub fn add(&mut self, experiment: &str, trial: u32, sample: Sample) {
        let trials = self.trials.entry(experiment.to_owned()).or_default();
        trials.insert(trial, sample);
    }

    /// The trials of an experiment with their numbers, in order.
    pub fn of(&self, experiment: &str) -> impl Iterator<Item = (u32, &Sample)> {
        self.trials
            .get(experiment)
            .into_iter()
            .flatten()
            .map(|(&trial, sample)| (trial, sample))
    }

    /// The number of trials, of all experiments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.trials.values().map(BTreeMap::len).sum()
    }

    /// Returns true if it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// Takes in another shard of the same run.
    ///
    /// # Errors
    /// When it is of another run, or contradicts this one.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        if self.seed != other.seed {
            return Err(MergeError::OtherRun("the seed"));
        }
        if self.asked != other.asked {
            return Err(MergeError::OtherRun("the number of trials"));
        }
        if self.claims != other.claims {
            return Err(MergeError::OtherRun("the list of claims"));
        }
        for (experiment, trials) in other.trials {
            for (trial, sample) in trials {
                let known = self.trials.get(&experiment).and_then(|it| it.get(&trial));
                if known.is_some_and(|known| *known != sample) {
                    return Err(MergeError::TwoOutcomes { experiment, trial });
                }
                self.add(&experiment, trial, sample);
            }
        }
        Ok(())
    }
}
