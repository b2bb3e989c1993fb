//! A leader that is cut off, and its end.

use super::*;

#[test]
fn a_leader_that_is_cut_off_ends_before_those_who_heard_it_give_it_up() {
    let config = Config::new(1, 1).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    let ended = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (1, Event::Ended(_))))
    };
    let given_up = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (_, Event::LeaseExpired { .. })))
    };
    assert!(!ended(&mesh) && !given_up(&mesh), "it is renewed");
    mesh.cut.push(1);
    let mut order = Vec::new();
    for _ in 0..300 {
        mesh.pass(Span::millis(100));
        // The losses continue.
        order.push((ended(&mesh), given_up(&mesh)));
    }
    let first = |what: fn(&(bool, bool)) -> bool| order.iter().position(what).unwrap();
    assert!(first(|it| it.0) <= first(|it| it.1));
    assert!(first(|it| it.1) <= 95);
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// A leader whose list is empty before its lease expires, without acknowledgements.
#[test]
fn a_leader_that_believes_all_others_failed_is_not_renewed_by_nobody() {
    let config = Config::new(1, 1)
        .with_lease(Some(Span::secs(9)))
        .with_reelect(false);
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert!(mesh.nodes[0].machine().leads().is_some());
    mesh.cut.push(1);
    for id in 2..=3 {
        mesh.notify(1, Delta::Failed(member(id)));
    }
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    // With c = 0 a leader that knows no other node needs no acknowledgement.
    let mut alone = Mesh::new(1, config.with_missing_from(0));
    alone.elect(1);
    alone.pass(Span::secs(20));
    assert!(alone.nodes[0].machine().leads().is_some());
}

#[test]
fn a_lease_that_ran_out_is_renewed_by_the_leader_alone() {
    let config = Config::new(1, 1)
        .with_lease(Some(Span::secs(9)))
        .with_reelect(false);
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    // The leader's messages to 2 are lost for a while, and 3 still acknowledges.
    mesh.cut.push(2);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.leader(1), Some(1));
    mesh.notify(2, Delta::Suspected(member(1)));
    mesh.notify(2, Delta::Refuted(member(1)));
    assert_eq!(mesh.leader(2), None);
    mesh.cut.clear();
    mesh.events.clear();
    mesh.pass(Span::secs(4));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    // An event reports it, too.
    let again = |it: &(u64, Event)| matches!(it, (2, Event::Regained { leader, .. }) if *leader == member(1));
    assert!(mesh.events.iter().any(again), "{:?}", mesh.events);
}

/// Returns true if node 1 emits the end of its leadership within 30 s, with a call of `happens` every
/// second.
fn ends(mesh: &mut Mesh, mut happens: impl FnMut(&mut Mesh)) -> bool {
    for _ in 0..30 {
        mesh.pass(Span::secs(1));
        happens(mesh);
    }
    let is_end = |it: &(u64, Event)| matches!(it, (1, Event::Ended(_)));
    mesh.events.iter().any(is_end)
}

#[test]
fn a_leader_that_holds_all_others_failed_ends() {
    let leased = |c| Config::new(c, 0).with_lease(Some(Span::secs(9)));
    for (c, expected) in [(1, true), (0, false)] {
        let mut mesh = Mesh::new(3, leased(c));
        mesh.elect(3);
        mesh.pass(Span::secs(1));
        mesh.cut.push(1);
        mesh.notify(1, Delta::Failed(member(2)));
        mesh.notify(1, Delta::Failed(member(3)));
        assert_eq!(ends(&mut mesh, |_| ()), expected, "c = {c}");
    }
}

#[test]
fn one_who_acknowledges_twice_is_one() {
    let config = Config::new(2, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(4, config);
    mesh.elect(4);
    mesh.pass(Span::secs(1));
    mesh.cut.extend([3, 4]);
    let flaps = |mesh: &mut Mesh| {
        mesh.notify(1, Delta::Failed(member(2)));
        mesh.notify(1, Delta::Refuted(member(2)));
    };
    assert!(ends(&mut mesh, flaps));
}

/// c rises between two renewals, and all followers have acknowledged the last.
#[test]
fn a_leader_whom_all_acknowledge_outlasts_a_rise_of_c() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(5, config);
    mesh.elect(5);
    mesh.pass(Span::secs(10));
    let rises = Command::SetBounds {
        missing_from: 4,
        failures: 0,
    };
    mesh.command(1, rises);
    assert!(!ends(&mut mesh, |_| ()));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    // Four are needed from then on.
    mesh.cut.push(5);
    assert!(ends(&mut mesh, |_| ()));
}

/// Returns a mesh in which 1 leads, and does not know 3, which receives LEADER from 2.
fn forwarded() -> Mesh {
    let config = Config::new(1, 0)
        .with_lease(Some(Span::secs(9)))
        .with_reelect(false);
    let mut mesh = Mesh::with_lists(&[vec![2], vec![1, 3], vec![1, 2]], config);
    mesh.elect(2);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    mesh
}

#[test]
fn who_gave_a_leader_up_follows_a_later_renewal_that_is_passed_on_to_it() {
    let mut mesh = forwarded();
    mesh.cut.push(3);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leader(3), None);
    mesh.cut.clear();
    mesh.pass(Span::secs(4));
    assert_eq!(mesh.leader(3), Some(1));
}

/// A forwarded LEADER may be older than the failure of its leader.
#[test]
fn a_renewal_that_is_passed_on_does_not_bring_back_a_leader_that_failed() {
    let mut mesh = forwarded();
    let acknowledged = Rc::new(RefCell::new(0));
    let counted = Rc::clone(&acknowledged);
    mesh.fate = Box::new(move |(from, _, message): &Letter, _| {
        let is_received = matches!(message, Message::LeaderAck { .. });
        *counted.borrow_mut() += usize::from(is_received && *from == member(3));
        1
    });
    mesh.notify(3, Delta::Failed(member(1)));
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leader(3), None);
    assert_eq!(*acknowledged.borrow(), 0, "who acknowledges, follows");
    // The failure was false.
    mesh.notify(3, Delta::Refuted(member(1)));
    mesh.pass(Span::secs(4));
    assert_eq!(mesh.leader(3), Some(1));
    assert!(*acknowledged.borrow() > 0);
}

#[test]
fn a_leader_ends_sooner_than_its_followers_by_the_drift_of_clocks() {
    let config = Config::new(1, 0)
        .with_lease(Some(Span::secs(9)))
        .with_drift(300_000)
        .with_reelect(false);
    let mut mesh = Mesh::new(2, config);
    mesh.elect(2);
    mesh.pass(Span::secs(20));
    mesh.cut.push(1);
    let mut until = |is_over: fn(&(u64, Event)) -> bool| {
        let mut passed = Span::ZERO;
        while !mesh.events.iter().any(is_over) {
            mesh.pass(Span::millis(10));
            passed = passed + Span::millis(10);
        }
        passed
    };
    until(|it| matches!(it, (1, Event::Ended(_))));
    // Three tenths of 9 s.
    let later = until(|it| matches!(it, (2, Event::LeaseExpired { .. })));
    assert!(later >= Span::millis(2_690), "{later:?}");
}

/// Returns the time until which node 1 leads, in seconds from the beginning.
fn leads_until(mesh: &Mesh) -> Option<u64> {
    let until = mesh.nodes[0].machine().leads_until();
    until.map(|it| it.0 / 1_000_000)
}

#[test]
fn a_host_can_see_until_when_its_node_leads() {
    let leased = Config::new(1, 0)
        .with_lease(Some(Span::secs(9)))
        .with_drift(0);
    let mut mesh = Mesh::new(3, leased);
    assert_eq!(leads_until(&mesh), None);
    mesh.elect(3);
    // It is appointed, and no node has acknowledged that yet.
    while mesh.nodes[0].machine().leads().is_none() {
        let (from, to, message) = mesh.wire.remove(0);
        mesh.step(to.id.0, Input::Message { from, message })
            .unwrap();
    }
    assert_eq!(leads_until(&mesh), None);
    mesh.pass(Span::secs(2));
    assert_eq!(leads_until(&mesh), Some(9));
    mesh.pass(Span::secs(2));
    assert_eq!(leads_until(&mesh), Some(12), "renewed at 3 s");
    // Another election that it wins does not shorten its time.
    mesh.command(1, Command::Elect);
    while mesh.nodes[0].machine().is_electing() {
        let (from, to, message) = mesh.wire.remove(0);
        mesh.step(to.id.0, Input::Message { from, message })
            .unwrap();
    }
    assert_eq!(leads_until(&mesh), Some(12));
    mesh.pass(Span::secs(1));
    assert_eq!(leads_until(&mesh), Some(13));
    mesh.cut.push(1);
    mesh.pass(Span::secs(20));
    assert_eq!(leads_until(&mesh), None);
    // Without a lease the time is unlimited, and a follower has none.
    let mut other = Mesh::new(2, Config::new(0, 0));
    other.elect(2);
    other.pass(Span::secs(1));
    assert_eq!(leads_until(&other), Some(u64::MAX / 1_000_000));
    assert_eq!(other.nodes[1].machine().leads_until(), None);
}

/// Each acknowledgement arrives after the next renewal was sent.
#[test]
fn acknowledgements_that_are_later_than_the_next_renewal_count() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(3, config);
    let late = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&late);
    mesh.fate = Box::new(move |letter: &Letter, _| {
        let is_received = matches!(letter.2, Message::LeaderAck { .. });
        if is_received {
            noted.borrow_mut().push(letter.clone());
        }
        usize::from(!is_received)
    });
    mesh.elect(3);
    let mut before: Vec<Letter> = Vec::new();
    for _ in 0..10 {
        mesh.pass(Span::secs(4));
        for (from, to, message) in before {
            let input = Input::Message { from, message };
            mesh.step(to.id.0, input).unwrap();
        }
        before = late.take();
    }
    assert!(mesh.nodes[0].machine().leads().is_some());
}

/// An acknowledged renewal bounds the lease; a renewal that was sent to no node does not yet.
#[test]
fn a_renewal_that_nobody_was_told_of_counts_a_third_of_a_lease_later() {
    let config = Config::new(0, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(2, config);
    mesh.elect(2);
    mesh.pass(Span::secs(4));
    assert_eq!(leads_until(&mesh), Some(11));
    mesh.notify(1, Delta::Failed(member(2)));
    mesh.pass(Span::secs(3));
    assert_eq!(leads_until(&mesh), Some(11));
    // A late acknowledgement of an earlier renewal.
    let ballot = mesh.nodes[0].machine().leads().unwrap();
    mesh.notify(1, Delta::Refuted(member(2)));
    let (from, message) = (member(2), Message::LeaderAck { ballot, renewal: 1 });
    mesh.step(1, Input::Message { from, message }).unwrap();
    assert_eq!(leads_until(&mesh), Some(11));
}

#[test]
fn as_many_renewals_as_a_lease_has_are_on_their_way() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(2, config);
    mesh.elect(2);
    mesh.pass(Span::secs(1));
    mesh.cut.push(1);
    let expiries = |mesh: &Mesh| {
        let timers = mesh.nodes[0].timers();
        timers.filter(|it| matches!(it.0, Timer::Expiry(_))).count()
    };
    for sent in 1..4 {
        assert_eq!(expiries(&mesh), sent);
        mesh.step(1, Input::Tick(Timer::Renew)).unwrap();
    }
    assert_eq!(expiries(&mesh), 4);
    assert!(mesh.nodes[0].machine().leads().is_some());
    mesh.step(1, Input::Tick(Timer::Renew)).unwrap();
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    assert_eq!(expiries(&mesh), 0);
}

#[test]
fn a_leader_whose_lease_is_over_announces_itself_no_more() {
    let config = Config::new(1, 0)
        .with_lease(Some(Span::secs(9)))
        .with_retries(200)
        .with_reelect(false);
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(10));
    mesh.cut.push(1);
    mesh.pass(Span::secs(10));
    assert!(
        mesh.events
            .iter()
            .any(|it| matches!(it, (1, Event::Ended(_))))
    );
    let sent = mesh.unicasts;
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.unicasts, sent);
}

/// 1 has a lease of 9 s; by their own settings 2 would give it up after 1 s, and 3 never.
#[test]
fn all_take_the_lease_of_the_leader() {
    let mut mesh = Mesh::new(3, Config::new(1, 1));
    for (id, lease) in [
        (1, Some(Span::secs(9))),
        (2, Some(Span::secs(1))),
        (3, None),
    ] {
        let config = Config::new(1, 1).with_lease(lease);
        let lives = Celect::new(member(id), config, ById).unwrap();
        mesh.nodes[id as usize - 1] = Driver::new(lives);
        for other in (1..=3).filter(|&it| it != id) {
            mesh.notify(id, Delta::Joined(member(other)));
        }
    }
    mesh.elect(3);
    mesh.pass(Span::secs(60));
    let given_up = |mesh: &Mesh| -> Vec<u64> {
        let is_over = |it: &&(u64, Event)| matches!(it, (_, Event::LeaseExpired { .. }));
        mesh.events.iter().filter(is_over).map(|it| it.0).collect()
    };
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    assert!(given_up(&mesh).is_empty(), "it is renewed in time");
    // Its messages are lost from now on. 2 and 3 follow it until it has ended.
    mesh.cut.push(1);
    mesh.pass(Span::secs(5));
    assert!(mesh.nodes[0].machine().leads().is_some());
    assert!(given_up(&mesh).is_empty());
    mesh.pass(Span::secs(20));
    let mut gone = given_up(&mesh);
    gone.sort_unstable();
    assert_eq!(gone, [2, 3], "both, whatever theirs is");
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// The largest drift leaves a third of the lease, which is still longer than a round trip.
#[test]
fn with_every_drift_that_is_allowed_a_lease_is_renewed_before_it_is_over() {
    for (lease, drift) in [(9_000, 0), (9_000, 1_000), (9_000, 666_666), (3, 666_666)] {
        let config = Config::new(1, 1)
            .with_lease(Some(Span::millis(lease)))
            .with_drift(drift);
        let mut mesh = Mesh::new(3, config);
        mesh.elect(3);
        mesh.deliver();
        let due = |timer| mesh.nodes[0].timers().find(|it| it.0 == timer).unwrap().1;
        let (renewal, over) = (due(Timer::Renew), due(Timer::Expiry(0)));
        assert!(
            renewal.0 > 0 && renewal.0 * 3 <= over.0,
            "{renewal:?}, {over:?}"
        );
    }
}

/// 1 lists no other node, and 2, which lists it, elects it. With c = 1 every node may be missing from one
/// list.
#[test]
fn who_acknowledges_is_renewed_though_it_is_not_on_the_list_of_the_leader() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::with_lists(&[vec![], vec![1]], config);
    mesh.elect(2);
    assert!(!ends(&mut mesh, |_| ()), "{:?}", mesh.events);
    assert_eq!(mesh.leaders(), [Some(1); 2]);
    assert!(mesh.nodes[0].machine().leads_until().is_some());
    mesh.cut.push(2);
    assert!(ends(&mut mesh, |_| ()));
}

/// 1 does not list 3, which appoints it, follows it, and falls silent.
#[test]
fn who_is_not_listed_and_acknowledges_no_more_is_renewed_no_more() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::with_lists(&[vec![2], vec![1], vec![1, 2]], config);
    let notified = Rc::new(RefCell::new(0));
    let noted = Rc::clone(&notified);
    mesh.fate = Box::new(move |(from, to, message): &Letter, _| {
        let is_leader = matches!(message, Message::Leader { .. });
        *noted.borrow_mut() += u32::from(is_leader && (from.id.0, to.id.0) == (1, 3));
        1
    });
    mesh.elect(3);
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    assert!(notified.take() > 15, "one each third of the lease");
    mesh.cut.push(3);
    mesh.pass(Span::secs(15));
    assert!(notified.take() > 0);
    mesh.pass(Span::secs(60));
    assert_eq!(notified.take(), 0);
    assert_eq!(mesh.leader(1), Some(1), "2 acknowledges");
    let mut expiries = mesh.nodes[0].timers().filter_map(|(timer, _)| match timer {
        Timer::Expiry(slot) => Some(slot),
        _ => None,
    });
    assert!(expiries.all(|slot| slot < 4), "a renewal's number modulo 4");
}

/// An acknowledgement of an earlier election: its sender need not know the present leader.
#[test]
fn who_heard_of_a_former_election_does_not_renew_the_lease_of_this_one() {
    let leased = Config::new(1, 0)
        .with_lease(Some(Span::secs(9)))
        .with_drift(0);
    let mut mesh = Mesh::new(3, leased);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    let former = mesh.nodes[0].machine().leads().unwrap();
    mesh.elect(1);
    // All receive LEADER, and no acknowledgement arrives.
    mesh.fate = Box::new(|(_, to, message), _| {
        let is_received = to.id.0 == 1 && matches!(message, Message::LeaderAck { .. });
        usize::from(!is_received)
    });
    mesh.pass(Span::secs(1));
    assert_ne!(mesh.nodes[0].machine().leads(), Some(former));
    let before = leads_until(&mesh);
    assert_eq!(before, Some(9));
    for renewal in 0..4 {
        let (from, ballot) = (member(2), former);
        let message = Message::LeaderAck { ballot, renewal };
        mesh.step(1, Input::Message { from, message }).unwrap();
    }
    assert_eq!(leads_until(&mesh), before);
    // An acknowledgement by the present ballot counts.
    let (from, ballot) = (member(2), mesh.nodes[0].machine().leads().unwrap());
    let message = Message::LeaderAck { ballot, renewal: 0 };
    mesh.step(1, Input::Message { from, message }).unwrap();
    assert_eq!(leads_until(&mesh), Some(10));
}

/// With c = 0, a leader that notifies no node needs no acknowledgement; a leader that notifies any
/// needs one.
#[test]
fn a_leader_that_tells_somebody_needs_one_that_heard_it() {
    let config = Config::new(0, 0)
        .with_lease(Some(Span::secs(9)))
        .with_drift(0);
    let mut alone = Mesh::new(1, config);
    alone.elect(1);
    assert_eq!(leads_until(&alone), Some(9));

    let mut mesh = Mesh::new(2, config);
    mesh.fate =
        Box::new(|(_, _, message), _| usize::from(!matches!(message, Message::LeaderAck { .. })));
    mesh.elect(2);
    mesh.pass(Span::secs(1));
    assert!(mesh.nodes[0].machine().leads().is_some());
    assert_eq!(leads_until(&mesh), None);
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.nodes[0].machine().leads(), None);
}

/// A tick of a timer that is no longer armed ends nothing.
#[test]
fn a_renewal_that_is_not_on_its_way_does_not_expire() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(4));
    let leads = mesh.nodes[0].machine().leads();
    assert!(leads.is_some());
    let _taken = mesh.step(1, Input::Tick(Timer::Expiry(7))).is_ok();
    assert_eq!(mesh.nodes[0].machine().leads(), leads);
}
