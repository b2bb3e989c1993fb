//! Whole buildings whose sites change while they run, under all faults that the pages allow: written from
//! the crates' pages alone.
//!
//! `OUTSIDE_SEED=7` runs one history, `OUTSIDE_SEEDS=0..1000` many; `OUTSIDE_TRACE=1` prints what happens, and
//! with `OUTSIDE_GROUP=3` also the messages about the group of this number. By hand for many, on all cores:
//! `OUTSIDE_SEEDS=0..20000 cargo test --release -p selvedge-kgroup --test outside what_the -- --nocapture`; with
//! `CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1` it takes longer to build, and runs faster.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "a test"
)]

mod maps;
mod oracle;
mod scripts;
mod story;
mod totals;
mod world;

use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use selvedge_groups::GroupId;
use selvedge_kgroup::Site;

use crate::story::{Break, Setting, Story};
use crate::totals::Totals;
use crate::world::Dice;

pub(crate) fn is_cluster(group: GroupId) -> bool {
    group.0 & 3 == Site::cluster(0).0 & 3
}

/// Plays the history of a seed; `None` if its choices make no site.
fn history(seed: u64) -> Option<Story> {
    let mut dice = Dice::new(seed);
    let setting = Setting::draw(&mut dice);
    if std::env::var("OUTSIDE_TRACE").is_ok() {
        eprintln!("seed {seed}: {setting:?}");
    }
    let mut story = Story::new(seed, setting)?;
    story.run();
    Some(story)
}

/// The first failure of the history of a seed.
fn failure(seed: u64, totals: &Mutex<Totals>) -> Option<String> {
    let Ok(played) = catch_unwind(|| history(seed)) else {
        return Some("a panic".into());
    };
    let story = played?;
    totals.lock().unwrap().add(&story);
    story.world.oracle.failures.into_iter().next()
}

/// Plays the histories of these seeds, many of them on all cores. Returns the number that failed.
#[allow(clippy::disallowed_methods, reason = "a run has a rate")]
fn play(seeds: Range<u64>, totals: &Mutex<Totals>) -> u64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min((seeds.end - seeds.start).div_ceil(50) as usize);
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            if let Some(what) = failure(seed, totals) {
                failed.fetch_add(1, Ordering::Relaxed);
                eprintln!("OUTSIDE_SEED={seed}: {what}");
            }
        }
    };
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let time = begin.elapsed().as_secs_f64();
    let ran = totals.lock().unwrap().histories;
    let rate = ran as f64 / time;
    eprintln!("{ran} histories in {time:.1} s, {rate:.1} a second, on threads: {threads}");
    failed.into_inner()
}

fn seeds() -> Range<u64> {
    if let Ok(seed) = std::env::var("OUTSIDE_SEED") {
        let seed = seed.parse().unwrap();
        return seed..seed + 1;
    }
    let Ok(seeds) = std::env::var("OUTSIDE_SEEDS") else {
        return 0..24;
    };
    let (from, to) = seeds.split_once("..").unwrap();
    from.parse().unwrap()..to.parse().unwrap()
}

/// The failures that the oracle must report where an assumption is broken, and the seeds of histories that show
/// them at present. Others are tried after them.
const FOUND: [(Break, &[u64], &[&str]); 7] = [
    (
        Break::Memory,
        &[0, 7, 8, 70],
        &[
            "two states",
            "execute at once",
            "at most once, is given",
            "two sites",
        ],
    ),
    (Break::LateHosts, &[1], &["under way false"]),
    (Break::LyingHosts, &[0], &["was not carried out"]),
    (
        Break::Unheard,
        &[0, 14],
        &[
            "was never proposed",
            "runs of 0 triggers",
            "without a command",
        ],
    ),
    (Break::ShortFrames, &[2], &["a frame of"]),
    (Break::Cut, &[1], &["no end"]),
    (
        Break::Answers,
        &[0, 3],
        &["decided true", "decided false", "was answered"],
    ),
];

#[test]
fn each_oracle_fails_where_the_world_breaks_an_assumption() {
    for (broken, seeds, expected) in FOUND {
        let mut missing: Vec<&str> = expected.to_vec();
        for seed in seeds.iter().copied().chain(0..400) {
            if missing.is_empty() {
                break;
            }
            let mut setting = Setting::draw(&mut Dice::new(seed));
            setting.broken = Some(broken);
            setting.loses |= broken == Break::Unheard;
            let Some(mut story) = Story::new(seed, setting) else {
                continue;
            };
            story.run();
            let failures = &story.world.oracle.failures;
            let before = missing.len();
            missing.retain(|it| !failures.iter().any(|failure| failure.contains(it)));
            if missing.len() < before {
                eprintln!("{broken:?}: seed {seed} leaves {missing:?}");
            }
        }
        assert!(
            missing.is_empty(),
            "{broken:?}: no history shows {missing:?}"
        );
    }
}

#[test]
fn what_the_pages_promise_holds_while_sites_change() {
    let totals = Mutex::new(Totals::default());
    let failed = play(seeds(), &totals);
    let totals = totals.into_inner().unwrap();
    eprintln!("{totals:?}");
    assert_eq!(failed, 0, "histories that failed");
    totals.check();
}
