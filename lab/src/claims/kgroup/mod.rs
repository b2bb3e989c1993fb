//! What the paper claims of CoMesh: section 6. So far what choosing groups alone shows.
//!
//! A building is a list of places; two in five devices are smart (table 3).

mod k5;
mod k6;
mod k7;
mod k9;
mod lab;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![k5::claim(), k6::claim(), k7::claim(), k9::claim()]
}
