//! Checks of the limits.

use alloc::format;
use alloc::string::String;

use selvedge_core::Driver;
use selvedge_core::wire::{HEADER_LEN, member_len};

use crate::message::UP_MAX_LEN;
use crate::state::Stage;
use crate::tree::{Answered, Tree};
use crate::{Camera, Message};

/// Checks that the collections that peers can make grow stay within their limits.
pub(super) fn check_limits(driver: &Driver<Camera>) -> Result<(), String> {
    if driver.refused_ticks() > 0 {
        return Err("a tick was refused".into());
    }
    let machine = driver.machine();
    let limit = machine.config.peer_limit as usize;
    let asked = match &machine.stage {
        Stage::Waiting(waiting) => waiting.iter().count(),
        Stage::Idle | Stage::Inside(_) => 0,
    };
    for (what, count, limit) in [
        ("listed", machine.listed(), limit),
        ("granted", machine.granted.grants().len(), limit),
        ("deferred", machine.granted.deferred().len(), limit),
        ("kept", machine.kept.len(), limit),
        ("asked", asked, 2 * limit),
        (
            "trees",
            machine.forest.len(),
            usize::from(machine.config.tree_limit) + 1,
        ),
        // One for each node that was declared failed, and three of our own.
        ("timers", driver.timers().count(), limit + 3),
    ] {
        if count > limit {
            return Err(format!("{what}: {count}, and {limit} allowed"));
        }
    }
    for (_, tree) in machine.forest.iter() {
        check_tree(machine, tree)?;
    }
    Ok(())
}

/// Checks that a frame stays within its budget. Returns its length.
pub(super) fn check_frame(machine: &Camera, message: &Message) -> Result<usize, String> {
    let len = HEADER_LEN + member_len(machine.me()) + message.encoded_len();
    let budget = usize::from(machine.config.frame_budget);
    if len > budget {
        return Err(format!(
            "a frame of {len} bytes, {budget} allowed: {message:?}"
        ));
    }
    Ok(len)
}

/// Checks that a tree stays within its limits, and that its counts match its children.
fn check_tree(machine: &Camera, tree: &Tree) -> Result<(), String> {
    let peers = 2 * machine.config.peer_limit as usize;
    // Depth and member take three bytes at least.
    let branches = machine.config.list_room(UP_MAX_LEN).left() / 3;
    let known = tree.children().map(|(_, child)| match &child.answer {
        Answered::Echo(below) => below.branches.len(),
        Answered::No | Answered::Up => 0,
    });
    for (what, count, limit) in [
        ("children", tree.children().count(), peers),
        ("rivals", tree.rivals.len(), peers),
        ("branches", known.max().unwrap_or_default(), branches),
    ] {
        if count > limit {
            return Err(format!("{what} of a tree: {count}, and {limit} allowed"));
        }
    }
    let is_growing = tree.broken || tree.children().any(|(_, it)| it.answer == Answered::No);
    let is_open = is_growing || tree.children().any(|(_, it)| it.answer != Answered::Up);
    let is_whole = !is_open && tree.agreed;
    if (tree.is_growing(), tree.is_open(), tree.is_whole()) != (is_growing, is_open, is_whole) {
        return Err(format!("a tree has counted wrongly: {tree:?}"));
    }
    Ok(())
}
