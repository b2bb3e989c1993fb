//! Tags: set at the start and later, on all lists, under loss and other orders, and bytes that are none.

use core::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge::frame;
use selvedge_core::{Choose, Incarnation, Member, Ratio, Span};
use selvedge_membership::{Age, Body, Claim, Command, Message, Metadata, Record};
use selvedge_udp::discovery::Announcement;
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::{Error, Host, HostError, MemberInfo, NodeEvent, Reject, Tags};
use tokio::time::sleep;

use crate::bench::{self, Node, until};
use crate::datagrams::setup;
use crate::network::{Network, Quirk, Socket, at};

fn role(role: &str) -> Tags {
    Tags::from([("role", role)])
}

/// A node's entry on the list of another one.
fn entry(node: &Node, of: u64) -> Option<MemberInfo> {
    let members = node.members();
    members.iter().find(|it| it.member.id.0 == of).cloned()
}

fn tags(node: &Node, of: u64) -> Option<Tags> {
    entry(node, of).map(|it| it.tags)
}

/// The tags of the next event about a node.
async fn next(node: &mut Node, of: u64) -> Tags {
    let is_wanted =
        |it: &NodeEvent| matches!(it, NodeEvent::TagsChanged { member, .. } if member.id.0 == of);
    let NodeEvent::TagsChanged { member, tags } = node.wait_for(is_wanted).await else {
        panic!("it waited for another event");
    };
    // A reader that saw an event reads a state that reflects it.
    let listed = entry(node, of).unwrap();
    assert_eq!((listed.member, &listed.tags), (member, &tags));
    tags
}

fn refusal<T: Debug>(outcome: Result<T, Error>) -> Reject {
    match outcome {
        Err(Error::Rejected(reject)) => reject,
        other => panic!("it is no refusal: {other:?}"),
    }
}

/// Over real sockets.
#[tokio::test]
async fn all_nodes_have_the_tags_of_all_and_each_change_of_them() {
    let mut one = Node::start(bench::setup(1, &[]).tags(role("hub"))).await;
    let seed = one.address();
    let mut two = Node::start(bench::setup(2, &[seed]).tags(role("lamp"))).await;
    let mut three = Node::start(bench::setup(3, &[seed])).await;
    assert_eq!(next(&mut one, 2).await, role("lamp"));
    for node in [&one, &two, &three] {
        let all = [Some(role("hub")), Some(role("lamp")), Some(Tags::new())];
        until(|| [1, 2, 3].map(|id| tags(node, id)) == all).await;
    }
    let passed = [&mut one, &mut two, &mut three].map(Node::passed);
    // Its own first tags are no news to a node, and a node without any is none to the others.
    let is_news = |it: &&NodeEvent| matches!(it, NodeEvent::TagsChanged { .. });
    assert_eq!(
        passed.map(|it| it.iter().filter(is_news).count()),
        [0, 1, 2]
    );

    let changed = Tags::from([("role", &b"lamp"[..]), ("on", &[1]), ("raw", &[0xFF])]);
    two.set_tags(changed.clone()).await.unwrap();
    // Its own list has them at once.
    assert_eq!(tags(&two, 2).as_ref(), Some(&changed));
    for node in [&mut one, &mut two, &mut three] {
        assert_eq!(next(node, 2).await, changed);
    }
    assert_eq!(tags(&one, 2).unwrap().bytes("raw"), Some(&[0xFF][..]));
    two.set_tags(changed).await.unwrap();
    two.set_tags(Tags::new()).await.unwrap();
    for node in [&mut one, &mut two, &mut three] {
        assert_eq!(next(node, 2).await, Tags::new());
        assert_eq!(node.traffic().report().unreadable, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_starts_again_has_the_tags_of_its_new_setup() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let two = Node::start(setup(&network, 2, &[1]).tags(role("lamp"))).await;
    two.set_tags(role("switch")).await.unwrap();
    until(|| tags(&one, 2) == Some(role("switch"))).await;
    for (life, given) in [(1, role("door")), (2, Tags::new()), (3, role("lamp"))] {
        let former = entry(&one, 2).unwrap().member;
        match life {
            1 => two.kill().await,
            // The former one in this loop was dropped, and with it its socket.
            _ => sleep(Duration::from_millis(10)).await,
        }
        one.passed();
        let again = setup(&network, 2, &[1])
            .life(Incarnation(life))
            .tags(given.clone());
        let again = Node::start(again).await;
        until(|| entry(&one, 2).unwrap().member != former).await;
        assert_eq!(next(&mut one, 2).await, given);
        assert_eq!(tags(&again, 2), Some(given));
    }
}

/// The other nodes keep the address, and none learns of other metadata.
#[tokio::test(start_paused = true)]
async fn a_command_cannot_replace_the_addresses_of_a_node() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let two = Node::start(setup(&network, 2, &[1]).tags(role("lamp"))).await;
    until(|| tags(&one, 2) == Some(role("lamp"))).await;
    one.passed();
    let elsewhere = Announcement {
        addresses: vec![at(9)],
        tags: Tags::new(),
    };
    let set = Command::SetMetadata(Metadata(elsewhere.encode()));
    let refused = refusal(two.command(set).await);
    assert_eq!(refused, Reject::Metadata);
    assert!(
        refused.to_string().contains("Handle::set_tags"),
        "{refused}"
    );
    sleep(Duration::from_secs(10)).await;
    let listed = entry(&one, 2).unwrap();
    assert_eq!((listed.address, listed.tags), (Some(at(2)), role("lamp")));
    assert_eq!(one.passed(), []);
}

#[tokio::test(start_paused = true)]
async fn tags_that_are_too_long_are_refused_and_change_nothing() {
    let network = Network::default();
    let one = Node::start(setup(&network, 1, &[])).await;
    let long = |len| Tags::from([("", vec![7; len])]);
    let four: Vec<_> = (1..=4)
        .map(|it| SocketAddr::from(([0x2001; 8], it)))
        .collect();
    // The longest beside the most addresses.
    let two = setup(&network, 2, &[1])
        .advertise(four.clone())
        .tags(long(509));
    let two = Node::start(two).await;
    until(|| tags(&one, 2) == Some(long(509))).await;
    let Reject::Tags(error) = refusal(two.set_tags(long(510)).await) else {
        panic!("another refusal");
    };
    assert_eq!((error.len, error.limit), (513, 512));
    assert_eq!(tags(&two, 2), Some(long(509)));
    two.set_tags(long(508)).await.unwrap();
    until(|| tags(&one, 2) == Some(long(508))).await;

    let started = Host::start(setup(&network, 3, &[1]).tags(long(510))).await;
    assert!(
        matches!(started, Err(HostError::Tags(it)) if it == error),
        "{started:?}"
    );
    // With other settings less fits.
    let short = bench::config().with_metadata_limit(100);
    let started = Host::start(setup(&network, 3, &[1]).membership(short).tags(long(11))).await;
    let text = started.unwrap_err().to_string();
    assert!(
        text.contains("13 bytes, but at most 12") && text.contains("metadata_limit"),
        "{text}"
    );
}

/// A node that is not in the mesh yet, and one that does not know its address yet.
#[tokio::test(start_paused = true)]
async fn tags_are_set_before_a_node_has_joined_and_stay_when_it_finds_its_address() {
    let network = Network::default();
    let anywhere = network.odd(Quirk::Anywhere(|_| Some(at(0))));
    let two = Node::start(setup(&network, 2, &[1]).transport(anywhere)).await;
    two.set_tags(role("lamp")).await.unwrap();
    assert!(!two.state().is_in);
    let one = Node::start(setup(&network, 1, &[])).await;
    let mut three = Node::start(setup(&network, 3, &[1])).await;
    assert_eq!(next(&mut three, 2).await, role("lamp"));
    sleep(Duration::from_secs(5)).await;
    let announced = Announcement {
        addresses: vec![at(2)],
        tags: role("lamp"),
    };
    for node in [&one, &three] {
        let listed = entry(node, 2).unwrap();
        assert_eq!(listed.tags, announced.tags);
        assert_eq!(
            Some(listed.address),
            announced.addresses.first().map(|&it| Some(it))
        );
    }
    // The address is no change of the tags.
    let is_news = |it: &NodeEvent| matches!(it, NodeEvent::TagsChanged { .. });
    assert!(!three.passed().iter().any(is_news));
}

/// Values of a node by number. Each other node sees them in their order, though it may miss some.
#[tokio::test(start_paused = true)]
async fn an_older_value_never_comes_back_under_loss_and_reordering() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let faults = Faults::none().with_loss(Ratio::new(25, 100));
        let control = FaultControl::new(faults.with_delay(Span::ZERO, Span::millis(600)));
        let network = Network::default();
        let value = |number: u64| Tags::from([("number", format!("{}-{number}", number * 7 % 10))]);
        let number = |tags: &Tags| tags.get("number")?.split('-').nth(1)?.parse::<u64>().ok();
        let mut nodes = Vec::new();
        for id in 1..=4 {
            let faulty = Faulty::new(network.clone(), &control, seed * 10 + u64::from(id));
            let seeds: &[u16] = if id == 1 { &[] } else { &[1] };
            let setup = setup(&network, id, seeds).transport(faulty).tags(value(0));
            nodes.push(Node::start(setup).await);
        }
        let last = 60;
        for now in 1..=last {
            sleep(Duration::from_millis(rng.below(400))).await;
            nodes[1].set_tags(value(now)).await.unwrap();
        }
        control.change(|it| *it = Faults::none());
        until(|| nodes.iter().all(|it| tags(it, 2) == Some(value(last)))).await;
        for node in &mut nodes {
            let passed = node.passed();
            let seen = passed.iter().filter_map(|event| match event {
                NodeEvent::TagsChanged { member, tags } if member.id.0 == 2 => number(tags),
                _ => None,
            });
            let seen: Vec<_> = seen.collect();
            assert!(
                seen.is_sorted_by(|one, next| one < next),
                "seed {seed}: {seen:?}"
            );
            assert_eq!(seen.last(), Some(&last), "seed {seed}");
        }
    }
}

/// A member says about itself that it lives with this metadata.
fn claims(socket: &Socket, revision: u32, metadata: &[u8]) {
    let claim = Claim::Alive(Metadata(metadata.into()));
    send(socket, Member::new(5, 0), Body::Unlucky, revision, claim);
}

fn send(socket: &Socket, member: Member, body: Body, revision: u32, claim: Claim) {
    let mut message = Message::bare(body);
    message.records.push(Record {
        member,
        revision,
        claim,
    });
    let mut datagram = Vec::new();
    frame::encode(member, &message, 1_000, &mut datagram).unwrap();
    socket.send(&datagram, at(1));
}

/// Its good-bye has no metadata, and the former life's is not its own.
#[tokio::test(start_paused = true)]
async fn a_later_life_without_metadata_has_no_tags_of_the_former_one() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let peer = network.open(at(5));
    let announced = Announcement {
        addresses: vec![at(5)],
        tags: role("lamp"),
    };
    claims(&peer, 0, &announced.encode());
    assert_eq!(next(&mut one, 5).await, role("lamp"));
    let later = Member::new(5, 1);
    send(&peer, later, Body::Farewell, 0, Claim::Left(Age(0)));
    until(|| entry(&one, 5).is_some_and(|it| it.member == later)).await;
    assert_eq!(tags(&one, 5), Some(Tags::new()));
}

/// Each has a good list of addresses in it, which does not count either.
#[tokio::test(start_paused = true)]
async fn metadata_that_is_none_is_counted_and_moves_no_address() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let peer = network.open(at(5));
    let good = |tags| Announcement {
        addresses: vec![at(6)],
        tags,
    };
    claims(&peer, 0, &good(role("lamp")).encode());
    assert_eq!(next(&mut one, 5).await, role("lamp"));
    let head = &[255, 6, 192, 0, 2, 1, 0, 7][..];
    let many = b"\x01a\x00".repeat(2);
    for (nth, tags) in [
        &b"\x01a\x02b"[..],
        b"\x01\xFF\x00",
        b"\xFF\xFF\xFF\xFF\x7F",
        &many,
    ]
    .into_iter()
    .enumerate()
    {
        let revision = 2 * nth as u32 + 1;
        claims(&peer, revision, &[head, tags].concat());
        // Old tags are not those of this revision, and other nodes may never have seen them.
        assert_eq!(next(&mut one, 5).await, Tags::new());
        assert_eq!(one.traffic().report().unreadable, nth as u64 + 1);
        assert_eq!(entry(&one, 5).unwrap().address, Some(at(6)), "{tags:?}");
        claims(&peer, revision + 1, &good(role("lamp")).encode());
        assert_eq!(next(&mut one, 5).await, role("lamp"));
    }
    assert_eq!(one.traffic().report().faulty(), 0);
    assert_eq!(one.live(), 2);
}
