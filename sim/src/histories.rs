//! One test, many seeds, and a line that replays the one that failed.

use core::ops::Range;
use core::panic::AssertUnwindSafe;
use std::{env, panic, thread};

/// The environment variable that names the only seed to run.
const VARIABLE: &str = "SELVEDGE_SEED";

/// Runs `history` once for every seed in `seeds`, and returns how many it ran.
///
/// When one panics, the standard error stream says which seed it was and how to run it alone, and
/// the panic goes on. When the environment variable `SELVEDGE_SEED` is set to a number, that seed
/// alone is run, in `seeds` or not.
///
/// ```
/// use selvedge_core::Choose;
/// use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
///
/// selvedge_sim::histories(0..20, |seed| {
///     let mut rng = ChaCha8Rng::seed_from_u64(seed);
///     assert!(rng.below(6) < 6);
/// });
/// ```
///
/// # Panics
/// When `history` does, and when `SELVEDGE_SEED` is set to something that is no number below 2^64:
/// a run that silently took other seeds than asked for would prove nothing.
pub fn histories(seeds: Range<u64>, mut history: impl FnMut(u64)) -> u64 {
    let seeds = match env::var_os(VARIABLE) {
        None => seeds,
        Some(text) => match text.to_str().and_then(|text| text.parse::<u64>().ok()) {
            // The last seed there is has none behind it.
            Some(u64::MAX) => {
                run(u64::MAX, &mut history);
                return 1;
            }
            Some(seed) => seed..seed + 1,
            None => panic::resume_unwind(Box::new(complain(&text.to_string_lossy()))),
        },
    };
    let mut ran = 0;
    for seed in seeds {
        run(seed, &mut history);
        ran += 1;
    }
    ran
}

fn run(seed: u64, history: &mut impl FnMut(u64)) {
    // What a failed history leaves half done is not used: the panic goes on.
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| history(seed))) {
        eprintln!(
            "failed with seed {seed}; to run it alone:\n    {}",
            replay(seed)
        );
        panic::resume_unwind(cause);
    }
}

fn complain(text: &str) -> String {
    let complaint = format!("{VARIABLE} is `{text}`; expected a number below 2^64, or unset it");
    eprintln!("{complaint}");
    complaint
}

/// The test harness names threads after tests, and cargo names the package.
fn replay(seed: u64) -> String {
    let mut line = format!("{VARIABLE}={seed} cargo test");
    if let Ok(package) = env::var("CARGO_PKG_NAME") {
        line += " -p ";
        line += &package;
    }
    if let Some(test) = thread::current().name().filter(|&name| name != "main") {
        line += " -- --exact ";
        line += test;
    }
    line
}
