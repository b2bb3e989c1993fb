//! Files that are nearly right: homes that are read from them can be written, and read back equal.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::Choose;
use selvedge_routine::file::{Format, Home, home_assistant};
use selvedge_routine::{Catalogue, Location, Number};

const HOME: &str = include_str!("../../../fuzz/corpus/home_file_yaml/seed-home");
const CHOICES: &str = include_str!("../../../fuzz/corpus/home_file_yaml/seed-choices");
const RUNS: &str = include_str!("../../../fuzz/corpus/home_file_yaml/seed-runs");
const MODES: &str = include_str!("../../../fuzz/corpus/home_assistant/seed-modes");
const SCRIPTS: &str = include_str!("../../../fuzz/corpus/home_assistant/seed-scripts");
const CHOICE: &str = include_str!("../../../fuzz/corpus/home_assistant/seed-choice");
const AUTOMATIONS: &str = include_str!("../../../fuzz/corpus/home_assistant/seed-automations");

/// Checks that a home is the same after it is written in both formats and read again.
fn stays(home: &Home, seed: u64, text: &str) {
    for format in [Format::Json, Format::Yaml] {
        let written = match home.write_as(format) {
            Ok(written) => written,
            Err(error) => panic!("seed {seed}: {error}\n{text}"),
        };
        match Home::read_as(format, written.as_bytes(), Catalogue::new()) {
            Ok(again) => assert_eq!(&again, home, "seed {seed}\n{text}\n{written}"),
            Err(error) => panic!("seed {seed}: {error}\n{text}\n{written}"),
        }
    }
}

/// A text with some lines left out, doubled or moved, and some words of one file in place of
/// others.
fn changed(texts: &[&str], rng: &mut ChaCha8Rng) -> String {
    let pick = |rng: &mut ChaCha8Rng, many: usize| rng.below(many.max(1) as u64) as usize;
    let text = texts[pick(rng, texts.len())];
    let mut lines: Vec<String> = text.lines().map(Into::into).collect();
    for _ in 0..=pick(rng, 3) {
        let at = pick(rng, lines.len());
        match pick(rng, 6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let line = lines.remove(at);
                lines.insert(pick(rng, lines.len() + 1), line);
            }
            3 => {
                let letters: Vec<char> = lines[at].chars().collect();
                let letter = pick(rng, letters.len());
                let other = ['0', '-', ':', '"', ' ', 'x', '[', '}', '.', '9'][pick(rng, 10)];
                let some = letters.iter().enumerate();
                lines[at] = some
                    .map(|(nth, it)| if nth == letter { other } else { *it })
                    .collect();
            }
            _ => {
                // Replaces a word by another.
                let words = |text: &str| -> Vec<String> {
                    let is_part = |it: char| it.is_alphanumeric() || it == '_' || it == '.';
                    let all = text.split(|it| !is_part(it)).filter(|it| !it.is_empty());
                    all.map(Into::into).collect()
                };
                let (here, all) = (words(&lines[at]), words(&texts.join(" ")));
                if let Some(word) = here.get(pick(rng, here.len())) {
                    lines[at] = lines[at].replacen(word, &all[pick(rng, all.len())], 1);
                }
            }
        }
        if lines.is_empty() {
            lines.push("{}".into());
        }
    }
    lines.join("\n")
}

#[test]
fn what_is_read_of_a_changed_file_is_written_and_read_again() {
    let mut read = 0;
    for seed in 0..6_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = changed(&[HOME, CHOICES, RUNS], &mut rng);
        if let Ok((home, lints)) = Home::lint(Format::Yaml, text.as_bytes(), Catalogue::new()) {
            stays(&home, seed, &text);
            assert!(lints.iter().all(|it| it.line > 0), "seed {seed}");
            read += 1;
        }
    }
    assert!(read > 100, "{read} of 6000 say something");
}

#[test]
fn what_is_read_of_a_changed_script_is_written_and_read_again() {
    let mut read = 0;
    for seed in 0..6_000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = changed(&[SCRIPTS, CHOICE, AUTOMATIONS, MODES], &mut rng);
        match home_assistant::read(text.as_bytes(), Catalogue::new()) {
            Ok(mut home) => {
                let (latitude, longitude) = (Number::from(52), Number::from(13));
                home.location = Some(Location {
                    latitude,
                    longitude,
                });
                stays(&home, seed, &text);
                read += 1;
            }
            Err(missed) => assert!(!missed.is_empty(), "seed {seed}"),
        }
    }
    assert!(read > 300, "{read} of 6000 are understood");
}
