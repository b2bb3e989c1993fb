//! A home under load for a while: plugs lose their power, and the hub is killed. All its answers are checked.
//!
//! ```sh
//! cargo build --release && cargo run --release --example soak
//! ```
//!
//! Each plug is a process, and every second one of them is killed and started again. Routines run in rounds
//! of half a minute; then all of them must end, each once, and the order that the hub reports must lead to
//! the states that the plugs report. A plug that lost its power is off. The hub is killed in the first half
//! of the time, and in the second half its memory is watched. Exits with 1 if something is wrong.

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

mod home;
#[path = "../shared/http.rs"]
mod http;
mod hub;
mod oracle;
mod plug;
mod round;

use core::time::Duration;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, process, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Parser;

use home::Home;
use round::{Soak, kills};

/// The longest round.
const ROUND: Duration = Duration::from_secs(30);

#[derive(Parser)]
struct Arguments {
    /// The number of minutes for which routines are run
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The number of routines per second
    #[arg(long, default_value_t = 20)]
    rate: u32,
    #[arg(long, default_value_t = 200)]
    devices: usize,
    /// The number of kills of the hub
    #[arg(long, default_value_t = 20)]
    kills: u32,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// The program of the hub; by default the program that was built beside this example
    #[arg(long)]
    hub: Option<PathBuf>,
}

fn main() -> ExitCode {
    let words: Vec<_> = env::args().collect();
    if let [_, role, number, address] = &words[..]
        && role == plug::ROLE
    {
        plug::be(number, address).unwrap();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::parse();
    let beside = env::current_exe()
        .unwrap()
        .with_file_name("../selvedge-hub");
    let program = arguments.hub.clone().unwrap_or(beside);
    if !program.exists() {
        println!("no hub: build it in the same way, as in cargo build --release");
        return ExitCode::from(2);
    }
    let mut asked = Command::new("setpriv");
    if asked.arg("--help").stdout(Stdio::null()).status().is_err() {
        println!("setpriv is missing: install util-linux");
        return ExitCode::from(2);
    }
    let dir = env::temp_dir().join(format!("selvedge-soak-{}", process::id()));
    fs::create_dir_all(&dir).unwrap();
    let is_right = run(&arguments, &program, &dir);
    if is_right {
        fs::remove_dir_all(&dir).unwrap();
        return ExitCode::SUCCESS;
    }
    println!("left as it is: {}", dir.display());
    ExitCode::FAILURE
}

fn run(arguments: &Arguments, program: &std::path::Path, dir: &std::path::Path) -> bool {
    let (minutes, rate, seed) = (arguments.minutes, arguments.rate, arguments.seed);
    let (devices, cores) = (arguments.devices, thread::available_parallelism().unwrap());
    println!(
        "seed {seed}, {minutes} minutes, {devices} devices, {rate} routines a second, the hub killed {} times, {cores} cores",
        arguments.kills
    );
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let home = Home::draw(devices, &mut rng);
    let time = Duration::from_secs_f64(60.0 * minutes);
    // At least one round with kills, and one without.
    let rounds = u32::try_from(time.as_secs().div_ceil(ROUND.as_secs()).max(2)).unwrap();
    let length = time / rounds;
    let mut soak = Soak::start(&home, program, dir, rate, rng);
    for nth in 0..rounds {
        let first_half = rounds / 2;
        let count = if nth < first_half {
            // The remainder goes to the first rounds.
            arguments.kills / first_half + u32::from(nth < arguments.kills % first_half)
        } else {
            0
        };
        let kills = kills(count, length, &mut soak.rng);
        soak.round(nth + 1, length, kills);
    }
    soak.report()
}
