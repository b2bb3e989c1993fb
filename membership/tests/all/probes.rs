//! The wait of a probe, answers through relays, and the length of a doubt.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::lone;
use crate::ring;

use lone::{Lone, pings, quiet};
use ring::{Ring, plain};
use selvedge_core::{Delta, Effect, Input, Member, NodeId, Span, Time};
use selvedge_membership::{
    Age, Body, Claim, Command, Digest, Message, Metadata, Record, SuspicionLength,
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

/// The number of periods between two ends of periods in which no member answers.
fn next_period(lone: &mut Lone) -> u64 {
    let start = lone.driver.deadline().unwrap();
    lone.silence(start);
    let config = lone.driver.machine().config();
    lone.driver.deadline().unwrap().since(start).0 / config.period.0
}

/// The cause may be its own network.
#[test]
fn whoever_gets_no_answers_or_is_suspected_waits_longer_up_to_the_limit() {
    let config = quiet()
        .with_jitter(Span::ZERO)
        .with_relays(0)
        .with_stretch_limit(2)
        .with_suspicion(SuspicionLength::Fixed(1_000))
        .with_publish_after(1);
    let mut lone = Lone::new(config.clone(), &[1; 9]);
    let lengths: Vec<u64> = (0..5).map(|_| next_period(&mut lone)).collect();
    assert_eq!(lengths, [1, 2, 3, 3, 3], "the first ends with no probe");
    // Each answer takes one back.
    for length in [2, 1, 1] {
        for target in pings(&lone.effects) {
            lone.receive(target, Message::bare(Body::Ack { origin: None }));
        }
        lone.effects.clear();
        assert_eq!(next_period(&mut lone), length);
    }

    let mut lone = Lone::new(config, &[1]);
    for revision in 0..4 {
        let message = reports(Member::new(1, 0), revision, suspect());
        lone.receive(Member::new(2, 0), message);
    }
    assert_eq!(next_period(&mut lone), 3);
    assert_eq!(lone.driver.machine().counters().refutations, 4);
}

/// Relays are never asked in a mesh without any, and later where answers are slow.
#[test]
fn relays_are_asked_when_the_answer_is_overdue() {
    let config = |relays| {
        quiet()
            .with_jitter(Span::ZERO)
            .with_relays(relays)
            .with_probe_timeout(Span::millis(300))
            .with_suspicion(SuspicionLength::Fixed(1_000))
    };
    let wait = |relays, stretch: u32| {
        let mut lone = Lone::new(config(relays), &[1; 9]);
        for revision in 0..stretch {
            let message = reports(Member::new(1, 0), revision, suspect());
            lone.receive(Member::new(2, 0), message);
        }
        let start = lone.driver.deadline().unwrap();
        lone.silence(start);
        lone.driver.deadline().unwrap().since(start)
    };
    assert_eq!(wait(0, 0), Span::secs(1), "the next period");
    assert_eq!(wait(3, 0), Span::millis(300));
    assert_eq!(wait(3, 2), Span::millis(900));
}

/// Two nodes do not receive each other's messages, and a third receives both.
#[test]
fn who_answers_through_a_relay_is_not_suspected() {
    let mut ring = Ring::joined(3, &plain());
    let is_cut = |from: Member, to: NodeId| from.id.0 + to.0 == 2 && from.id.0 != to.0;
    ring.periods(60, |from, to, _| !is_cut(from, to));
    assert_eq!(ring.events, []);
    for node in [0, 2] {
        let machine = ring.nodes[node].machine();
        assert_eq!(machine.counters().failed_probes, 0);
        assert!(machine.member(NodeId(2 - node as u64)).unwrap().missed == 0);
    }
    // It is the relay that makes the difference.
    let is_cut = |from: Member, to: NodeId, message: &Message| {
        is_cut(from, to) || matches!(message.body, Body::RelayedAck { .. })
    };
    ring.periods(60, |from, to, message| !is_cut(from, to, message));
    assert!(ring.nodes[0].machine().counters().failed_probes > 0);
}

/// A relay asks for another node, and names it; an answer to this node itself is not passed on.
#[test]
fn an_answer_is_passed_on_to_the_one_that_asked() {
    let mut lone = Lone::new(quiet(), &[1, 1]);
    let (origin, target) = (Member::new(2, 0), Member::new(3, 0));
    let sent = |lone: &mut Lone, from, body| {
        lone.effects.clear();
        lone.receive(from, Message::bare(body));
        let sent = lone.effects.iter().filter_map(|effect| match effect {
            Effect::Send { to, message } => Some((*to, message.body)),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    let asked = sent(&mut lone, origin, Body::PingRequest { target });
    assert!(
        matches!(asked[..], [(to, Body::Ping { origin: Some(of), .. })] if to == target && of == origin),
        "{asked:?}"
    );
    let ack = |origin| Body::Ack {
        origin: Some(origin),
    };
    assert_eq!(
        sent(&mut lone, target, ack(origin)),
        [(origin, Body::RelayedAck { target })]
    );
    let me = lone.driver.machine().me();
    assert_eq!(sent(&mut lone, target, ack(me)), []);
    assert_eq!(
        sent(&mut lone, origin, Body::PingRequest { target: me }),
        [(origin, Body::Ack { origin: None })]
    );
}

/// A suspicion that is published late lasts for the rest of the time: from the doubt to the end it
/// is as long.
#[test]
fn a_doubt_and_its_suspicion_last_as_long_as_a_suspicion_alone() {
    for (publish_after, periods) in [(1, 1), (1, 3), (2, 1), (2, 2), (2, 4)] {
        let config = plain()
            .with_suspicion(SuspicionLength::Fixed(periods))
            .with_publish_after(publish_after);
        let mut ring = Ring::joined(2, &config);
        let victim = Member::new(1, 7);
        let is_doubted = |ring: &Ring| {
            let view = ring.nodes[0].machine().member(victim.id);
            view.unwrap().missed > 0
        };
        let step = |ring: &mut Ring| {
            let until = ring.now + Span::millis(100);
            ring.run_until(until, |node| node == 0, |_, _, _| false);
        };
        while !is_doubted(&ring) {
            step(&mut ring);
        }
        let doubted = ring.now;
        while ring.deltas(0).last() != Some(&Delta::Failed(victim)) {
            step(&mut ring);
            assert!(ring.now < doubted + config.period * 10);
        }
        assert_eq!(ring.now.since(doubted), config.period * u64::from(periods));
        let is_notified = publish_after == 1 || periods > 1;
        let counters = ring.nodes[0].machine().counters();
        assert_eq!(
            (counters.suspicions, counters.failures),
            (u64::from(is_notified), 1)
        );
        assert_eq!(
            ring.deltas(0).contains(&Delta::Suspected(victim)),
            is_notified
        );
    }
}

/// A member whose life is over needs no relays, and its silence is no fault of our network.
#[test]
fn the_probe_of_a_member_that_is_over_ends_with_it() {
    for claim in [
        Claim::Left(Age::default()),
        Claim::Failed(Metadata::default(), Age::default()),
    ] {
        let mut lone = Lone::new(quiet(), &[1, 1]);
        let start = lone.driver.deadline().unwrap();
        lone.effects.clear();
        lone.silence(start);
        let target = pings(&lone.effects)[0];
        let other = Member::new(5 - target.id.0, 0);
        // The end of the other member changes nothing.
        let mut same = Lone::new(quiet(), &[1, 1]);
        same.silence(start);
        same.receive(other, reports(other, 0, claim.clone()));
        lone.receive(other, reports(target, 0, claim));
        lone.effects.clear();
        let period = lone.driver.machine().config().period * 2;
        lone.silence(start + period);
        let asks = |lone: &Lone| {
            lone.effects.iter().any(|effect| {
                matches!(effect, Effect::Send { message, .. }
                    if message.body == (Body::PingRequest { target }))
            })
        };
        assert!(!asks(&lone));
        assert_eq!(lone.driver.machine().counters().failed_probes, 0);
        same.silence(start + period);
        assert_eq!(same.driver.machine().counters().failed_probes, 1);
    }
}

/// A host that knows that a node has failed for good saves the other nodes the wait.
#[test]
fn an_operator_ends_a_life_that_is_not_over_yet() {
    let mut ring = Ring::joined(3, &plain());
    let ended = Member::new(2, 7);
    ring.command(0, Command::Confirm(ended)).unwrap();
    assert_eq!(ring.deltas(0), [Delta::Confirmed(ended)]);
    // Once is enough.
    ring.command(0, Command::Confirm(ended)).unwrap();
    assert_eq!(ring.deltas(0), [Delta::Confirmed(ended)]);
    let until = ring.now + ring.nodes[0].machine().config().period * 4;
    ring.run_until(until, |node| node < 2, |_, to, _| to != ended.id);
    assert_eq!(ring.deltas(1), [Delta::Left(ended)]);
}

/// A node that still sends it may have missed our refutation, and perhaps no node passes it on any
/// more.
#[test]
fn an_old_suspicion_is_answered_by_the_word_that_refuted_it() {
    let mut lone = Lone::new(quiet(), &[1]);
    let (me, other) = (Member::new(1, 0), Member::new(2, 0));
    let ping = || {
        let digest = Digest::default();
        Message::bare(Body::Ping {
            digest,
            origin: None,
        })
    };
    let tells_of_us = |lone: &mut Lone| {
        lone.effects.clear();
        lone.receive(other, ping());
        lone.effects.iter().any(|effect| match effect {
            Effect::Send { message, .. } => {
                let of_us = |it: &Record| it.member == me && it.revision == 1;
                message.records.iter().any(of_us)
            }
            _ => false,
        })
    };
    lone.receive(other, reports(me, 0, suspect()));
    assert!(tells_of_us(&mut lone));
    for _ in 0..100 {
        lone.period(Some(other));
    }
    assert!(!tells_of_us(&mut lone), "passed on often enough");
    lone.receive(other, reports(me, 0, suspect()));
    assert!(tells_of_us(&mut lone));
    assert_eq!(lone.driver.machine().counters().refutations, 1);
}

fn reconnects(lone: &Lone) -> u64 {
    lone.driver.machine().counters().reconnects
}

/// The dead are probed periodically. A node that knows no other node probes one in every period.
#[test]
fn the_dead_are_probed_every_so_many_periods_and_by_a_lone_node_in_each() {
    let config = quiet()
        .with_reconnect_every(5)
        .with_suspicion(SuspicionLength::Fixed(1_000));
    let failed = || Claim::Failed(Metadata::default(), Age::default());
    let mut lone = Lone::new(config, &[1, 1]);
    let (living, dead) = (Member::new(2, 0), Member::new(3, 0));
    lone.receive(living, reports(dead, 0, failed()));
    // Earlier reconnects, before the member was dead, found no node to probe.
    lone.effects.clear();
    for _ in 0..50 {
        lone.period(None);
    }
    assert_eq!(reconnects(&lone), 10);
    let probed = pings(&lone.effects);
    assert_eq!(probed.iter().filter(|&&it| it == dead).count(), 10);
    lone.receive(dead, reports(living, 0, failed()));
    assert_eq!(lone.driver.machine().live(), 1);
    let before = reconnects(&lone);
    for _ in 0..50 {
        lone.period(None);
    }
    assert_eq!(reconnects(&lone) - before, 50);
}

/// While a node asks to be let in, only claims about its own number make it take another.
#[test]
fn a_joining_node_takes_another_number_for_its_own_sake_alone() {
    let mut ring = Ring::new(1, &plain());
    let seeds = vec![NodeId(5)];
    ring.command(0, Command::Join { seeds }).unwrap();
    let from = Member::new(5, 0);
    let known = |id, life| Input::Message {
        from,
        message: Message::bare(Body::IdTaken {
            life: Member::new(id, life),
        }),
    };
    let me = ring.nodes[0].machine().me();
    let refused = Err(selvedge_membership::Reject::NotJoined);
    assert_eq!(ring.step(0, known(9, 20)), refused);
    assert_eq!(ring.nodes[0].machine().me(), me);
    ring.step(0, known(0, 20)).unwrap();
    assert_eq!(ring.nodes[0].machine().me(), Member::new(0, 21));
    assert_eq!(ring.now, Time::ZERO);
}
