//! A test with many seeds, and a line that replays the seed that failed.

use core::ops::Range;
use core::panic::AssertUnwindSafe;
use std::{env, panic, thread};

use super::choices::shrink;
use super::{Choices, trace};
use crate::panics::caught;

/// The environment variable that names the only seed to run.
const VARIABLE: &str = "SELVEDGE_SEED";
/// The environment variable with the number of histories, or a range of seeds.
const MANY: &str = "SELVEDGE_HISTORIES";
/// The environment variable with the number of runs to make a failed history short.
const SHRINK: &str = "SELVEDGE_SHRINK";

/// The seeds to run: `many`, or those of `SELVEDGE_HISTORIES`, a number or a range (`5000..9000`).
///
/// # Panics
/// When it is set to something else.
#[must_use]
pub fn seeds(many: u64) -> Range<u64> {
    let Some(text) = env::var_os(MANY) else {
        return 0..many;
    };
    let text = text.to_string_lossy();
    match parse(&text) {
        Some(seeds) => seeds,
        None => panic::resume_unwind(Box::new(complain(
            MANY,
            &text,
            "a number from 1, or a range as 5000..9000",
        ))),
    }
}

fn parse(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..").unwrap_or(("0", text));
    let seeds = first.parse().ok()?..end.parse().ok()?;
    (!seeds.is_empty()).then_some(seeds)
}

/// Runs `history` once for every seed in `seeds` with the draws of that seed, as [`histories`] does.
///
/// When one panics, it is run again, and the last lines of its [`Trace`](super::Trace) are printed. When
/// `SELVEDGE_SHRINK` is set to a number, that number of runs is spent on a shorter list of draws that
/// panics, too, before.
///
/// # Panics
/// As [`histories`].
pub fn random(seeds: Range<u64>, mut history: impl FnMut(Choices)) -> u64 {
    histories(seeds, |seed| {
        let whole = AssertUnwindSafe(|| history(Choices::seed(seed)));
        if let Err(cause) = panic::catch_unwind(whole) {
            explain(seed, &mut history);
            panic::resume_unwind(cause);
        }
    })
}

/// Prints the last steps of the history of this seed, or of a short history that fails.
fn explain(seed: u64, history: &mut impl FnMut(Choices)) {
    let most = env::var(SHRINK).ok().and_then(|it| it.parse().ok());
    // The record outlives the run that panics.
    let mut fails = |choices: Choices| {
        let (choices, drawn) = choices.kept();
        let failed = caught(|| history(choices)).is_err();
        failed.then(|| drawn.take())
    };
    let Some(mut draws) = fails(Choices::seed(seed)) else {
        return eprintln!("seed {seed} fails in one run, and not in the next one");
    };
    let many = draws.len();
    if let Some(most) = most {
        draws = shrink(draws, most, |list| fails(Choices::list(list.to_vec())));
    }
    let few = draws.len();
    let mut why = String::new();
    let lines = trace::of(|| {
        let run = caught(|| history(Choices::list(draws)));
        why = run.err().unwrap_or_default();
    });
    eprintln!("seed {seed} fails with {few} of {many} draws; its last steps:");
    for line in lines {
        eprintln!("{line}");
    }
    eprintln!("{why}");
}

/// Runs `history` once for every seed in `seeds`, and returns how many it ran.
///
/// When one panics, the standard error stream names the seed and the command to run it alone, and
/// the panic continues. When the environment variable `SELVEDGE_SEED` is set to a number, that seed
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
            // Nothing follows the last possible seed.
            Some(u64::MAX) => {
                run(u64::MAX, &mut history);
                return 1;
            }
            Some(seed) => seed..seed + 1,
            None => panic::resume_unwind(Box::new(complain(
                VARIABLE,
                &text.to_string_lossy(),
                "a number below 2^64",
            ))),
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
    // The half-done state of a failed history is not used: the panic continues.
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| history(seed))) {
        eprintln!(
            "failed with seed {seed}; to run it alone:\n    {}",
            replay(seed)
        );
        panic::resume_unwind(cause);
    }
}

fn complain(variable: &str, text: &str, expected: &str) -> String {
    let complaint = format!("{variable} is `{text}`; expected {expected}, or unset it");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_of_them_or_a_range() {
        assert_eq!(parse("300"), Some(0..300));
        assert_eq!(parse("5000..9000"), Some(5_000..9_000));
        for text in [
            "", "many", "0", "5..5", "5..", "..5", "5..=9", "-1", "1 000",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
