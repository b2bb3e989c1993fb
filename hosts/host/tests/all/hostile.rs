//! A socket at which any datagram may come.

use selvedge_core::wire::{SEALED, VERSION};
use selvedge_core::{NodeId, Time};
use selvedge_host::{Host, Setup, Traffic};
use selvedge_seal::{Epoch, Key, Keyring, Opener, RateLimit, Seal, Sealer};
use tokio::time::timeout;

use crate::toy::{
    Command, Message, PATIENCE, Toy, asynchronous, frame, me, next, received, socket, total,
    with_peer,
};

const KIND: u8 = 222;

/// The counters, without the valid traffic.
fn faults(traffic: Traffic) -> Traffic {
    Traffic {
        sent: 0,
        sent_bytes: 0,
        received: 0,
        received_bytes: 0,
        longest: 0,
        ..traffic
    }
}

#[tokio::test]
async fn each_kind_of_wrong_datagram_is_counted_once_and_the_peer_is_served() {
    let (node, peer) = with_peer().await;
    let stranger = asynchronous(socket().0);
    let good = frame(me(2), &Message::Added(5));
    let from_peer = [
        vec![],
        vec![VERSION],
        vec![VERSION, KIND],
        [&good[..], &[0]].concat(),
        good[..good.len() - 1].to_vec(),
        vec![VERSION + 1, KIND, 0],
        vec![VERSION, KIND - 1, 0],
        vec![SEALED, KIND, 0],
        vec![0; 1_401],
        // A list that claims to be longer than any memory.
        vec![VERSION, KIND, 2, 0, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
        // In the name of the node itself, and of a node that is no peer.
        frame(me(1), &Message::Added(5)),
        frame(me(3), &Message::Added(5)),
        // A frame that the machine refuses.
        frame(me(2), &Message::Added(0)),
    ];
    for datagram in &from_peer {
        peer.send_to(datagram, node.address()).await.unwrap();
    }
    // In the name of the peer, from another address.
    stranger.send_to(&good, node.address()).await.unwrap();
    received(&node, 14).await;
    peer.send_to(&good, node.address()).await.unwrap();
    assert_eq!(next(&peer).await, (me(1), Message::Thanks(5)));
    assert_eq!(*node.snapshot(), 5);
    let counted = Traffic {
        malformed: 6,
        wrong_version: 1,
        wrong_kind: 1,
        sealed: 1,
        oversize: 1,
        wrong_sender: 1,
        unknown_sender: 2,
        refused: 1,
        ..Traffic::default()
    };
    assert_eq!(faults(node.traffic()), counted);
}

/// An answer would come back to the node.
#[tokio::test]
async fn a_datagram_with_the_nodes_own_address_is_dropped() {
    let (own, address) = socket();
    let mirror = asynchronous(own.try_clone().unwrap());
    let setup = Setup::bound(me(1), own)
        .learn_addresses(1)
        .view(|toy: &Toy| toy.total);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let forged = frame(me(5), &Message::Added(5));
    mirror.send_to(&forged, address).await.unwrap();
    received(&node, 1).await;
    let counted = Traffic {
        wrong_sender: 1,
        ..Traffic::default()
    };
    assert_eq!(faults(node.traffic()), counted);
    assert_eq!(node.traffic().sent, 0);
}

#[tokio::test]
async fn sealed_forgeries_replays_and_floods_are_counted() {
    let keyring = Keyring::of(Key::random().unwrap());
    let (own, peer) = (socket(), socket());
    let rate = RateLimit {
        burst: 3,
        per_second: 0,
    };
    let setup = Setup::bound(me(1), own.0)
        .peers([(NodeId(2), peer.1)])
        .seal(Seal::new(keyring.clone(), "toys").with_rate(rate))
        .view(|toy: &Toy| toy.total);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let (peer, elsewhere) = (asynchronous(peer.0), asynchronous(socket().0));
    let mut sealer = Sealer::new(&keyring, "toys", NodeId(2), Epoch::now().unwrap());
    let mut seal = |frame: &[u8]| {
        let mut datagram = Vec::new();
        sealer.seal(KIND, frame, &mut datagram).unwrap();
        datagram
    };
    let good = seal(&frame(me(2), &Message::Added(5)));
    let mut changed = good.clone();
    *changed.last_mut().unwrap() ^= 1;
    let other_kind = [&[SEALED, KIND - 1], &good[2..]].concat();
    let datagrams = [
        changed,
        good.clone(),
        // Again.
        good,
        other_kind,
        vec![SEALED],
        frame(me(2), &Message::Added(5)),
        vec![SEALED; 1_401],
        // A key proves who sent it, and this one is not node 3.
        seal(&frame(me(3), &Message::Added(5))),
        seal(&[VERSION, KIND]),
        // Above the rate.
        seal(&frame(me(2), &Message::Added(5))),
    ];
    for datagram in &datagrams {
        // From another address than the one listed, which is well where a key proves the sender.
        elsewhere.send_to(datagram, node.address()).await.unwrap();
    }
    received(&node, 10).await;
    total(&node, 5).await;
    let counted = Traffic {
        wrong_key: 1,
        replayed: 1,
        wrong_kind: 1,
        unsealed: 2,
        oversize: 1,
        wrong_sender: 1,
        malformed: 1,
        above_rate: 1,
        ..Traffic::default()
    };
    assert_eq!(faults(node.traffic()), counted);
    // The answer went to the address that is listed.
    let mut buffer = [0; 2_000];
    let answer = timeout(PATIENCE, peer.recv_from(&mut buffer)).await;
    let (len, _) = answer.unwrap().unwrap();
    let mut opener = Opener::new(keyring, "toys".to_owned(), 1);
    let mut opened = Vec::new();
    let sender = opener.open(KIND, &buffer[..len], Time::ZERO, &mut opened);
    assert_eq!(sender, Ok(NodeId(1)));
    assert_eq!(opened, frame(me(1), &Message::Thanks(5)));
}

/// Thousands of datagrams of noise: the host answers commands meanwhile, and remembers no sender.
#[tokio::test]
async fn noise_is_counted_and_commands_are_served() {
    let (node, _peer) = with_peer().await;
    let stranger = asynchronous(socket().0);
    let mut noise = 0x9E37_79B9_u64;
    for number in 1..=2_000_u64 {
        noise = noise.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        let mut bytes = noise.to_le_bytes().repeat(4);
        if number % 2 == 0 {
            bytes[..2].copy_from_slice(&[VERSION, KIND]);
        }
        stranger.send_to(&bytes, node.address()).await.unwrap();
        if number % 100 == 0 {
            node.submit(Command::Add(1)).await.unwrap();
        }
    }
    assert_eq!(*node.snapshot(), 20);
    let traffic = node.traffic();
    assert!(traffic.received > 1_000, "{traffic:?}");
    let dropped = traffic.malformed
        + traffic.wrong_version
        + traffic.wrong_kind
        + traffic.sealed
        + traffic.wrong_sender
        + traffic.unknown_sender;
    assert_eq!(dropped, traffic.received, "{traffic:?}");
}
