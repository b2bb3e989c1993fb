//! The target of the agent's API over its corpus and over inputs from a fixed seed. The other targets are
//! replayed by the packages that have them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::{fs, panic};

use selvedge_hosts_fuzz::{agent_api, seeds};

#[path = "../../../hosts/faas/tests/all/corpus.rs"]
mod corpus;

use corpus::changed;

/// The number of changed copies of each seed.
const COPIES: u64 = 40;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Runs the target, and returns the statuses of the answers. A panic of a task that serves a request counts, too.
fn check(name: &str, input: &[u8]) -> Vec<u16> {
    static PANICS: AtomicU32 = AtomicU32::new(0);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            hook(info);
        }));
    });
    let before = PANICS.load(Ordering::Relaxed);
    let ended = panic::catch_unwind(|| agent_api(input));
    let panics = PANICS.load(Ordering::Relaxed) - before;
    match ended {
        Ok(statuses) if panics == 0 => statuses,
        _ => panic!("{name} breaks it: {input:02x?}"),
    }
}

// One test: the hook and its count belong to the whole process.
#[test]
fn answers_of_an_agent_are_as_described() {
    for (name, seed) in seeds() {
        // The one that reaches no handler tests nothing. Nothing is held yet, and the node is the last one.
        let statuses = check(&name, &seed);
        let first = match name.trim_end_matches("-events") {
            "delete-holds-hold"
            | "get-holds-hold"
            | "put-holds-hold"
            | "post-holds-hold-hand-over"
            | "post-answers-question" => 404,
            "get-maps-map-entries-key" => 404,
            "delete-queues-name" => 408,
            "post-members-id-confirm"
            | "post-nodes-id-remove"
            | "post-elections-name-hand-over" => 409,
            // This agent was started without settings that can be read again.
            "post-reload" => 503,
            _ => 200,
        };
        let is_fine = statuses.first() == Some(&first) || name.starts_with("post-leave");
        assert!(is_fine, "{name}: {statuses:?}");
        if name.starts_with("row-") {
            // No candidate waits for a leader that hands over.
            let second = if name == "row-hand-over" { 409 } else { 200 };
            let both = [200, second];
            assert_eq!(statuses.get(..2), Some(&both[..]), "{name}: {statuses:?}");
        }
    }
    for input in corpus::inputs(&folder(), "agent_api") {
        check("the corpus", &input);
    }
    for (name, seed) in seeds() {
        for copy in 0..COPIES {
            check(&format!("{name}, copy {copy}"), &changed(&seed, copy));
        }
    }
}

#[test]
fn committed_seeds_are_those_of_the_generator() {
    for (name, bytes) in seeds() {
        let path = folder().join(format!("agent_api/seed-{name}"));
        let committed = fs::read(&path).unwrap_or_default();
        assert_eq!(
            committed,
            bytes,
            "{}: run cargo run -p selvedge-hosts-fuzz --example seeds",
            path.display()
        );
    }
}
