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
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus"),
        target,
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
        fuzz::published(input);
        (0..1_000).for_each(|seed| fuzz::published(&changed(input, seed)));
    }
}

#[test]
fn requests_that_are_made_up_are_answered_or_refused() {
    for input in &inputs("page") {
        fuzz::page(input);
        (0..100).for_each(|seed| fuzz::page(&changed(input, seed)));
    }
}
