//! The fuzz targets, over the committed corpus and over generated inputs.

use std::collections::BTreeMap;
use std::path::Path;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Span, Time};
use selvedge_hub::device::kasa;
use selvedge_hub::file::HomeFile;
use selvedge_hub::fuzz;
use selvedge_hub::house::{House, Moment};
use selvedge_routine::Catalogue;
use selvedge_routine::file::{Format, Home};
use selvedge_safehome::Config;

#[path = "../../../faas/tests/all/corpus.rs"]
mod corpus;

use corpus::changed;

fn inputs(target: &str) -> Vec<Vec<u8>> {
    corpus::inputs(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/hosts/corpus"),
        &format!("hub_{target}"),
    )
}

#[test]
fn files_that_are_made_up_break_no_promise() {
    for input in &inputs("home") {
        // A seed that is not valid tests nothing.
        HomeFile::read(Format::Yaml, input, Catalogue::new()).unwrap();
        fuzz::home(input);
        (0..2_000).for_each(|seed| fuzz::home(&changed(input, seed)));
    }
}

#[test]
fn answers_of_plugs_that_are_made_up_break_no_promise() {
    for input in &inputs("plug") {
        kasa::state_in(input, None).unwrap();
        fuzz::plug(input);
        (0..2_000).for_each(|seed| fuzz::plug(&changed(input, seed)));
    }
}

#[test]
fn what_is_published_and_made_up_breaks_no_promise() {
    for input in &inputs("published") {
        assert!(fuzz::published(input), "{}", String::from_utf8_lossy(input));
        for seed in 0..1_000 {
            fuzz::published(&changed(input, seed));
        }
    }
}

#[test]
fn requests_that_are_made_up_are_answered_or_refused() {
    for input in &inputs("page") {
        let status = fuzz::page(input);
        let text = String::from_utf8_lossy(input);
        assert!(matches!(status, Some(200 | 202)), "{status:?}: {text}");
        for seed in 0..100 {
            fuzz::page(&changed(input, seed));
        }
    }
}

#[test]
fn what_an_esphome_device_says_and_is_made_up_breaks_no_promise() {
    let mut states = Vec::new();
    for input in &inputs("esphome") {
        states.extend(fuzz::esphome(input));
        for seed in 0..2_000 {
            fuzz::esphome(&changed(input, seed));
        }
    }
    states.sort_unstable();
    // A switch, and a light; the third device greets by Noise, and no key fits.
    assert_eq!(states, [false, true]);
}

/// The stored data of a hub with two runs: before, between and after them.
fn stored() -> Vec<Vec<u8>> {
    let home = Home::read(include_bytes!("../../homes/flat.json")).unwrap();
    let rng = ChaCha12Rng::seed_from_u64(7);
    let at = |now| Moment {
        now: Time(now),
        wall: 5,
    };
    let lateness = |_| Span::ZERO;
    let mut house = House::new(&home, Config::default(), lateness, &[], None, rng, at(0)).unwrap();
    house.take_changes();
    let (base, mut all) = (house.saved().clone(), Vec::new());
    let (mut steps, mut runs) = (Vec::new(), BTreeMap::new());
    for (nth, name) in ["good morning", "leave", ""].into_iter().enumerate() {
        all.push(postcard::to_allocvec(&(&base, &steps, &runs)).unwrap());
        house.run(name, at(nth as u64)).ok();
        house.expire(at(10_000_000 * (nth as u64 + 1)));
        let changes = house.take_changes();
        steps.extend(changes.steps);
        runs.extend(changes.runs);
    }
    all
}

#[test]
fn stored_bytes_that_are_made_up_are_refused_or_a_house_begins_with_them() {
    let made = stored();
    assert!(made.iter().all(|it| fuzz::stored(it)));
    for input in inputs("stored").iter().chain(&made) {
        for seed in 0..1_000 {
            fuzz::stored(&changed(input, seed));
        }
    }
}
