//! Sockets that fail, for good or for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use selvedge::Election;
use selvedge_celect::Event;
use selvedge_core::Span;
use selvedge_core::shared::block_on;
use selvedge_udp::{Host, NodeEvent};
use tokio::time::sleep;

use crate::bench::{Node, until};
use crate::datagrams::setup;
use crate::network::{Network, Quirk};

/// The node counts the errors, goes on, and leaves the processor to others meanwhile.
#[test]
fn an_error_that_stays_does_not_take_the_processor() {
    let network = Network::default();
    let broken = setup(&network, 1, &[]).transport(network.odd(Quirk::Down));
    let node = Host::blocking_start(broken).unwrap();
    thread::sleep(Duration::from_millis(300));
    let errors = node.traffic().report().network_errors;
    assert!(node.state().is_in);
    block_on(node.kill());
    // One a millisecond, some at once, and those that come before a due timer.
    assert!((17..2_000).contains(&errors), "{errors} errors");
}

/// It leads itself alone, and its application knows that before it leads.
#[tokio::test(start_paused = true)]
async fn a_node_whose_sends_all_fail_reports_it_before_it_leads() {
    let network = Network::default();
    let switches = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let start = |id: u16, seeds: &[u16]| {
        let is_mute = Arc::clone(&switches[usize::from(id) - 1]);
        let setup = self::setup(&network, id, seeds)
            .election(Election::paced(Span::millis(200), 1, 1))
            .transport(network.odd(Quirk::Mute(is_mute)));
        Node::start(setup)
    };
    let nodes = [start(1, &[]).await, start(2, &[1]).await];
    let leader = |node: &Node| node.leader().map(|it| it.0.id);
    until(|| {
        let leaders = [leader(&nodes[0]), leader(&nodes[1])];
        nodes.iter().all(|it| it.live() == 2) && leaders[0].is_some() && leaders[0] == leaders[1]
    })
    .await;
    let [one, two] = nodes;
    let (_leads, mut two, is_mute) = if leader(&one) == Some(one.id()) {
        (one, two, &switches[1])
    } else {
        (two, one, &switches[0])
    };
    assert!(!two.state().is_mute);
    two.passed();
    is_mute.store(true, Ordering::Relaxed);
    let me = two.id();
    let leads = |it: &NodeEvent| matches!(it, NodeEvent::Election(Event::Elected { leader, .. }) if leader.id == me);
    let is_unsent =
        |it: &NodeEvent| matches!(it, NodeEvent::Unsent(it) if it.error == "the interface is down");
    let first = two.wait_for(|it| leads(it) || is_unsent(it)).await;
    assert!(is_unsent(&first), "{first:?}");
    two.wait_for(leads).await;
    assert!(two.state().is_mute);
    is_mute.store(false, Ordering::Relaxed);
    two.wait_for(|it| *it == NodeEvent::SentAgain).await;
    assert!(!two.state().is_mute);
    until(|| two.live() == 2).await;
    // Within a minute no second report is emitted; the state is right all the same.
    is_mute.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(5)).await;
    assert!(two.state().is_mute);
    assert!(!two.passed().iter().any(is_unsent));
    is_mute.store(false, Ordering::Relaxed);
    until(|| two.live() == 2 && !two.state().is_mute).await;
}
