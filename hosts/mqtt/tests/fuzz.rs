//! The fuzz targets, over the committed corpus and over generated inputs.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so do its helpers"
)]

use std::path::Path;

use selvedge_mqtt::fuzz;

#[path = "../../faas/tests/all/corpus.rs"]
mod corpus;

use corpus::changed;

fn inputs(target: &str) -> Vec<Vec<u8>> {
    corpus::inputs(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/hosts/corpus"),
        &format!("mqtt_{target}"),
    )
}

#[test]
fn files_of_users_that_are_made_up_break_no_promise() {
    let inputs = inputs("users");
    // Without a valid seed it tests nothing.
    assert!(inputs.iter().any(|it| fuzz::users(it) > Some(1)));
    for input in &inputs {
        for seed in 0..2_000 {
            fuzz::users(&changed(input, seed));
        }
    }
}

#[cfg(feature = "broker")]
#[test]
fn greetings_that_are_made_up_are_handed_on_or_refused() {
    let inputs = inputs("greeting");
    assert!(inputs.iter().any(|it| fuzz::greeting(it)));
    for input in &inputs {
        for seed in 0..1_000 {
            fuzz::greeting(&changed(input, seed));
        }
    }
}

#[test]
fn packets_of_a_broker_that_are_made_up_break_no_promise() {
    let inputs = inputs("packets");
    assert!(inputs.iter().any(|it| fuzz::packets(it) > 1));
    for input in &inputs {
        for seed in 0..2_000 {
            fuzz::packets(&changed(input, seed));
        }
    }
}
