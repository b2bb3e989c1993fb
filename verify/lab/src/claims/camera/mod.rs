//! Claims of the thesis on Camera: sections 2.3 and 4.3, and chapter 5.
//!
//! A unit of time is a millisecond. A mesh is 256 nodes at the density of Medley-F's, each hop
//! takes 1 to 5 ms and loses 5%; a node stays inside for 100 ms, and for a second where requests
//! come one by one. Lists are complete: C8 measures the completeness of Medley-F's lists.

mod c1;
mod c10;
mod c11;
mod c12;
mod c2;
mod c3;
mod c4;
mod c5;
mod c6;
mod c7;
mod c8;
mod c9;
mod lab;
mod workload;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        c1::claim(),
        c2::claim(),
        c3::claim(),
        c4::claim(),
        c5::claim(),
        c6::claim(),
        c7::claim(),
        c8::claim(),
        c9::claim(),
        c10::claim(),
        c11::claim(),
        c12::claim(),
    ]
}
