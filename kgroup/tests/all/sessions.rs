//! Sessions of maps on whole nodes: entries go when their owner has failed or left, and stay while groups move.

use selvedge_core::{Delta, Sha256Sortition, Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{
    Action, Operation, SessionId, Store, StoreCommand, StoreEvent, Stored, Transaction,
};
use selvedge_kgroup::{Command, Event, GroupState};
use selvedge_sim::network::Link;

use crate::building::Building;
use crate::durable::image;

const TTL: Span = Span::secs(5);
const OWNER: usize = 6;

fn map() -> GroupId {
    GroupId::map("doors", &Sha256Sortition)
}

fn ask(house: &mut Building, at: usize, command: StoreCommand) {
    let command = Command::Map {
        map: map(),
        command,
    };
    house.net.command(at, command).unwrap();
}

fn change(house: &mut Building, at: usize, ticket: u64, operation: Operation) -> Stored {
    ask(house, at, StoreCommand::Change { ticket, operation });
    house.run(Span::secs(3));
    let answers = reports(house, at).filter_map(|it| match it {
        StoreEvent::Changed {
            ticket: found,
            stored,
        } if *found == ticket => Some(*stored),
        _ => None,
    });
    answers.last().unwrap()
}

fn reports(house: &Building, at: usize) -> impl Iterator<Item = &StoreEvent> {
    house.events.iter().filter_map(move |it| match it {
        (_, node, Event::Map { event, .. }) if *node == at => Some(event),
        _ => None,
    })
}

/// The latest state of the map at a node that is up.
fn held(house: &Building) -> &Store {
    let all = house.net.machines().filter(|it| house.net.is_up(it.0));
    let all = all.filter_map(|(_, node)| {
        let version = node.groups().replica(map())?.version();
        match node.held(map())? {
            GroupState::Map(store) => Some((version, store)),
            _ => None,
        }
    });
    all.max_by_key(|it| it.0).unwrap().1
}

/// The time until which the node knows that its session lives.
fn until(house: &Building, at: usize, session: SessionId) -> Time {
    let kept = reports(house, at).filter_map(|it| match it {
        StoreEvent::SessionKept {
            session: kept,
            until,
        } if *kept == session => Some(*until),
        _ => None,
    });
    kept.last().unwrap()
}

/// A building where a node owns an entry, and another one watches all entries.
fn owned() -> (Building, SessionId) {
    owned_by(OWNER)
}

fn owned_by(owner: usize) -> (Building, SessionId) {
    let mut house = Building::new(21, 9, 2, 1, Link::default(), []);
    house.run(Span::secs(3));
    let watch = StoreCommand::WatchPrefix {
        ticket: 1,
        prefix: "front/".into(),
        since: 0,
    };
    ask(&mut house, 0, watch);
    let begun = change(&mut house, owner, 2, Operation::begin(TTL));
    let Stored::Begun { session, .. } = begun else {
        panic!("{begun:?}");
    };
    let mut transaction = Transaction::default();
    transaction.then.push(Action::Put {
        key: "front/door".into(),
        value: [1].into_iter().collect(),
        owner: Some(session.into()),
    });
    let put = change(&mut house, owner, 3, Operation::Transact(transaction));
    assert_eq!(put, Stored::Done { version: 1 });
    (house, session)
}

fn has_entry(house: &Building) -> bool {
    held(house).get("front/door").is_some()
}

/// The last report of the entry to the node that watches.
fn watched(house: &Building) -> Option<bool> {
    let changes = reports(house, 0).filter_map(|it| match it {
        StoreEvent::PrefixChanged { changes, .. } => Some(changes),
        _ => None,
    });
    changes.flatten().last().map(|it| it.entry.is_some())
}

#[test]
fn an_owned_entry_stays_while_leaders_fail_and_groups_move() {
    let (mut house, session) = owned();
    for epoch in 2..8 {
        let leader = house.leader(map())[0];
        if epoch % 2 == 0 && leader != OWNER && leader != 0 {
            house.kill(leader);
            house.run(Span::secs(10));
            house.revive(leader);
        }
        for at in 0..9 {
            house.net.command(at, Command::SetEpoch(epoch)).unwrap();
        }
        house.run(Span::secs(15));
        assert!(has_entry(&house), "epoch {epoch}");
        assert!(
            until(&house, OWNER, session) > house.net.now(),
            "epoch {epoch}"
        );
    }
    assert_eq!(watched(&house), Some(true));
}

#[test]
fn an_owned_entry_is_removed_when_its_node_has_failed_for_its_time_to_live() {
    let (mut house, session) = owned();
    let until = until(&house, OWNER, session);
    house.kill(OWNER);
    while house.net.now() < until {
        assert!(has_entry(&house), "before {until:?}");
        house.run(Span::millis(100));
    }
    house.run(TTL);
    assert!(!has_entry(&house));
    assert_eq!(watched(&house), Some(false));
    assert_eq!(held(&house).sessions().count(), 0);
}

#[test]
fn an_owned_entry_is_removed_at_once_when_its_node_leaves() {
    let (mut house, session) = owned();
    let until = until(&house, OWNER, session);
    house.net.crash(OWNER).unwrap();
    let left = house.member(OWNER);
    for other in (0..9).filter(|it| *it != OWNER) {
        house.net.membership(other, Delta::Left(left)).unwrap();
    }
    house.run(Span::secs(1));
    assert!(house.net.now() < until && !has_entry(&house));
}

#[test]
fn a_later_life_keeps_a_session_alive_and_a_false_suspicion_ends_none() {
    let (mut house, session) = owned();
    let suspected = house.member(OWNER);
    for other in (0..9).filter(|it| *it != OWNER) {
        house
            .net
            .membership(other, Delta::Failed(suspected))
            .unwrap();
    }
    house.run(TTL * 3);
    assert!(has_entry(&house), "it keeps its session alive");
    house.kill(OWNER);
    house.revive(OWNER);
    ask(&mut house, OWNER, StoreCommand::KeepAlive(session));
    house.run(TTL * 3);
    assert!(has_entry(&house), "its next life does so, too");
    ask(&mut house, OWNER, StoreCommand::StopKeepAlive(session));
    house.run(TTL * 3);
    assert!(!has_entry(&house));
}

/// The owner is cut off together with the leader of the map, which does not notice that another one leads.
#[test]
fn an_owner_that_is_cut_off_with_the_leader_learns_first_that_its_entry_may_be_removed() {
    // It is not in the map's group, so that the group keeps its quorum.
    let owner = 4;
    let (mut house, session) = owned_by(owner);
    assert!(house.net.machine(owner).unwrap().held(map()).is_none());
    let leader = house.leader(map())[0];
    let (cut, rest): (Vec<usize>, Vec<usize>) = (0..9).partition(|it| [leader, owner].contains(it));
    let watcher_is_cut = cut.contains(&0);
    house.net.partition(&[cut.clone(), rest.clone()]).unwrap();
    for &other in &rest {
        for &gone in &cut {
            let gone = house.member(gone);
            house.net.membership(other, Delta::Failed(gone)).unwrap();
        }
    }
    let mut steps = 0;
    while has_entry(&house) {
        house.run(Span::millis(100));
        steps += 1;
        assert!(steps < 600, "the entry stays");
    }
    assert!(until(&house, owner, session) <= house.net.now());
    house.net.heal();
    for &other in &rest {
        for &back in &cut {
            let (one, two) = (house.member(back), house.member(other));
            house.net.membership(other, Delta::Joined(one)).unwrap();
            house.net.membership(back, Delta::Joined(two)).unwrap();
        }
    }
    house.run(Span::secs(20));
    let over = reports(&house, owner).any(|it| *it == StoreEvent::SessionOver { session });
    assert!(over, "its node learns of the end");
    assert!(watcher_is_cut || watched(&house) == Some(false));
}

#[test]
fn a_session_survives_a_loss_of_power_if_a_later_life_keeps_it_alive() {
    for keeps in [true, false] {
        let (mut house, session) = owned();
        house.black_out(image);
        house.run(Span::secs(1));
        if keeps {
            ask(&mut house, OWNER, StoreCommand::KeepAlive(session));
        }
        house.run(TTL * 5);
        assert_eq!(has_entry(&house), keeps);
    }
}
