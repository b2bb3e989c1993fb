//! A node's knowledge of others, and of groups that it left.

use selvedge_core::durable::Durable;
use selvedge_groups::Misbehaviour;
use selvedge_replica::{Ballot, Body, Configuration};

use crate::mesh::*;

const ME: Member = life(1, 0);
const OTHER: Member = life(2, 3);

fn where_is(number: u64) -> Item<u64, Payload> {
    Item::Where {
        group: LATER,
        number,
        leader: None,
        members: [3, 4, 5].map(|it| life(it, 1)).into_iter().collect(),
    }
}

#[test]
fn a_message_says_that_its_sender_is_here_in_this_life() {
    let mut node = One::new(1, 5, Start::Restarted);
    let known = |node: &One| {
        let groups = node.machine();
        let id = OTHER.id;
        (groups.latest(id), groups.is_here(id), groups.has_ended(id))
    };
    assert_eq!(known(&node), (life(2, 0), false, false));
    node.receive(OTHER, [where_is(1)]);
    assert_eq!(known(&node), (OTHER, true, false));
    node.receive(life(2, 1), [where_is(1)]);
    assert_eq!(known(&node), (OTHER, true, false), "that life is over");
    node.learn(Delta::Failed(life(2, 1)));
    assert_eq!(known(&node), (OTHER, true, false), "that life is over");
    node.learn(Delta::Suspected(OTHER));
    assert_eq!(known(&node), (OTHER, true, false), "it can refute");
    node.learn(Delta::Failed(OTHER));
    assert_eq!(known(&node), (OTHER, false, true));
    node.receive(OTHER, [where_is(1)]);
    assert_eq!(known(&node), (OTHER, false, true), "it may be late");
    node.learn(Delta::Refuted(OTHER));
    assert_eq!(known(&node), (OTHER, true, false));
    node.learn(Delta::Left(OTHER));
    node.receive(life(2, 4), [where_is(1)]);
    assert_eq!(known(&node), (life(2, 4), true, false));
    assert_eq!(node.machine().latest(ME.id), ME);
    assert!(node.machine().is_here(ME.id));
}

#[test]
fn a_node_takes_the_end_of_former_lives_and_not_of_its_own() {
    let me = life(1, 4);
    let mut node = One::of(machine(me, 5, config(), Start::Restarted));
    for over in [Delta::Left(life(1, 3)), Delta::Confirmed(life(1, 3))] {
        node.learn(over);
    }
    for wrong in [Delta::Failed(me), Delta::Suspected(me), Delta::Joined(me)] {
        node.learn(wrong);
    }
    for end in [Delta::Left(me), Delta::Confirmed(me)] {
        let refusal = node.input(Input::Membership(end)).unwrap_err();
        assert!(matches!(
            refusal,
            Reject::Replica(replica::Reject::OwnEnd(it)) if it.0 == end
        ));
    }
    assert!(node.machine().is_here(me.id));
}

const fn asks() -> Body<u64> {
    Body::Read { number: 1 }
}

fn names(members: &[u64], number: u64) -> Body<u64> {
    let members = members.iter().map(|id| life(*id, 0));
    names_lives(members, number)
}

fn names_lives(members: impl IntoIterator<Item = Member>, number: u64) -> Body<u64> {
    let mut configuration = Configuration::of(members);
    configuration.number = number;
    Body::Current {
        configuration: configuration.into(),
        is_active: true,
    }
}

#[test]
fn a_node_enters_a_group_that_names_it_or_whose_members_ask_it() {
    let enters = |body| {
        let mut node = One::new(1, 5, Start::Restarted);
        node.receive(OTHER, [replica_item(3, body)]);
        node.is_in(GROUP)
    };
    assert!(enters(asks()));
    assert!(enters(names(&[1, 2, 3], 3)));
    assert!(!enters(names(&[2, 3, 4], 3)));
    let answer = Body::ReadAt {
        number: 1,
        version: 1,
        life: Default::default(),
    };
    assert!(!enters(answer), "two that know nothing would talk for ever");
}

/// Each life that folds the facts of the first one votes under the names of the lives before it.
#[test]
fn a_life_that_goes_on_answers_to_a_name_that_it_got_before_it_stored_of_the_group() {
    let first = life(ME.id.0, 3);
    let mut one = One::of(machine(first, 5, config(), Start::Fresh));
    one.command(Command::SetEpoch(1));
    let facts: Vec<_> = one.machine().stored().collect();
    assert_eq!(facts.len(), 1);
    for folds in [true, false] {
        let me = life(ME.id.0, 4);
        let mut groups = machine(me, 5, config(), Start::Restarted);
        if folds {
            facts.iter().for_each(|it| groups.fold(it).unwrap());
        }
        let mut node = One::of(groups);
        node.receive(OTHER, [replica_item(3, names_lives([OTHER, first], 3))]);
        assert!(node.is_in(GROUP));
        let replica = node.machine().replica(GROUP).unwrap();
        assert_eq!(replica.voter() == first, folds);
    }
}

#[test]
fn a_node_that_left_tells_members_of_before_where_the_group_is() {
    let received = |number, body| {
        let mut groups = machine(ME, 5, config(), Start::Restarted);
        let mut mark = Configuration::of([2, 3, 4].map(|id| life(id, 0)));
        mark.number = 3;
        leave(&mut groups, GROUP, mark);
        let mut node = One::of(groups);
        node.receive(OTHER, [replica_item(number, body)]);
        (node.sent(), node.is_in(GROUP))
    };
    let current = replica_item(3, names(&[2, 3, 4], 3));
    assert_eq!(received(2, asks()), (vec![(OTHER, current)], false));
    assert_eq!(received(3, asks()), (vec![], false));
    assert!(received(4, asks()).1);
    assert!(received(4, names(&[1, 2, 3], 4)).1);
    assert!(!received(4, names(&[2, 3, 4], 4)).1);
    assert_eq!(received(2, names(&[1, 2, 3], 2)), (vec![], false));
}

#[test]
fn a_node_is_in_a_group_when_it_is_named_and_has_the_state() {
    let mut node = One::new(ME.id.0, 5, Start::Restarted);
    node.receive(OTHER, [replica_item(3, names(&[1, 2, 3], 3))]);
    assert!(node.is_in(GROUP));
    assert!(
        !node.notified().contains(&Event::Entered(GROUP)),
        "it has no state"
    );
}

#[test]
fn what_no_correct_member_sends_is_counted() {
    let founders = founders(5, GROUP);
    let mut node = One::new(founders[0], 5, Start::Fresh);
    let by = NodeId(founders[1]);
    let wrong = Body::Stand {
        ballot: Ballot { number: 1, by },
    };
    let liar = life(founders[2], 0);
    for count in 1..=2 {
        node.receive(liar, [replica_item(1, wrong.clone())]);
        assert_eq!(node.machine().counters().refused, count);
    }
}

#[test]
fn a_message_of_this_node_or_of_another_plan_or_of_nothing_is_refused() {
    let mut node = One::new(1, 5, Start::Restarted);
    let own = node.machine().plan().digest();
    let found = own ^ 1;
    let mut refused = |from, plan, items: Vec<_>| {
        let items = items.into_iter().collect();
        let message = Message {
            plan,
            generation: 0,
            items,
        };
        node.input(Input::Message { from, message }).unwrap_err()
    };
    let cases = [
        (
            refused(OTHER, found, vec![where_is(1)]),
            Misbehaviour::Plan { found, own },
        ),
        (refused(OTHER, own, vec![]), Misbehaviour::Empty),
        (
            refused(life(1, 7), own, vec![where_is(1)]),
            Misbehaviour::OwnId(life(1, 7)),
        ),
    ];
    for (refusal, expected) in cases {
        assert_eq!(refusal, Reject::Misbehaviour(expected));
    }
}

#[test]
fn only_another_node_of_the_plan_is_heard_as_a_leader() {
    let asked = |received: Option<Member>| {
        let mut node = One::new(ME.id.0, 5, Start::Restarted);
        let ask = || Command::Ask {
            group: LATER,
            payload: vec![],
        };
        node.command(ask());
        let mut groups = node.driver.into_machine();
        if let Some(from) = received {
            groups.received(LATER, from);
        }
        let mut node = One::of(groups);
        node.command(ask());
        let asked = node.sent().into_iter().map(|it| it.0.id);
        asked.collect::<BTreeSet<NodeId>>()
    };
    assert!(asked(None).len() > 1);
    assert_eq!(asked(Some(life(99, 0))), asked(None));
    assert_eq!(asked(Some(ME)), asked(None));
    assert_eq!(asked(Some(OTHER)), BTreeSet::from([OTHER.id]));
}
