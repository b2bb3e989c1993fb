//! The nodes of a simulated mesh: their ids, a draw among them, their distances.

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Member, NodeId};
use selvedge_membership::{Command, Membership};
use selvedge_sim::network::Network;

use crate::claims::Fault as Broken;

/// Gives `node` the distances to the others, in mm.
pub(super) fn set_distances(
    mesh: &mut Network<Membership>,
    node: usize,
    others: impl IntoIterator<Item = usize>,
) -> Result<(), Broken> {
    for other in others.into_iter().filter(|&other| other != node) {
        let distance = mesh.topology().distance(node, other).unwrap_or_default();
        let distance = u32::try_from(distance).map_err(Broken::network)?.max(1);
        let id = id(other);
        mesh.command(node, Command::SetDistance { id, distance })
            .map_err(Broken::network)?;
    }
    Ok(())
}

pub(in crate::claims) fn id(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

pub(in crate::claims) fn member(node: usize) -> Member {
    Member::new(id(node).0, 1)
}

/// Different nodes at random, `count` of them, all choices equally likely.
pub(super) fn pick(rng: &mut ChaCha8Rng, nodes: usize, count: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..nodes).collect();
    for place in 0..count.min(nodes) {
        let other = place + rng.below((nodes - place) as u64) as usize;
        all.swap(place, other);
    }
    all.truncate(count);
    all
}
