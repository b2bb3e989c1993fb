//! The program of the book's tutorial: a lock service of one's own, simulated, checked, fuzzed, and
//! run over UDP; then the ready lock in its place.
//!
//! `cargo run -p selvedge-examples --example tutorial`, and `cargo test` with the same arguments
//! for the claims of the chapter.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a program with the standard library, and tests that fail by panicking"
)]

mod check;
mod fuzz;
mod machine;
mod over_udp;
mod ready;

mod simulate;

use std::error::Error;

use machine::Rules;
use selvedge_core::Ratio;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for rules in [Rules::First, Rules::Numbers, Rules::Reminds] {
        let (entries, most) = simulate::simulate(rules, Ratio::new(1, 10))?;
        println!("{rules:?}: {entries} entries with a loss of 10%, {most} inside together");
        match check::model(rules).verify() {
            Ok(states) => println!("holds in {states} states"),
            Err(found) => println!("{found}"),
        }
        match fuzz::search(rules) {
            Ok(entries) => println!("no list breaks it, in {entries} entries"),
            Err((seed, broken)) => println!("seed {seed}: {broken}"),
        }
    }
    over_udp::serve().await?;
    ready::run().await
}
