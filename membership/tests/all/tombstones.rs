//! The dead: the order in which they give way, and the time at which they are forgotten.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::ring;

use ring::{Ring, plain};
use selvedge_core::{Driver, Input, Member, NodeId};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, ConfigError, Membership, Message, Metadata, Record, Status,
    SuspicionLength,
};

fn record(id: u64, claim: Claim) -> Record {
    Record {
        member: Member::new(id, 0),
        revision: 0,
        claim,
    }
}

fn alive(id: u64) -> Record {
    record(id, Claim::Alive(Metadata::default()))
}

fn failed(id: u64) -> Record {
    record(id, Claim::Failed(Metadata::default(), Age::default()))
}

fn left(id: u64) -> Record {
    record(id, Claim::Left(Age::default()))
}

/// Sends records from node 1 to node 0, as news.
fn notify(ring: &mut Ring, records: impl IntoIterator<Item = Record>) {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.extend(records);
    let from = Member::new(1, 7);
    ring.step(0, Input::Message { from, message }).unwrap();
}

fn dead(ring: &Ring, node: usize) -> usize {
    let machine = ring.nodes[node].machine();
    let members = machine.members();
    members.filter(|view| !view.status.is_live()).count()
}

/// Without the rule a newcomer waits until a tombstone's time is over.
#[test]
fn a_newcomer_is_let_in_where_the_dead_fill_the_list() {
    let config = plain().with_member_limit(32).with_tombstone_limit(31);
    let mut ring = Ring::joined(10, &config);
    // 22 that came and died, the first of them with a good-bye.
    notify(&mut ring, (100..122).map(alive));
    notify(
        &mut ring,
        [left(100)].into_iter().chain((101..122).map(failed)),
    );
    ring.periods(12, |_, _, _| true);
    for node in 0..10 {
        assert_eq!(
            ring.nodes[node].machine().members().count(),
            32,
            "at {node}"
        );
    }
    let newcomer = Membership::new(Member::new(10, 7), config.clone()).unwrap();
    ring.nodes.push(Driver::new(newcomer));
    let seeds = vec![NodeId(0)];
    ring.command(10, Command::Join { seeds }).unwrap();
    ring.periods(12, |_, _, _| true);
    for node in 0..11 {
        let machine = ring.nodes[node].machine();
        assert_eq!(machine.live(), 11, "at {node}");
        assert_eq!(machine.members().count(), 32, "at {node}");
        let left = machine.member(NodeId(100)).map(|view| view.status);
        assert_eq!(
            left,
            Some(Status::Left),
            "at {node}: the failed give way first"
        );
    }
}

/// The sender of a message may itself be the tombstone that gives way to a member in it.
#[test]
fn a_dead_sender_that_gives_way_is_answered_as_itself() {
    let config = plain().with_member_limit(5).with_tombstone_limit(4);
    let mut ring = Ring::joined(2, &config);
    notify(&mut ring, (20..23).map(alive));
    notify(&mut ring, (20..23).map(failed));
    ring.wire.clear();
    let mut message = Message::bare(Body::Ping {
        digest: selvedge_membership::Digest::default(),
        origin: None,
    });
    // 30 takes the place of 20, which then has nothing to refute.
    let suspect = Claim::Suspect(Metadata::default());
    message.records.extend([record(30, suspect), alive(31)]);
    let from = Member::new(20, 0);
    ring.step(0, Input::Message { from, message }).unwrap();
    assert_eq!(ring.status(0, 30), Some(Status::Suspect));
    let (_, _, answer) = ring
        .wire
        .iter()
        .find(|(_, to, message)| *to == NodeId(20) && matches!(message.body, Body::Ack { .. }))
        .unwrap();
    let first = answer.records.first().map(|record| record.member.id);
    assert_eq!(
        first,
        Some(NodeId(30)),
        "the latest news that may be passed on: 31 has not answered"
    );
    assert_eq!(ring.nodes[0].machine().members().count(), 5);
}

/// Reported dead do not push out remembered ones, except that a member that left pushes out one
/// that failed.
#[test]
fn the_dead_that_are_told_of_take_the_room_that_there_is() {
    let config = plain().with_tombstone_limit(2).with_tombstone_periods(40);
    let mut ring = Ring::joined(2, &config);
    let old = |id, age| record(id, Claim::Failed(Metadata::default(), Age(age)));
    notify(
        &mut ring,
        [old(19, 40), old(20, 39), old(21, 0), old(22, 0)],
    );
    assert_eq!(ring.status(0, 19), None, "its time is over");
    assert_eq!(ring.status(0, 20), Some(Status::Failed));
    assert_eq!(ring.status(0, 22), None, "there is no room");
    notify(&mut ring, [left(23)]);
    assert_eq!(ring.status(0, 20), None);
    assert_eq!(ring.status(0, 23), Some(Status::Left));
    assert_eq!(ring.nodes[0].machine().counters().list_full, 1);
    assert_eq!(ring.nodes[0].machine().counters().tombstones_displaced, 1);
}

/// No tombstone is given up for a member that may not come back either.
#[test]
fn who_left_gives_way_to_nobody_that_is_dead() {
    let config = plain().with_tombstone_limit(2);
    let mut ring = Ring::joined(2, &config);
    notify(&mut ring, [left(20), left(21), left(22), failed(23)]);
    let listed = [20, 21, 22, 23].map(|id| ring.status(0, id));
    let left = Some(Status::Left);
    assert_eq!(listed, [left, left, None, None]);
    assert_eq!(ring.nodes[0].machine().counters().list_full, 2);
}

/// Only its tombstone keeps a life from coming back. One message may make that give way, and report
/// an earlier life of the same node.
#[test]
fn a_member_that_gave_way_is_news_in_the_same_message() {
    let config = plain().with_tombstone_limit(2);
    let mut ring = Ring::joined(2, &config);
    let member = Member::new(20, 5);
    notify(
        &mut ring,
        [
            Record {
                member,
                ..failed(20)
            },
            failed(21),
        ],
    );
    notify(&mut ring, [alive(20)]);
    let view = |ring: &Ring| {
        let view = ring.nodes[0].machine().member(NodeId(20)).unwrap();
        (view.member.incarnation.0, view.status)
    };
    assert_eq!(view(&ring), (5, Status::Failed), "it is remembered");
    notify(&mut ring, [left(22), alive(20)]);
    assert_eq!(view(&ring), (0, Status::Alive));
    let counters = ring.nodes[0].machine().counters();
    assert_eq!(counters.tombstones_displaced, 1);
}

/// Other nodes may list the dead member as live. They may also list a newcomer.
#[test]
fn a_node_that_forgot_early_asks_a_member_before_it_passes_it_on() {
    let config = plain().with_tombstone_limit(2).with_tombstone_periods(40);
    let mut ring = Ring::joined(2, &config);
    let names = |ring: &Ring, id: u64| {
        let notified = |it: &&(Member, NodeId, Message)| it.1 != NodeId(id);
        let mut messages = ring.wire.iter().filter(notified);
        messages.any(|(.., it)| it.records.iter().any(|it| it.member.id == NodeId(id)))
    };
    let ping = |from: Member| Input::Message {
        from,
        message: Message::bare(Body::Ping {
            digest: selvedge_membership::Digest::default(),
            origin: None,
        }),
    };
    let neighbour = Member::new(1, 7);
    // Node 22 left and takes the tombstone of node 20, which failed.
    notify(&mut ring, [failed(20), failed(21), left(22)]);
    assert_eq!(ring.status(0, 20), None);
    let suspect = record(20, Claim::Suspect(Metadata::default()));
    notify(&mut ring, [suspect, alive(23)]);
    assert_eq!(ring.status(0, 20), None, "a suspect that lives refutes");
    ring.wire.clear();
    notify(&mut ring, [alive(20)]);
    let is_asked = |it: &(Member, NodeId, Message)| {
        it.1 == NodeId(20) && matches!(it.2.body, Body::Ping { .. })
    };
    assert!(ring.wire.iter().any(is_asked));
    ring.step(0, ping(neighbour)).unwrap();
    assert!(!names(&ring, 20), "no other node learns of it");
    ring.step(0, ping(Member::new(23, 0))).unwrap();
    ring.wire.clear();
    ring.step(0, ping(neighbour)).unwrap();
    assert!(names(&ring, 23), "it has answered");
    ring.periods(2, |_, to, _| to.0 < 2);
    assert_eq!(ring.status(0, 20), Some(Status::Failed), "it was silent");
    assert_eq!(ring.status(1, 20), None, "and no node was notified");
    // Node 23 fails meanwhile, for which one more gives way; then a tombstone's time passes.
    ring.periods(70, |_, to, _| to.0 < 2);
    ring.wire.clear();
    notify(&mut ring, [alive(24)]);
    assert!(!ring.wire.iter().any(|it| it.1 == NodeId(24)));
    ring.step(0, ping(neighbour)).unwrap();
    assert!(names(&ring, 24));
}

/// Where the dead are remembered for ever, their age does not matter.
#[test]
fn the_dead_that_are_never_forgotten_are_learned_of_and_have_no_age() {
    let config = plain()
        .with_tombstone_periods(0)
        .with_passive(Some(selvedge_membership::PassiveFeedback::default()));
    let mut ring = Ring::joined(2, &config);
    notify(&mut ring, [failed(20), record(21, Claim::Left(Age(9)))]);
    assert_eq!(ring.status(0, 20), Some(Status::Failed));
    assert_eq!(ring.status(0, 21), Some(Status::Left));
    ring.periods(40, |_, _, _| true);
    ring.wire.clear();
    let (first, last) = (
        selvedge_membership::Key(0),
        selvedge_membership::Key(u64::MAX),
    );
    let message = Message::bare(Body::Pull { first, last });
    let from = Member::new(1, 7);
    ring.step(0, Input::Message { from, message }).unwrap();
    let mut ages = Vec::new();
    for (_, _, message) in &ring.wire {
        for record in &message.records {
            if let Claim::Failed(_, age) | Claim::Left(age) = record.claim {
                ages.push(age.0);
            }
        }
    }
    assert_eq!(ages, [0, 0]);
}

/// For any age of the claim: news of its life may still be on the way.
#[test]
fn who_was_taken_for_live_is_remembered_for_half_the_time() {
    let config = plain().with_tombstone_periods(40);
    let mut ring = Ring::joined(2, &config);
    let no_node = |_: Member, _: NodeId, message: &Message| message.records.is_empty();
    notify(&mut ring, [alive(20)]);
    notify(&mut ring, [record(20, Claim::Left(Age(39)))]);
    ring.periods(19, no_node);
    notify(&mut ring, [alive(20)]);
    assert_eq!(ring.status(0, 20), Some(Status::Left));
    ring.periods(2, no_node);
    assert_eq!(ring.status(0, 20), None);
}

/// Half of a mesh of 256 with small radios is cut off from the other, which is more than there are
/// tombstones for; a member had left before, and a list from then arrives.
#[test]
fn a_partition_does_not_bring_back_who_left() {
    let config = Config::radio()
        .with_suspicion(SuspicionLength::Fixed(1))
        .with_hearsay_limit(0)
        .with_sync_after(0)
        .with_reconnect_every(0);
    let mut ring = Ring::joined(2, &config);
    for first in (100..350).step_by(10) {
        notify(&mut ring, (first..first + 10).map(alive));
    }
    assert_eq!(ring.nodes[0].machine().live(), 252);
    let alone = |_: Member, _: NodeId, message: &Message| message.records.is_empty();
    for first in (100..200).step_by(10) {
        notify(&mut ring, (first..first + 10).map(left));
    }
    ring.periods(1, alone);
    for first in (200..340).step_by(10) {
        notify(&mut ring, (first..first + 10).map(failed));
    }
    ring.periods(3, alone);
    for first in (100..200).step_by(10) {
        notify(&mut ring, (first..first + 10).map(alive));
    }
    for id in 100..200 {
        assert_eq!(ring.status(0, id), Some(Status::Left), "member {id}");
    }
}

/// Restarts pass a list on from one to the next: its entries must not get younger on the way.
#[test]
fn the_dead_are_forgotten_under_churn() {
    const PERIODS: u64 = 100;
    let config = plain()
        .with_tombstone_periods(PERIODS as u16)
        .with_suspicion(SuspicionLength::Fixed(3))
        .with_sync_after(4)
        .with_reconnect_every(5);
    let mut ring = Ring::joined(24, &config);
    notify(&mut ring, (1_000..1_150).map(failed));
    ring.periods(10, |_, _, _| true);
    for node in 0..24 {
        assert_eq!(dead(&ring, node), 150, "at {node}");
    }
    for restart in 0..PERIODS / 10 * 4 {
        let node = (restart * 7 % 24) as usize;
        let life = Member::new(node as u64, 8 + restart as u32);
        let machine = Membership::new(life, config.clone()).unwrap();
        ring.nodes[node] = Driver::new(machine);
        let seeds = vec![NodeId((node as u64 + 5) % 24)];
        ring.command(node, Command::Join { seeds }).unwrap();
        ring.periods(10, |_, _, _| true);
        if restart == 2 {
            assert_eq!(dead(&ring, node), 150, "a joiner learns who is dead");
        }
        let is_past = (restart + 2) * 10 > PERIODS;
        for node in 0..24 {
            assert!(
                !is_past || dead(&ring, node) == 0,
                "{} at {node}",
                dead(&ring, node)
            );
        }
    }
    assert!(ring.nodes.iter().all(|node| node.machine().live() == 24));
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let refused = |config: Config| Membership::new(Member::new(1, 0), config).err();
    let more_dead_than_members = Config::default()
        .with_member_limit(32)
        .with_tombstone_limit(32);
    assert_eq!(
        refused(more_dead_than_members),
        Some(ConfigError::TombstoneLimit {
            tombstone_limit: 32,
            member_limit: 32,
        })
    );
    let forgotten_while_suspect = Config::default().with_tombstone_periods(27);
    assert_eq!(
        refused(forgotten_while_suspect),
        Some(ConfigError::TombstonePeriods {
            tombstone_periods: 27,
            suspicion: 27,
        })
    );
    let sound = Config::default()
        .with_member_limit(32)
        .with_tombstone_limit(31)
        .with_tombstone_periods(13);
    assert_eq!(
        refused(sound),
        None,
        "suspicions last up to 3 ceil(ln 33) = 12 periods"
    );
    for sound in [Config::default(), Config::radio(), Config::thesis()] {
        assert_eq!(refused(sound), None);
    }
}
