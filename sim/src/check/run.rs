//! From a search to reports on properties.

use core::ops::ControlFlow;

use selvedge_core::Machine;

use super::explore::{End, Search};
use super::property::Kind;
use super::{
    Incomplete, Limits, Model, NO_PANIC, Observer, Outcome, Report, Rules, Surprise, Trace,
};

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Checks every property and reports on each, in the order in which they were added. Should a
    /// machine panic, a report on that comes first: a break of [`NO_PANIC`].
    ///
    /// The search ends when the first one breaks; then nothing is known about the others. The
    /// counterexample is a shortest one; for progress, a shortest way to a state from which the
    /// goal is out of reach.
    #[must_use]
    pub fn check(&self, limits: &Limits) -> Vec<Report> {
        self.check_with(limits, &mut |_| ControlFlow::Continue(()))
    }

    /// Checks every property as [`check`](Self::check); calls `news` repeatedly with the number of
    /// states found, and `news` may stop the search.
    #[must_use]
    pub fn check_with(
        &self,
        limits: &Limits,
        news: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Vec<Report> {
        self.reports(&self.search(limits, news), limits)
    }

    /// The reports on all properties after a search.
    pub(super) fn reports(&self, search: &Search, limits: &Limits) -> Vec<Report> {
        let complete = matches!(search.end, End::Complete);
        let reversed = (complete && !search.marks.is_empty()).then(|| search.edges.reversed());
        let report = |at: usize, property: &'static str, kind: Option<&Kind<M, O>>| {
            let outcome = match &search.end {
                End::Truncated(why) => Outcome::Truncated { why: why.clone() },
                End::Broke { property, state } if *property == at => Outcome::Breaks {
                    trace: self.notify(search, *state, None, limits),
                },
                End::Refused {
                    property,
                    state,
                    by,
                } if *property == at => Outcome::Breaks {
                    trace: self.notify(search, *state, Some(*by), limits),
                },
                End::Broke { property, .. } | End::Refused { property, .. } => {
                    let property = self
                        .properties
                        .get(*property)
                        .map_or("", |other| other.name);
                    let why = Incomplete::OtherBroke { property };
                    Outcome::Truncated { why }
                }
                End::Panicked { .. } => {
                    let property = NO_PANIC;
                    let why = Incomplete::OtherBroke { property };
                    Outcome::Truncated { why }
                }
                End::Complete => match kind {
                    Some(Kind::Sometimes(_)) if search.met.get(at) != Some(&true) => {
                        let end = "in no reachable state is it true".to_owned();
                        let trace = Trace {
                            end,
                            ..Trace::default()
                        };
                        Outcome::Breaks { trace }
                    }
                    Some(Kind::Progress { .. }) => {
                        let marks = search.marks.iter().find(|(of, _)| *of == at);
                        let stuck = reversed
                            .as_ref()
                            .zip(marks)
                            .and_then(|(reversed, (_, marks))| reversed.stuck(marks));
                        match stuck {
                            Some(state) => {
                                let mut trace = self.notify(search, state, None, limits);
                                trace.end = format!("from here, {property:?} is out of reach");
                                Outcome::Breaks { trace }
                            }
                            None => Outcome::Holds,
                        }
                    }
                    Some(Kind::Always(_) | Kind::Sometimes(_) | Kind::NeverRejects) | None => {
                        Outcome::Holds
                    }
                },
            };
            self.report(property, outcome, search)
        };
        if self.properties.is_empty() {
            return vec![report(0, "", None)];
        }
        let properties = self.properties.iter().enumerate();
        let properties =
            properties.map(|(at, property)| report(at, property.name, Some(&property.kind)));
        let panicked = match search.end {
            End::Panicked { state, by } => {
                let mut trace = self.notify(search, state, Some(by), limits);
                trace.end = "it panicked".to_owned();
                Some(self.report(NO_PANIC, Outcome::Breaks { trace }, search))
            }
            End::Complete | End::Truncated(_) | End::Broke { .. } | End::Refused { .. } => None,
        };
        panicked.into_iter().chain(properties).collect()
    }

    /// Returns the number of unique states, if every property holds in a complete run within the
    /// default limits.
    ///
    /// # Errors
    /// The first property that breaks, or that a truncated run leaves open. It shows the trace.
    pub fn verify(&self) -> Result<usize, Surprise> {
        let mut states = 0;
        let reports = self.check(&Limits::default());
        // A broken property explains more than the properties that its break left open.
        let broke = |report: &Report| matches!(report.outcome, Outcome::Breaks { .. });
        let at = reports.iter().position(broke).unwrap_or(0);
        for report in reports.into_iter().skip(at) {
            if !report.as_expected() {
                return Err(Surprise(Box::new(report)));
            }
            states = report.states;
        }
        Ok(states)
    }

    fn report(&self, property: &'static str, outcome: Outcome, search: &Search) -> Report {
        let steps = match &outcome {
            Outcome::Breaks { trace } => trace.steps.len(),
            Outcome::Holds | Outcome::Truncated { .. } => search.depth,
        };
        Report {
            name: String::new(),
            property,
            rules: Rules::Ours,
            bounds: self.describe(),
            complete: matches!(search.end, End::Complete),
            states: search.states(),
            outcome,
            steps,
            expected: None,
        }
    }
}
