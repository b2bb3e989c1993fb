//! The papers' figures, measured again: the claims of `selvedge claims`.
//!
//! A [`Claim`] is one row: the settings that it needs, its source, and the rule of its verdict.
//! Claims on the same settings share their trials. A trial depends on the seed and its
//! number alone, so shards that ran apart merge into the result of a single run.
//!
//! A few whole numbers are kept of each trial; all means and medians are taken in the end, from
//! trials in order, so they do not depend on the place and time of the runs.

pub mod camera;
pub mod celect;
pub mod kgroup;
pub mod membership;
mod page;
pub mod pcm;
mod plan;
mod plot;
mod run;
pub mod safehome;
mod samples;
mod stats;
mod table;
mod verdict;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use page::page;
pub use plan::{Plan, Shard, ShardError, Unit};
pub use plot::{Axis, Line, Paper, Plot, Point, Reference};
pub use run::{Progress, run};
pub use samples::{MergeError, Sample, Samples};
pub use table::write_table;

/// The claims of one protocol.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name on the command line.
    pub name: &'static str,
    /// Makes the claims.
    pub claims: fn() -> Vec<Claim>,
}

/// All families. A protocol's claims are plugged in here.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "membership",
        claims: membership::claims,
    },
    Family {
        name: "camera",
        claims: camera::claims,
    },
    Family {
        name: "celect",
        claims: celect::claims,
    },
    Family {
        name: "safehome",
        claims: safehome::claims,
    },
    Family {
        name: "kgroup",
        claims: kgroup::claims,
    },
    Family {
        name: "pcm",
        claims: pcm::claims,
    },
];

/// A claim of a paper.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its short name, as in `M1`.
    pub id: &'static str,
    /// The claim in words.
    pub claim: &'static str,
    /// Its place in the paper.
    pub source: &'static str,
    /// The unit of both figures.
    pub unit: &'static str,
    /// The experiments that it needs.
    pub experiments: Vec<Experiment>,
    /// Its result; `None` when a setting has no trial.
    pub judge: fn(&Samples) -> Option<Judgement>,
}

/// A setting, of which any number of trials can be run.
#[derive(Clone)]
pub struct Experiment {
    /// Settings with one name are the same.
    pub name: String,
    /// The number of trials in the paper.
    pub trials: u32,
    /// Runs the trial of this seed.
    pub run: Arc<dyn Fn(u64) -> Result<Sample, Fault> + Send + Sync>,
}

impl core::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Experiment")
            .field("name", &self.name)
            .field("trials", &self.trials)
            .finish_non_exhaustive()
    }
}

/// A trial could not be run: a defect of its setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The network refused something.
    #[error("the simulated network refused: {0}")]
    Network(String),
    /// The nodes did not learn of each other.
    #[error("not all nodes knew each other after {0} periods")]
    NotSettled(u64),
    /// A run did not end as it must.
    #[error("{0}")]
    Outcome(String),
}

impl Fault {
    /// An error of the simulated network.
    pub(crate) fn network(error: impl core::fmt::Display) -> Self {
        Self::Network(error.to_string())
    }
}

/// The relation of our figure to the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Beyond the paper's figure.
    Better,
    /// In the same direction and within the band that the claim states.
    Holds,
    /// Neither; the reason explains it.
    Differs,
}

/// The result of a claim.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The paper's figure.
    pub paper: String,
    /// Our figure.
    pub ours: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The rule of the verdict, and the cause of a difference.
    pub reason: String,
    /// The fewest trials behind any of its figures.
    pub trials: usize,
    /// Its plots.
    pub plots: Vec<Plot>,
}

/// A claim with its result, for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The claim's short name.
    pub id: String,
    /// The claim, and its place in the paper.
    pub claim: String,
    /// The paper's figure.
    pub paper: String,
    /// Our figure.
    pub ours: String,
    /// The unit of both figures.
    pub unit: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The rule of the verdict, and the cause of a difference.
    pub reason: String,
    /// The fewest trials behind any of its figures.
    pub trials: usize,
    /// The seed that all trials were drawn from.
    pub seed: u64,
}

/// A claim, and its result if it was run.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The claim.
    pub claim: Claim,
    /// Its result.
    pub judgement: Option<Judgement>,
}

impl Finding {
    /// The finding for programs; `None` without a result.
    #[must_use]
    pub fn row(&self, seed: u64) -> Option<Row> {
        let judgement = self.judgement.as_ref()?;
        Some(Row {
            id: self.claim.id.to_owned(),
            claim: format!("{} ({})", self.claim.claim, self.claim.source),
            paper: judgement.paper.clone(),
            ours: judgement.ours.clone(),
            unit: self.claim.unit.to_owned(),
            verdict: judgement.verdict,
            reason: judgement.reason.clone(),
            trials: judgement.trials,
            seed,
        })
    }
}

/// The claims of these names: of families or of single claims, all for no name at all.
///
/// # Errors
/// The first unknown name.
pub fn named(names: &[String]) -> Result<Vec<Claim>, String> {
    let all = || FAMILIES.iter().flat_map(|family| (family.claims)());
    if names.is_empty() {
        return Ok(all().collect());
    }
    for name in names {
        let is_family = FAMILIES.iter().any(|family| family.name == name);
        if !is_family && !all().any(|claim| claim.id.eq_ignore_ascii_case(name)) {
            return Err(name.clone());
        }
    }
    let wanted = |family: &Family, claim: &Claim| {
        names
            .iter()
            .any(|name| family.name == name || claim.id.eq_ignore_ascii_case(name))
    };
    Ok(FAMILIES
        .iter()
        .flat_map(|family| {
            let claims = (family.claims)().into_iter();
            claims.filter(move |claim| wanted(family, claim))
        })
        .collect())
}

/// The results of `claims`.
#[must_use]
pub fn judged(claims: Vec<Claim>, samples: &Samples) -> Vec<Finding> {
    claims
        .into_iter()
        .map(|claim| Finding {
            judgement: (claim.judge)(samples),
            claim,
        })
        .collect()
}
