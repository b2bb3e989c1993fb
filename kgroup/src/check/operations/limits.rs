//! The memory of a node against its limits, and a node in a line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::Kgroup;

/// Checks that a node's memory stays within its settings.
pub(super) fn check_limits(it: &Kgroup) -> Result<(), String> {
    let groups = it.groups();
    let config = groups.config();
    let parts = groups.groups().count();
    let pending = config.replica.pending as usize;
    let waiting = |group| groups.replica(group).map_or(0, |it| it.waiting());
    let most_waiting = groups.groups().map(waiting).max().unwrap_or_default();
    let is_within = parts <= config.groups.into()
        && groups.hinted() <= config.leader_hints.into()
        && most_waiting <= pending
        && it.leads().all(|group| groups.replica(group).is_some());
    match is_within {
        true => Ok(()),
        false => Err(format!("a limit is passed: {}", sketch(it))),
    }
}

/// A node in a few lines.
pub(super) fn sketch(it: &Kgroup) -> String {
    let groups = it.groups();
    let parts = groups.groups().filter_map(|group| {
        let replica = groups.replica(group)?;
        let number = replica.configuration().number;
        let members: Vec<_> = replica
            .configuration()
            .members()
            .map(|it| it.member)
            .collect();
        Some(format!(
            "\n    {group:?}: c{number} {members:?} version {} votes {} leader {:?} {}",
            replica.version(),
            replica.votes(),
            replica.leader(),
            if groups.is_changing(group) {
                "changing"
            } else {
                ""
            },
        ))
    });
    let parts: Vec<String> = parts.collect();
    let leads: Vec<_> = it.leads().collect();
    format!(
        "\n  {:?} epoch {} hints {} leads {leads:?}{}",
        it.me(),
        groups.epoch(),
        groups.hinted(),
        parts.concat(),
    )
}
