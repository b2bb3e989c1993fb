//! Claims of the paper on SafeHome: chapter 7.
//!
//! A home is a hub and its devices in virtual time. The load sets the time of a command: the
//! device answers after 100 ms, and is needed for the rest. The hub's estimates are exact. Each
//! routine writes a distinct state, so that no two orders end alike by chance.

mod lab;
mod notify;
mod s01;
mod s02;
mod s03;
mod s04;
mod s05;
mod s06;
mod s07;
mod s08;
mod s09;
mod s10;
mod s11;
mod scenario;

use lab::{EV, FCFS, GSV, JIT, Load, PSV, S_GSV, Setting, WV};

use super::{Claim, Experiment};

/// Each of the paper's three scenarios under each model, and under EV with each scheduler. Their
/// names are as in `safehome: morning, EV`.
pub fn scenarios() -> impl Iterator<Item = Experiment> {
    let loads = [Load::Morning, Load::Party, Load::Factory];
    let models = [WV, GSV, S_GSV, PSV, FCFS, JIT, EV];
    loads
        .into_iter()
        .flat_map(move |load| models.map(|model| Setting::new(load, model).experiment()))
}

/// All of them, in order.
#[must_use]
pub fn claims() -> Vec<Claim> {
    vec![
        s01::claim(),
        s02::claim(),
        s03::claim(),
        s04::claim(),
        s05::claim(),
        s06::claim(),
        s07::claim(),
        s08::claim(),
        s09::claim(),
        s10::claim(),
        s11::claim(),
    ]
}
