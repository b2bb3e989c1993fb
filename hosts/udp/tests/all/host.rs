//! A host and the datagrams that no host should get.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use selvedge::frame::encode;
use selvedge_core::wire::VERSION;
use selvedge_core::{Delta, Member, NodeId};
use selvedge_membership::{Body, Config, Event, KIND, Message};
use selvedge_udp::{Host, HostError, MAX_NODE_ID, NodeEvent, Seed, Setup, address};
use tokio::net::UdpSocket;

use crate::bench::{Node, config, is_failure, setup, until};

fn listening(id: u64, seeds: &[SocketAddr], listen: SocketAddr) -> Setup {
    Setup::new(NodeId(id), listen)
        .seeds(seeds.iter().copied())
        .membership(config())
        .random_seed(id)
}

async fn refused(setup: Setup) -> HostError {
    Host::start(setup).await.unwrap_err()
}

#[tokio::test]
async fn bad_datagrams_are_counted_and_the_node_goes_on() {
    let host = Node::start(setup(1, &[])).await;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let budget = Config::default().frame_budget.into();
    let mut ours = Vec::new();
    let join = Message::bare(Body::Join);
    encode(Member::new(1, 9), &join, budget, &mut ours).unwrap();

    let datagrams: [&[u8]; 7] = [
        &[],
        &[VERSION + 1, KIND, 0],
        &[VERSION, KIND + 1, 0],
        &[VERSION, KIND, 0xFF, 0xFF, 0xFF],
        &ours[..ours.len() - 1],
        &vec![0; budget + 1],
        &ours,
    ];
    for datagram in datagrams {
        stranger.send_to(datagram, host.address()).await.unwrap();
    }
    let traffic = host.traffic();
    until(|| traffic.report().received == datagrams.len() as u64).await;
    let report = traffic.report();
    assert_eq!(report.malformed, 3);
    assert_eq!(
        (report.wrong_version, report.wrong_kind, report.oversize),
        (1, 1, 1)
    );
    // A frame with this node's own id: another node's, or its own come back.
    assert_eq!((report.refused, report.faulty()), (1, 7));

    let mut other = Node::start(setup(2, &[host.address()])).await;
    other.meets(host.id()).await;
    let known = other.members();
    let first = known.iter().find(|known| known.member.id == host.id());
    assert_eq!(first.unwrap().address, Some(host.address()));
}

#[tokio::test]
async fn a_node_behind_a_wildcard_address_is_reached_where_its_datagrams_come_from() {
    let host = Node::start(setup(1, &[])).await;
    let anywhere = "0.0.0.0:0".parse().unwrap();
    let mut other = Node::start(listening(2, &[host.address()], anywhere)).await;
    other.meets(host.id()).await;
    let seen_at = SocketAddr::from(([127, 0, 0, 1], other.address().port()));
    let known = host.members();
    let second = known.iter().find(|known| known.member.id == other.id());
    assert_eq!(second.unwrap().address, Some(seen_at));
}

#[tokio::test]
async fn a_killed_node_frees_its_port_and_a_departed_one_is_heard_to_leave() {
    let mut host = Node::start(setup(1, &[])).await;
    let killed = Node::start(setup(2, &[host.address()])).await;
    let address = killed.address();
    killed.kill().await;
    let mut other = Node::start(listening(3, &[host.address()], address)).await;
    other.joins().await;
    other.leave().await.unwrap();
    host.wait_for(
        |it| matches!(it, NodeEvent::Membership(Event::Changed(Delta::Left(it))) if it.id.0 == 3),
    )
    .await;
}

/// Membership keeps 16 seeds; the host asks more of them in turn.
#[tokio::test]
async fn a_node_joins_through_the_last_of_many_seeds() {
    let silent = [(); 40].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let alive = Node::start(setup(1, &[])).await;
    let mut seeds: Vec<_> = silent.iter().map(|it| it.local_addr().unwrap()).collect();
    seeds.push(alive.address());
    let mut other = Node::start(setup(2, &seeds)).await;
    other.joins().await;
    other.meets(alive.id()).await;
}

/// A seed becomes a member, and then it need not be probed as a seed. When it fails it is probed
/// again, and the node at its address then is found.
#[tokio::test]
async fn a_seed_that_is_a_member_is_spared_until_it_is_gone() {
    let seed = Node::start(setup(1, &[])).await;
    let mut other = Node::start(setup(2, &[seed.address()])).await;
    let traffic = other.traffic();
    until(|| traffic.report().spared >= 2).await;
    let address = seed.address();
    seed.kill().await;
    other.wait_for(is_failure).await;
    let (spared, sent) = (traffic.report().spared, traffic.report().sent);
    until(|| traffic.report().sent > sent).await;
    assert_eq!(traffic.report().spared, spared);
    let heir = Node::start(listening(3, &[], address)).await;
    other.meets(heir.id()).await;
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_the_start() {
    let reserved = refused(setup(MAX_NODE_ID.0 + 1, &[])).await;
    assert!(matches!(reserved, HostError::Id { .. }));
    let nowhere = "0.0.0.0:7001".parse().unwrap();
    let advertise = refused(setup(1, &[]).advertise([nowhere])).await;
    assert!(matches!(advertise, HostError::Advertise { .. }));
    let one = "127.0.0.1:7001".parse().unwrap();
    let many = refused(setup(1, &[]).advertise([one; address::LIMIT + 1])).await;
    assert!(matches!(many, HostError::TooManyAddresses { .. }));
    let v6 = refused(setup(1, &["[::1]:7001".parse().unwrap()])).await;
    assert!(matches!(v6, HostError::Family { .. }));
    let slow = config().with_probe_timeout(config().period);
    let settings = refused(setup(1, &[]).membership(slow)).await;
    assert!(matches!(settings, HostError::Config(_)));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let listen = refused(listening(1, &[], taken.local_addr().unwrap())).await;
    assert!(matches!(listen, HostError::Listen { .. }));
}

/// No node listens at an address of many, is reached there, or is asked there.
#[tokio::test]
async fn addresses_of_many_hosts_are_refused() {
    for (many, any) in [
        ("224.0.0.1:7001", "127.0.0.1:0"),
        ("255.255.255.255:7001", "127.0.0.1:0"),
        ("[ff02::1]:7001", "[::1]:0"),
        ("[::ffff:224.0.0.1]:7001", "[::1]:0"),
    ] {
        let many: SocketAddr = many.parse().unwrap();
        let any = any.parse().unwrap();
        let listens = refused(listening(1, &[], many)).await;
        assert!(
            matches!(listens, HostError::ListenToMany { .. }),
            "{listens:?}"
        );
        let advertised = ["10.1.2.3:7001".parse().unwrap(), many];
        let advertises = refused(listening(1, &[], any).advertise(advertised)).await;
        assert!(
            matches!(advertises, HostError::Advertise { .. }),
            "{advertises:?}"
        );
        let joins = refused(listening(1, &[many], any)).await;
        assert!(matches!(joins, HostError::Seed { .. }), "{joins:?}");
    }
    let nowhere = "0.0.0.0:7001".parse().unwrap();
    let joins = refused(setup(1, &[nowhere])).await;
    assert!(matches!(joins, HostError::Seed { .. }), "{joins:?}");
}

/// A socket that is not read, and its address.
async fn silence() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[tokio::test]
async fn a_seed_that_does_not_answer_is_looked_up_again() {
    let host = Node::start(setup(1, &[])).await;
    let (_silent, former) = silence().await;
    let now = host.address();
    // Its name has two addresses by now, and one of them is of many nodes.
    let seed = Seed::found_by("seed", vec![former], move || async move {
        Ok(vec!["224.0.0.1:1".parse().unwrap(), now])
    });
    let mut other = Node::start(setup(2, &[]).seeds([seed])).await;
    other.joins().await;
    assert_eq!(other.traffic().report().lookups, 1);
    // It is a member now and answers.
    let traffic = other.traffic();
    until(|| traffic.report().spared >= 2).await;
    assert_eq!(traffic.report().lookups, 1);
}

#[tokio::test]
async fn a_seed_with_several_addresses_is_asked_at_each() {
    let host = Node::start(setup(1, &[])).await;
    let ((_one, first), (_other, second)) = (silence().await, silence().await);
    let addresses = vec![first, second, host.address()];
    // No lookup helps.
    let never = core::future::pending;
    let seed = Seed::found_by("seed", addresses, never);
    let mut other = Node::start(setup(2, &[]).seeds([seed])).await;
    other.joins().await;
}

/// A node at `[::]` has neighbours of both families, and they are known by plain addresses.
#[tokio::test]
async fn a_node_at_any_address_speaks_to_both_families() {
    if UdpSocket::bind("[::1]:0").await.is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let v4 = Node::start(setup(1, &[])).await;
    let any = "[::]:0".parse().unwrap();
    let mut both = Node::start(listening(2, &[v4.address()], any)).await;
    both.joins().await;
    let port = both.address().port();
    let seed = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    let mut v6 = Node::start(listening(3, &[seed], "[::1]:0".parse().unwrap())).await;
    v6.joins().await;
    both.meets(v6.id()).await;
    let known = both.members();
    for host in [&v4, &v6] {
        let line = known.iter().find(|known| known.member.id == host.id());
        assert_eq!(line.unwrap().address, Some(host.address()));
    }
    let known = v4.members();
    let line = known.iter().find(|known| known.member.id == both.id());
    let seen_at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    assert_eq!(line.unwrap().address, Some(seen_at));
}

/// It announces two addresses, and the first one leads nowhere.
#[tokio::test]
async fn a_node_with_several_addresses_is_reached_at_one_that_works() {
    let mut host = Node::start(setup(1, &[])).await;
    let (_silent, nowhere) = silence().await;
    let (free, listen) = silence().await;
    drop(free);
    let several = listening(2, &[host.address()], listen).advertise([nowhere, listen]);
    let mut several = Node::start(several).await;
    let mut third = Node::start(setup(3, &[host.address()])).await;
    third.meets(several.id()).await;
    // Longer than it takes to declare a node failed.
    let (sent, seconds) = (third.traffic().report().sent, Duration::from_secs(4));
    tokio::time::sleep(seconds).await;
    assert!(third.traffic().report().sent > sent);
    for node in [&mut host, &mut several, &mut third] {
        let passed = node.passed();
        assert!(!passed.iter().any(is_failure), "{passed:?}");
    }
    for other in [&host, &third] {
        let known = other.members();
        let line = known.iter().find(|known| known.member.id == several.id());
        assert_eq!(line.unwrap().address, Some(listen));
    }
}
