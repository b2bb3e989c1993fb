//! The start of a node: its addresses and its seeds, in a network in memory.

use core::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use selvedge_core::NodeId;
use selvedge_udp::transport::Udp;
use selvedge_udp::{Host, HostError, MAX_NODE_ID, Seed, Setup, address};
use tokio::time::sleep;

use crate::bench::{self, Node, config, until};
use crate::datagrams::setup;
use crate::network::{Network, at};

const MANY: &str = "224.0.0.1:7001";
const V6: &str = "[2001:db8::1]:7001";

fn parse(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

fn seeded(network: &Network, id: u16, seed: Seed) -> Setup {
    setup(network, id, &[]).seeds([seed])
}

/// All that is allowed works: the largest id, and as many addresses as are announced at most.
#[tokio::test(start_paused = true)]
async fn a_node_starts_with_the_largest_id_and_the_most_addresses() {
    let network = Network::default();
    let most: Vec<_> = (1..).take(address::LIMIT).map(at).collect();
    let setup = Setup::new(MAX_NODE_ID, at(1)).transport(network.clone());
    let node = Node::start(setup.advertise(most)).await;
    until(|| node.state().is_in).await;
    assert_eq!(node.id(), MAX_NODE_ID);
}

/// The advertised address replaces the one at which it listens: there is room for only one.
#[tokio::test(start_paused = true)]
async fn a_node_announces_what_it_advertises_and_else_where_it_listens() {
    let network = Network::default();
    // The length of two addresses.
    let config = config().with_metadata_limit(13);
    let one = Node::start(setup(&network, 1, &[]).membership(config.clone())).await;
    let advertises = setup(&network, 2, &[1]).membership(config);
    let _two = Node::start(advertises.advertise([at(7), at(8)])).await;
    until(|| one.live() == 2).await;
    let list = one.members();
    let of = |id| list.iter().find(|it| it.member.id == NodeId(id)).unwrap();
    assert_eq!(of(2).address, Some(at(7)));
}

/// A socket for IPv4 cannot send to such an address as it is written.
#[tokio::test]
async fn a_seed_of_ipv4_may_be_written_as_an_address_of_ipv6() {
    let one = Node::start(bench::setup(1, &[])).await;
    let ip = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    let mapped = SocketAddr::from((ip, one.address().port()));
    let later = Seed::found_by("one:7001", Vec::new(), move || ready(Ok(vec![mapped])));
    for (id, seed) in [(2, Seed::from(mapped)), (3, later)] {
        let node = Node::start(bench::setup(id, &[]).seeds([seed])).await;
        until(|| node.state().is_in).await;
    }
}

/// A node that is its own seed begins a mesh, under any of its addresses.
#[tokio::test(start_paused = true)]
async fn the_addresses_of_a_node_itself_are_no_seeds() {
    let network = Network::default();
    let node = setup(&network, 1, &[1, 7]).advertise([at(7)]);
    let node = Node::start(node).await;
    until(|| node.state().is_in).await;
    sleep(Duration::from_secs(10)).await;
    let report = node.traffic().report();
    assert_eq!((report.sent, report.received), (0, 0));
}

/// A repeated lookup may give any address: addresses of many nodes, addresses that the socket does
/// not reach, and the node's own are ignored.
#[tokio::test(start_paused = true)]
async fn only_addresses_of_another_node_are_taken_from_a_lookup() {
    let network = Network::default();
    let _former = network.open(at(8));
    let mut nowhere = [parse(MANY), parse(V6)].map(|it| network.open(it));
    let host = Node::start(setup(&network, 1, &[])).await;
    let found = vec![parse(MANY), parse(V6), at(2), at(1)];
    let seed = Seed::found_by("seed", vec![at(8)], move || {
        core::future::ready(Ok(found.clone()))
    });
    let two = Node::start(seeded(&network, 2, seed)).await;
    until(|| two.live() == 2).await;
    assert_eq!(host.live(), 2);
    for socket in &mut nowhere {
        assert_eq!(socket.heard(), []);
    }
    // None came back to itself.
    assert_eq!(two.traffic().report().faulty(), 0);
}

/// The same where that leaves none of them: the seed stays where it was.
#[tokio::test(start_paused = true)]
async fn a_lookup_that_finds_no_other_node_changes_nothing() {
    let network = Network::default();
    let mut former = network.open(at(8));
    let mut nowhere = [parse(MANY), parse(V6)].map(|it| network.open(it));
    for (id, found) in [(2, parse(MANY)), (3, parse(V6)), (4, at(4))] {
        let seed = Seed::found_by("seed", vec![at(8)], move || {
            core::future::ready(Ok(vec![found]))
        });
        let node = Node::start(seeded(&network, id, seed)).await;
        until(|| node.traffic().lookups.get() > 1).await;
        former.heard();
        sleep(Duration::from_secs(5)).await;
        assert!(!former.heard().is_empty(), "{found}");
        assert_eq!(node.traffic().report().received, 0, "{found}");
    }
    for socket in &mut nowhere {
        assert_eq!(socket.heard(), []);
    }
}

/// An error names the seed as the application does.
#[tokio::test(start_paused = true)]
async fn a_seed_is_named_in_errors_and_in_debug_output() {
    let network = Network::default();
    let find = |address| {
        Seed::found_by(
            "mesh.example:7001",
            vec![parse(address)],
            core::future::pending,
        )
    };
    let many = Host::start(seeded(&network, 1, find(MANY))).await;
    let many = many.unwrap_err();
    assert!(
        matches!(&many, HostError::Seed { name, address } if name == "mesh.example:7001" && *address == parse(MANY)),
        "{many:?}"
    );
    let v6 = Host::start(seeded(&network, 1, find(V6)))
        .await
        .unwrap_err();
    assert!(
        matches!(&v6, HostError::Family { name, listen } if name == "mesh.example:7001" && *listen == at(1)),
        "{v6:?}"
    );
    let shown = format!("{:?}", find(V6));
    assert!(
        shown.contains("mesh.example:7001") && shown.contains(V6),
        "{shown}"
    );
}

/// The node uses the socket that is given, wherever it is asked to listen.
#[tokio::test]
async fn a_socket_that_is_bound_already_is_used() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let bound = socket.local_addr().unwrap();
    let node = Node::start(bench::setup(1, &[]).transport(Udp::bound(socket))).await;
    assert_eq!(node.address(), bound);
}
