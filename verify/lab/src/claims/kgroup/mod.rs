//! Claims of the paper on CoMesh: sections 6 and 7.
//!
//! A building is a list of places; two in five devices are smart (table 3). K5, K6, K7 and K9 choose
//! groups, and run nothing.

mod deployment;
mod house;
mod k1;
mod k10;
mod k11;
mod k12;
mod k13;
mod k14;
mod k15;
mod k2;
mod k3;
mod k4;
mod k5;
mod k6;
mod k7;
mod k8;
mod k9;
mod lab;
mod operations;
mod spot;
mod waits;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        k1::claim(),
        k2::claim(),
        k3::claim(),
        k4::claim(),
        k5::claim(),
        k6::claim(),
        k7::claim(),
        k8::claim(),
        k9::claim(),
        k10::claim(),
        k11::claim(),
        k12::claim(),
        k13::claim(),
        k14::claim(),
        k15::claim(),
    ]
}
