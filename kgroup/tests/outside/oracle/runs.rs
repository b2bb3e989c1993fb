//! Runs of routines: their definitions, their triggers, their locks and their reports.

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_kgroup::GroupState;
use selvedge_kgroup::routines::{Definition, Report, RoutineState, Stage, StepOutcome};

use super::Oracle;

impl Oracle {
    /// Theorem 3: no two runs that share a device execute at once.
    pub(super) fn routine_moved(
        &mut self,
        now: u64,
        node: NodeId,
        group: GroupId,
        state: &RoutineState,
    ) {
        if state.is_defined() && !matches!(state.stage(), Stage::NotTriggered) {
            let run = (group, state.instance());
            let word = word_of(state.definition());
            let known = self
                .definitions
                .entry(run)
                .or_insert_with(|| word.clone())
                .clone();
            self.expect(now, known == word, || {
                format!("{node}: run {run:?} began with definition {known} and has {word}")
            });
            let is_decided = self.decided_words.contains(&word);
            self.expect(now, is_decided, || {
                format!("{node}: {run:?} runs undecided {word}")
            });
        }
        if let Some(asked) = self.triggers.get(&group) {
            let most = asked.len() as u64;
            let is_free = self.with_clause.contains(&group) || self.anew.contains_key(&group);
            self.expect(now, is_free || state.instance() <= most, || {
                format!("{group:?} has {} runs of {most} triggers", state.instance())
            });
        }
        if !matches!(state.stage(), Stage::Executing { .. }) {
            return;
        }
        let mine = state.definition().locks();
        let others: Vec<(GroupId, u64, Vec<NodeId>)> = self
            .latest
            .iter()
            .filter(|it| *it.0 != group && self.is_present(*it.0) && self.is_present(group))
            .filter_map(|(id, latest)| match &latest.state {
                GroupState::Routine(other) if matches!(other.stage(), Stage::Executing { .. }) => {
                    Some((*id, other.instance(), other.definition().locks()))
                }
                _ => None,
            })
            .collect();
        for (other, instance, locks) in others {
            let is_shared = |it: &&NodeId| locks.contains(it) && !self.removed.contains(it);
            let shared = mine.iter().find(is_shared).copied();
            let is_tainted = self.tainted.contains(&(other, instance))
                || self.tainted.contains(&(group, state.instance()));
            self.expect(now, shared.is_none() || is_tainted, || {
                format!(
                    "{group:?} run {} and {other:?} run {instance} execute at once with {shared:?}",
                    state.instance()
                )
            });
        }
    }

    /// A node asks for a run.
    pub(crate) fn triggers(&mut self, routine: GroupId, id: u64) {
        let asked = self.triggers.entry(routine).or_default();
        if !self.is_deaf {
            asked.insert(id);
        }
    }

    pub(super) fn reported(&mut self, now: u64, group: GroupId, report: &Report) {
        let run = (group, report.instance);
        self.counts.runs += 1;
        if report.end == selvedge_kgroup::routines::End::Completed {
            self.counts.completed += 1;
        }
        let known = self
            .reports
            .entry(run)
            .or_insert_with(|| report.clone())
            .clone();
        self.expect(now, known == *report, || {
            format!("{run:?} ends {known:?} and {report:?}")
        });
        for (step, outcome) in report.steps.iter().enumerate() {
            let key = (group, report.instance, step as u16);
            match outcome {
                StepOutcome::Done => self.expect(now, self.done.contains(&key), || {
                    format!("{key:?} is reported as done, and was not carried out")
                }),
                StepOutcome::Skipped | StepOutcome::NotReached => {
                    let is_given = self
                        .given
                        .values()
                        .any(|it| (it.claim.routine, it.claim.instance, it.step) == key);
                    self.expect(now, !is_given, || {
                        format!("{key:?} is {outcome:?}, and was given")
                    });
                }
                StepOutcome::Failed | StepOutcome::Unknown => {}
            }
        }
    }
}

/// The unique word of a definition: the first part of the values of its steps.
pub(crate) fn word_of(definition: &Definition) -> String {
    let first = definition
        .routine
        .steps
        .first()
        .map(|it| it.value.to_string());
    first
        .unwrap_or_default()
        .split('.')
        .next()
        .unwrap_or_default()
        .to_owned()
}
