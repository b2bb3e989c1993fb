//! A probe that would carry no information is left out, and no other.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::unreachable,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::lone;

use lone::{Lone, pings, quiet};
use proptest::prelude::*;
use selvedge_core::{Effect, Member, NodeId};
use selvedge_membership::{Body, Claim, Config, Digest, Message, Metadata, Record, Selection};

fn suppressing() -> Config {
    quiet()
        .with_suppress_probes(true)
        .with_selection(Selection::BoundedMix { every: 1 })
}

fn ping() -> Message {
    let digest = Digest::default();
    Message::bare(Body::Ping {
        digest,
        origin: None,
    })
}

/// A node whose news has all been passed on.
fn calm(config: Config, members: u64) -> Lone {
    let mut lone = Lone::new(config, &vec![1; members as usize]);
    for _ in 0..100 {
        lone.period(None);
    }
    lone.effects.clear();
    lone
}

/// The digest on the latest probe.
fn shown_digest(lone: &Lone) -> Digest {
    let shown = lone.effects.iter().rev().find_map(|effect| match effect {
        Effect::Send { message, .. } => match message.body {
            Body::Ping { digest, .. } => Some(digest),
            _ => None,
        },
        _ => None,
    });
    shown.unwrap()
}

/// Messages of member 2 arrive in every period, of the others never: only they are probed.
#[test]
fn who_was_just_heard_from_is_not_probed() {
    let mut lone = calm(suppressing(), 4);
    lone.receive(Member::new(2, 0), ping());
    for _ in 0..100 {
        lone.period(Some(Member::new(2, 0)));
    }
    let probed = |id| {
        let pings = pings(&lone.effects);
        pings.iter().filter(|it| it.id == NodeId(id)).count()
    };
    assert_eq!(probed(2), 0);
    assert!((3..=5).all(|id| probed(id) == 25), "{:?}", lone.effects);
    assert_eq!(lone.driver.machine().counters().probes_suppressed, 25);
}

/// The same, but in every second period: a message of two periods ago does not count.
#[test]
fn what_was_heard_earlier_does_not_count() {
    let mut lone = calm(suppressing(), 1);
    for period in 0..100 {
        lone.period((period % 4 == 0).then_some(Member::new(2, 0)));
    }
    // Each answer makes the next probe needless, and so does each probe of the other.
    let probes = pings(&lone.effects).len();
    assert!((40..=50).contains(&probes), "{probes}");
}

proptest! {
    /// The promise of the bounded mix, with needless probes left out: a member that was not probed
    /// had sent a message.
    #[test]
    fn every_member_is_probed_or_heard_from_within_n_times_every_periods(
        members in 1_u64..9, every in 1_u16..5,
        pingers in proptest::collection::vec(0_u64..12, 40),
    ) {
        let selection = Selection::BoundedMix { every };
        let mut lone = calm(suppressing()
.with_selection(selection), members);
        let bound = members as usize * usize::from(every);
        // One period more: a message in the one before counts.
        let mut known = vec![0; members as usize];
        let mut pingers = pingers.into_iter().cycle();
        for period in 1..=3 * bound {
            lone.effects.clear();
            let pinger = pingers.next().filter(|&it| it < members);
            lone.period(pinger.map(|it| Member::new(it + 2, 0)));
            let probed = pings(&lone.effects);
            let received = pinger.into_iter().chain(probed.iter().map(|it| it.id.0 - 2));
            for member in received {
                known[member as usize] = period;
            }
            for (member, &last) in known.iter().enumerate() {
                prop_assert!(period - last <= bound + 1, "{member} at {period} of {bound}");
            }
        }
    }
}

#[test]
fn news_travel_and_doubts_are_settled_all_the_same() {
    let mut lone = calm(suppressing(), 1);
    let pinger = Member::new(2, 0);
    let mut message = ping();
    message.records.push(Record {
        member: Member::new(9, 0),
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    });
    lone.receive(pinger, message);
    lone.effects.clear();
    for _ in 0..4 {
        lone.period(Some(pinger));
    }
    assert!(pings(&lone.effects).contains(&pinger), "news wait");

    let mut lone = calm(suppressing(), 1);
    let mut message = ping();
    message.records.push(Record {
        member: pinger,
        revision: 0,
        claim: Claim::Suspect(Metadata::default()),
    });
    // It reports that suspicion of itself, which settles nothing; its own record at a higher
    // revision would.
    lone.receive(pinger, message);
    for _ in 0..30 {
        lone.effects.clear();
        lone.period(Some(pinger));
        assert_eq!(pings(&lone.effects), [pinger], "it has to refute");
        if lone.driver.machine().live() == 1 {
            return;
        }
    }
}

/// Two nodes that are far from all others are mostly probed by each other. They may both have
/// missed news, agree, and yet learn from a third node that they differ.
#[test]
fn agreement_with_a_neighbour_does_not_hide_a_difference() {
    let config = quiet().with_sync_after(4);
    let mut lone = calm(config, 3);
    lone.period(None);
    let mine = shown_digest(&lone);
    let agreeing = |lone: &mut Lone| {
        let body = Body::Ping {
            digest: mine,
            origin: None,
        };
        lone.receive(Member::new(3, 0), Message::bare(body));
    };
    let comparisons = |lone: &Lone| lone.driver.machine().counters().syncs;
    for _ in 0..20 {
        agreeing(&mut lone);
        lone.period(None);
    }
    assert_eq!(comparisons(&lone), 0);
    agreeing(&mut lone);
    lone.receive(Member::new(2, 0), ping());
    assert_eq!(
        comparisons(&lone),
        1,
        "one probe is enough after a long rest"
    );
    // The next comparison takes a rest, or a row, again.
    agreeing(&mut lone);
    lone.receive(Member::new(2, 0), ping());
    assert_eq!(comparisons(&lone), 1);
    for _ in 0..3 {
        lone.receive(Member::new(2, 0), ping());
    }
    assert_eq!(comparisons(&lone), 2, "four in a row are enough");
}
