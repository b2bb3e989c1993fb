//! `selvedge check`.

use std::io::{self, Write};

use clap::Args;
use selvedge_hub::term::Colour;
use selvedge_lab::checks::{Finding, LISTS, List, run};
use selvedge_sim::check::{Outcome, Rules, Scenario};
use tokio::time::Duration;

use super::{Failure, listed};

/// After how long a check reports its progress, and how often after that.
const PATIENCE: Duration = Duration::from_secs(3);

/// Try every order of events within bounds: our rules hold, the published ones break
///
/// Every order of events within the bounds is tried. Our rules must hold in all of them; the
/// papers' rules must break where our errata say so, and the shortest way there is shown. The exit
/// status is 0 if every outcome is the expected one, to the state and to the step.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[arg(value_name = "NAME", help = names_help())]
    names: Vec<String>,
    /// Run the scenarios that take minutes, too
    #[arg(long)]
    deep: bool,
    /// Write the findings as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let colour = Colour::on(&io::stdout());
        let mut findings = Vec::new();
        for list in self.lists()? {
            let scenarios = (list.scenarios)();
            let wanted = |it: &&Scenario| self.deep || !it.is_deep();
            for scenario in scenarios.iter().filter(wanted) {
                let found = patiently(scenario);
                if !self.json {
                    // At once: the next one may take long.
                    write_scenario(&mut io::stdout(), colour, &found).map_err(Failure::Output)?;
                }
                findings.extend(found);
            }
        }
        if findings.is_empty() {
            // Nothing was checked, so no property held.
            return Err(Failure::NothingToCheck);
        }
        let mut out = io::stdout().lock();
        if self.json {
            let rows: Vec<_> = findings.iter().map(Finding::row).collect();
            let written = serde_json::to_writer_pretty(&mut out, &rows).map_err(io::Error::from);
            written.and_then(|()| writeln!(out))
        } else {
            write_end(&mut out, colour, &findings)
        }
        .map_err(Failure::Output)?;
        Ok(findings.iter().all(|it| it.report.as_expected()))
    }

    fn lists(&self) -> Result<Vec<List>, Failure> {
        if self.names.is_empty() {
            return Ok(LISTS.to_vec());
        }
        let find = |name: &String| {
            let list = LISTS.iter().find(|list| list.name == name.as_str());
            list.copied().ok_or_else(|| Failure::UnknownCheck {
                name: name.clone(),
                known: LISTS
                    .iter()
                    .map(|list| list.name)
                    .collect::<Vec<_>>()
                    .join(", "),
            })
        };
        self.names.iter().map(find).collect()
    }
}

fn names_help() -> String {
    let lists = listed(LISTS.iter().map(|it| it.name));
    format!("Which lists to run: {lists}; all without it")
}

/// Runs a scenario, and reports its progress on the standard error when it takes long.
fn patiently(scenario: &Scenario) -> Vec<Finding> {
    let mut next = PATIENCE;
    run(scenario, |elapsed, states| {
        if elapsed >= next {
            next = elapsed + PATIENCE;
            eprintln!("{}: {states} states in {:.0?}", scenario.name(), elapsed);
        }
    })
}

/// Writes a scenario with its cost, and a line for each of its properties.
fn write_scenario(out: &mut impl Write, colour: Colour, found: &[Finding]) -> io::Result<()> {
    let Some(first) = found.first() else {
        return Ok(());
    };
    let report = &first.report;
    let rules = match report.rules {
        Rules::Ours => "our rules",
        Rules::Published => "published rules",
    };
    let cost = format!(
        "{rules}; {}; {} states in {:.2} s",
        report.bounds,
        report.states,
        first.took.as_secs_f64()
    );
    writeln!(out, "{}  {}", report.name, colour.dim(&cost))?;
    let width = found.iter().map(|it| it.report.property.chars().count());
    let width = width.max().unwrap_or_default();
    for finding in found {
        let outcome = outcome(colour, finding);
        writeln!(out, "  {:width$}  {outcome}", finding.report.property)?;
    }
    Ok(())
}

/// Writes the steps of each property that broke, and the totals.
fn write_end(out: &mut impl Write, colour: Colour, findings: &[Finding]) -> io::Result<()> {
    for finding in findings {
        if let Outcome::Breaks { trace } = &finding.report.outcome {
            let report = &finding.report;
            writeln!(out, "\n{}: how {:?} breaks", report.name, report.property)?;
            writeln!(out, "{trace}")?;
        }
    }
    let expected = findings.iter().filter(|it| it.report.as_expected()).count();
    let line = format!("{expected} of {} outcomes are as expected", findings.len());
    let line = if expected == findings.len() {
        colour.good(&line)
    } else {
        colour.bad(&line)
    };
    writeln!(out, "\n{line}")
}

fn outcome(colour: Colour, finding: &Finding) -> String {
    let report = &finding.report;
    let text = match &report.outcome {
        Outcome::Holds => "holds".to_owned(),
        Outcome::Breaks { .. } => format!("breaks after {} steps", report.steps),
        Outcome::Truncated { why } => format!("unknown: {why}"),
    };
    if report.as_expected() {
        colour.good(&format!("{text}, as expected"))
    } else {
        let expected = report.expected.map(|it| format!(", expected {it:?}"));
        colour.bad(&format!("{text}{}", expected.unwrap_or_default()))
    }
}
