//! `selvedge home`.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;

use chacha20::ChaCha12Rng;
use clap::{Args, ValueEnum};
use rand_core::SeedableRng;
use selvedge_core::{Span, Time};
use selvedge_home::term::Colour;
use selvedge_home::{Outage, Plan, Report, Scenario, Watch, page, run, write_report};
use selvedge_routine::file::{Format, Home as HomeFile};
use selvedge_routine::trigger::TimeOfDay;
use selvedge_routine::{Catalogue, State};
use selvedge_safehome::{Config, Scheduler, Visibility};
use selvedge_udp::Clock;

use super::Failure;

/// Run routines in a virtual home, and draw which routine held which device over time
///
/// Devices are virtual and time is faster than real time. The scenario triggers routines, or, with
/// --clock, the triggers in the file do. The page shows which routine held each device, and which
/// routines waited, were lent a device or were undone. The exit status is 0 if all routines ended
/// and the end state equals that of some serial order.
#[derive(Debug, Args)]
pub(crate) struct Home {
    /// File of routines to use instead of the scenario's: YAML if it ends in .yaml or .yml, else
    /// JSON
    #[arg(long, value_name = "FILE")]
    routines: Option<PathBuf>,
    /// Arrivals of routines, and the routines themselves unless --routines gives a file
    #[arg(long, value_enum, default_value_t = Story::Morning)]
    scenario: Story,
    /// Visibility model
    #[arg(long, value_enum, default_value_t = Model::Ev)]
    model: Model,
    /// Place of a new routine in the order, under eventual visibility
    #[arg(long, value_enum, default_value_t = Order::Timeline)]
    scheduler: Order,
    /// Speed as a multiple of real time; `max` for as fast as possible
    #[arg(long, value_name = "TIMES", default_value = "100", value_parser = speed)]
    speed: Speed,
    /// A device is down from one second to another, as in "toaster@300..420"; may be repeated.
    /// Overlapping times of one device are merged
    #[arg(long, value_name = "DEVICE@FROM..TO", value_parser = outage)]
    fail: Vec<Down>,
    /// A device changes its state by hand at a second, as in "motion=on@600": a sensor detects
    /// motion, a button is pressed; may be repeated
    #[arg(long, value_name = "DEVICE=STATE@SECOND", value_parser = hand)]
    set: Vec<Hand>,
    /// A person runs a routine at a second, as in "good night@3600"; may be repeated
    #[arg(long, value_name = "ROUTINE@SECOND", value_parser = press)]
    press: Vec<Press>,
    /// Run the triggers of the file instead of the scenario's arrivals; the local clock shows this
    /// time at the start, as in 06:00. It is a Monday, and the sun rises at 06:00 and sets at 18:00
    #[arg(long, value_name = "TIME", value_parser = clock, requires = "routines")]
    clock: Option<TimeOfDay>,
    /// With --clock: number of seconds for which triggers run
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 86_400,
        value_parser = clap::value_parser!(u64).range(1..=LATEST),
        requires = "clock"
    )]
    length: u64,
    /// Seed of arrivals, answer times and the factory; random by default
    #[arg(long)]
    seed: Option<u64>,
    /// Folder for the page
    #[arg(long, value_name = "DIR", default_value = "selvedge-home")]
    out: PathBuf,
    /// Write the events as JSON to the standard output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Story {
    /// A family of five gets up: 29 routines within 25 minutes, on 39 devices
    Morning,
    /// A routine of two hours, and 11 others that come meanwhile, on 7 devices
    Party,
    /// 50 stages with 8 items each; an item needs devices of its stage, of the neighbouring stages
    /// and of all stages
    Factory,
}

impl From<Story> for Scenario {
    fn from(story: Story) -> Self {
        match story {
            Story::Morning => Self::Morning,
            Story::Party => Self::Party,
            Story::Factory => Self::Factory,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// Eventual: routines overlap, and the end state is that of some serial order
    Ev,
    /// Partitioned strict: routines without a common device run at the same time
    Psv,
    /// Global strict: one routine at a time
    Gsv,
    /// Strong global strict: one routine at a time, and a failure of any device ends it
    Sgsv,
    /// Weak, as in most hubs: nothing is promised, nothing is undone
    Wv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Into gaps between other routines, by the time for which each needs a device
    Timeline,
    /// Just in time: at the earliest place where it can start at once
    Jit,
    /// First come, first served
    Fcfs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speed {
    Times(u32),
    Max,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Down {
    device: String,
    from: u64,
    until: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Hand {
    device: String,
    state: State,
    at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Press {
    routine: String,
    at: u64,
}

/// The largest second of virtual time that an option accepts: some thirty years.
const LATEST: u64 = 1_000_000_000;

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text.parse().ok().filter(|it| (1..=1_000_000).contains(it));
    let wrong = || "give a number from 1 to 1000000, or max".to_owned();
    times.map(Speed::Times).ok_or_else(wrong)
}

fn outage(text: &str) -> Result<Down, String> {
    let wrong = || "write DEVICE@FROM..TO with seconds up to 1000000000, FROM below TO, as in toaster@300..420";
    let parse = || {
        let (device, times) = text.rsplit_once('@')?;
        let (from, until) = times.split_once("..")?;
        let (from, until): (u64, u64) = (from.parse().ok()?, until.parse().ok()?);
        let until = (until <= LATEST).then_some(until)?;
        let device = device.to_owned();
        (from < until).then_some(Down {
            device,
            from,
            until,
        })
    };
    parse().ok_or_else(|| wrong().to_owned())
}

/// Splits an option into its event and its second.
fn at_second(text: &str) -> Option<(&str, u64)> {
    let (what, at) = text.rsplit_once('@')?;
    let at = at.parse().ok().filter(|it| *it <= LATEST)?;
    (!what.is_empty()).then_some((what, at))
}

fn hand(text: &str) -> Result<Hand, String> {
    let parse = || {
        let (what, at) = at_second(text)?;
        let (device, state) = what.split_once('=')?;
        let state = match state.parse::<i32>() {
            Ok(number) => number.into(),
            Err(_) if state.is_empty() => return None,
            Err(_) => state.into(),
        };
        let device = device.to_owned();
        Some(Hand { device, state, at })
    };
    let wrong = || "write DEVICE=STATE@SECOND with a second up to 1000000000, as in motion=on@600";
    parse().ok_or_else(|| wrong().to_owned())
}

fn press(text: &str) -> Result<Press, String> {
    let parse = || {
        let (routine, at) = at_second(text)?;
        let routine = routine.to_owned();
        Some(Press { routine, at })
    };
    let wrong = || "write ROUTINE@SECOND with a second up to 1000000000, as in good night@3600";
    parse().ok_or_else(|| wrong().to_owned())
}

fn clock(text: &str) -> Result<TimeOfDay, String> {
    let wrong = || "write a time of day as 06:00 or 06:00:30".to_owned();
    TimeOfDay::parse(text).ok_or_else(wrong)
}

impl Home {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let seed = super::seed(self.seed)?;
        let path = self
            .out
            .join(format!("{}.html", self.title(" ").replace(' ', "-")));
        // Fail before the run, not after it.
        let failed = |source| Failure::Write {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&self.out).map_err(failed)?;
        // The page of an earlier run stays until there is a new one.
        let mut open = fs::OpenOptions::new();
        open.append(true).create(true).open(&path).map_err(failed)?;
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let plan = self.plan(&mut rng)?;
        let mut pace = Pace::new(self.speed, !self.json);
        let report = run(&plan, rng, &mut pace).map_err(|reject| Failure::Hub {
            why: reject.explain(&plan.home.catalogue),
        })?;
        let title = self.title(", ");
        fs::write(&path, page(&report, &title, seed)).map_err(failed)?;
        self.report(&report, &path, seed).map_err(Failure::Output)?;
        Ok(report.held())
    }

    fn scenario(&self) -> Scenario {
        self.scenario.into()
    }

    /// A title such as "morning, ev, timeline".
    fn title(&self, between: &str) -> String {
        let file = self.routines.as_deref().and_then(Path::file_stem);
        let name = file.map_or_else(
            || self.scenario().name().to_owned(),
            |it| it.to_string_lossy().into_owned(),
        );
        let model = format!("{:?}", self.model).to_lowercase();
        if self.model == Model::Ev {
            let order = format!("{:?}", self.scheduler).to_lowercase();
            return [name, model, order].join(between);
        }
        [name, model].join(between)
    }

    fn plan(&self, rng: &mut ChaCha12Rng) -> Result<Plan, Failure> {
        let home = match &self.routines {
            Some(path) => {
                let path = path.clone();
                let bytes = match fs::read(&path) {
                    Ok(bytes) => bytes,
                    Err(source) => return Err(Failure::Read { path, source }),
                };
                let extension = path.extension().and_then(OsStr::to_str);
                let format = extension.and_then(Format::of_extension).unwrap_or_default();
                HomeFile::read_as(format, &bytes, Catalogue::new()).map_err(|why| {
                    Failure::RoutineFile {
                        path,
                        why: why.into(),
                    }
                })?
            }
            None => self
                .scenario()
                .home(rng)
                .map_err(|why| Failure::RoutineFile {
                    path: self.scenario().name().into(),
                    why: why.into(),
                })?,
        };
        let mut arrivals = Vec::new();
        if self.clock.is_none() && self.press.is_empty() {
            let rule = self.scenario().arrivals(home.routines.len());
            arrivals = rule.draw(&home.routines, rng);
        }
        for it in &self.press {
            let mut names = home.routines.iter().map(|it| &it.name);
            let nth = names.position(|name| *name == it.routine);
            let nth = nth.ok_or_else(|| Failure::NoRoutine(it.routine.clone()))?;
            arrivals.push((Time::ZERO + Span::secs(it.at), nth));
        }
        let mut hands = Vec::new();
        for it in &self.set {
            let device = home.catalogue.id(&it.device);
            let device = device.ok_or_else(|| Failure::NoDevice(it.device.clone()))?;
            hands.push((Time::ZERO + Span::secs(it.at), device, it.state.clone()));
        }
        let mut outages = Vec::new();
        for down in &self.fail {
            let device = home.catalogue.id(&down.device);
            outages.push(Outage {
                device: device.ok_or_else(|| Failure::NoDevice(down.device.clone()))?,
                from: Time::ZERO + Span::secs(down.from),
                until: Time::ZERO + Span::secs(down.until),
            });
        }
        let config = Config::default()
            .with_visibility(match self.model {
                Model::Ev => Visibility::Eventual,
                Model::Psv => Visibility::PartitionedStrict,
                Model::Gsv => Visibility::GlobalStrict,
                Model::Sgsv => Visibility::StrongGlobalStrict,
                Model::Wv => Visibility::Weak,
            })
            .with_scheduler(match self.scheduler {
                Order::Timeline => Scheduler::Timeline,
                Order::Jit => Scheduler::JustInTime,
                Order::Fcfs => Scheduler::FirstCome,
            });
        Ok(Plan {
            home,
            arrivals,
            outages,
            hands,
            config,
            clock: self.clock,
            length: Span::secs(self.length),
        })
    }

    fn report(&self, report: &Report, path: &Path, seed: u64) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &report.json())?;
            return writeln!(out);
        }
        writeln!(out)?;
        write_report(&mut out, Colour::on(&io::stdout()), report)?;
        writeln!(out, "seed {seed}; the picture is in {}", path.display())
    }
}

/// A pace at which virtual time passes, as `--speed` asks.
struct Pace {
    clock: Clock,
    speed: Speed,
    is_notified: bool,
}

impl Pace {
    /// Begins now.
    fn new(speed: Speed, is_notified: bool) -> Self {
        Self {
            clock: Clock::start(),
            speed,
            is_notified,
        }
    }
}

impl Watch for Pace {
    fn reach(&mut self, now: Time) {
        if let Speed::Times(times) = self.speed {
            let due = Time(now.0 / u64::from(times));
            thread::sleep(due.since(self.clock.now()).into());
        }
    }

    fn say(&mut self, now: Time, what: &str) {
        if self.is_notified {
            let seconds = core::time::Duration::from(now.since(Time::ZERO)).as_secs_f64();
            println!("{seconds:8.1} s  {what}");
        }
    }
}
