//! Claims of the thesis on elections: section 5.2, chapters 6 and 7.

mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;
mod e09;
mod e10;
pub mod e11;
mod e12;
mod figures;
mod lab;
mod missing;
mod received;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        e01::claim(),
        e02::claim(),
        e03::claim(),
        e04::claim(),
        e05::claim(),
        e06::claim(),
        e07::claim(),
        e08::claim(),
        e09::claim(),
        e10::claim(),
        e12::claim(),
    ]
}
