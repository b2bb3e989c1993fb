//! Claims of the paper on PCM: section 5.
//!
//! P1, P2, P3 and P8 run functions on one unit behind one gateway, and on servers of Raft and of Pirogue
//! behind the same mailboxes: the file `setting` explains them, and the gaps of the paper. P4 has
//! gateways alone, P5 and P7 lose followers, P6 forms units and runs nothing.

mod energy;
mod p1;
mod p2;
mod p3;
mod p4;
mod p5;
mod p6;
mod p7;
mod p8;
mod servers;
mod setting;
mod world;

use super::Claim;

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        p1::claim(),
        p2::claim(),
        p3::claim(),
        p4::claim(),
        p5::claim(),
        p6::claim(),
        p7::claim(),
        p8::claim(),
    ]
}
