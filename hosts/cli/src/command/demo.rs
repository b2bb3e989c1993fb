//! `selvedge demo`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use selvedge_cli::demo::{
    Narrator, Options, Outcome, Plan, Watch, building, ledger, morning, page, run, tolerated,
    with_building, with_morning, write_table,
};
use selvedge_cli::output::{Dropped, Output};
use selvedge_core::Span;
use selvedge_home::term::Colour;
use selvedge_home::{Report, write_report};

use super::home::{Pace, Speed};
use super::{Failure, entropy, runtime};

/// For how long a demo whose table goes elsewhere waits for a reader of its story.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How many times faster than a clock the morning is.
const MORNING_SPEED: u32 = 100;

/// Run a live mesh on this machine for a quarter of a minute, and judge it (the default)
///
/// Real sockets and real time: nodes join, lose 5 of 100 packets, elect a leader and lose it,
/// crash, leave, restart, are cut off and heal, and all the time take turns at writing one file.
/// Beside it ten nodes in five power domains run the routines of a building without a hub, while
/// one domain goes dark and comes back and epochs begin; five members hold a ledger, of which two
/// are killed; and the routines of a family's morning run in a virtual home, a hundred times as fast
/// as a clock. A table says what was promised and what was seen, and a page shows it. The exit status is
/// 0 if no promise is broken. On a machine that lets a process wait for longer than the settings
/// assume, rows that depend on its speed are not judged.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many nodes
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(Plan::MIN_NODES..=Plan::MAX_NODES))]
    nodes: u64,
    /// What parts, losses and choices are drawn from; random without it. Runs with one seed are
    /// alike but never the same, for time is real
    #[arg(long)]
    seed: Option<u64>,
    /// The protocol period in milliseconds; all other times are in proportion
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(50..=5_000))]
    period: u64,
    /// Where to write the page with the timeline
    #[arg(long, value_name = "FILE", default_value = "selvedge-demo.html")]
    out: PathBuf,
    /// Write the table as JSON to the standard output; what happens is told on the standard error
    #[arg(long)]
    json: bool,
}

impl Demo {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let seed = match self.seed {
            Some(seed) => seed,
            // A short one, to be typed again.
            None => entropy()? % 10_000,
        };
        // Fail before the run, not after it.
        self.write("")?;
        let options = Options {
            nodes: self.nodes,
            seed,
            period: Span::millis(self.period),
        };
        let speed = if self.json {
            Speed::Max
        } else {
            Speed::Times(MORNING_SPEED)
        };
        let watch = Watch::start(tolerated(options.period));
        let home = thread::spawn(move || morning(seed, &mut Pace::new(speed, false)));
        let period = options.period;
        let ledger = thread::spawn(move || ledger(seed, period));
        // A reader that stalls must not stall the nodes.
        let (colour, told) = if self.json {
            (Colour::on(&io::stderr()), told(io::stderr()))
        } else {
            (Colour::on(&io::stdout()), told(io::stdout()))
        };
        let told = told.map_err(Failure::Runtime)?;
        // A thread of its own, lest one mesh waits for the other.
        let narrator = Narrator::new(told.clone(), colour);
        let building = thread::spawn(move || {
            runtime()?
                .block_on(building(seed, period, narrator))
                .map_err(Failure::from)
        });
        let narrator = Narrator::new(told.clone(), colour);
        let mut outcome = runtime()?.block_on(run(options, narrator))?;
        outcome.table.extend(ledger.join().unwrap_or_default());
        // What the mesh came to is told in any case.
        let building = building.join().unwrap_or(Err(Failure::Stopped));
        let rows = building.iter().flat_map(|it| it.table.iter().cloned());
        outcome.table.extend(rows);
        let pace = watch.finish();
        pace.excuse(&mut outcome.table);
        outcome.pace = Some(pace);
        // The mesh is gone: what follows on the same output may wait for its reader.
        told.finish(self.json.then_some(LAST_WORDS));
        self.tell_mesh(&outcome, &home).map_err(Failure::Output)?;
        let mut page = with_building(&page(&outcome, seed), &building?);
        let morning = home.join().ok().flatten();
        if let Some(morning) = &morning {
            page = with_morning(&page, morning, seed);
        }
        self.write(&page)?;
        self.tell_home(morning.as_ref(), seed)
            .map_err(Failure::Output)?;
        Ok(outcome.held() && morning.is_some_and(|it| it.held()))
    }

    fn tell_mesh<T>(&self, outcome: &Outcome, home: &JoinHandle<T>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &outcome.table)?;
            return writeln!(out);
        }
        write_table(&mut out, Colour::on(&io::stdout()), outcome)?;
        write!(
            out,
            "\na morning in a home, {MORNING_SPEED} times as fast as a clock"
        )?;
        let wait = if home.is_finished() {
            ""
        } else {
            ": not over yet"
        };
        writeln!(out, "{wait}")
    }

    fn tell_home(&self, morning: Option<&Report>, seed: u64) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        if let Some(morning) = morning {
            write_report(&mut out, Colour::on(&io::stdout()), morning)?;
            writeln!(out)?;
        }
        let page = self.out.display();
        writeln!(out, "seed {seed}; the timeline is in {page}")
    }

    fn write(&self, page: &str) -> Result<(), Failure> {
        fs::write(&self.out, page).map_err(|source| Failure::Write {
            path: self.out.clone(),
            source,
        })
    }
}

/// A way to tell what happens that never waits for its reader. A terminal that is gone is no reason
/// to stop.
fn told(sink: impl Write + Send + 'static) -> io::Result<Output> {
    let missing = |it: Dropped| {
        format!(
            "{} lines are missing here: the reader was too slow",
            it.lines
        )
    };
    let (output, _closed) = Output::start(sink, Output::LIMIT, missing)?;
    Ok(output)
}
