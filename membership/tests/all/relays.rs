//! The relays of a probe where distances are measured: a second path to the target.

use std::collections::BTreeMap;

use crate::lone::{Lone, pings, quiet, says_that_it_lives};
use crate::sites::{PERIOD, Sites, measured, three};

use selvedge_core::{Delta, Effect, Member, Span};
use selvedge_membership::{Body, Config, Event, Membership, Message};

/// The members that a lone node has: half of them within the unit.
const NEAR: core::ops::Range<u64> = 2..8;
const FAR: core::ops::Range<u64> = 8..14;

/// The numbers of suspicions and of failures that all nodes of three sites report in `periods`
/// periods, while two sites reach each other through members of the third one only.
fn behind_a_cut(seed: u64, config: &Config, periods: u64) -> [usize; 2] {
    let mut sites = Sites::joined(seed, &three(), config);
    sites.run(PERIOD * 300);
    sites.faults.cut = Some([0, 1]);
    sites.deltas.clear();
    sites.run(PERIOD * periods);
    let count = |is_it: fn(&Delta) -> bool| sites.deltas.iter().filter(|it| is_it(&it.2)).count();
    [
        count(|it| matches!(it, Delta::Suspected(_))),
        count(|it| matches!(it, Delta::Failed(_))),
    ]
}

/// The other nodes of a site share the path that is broken.
#[test]
fn members_behind_a_broken_link_are_hardly_ever_declared_failed() {
    let reported = |config: &Config| {
        let of = |seed| behind_a_cut(seed, config, 500);
        (0..8)
            .map(of)
            .fold([0, 0], |all, it| [all[0] + it[0], all[1] + it[1]])
    };
    let found = reported(&measured());
    let uniform = reported(&measured().with_round_trip_unit(None));
    println!("suspicions and failures, seeds 0 to 7: {found:?}, uniform {uniform:?}");
    // One event is reported by up to 14 nodes.
    assert!(found[1] <= 14, "{found:?}");
    assert!(
        found[0] < uniform[0],
        "fewer probes go over the broken link"
    );
}

/// The relays that are asked to ping this member.
fn relays_for(effects: &[Effect<Membership>], member: Member) -> Vec<u64> {
    let relay = |effect: &Effect<Membership>| match effect {
        Effect::Send { to, message } => match message.body {
            Body::PingRequest { target } if target == member => Some(to.id.0),
            _ => None,
        },
        _ => None,
    };
    effects.iter().filter_map(relay).collect()
}

/// The members that were asked to ping a target that does not answer in time, once for each probe
/// of a near one and of a far one.
fn asked(config: Config) -> [Vec<Vec<u64>>; 2] {
    let mut lone = Lone::new(config, &[]);
    for id in NEAR.chain(FAR) {
        lone.receive(Member::new(id, 0), says_that_it_lives(id));
    }
    let mut asked = [Vec::new(), Vec::new()];
    for period in 0..4_000 {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        let Some(&target) = pings(&lone.effects).first() else {
            continue;
        };
        let is_far = FAR.contains(&target.id.0);
        if period < 1_000 {
            let round_trip = Span::millis(if is_far { 80 } else { 2 });
            let ack = Message::bare(Body::Ack { origin: None });
            lone.receive_at(now + round_trip, target, ack);
            continue;
        }
        lone.effects.clear();
        let overdue = lone.driver.deadline().unwrap();
        lone.silence(overdue);
        let relays = relays_for(&lone.effects, target);
        asked[usize::from(is_far)].push(relays);
        let sign = Message::bare(Body::Unlucky);
        lone.receive_at(overdue + Span::millis(1), target, sign);
    }
    asked
}

/// The share of far members among these.
fn far_share<'a>(relays: impl Iterator<Item = &'a u64>) -> f64 {
    let (far, all) = relays.fold((0, 0), |(far, all), it| {
        (far + u32::from(FAR.contains(it)), all + 1)
    });
    f64::from(far) / f64::from(all)
}

#[test]
fn the_last_relay_for_a_near_target_and_all_for_a_far_one_are_drawn_alike() {
    let config = quiet()
        .with_jitter(Span::ZERO)
        .with_active(None)
        .with_round_trip_unit(Some(Config::ROUND_TRIP_UNIT));
    let [near, far] = asked(config.clone());
    assert!(near.len() > 2_000 && far.len() > 100);
    for relays in near.iter().chain(&far) {
        let counts = relays.iter().fold(BTreeMap::new(), |mut counts, it| {
            *counts.entry(it).or_insert(0) += 1;
            counts
        });
        assert_eq!(counts.len(), 3, "three different ones: {relays:?}");
    }
    let by_weight = far_share(near.iter().flat_map(|it| &it[..2]));
    assert!(by_weight < 0.01, "{by_weight}");
    // Two near ones and the target are not among the last one's 9.
    let last = far_share(near.iter().map(|it| &it[2]));
    assert!((last - 6.0 / 9.0).abs() < 0.05, "{last}");
    let of_far = far_share(far.iter().flatten());
    assert!((of_far - 5.0 / 11.0).abs() < 0.1, "{of_far}");

    let [near, _] = asked(config.clone().with_relays(1));
    let only = far_share(near.iter().flatten());
    assert!((only - 6.0 / 11.0).abs() < 0.05, "{only}");

    let [near, far] = asked(config.with_relays(0));
    assert!(near.iter().chain(&far).all(Vec::is_empty));
}

/// Messages that go by weight stay near, so that its refutation would come too late.
#[test]
fn relays_bring_a_suspicion_to_the_suspect_where_distances_are_measured() {
    for (unit, requests) in [(Some(Config::ROUND_TRIP_UNIT), 3), (None, 0)] {
        let mut lone = Lone::new(quiet().with_round_trip_unit(unit), &[]);
        for id in NEAR {
            lone.receive(Member::new(id, 0), says_that_it_lives(id));
        }
        let suspect = loop {
            lone.effects.clear();
            let now = lone.driver.deadline().unwrap();
            lone.silence(now);
            let suspect = lone.effects.iter().find_map(|effect| match effect {
                Effect::Event(Event::Changed(Delta::Suspected(suspect))) => Some(*suspect),
                _ => None,
            });
            if let Some(suspect) = suspect {
                break suspect;
            }
        };
        assert_eq!(relays_for(&lone.effects, suspect).len(), requests);
        let knows = |effect: &Effect<Membership>| match effect {
            Effect::Send { message, .. } => message.records.iter().any(|it| it.member == suspect),
            _ => false,
        };
        let sent = lone.effects.iter().filter(|it| knows(it)).count();
        assert!(sent >= requests, "the news goes with the requests");
    }
}
