//! Inputs that are refused, and inputs that are ignored.

use super::*;

#[test]
fn too_few_nodes_are_a_typed_error_and_then_an_event() {
    let mut alone = Mesh::with_lists(&[vec![], vec![]], Config::new(2, 0));
    let refused = alone.step(1, Input::Command(Command::Elect));
    assert_eq!(
        refused,
        Err(Reject::TooFew {
            known: 1,
            needed: 3
        })
    );
    // One more node is known, and knows no other.
    alone.notify(1, Delta::Joined(member(2)));
    alone.elect(1);
    alone.pass(Span::secs(3));
    let starved = |(_, event): &&(u64, Event)| {
        matches!(
            event,
            Event::Stalled {
                known: 2,
                needed: 3,
                ..
            }
        )
    };
    assert_eq!(alone.events.iter().filter(starved).count(), 1);
    assert!(alone.nodes[0].machine().is_electing());
    // It goes on asking, so a node that joins is enough, whichever of them learns of it.
    let mut more = Mesh::with_lists(&[vec![2], vec![], vec![]], Config::new(2, 0));
    more.elect(1);
    more.pass(Span::secs(1));
    more.notify(2, Delta::Joined(member(3)));
    more.pass(Span::secs(2));
    assert_eq!(more.leaders(), [Some(1); 3]);
}

#[test]
fn a_message_to_a_former_life_appoints_nobody() {
    let mut mesh = Mesh::new(2, Config::new(0, 0));
    let ballot = Ballot {
        epoch: 1,
        initiator: member(2),
        step: 1,
    };
    let from = member(2);
    let message = Message::Appoint {
        ballot,
        life: 7,
        no_majority: false,
    };
    mesh.step(1, Input::Message { from, message }).unwrap();
    assert_eq!(mesh.leader(1), None);
    assert_eq!(mesh.nodes[0].machine().counters().stale, 1);
}

#[test]
fn peers_that_misbehave_are_refused() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    let ballot = Ballot {
        epoch: 1,
        initiator: member(3),
        step: 1,
    };
    let mut refusal =
        |from: Member, message: Message| match mesh.step(1, Input::Message { from, message }) {
            Err(Reject::Misbehaviour(it)) => it,
            other => panic!("{other:?}"),
        };
    let notify = Message::Appoint {
        ballot,
        life: 0,
        no_majority: false,
    };
    let found = refusal(member(2), notify.clone());
    assert_eq!(found, Misbehaviour::Initiator(member(3)));
    let found = refusal(Member::new(1, 4), notify);
    assert_eq!(found, Misbehaviour::OwnId(Member::new(1, 4)));
    let claim = Message::Leader {
        ballot,
        leader: member(1),
        renewal: 0,
        lease: Span::ZERO,
        state: selvedge_celect::LeaderState::Leading,
        covered: [].into_iter().collect(),
    };
    assert_eq!(refusal(member(2), claim), Misbehaviour::NotAppointed);
    let feedback = |answers| Message::Feedback {
        ballot,
        answers,
        missing: 3,
    };
    let found = refusal(member(3), feedback(2));
    let (answers, missing) = (2, 3);
    assert_eq!(found, Misbehaviour::Feedback { answers, missing });
    let (from, message) = (member(3), feedback(3));
    assert_eq!(
        mesh.step(1, Input::Message { from, message }),
        Ok(()),
        "all"
    );
}

#[test]
fn settings_that_cannot_work_are_named() {
    const FINE: Config = Config::new(1, 1);
    assert_eq!(FINE.check(), Ok(()));
    let leased = FINE.with_lease(Some(Span::millis(3)));
    // If drift takes two thirds, the lease expires when its renewal is due.
    assert_eq!(leased.with_drift(666_666).check(), Ok(()));
    for (config, reports) in [
        (FINE.with_lowest(0), "lowest is 0"),
        (FINE.with_timeout(Span::ZERO), "timeout is 0 us"),
        (FINE.with_attempts(0), "attempts is 0"),
        (FINE.with_resend(Span::ZERO), "resend is 0 us"),
        (FINE.with_drift(1_000_000), "drift is 1000000 ppm"),
        (leased.with_drift(666_667), "drift is 666667 ppm"),
        (FINE.with_frame_budget(126), "frame_budget is 126 bytes"),
        (FINE.with_peer_limit(0), "peer_limit is 0"),
        (FINE.with_exclude_limit(0), "exclude_limit is 0"),
        (FINE.with_lease(Some(Span::millis(1))), "lease is 1000 us"),
        (leased.with_retries(0), "a lease needs acknowledgements"),
    ] {
        let refused = config.check().unwrap_err();
        let made = Celect::new(member(1), config, ById).map(drop);
        assert_eq!(made, Err(refused));
        let message = refused.to_string();
        assert!(message.starts_with(reports), "{message}");
    }
}

#[test]
fn a_tick_that_comes_late_does_nothing() {
    let mut mesh = Mesh::new(2, Config::new(0, 0));
    mesh.elect(2);
    mesh.pass(Span::secs(1));
    let before = mesh.nodes[1].machine().clone();
    for timer in [
        Timer::Answer,
        Timer::Watch,
        Timer::Start,
        Timer::Resend,
        Timer::Renew,
    ] {
        mesh.step(2, Input::Tick(timer)).unwrap();
    }
    assert_eq!(&before, mesh.nodes[1].machine());
    // A node that leads without a lease.
    let before = mesh.nodes[0].machine().clone();
    assert!(before.leads().is_some());
    for timer in [Timer::Renew, Timer::Lease, Timer::Expiry(0)] {
        mesh.step(1, Input::Tick(timer)).unwrap();
    }
    assert_eq!(&before, mesh.nodes[0].machine());
    assert!(mesh.wire.is_empty());
}
