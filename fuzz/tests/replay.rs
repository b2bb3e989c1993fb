//! Every target over its corpus and over inputs from a fixed seed.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use core::sync::atomic::{AtomicUsize, Ordering};
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_fuzz::{TARGETS, Target, seeds};

const SEED: u64 = 0x5e1f_ed6e;
const MADE: usize = 1_000;
const LONGEST: u64 = 512;

#[test]
fn targets_hold_on_their_corpora() {
    each_target(|name, run| {
        let corpus = corpus(name);
        for (file, input) in &corpus {
            check(&format!("fuzz/corpus/{name}/{file}"), run, input);
        }
        println!("{name}: {} inputs of the corpus", corpus.len());
    });
}

#[test]
fn targets_hold_on_made_inputs() {
    each_target(|name, run| {
        let made = match name {
            // Each one heals a whole building, or a whole set of gateways.
            "kgroup_operations" | "pcm_operations" => MADE / 5,
            // Each one opens a database of some megabytes, or starts a host.
            "database" | "datagrams" | "group_facts" | "hosted" => MADE / 20,
            _ => MADE,
        };
        println!("{name}: seed {SEED:#x}, {made} inputs");
        let mut rng = ChaCha8Rng::seed_from_u64(SEED);
        // From the seeds alone: inputs that a fuzzer left in the corpus must not change these.
        let corpus: Vec<Vec<u8>> = seeds()
            .filter(|seed| seed.target == name)
            .map(|seed| seed.bytes)
            .collect();
        for number in 0..made {
            let input = if number % 4 == 0 {
                noise(&mut rng)
            } else {
                mutated(&corpus, &mut rng)
            };
            check(
                &format!("{name}, seed {SEED:#x}, input {number}"),
                run,
                &input,
            );
        }
    });
}

#[test]
fn committed_seeds_are_those_of_the_generator() {
    for seed in seeds() {
        let path = root()
            .join("corpus")
            .join(seed.target)
            .join(format!("seed-{}", seed.name));
        let committed = fs::read(&path).unwrap_or_default();
        assert_eq!(
            committed,
            seed.bytes,
            "{}: run cargo run -p selvedge-fuzz --example seeds, and ask why the format changed",
            path.display()
        );
    }
}

#[test]
fn every_binary_is_a_target_and_has_seeds() {
    let mut binaries: Vec<String> = files(&root().join("fuzz_targets"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    binaries.sort();
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets.sort_unstable();
    assert_eq!(binaries, targets, "fuzz_targets/ and TARGETS differ");
    for target in targets {
        assert!(
            seeds().any(|seed| seed.target == target),
            "{target} has no seed"
        );
    }
}

/// Calls `test` with each target, on as many threads as there are processors.
fn each_target(test: impl Fn(&str, fn(&[u8])) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&Target { name, run }) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
            test(name, run);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
}

/// Runs a target, and names the input on a panic.
fn check(name: &str, run: fn(&[u8]), input: &[u8]) {
    if catch_unwind(|| run(input)).is_err() {
        panic!("{name} breaks it: {input:02x?}");
    }
}

/// The inputs with their file names, in a fixed order. A target without any is a mistake.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = root().join("corpus").join(target);
    let mut corpus: Vec<_> = files(&directory)
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(&path).unwrap())
        })
        .collect();
    assert!(!corpus.is_empty(), "{} is empty", directory.display());
    corpus.sort();
    corpus
}

fn files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
        .map(|entry| entry.unwrap().path())
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn noise(rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = vec![0; below(rng, LONGEST)];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// An input of the corpus with one to four bytes changed, taken out or put in, or with the tail of
/// another input appended.
fn mutated(corpus: &[Vec<u8>], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = corpus[below(rng, corpus.len() as u64)].clone();
    for _ in 0..=below(rng, 4) {
        let at = below(rng, bytes.len() as u64 + 1);
        let value = rng.next_u64().to_le_bytes()[0];
        match below(rng, 4) {
            0 if at < bytes.len() => bytes[at] = value,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => {
                let other = &corpus[below(rng, corpus.len() as u64)];
                let tail = &other[below(rng, other.len() as u64 + 1)..];
                bytes.truncate(at);
                bytes.extend_from_slice(tail);
            }
            _ => bytes.insert(at, value),
        }
    }
    bytes
}

/// Near enough to uniform to choose test inputs by.
fn below(rng: &mut ChaCha8Rng, bound: u64) -> usize {
    usize::try_from(rng.next_u64() % bound.max(1)).unwrap()
}
