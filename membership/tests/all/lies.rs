//! The effects of one liar among the members, and their limits: each lie is one datagram.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::ring;

use core::cell::Cell;

use ring::{Ring, plain};
use selvedge_core::wire::frame_len;
use selvedge_core::{Driver, Incarnation, Input, Member, NodeId};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, Digest, Key, Membership, Message, Metadata, Record, Status,
};

const NODES: u64 = 24;
const LIAR: Member = Member::new(NODES - 1, 7);
/// The number of claims about others that one sender may make in a period, by default.
const ALLOWANCE: usize = 8;

/// Members that trusted each other until now.
fn mesh(nodes: u64, config: &Config) -> Ring {
    let trusting = config.clone().with_hearsay_limit(0);
    let mut ring = Ring::joined(nodes, &trusting);
    for node in 0..ring.nodes.len() {
        let config = Box::new(config.clone());
        ring.command(node, Command::SetConfig(config)).unwrap();
    }
    ring
}

fn settings() -> Config {
    plain()
        .with_sync_after(4)
        .with_reconnect_every(5)
        .with_hearsay_limit(ALLOWANCE as u16)
}

fn record(id: u64, incarnation: u32, revision: u32, claim: Claim) -> Record {
    let member = Member::new(id, incarnation);
    Record {
        member,
        revision,
        claim,
    }
}

fn alive() -> Claim {
    Claim::Alive(Metadata::default())
}

fn address(text: &str) -> Claim {
    Claim::Alive(Metadata(text.as_bytes().into()))
}

/// Sends one datagram with these records from the liar to a node.
fn lie(ring: &mut Ring, to: usize, records: impl IntoIterator<Item = Record>) {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.extend(records);
    let len = frame_len(LIAR, &message);
    assert!(len <= 700, "{len} bytes");
    let input = Input::Message {
        from: LIAR,
        message,
    };
    ring.step(to, input).unwrap();
}

/// The number of bytes that are sent in `periods` periods.
fn bytes_in(ring: &mut Ring, periods: u64) -> usize {
    let sent = Cell::new(0);
    ring.periods(periods, |from, _, message| {
        sent.set(sent.get() + frame_len(from, message));
        true
    });
    sent.get()
}

/// Checks that all nodes list all nodes in their present lives, and no other life as live.
fn agree(ring: &Ring) {
    let truth: Vec<Member> = ring.nodes.iter().map(|node| node.machine().me()).collect();
    for node in &ring.nodes {
        let mut listed: Vec<Member> = node
            .machine()
            .members()
            .filter(|view| view.status == Status::Alive)
            .map(|view| view.member)
            .collect();
        listed.sort_unstable();
        assert_eq!(listed, truth, "at {:?}", node.machine().me());
    }
}

fn lives_begun(ring: &Ring) -> u64 {
    let changes = |node: &Driver<Membership>| node.machine().counters().identity_changes;
    ring.nodes.iter().map(changes).sum()
}

fn others() -> core::ops::Range<u64> {
    1..NODES - 1
}

#[test]
fn that_all_have_left_is_believed_of_two() {
    let mut ring = mesh(NODES, &settings());
    let calm = bytes_in(&mut mesh(NODES, &settings()), 30);
    let left = || others().map(|id| record(id, 7, 0, Claim::Left(Age::default())));
    lie(&mut ring, 0, left());
    assert_eq!(ring.nodes[0].machine().live(), NODES as usize - 2);
    let sent = bytes_in(&mut ring, 30);
    agree(&ring);
    assert_eq!(lives_begun(&ring), 2);
    println!("{sent} bytes in 30 periods, {calm} without the lie");
    assert!(sent < calm + 40_000, "{sent} bytes, {calm} without the lie");
    // Repeated: as many in each period, and no more for repetitions in one.
    for _ in 0..10 {
        for _ in 0..50 {
            lie(&mut ring, 0, left());
        }
        ring.periods(1, |_, _, _| true);
    }
    ring.periods(30, |_, _, _| true);
    agree(&ring);
    assert!(lives_begun(&ring) <= 2 + 10 * 2, "{}", lives_begun(&ring));
}

/// As after a partition. It is final, so each of these that lives needs another life.
#[test]
fn that_the_failed_have_left_is_believed_of_few() {
    let mut ring = mesh(NODES, &settings());
    let configure = |ring: &mut Ring, hearsay_limit| {
        let config = settings().with_hearsay_limit(hearsay_limit);
        let command = Command::SetConfig(Box::new(config));
        ring.command(0, command).unwrap();
    };
    configure(&mut ring, 0);
    let failed = || Claim::Failed(Metadata::default(), Age::default());
    lie(&mut ring, 0, others().map(|id| record(id, 7, 0, failed())));
    configure(&mut ring, ALLOWANCE as u16);
    assert_eq!(ring.nodes[0].machine().live(), 2);
    for _ in 0..10 {
        let left = others().map(|id| record(id, 7, 0, Claim::Left(Age::default())));
        lie(&mut ring, 0, left);
    }
    let left = ring.nodes[0].machine().members();
    let left = left.filter(|view| view.status == Status::Left).count();
    assert_eq!(left, ALLOWANCE);
    ring.periods(30, |_, _, _| true);
    agree(&ring);
    assert_eq!(lives_begun(&ring), ALLOWANCE as u64);
}

#[test]
fn that_all_are_in_a_later_life_is_asked_and_refused() {
    let mut ring = mesh(NODES, &settings());
    lie(&mut ring, 0, others().map(|id| record(id, 8, 0, alive())));
    ring.periods(30, |_, _, _| true);
    assert_eq!(lives_begun(&ring), 0);
    agree(&ring);
}

#[test]
fn a_life_half_the_circle_ahead_does_not_keep_lists_apart() {
    let far = 7_u32.wrapping_add((1 << 31) - 1);
    let mut ring = mesh(NODES, &settings());
    lie(&mut ring, 0, others().map(|id| record(id, far, 0, alive())));
    ring.periods(30, |_, _, _| true);
    agree(&ring);
    assert_eq!(lives_begun(&ring), 0);
    // When the lie goes to the member itself, it moves a quarter of the circle at most: all can
    // follow.
    lie(&mut ring, 5, [record(5, far, 0, alive())]);
    assert_eq!(
        ring.nodes[5].machine().me().incarnation,
        Incarnation(7 + (1 << 30))
    );
    // And once a period.
    lie(&mut ring, 5, [record(5, far, 0, alive())]);
    ring.periods(30, |_, _, _| true);
    agree(&ring);
    assert_eq!(lives_begun(&ring), 1);
}

#[test]
fn a_revision_far_ahead_does_not_keep_lists_apart() {
    for claim in [
        alive(),
        Claim::Suspect(Metadata::default()),
        Claim::Failed(Metadata::default(), Age::default()),
    ] {
        let mut ring = mesh(NODES, &settings());
        let far = (1 << 31) - 1;
        lie(
            &mut ring,
            0,
            others().map(|id| record(id, 7, far, claim.clone())),
        );
        lie(&mut ring, 5, [record(5, 7, far, claim.clone())]);
        ring.periods(60, |_, _, _| true);
        agree(&ring);
        assert_eq!(lives_begun(&ring), 1, "of the member that got the lie");
    }
}

#[test]
fn few_of_those_that_are_invented_are_believed() {
    let mut ring = mesh(NODES, &settings());
    let calm = bytes_in(&mut mesh(NODES, &settings()), 60);
    lie(
        &mut ring,
        0,
        (1_000..1_098).map(|id| record(id, 0, 0, alive())),
    );
    let sent = bytes_in(&mut ring, 60);
    for node in &ring.nodes {
        let known = node.machine().members().count();
        assert!(known <= NODES as usize + ALLOWANCE, "{known}");
    }
    println!("{sent} bytes in 60 periods, {calm} without the lie");
    let refused = ring.nodes[0].machine().counters().hearsay_refused;
    assert_eq!(refused, 98 - ALLOWANCE as u64);
    agree(&ring);
}

/// A refused claim may be true: then other lists have it.
#[test]
fn who_refused_something_compares_lists_at_the_next_probe() {
    let mut ring = mesh(4, &settings());
    let ping = || {
        let digest = Digest([9, 9]);
        let origin = None;
        let message = Message::bare(Body::Ping { digest, origin });
        let from = Member::new(1, 7);
        Input::Message { from, message }
    };
    let compares = |ring: &mut Ring| {
        ring.wire.clear();
        ring.step(0, ping()).unwrap();
        let mut sent = ring.wire.iter();
        sent.any(|(_, _, message)| matches!(message.body, Body::Digests { .. }))
    };
    assert!(!compares(&mut ring));
    lie(
        &mut ring,
        0,
        (1_000..1_008).map(|id| record(id, 0, 0, alive())),
    );
    assert!(!compares(&mut ring));
    lie(&mut ring, 0, [record(1_008, 0, 0, alive())]);
    assert!(compares(&mut ring));
}

#[test]
fn wrong_addresses_are_put_right_by_their_owners() {
    // In the revision of the owner's last record, and in the next.
    for revision in [1, 2] {
        let mut ring = mesh(NODES, &settings());
        for node in 0..NODES {
            let metadata = Metadata(format!("n{node}").into_bytes().into());
            ring.command(node as usize, Command::SetMetadata(metadata))
                .unwrap();
        }
        ring.periods(40, |_, _, _| true);
        // Of two claims in one revision the larger one wins.
        lie(
            &mut ring,
            0,
            others().map(|id| record(id, 7, revision, address("zzz"))),
        );
        let wrong = ring.nodes[0].machine().members();
        let wrong = wrong.filter(|view| view.metadata == b"zzz").count();
        assert_eq!(wrong, ALLOWANCE);
        ring.periods(40, |_, _, _| true);
        agree(&ring);
        for node in &ring.nodes {
            for view in node.machine().members() {
                let expected = format!("n{}", view.member.id);
                assert_eq!(
                    view.metadata,
                    expected.as_bytes(),
                    "at {:?}",
                    node.machine().me()
                );
            }
        }
    }
}

#[test]
fn the_list_is_read_by_those_that_are_on_it() {
    let mut ring = mesh(4, &settings());
    let ask = |ring: &mut Ring, from, body| {
        ring.wire.clear();
        let message = Message::bare(body);
        ring.step(0, Input::Message { from, message }).unwrap();
        let pages = ring.wire.iter().filter(|(_, to, message)| {
            *to == from.id && matches!(message.body, Body::Records { .. })
        });
        pages.count()
    };
    let (first, last) = (Key(0), Key(u64::MAX));
    let requests = [
        Body::Pull { first, last },
        Body::Digests {
            buckets: [Digest([9, 9]); 32],
        },
        Body::Records {
            first,
            last,
            next: None,
            exchange: true,
        },
    ];
    let (stranger, member) = (Member::new(99, 0), Member::new(3, 7));
    for body in requests {
        assert_eq!(ask(&mut ring, stranger, body), 0, "{body:?}");
        assert!(ask(&mut ring, member, body) > 0, "{body:?}");
    }
    assert_eq!(ring.nodes[0].machine().counters().readers_refused, 3);
}

/// A node that counted its lives takes the seconds of a clock from now on, or its milliseconds.
#[test]
fn a_restart_far_ahead_is_believed_of_the_member_itself() {
    for incarnation in [1_763_000_000, 7 + (1 << 31) - 1, 8] {
        let mut ring = mesh(NODES, &settings());
        let life = Member::new(3, incarnation);
        ring.nodes[3] = Driver::new(Membership::new(life, settings()).unwrap());
        let seeds = vec![NodeId(9)];
        ring.command(3, Command::Join { seeds }).unwrap();
        ring.periods(10, |_, _, _| true);
        agree(&ring);
        assert_eq!(ring.nodes[3].machine().me(), life);
    }
}

#[test]
fn a_newcomer_learns_a_long_list_from_its_seed_at_once() {
    let mut ring = mesh(120, &settings());
    let newcomer = Membership::new(Member::new(120, 7), settings()).unwrap();
    ring.nodes.push(Driver::new(newcomer));
    let seeds = vec![NodeId(0)];
    ring.command(120, Command::Join { seeds }).unwrap();
    ring.settle(|_, _, _| true);
    assert_eq!(ring.nodes[120].machine().live(), 121);
}

/// Halves that have forgotten each other: all of the other half is news.
#[test]
fn halves_that_forgot_each_other_become_one_list() {
    let config = settings().with_tombstone_periods(40);
    let mut ring = mesh(200, &config);
    let cut = |from: Member, to: NodeId, _: &Message| (from.id.0 < 100) == (to.0 < 100);
    ring.periods(100, cut);
    for node in &ring.nodes {
        assert_eq!(node.machine().members().count(), 100);
    }
    // The others have node 0 as their seed.
    let mut periods = 0;
    while ring.nodes.iter().any(|node| node.machine().live() < 200) {
        ring.periods(1, |_, _, _| true);
        periods += 1;
        assert!(
            periods <= 60,
            "a hundred changes take longer than 60 periods"
        );
    }
    println!("one list after {periods} periods");
    agree(&ring);
}

/// Halves that take each other for failed: all of the other half comes back.
#[test]
fn halves_that_lost_each_other_become_one_list() {
    let mut ring = mesh(200, &settings());
    let cut = |from: Member, to: NodeId, _: &Message| (from.id.0 < 100) == (to.0 < 100);
    ring.periods(60, cut);
    for node in &ring.nodes {
        let machine = node.machine();
        assert_eq!((machine.live(), machine.members().count()), (100, 200));
    }
    let mut periods = 0;
    while ring.nodes.iter().any(|node| node.machine().live() < 200) {
        ring.periods(1, |_, _, _| true);
        periods += 1;
        assert!(
            periods <= 12,
            "a hundred that come back take longer than 12 periods"
        );
    }
    println!("one list after {periods} periods");
    agree(&ring);
}

/// Nodes that join later learn of the others from the first node's list, the first ones by hearsay.
#[test]
fn many_that_join_at_once_are_soon_on_all_lists() {
    let mut ring = Ring::new(150, &settings());
    ring.command(0, Command::Join { seeds: vec![] }).unwrap();
    for node in 1..150 {
        let seeds = vec![NodeId(0)];
        ring.command(node, Command::Join { seeds }).unwrap();
    }
    ring.settle(|_, _, _| true);
    let mut periods = 0;
    while ring.nodes.iter().any(|node| node.machine().live() < 150) {
        ring.periods(1, |_, _, _| true);
        periods += 1;
        assert!(
            periods <= 30,
            "150 that join at once take longer than 30 periods"
        );
    }
    println!("one list after {periods} periods");
}
