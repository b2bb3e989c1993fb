//! All tests as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::cast_possible_truncation,
    reason = "a test that cannot go on fails"
)]

mod believing;
mod changing;
mod choose;
mod cluster;
mod errata;
mod finding;
mod frames;
mod inquiring;
mod leading;
mod lives;
mod mesh;
mod model;
mod near;
mod plans;
mod registry;
mod seeking;
mod slow;
mod spared;
mod store;
mod store_histories;
mod store_linear;
mod store_model;
mod store_parts;
mod store_sessions;
mod storing;
mod uniform;
mod weights;

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::{Chooser, GroupId, Node, Place, Policy, Selection, Target};

/// The `count` places with the lowest coordinates of a grid that is a cube, `spacing` apart.
fn grid(count: usize, spacing: i32) -> Vec<Place> {
    let side = (1..).find(|side: &usize| side.pow(3) >= count).unwrap();
    let axis = |at: usize| at as i32 * spacing;
    (0..count)
        .map(|at| Place([at % side, at / side % side, at / side / side].map(axis)))
        .collect()
}

fn nodes(places: &[Place]) -> Vec<Node> {
    (1..)
        .zip(places)
        .map(|(id, &place)| Node::new(id, place))
        .collect()
}

fn target(id: u64, place: Place) -> Target<'static> {
    Target {
        id: GroupId(id),
        place: Some(place),
        neighbours: &[],
    }
}

const UNIFORM: Selection = Selection::new().with_policy(Policy::Uniform);

fn chooser(config: Selection, epoch: u64, nodes: &[Node]) -> Chooser<'static, Sha256Sortition> {
    Chooser::new(config, &Sha256Sortition, epoch, nodes.iter().copied()).unwrap()
}

fn ids(ids: &[u64]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}
