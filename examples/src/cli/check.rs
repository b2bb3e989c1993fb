//! `selvedge check`.

use std::io::{self, Write};

use clap::Args;
use selvedge_examples::checks::{Finding, LISTS, List, run};
use selvedge_examples::term::Colour;
use selvedge_sim::check::{Outcome, Scenario};
use tokio::time::Duration;

use super::Failure;

/// After how long a check says how far it is, and how often from there on.
const PATIENCE: Duration = Duration::from_secs(3);

/// Try every order of events within bounds: our rules hold, the published ones break
///
/// Every order of events within the bounds is tried. Our rules must hold in all of them; the
/// papers' rules must break where our errata say so, and the shortest way there is shown. The exit
/// status is 0 if every outcome is the expected one, to the state and to the step.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Which lists to run; all without it
    #[arg(value_name = "NAME")]
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
        let mut findings = Vec::new();
        for list in self.lists()? {
            let scenarios = (list.scenarios)();
            let wanted = |it: &&Scenario| self.deep || !it.is_deep();
            for scenario in scenarios.iter().filter(wanted) {
                findings.extend(patiently(scenario));
            }
        }
        if findings.is_empty() {
            // Nothing was checked, so nothing held.
            return Err(Failure::NothingToCheck);
        }
        let held = findings.iter().all(|it| it.report.as_expected());
        self.report(&findings).map_err(Failure::Output)?;
        Ok(held)
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

    fn report(&self, findings: &[Finding]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            let rows: Vec<_> = findings.iter().map(Finding::row).collect();
            serde_json::to_writer_pretty(&mut out, &rows)?;
            return writeln!(out);
        }
        write_table(&mut out, Colour::on(&io::stdout()), findings)
    }
}

/// Runs a scenario and says on the standard error how far it is when that takes long.
fn patiently(scenario: &Scenario) -> Vec<Finding> {
    let mut next = PATIENCE;
    run(scenario, |elapsed, states| {
        if elapsed >= next {
            next = elapsed + PATIENCE;
            eprintln!("{}: {states} states in {:.0?}", scenario.name(), elapsed);
        }
    })
}

fn write_table(out: &mut impl Write, colour: Colour, findings: &[Finding]) -> io::Result<()> {
    let header = ["scenario", "property", "rules", "states", "time", "outcome"];
    let rows: Vec<[String; 5]> = findings
        .iter()
        .map(|it| {
            let report = &it.report;
            [
                report.name.clone(),
                report.property.to_owned(),
                report.rules.to_string(),
                report.states.to_string(),
                format!("{:.2} s", it.took.as_secs_f64()),
            ]
        })
        .collect();
    let mut widths = [0; 5];
    for (at, width) in widths.iter_mut().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(at));
        let lengths = cells.map(|cell| cell.chars().count());
        let title = header.get(at).map_or(0, |title| title.len());
        *width = lengths.chain([title]).max().unwrap_or_default();
    }
    let line = |out: &mut dyn Write, cells: [&str; 6]| {
        let [name, property, rules, states, time, outcome] = cells;
        let [a, b, c, d, e] = widths;
        writeln!(
            out,
            "{name:a$}  {property:b$}  {rules:c$}  {states:>d$}  {time:>e$}  {outcome}"
        )
    };
    line(out, header)?;
    for (row, finding) in rows.iter().zip(findings) {
        let [name, property, rules, states, time] = row;
        let outcome = outcome(colour, finding);
        line(out, [name, property, rules, states, time, &outcome])?;
        writeln!(out, "  {}", colour.dim(&finding.report.bounds))?;
    }
    for finding in findings {
        if let Outcome::Breaks { trace } = &finding.report.outcome {
            let report = &finding.report;
            writeln!(out, "\n{}: how {:?} breaks", report.name, report.property)?;
            writeln!(out, "{trace}")?;
        }
    }
    Ok(())
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
