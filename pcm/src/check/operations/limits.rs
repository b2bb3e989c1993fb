//! The limits of a node's memory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::settings::{CLIENT_TASKS, Settings};
use crate::node::Node;

/// Checks that a node's memory is within its settings.
pub(super) fn check_limits(node: &Node, settings: &Settings) -> Result<(), String> {
    let is_hostile = settings.is_hostile();
    let is_within = match node {
        Node::Gateway(it) => {
            let it = it.machine();
            let (own, asked) = it.kept();
            let config = it.config();
            let broken = it.tables().filter(|_| !is_hostile);
            // Twice: a gateway also keeps followers that wait for the decision on their attachment.
            own <= 2 * settings.limits.followers as usize
                && asked <= config.clients.into()
                && it.replica().waiting() <= config.replica.pending as usize
                && (it.gateways().count() <= settings.gateways || is_hostile)
                && broken.is_none_or(|it| *it.limits() == settings.limits)
        }
        Node::Follower(it) => {
            let it = it.machine();
            let (jobs, votes) = it.kept();
            let config = it.config();
            let most = usize::from(settings.limits.unit) + 2;
            jobs <= config.jobs.into()
                && it.libraries().count() <= config.libraries.into()
                && (votes <= most || is_hostile)
        }
        Node::Client(it) => it.machine().waiting().count() <= CLIENT_TASKS.into(),
    };
    match is_within {
        true => Ok(()),
        false => Err(format!("a limit is passed: {}", sketch(node))),
    }
}

/// The state of a node in a few lines.
#[must_use]
pub fn sketch(node: &Node) -> String {
    match node {
        Node::Gateway(it) => {
            let it = it.machine();
            let replica = it.replica();
            let here: Vec<_> = it.gateways().collect();
            let tables = it.tables();
            let open: Vec<_> = tables.into_iter().flat_map(|it| it.open()).collect();
            let followers = tables.map_or(0, |it| it.followers().count());
            format!(
                "\n  {:?} manages {} keeps {:?} {here:?} version {} votes {} of {} leader {:?}: \
                 {followers} in {} units, open {open:?}",
                it.me(),
                it.manages(),
                it.kept(),
                replica.version(),
                replica.votes(),
                replica.configuration().number,
                replica.leader(),
                tables.map_or(0, |it| it.units()),
            )
        }
        Node::Follower(it) => {
            let it = it.machine();
            format!(
                "\n  {:?} at {:?} {:?} {:?}{}",
                it.me(),
                it.attached_to(),
                it.phase(),
                it.counters(),
                it.show_jobs(),
            )
        }
        Node::Client(it) => format!("\n  {:?}", it.machine()),
    }
}
