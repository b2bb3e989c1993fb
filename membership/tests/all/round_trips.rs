//! Which acknowledgements count as measurements.

use crate::lone::{Lone, pings, quiet};

use selvedge_core::{Member, NodeId, Span, Time};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, Key, Message, Metadata, Record, SuspicionLength,
};

const OTHER: Member = Member::new(2, 0);

fn config() -> Config {
    quiet()
        .with_jitter(Span::ZERO)
        .with_suspicion(SuspicionLength::Fixed(1_000))
        .with_round_trip_unit(Some(Config::ROUND_TRIP_UNIT))
}

fn ack() -> Message {
    Message::bare(Body::Ack { origin: None })
}

/// A node with one other, whose distance the host has not set.
fn pair(config: Config) -> Lone {
    let mut lone = Lone::new(config, &[]);
    lone.receive(OTHER, crate::lone::says_that_it_lives(2));
    lone
}

/// Begins the next period and its probe; returns its time.
fn probe(lone: &mut Lone) -> Time {
    loop {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        let probed = pings(&lone.effects);
        for &third in probed.iter().filter(|&&it| it != OTHER) {
            lone.receive_at(now + Span::millis(2), third, ack());
        }
        if probed.contains(&OTHER) {
            return now;
        }
    }
}

fn measured(lone: &Lone) -> Option<u64> {
    let view = lone.driver.machine().member(OTHER.id).unwrap();
    view.round_trip.map(|it| it.0 / 1_000)
}

fn answer_after(lone: &mut Lone, sent: Time, millis: u64) {
    lone.receive_at(sent + Span::millis(millis), OTHER, ack());
}

#[test]
fn the_first_acknowledgement_of_a_probe_counts_alone() {
    let mut lone = pair(config());
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), Some(80));
    for copy in 81..100 {
        answer_after(&mut lone, sent, copy);
    }
    assert_eq!(measured(&lone), Some(80));
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 160);
    assert_eq!(measured(&lone), Some(90));
}

/// A message that is no answer shows that its sender lives, but not how far it is.
#[test]
fn other_messages_do_not_count() {
    let me = Member::new(1, 0);
    for body in [
        Body::Unlucky,
        Body::RelayedAck { target: OTHER },
        Body::Ack { origin: Some(me) },
        Body::PingRequest { target: me },
    ] {
        let mut lone = pair(config());
        let sent = probe(&mut lone);
        let message = Message::bare(body);
        lone.receive_at(sent + Span::millis(10), OTHER, message);
        assert_eq!(measured(&lone), None);
        answer_after(&mut lone, sent, 80);
        assert_eq!(measured(&lone), Some(80));
    }
}

#[test]
fn another_member_or_life_does_not_count() {
    for from in [Member::new(2, 1), Member::new(3, 0)] {
        let mut lone = pair(config());
        lone.receive(Member::new(3, 0), crate::lone::says_that_it_lives(3));
        let sent = probe(&mut lone);
        lone.receive_at(sent + Span::millis(10), from, ack());
        assert_eq!(measured(&lone), None);
        answer_after(&mut lone, sent, 80);
        assert_eq!(measured(&lone), Some(80));
    }
}

/// Its ping may have been answered by another message, and the next probe be under way.
#[test]
fn a_late_acknowledgement_does_not_count_for_the_next_probe() {
    let mut lone = pair(config());
    let sent = probe(&mut lone);
    lone.receive_at(sent + Span::millis(10), OTHER, Message::bare(Body::Unlucky));
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 1);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), None);
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), Some(80));
}

/// It may come in a period in which that member is not probed.
#[test]
fn after_a_late_acknowledgement_the_next_one_counts() {
    let mut lone = pair(config().with_reconnect_every(0));
    let sent = probe(&mut lone);
    lone.receive_at(sent + Span::millis(10), OTHER, Message::bare(Body::Unlucky));
    let gone = Member::new(3, 0);
    lone.receive(gone, crate::lone::says_that_it_lives(3));
    loop {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        if pings(&lone.effects) == [gone] {
            lone.receive_at(now + Span::millis(1), OTHER, ack());
            lone.receive_at(now + Span::millis(2), gone, ack());
            break;
        }
        lone.receive_at(now + Span::millis(1), OTHER, Message::bare(Body::Unlucky));
    }
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), Some(80));
}

/// A report that it failed came meanwhile, so it is pinged again. The first ping may be lost.
#[test]
fn the_answer_to_a_second_ping_does_not_count() {
    let mut lone = pair(config());
    let third = Member::new(3, 0);
    lone.receive(third, crate::lone::says_that_it_lives(3));
    let sent = probe(&mut lone);
    let mut page = Message::bare(Body::Records {
        first: Key(0),
        last: Key(u64::MAX),
        next: None,
        exchange: false,
    });
    page.records.push(Record {
        member: OTHER,
        revision: 0,
        claim: Claim::Failed(Metadata::default(), Age::default()),
    });
    lone.effects.clear();
    lone.receive_at(sent + Span::millis(500), third, page);
    assert_eq!(pings(&lone.effects), [OTHER]);
    answer_after(&mut lone, sent, 580);
    assert_eq!(measured(&lone), None);
}

/// The cause may be that this node is slow.
#[test]
fn a_node_whose_probes_fail_measures_nothing() {
    let mut lone = pair(config());
    let third = Member::new(3, 0);
    lone.receive(third, crate::lone::says_that_it_lives(3));
    loop {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        let has_failed = lone.driver.machine().counters().failed_probes > 0;
        for target in pings(&lone.effects) {
            if target == OTHER {
                let message = match has_failed {
                    true => ack(),
                    false => Message::bare(Body::Unlucky),
                };
                lone.receive_at(now + Span::millis(80), OTHER, message);
            }
        }
        if has_failed && pings(&lone.effects).contains(&OTHER) {
            break;
        }
    }
    assert_eq!(measured(&lone), None);
}

/// A member that did not answer is asked again, and the two answers cannot be told apart.
#[test]
fn after_a_failed_probe_nothing_counts_until_one_succeeds() {
    let mut lone = pair(config());
    probe(&mut lone);
    let sent = probe(&mut lone);
    assert_eq!(lone.driver.machine().counters().failed_probes, 1);
    answer_after(&mut lone, sent, 5);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), None);
    // Its timeouts are longer still.
    let sent = probe(&mut lone);
    answer_after(&mut lone, sent, 80);
    assert_eq!(measured(&lone), Some(80));
}

#[test]
fn the_host_s_distance_wins() {
    let mut lone = Lone::new(config(), &[3, 3]);
    for distance in [1, 7] {
        let id = OTHER.id;
        lone.command(Command::SetDistance { id, distance });
        let shares = lone.shares(2);
        let sent = probe(&mut lone);
        answer_after(&mut lone, sent, 80);
        assert_eq!(lone.shares(2), shares);
    }
    assert_eq!(measured(&lone), Some(80), "it is measured nevertheless");
}

#[test]
fn a_host_may_switch_it_on_and_off() {
    let mut lone = pair(config().with_round_trip_unit(None));
    let switch = |lone: &mut Lone, unit| {
        let config = config().with_round_trip_unit(unit);
        lone.command(Command::SetConfig(Box::new(config)));
        let sent = probe(lone);
        answer_after(lone, sent, 80);
        measured(lone)
    };
    assert_eq!(switch(&mut lone, None), None);
    assert_eq!(switch(&mut lone, Some(Span::millis(5))), Some(80));
    let weight = lone.driver.machine().member(OTHER.id).unwrap().share();
    assert_eq!(switch(&mut lone, None), Some(80));
    assert_eq!(
        lone.driver.machine().member(OTHER.id).unwrap().share(),
        weight
    );
}

/// The round trips stay as they are, so that no answer would change a weight.
#[test]
fn another_unit_or_exponent_weighs_the_measured_members_anew() {
    let config = config();
    let mut lone = Lone::new(config.clone(), &[3]);
    for id in 3..5 {
        lone.receive(Member::new(id, 0), crate::lone::says_that_it_lives(id));
    }
    // Node 2 has the host's distance, node 3 is at 20 ms and node 4 at 80 ms.
    for _ in 0..500 {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        for target in pings(&lone.effects) {
            let millis = [1, 20, 80][target.id.0 as usize - 2];
            lone.receive_at(now + Span::millis(millis), target, ack());
        }
    }
    let weights = |lone: &Lone| {
        let weight = |id| lone.driver.machine().member(NodeId(id)).unwrap().share().0;
        [2, 3, 4].map(weight)
    };
    let [set, near, far] = weights(&lone);
    assert_eq!((near, far), ((1 << 40) / 64, (1 << 40) / 4_096));
    for (unit, exponent, near, far) in [
        (20, 3, 1 << 40, (1 << 40) / 64),
        (20, 1, 1 << 40, (1 << 40) / 4),
        (80, 1, 1 << 40, 1 << 40),
        (5, 3, (1 << 40) / 64, (1 << 40) / 4_096),
    ] {
        let config = config.clone().with_exponent(exponent);
        let unit = Some(Span::millis(unit));
        let config = config.with_round_trip_unit(unit);
        lone.command(Command::SetConfig(Box::new(config)));
        assert_eq!(weights(&lone), [set, near, far], "{unit:?}, {exponent}");
    }
    // Without a unit nothing is measured, and weights stay.
    let without = config.with_round_trip_unit(None).with_exponent(1);
    lone.command(Command::SetConfig(Box::new(without)));
    assert_eq!(weights(&lone), [set, near, far]);
}

#[test]
fn a_unit_is_from_a_microsecond_to_a_period() {
    let check = |unit| config().with_round_trip_unit(Some(unit)).check().is_ok();
    let period = config().period;
    let units = [Span::ZERO, Span(1), period, Span(period.0 + 1)];
    assert_eq!(units.map(check), [false, true, true, false]);
}

/// Neighbours receive the report of a node that is seldom probed.
#[test]
fn the_neighbours_are_the_members_within_the_unit_or_the_nearest_one() {
    for (millis, neighbours) in [([1, 4, 80, 81], vec![2, 3]), ([90, 160, 80, 200], vec![4])] {
        let mut lone = Lone::new(config(), &[]);
        for id in 2..6 {
            lone.receive(Member::new(id, 0), crate::lone::says_that_it_lives(id));
        }
        for _ in 0..600 {
            let now = lone.driver.deadline().unwrap();
            lone.silence(now);
            for target in pings(&lone.effects) {
                let millis = millis[target.id.0 as usize - 2];
                lone.receive_at(now + Span::millis(millis), target, ack());
            }
            lone.effects.clear();
        }
        for _ in 0..10 {
            let now = lone.driver.deadline().unwrap();
            lone.silence(now);
        }
        let mut reported = lone.reported_to();
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(reported, neighbours);
    }
}
