//! Suspicion and refutation, joining and leaving: by hand, one behaviour a test.

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
use selvedge_core::{Delta, Driver, Incarnation, Input, Member, NodeId};
use selvedge_membership::{
    Age, Body, Claim, Command, Event, Membership, Message, Metadata, Phase, Record, Reject, Status,
    SuspicionLength,
};

fn reports(member: Member, revision: u32, claim: Claim) -> Message {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        member,
        revision,
        claim,
    });
    message
}

fn suspect() -> Claim {
    Claim::Suspect(Metadata::default())
}

#[test]
fn a_suspicion_learned_from_others_ends_as_a_failure() {
    let mut ring = Ring::joined(3, &plain());
    let victim = Member::new(2, 7);
    let message = reports(victim, 0, suspect());
    ring.step(
        0,
        Input::Message {
            from: Member::new(1, 7),
            message,
        },
    )
    .unwrap();
    assert_eq!(ring.status(0, 2), Some(Status::Suspect));
    // No more messages arrive.
    let until = ring.now + ring.nodes[0].machine().config().period * 40;
    ring.run_until(until, |node| node == 0, |_, _, _| false);
    assert_eq!(ring.status(0, 2), Some(Status::Failed));
    assert!(ring.deltas(0).contains(&Delta::Failed(victim)));
}

#[test]
fn a_refuted_suspicion_never_acts() {
    let mut ring = Ring::joined(3, &plain());
    let victim = Member::new(2, 7);
    let from = Member::new(1, 7);
    ring.step(
        0,
        Input::Message {
            from,
            message: reports(victim, 0, suspect()),
        },
    )
    .unwrap();
    // It learns of it, and announces that it lives.
    ring.settle(|_, _, _| true);
    ring.periods(4, |_, _, _| true);
    assert_eq!(
        ring.deltas(0),
        [Delta::Suspected(victim), Delta::Refuted(victim)]
    );
    ring.periods(60, |_, _, _| true);
    assert_eq!(
        ring.deltas(0),
        [Delta::Suspected(victim), Delta::Refuted(victim)]
    );
}

#[test]
fn the_suspect_is_told_first_and_refutes() {
    let mut ring = Ring::joined(4, &plain());
    let victim = Member::new(2, 7);
    ring.step(
        0,
        Input::Message {
            from: Member::new(1, 7),
            message: reports(victim, 0, suspect()),
        },
    )
    .unwrap();
    let ping = Message::bare(Body::Ping {
        digest: Default::default(),
        origin: None,
    });
    ring.wire.clear();
    ring.step(
        0,
        Input::Message {
            from: victim,
            message: ping,
        },
    )
    .unwrap();
    let (_, to, message) = &ring.wire[0];
    assert_eq!(*to, victim.id);
    assert_eq!(
        message.records[0],
        Record {
            member: victim,
            revision: 0,
            claim: suspect()
        }
    );
    ring.settle(|_, _, _| true);
    ring.periods(6, |_, _, _| true);
    for observer in [0, 1, 3] {
        let view = ring.nodes[observer].machine().member(NodeId(2)).unwrap();
        assert_eq!((view.status, view.revision), (Status::Alive, 1));
    }
    assert_eq!(ring.nodes[2].machine().counters().refutations, 1);
}

#[test]
fn a_failed_member_that_lives_comes_back_as_the_same() {
    let mut ring = Ring::joined(3, &plain());
    let victim = Member::new(2, 7);
    let failed = reports(
        victim,
        0,
        Claim::Failed(Metadata::default(), Age::default()),
    );
    ring.step(
        0,
        Input::Message {
            from: Member::new(1, 7),
            message: failed,
        },
    )
    .unwrap();
    assert_eq!(ring.status(0, 2), Some(Status::Failed));
    ring.periods(8, |_, _, _| true);
    assert_eq!(
        ring.deltas(0),
        [Delta::Failed(victim), Delta::Refuted(victim)]
    );
    assert_eq!(ring.nodes[2].machine().me(), victim);
}

#[test]
fn a_suspicion_is_not_told_when_the_second_question_is_answered() {
    let mut ring = Ring::joined(4, &plain().with_publish_after(2));
    // Node 3's answers are lost until it was doubted once.
    let is_lost = |from: Member, message: &Message| {
        from.id == NodeId(3) && matches!(message.body, Body::Ack { .. } | Body::RelayedAck { .. })
    };
    let mut doubted = false;
    for _ in 0..20 {
        ring.periods(1, |from, _, message| doubted || !is_lost(from, message));
        let missed =
            |node: &Driver<Membership>| node.machine().member(NodeId(3)).unwrap().missed > 0;
        doubted = ring.nodes[..3].iter().any(missed);
    }
    assert!(doubted);
    assert!(ring.events.is_empty(), "{:?}", ring.events);
}

#[test]
fn who_leaves_has_left_and_not_failed() {
    let mut ring = Ring::joined(4, &plain());
    ring.command(1, Command::Leave).unwrap();
    ring.settle(|_, _, _| true);
    ring.periods(30, |_, _, _| true);
    for observer in [0, 2, 3] {
        assert_eq!(ring.deltas(observer), [Delta::Left(Member::new(1, 7))]);
        assert_eq!(ring.status(observer, 1), Some(Status::Left));
    }
    assert!(ring.events.contains(&(1, Event::Left)));
    assert_eq!(ring.nodes[1].machine().phase(), Phase::Idle);
}

#[test]
fn who_left_does_not_come_back_but_in_a_new_life() {
    let mut ring = Ring::joined(3, &plain());
    ring.command(1, Command::Leave).unwrap();
    ring.periods(10, |_, _, _| true);
    let claim = Claim::Alive(Metadata::default());
    let old = reports(Member::new(1, 7), 900, claim);
    ring.step(
        0,
        Input::Message {
            from: Member::new(2, 7),
            message: old,
        },
    )
    .unwrap();
    assert_eq!(ring.status(0, 1), Some(Status::Left));
    ring.command(
        1,
        Command::Join {
            seeds: vec![NodeId(0)],
        },
    )
    .unwrap();
    ring.settle(|_, _, _| true);
    ring.periods(10, |_, _, _| true);
    for observer in [0, 2] {
        let view = ring.nodes[observer].machine().member(NodeId(1)).unwrap();
        assert_eq!(
            (view.member, view.status),
            (Member::new(1, 8), Status::Alive)
        );
    }
}

/// Restarts node 1 under `incarnation`; returns its identity then.
fn comes_back_as(incarnation: u32) -> Member {
    let mut ring = Ring::joined(3, &plain());
    let me = Member::new(1, incarnation);
    ring.nodes[1] = Driver::new(Membership::new(me, plain()).unwrap());
    ring.command(
        1,
        Command::Join {
            seeds: vec![NodeId(0)],
        },
    )
    .unwrap();
    ring.settle(|_, _, _| true);
    ring.periods(10, |_, _, _| true);
    let me = ring.nodes[1].machine().me();
    let identity = |(node, event): &(usize, Event)| *node == 1 && *event == Event::Identified(me);
    assert!(ring.events.iter().any(identity));
    for observer in [0, 2] {
        assert_eq!(
            ring.nodes[observer]
                .machine()
                .member(NodeId(1))
                .unwrap()
                .member,
            me
        );
        let deltas = ring.deltas(observer);
        assert_eq!(
            deltas,
            [Delta::Confirmed(Member::new(1, 7)), Delta::Joined(me)]
        );
    }
    me
}

#[test]
fn a_node_with_memory_comes_back_under_its_next_number() {
    assert_eq!(comes_back_as(8), Member::new(1, 8));
}

#[test]
fn a_node_without_memory_takes_a_later_number_than_anyone_remembers() {
    assert_eq!(comes_back_as(7), Member::new(1, 8));
    assert_eq!(comes_back_as(3), Member::new(1, 8));
    // Before 7 on the circle, too.
    assert_eq!(comes_back_as(u32::MAX), Member::new(1, 8));
}

#[test]
fn numbers_wrap() {
    let mut ring = Ring::new(2, &plain());
    let me = Member::new(1, u32::MAX);
    ring.nodes[1] = Driver::new(Membership::new(me, plain()).unwrap());
    ring.command(0, Command::Join { seeds: vec![] }).unwrap();
    ring.command(
        1,
        Command::Join {
            seeds: vec![NodeId(0)],
        },
    )
    .unwrap();
    ring.settle(|_, _, _| true);
    ring.command(1, Command::Leave).unwrap();
    ring.periods(10, |_, _, _| true);
    ring.command(
        1,
        Command::Join {
            seeds: vec![NodeId(0)],
        },
    )
    .unwrap();
    ring.settle(|_, _, _| true);
    assert_eq!(ring.nodes[1].machine().me().incarnation, Incarnation(0));
    assert_eq!(
        ring.nodes[0].machine().member(NodeId(1)).unwrap().member,
        Member::new(1, 0)
    );
}

#[test]
fn two_nodes_that_are_each_others_seeds_found_a_mesh() {
    let mut ring = Ring::new(2, &plain());
    for node in 0..2 {
        let seeds = vec![NodeId(0), NodeId(1)];
        ring.command(node, Command::Join { seeds }).unwrap();
    }
    ring.periods(4, |_, _, _| true);
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 2));
}

/// A host may learn where its seeds are, or that it has none, after the start.
#[test]
fn a_joining_node_asks_its_new_seeds_and_begins_a_mesh_without_any() {
    let config = plain().with_reconnect_every(2);
    let mut ring = Ring::joined(1, &config);
    for id in 1..3 {
        let me = Member::new(id, 0);
        ring.nodes
            .push(Driver::new(Membership::new(me, config.clone()).unwrap()));
    }
    let nowhere = || vec![NodeId(99)];
    for node in [1, 2] {
        let join = Command::Join { seeds: nowhere() };
        ring.command(node, join).unwrap();
    }
    ring.periods(2, |_, _, _| true);
    let seeds = |id| Command::SetSeeds {
        seeds: vec![NodeId(id)],
    };
    ring.command(1, seeds(0)).unwrap();
    // A node is no seed of its own.
    ring.command(2, seeds(2)).unwrap();
    ring.settle(|_, _, _| true);
    let live = |ring: &Ring| -> Vec<usize> {
        let all = ring.nodes.iter();
        all.map(|node| node.machine().live()).collect()
    };
    assert_eq!(live(&ring), [2, 2, 1]);
    // A lone node of a mesh asks them, too.
    ring.command(2, seeds(0)).unwrap();
    ring.periods(4, |_, _, _| true);
    assert_eq!(live(&ring), [3, 3, 3]);
}

#[test]
fn an_idle_node_takes_its_seeds_with_the_next_join() {
    let mut ring = Ring::new(1, &plain());
    let seeds = Command::SetSeeds { seeds: vec![] };
    assert_eq!(ring.command(0, seeds), Err(Reject::NotJoined));
}

#[test]
fn a_joining_node_that_is_probed_asks_the_prober_to_let_it_in() {
    let mut ring = Ring::joined(2, &plain());
    let me = Member::new(2, 7);
    ring.nodes
        .push(Driver::new(Membership::new(me, plain()).unwrap()));
    ring.command(
        2,
        Command::Join {
            seeds: vec![NodeId(99)],
        },
    )
    .unwrap();
    let ping = Message::bare(Body::Ping {
        digest: Default::default(),
        origin: None,
    });
    ring.step(
        2,
        Input::Message {
            from: Member::new(1, 7),
            message: ping,
        },
    )
    .unwrap();
    ring.settle(|_, _, _| true);
    assert_eq!(ring.nodes[2].machine().live(), 3);
}

#[test]
fn a_lone_node_finds_its_seed_again_and_halves_find_together() {
    let config = plain().with_reconnect_every(2).with_sync_after(1);
    let mut ring = Ring::joined(6, &config);
    let cut = |from: Member, to: NodeId, _: &Message| (from.id.0 < 3) == (to.0 < 3);
    ring.periods(60, cut);
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 3));
    ring.periods(60, |_, _, _| true);
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 6));
    let alone = |from: Member, to: NodeId, _: &Message| from.id != NodeId(5) && to != NodeId(5);
    ring.periods(60, alone);
    assert_eq!(ring.nodes[5].machine().live(), 1);
    ring.periods(30, |_, _, _| true);
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 6));
}

/// One half has forgotten its dead, so the others are news to it.
#[test]
fn halves_find_together_when_one_has_forgotten_the_other() {
    let config = plain()
        .with_reconnect_every(2)
        .with_sync_after(1)
        .with_tombstone_periods(10)
        .with_suspicion(SuspicionLength::Fixed(2));
    let mut ring = Ring::joined(4, &config);
    let cut = |from: Member, to: NodeId, _: &Message| (from.id.0 < 2) == (to.0 < 2);
    ring.periods(40, cut);
    assert_eq!(
        ring.nodes[0].machine().members().count(),
        2,
        "the others are forgotten"
    );
    // Nodes 2 and 3 still have node 0 as their seed.
    ring.periods(40, |_, _, _| true);
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 4));
}

/// A former life under its number may have announced it, or an operator. The others take it for
/// over.
#[test]
fn who_lives_and_hears_that_it_left_goes_on_in_a_later_life() {
    let mut ring = Ring::joined(3, &plain());
    let former = Member::new(2, 7);
    for hearer in [0, 2] {
        let message = reports(former, 0, Claim::Left(Age::default()));
        let from = Member::new(1, 7);
        ring.step(hearer, Input::Message { from, message }).unwrap();
    }
    let present = Member::new(2, 8);
    assert_eq!(ring.nodes[2].machine().me(), present);
    assert!(ring.events.contains(&(2, Event::Identified(present))));
    ring.periods(10, |_, _, _| true);
    for observer in [0, 1] {
        let view = ring.nodes[observer].machine().member(NodeId(2)).unwrap();
        assert_eq!((view.member, view.status), (present, Status::Alive));
    }
}
