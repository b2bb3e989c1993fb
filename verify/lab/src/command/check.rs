//! `selvedge check`.

use core::num::NonZeroUsize;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;

use clap::{Args, ValueEnum};
use selvedge_home::term::Colour;
use selvedge_lab::checks::{Engine, Finding, LISTS, List, Second, run};
use selvedge_sim::check::{Outcome, Rules, Scenario};
use tokio::time::Duration;

use super::{Failure, listed};

/// The time after which a check reports its progress, and again and again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Try every order of events within bounds: our rules hold, the published ones break
///
/// Every order of events within the bounds is tried. Our rules must hold in all of them; the
/// papers' rules must break where our errata state it, and a shortest way there is shown for the
/// scenarios that are named. The exit
/// status is 0 if every outcome is the expected one, to the state and to the step, and if the
/// engines agree.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[arg(value_name = "NAME", help = names_help())]
    names: Vec<String>,
    /// The engine that searches; the exit status is 1 where two disagree
    #[arg(
        long,
        value_enum,
        value_name = "ENGINE",
        default_value = "ours",
        conflicts_with = "explore"
    )]
    engine: Which,
    /// Serve stateright's Explorer, a web page to walk the states of one scenario by hand
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        default_missing_value = "127.0.0.1:3000",
        conflicts_with_all = ["json", "deep", "threads"]
    )]
    explore: Option<SocketAddr>,
    /// Run the papers' rules alone, where they differ from ours
    #[arg(long)]
    published: bool,
    /// Run the scenarios that take minutes, too
    #[arg(long)]
    deep: bool,
    /// Number of scenarios that run at a time, each with memory of its own; as many as there are
    /// cores without it
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Write the findings as JSON
    #[arg(long)]
    json: bool,
}

/// The engine that searches.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// Ours alone
    Ours,
    /// Ours and stateright
    Both,
    /// Ours, and stateright where ours found no more than 20,000 states
    BothWhereFew,
}

impl Check {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let scenarios = self.scenarios()?;
        if let Some(address) = self.explore {
            return explore(&scenarios, address);
        }
        let engine = match self.engine {
            Which::Ours => Engine::Ours,
            Which::Both => Engine::Both,
            Which::BothWhereFew => Engine::BothWhereFew,
        };
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or_else(cores, NonZeroUsize::get);
        let colour = Colour::on(&io::stdout());
        let published = published();
        let mut findings = Vec::new();
        in_order(&scenarios, engine, threads, |found| {
            if !self.json {
                // At once: the next one may take long.
                write_scenario(&mut io::stdout(), colour, &found, &published)?;
            }
            findings.extend(found);
            Ok(())
        })
        .map_err(Failure::Output)?;
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
            write_end(&mut out, colour, &findings, !self.names.is_empty())
        }
        .map_err(Failure::Output)?;
        Ok(findings.iter().all(Finding::as_expected))
    }

    /// The requested scenarios, in the order of the names. A deep scenario is included if it is
    /// named itself, or is to be explored.
    fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let of = |it: &Scenario| !self.published || it.rules() == Rules::Published;
        let all_of = |list: &List| (list.scenarios)().into_iter().filter(of);
        let is_quick = |it: &Scenario| self.deep || self.explore.is_some() || !it.is_deep();
        if self.names.is_empty() {
            return Ok(LISTS.iter().flat_map(all_of).filter(is_quick).collect());
        }
        let mut scenarios = Vec::new();
        for name in &self.names {
            if let Some(list) = LISTS.iter().find(|list| list.name == name.as_str()) {
                scenarios.extend(all_of(list).filter(is_quick));
                continue;
            }
            let before = scenarios.len();
            scenarios.extend(LISTS.iter().flat_map(all_of).filter(|it| it.name() == name));
            if scenarios.len() == before {
                return Err(Failure::UnknownCheck {
                    name: name.clone(),
                    known: listed(LISTS.iter().map(|list| list.name)),
                });
            }
        }
        Ok(scenarios)
    }
}

/// Serves the Explorer over the first of these scenarios: they differ in the rules alone.
fn explore(scenarios: &[Scenario], address: SocketAddr) -> Result<bool, Failure> {
    let [scenario, rest @ ..] = scenarios else {
        return Err(Failure::NothingToCheck);
    };
    if rest.iter().any(|it| it.name() != scenario.name()) {
        let mut names: Vec<&str> = scenarios.iter().map(Scenario::name).collect();
        names.dedup();
        return Err(Failure::ExploreOne {
            known: names.join("\n  "),
        });
    }
    let mut written = Ok(());
    scenario.explore(address, &mut |bound| {
        let mut out = io::stdout().lock();
        written = writeln!(out, "{}: http://{bound}/", scenario.name()).and_then(|()| out.flush());
    })?;
    written.map_err(Failure::Output)?;
    Ok(true)
}

fn names_help() -> String {
    let lists = listed(LISTS.iter().map(|it| it.name));
    format!("What to run: a list ({lists}) or a scenario by its name; all lists without it")
}

/// Runs scenarios, several at a time, and passes the findings of each on, in their order.
///
/// # Errors
/// The first error of `take`. Then no further scenario begins, and long searches end.
fn in_order(
    scenarios: &[Scenario],
    engine: Engine,
    threads: usize,
    mut take: impl FnMut(Vec<Finding>) -> io::Result<()>,
) -> io::Result<()> {
    let (begun, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.min(scenarios.len()) {
            let (begun, is_over, send) = (&begun, &is_over, send.clone());
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    let Some(scenario) = scenarios.get(number) else {
                        return;
                    };
                    let found = patiently(scenario, engine, is_over);
                    if send.send((number, found)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut early = BTreeMap::new();
        let mut next = 0;
        for (number, found) in receive {
            early.insert(number, found);
            while let Some(found) = early.remove(&next) {
                if let Err(why) = take(found) {
                    is_over.store(true, Ordering::Relaxed);
                    return Err(why);
                }
                next += 1;
            }
        }
        Ok(())
    })
}

/// Runs a scenario, and reports its progress on the standard error when it takes long. Ends without
/// a result when `is_over` is set.
fn patiently(scenario: &Scenario, engine: Engine, is_over: &AtomicBool) -> Vec<Finding> {
    let mut next = PATIENCE;
    run(scenario, engine, |elapsed, states| {
        if elapsed >= next {
            next = elapsed + PATIENCE;
            eprintln!("{}: {states} states in {:.0?}", scenario.name(), elapsed);
        }
        if is_over.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })
}

/// The names of the scenarios that have published rules as well as ours.
fn published() -> BTreeSet<String> {
    let all = LISTS.iter().flat_map(|list| (list.scenarios)());
    let published = all.filter(|it| it.rules() == Rules::Published);
    published.map(|it| it.name().to_owned()).collect()
}

/// Writes a scenario with its cost, and a line for each of its properties. The rules are named if the
/// scenario has published ones as well as ours.
fn write_scenario(
    out: &mut impl Write,
    colour: Colour,
    found: &[Finding],
    published: &BTreeSet<String>,
) -> io::Result<()> {
    let Some(first) = found.first() else {
        return Ok(());
    };
    let report = &first.report;
    let rules = match report.rules {
        Rules::Ours if published.contains(&report.name) => "our rules; ",
        Rules::Ours => "",
        Rules::Published => "published rules; ",
    };
    let cost = format!(
        "{rules}{}; {} states in {:.2} s",
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
    match &first.second {
        None => Ok(()),
        Some(Second::Agrees) => writeln!(out, "  {}", colour.good("stateright agrees")),
        Some(Second::Disagrees(why)) => writeln!(out, "  {}", colour.bad(&why.to_string())),
    }
}

/// Writes the totals, and before them the steps of each property that broke: of those alone that should
/// not have broken, where the user named no scenario.
fn write_end(
    out: &mut impl Write,
    colour: Colour,
    findings: &[Finding],
    is_named: bool,
) -> io::Result<()> {
    for finding in findings {
        if !is_named && finding.as_expected() {
            continue;
        }
        if let Outcome::Breaks { trace } = &finding.report.outcome {
            let report = &finding.report;
            writeln!(out, "\n{}: how {:?} breaks", report.name, report.property)?;
            writeln!(out, "{trace}")?;
        }
    }
    let expected = findings.iter().filter(|it| it.as_expected()).count();
    let line = format!("{expected} of {} outcomes are as expected", findings.len());
    let line = if expected == findings.len() {
        colour.good(&line)
    } else {
        colour.bad(&line)
    };
    writeln!(out, "\n{line}")?;
    if !is_named {
        writeln!(
            out,
            "name a scenario to read how it breaks, such as `selvedge check ricart-agrawala`"
        )?;
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
