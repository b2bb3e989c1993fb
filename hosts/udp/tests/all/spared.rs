//! A node that asks to be spared.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use selvedge::Coordination;
use selvedge_core::{NodeId, Span};
use selvedge_groups::{self as groups, GroupId, Place, Selection};
use selvedge_kgroup::{Config, Event, Site};
use selvedge_udp::NodeEvent;
use tokio::time::{sleep, timeout};

use crate::bench::{self, Node, PATIENCE, until};

const NODES: u64 = 5;

/// Five nodes, and a group of three for each of six devices.
fn coordination() -> Coordination {
    let nodes = (1..=NODES).map(|id| groups::Node::new(id, Place::default()));
    let devices = (101..=106).map(|id| (NodeId(id), Place::default()));
    let site = Site::new(Selection::new().with_failures(1), nodes, devices, 1);
    let mut config = Config::new();
    config.groups = (config.groups)
        .with_change_delay(Span::millis(300))
        .with_stagger(Span::ZERO);
    Coordination::new(site.unwrap()).with_config(config)
}

/// Follows a node's events until this number of groups, or another one, has it as a member.
async fn in_groups(node: &mut Node, present: &mut BTreeSet<GroupId>, is_so: fn(usize) -> bool) {
    let wait = async {
        while !is_so(present.len()) {
            for event in node.passed() {
                match event {
                    NodeEvent::Groups(Event::Groups(groups::Event::Entered(it))) => {
                        present.insert(it);
                    }
                    NodeEvent::Groups(Event::Groups(groups::Event::Left(it))) => {
                        present.remove(&it);
                    }
                    _ => {}
                }
            }
            sleep(core::time::Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap();
}

#[tokio::test]
async fn a_spared_node_leaves_all_groups_and_enters_some_when_it_takes_its_share_again() {
    let mut nodes: Vec<Node> = Vec::new();
    for id in 1..=NODES {
        let seeds: Vec<SocketAddr> = nodes.first().map(|it| it.address()).into_iter().collect();
        let setup = bench::setup(id, &seeds).coordination(coordination(), Span::secs(3));
        nodes.push(Node::start(setup.stateless()).await);
    }
    for node in &nodes {
        until(|| node.live() == NODES as usize).await;
    }
    let (node, mut present) = (&mut nodes[1], BTreeSet::new());
    in_groups(node, &mut present, |count| count > 0).await;
    node.set_spared(true).await.unwrap();
    in_groups(node, &mut present, |count| count == 0).await;
    node.set_spared(false).await.unwrap();
    in_groups(node, &mut present, |count| count > 0).await;
}

#[tokio::test]
async fn a_node_without_groups_refuses_to_be_spared() {
    let node = Node::start(bench::setup(1, &[])).await;
    let refused = node.set_spared(true).await.unwrap_err();
    assert!(refused.to_string().contains("k-groups"), "{refused}");
}
