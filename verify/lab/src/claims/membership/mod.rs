//! Claims of the thesis on Medley-F: chapter 4, and Table 5.1.
//!
//! One unit of the thesis is a millisecond here. Each trial places 49 nodes at random, lets them
//! join, settle for 200 periods and then fail. All rules have the same placements and failures.

mod by_hops;
mod figures;
mod lab;
pub(super) mod lists;
mod m01;
mod m02;
mod m03;
mod m04;
mod m05;
mod m06;
mod m07;
mod m08;
mod m09;
mod m10;
mod m11;
mod m12;
mod m13;
mod mobility;
mod nodes;
pub(super) mod traces;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        m01::claim(),
        m02::claim(),
        m03::claim(),
        m04::claim(),
        m05::claim(),
        m06::claim(),
        m07::claim(),
        m08::claim(),
        m09::claim(),
        m10::claim(),
        m11::claim(),
        m12::claim(),
        m13::claim(),
    ]
}
