//! Limits, and refusals.

#![allow(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unreachable,
    reason = "a test fails by panicking"
)]

use crate::ring;

use ring::{Ring, plain};
use selvedge_core::settings::{OutOfRange, Setting};
use selvedge_core::wire::frame_len;
use selvedge_core::{Delta, Full, Input, Member, NodeId, Span};
use selvedge_membership::{
    Age, Body, Broadcast, Claim, Command, ConfigError, Event, Key, Membership, Message, Metadata,
    Misbehaviour, Record, Reject, Status, SuspicionLength, Timer,
};

fn from_one(message: Message) -> Input<Membership> {
    Input::Message {
        from: Member::new(1, 7),
        message,
    }
}

fn alive(id: u64) -> Record {
    let claim = Claim::Alive(Metadata::default());
    Record {
        member: Member::new(id, 0),
        revision: 0,
        claim,
    }
}

#[test]
fn invented_members_fill_the_list_and_no_more() {
    let mut ring = Ring::joined(2, &plain().with_member_limit(50).with_tombstone_limit(49));
    for flood in 0..1_000_u64 {
        let mut message = Message::bare(Body::Ack { origin: None });
        message
            .records
            .extend((0..100).map(|nth| alive(1_000 + flood * 100 + nth)));
        ring.step(0, from_one(message)).unwrap();
    }
    let machine = ring.nodes[0].machine();
    assert_eq!(machine.members().count(), 50);
    assert_eq!(machine.counters().list_full, 100_000 - 48);
    assert!(
        machine.counters().updates_dropped == 0,
        "48 news fit a queue of 256"
    );
    assert_eq!(
        machine.member(NodeId(1)).unwrap().status,
        Status::Alive,
        "who was there stays"
    );
}

/// A limit is the largest allowed value, and not the first refused one.
#[test]
fn what_is_as_long_as_its_limit_is_taken() {
    let mut ring = Ring::joined(2, &plain());
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        claim: Claim::Alive(Metadata(vec![1; 600].into())),
        ..alive(5)
    });
    message.broadcasts.push(Broadcast {
        origin: Member::new(5, 0),
        number: 0,
        payload: vec![0; 512].into(),
    });
    ring.step(0, from_one(message)).unwrap();
    let mut full = Message::bare(Body::Unlucky);
    let from = Member::new(1, 7);
    let mut ids = 1_000..;
    while frame_len(from, &full) + 12 <= 1_400 {
        full.records.push(alive(ids.next().unwrap()));
    }
    // The rest of the frame is a record of six bytes, and metadata.
    let rest = 1_400 - frame_len(from, &full) - 6;
    full.records.push(Record {
        claim: Claim::Alive(Metadata(vec![1; rest].into())),
        ..alive(ids.next().unwrap())
    });
    assert_eq!(frame_len(from, &full), 1_400);
    ring.step(0, from_one(full)).unwrap();
}

#[test]
fn a_list_grows_when_its_limit_is_raised() {
    let config = |member_limit| {
        plain()
            .with_member_limit(member_limit)
            .with_tombstone_limit(4)
    };
    let mut ring = Ring::joined(2, &config(5));
    let notify = |ring: &mut Ring| {
        let mut message = Message::bare(Body::Ack { origin: None });
        message.records.extend((10..30).map(alive));
        ring.step(0, from_one(message)).unwrap();
        ring.nodes[0].machine().members().count()
    };
    assert_eq!(notify(&mut ring), 5);
    ring.command(0, Command::SetConfig(Box::new(config(9))))
        .unwrap();
    assert_eq!(notify(&mut ring), 9);
}

#[test]
fn the_dead_are_forgotten_by_number_and_by_time() {
    let config = plain()
        .with_tombstone_limit(3)
        .with_tombstone_periods(20)
        .with_suspicion(SuspicionLength::Fixed(1));
    let mut ring = Ring::joined(2, &config);
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.extend((10..20).map(alive));
    ring.step(0, from_one(message)).unwrap();
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.extend((10..20).map(|id| Record {
        claim: Claim::Left(Age::default()),
        ..alive(id)
    }));
    ring.step(0, from_one(message)).unwrap();
    assert_eq!(ring.nodes[0].machine().members().count(), 12);
    ring.wire.clear();
    // Node 1 gets no record of them, so that it cannot remind node 0.
    let from_0_or_bare = |_: Member, _: NodeId, message: &Message| message.records.is_empty();
    ring.periods(2, from_0_or_bare);
    assert_eq!(ring.nodes[0].machine().members().count(), 2 + 3);
    assert_eq!(
        ring.status(0, 19),
        Some(Status::Left),
        "the latest are kept"
    );
    ring.periods(22, from_0_or_bare);
    let dead = ring.nodes[0]
        .machine()
        .members()
        .filter(|view| view.member.id.0 >= 10)
        .count();
    assert_eq!(dead, 0);
}

#[test]
fn an_update_goes_out_so_often_and_no_more() {
    let config = plain().with_retransmit_factor(2);
    let mut ring = Ring::joined(2, &config);
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        claim: Claim::Left(Age::default()),
        ..alive(30)
    });
    ring.step(0, from_one(message)).unwrap();
    let mut sent = 0;
    for _ in 0..40 {
        let until = ring.now + config.period;
        let count = core::cell::Cell::new(0);
        ring.run_until(
            until,
            |_| true,
            |from, _, message| {
                let is_on_board = message
                    .records
                    .iter()
                    .any(|record| record.member.id.0 == 30);
                count.set(count.get() + u32::from(from.id == NodeId(0) && is_on_board));
                true
            },
        );
        sent += count.get();
    }
    // Twice ceil(ln(2 + 1)).
    assert_eq!(sent, 2 * 2);
}

#[test]
fn broadcasts_arrive_once_at_every_other_node() {
    let mut ring = Ring::joined(5, &plain());
    ring.command(2, Command::Broadcast(Box::new(*b"hello")))
        .unwrap();
    // Every message arrives twice.
    for _ in 0..20 {
        ring.periods(1, |_, _, _| true);
        let doubled = ring.wire.clone();
        ring.wire.extend(doubled);
        ring.settle(|_, _, _| true);
    }
    for node in [0, 1, 3, 4] {
        let arrived = ring.events.iter().filter(|(at, event)| {
            let expected = Event::BroadcastReceived {
                origin: Member::new(2, 7),
                payload: Box::new(*b"hello"),
            };
            *at == node && *event == expected
        });
        assert_eq!(arrived.count(), 1, "at node {node}");
    }
    assert!(
        !ring
            .events
            .iter()
            .any(|(at, event)| *at == 2 && matches!(event, Event::BroadcastReceived { .. }))
    );
}

/// More of them than any number that might be left out of the count.
#[test]
fn each_of_many_broadcasts_arrives() {
    let mut ring = Ring::joined(2, &plain());
    for number in 0..300_u16 {
        let payload = Box::new(number.to_le_bytes());
        ring.command(0, Command::Broadcast(payload)).unwrap();
        ring.periods(3, |_, _, _| true);
    }
    let arrived = ring.events.iter().filter_map(|(at, event)| match event {
        Event::BroadcastReceived { payload, .. } if *at == 1 => Some(payload.to_vec()),
        _ => None,
    });
    assert!(arrived.eq((0..300_u16).map(|number| number.to_le_bytes().to_vec())));
}

#[test]
fn metadata_spreads_and_changes() {
    let mut ring = Ring::joined(4, &plain());
    for word in [&b"one"[..], b"two"] {
        ring.events.clear();
        ring.command(1, Command::SetMetadata(Metadata(word.into())))
            .unwrap();
        ring.periods(10, |_, _, _| true);
        for observer in [0, 2, 3] {
            assert_eq!(
                ring.nodes[observer].machine().metadata(NodeId(1)),
                Some(word)
            );
            assert!(
                ring.events
                    .contains(&(observer, Event::MetadataChanged(Member::new(1, 7))))
            );
        }
    }
}

#[test]
fn health_counts_stop_at_their_limit() {
    let mut ring = Ring::joined(3, &plain().with_health_limit(2));
    let victim = Member::new(2, 7);
    for revision in 0..5 {
        let mut message = Message::bare(Body::Ack { origin: None });
        let claim = Claim::Suspect(Metadata::default());
        message.records.push(Record {
            member: victim,
            revision,
            claim,
        });
        ring.step(0, from_one(message)).unwrap();
    }
    assert_eq!(
        ring.nodes[0]
            .machine()
            .member(victim.id)
            .unwrap()
            .suspicions,
        2
    );
}

/// Every refusal, with the check that it leaves everything as it was (the driver checks that too).
#[test]
fn refusals_say_why_and_change_nothing() {
    let mut ring = Ring::joined(2, &plain().with_broadcast_limit(1));
    let long = Metadata(vec![0; 601].into());
    let cases: Vec<(Command, Reject)> = vec![
        (Command::Join { seeds: vec![] }, Reject::AlreadyJoined),
        (
            Command::SetMetadata(long.clone()),
            Reject::MetadataTooLong {
                len: 601,
                limit: 600,
            },
        ),
        (
            Command::Broadcast(vec![0; 513].into()),
            Reject::BroadcastTooLong {
                len: 513,
                limit: 512,
            },
        ),
        (
            Command::SetDistance {
                id: NodeId(9),
                distance: 1,
            },
            Reject::UnknownMember(NodeId(9)),
        ),
        (
            Command::SetDistance {
                id: NodeId(1),
                distance: 0,
            },
            Reject::ZeroDistance(NodeId(1)),
        ),
        (
            Command::SetDistance {
                id: NodeId(0),
                distance: 1,
            },
            Reject::OwnMember(NodeId(0)),
        ),
        (
            Command::Confirm(Member::new(0, 7)),
            Reject::OwnMember(NodeId(0)),
        ),
        (
            Command::Inquire(Member::new(0, 7)),
            Reject::OwnMember(NodeId(0)),
        ),
        (
            Command::Confirm(Member::new(1, 7 + (1 << 31))),
            Reject::UnknownMember(NodeId(1)),
        ),
        (
            Command::SetConfig(Box::new(plain().with_relays(17))),
            Reject::Config(OutOfRange(Setting::number("relays", 17, 0, 16)).into()),
        ),
        (
            Command::SetConfig(Box::new(plain().with_probe_timeout(Span::secs(1)))),
            Reject::Config(ConfigError::ProbeTimeout {
                probe_timeout: Span::secs(1),
                period: Span::secs(1),
            }),
        ),
    ];
    let before = ring.nodes[0].machine().clone();
    for (command, expected) in cases {
        assert_eq!(ring.command(0, command), Err(expected));
        assert_eq!(*ring.nodes[0].machine(), before, "{expected}");
    }
    let hostile = [
        (
            Input::Message {
                from: Member::new(0, 3),
                message: Message::bare(Body::Unlucky),
            },
            Misbehaviour::OwnId(NodeId(0)),
        ),
        (
            from_one({
                let mut message = Message::bare(Body::Join);
                message.records.push(Record {
                    claim: Claim::Alive(long),
                    ..alive(5)
                });
                message
            }),
            Misbehaviour::MetadataTooLong {
                about: NodeId(5),
                len: 601,
                limit: 600,
            },
        ),
        (
            from_one({
                let mut message = Message::bare(Body::Join);
                let origin = Member::new(5, 0);
                message.broadcasts.push(Broadcast {
                    origin,
                    number: 0,
                    payload: vec![0; 513].into(),
                });
                message
            }),
            Misbehaviour::BroadcastTooLong {
                origin: NodeId(5),
                len: 513,
                limit: 512,
            },
        ),
        (
            from_one(Message::bare(Body::Pull {
                first: Key(2),
                last: Key(1),
            })),
            Misbehaviour::EmptyRange,
        ),
        (
            from_one({
                let mut message = Message::bare(Body::Unlucky);
                message
                    .records
                    .extend((0..300).map(|nth| alive(1_000 + nth)));
                message
            }),
            Misbehaviour::FrameTooLong {
                len: 1_808,
                limit: 1_400,
            },
        ),
    ];
    for (input, expected) in hostile {
        assert_eq!(ring.step(0, input), Err(Reject::Misbehaviour(expected)));
        assert_eq!(*ring.nodes[0].machine(), before, "{expected}");
    }
    let delta = Input::Membership(Delta::Failed(Member::new(1, 7)));
    assert_eq!(ring.step(0, delta), Err(Reject::MembershipInput));
    ring.command(0, Command::Broadcast(Box::new([1]))).unwrap();
    let full = Reject::BroadcastsFull(Full { limit: 1 });
    assert_eq!(
        ring.command(0, Command::Broadcast(Box::new([2]))),
        Err(full)
    );

    let mut idle = Ring::new(1, &plain());
    assert_eq!(idle.command(0, Command::Leave), Err(Reject::NotJoined));
    assert_eq!(
        idle.command(0, Command::Broadcast(Box::new([]))),
        Err(Reject::NotJoined)
    );
    assert_eq!(
        idle.step(0, from_one(Message::bare(Body::Join))),
        Err(Reject::NotJoined)
    );
}

#[test]
fn a_stray_tick_changes_nothing() {
    let unheard_of = Timer::Suspicion(NodeId(77));
    let mut idle = Ring::new(1, &plain());
    let mut ring = Ring::joined(3, &plain());
    let of_a_live_member = Timer::Suspicion(NodeId(1));
    for (mesh, timers) in [
        (&mut idle, [Timer::Period, Timer::Probe, unheard_of]),
        (&mut ring, [of_a_live_member, Timer::Probe, unheard_of]),
    ] {
        let before = mesh.nodes[0].machine().clone();
        let sent = mesh.wire.len();
        for timer in timers {
            assert_eq!(mesh.step(0, Input::Tick(timer)), Ok(()));
        }
        assert_eq!(*mesh.nodes[0].machine(), before);
        assert_eq!(mesh.wire.len(), sent);
    }
}

#[test]
fn settings_change_while_running() {
    let mut ring = Ring::joined(4, &plain());
    for selection in [
        selvedge_membership::Selection::Plain,
        selvedge_membership::Selection::TimeBounded,
        selvedge_membership::Selection::BoundedMix { every: 3 },
    ] {
        let config = plain()
            .with_period(Span::millis(500))
            .with_selection(selection);
        ring.command(2, Command::SetConfig(Box::new(config)))
            .unwrap();
        let before = ring.nodes[2].machine().counters().probes;
        ring.periods(10, |_, _, _| true);
        let probes = ring.nodes[2].machine().counters().probes - before;
        assert!(
            (18..=21).contains(&probes),
            "{probes} in 10 s of periods of 0.5 s"
        );
    }
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 4));
}

#[test]
fn queues_give_up_the_oldest_and_count_it() {
    let mut ring = Ring::joined(2, &plain().with_gossip_limit(3).with_broadcast_limit(2));
    let before = ring.nodes[0].machine().counters().updates_dropped;
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.extend((10..20).map(alive));
    let origin = Member::new(9, 0);
    let broadcast = |number| Broadcast {
        origin,
        number,
        payload: Box::new([7]),
    };
    message.broadcasts.extend((0..5).map(broadcast));
    ring.step(0, from_one(message)).unwrap();
    let counters = ring.nodes[0].machine().counters();
    assert_eq!(counters.updates_dropped - before, 10 - 3);
    assert_eq!(counters.broadcasts_dropped, 5 - 2);
    // Broadcasts that are not passed on any more were delivered all the same.
    let notified = ring
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::BroadcastReceived { .. }));
    assert_eq!(notified.count(), 5);
}

#[test]
fn missed_probes_are_counted_up_to_the_limit() {
    let config = plain()
        .with_health_limit(2)
        .with_suspicion(SuspicionLength::Fixed(100))
        .with_publish_after(2);
    let mut ring = Ring::joined(2, &config);
    // Each probe is lost, and the second question is answered.
    for _ in 0..6 {
        ring.periods(1, |_, _, _| false);
        ring.periods(2, |_, _, _| true);
    }
    let missed = ring.nodes[0].machine().member(NodeId(1)).unwrap().missed;
    let failed = ring.nodes[0].machine().counters().failed_probes;
    assert!(failed > 2 && missed == 2, "{missed} of {failed}");
}
