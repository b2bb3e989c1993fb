//! Stories that random histories found, each as a fixed test.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_replica::{
    Ballot, Body, Command, Config, Configuration, Entry, Event, Message, Proposal, Replica,
    SnapshotId, Wants,
};

use crate::oracle::{Log, Op};

mod few;
mod frames;

type Node = Driver<Replica<Log>>;

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

fn node(id: u64, first: &Configuration, window: u32) -> Node {
    let config = Config::new().with_window(window);
    let log = Log {
        ids: Vec::new(),
        pad: vec![0; 5_000],
    };
    Driver::new(Replica::new(member(id), config, first.clone(), log).unwrap())
}

fn step(node: &mut Node, input: Input<Replica<Log>>) -> Vec<Effect<Replica<Log>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut effects = Vec::new();
    node.step_into(Time::ZERO, &mut rng, input, &mut effects)
        .unwrap();
    effects
}

fn receive(node: &mut Node, from: u64, body: Body<Op>) -> Vec<(u64, Body<Op>)> {
    let message = Message {
        configuration: 1,
        body,
    };
    let from = member(from);
    let effects = step(node, Input::Message { from, message });
    let sent = effects.into_iter().filter_map(|it| match it {
        Effect::Send { to, message } => Some((to.id.0, message.body)),
        _ => None,
    });
    sent.collect()
}

fn update(by: u64, number: u64, first: u64, since: u64) -> Entry<Op> {
    Entry::Update(Proposal {
        by: member(by),
        number,
        first,
        since,
        update: Op {
            id: 100 * by + number,
            pad: Vec::new(),
        },
    })
}

const fn whole(version: u64) -> SnapshotId {
    SnapshotId {
        version,
        is_bare: false,
        total: 1_000,
    }
}

fn page(version: u64, offset: u32) -> Body<Op> {
    Body::Page {
        snapshot: whole(version),
        offset,
        bytes: [0; 100].into_iter().collect(),
    }
}

fn fetch(version: u64, offset: u32) -> Body<Op> {
    Body::Fetch {
        snapshot: whole(version),
        offset,
    }
}

/// Members that all answered one question had it begin again and again, each with its own pages.
#[test]
fn the_first_page_of_another_member_or_a_doubled_one_begins_nothing_anew() {
    let mut node = node(3, &Configuration::of([1, 2, 3].map(member)), 0);
    assert_eq!(receive(&mut node, 1, page(5, 0)), [(1, fetch(5, 100))]);
    assert_eq!(receive(&mut node, 2, page(6, 0)), []);
    assert_eq!(receive(&mut node, 1, page(5, 0)), []);
    assert_eq!(receive(&mut node, 1, page(5, 100)), [(1, fetch(5, 200))]);
    // Its sender goes on with a later state.
    assert_eq!(receive(&mut node, 1, page(7, 0)), [(1, fetch(7, 100))]);
}

fn propose(node: &mut Node, id: u64) {
    let op = Op {
        id,
        pad: Vec::new(),
    };
    step(node, Input::Command(Command::Propose(op)));
}

fn pages(sent: &[(u64, Body<Op>)]) -> Vec<(u64, u32)> {
    let pages = sent.iter().filter_map(|(_, it)| match it {
        Body::Page {
            snapshot, offset, ..
        } => Some((snapshot.version, *offset)),
        _ => None,
    });
    pages.collect()
}

/// Asks for another page of the state to which these belong.
fn next_page(sent: &[(u64, Body<Op>)], offset: u32) -> Body<Op> {
    match sent {
        [(_, Body::Page { snapshot, .. })] => Body::Fetch {
            snapshot: *snapshot,
            offset,
        },
        _ => panic!("{sent:?}"),
    }
}

/// With a window that the updates outran, no state ever arrived as a whole. And a state that was kept
/// for one member was sent to another one that had it.
#[test]
fn a_state_that_is_fetched_stays_as_it_is_while_updates_go_on() {
    let mut leader = node(1, &Configuration::of([member(1)]), 0);
    propose(&mut leader, 1);
    let missing = |committed| Body::Missing {
        committed,
        wants: if committed == 0 {
            Wants::State
        } else {
            Wants::Entries
        },
    };
    let first = receive(&mut leader, 2, missing(0));
    assert_eq!(pages(&first), [(1, 0)]);
    propose(&mut leader, 2);
    let sent = receive(&mut leader, 2, next_page(&first, 700));
    assert_eq!(pages(&sent), [(1, 700)]);
    let second = receive(&mut leader, 3, missing(1));
    assert_eq!(pages(&second), [(2, 0)]);
    // The member that began before shares the later pages.
    propose(&mut leader, 3);
    let sent = receive(&mut leader, 2, next_page(&first, 1_400));
    assert_eq!(pages(&sent), [(2, 0)]);
    let sent = receive(&mut leader, 3, next_page(&second, 700));
    assert_eq!(pages(&sent), [(2, 700)]);

    let mut leader = node(1, &Configuration::of([member(1)]), 1);
    propose(&mut leader, 1);
    assert_eq!(pages(&receive(&mut leader, 2, missing(0))), [(1, 0)]);
    propose(&mut leader, 2);
    let whole = Body::Missing {
        committed: 2,
        wants: Wants::State,
    };
    assert_eq!(pages(&receive(&mut leader, 3, whole)), [(2, 0)]);
}

/// A proposal that is never applied was decided again each time that it was sent again: it moved
/// the version away from the members that fetched the state, and its member never learned of its
/// end.
#[test]
fn a_proposal_of_a_life_that_is_over_ends() {
    let mut leader = node(1, &Configuration::of([member(1)]), 8);
    let relay = |incarnation, id| {
        Input::Command(Command::Relay(Proposal {
            by: Member::new(9, incarnation),
            number: 1,
            first: 1,
            since: 0,
            update: Op {
                id,
                pad: Vec::new(),
            },
        }))
    };
    step(&mut leader, relay(1, 1));
    let effects = step(&mut leader, relay(0, 2));
    let is_notified =
        |it: &Effect<_>| matches!(it, Effect::Event(Event::Forgotten { number: 1, .. }));
    assert!(effects.iter().any(is_notified), "{effects:?}");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for nth in 1..50 {
        leader.expire(Time::ZERO + Span::secs(nth), &mut rng, |_| ());
    }
    assert_eq!(leader.machine().version(), 1);
    assert_eq!(leader.machine().waiting(), 0);
    assert_eq!(leader.deadline(), None);
}

/// Two members that had given the state up announced the next configuration, were asked for the
/// state, and announced it again: each answer caused two questions.
#[test]
fn a_member_that_gave_the_state_up_is_not_asked_for_it() {
    let mut node = node(2, &Configuration::of([1, 2].map(member)), 0);
    let mut next = Configuration::of([3, 4].map(member));
    next.number = 2;
    let mut notify = |is_active| {
        let body = Body::Current {
            configuration: Box::new(next.clone()),
            is_active,
        };
        let message = Message {
            configuration: 2,
            body,
        };
        let from = member(1);
        let effects = step(&mut node, Input::Message { from, message });
        let asked = effects.iter().filter_map(|it| match it {
            Effect::Send { to, .. } => Some(to.id.0),
            _ => None,
        });
        asked.collect::<Vec<u64>>()
    };
    assert_eq!(notify(false), [1, 3, 4]);
    assert_eq!(notify(true), [3, 4]);
}

/// A witness that came back without its memory asked its leader for a state that no witness gets.
/// It got a message of the leader again, and asked again.
#[test]
fn a_witness_in_a_later_life_asks_to_be_named_and_for_no_state() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.voters[2].is_witness = true;
    let accept = |number| {
        let proposal = Proposal {
            by: member(2),
            number,
            first: 1,
            since: 0,
            update: Op {
                id: number,
                pad: Vec::new(),
            },
        };
        Body::Accept {
            ballot: Ballot {
                number: 1,
                by: NodeId(2),
            },
            after: number - 1,
            commit: 1,
            round: 1,
            entries: [Entry::Update(proposal)].into_iter().collect(),
        }
    };
    let mut other = node(1, &first, 0);
    receive(&mut other, 2, accept(1));
    let missing = Body::Missing {
        committed: 0,
        wants: Wants::State,
    };
    let (_, page) = receive(&mut other, 3, missing).pop().unwrap();
    let me = Member::new(3, 1);
    let mut witness = Driver::new(Replica::newcomer(me, Config::new()).unwrap());
    receive(&mut witness, 1, page);
    assert_eq!(witness.machine().version(), 1);
    assert_eq!(
        receive(&mut witness, 2, accept(2)),
        [(2, Body::Rejoin { life: 1 })]
    );
}
