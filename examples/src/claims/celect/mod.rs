//! What the thesis claims of elections: section 5.2 and chapter 6.

mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e10;
mod figures;
mod heard;
mod lab;

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
        e10::claim(),
    ]
}
