//! `selvedge demo`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use selvedge_cli::demo::{
    Narrator, Options, Pace, Plan, Promise, Watch, building, building_page, ledger, page, picture,
    run, tolerated, write_table,
};
use selvedge_cli::output::{Dropped, Output};
use selvedge_core::Span;
use selvedge_home::term::Colour;

use super::{Failure, runtime};

/// The time for which a demo with `--json` waits, after its end, for a slow reader of its story.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Run a live mesh on this machine for a quarter of a minute, and judge it (the default)
///
/// Real sockets and real time: nodes join, lose 5 of 100 packets, elect a leader and lose it,
/// crash, leave, restart, are cut off and heal, and all the time take turns at writing one file. A
/// table lists each promise with the measured value, and a page shows the timeline. The exit status
/// is 0 if no promise is broken. On a machine that pauses a process for longer than the settings
/// assume, rows that depend on its speed are not judged.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Demo {
    #[command(subcommand)]
    story: Option<Story>,
    #[command(flatten)]
    mesh: Mesh,
}

#[derive(Debug, Subcommand)]
enum Story {
    Building(Building),
    Ledger(Ledger),
}

impl Demo {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        match self.story {
            None => self.mesh.run(),
            Some(Story::Building(building)) => building.run(),
            Some(Story::Ledger(ledger)) => ledger.run(),
        }
    }
}

/// The demo without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct Mesh {
    /// Number of nodes
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(Plan::MIN_NODES..=Plan::MAX_NODES))]
    nodes: u64,
    #[command(flatten)]
    common: Common,
    /// File for the page with the timeline; FILE.svg gets the picture alone
    #[arg(long, value_name = "FILE", default_value = "selvedge-demo.html")]
    out: PathBuf,
}

impl Mesh {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let (seed, period) = (self.common.seed()?, self.common.period());
        let options = Options {
            nodes: self.nodes,
            seed,
            period,
        };
        let is_picture = self.out.extension().is_some_and(|it| it == "svg");
        self.common.notify(seed, Some(&self.out), |narrator| {
            let mut outcome = runtime()?.block_on(run(options, narrator))?;
            Ok(Notified {
                table: core::mem::take(&mut outcome.table),
                cost: Some(outcome.cost()),
                page: Box::new(move |table| match is_picture {
                    true => picture(&outcome),
                    false => page(&outcome, table, seed),
                }),
            })
        })
    }
}

/// Run the routines of a building without a hub, on ten nodes in five power domains
///
/// K-groups of the nodes manage six devices, three routines and a map. Nodes store
/// their promises in a temporary folder. A lamp and a routine are added while they run. Then one power
/// domain fails and comes back, all nodes lose power together, and epochs begin. A table lists each
/// promise with the measured value, and a page shows which node led each group over time, and plans of
/// the floor. The exit status is 0 if no promise is broken.
#[derive(Debug, Args)]
struct Building {
    #[command(flatten)]
    common: Common,
    /// File for the page with the timeline
    #[arg(long, value_name = "FILE", default_value = "selvedge-building.html")]
    out: PathBuf,
}

impl Building {
    fn run(self) -> Result<bool, Failure> {
        let (seed, period) = (self.common.seed()?, self.common.period());
        self.common.notify(seed, Some(&self.out), |narrator| {
            let mut building = runtime()?.block_on(building(seed, period, narrator))?;
            Ok(Notified {
                table: core::mem::take(&mut building.table),
                cost: None,
                page: Box::new(move |table| building_page(&building.course, table, seed)),
            })
        })
    }
}

/// Run a replicated ledger on five members; kill the leader, and later the leader and another
/// member
///
/// Members restart with the state that they stored. A table lists each promise with the measured
/// value. The exit status is 0 if no promise is broken.
#[derive(Debug, Args)]
struct Ledger {
    #[command(flatten)]
    common: Common,
}

impl Ledger {
    fn run(self) -> Result<bool, Failure> {
        let (seed, period) = (self.common.seed()?, self.common.period());
        self.common.notify(seed, None, |mut narrator| {
            Ok(Notified {
                table: ledger(seed, period, &mut narrator).map_err(Failure::Sockets)?,
                cost: None,
                page: Box::new(|_| String::new()),
            })
        })
    }
}

/// The options of all demos.
#[derive(Debug, Args)]
struct Common {
    /// Seed of parts, losses and choices; random by default. Runs with one seed are similar but
    /// never the same, because time is real
    #[arg(long)]
    seed: Option<u64>,
    /// Protocol period in milliseconds; all other times are in proportion
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(50..=5_000))]
    period: u64,
    /// Write the table as JSON to the standard output, and the story to the standard error
    #[arg(long)]
    json: bool,
}

type Draw = Box<dyn FnOnce(&[Promise]) -> String>;

/// The result of a demo.
struct Notified {
    table: Vec<Promise>,
    /// The traffic, in a line.
    cost: Option<String>,
    /// Draws the page, with the table after the judgement.
    page: Draw,
}

impl Common {
    fn seed(&self) -> Result<u64, Failure> {
        super::seed(self.seed)
    }

    const fn period(&self) -> Span {
        Span::millis(self.period)
    }

    /// Runs a demo, writes its table and its page, and returns true if no promise is broken.
    fn notify(
        &self,
        seed: u64,
        out: Option<&Path>,
        play: impl FnOnce(Narrator<Output>) -> Result<Notified, Failure>,
    ) -> Result<bool, Failure> {
        // Fail before the run, not after it.
        write(out, "")?;
        let watch = Watch::start(tolerated(self.period()));
        // A reader that stalls must not stall the nodes.
        let (colour, output) = if self.json {
            (Colour::on(&io::stderr()), output(io::stderr()))
        } else {
            (Colour::on(&io::stdout()), output(io::stdout()))
        };
        let output = output.map_err(Failure::Runtime)?;
        let notified = play(Narrator::new(output.clone(), colour));
        let pace = watch.finish();
        // The nodes have stopped: output on the same stream may wait for its reader from here on.
        output.finish(self.json.then_some(LAST_WORDS));
        let Notified {
            mut table,
            cost,
            page,
        } = notified?;
        pace.excuse(&mut table);
        write(out, &page(&table))?;
        self.conclude(&table, pace, cost)
            .and_then(|()| self.sign(seed, out))
            .map_err(Failure::Output)?;
        Ok(!table.iter().any(Promise::is_broken))
    }

    fn conclude(&self, table: &[Promise], pace: Pace, cost: Option<String>) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, table)?;
            return writeln!(out);
        }
        write_table(&mut out, Colour::on(&io::stdout()), table)?;
        writeln!(out)?;
        if let Some(cost) = cost {
            writeln!(out, "{cost}")?;
        }
        writeln!(out, "{}", pace.explain(table))
    }

    fn sign(&self, seed: u64, page: Option<&Path>) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let page = page.map(|it| format!("; the timeline is in {}", it.display()));
        writeln!(io::stdout(), "seed {seed}{}", page.unwrap_or_default())
    }
}

fn write(out: Option<&Path>, page: &str) -> Result<(), Failure> {
    let Some(path) = out else { return Ok(()) };
    fs::write(path, page).map_err(|source| Failure::Write {
        path: path.to_owned(),
        source,
    })
}

/// An output that never waits for its reader. A closed terminal is no reason to stop.
fn output(sink: impl Write + Send + 'static) -> io::Result<Output> {
    let missing = |it: Dropped| {
        format!(
            "{} lines were dropped here: the reader was too slow",
            it.lines
        )
    };
    let (output, _closed) = Output::start(sink, Output::LIMIT, missing)?;
    Ok(output)
}
