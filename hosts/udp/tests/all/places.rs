//! Where nodes are found: by names, and at addresses that they were not given.

use core::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use selvedge_core::NodeId;
use selvedge_udp::discovery::{SeedFound, SeedNews};
use selvedge_udp::{NodeEvent, Seed, Setup};
use tokio::time::sleep;

use crate::bench::{Node, config, is_failure, until};
use crate::datagrams::setup;
use crate::network::{Network, Quirk, Source, at};

const SERVICE: &str = "service.example:7001";

fn seed_news(event: &NodeEvent) -> Option<&SeedFound> {
    match event {
        NodeEvent::Seed(SeedNews { name, found }) if name == SERVICE => Some(found),
        _ => None,
    }
}

/// All instances of a service start at once, and its name has one record at first.
#[tokio::test(start_paused = true)]
async fn a_name_that_was_the_node_itself_is_looked_up_again_while_it_is_alone() {
    let network = Network::default();
    let named = |id| {
        let seed = Seed::found_by(SERVICE, vec![at(id)], || ready(Ok(vec![at(1), at(2)])));
        Node::start(setup(&network, id, &[]).seeds([seed]))
    };
    let (mut one, two) = (named(1).await, named(2).await);
    until(|| one.state().is_in && two.state().is_in).await;
    until(|| one.live() == 2 && two.live() == 2).await;
    let lookups = || one.traffic().lookups.get() + two.traffic().lookups.get();
    let before = lookups();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(lookups(), before);
    let passed = one.passed();
    let found: Vec<_> = passed.iter().filter_map(seed_news).collect();
    let others = SeedFound::Others(vec![at(2)]);
    assert_eq!(found[0], &SeedFound::Itself);
    assert_eq!(found.get(1).copied().unwrap_or(&others), &others);
    assert_eq!(one.traffic().unknown_destination.get(), 0);
}

/// A name with one answer after another; the last one stays.
fn answers(list: Vec<io::Result<Vec<SocketAddr>>>) -> Seed {
    let list = Arc::new(Mutex::new(list));
    Seed::found_by(SERVICE, Vec::new(), move || {
        let mut list = list.lock().unwrap();
        let answer = match &list[0] {
            Ok(found) => Ok(found.clone()),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        if list.len() > 1 {
            drop(list.remove(0));
        }
        ready(answer)
    })
}

fn nothing() -> io::Result<Vec<SocketAddr>> {
    Err(io::Error::other("no such name"))
}

/// The node has to join, so it waits; each outcome is reported once.
#[tokio::test(start_paused = true)]
async fn a_name_without_an_address_is_looked_up_until_it_has_one() {
    let network = Network::default();
    let turned = [vec![at(1), at(9)], vec![at(9), at(1)]].map(Ok);
    let answers = [nothing(), nothing(), nothing()].into_iter().chain(turned);
    let seed = self::answers(answers.collect());
    let mut two = Node::start(setup(&network, 2, &[]).seeds([seed])).await;
    sleep(Duration::from_secs(28)).await;
    assert!(!two.state().is_in && two.traffic().lookups.get() >= 5);
    let _one = Node::start(setup(&network, 1, &[])).await;
    until(|| two.live() == 2).await;
    let passed = two.passed();
    let found: Vec<_> = passed.iter().filter_map(seed_news).collect();
    let [SeedFound::Nothing(why), others] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(why, "no such name");
    assert_eq!(others, &SeedFound::Others(vec![at(1), at(9)]));
}

/// The only instance of a service, with a record that comes late.
#[tokio::test(start_paused = true)]
async fn a_node_begins_when_its_only_seed_turns_out_to_be_itself() {
    let network = Network::default();
    let seed = answers(vec![nothing(), Ok(vec![at(1)])]);
    let node = Node::start(setup(&network, 1, &[]).seeds([seed])).await;
    assert!(!node.state().is_in);
    until(|| node.state().is_in).await;
    let report = node.traffic().report();
    assert_eq!((report.sent, report.lookups), (0, 2));
}

/// A node that waits for another seed does not begin.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_one_of_its_seeds_waits_for_the_other() {
    let network = Network::default();
    let _silent = network.open(at(9));
    let itself = Seed::found_by(SERVICE, vec![at(1)], || ready(Ok(vec![at(1)])));
    let seeds = [itself, Seed::from(at(9))];
    let node = Node::start(setup(&network, 1, &[]).seeds(seeds)).await;
    sleep(Duration::from_secs(60)).await;
    assert!(!node.state().is_in);
}

/// A node at all addresses of its host.
fn anywhere(network: &Network, id: u16, seeds: &[u16], source: Source) -> Setup {
    setup(network, id, seeds).transport(network.odd(Quirk::Anywhere(source)))
}

/// A host with this one address.
fn here(_: SocketAddr) -> Option<SocketAddr> {
    Some(at(0))
}

fn announced(event: &NodeEvent) -> Option<&[SocketAddr]> {
    match event {
        NodeEvent::Announced(addresses) => Some(addresses),
        _ => None,
    }
}

/// The first node joins none, and learns its address from the first that reaches it.
#[tokio::test(start_paused = true)]
async fn nodes_at_all_addresses_announce_where_they_are_and_outlive_their_seed() {
    let network = Network::default();
    let mut nodes = Vec::new();
    for id in 1..=4 {
        let seeds: &[u16] = if id == 1 { &[] } else { &[1] };
        nodes.push(Node::start(anywhere(&network, id, seeds, here)).await);
    }
    until(|| nodes.iter().all(|it| it.live() == 4)).await;
    sleep(Duration::from_secs(5)).await;
    for (node, id) in nodes.iter_mut().zip(1..) {
        let passed = node.passed();
        let found: Vec<_> = passed.iter().filter_map(announced).collect();
        assert_eq!(found, [[at(id)]]);
    }
    // At first a node may learn of another one before its address.
    let unknown = |node: &Node| node.traffic().unknown_destination.get();
    let before: Vec<_> = nodes.iter().skip(1).map(unknown).collect();
    nodes.remove(0).kill().await;
    until(|| nodes.iter().all(|it| it.live() == 3)).await;
    sleep(Duration::from_secs(30)).await;
    for (node, before) in nodes.iter_mut().zip(before) {
        let failures = node.passed();
        let failures = failures.iter().filter(|it| is_failure(it)).count();
        assert_eq!((node.live(), failures), (3, 1));
        assert_eq!(unknown(node), before);
    }
}

/// On a host that does not know its addresses, and behind a NAT.
#[tokio::test(start_paused = true)]
async fn a_node_that_finds_no_address_reports_that_once() {
    let private = |_| Some(SocketAddr::from(([10, 1, 2, 3], 0)));
    for source in [|_| None, private] {
        let network = Network::default();
        let one = Node::start(setup(&network, 1, &[])).await;
        let mut two = Node::start(anywhere(&network, 2, &[1], source)).await;
        until(|| one.live() == 2 && two.live() == 2).await;
        sleep(Duration::from_secs(30)).await;
        let passed = two.passed();
        let found: Vec<_> = passed.iter().filter_map(announced).collect();
        assert_eq!(found, [[]; 1]);
        // It is sent to where its datagrams come from.
        assert_eq!(address_of(&one, 2), Some(at(2)));
    }
}

/// The address to which a node sends to reach another.
fn address_of(node: &Node, id: u64) -> Option<SocketAddr> {
    let list = node.members();
    let of = list.iter().find(|it| it.member.id == NodeId(id));
    of.unwrap().address
}

/// Other hosts reach no address of loopback.
#[tokio::test(start_paused = true)]
async fn an_address_of_loopback_gives_way_to_any_other() {
    let network = Network::default();
    let source = |peer: SocketAddr| {
        let is_here = peer.ip().is_loopback();
        let ip = if is_here {
            [127, 0, 0, 1]
        } else {
            [192, 0, 2, 1]
        };
        Some(SocketAddr::from((ip, 0)))
    };
    let mut two = Node::start(anywhere(&network, 2, &[], source)).await;
    let neighbour = Setup::new(NodeId(3), ([127, 0, 0, 1], 3).into())
        .seeds([at(2)])
        .membership(config())
        .transport(network.clone());
    let _three = Node::start(neighbour).await;
    let loopback = SocketAddr::from(([127, 0, 0, 1], 2));
    let first = two.wait_for(|it| announced(it).is_some()).await;
    assert_eq!(announced(&first), Some(&[loopback][..]));
    let four = Node::start(setup(&network, 4, &[2])).await;
    let second = two.wait_for(|it| announced(it).is_some()).await;
    assert_eq!(announced(&second), Some(&[at(2)][..]));
    sleep(Duration::from_secs(10)).await;
    assert!(!two.passed().iter().any(|it| announced(it).is_some()));
    assert_eq!(address_of(&four, 2), Some(at(2)));
}

/// Its datagrams come from the address that it has now.
#[tokio::test(start_paused = true)]
async fn a_host_that_moves_announces_its_new_address() {
    static IP: AtomicU8 = AtomicU8::new(1);
    let network = Network::default();
    let source = |_| {
        Some(SocketAddr::from((
            [192, 0, 2, IP.load(Ordering::Relaxed)],
            0,
        )))
    };
    let _one = Node::start(setup(&network, 1, &[])).await;
    let mut two = Node::start(anywhere(&network, 2, &[1], source)).await;
    let first = two.wait_for(|it| announced(it).is_some()).await;
    assert_eq!(announced(&first), Some(&[at(2)][..]));
    IP.store(7, Ordering::Relaxed);
    let moved = SocketAddr::from(([192, 0, 2, 7], 2));
    let second = two.wait_for(|it| announced(it).is_some()).await;
    assert_eq!(announced(&second), Some(&[moved][..]));
}

/// Announcements have no scope, and each host numbers its interfaces by itself.
#[tokio::test(start_paused = true)]
async fn nodes_at_link_local_addresses_reach_each_other_on_their_link() {
    let network = Network::default();
    let on_link = |id: u64| -> SocketAddr { format!("[fe80::{id}%5]:7001").parse().unwrap() };
    let mut nodes = Vec::new();
    for id in 1..=3 {
        let seeds = (id > 1).then(|| on_link(1));
        let setup = Setup::new(NodeId(id), on_link(id))
            .seeds(seeds)
            .membership(config())
            .transport(network.clone());
        nodes.push(Node::start(setup).await);
    }
    until(|| nodes.iter().all(|it| it.live() == 3)).await;
    nodes.remove(0).kill().await;
    until(|| nodes.iter().all(|it| it.live() == 2)).await;
    sleep(Duration::from_secs(30)).await;
    for node in &mut nodes {
        let passed = node.passed();
        assert_eq!(passed.iter().filter(|it| is_failure(it)).count(), 1);
    }
    assert_eq!(address_of(&nodes[0], 3), Some(on_link(3)));
}
