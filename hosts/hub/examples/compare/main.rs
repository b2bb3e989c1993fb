//! This hub beside Home Assistant: three plugs are switched on one after another, while one of them loses its
//! power. Both have the same plugs of an independent simulator, the same script and the same kills.
//!
//! ```sh
//! export SELVEDGE_PARTS=~/.cache/selvedge
//! parts/fetch.sh && parts/fetch-home-assistant.sh
//! cargo build --release && cargo run --release --example compare
//! ```
//!
//! Home Assistant looks for devices by broadcast, so everything runs in a network of its own, with a loopback
//! device and nothing else.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a measurement may panic, and reads clocks"
)]

#[path = "../shared/home_assistant.rs"]
mod home_assistant;
#[path = "../shared/http.rs"]
mod http;
mod plug;
mod run;
mod system;
mod table;

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs, process, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Parser;

use plug::Plug;
use run::{Bench, Case, Seen, Times};
use system::{Hub, Scripted, Scripts, System, Trio};

/// Set in the inner process, in a network of its own.
const INSIDE: &str = "SELVEDGE_COMPARE_INSIDE";

#[derive(Parser)]
struct Arguments {
    /// The number of runs at each system
    #[arg(long, default_value_t = 108)]
    runs: u32,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// The number of trios of plugs of each system, which are used at the same time
    #[arg(long, default_value_t = 3)]
    trios: usize,
    /// The time between two commands, in milliseconds
    #[arg(long, default_value_t = 600)]
    hold: u64,
    /// The number of seconds for which a plug has no power
    #[arg(long, default_value_t = 6)]
    away: u64,
    /// The number of seconds for which a system may settle when the plug is back and the script has ended
    #[arg(long, default_value_t = 12)]
    settle: u64,
    /// The number of presses that are timed at each system, without faults
    #[arg(long, default_value_t = 200)]
    presses: u32,
    /// The program of the hub; by default the program that was built beside this example
    #[arg(long)]
    hub: Option<PathBuf>,
}

/// The programs from elsewhere, and the hub.
struct Parts {
    modules: PathBuf,
    hass: PathBuf,
    hub: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let parts = match parts(arguments.hub.as_deref()) {
        Ok(it) => it,
        Err(how) => {
            println!("{how}");
            return ExitCode::from(2);
        }
    };
    if env::var_os(INSIDE).is_none() {
        return inside();
    }
    measure(&arguments, &parts);
    ExitCode::SUCCESS
}

fn parts(hub: Option<&Path>) -> Result<Parts, String> {
    for tool in ["node", "setpriv", "unshare", "ip"] {
        let mut asked = Command::new(tool);
        asked
            .arg("--help")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if asked.status().is_err() {
            return Err(format!(
                "{tool} is missing: install nodejs, util-linux and iproute2"
            ));
        }
    }
    let there = |it: PathBuf, how: &str| {
        if it.exists() {
            Ok(it)
        } else {
            Err(how.to_string())
        }
    };
    let folder = env::var_os("SELVEDGE_PARTS").map(|it| PathBuf::from(it).join("hub"));
    let folder = folder.ok_or("no parts: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch.sh")?;
    let modules = folder.join("node_modules");
    there(
        modules.join("tplink-smarthome-simulator"),
        "no simulator of plugs: run hosts/hub/parts/fetch.sh",
    )?;
    let hass = there(
        folder.join("home-assistant/bin/hass"),
        "no Home Assistant: run hosts/hub/parts/fetch-home-assistant.sh",
    )?;
    let beside = env::current_exe()
        .unwrap()
        .with_file_name("../selvedge-hub");
    let hub = there(
        hub.map_or(beside, Into::into),
        "no hub: build it in the same way, as in cargo build --release",
    )?;
    Ok(Parts { modules, hass, hub })
}

/// Runs this program again, in a network of its own.
fn inside() -> ExitCode {
    let script = r#"ip link set lo up && exec "$0" "$@""#;
    let status = Command::new("unshare")
        .args(["-rn", "setpriv", "--pdeathsig", "KILL", "sh", "-c", script])
        .arg(env::current_exe().unwrap())
        .args(env::args_os().skip(1))
        .env(INSIDE, "1")
        .status();
    let code = status.ok().and_then(|it| it.code()).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// A system that is measured, and its trios of plugs.
struct Entry {
    name: &'static str,
    system: Box<dyn System>,
    trios: Vec<Vec<Plug>>,
}

fn measure(arguments: &Arguments, parts: &Parts) {
    let times = Times {
        hold: Duration::from_millis(arguments.hold),
        away: Duration::from_secs(arguments.away),
        settle: Duration::from_secs(arguments.settle),
    };
    let cores = thread::available_parallelism().unwrap();
    let (seed, runs) = (arguments.seed, arguments.runs);
    println!("seed {seed}, {runs} runs at each system, {cores} cores");
    let dir = Dir(env::temp_dir().join(format!("selvedge-compare-{}", process::id())));
    let names = [
        "this hub",
        "Home Assistant",
        "Home Assistant, goes on after an error",
    ];
    let entries: Vec<_> = (1..)
        .zip(names)
        .map(|(net, name)| start(net, name, arguments.trios, times.hold, parts, &dir.0))
        .collect();
    let presses = entries[..2].iter().map(|it| {
        let presses = table::presses(&*it.system, &it.trios[0][0], arguments.presses);
        (it.name, presses)
    });
    table::print_presses(presses);
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let cases: Vec<_> = (0..runs)
        .map(|it| Case::draw(it, times.hold, &mut rng))
        .collect();
    table::print(&all(entries, &cases, times));
}

fn start(
    net: u8,
    name: &'static str,
    trios: usize,
    hold: Duration,
    parts: &Parts,
    dir: &Path,
) -> Entry {
    let trios = (0..trios).map(|it| trio(net, it)).collect();
    let scripts = Scripts { trios, hold };
    let plug = |it: &String| Plug::start(&parts.modules, it.clone());
    let trios = scripts.trios.iter();
    let trios = trios.map(|it| it.iter().map(plug).collect()).collect();
    let dir = dir.join(net.to_string());
    let system: Box<dyn System> = if net == 1 {
        Box::new(Hub::start(&parts.hub, &dir, &scripts))
    } else {
        let (port, goes_on) = (8_200 + u16::from(net), net == 3);
        let program = &parts.hass;
        Box::new(Scripted::start(program, &dir, port, &scripts, goes_on))
    };
    eprintln!("{name}: runs");
    Entry {
        name,
        system,
        trios,
    }
}

/// All runs at all systems; the runs of a trio come one after the other.
fn all(entries: Vec<Entry>, cases: &[Case], times: Times) -> Vec<(&'static str, Vec<Seen>)> {
    let start = Instant::now();
    let one = |name: &str, step: usize, mut bench: Bench<'_>| {
        let mut seen = Vec::new();
        for (number, case) in cases.iter().enumerate().skip(bench.nth).step_by(step) {
            let it = bench.run(*case);
            let at = start.elapsed().as_secs();
            eprintln!("{at} s, {name}, run {number}: {it}");
            seen.push(it);
        }
        seen
    };
    let (systems, trios): (Vec<_>, Vec<_>) = entries
        .into_iter()
        .map(|it| ((it.name, it.system), it.trios))
        .unzip();
    thread::scope(|scope| {
        let one = &one;
        let mut all = Vec::new();
        for ((name, system), trios) in systems.iter().zip(trios) {
            let step = trios.len();
            let threads = trios.into_iter().enumerate().map(|(nth, plugs)| {
                let bench = Bench::new(&**system, nth, plugs, times);
                scope.spawn(move || one(name, step, bench))
            });
            all.push((*name, threads.collect::<Vec<_>>()));
        }
        let seen = all.into_iter().map(|(name, threads)| {
            let seen = threads.into_iter().flat_map(|it| it.join().unwrap());
            (name, seen.collect())
        });
        seen.collect()
    })
}

fn trio(net: u8, nth: usize) -> Trio {
    [1, 2, 3].map(|plug| format!("127.62.{}.{plug}", usize::from(net) * 10 + nth))
}

/// A folder that is removed when the measurement has ended.
struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
