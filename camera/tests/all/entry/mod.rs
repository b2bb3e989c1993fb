//! Entries: their cost, the nodes for which they wait, and their events.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod again;
mod answers;
mod cost;
mod kept;
mod lives;
mod refused;
mod resend;
mod room;
mod takeover;

use selvedge_camera::{Camera, Config, Event, Token};
use selvedge_core::{Delta, Member, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

const DELAY: Span = Span::millis(10);

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// Nodes that know each other, over links of 10 ms.
fn mesh(nodes: usize, config: Config) -> Network<Camera> {
    mesh_of(&vec![config; nodes])
}

/// Nodes that know each other, each with its own settings.
fn mesh_of(configs: &[Config]) -> Network<Camera> {
    let nodes = configs.len();
    let link = Link {
        min_delay: DELAY,
        max_delay: DELAY,
        ..Link::default()
    };
    let mut mesh = Network::new(1, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for (node, &config) in configs.iter().enumerate() {
        mesh.add(member(node), Camera::new(member(node), config).unwrap())
            .unwrap();
    }
    for node in 0..nodes {
        for other in (0..nodes).filter(|&other| other != node) {
            mesh.membership(node, Delta::Joined(member(other))).unwrap();
        }
    }
    mesh
}

fn entered(mesh: &mut Network<Camera>) -> Vec<(Time, usize, Token)> {
    let token = |(at, node, event)| match event {
        Event::Entered(token) => Some((at, node, token)),
        _ => None,
    };
    mesh.drain_events().filter_map(token).collect()
}
