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

/// All lists. A protocol's own list is plugged in here. Names of scenarios begin with that of their
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
    /// What the checker says.
    pub report: Report,
    /// How long the whole scenario took.
    pub took: Duration,
    /// What stateright said, where it was asked.
    pub second: Option<Second>,
}

/// What the second engine says of a scenario as a whole.
#[derive(Clone, Debug)]
pub enum Second {
    /// The same: the verdict, the number of unique states, and the steps.
    Agrees,
    /// Something else, so at least one engine is wrong.
    Disagrees(Box<Disagreement>),
}

/// Which engines run a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Ours alone.
    Ours,
    /// Ours and stateright, at the same time.
    Both,
    /// Ours, and then both anew where ours found no more states than [`FEW`].
    BothWhereFew,
}

/// So many states stateright searches within a second or two.
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
    /// Whether every reachable state was visited.
    pub complete: bool,
    /// Unique states that were visited.
    pub states: usize,
    /// `holds`, `breaks`, or `truncated` when the search did not finish.
    pub outcome: &'static str,
    /// The steps of the counterexample, or how deep the search went.
    pub steps: usize,
    /// `holds` or `breaks`.
    pub expected: Option<&'static str>,
    /// Whether stateright agrees on the scenario, where it was asked.
    pub second_agrees: Option<bool>,
}

impl Finding {
    /// Whether it is what it should be, and no engine says otherwise.
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

/// Runs a scenario. `progress` is called now and then with the time so far and the number of
/// states found, and may end a search: then properties are unknown.
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
