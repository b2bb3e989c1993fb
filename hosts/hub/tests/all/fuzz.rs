//! The fuzz targets, over the committed corpus and over what is made here.

use std::path::Path;

use selvedge_hub::device::kasa;
use selvedge_hub::file::HomeFile;
use selvedge_hub::fuzz;
use selvedge_routine::Catalogue;
use selvedge_routine::file::Format;

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
        // A seed that is none tests nothing.
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
    // A switch, and a light; the third one greets by Noise, for which there is no key that fits.
    assert_eq!(states, [false, true]);
}
