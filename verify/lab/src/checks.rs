//! The exhaustive checks that `selvedge check` runs: one list a protocol.

use core::ops::ControlFlow;
use core::time::Duration;

use selvedge_sim::check::{Disagreement, Expected, Incomplete, Limits, Outcome, Report, Scenario};
use serde::Serialize;

use selvedge_udp::Clock;

/// A protocol's scenarios, and the name to ask for them.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The name on the command line.
    pub name: &'static str,
    /// Makes the scenarios.
    pub scenarios: fn() -> Vec<Scenario>,
}

/// All lists; a new protocol's list is added here. Names of scenarios begin with the name of their
/// list, and a slash.
pub const LISTS: &[List] = &[
    List {
        name: "ricart-agrawala",
        scenarios: crate::ricart_agrawala::checks::scenarios,
    },
    List {
        name: "membership",
        scenarios: selvedge_membership::check::scenarios,
    },
    List {
        name: "camera",
        scenarios: selvedge_camera::check::scenarios,
    },
    List {
        name: "celect",
        scenarios: selvedge_celect::check::scenarios,
    },
    List {
        name: "safehome",
        scenarios: selvedge_safehome::check::scenarios,
    },
    List {
        name: "replica",
        scenarios: selvedge_replica::check::scenarios,
    },
    List {
        name: "groups",
        scenarios: selvedge_groups::check::scenarios,
    },
    List {
        name: "kgroup",
        scenarios: selvedge_kgroup::check::scenarios,
    },
    List {
        name: "pcm",
        scenarios: selvedge_pcm::check::scenarios,
    },
];

/// The result of one property of one scenario.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The report of the checker.
    pub report: Report,
    /// The time that the whole scenario took.
    pub took: Duration,
    /// The verdict of stateright, if it ran.
    pub second: Option<Second>,
}

/// The second engine's verdict on a scenario as a whole.
#[derive(Clone, Debug)]
pub enum Second {
    /// The same verdict, number of unique states, and steps.
    Agrees,
    /// Another result, so at least one engine is wrong.
    Disagrees(Box<Disagreement>),
}

/// The engines that run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Ours alone.
    Ours,
    /// Ours and stateright, at the same time.
    Both,
    /// Ours first, and then both if ours found no more states than [`FEW`].
    BothWhereFew,
}

/// The number of states that stateright searches within a second or two.
pub const FEW: usize = 20_000;

/// A [`Finding`] for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The scenario.
    pub name: String,
    /// The property.
    pub property: String,
    /// `ours`, or `published` for the paper's rules to the letter.
    pub rules: String,
    /// Nodes, commands and faults in words.
    pub bounds: String,
    /// True if every reachable state was visited.
    pub complete: bool,
    /// Unique states that were visited.
    pub states: usize,
    /// `holds`, `breaks`, or `truncated` when the search did not finish.
    pub outcome: &'static str,
    /// The steps of the counterexample, or the depth of the search.
    pub steps: usize,
    /// `holds` or `breaks`.
    pub expected: Option<&'static str>,
    /// True if stateright agrees on the scenario; `None` if it did not run.
    pub second_agrees: Option<bool>,
}

impl Finding {
    /// Returns true if the outcome is the expected one, and no engine disagrees.
    #[must_use]
    pub fn as_expected(&self) -> bool {
        self.report.as_expected() && !matches!(self.second, Some(Second::Disagrees(_)))
    }

    /// The finding for programs.
    #[must_use]
    pub fn row(&self) -> Row {
        let report = &self.report;
        Row {
            name: report.name.clone(),
            property: report.property.to_owned(),
            rules: report.rules.to_string(),
            bounds: report.bounds.clone(),
            complete: report.complete,
            states: report.states,
            outcome: report.outcome_name(),
            steps: report.steps,
            expected: report.expected.map(|expected| match expected {
                Expected::Holds { .. } => "holds",
                Expected::Breaks { .. } => "breaks",
            }),
            second_agrees: self
                .second
                .as_ref()
                .map(|second| matches!(second, Second::Agrees)),
        }
    }
}

/// Runs a scenario. `progress` is called repeatedly with the time passed and the number of states
/// found, and may end a search: then properties are unknown.
pub fn run(
    scenario: &Scenario,
    engine: Engine,
    mut progress: impl FnMut(Duration, usize) -> ControlFlow<()>,
) -> Vec<Finding> {
    let clock = Clock::start();
    let elapsed = || Duration::from_micros(clock.now().0);
    let mut news = |states| progress(elapsed(), states);
    let limits = Limits::default();
    let is_few = |reports: &[Report]| reports.iter().all(|it| it.states <= FEW);
    let alone = match engine {
        Engine::Both => None,
        Engine::Ours => Some(scenario.run(&limits, &mut news)),
        Engine::BothWhereFew => Some(scenario.run(&limits, &mut news)).filter(|it| !is_few(it)),
    };
    let (reports, second) = match alone {
        Some(reports) => (reports, None),
        None => {
            let (reports, verdict) = scenario.run_both(&limits, &mut news);
            let second = verdict.map_or_else(
                |disagreement| Second::Disagrees(Box::new(disagreement)),
                |_| Second::Agrees,
            );
            (reports, Some(second))
        }
    };
    let took = elapsed();
    // A search ends where a property breaks. If that was to be shown, the properties that it left
    // open are not findings.
    let is_shown = reports
        .iter()
        .any(|report| matches!(report.outcome, Outcome::Breaks { .. }) && report.as_expected());
    let is_finding = |report: &Report| {
        let why = match &report.outcome {
            Outcome::Truncated { why } => Some(why),
            Outcome::Holds | Outcome::Breaks { .. } => None,
        };
        !(is_shown && matches!(why, Some(Incomplete::OtherBroke { .. })))
    };
    reports
        .into_iter()
        .filter(is_finding)
        .map(|report| Finding {
            report,
            took,
            second: second.clone(),
        })
        .collect()
}
