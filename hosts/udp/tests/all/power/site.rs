//! A change of the site.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_groups::Place;
use selvedge_kgroup::Site;
use selvedge_udp::{Error, Handle, NodeState, Reject};
use tokio::time::timeout;

use super::{Power, site};
use crate::bench::{Node, PATIENCE};

const BLIND: NodeId = NodeId(103);
const DOOR: NodeId = NodeId(104);

fn with(site: &Site, device: NodeId) -> Site {
    site.clone().with_device(device, Place::default()).unwrap()
}

fn generation_of(state: &NodeState) -> Option<u32> {
    state.site.as_ref().map(|it| it.generation())
}

/// The site of a node, as soon as it is of this generation or a later one.
async fn site_of(node: &Node, generation: u32) -> Arc<Site> {
    let state = Handle::wait_for(node, |it| generation_of(it) >= Some(generation));
    let state = timeout(PATIENCE, state).await.unwrap().unwrap();
    state.site.clone().unwrap()
}

/// Gives the site a blind, and waits until all nodes have it or the power is cut. Returns true if the
/// change was confirmed.
pub(super) async fn until_cut(nodes: &[Node], power: &Power, at: usize) -> bool {
    let Some(node) = nodes.get(at) else {
        return false;
    };
    tokio::select! {
        changed = node.change_site(with(&site(), BLIND)) => match changed {
            Ok(generation) => assert_eq!(generation, 1),
            Err(why) => {
                assert!(power.is_cut(), "{why}");
                return false;
            }
        },
        () = power.cut() => return false,
    }
    for node in nodes {
        let has_it = Handle::wait_for(node, |it| generation_of(it) == Some(1));
        tokio::select! {
            found = has_it => assert!(found.is_ok() || power.is_cut(), "{found:?}"),
            () = power.cut() => {},
        }
    }
    true
}

/// Gives the present site a door, and returns the generation that has it.
async fn change_again(node: &Node) -> u32 {
    let mut generation = 0;
    loop {
        let present = site_of(node, generation).await;
        let changed = timeout(PATIENCE, node.change_site(with(&present, DOOR))).await;
        match changed.unwrap() {
            Ok(generation) => return generation,
            // Decided before the cut, and this node has not received it yet.
            Err(Error::Rejected(Reject::OtherChange { generation: 1 })) if generation == 0 => {
                generation = 1;
            }
            Err(why) => panic!("{why}"),
        }
    }
}

/// Checks that all nodes have the same site, with the change if that was confirmed.
pub(super) async fn check(nodes: &[Node], nth: usize, is_confirmed: bool) {
    if is_confirmed {
        for node in nodes {
            let has_blind = site_of(node, 1).await.cluster_of(BLIND).is_some();
            assert!(has_blind, "cut at {nth}");
        }
    }
    let last = change_again(&nodes[nth % 3]).await;
    // The change in flight may have been decided.
    let expected = 1 + u32::from(is_confirmed)..=2;
    assert!(expected.contains(&last), "cut at {nth}: {last}");
    for node in nodes {
        let site = site_of(node, last).await;
        let has_it = [BLIND, DOOR].map(|it| site.cluster_of(it).is_some());
        assert_eq!(site.generation(), last, "cut at {nth}");
        assert_eq!(has_it, [last == 2, true], "cut at {nth}");
    }
}
