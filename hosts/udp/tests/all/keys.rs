//! Keys that are replaced while nodes run.

use std::net::SocketAddr;

use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::{Error, Reject, Setup};

use crate::bench::{Node, is_failure, setup, until};

/// The key of this byte, 32 times.
fn ring(keys: &[u8]) -> Keyring {
    let lines: Vec<String> = keys.iter().map(|it| hex(*it)).collect();
    Keyring::parse(&lines.join("\n")).unwrap()
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}").repeat(32)
}

fn sealed(id: u64, seeds: &[SocketAddr], keys: &[u8]) -> Setup {
    setup(id, seeds).seal(Seal::new(ring(keys), "greenhouse"))
}

const OLD: u8 = 1;
const NEW: u8 = 2;

/// Waits until each node has received some more datagrams.
async fn talk(nodes: &[&Node]) {
    for node in nodes {
        let traffic = node.traffic();
        let before = traffic.report().received;
        until(|| traffic.report().received >= before + 5).await;
    }
}

#[tokio::test]
async fn a_mesh_changes_its_key_without_a_refused_datagram() {
    let mut one = Node::start(sealed(1, &[], &[OLD])).await;
    let mut two = Node::start(sealed(2, &[one.address()], &[OLD])).await;
    two.joins().await;
    one.meets(two.id()).await;
    for keys in [&[OLD, NEW][..], &[NEW, OLD], &[NEW]] {
        for node in [&one, &two] {
            node.set_keys(ring(keys)).await.unwrap();
            talk(&[&one, &two]).await;
        }
    }
    for node in [&mut one, &mut two] {
        assert_eq!(node.traffic().report().faulty(), 0);
        assert!(!node.passed().iter().any(is_failure));
    }
    let mut three = Node::start(sealed(3, &[one.address()], &[NEW])).await;
    three.joins().await;
    let _former = Node::start(sealed(4, &[one.address()], &[OLD])).await;
    let traffic = one.traffic();
    until(|| traffic.report().wrong_key > 2).await;
    assert!(one.members().iter().all(|it| it.member.id.0 != 4));
}

#[tokio::test]
async fn a_node_that_sends_in_the_clear_takes_no_keys() {
    let node = Node::start(setup(1, &[])).await;
    let refused = node.set_keys(Keyring::of(Key::random().unwrap())).await;
    assert_eq!(refused, Err(Error::Rejected(Reject::NotSealed)));
}
