//! The claims that a node believes, on both sides of each limit.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::lone;

use lone::{Lone, pings, quiet};
use selvedge_core::{Effect, Member, NodeId};
use selvedge_membership::{Age, Body, Claim, Command, Counters, Message, Metadata, Record, Status};

/// The distance by which a reported number may be ahead without being taken for a lie.
const LEAP: u32 = 1 << 20;

fn alive() -> Claim {
    Claim::Alive(Metadata::default())
}

fn suspect() -> Claim {
    Claim::Suspect(Metadata::default())
}

fn failed() -> Claim {
    Claim::Failed(Metadata::default(), Age::default())
}

fn left() -> Claim {
    Claim::Left(Age::default())
}

/// Node 1 with neighbours 2 to 9, each of which may make eight claims in a period.
fn node() -> Lone {
    let config = quiet().with_hearsay_limit(8);
    Lone::new(config, &[1; 8])
}

/// Sends a claim of member `from` about `about`.
fn notify(lone: &mut Lone, from: u64, about: Member, revision: u32, claim: Claim) {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        member: about,
        revision,
        claim,
    });
    lone.receive(Member::new(from, 0), message);
}

fn counters(lone: &Lone) -> &Counters {
    lone.driver.machine().counters()
}

fn incarnation(lone: &Lone) -> u32 {
    lone.driver.machine().me().incarnation.0
}

fn revision(lone: &Lone, id: u64) -> u32 {
    lone.driver.machine().member(NodeId(id)).unwrap().revision
}

fn status(lone: &Lone, id: u64) -> Status {
    lone.driver.machine().member(NodeId(id)).unwrap().status
}

#[test]
fn a_revision_is_believed_of_others_up_to_a_leap() {
    let mut lone = node();
    notify(&mut lone, 2, Member::new(3, 0), LEAP + 1, alive());
    assert_eq!(
        (revision(&lone, 3), counters(&lone).hearsay_refused),
        (0, 1)
    );
    notify(&mut lone, 2, Member::new(3, 0), LEAP, alive());
    assert_eq!(
        (revision(&lone, 3), counters(&lone).hearsay_refused),
        (LEAP, 1)
    );
    // A member may claim anything about itself.
    notify(&mut lone, 3, Member::new(3, 0), 3 * LEAP, alive());
    assert_eq!(revision(&lone, 3), 3 * LEAP);
}

/// Few ends are believed of members that may have failed in a partition, and fewer of live members.
#[test]
fn an_end_costs_half_an_allowance_of_the_live_and_one_of_the_failed() {
    let mut lone = node();
    for id in [7, 8, 9] {
        notify(&mut lone, 3, Member::new(id, 0), 0, failed());
    }
    for id in [4, 7, 8, 9, 5] {
        notify(&mut lone, 2, Member::new(id, 0), 0, left());
    }
    assert_eq!([4, 7, 8, 9].map(|id| status(&lone, id)), [Status::Left; 4]);
    assert_eq!(status(&lone, 5), Status::Alive, "one is left of eight");
}

#[test]
fn a_node_gives_way_to_another_life_once_a_period() {
    let mut lone = node();
    notify(&mut lone, 2, Member::new(1, 1), 0, alive());
    assert_eq!(
        (incarnation(&lone), counters(&lone).hearsay_refused),
        (2, 0)
    );
    notify(&mut lone, 2, Member::new(1, 3), 0, alive());
    assert_eq!(
        (incarnation(&lone), counters(&lone).hearsay_refused),
        (2, 1)
    );
    lone.period(None);
    notify(&mut lone, 2, Member::new(1, 3), 0, alive());
    assert_eq!(
        (incarnation(&lone), counters(&lone).hearsay_refused),
        (4, 1)
    );

    let mut trusting = Lone::new(quiet(), &[1]);
    for life in [1, 3] {
        notify(&mut trusting, 2, Member::new(1, life), 0, alive());
        assert_eq!(incarnation(&trusting), life + 1);
    }
}

/// A node that missed one of two leaps could not compare the lives.
#[test]
fn a_second_leap_waits_until_the_first_has_reached_all() {
    let mut lone = node();
    let tell_of_a_life = |lone: &mut Lone, ahead: u32| {
        let life = incarnation(lone) + ahead;
        notify(lone, 2, Member::new(1, life), 0, alive());
        incarnation(lone) == life + 1
    };
    // A move that is no leap need not wait.
    assert!(tell_of_a_life(&mut lone, LEAP));
    lone.period(None);
    assert!(tell_of_a_life(&mut lone, LEAP + 1));
    let mut periods = 0;
    loop {
        lone.period(None);
        periods += 1;
        if tell_of_a_life(&mut lone, LEAP + 1) {
            break;
        }
        assert!(periods < 100, "never again");
    }
    // A suspicion among nine, within which news have reached all.
    assert_eq!(periods, 3 * 3);
}

/// A suspicion of a revision that we cannot have sent is about another life under our number.
#[test]
fn a_claim_far_above_our_own_revision_is_given_way_to_and_a_near_one_refuted() {
    for claim in [suspect(), failed()] {
        let mut lone = node();
        notify(&mut lone, 2, Member::new(1, 0), LEAP, claim.clone());
        assert_eq!((incarnation(&lone), revision(&lone, 1)), (0, LEAP + 1));
        assert_eq!(counters(&lone).refutations, 1);

        let mut lone = node();
        notify(&mut lone, 2, Member::new(1, 0), LEAP + 1, claim);
        assert_eq!((incarnation(&lone), revision(&lone, 1)), (1, 0));
        assert_eq!(counters(&lone).refutations, 0);
    }
}

/// The claim that a node has a later life is for that node, and as long as it stays.
#[test]
fn the_later_life_of_another_is_nothing_to_us() {
    let mut lone = node();
    let known = |id, life| {
        Message::bare(Body::IdTaken {
            life: Member::new(id, life),
        })
    };
    lone.receive(Member::new(2, 0), known(3, 5));
    assert_eq!(counters(&lone).identity_changes, 0);
    lone.receive(Member::new(2, 0), known(1, 5));
    assert_eq!(incarnation(&lone), 6);
    lone.command(Command::Leave);
    lone.receive(Member::new(2, 0), known(1, 9));
    assert_eq!(incarnation(&lone), 6);
}

/// The member that is failed on another list is asked, and learns why.
#[test]
fn who_is_failed_on_another_list_hears_of_it() {
    let mut lone = node();
    let body = Body::Records {
        first: selvedge_membership::Key(0),
        last: selvedge_membership::Key(u64::MAX),
        next: None,
        exchange: false,
    };
    let mut page = Message::bare(body);
    let member = Member::new(3, 0);
    page.records.push(Record {
        member,
        revision: 0,
        claim: failed(),
    });
    lone.effects.clear();
    lone.receive(Member::new(2, 0), page);
    assert_eq!(status(&lone, 3), Status::Alive);
    assert_eq!(pings(&lone.effects), [member]);
    let notified = lone.effects.iter().find_map(|effect| match effect {
        Effect::Send { to, message } if *to == member => message.records.first(),
        _ => None,
    });
    assert_eq!(
        notified.map(|it| (it.member, it.claim.clone())),
        Some((member, failed()))
    );
}
