//! What the thesis claims of churn-tolerant election: chapters 6 and 7.

mod e07;
mod e08;
mod e09;
mod lacking;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![e07::claim(), e08::claim(), e09::claim()]
}
