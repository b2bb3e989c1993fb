//! Checks of the bounds on memory and frames.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;

use selvedge_core::wire::{HEADER_LEN, member_len};
use selvedge_core::{Driver, Member, NodeId};

use super::settings::Order;
use crate::{Celect, Message};

/// The largest number of nodes that a node of these meshes asks, for all settings.
const WANTED: usize = 10;

/// Checks that collections which peers can make grow stay within their limits.
pub(super) fn check_limits(driver: &Driver<Celect<Order>>) -> Result<(), String> {
    if driver.refused_ticks() > 0 {
        return Err("a tick was refused".into());
    }
    let machine = driver.machine();
    let peers = machine.config.peer_limit as usize;
    let timers = driver.timers().count();
    let notified = machine
        .announcement
        .as_ref()
        .map_or(0, |it| it.awaited.len());
    // The node that appointed us may not be on our list.
    check(&[
        ("listed", machine.members().count(), peers),
        ("remembered", machine.peers.remembered(), 2 * peers + 2),
        ("timers", timers, 13),
        ("not yet notified", notified, peers + 1),
    ])?;
    if let Some(lease) = &machine.lease {
        let (on_the_way, acknowledged) = lease.sizes();
        check(&[
            ("renewals on their way", on_the_way, 4),
            ("nodes that acknowledged", acknowledged, 2 * peers + 3),
        ])?;
    }
    let Some(run) = &machine.run else {
        return Ok(());
    };
    let config = &machine.config;
    // A measured c is at most the number of known nodes.
    let wanted = WANTED + config.estimation.map_or(0, |_| peers);
    // A node that was asked may have a new life now, and that life is asked, too.
    let is_past = |it: &&Member| {
        machine.peers.is_over(**it)
            && run.met.binary_search(it).is_err()
            && !run.answered.contains(it)
    };
    let past: BTreeSet<NodeId> = run.asked.iter().filter(is_past).map(|it| it.id).collect();
    check(&[(
        "past lives that are asked, beyond one per node",
        run.asked.iter().filter(is_past).count() - past.len(),
        0,
    )])?;
    let asked = 2 * (2 * peers + 2 + wanted);
    check(&[
        ("met", run.met.len(), wanted),
        ("asked", run.asked.len(), asked),
        ("answered", run.answered.len(), asked),
        (
            "candidates",
            run.candidates.len(),
            asked * usize::from(run.x),
        ),
        ("unhealthy", run.unhealthy.len(), asked * usize::from(run.y)),
        (
            "passed over",
            run.exclude.len(),
            usize::from(config.exclude_limit) + run.names(config) - 1,
        ),
    ])
}

fn check(sizes: &[(&str, usize, usize)]) -> Result<(), String> {
    for (what, count, limit) in sizes {
        if count > limit {
            return Err(format!("{what}: {count}, and {limit} allowed"));
        }
    }
    Ok(())
}

/// Checks that a frame stays within its budget, and returns its length.
pub(super) fn check_frame(machine: &Celect<Order>, message: &Message) -> Result<usize, String> {
    let len = HEADER_LEN + member_len(machine.me()) + message.encoded_len();
    let budget = usize::from(machine.config.frame_budget);
    if len > budget {
        return Err(format!(
            "a frame of {len} bytes, {budget} allowed: {message:?}"
        ));
    }
    Ok(len)
}
