//! Runs of a routine.

use std::collections::BTreeSet;

use selvedge_kgroup::routines::StepOutcome;
use selvedge_kgroup::{Site, TriggerId};
use tokio::time::timeout;

use super::{BELL, LAMP, Power};
use crate::bench::{Node, PATIENCE, until};
use crate::devices::Devices;

async fn trigger(node: &Node, id: u64) {
    let asked = node.trigger(Site::routine(0), TriggerId(id));
    timeout(PATIENCE, asked).await.unwrap().unwrap();
}

/// Triggers a run, and waits for its report, until the power is cut. Returns true if the trigger was
/// confirmed.
pub(super) async fn until_cut(nodes: &[Node], power: &Power, at: usize, devices: &Devices) -> bool {
    let Some(node) = nodes.get(at) else {
        return false;
    };
    tokio::select! {
        triggered = node.trigger(Site::routine(0), TriggerId(1)) => if let Err(why) = triggered {
            assert!(power.is_cut(), "{why}");
            return false;
        },
        () = power.cut() => return false,
    }
    until(|| power.is_cut() || devices.report(1).is_some()).await;
    true
}

/// Triggers a run after the power cut, and the one before again, unless it was confirmed: then it is
/// not to be lost.
pub(super) async fn go_on(nodes: &[Node], nth: usize, is_confirmed: bool, devices: &Devices) {
    if !is_confirmed {
        trigger(&nodes[nth % 3], 1).await;
    }
    trigger(&nodes[nth / 2 % 3], 2).await;
    // If the first run is lost, this one is the first.
    until(|| devices.report(2).is_some()).await;
    trigger(&nodes[nth / 4 % 3], 1).await;
}

/// Checks the commands of the devices and the reports, when all nodes have stopped.
pub(super) fn check(nth: usize, devices: &Devices) {
    assert!(devices.last_run() <= 2, "cut at {nth}: {devices:?}");
    let second = devices.report(2).unwrap().steps;
    assert_eq!(second, [StepOutcome::Done; 2], "cut at {nth}");
    let lamp: BTreeSet<u64> = devices.commands(LAMP).into_iter().collect();
    assert_eq!(lamp.len(), 2, "cut at {nth}: {devices:?}");
    let rung = devices.commands(BELL);
    let bell: BTreeSet<u64> = rung.iter().copied().collect();
    assert_eq!(rung.len(), bell.len(), "cut at {nth}: {devices:?}");
    // The first run leaves the bell out if it may have rung before the cut.
    let first = devices.report(1).map(|it| it.steps[1]);
    let least = 1 + usize::from(first == Some(StepOutcome::Done));
    assert!(bell.len() >= least, "cut at {nth}: {devices:?}");
}
