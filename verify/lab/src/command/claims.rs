//! `selvedge claims`.

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use selvedge_home::term::Colour;
use selvedge_lab::claims::{
    self, FAMILIES, Finding, Plan, Progress, Row, Samples, Shard, judged, named, page, write_table,
};
use selvedge_udp::Clock;

use super::live::Live;
use super::{Failure, listed};

/// The time between two reports of progress without a terminal.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measure again the papers' claims, and compare: a table, claims.json and a page of plots
///
/// A row that differs from the paper is a result: it is printed with its reason. The exit status is
/// 0 if every trial was run. Ctrl-C ends the run and judges the finished trials.
#[derive(Debug, Args)]
pub(crate) struct Claims {
    #[arg(value_name = "NAME", help = names_help())]
    names: Vec<String>,
    /// Number of trials of a setting of which the paper ran 1,000; others in proportion. 1000 is as
    /// many as the paper's
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    trials: u32,
    /// Seed of all trials
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run one of N parts and keep its measurements in DIR/shard-I-of-N.json; merge them later
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    shard: Option<Shard>,
    /// Run nothing, put the files of all shards together
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "names")]
    merge: Vec<PathBuf>,
    /// Where to write claims.json and claims.html
    #[arg(long, value_name = "DIR", default_value = "selvedge-claims")]
    out: PathBuf,
    /// Number of threads; all cores without it
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// Write the rows as JSON to the standard output, too
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    live: Live,
}

impl Claims {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        // Fail before the run, not after it.
        fs::create_dir_all(&self.out).map_err(|source| Failure::Write {
            path: self.out.clone(),
            source,
        })?;
        if self.live.is_asked_for() {
            let is_other = |name: &&String| !["celect", "E11"].contains(&name.as_str());
            if let Some(name) = self.names.iter().find(is_other) {
                return Err(Failure::LiveNames(name.clone()));
            }
            let findings = self.live.run(self.seed)?;
            self.report(&findings, self.seed)?;
            return Ok(true);
        }
        let (samples, complete) = if self.merge.is_empty() {
            self.run_trials()?
        } else {
            merged(&self.merge)?
        };
        if let Some(shard) = self.shard {
            let path = self
                .out
                .join(format!("shard-{}-of-{}.json", shard.number, shard.of));
            write_json(&path, &samples)?;
            eprintln!("{} trials are in {}", samples.len(), path.display());
            return Ok(complete);
        }
        let findings = judged(find(&samples.claims)?, &samples);
        self.report(&findings, samples.seed)?;
        Ok(complete)
    }

    /// Runs the requested trials. Returns true with them if all were run.
    fn run_trials(&self) -> Result<(Samples, bool), Failure> {
        let claims = find(&self.names)?;
        let ids: Vec<String> = claims.iter().map(|claim| claim.id.to_owned()).collect();
        let mut samples = Samples::new(self.seed, self.trials, ids);
        let mut plan = Plan::new(&claims, self.trials, self.seed);
        if let Some(shard) = self.shard {
            plan = plan.shard(shard);
        }
        let stop = stop_on_ctrl_c()?;
        let cores = || thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.map_or_else(cores, NonZeroUsize::get);
        let mut watcher = Watcher::new(plan.units.len());
        let outcome = claims::run(&plan, threads, &stop, &mut samples, |progress| {
            watcher.notify(progress);
        });
        watcher.finish();
        if let Err((experiment, fault)) = outcome {
            eprintln!("selvedge: {experiment:?} could not be run: {fault}: please report this");
            return Ok((samples, false));
        }
        let complete = samples.len() == plan.units.len();
        if !complete {
            eprintln!(
                "stopped after {} of {} trials; the results rest on these",
                samples.len(),
                plan.units.len()
            );
        }
        Ok((samples, complete))
    }

    fn report(&self, findings: &[Finding], seed: u64) -> Result<(), Failure> {
        let rows: Vec<Row> = findings
            .iter()
            .filter_map(|finding| finding.row(seed))
            .collect();
        write_json(&self.out.join("claims.json"), &rows)?;
        write(&self.out.join("claims.html"), &page(findings, seed))?;
        self.print(findings, &rows).map_err(Failure::Output)?;
        eprintln!(
            "{} has claims.json and claims.html, which opens in any browser",
            self.out.display()
        );
        Ok(())
    }

    fn print(&self, findings: &[Finding], rows: &[Row]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, rows)?;
            writeln!(out)
        } else {
            write_table(&mut out, Colour::on(&io::stdout()), findings)
        }
    }
}

fn names_help() -> String {
    let families = FAMILIES.iter().map(|it| it.name);
    let families = listed(families);
    format!("Which claims to run: {families}, or single ones as in `M6`; all without it")
}

fn find(names: &[String]) -> Result<Vec<claims::Claim>, Failure> {
    named(names).map_err(|name| Failure::UnknownClaim {
        name,
        known: FAMILIES
            .iter()
            .map(|family| {
                let claims = (family.claims)();
                let ids: Vec<&str> = claims.iter().map(|claim| claim.id).collect();
                format!("{} ({})", family.name, ids.join(", "))
            })
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// Merges all shards. Returns true with them if none is missing.
fn merged(files: &[PathBuf]) -> Result<(Samples, bool), Failure> {
    let mut all: Option<Samples> = None;
    for path in files {
        let text = fs::read_to_string(path).map_err(|source| Failure::Read {
            path: path.clone(),
            source,
        })?;
        let shard: Samples = serde_json::from_str(&text).map_err(|error| Failure::NoShard {
            path: path.clone(),
            why: error.to_string(),
        })?;
        match &mut all {
            None => all = Some(shard),
            Some(all) => all.merge(shard).map_err(|error| Failure::NoShard {
                path: path.clone(),
                why: error.to_string(),
            })?,
        }
    }
    let samples = all.unwrap_or_else(|| Samples::new(0, 0, Vec::new()));
    let plan = Plan::new(&find(&samples.claims)?, samples.asked, samples.seed);
    let (here, of) = (samples.len(), plan.units.len());
    if here < of {
        eprintln!("{here} of {of} trials are here: some shards are missing, or were stopped");
    }
    Ok((samples, here == of))
}

/// A flag that Ctrl-C sets. A second one ends the program at once.
fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    thread::spawn(move || {
        runtime.block_on(async {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::Relaxed);
                eprintln!(
                    "\nending: waiting for the trials that run (Ctrl-C again to give them up)"
                );
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(130);
            }
        });
    });
    Ok(stop)
}

/// Shows the progress of a run: a bar on a terminal, otherwise a line at intervals.
struct Watcher {
    bar: ProgressBar,
    clock: Clock,
    next: Duration,
    lines: bool,
}

impl Watcher {
    fn new(of: usize) -> Self {
        let lines = !io::stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(of as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(
            "{bar:40} {pos}/{len} trials, {elapsed} so far, about {eta} left",
        );
        Self {
            bar: match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            },
            clock: Clock::start(),
            next: PATIENCE,
            lines,
        }
    }

    fn notify(&mut self, progress: Progress) {
        self.bar.set_position(progress.done as u64);
        let elapsed = Duration::from_micros(self.clock.now().0);
        if self.lines && elapsed >= self.next {
            self.next = elapsed + PATIENCE;
            eprintln!(
                "{} of {} trials, {:.0?} so far, about {:.0?} left",
                progress.done,
                progress.of,
                elapsed,
                self.bar.eta()
            );
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Write {
        path: path.to_owned(),
        source: error.into(),
    })?;
    write(path, &format!("{text}\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}
