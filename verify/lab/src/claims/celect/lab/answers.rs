//! The nodes that answers name as the most suspected.

use core::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use selvedge_celect::{Ballot, Message, Protocol};
use selvedge_core::{Input, Machine as _, Member, NodeId};
use selvedge_sim::network::What;

use super::{Announcement, Setting, Trial};
use crate::claims::celect::received::Received;
use crate::claims::membership::traces::member;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The number of nodes that an answer names, and of those that are suspected most by all: y.
const NAMED: usize = 5;
/// Probabilities are kept as whole numbers.
const PARTS: f64 = 1e9;

/// How far answers agree with the nodes that are suspected most by all, as means of all trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct Agreement {
    /// The share of these nodes that an answer does not name: p.
    pub(in super::super) missing: f64,
    /// The probability that none of c + 1 answers names one of these nodes.
    pub(in super::super) unnamed: f64,
    /// The number of suspicions that a node has counted of all others.
    pub(in super::super) suspicions: f64,
    /// The number of trials.
    pub(in super::super) trials: usize,
}

impl Setting {
    fn answers_name(&self) -> String {
        format!("{}: the most suspected, as answers name them", self.name())
    }

    /// Asks every node, when the election of the other claims would begin.
    pub(in super::super) fn answers(self) -> Experiment {
        Experiment {
            name: self.answers_name(),
            trials: 50,
            run: Arc::new(move |seed| {
                let trial = Trial::new(&self, seed)?;
                trial.agreement(&trial.answers(seed)?)
            }),
        }
    }

    /// The figures of [`answers`](Self::answers).
    pub(in super::super) fn agreement(&self, samples: &Samples) -> Option<Agreement> {
        let name = self.answers_name();
        let sum = |nth: usize| -> u64 {
            let all = samples.of(&name);
            all.filter_map(|(_, sample)| sample.0.get(nth).copied().flatten())
                .sum()
        };
        let trials = samples.of(&name).count();
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        Some(Agreement {
            missing: share(sum(0), sum(1))?,
            unnamed: share(sum(2), sum(3))? / PARTS,
            suspicions: share(sum(4), trials as u64 * self.nodes as u64)?,
            trials,
        })
    }
}

impl Trial<'_> {
    /// The nodes that each node names in its answer to a query.
    fn answers(&self, seed: u64) -> Result<Vec<BTreeSet<NodeId>>, Fault> {
        let mut mesh = self.mesh(Protocol::Preferred, Announcement::Reliable, seed)?;
        let config = mesh.machine(0).map(|it| *it.config());
        let (lowest, suspected) = config.map_or((0, 0), |it| (it.lowest, it.suspected));
        let answers = Arc::new(Mutex::new(vec![None; self.setting.nodes]));
        let sink = Arc::clone(&answers);
        mesh.trace_to(move |line| {
            if let (Some(node), What::Sent { message, .. }) = (line.node, &line.what)
                && let Message::Response { unhealthy, .. } = message
            {
                let named: BTreeSet<NodeId> = unhealthy.iter().map(|it| it.id).collect();
                let mut answers = sink.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(answer) = answers.get_mut(node) {
                    *answer = Some(named);
                }
            }
        });
        for node in 0..self.setting.nodes {
            // Any other node asks.
            let from = member((node + 1) % self.setting.nodes);
            let query = Input::Message {
                from,
                message: Message::Query {
                    ballot: Ballot {
                        epoch: 1,
                        initiator: from,
                        step: 0,
                    },
                    lowest,
                    suspected,
                    want: 0,
                    exclude: core::iter::empty::<Member>().collect(),
                    no_majority: false,
                },
            };
            mesh.with(node, |celect, cx| celect.handle(query, cx))
                .map_err(Fault::network)?;
        }
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answers: Option<Vec<_>> = answers.iter().cloned().collect();
        answers.ok_or_else(|| Fault::Outcome("a node did not answer".to_owned()))
    }

    /// The nodes of which all together have counted the most suspicions; of equals, those of lower
    /// id, as in an answer.
    fn most_suspected(&self) -> Vec<NodeId> {
        let counted = |about: usize| -> u64 {
            let of = |list: &Vec<Received>| list.get(about).map_or(0, |it| it.suspicions);
            self.received.iter().map(|list| u64::from(of(list))).sum()
        };
        let mut all: Vec<(Reverse<u64>, NodeId)> = (0..self.setting.nodes)
            .map(|node| (Reverse(counted(node)), member(node).id))
            .filter(|(count, _)| count.0 > 0)
            .collect();
        all.sort();
        all.into_iter().take(NAMED).map(|(_, id)| id).collect()
    }

    fn agreement(&self, answers: &[BTreeSet<NodeId>]) -> Result<Sample, Fault> {
        let top = self.most_suspected();
        let naming = |id: &NodeId| answers.iter().filter(|it| it.contains(id)).count();
        let named: Vec<usize> = top.iter().map(naming).collect();
        let unnamed: f64 = named
            .iter()
            .map(|&naming| none_of(answers.len(), naming, usize::from(self.setting.c) + 1))
            .sum();
        let all = (answers.len() * top.len()) as u64;
        let counted = self
            .received
            .iter()
            .flatten()
            .map(|it| u64::from(it.suspicions));
        Ok(Sample(vec![
            Some(all - named.iter().sum::<usize>() as u64),
            Some(all),
            Some((unnamed * PARTS) as u64),
            Some(top.len() as u64),
            Some(counted.sum()),
        ]))
    }
}

/// The probability that none of `drawn` answers names a node, where `naming` of `all` do.
fn none_of(all: usize, naming: usize, drawn: usize) -> f64 {
    (0..drawn)
        .map(|nth| (all - naming).saturating_sub(nth) as f64 / (all - nth) as f64)
        .product()
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]
mod tests {
    use super::super::Bias;
    use super::*;
    use crate::claims::membership::traces::Placement;

    #[test]
    fn a_node_is_unnamed_as_often_as_draws_without_replacement_miss_it() {
        for (all, naming, drawn, chance) in [
            (10, 10, 1, 0.0),
            (10, 0, 3, 1.0),
            (10, 4, 1, 0.6),
            (10, 4, 2, 0.6 * 5.0 / 9.0),
            // Only three do not name it.
            (10, 7, 4, 0.0),
        ] {
            assert!((none_of(all, naming, drawn) - chance).abs() < 1e-12);
        }
    }

    #[test]
    fn a_node_that_an_answer_names_is_in_one_of_all_answers() {
        let setting = Setting {
            placement: Placement::Random,
            nodes: 11,
            loss: 20,
            c: 10,
            f: 0,
            bias: Bias::Even,
            every_hop: false,
            own_suspicions: false,
            history: 200,
        };
        let trial = Trial::new(&setting, 1).unwrap();
        let answers = trial.answers(1).unwrap();
        let sample = trial.agreement(&answers).unwrap();
        let [
            Some(missing),
            Some(all),
            Some(unnamed),
            Some(top),
            Some(counted),
        ] = sample.0[..]
        else {
            panic!("{sample:?}");
        };
        assert_eq!((all, top, unnamed), (11 * 5, 5, 0));
        // No node names itself, and some others are named.
        assert!((top..all).contains(&missing) && counted > 0);
        for (node, answer) in answers.iter().enumerate() {
            assert!(!answer.contains(&member(node).id) && answer.len() <= NAMED);
        }
    }
}
