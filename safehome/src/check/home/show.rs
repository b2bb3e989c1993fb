//! A home in one line.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Home;
use crate::run::Stage;

pub(super) fn show(home: &Home) -> String {
    let devices = home.hub().devices.iter().zip(&home.things);
    let devices: Vec<String> = devices
        .map(|((id, device), thing)| {
            let entries: Vec<String> = device
                .lineage
                .iter()
                .map(|it| {
                    let mark = match (it.released, it.touched) {
                        (true, _) => "released",
                        (false, true) => "in use",
                        (false, false) => "planned",
                    };
                    format!("{:?} {mark} {:?}", it.owner, it.wrote)
                })
                .collect();
            let down = if thing.is_down { " down" } else { "" };
            let state = thing.state;
            format!("{}={state}{down} [{}]", id.0, entries.join(", "))
        })
        .collect();
    let runs: Vec<String> = home
        .hub()
        .runs
        .iter()
        .map(|(id, run)| match run.stage {
            Stage::Committed => format!("{} committed", id.0),
            stage @ (Stage::Queued
            | Stage::Waiting
            | Stage::Placed
            | Stage::Running
            | Stage::Aborting(_)) => {
                format!("{} at {} {stage:?}", id.0, run.at)
            }
        })
        .collect();
    [devices.join("; "), runs.join(", ")]
        .join(" | ")
        .to_string()
}
