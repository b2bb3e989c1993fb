//! The answers of a node to the registry's leader, and messages of a former beginning.

use selvedge_replica::{Body, Wants};

use super::rounds::{END, Rounds};
use super::*;

/// The number of the configuration behind an answer, and its other parts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    mark: u64,
    votes: bool,
    number: u64,
    members: usize,
}

impl Rounds {
    /// A node that is no member of the group, and no founder.
    fn outsider(&self) -> u64 {
        let is_outside = |it: &u64| {
            let machine = self.town.nodes[it].machine();
            let is_founder = machine.founders(FIRST).contains(&NodeId(*it));
            *it != self.leader && !is_founder && machine.replica(FIRST).is_none()
        };
        (1..=7).find(is_outside).unwrap()
    }

    /// The groups that a node reports as lost when an epoch begins.
    fn reports(&mut self, of: u64, epoch: u64) -> BTreeSet<GroupId> {
        self.town.wire.clear();
        self.town
            .input(of, Input::Command(Command::SetEpoch(epoch)));
        let items = self.town.wire.iter().flat_map(|it| it.3.items.iter());
        let lost = items.filter_map(|it| match it {
            Item::Lost { group, .. } => Some(*group),
            _ => None,
        });
        lost.collect()
    }

    fn birth_number(&self) -> Option<u64> {
        let machines = self.town.nodes.values().map(Driver::machine);
        let births = machines.filter_map(|it| it.registry()?.birth(FIRST));
        births.map(|it| it.number).max()
    }

    /// Asks a node, in the place of the registry's leader.
    pub(super) fn ask_about(
        &mut self,
        to: u64,
        group: GroupId,
        number: u64,
        is_binding: bool,
    ) -> Option<Ended> {
        self.town.wire.clear();
        let by = (1..=7).find(|it| *it != to).unwrap();
        let item = Item::End {
            group,
            call: 1,
            number,
            is_binding,
        };
        self.send(self.town.nodes[&by].machine().me(), to, item);
        let mut items = self.town.wire.iter().flat_map(|it| it.3.items.iter());
        items.find_map(|it| match it {
            Item::Ended {
                mark,
                votes,
                number,
                members,
                ..
            } => Some(Ended {
                mark: *mark,
                votes: *votes,
                number: *number,
                members: members.len(),
            }),
            _ => None,
        })
    }
}

#[test]
fn a_node_answers_the_right_question_alone() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    for number in [1, END - 1, END + 1] {
        assert_eq!(rounds.ask_about(other, FIRST, number, true), None);
    }
    assert_eq!(rounds.ask_about(other, MAP, END, true), None);
    let nothing = Ended {
        mark: 0,
        votes: false,
        number: 0,
        members: 0,
    };
    assert_eq!(rounds.ask_about(other, FIRST, END, false), Some(nothing));
    let promise = rounds.ask_about(other, FIRST, END, true).unwrap();
    assert_eq!(promise.mark, END);
}

#[test]
fn a_late_question_ends_no_later_beginning() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.town.run(Span::secs(2));
    rounds.town.ask(1, FIRST, 1);
    let leader = rounds.town.leaders(FIRST)[0];
    let late = rounds.ask_about(leader, FIRST, END, true).unwrap();
    assert!(late.mark > END && !late.votes, "{late:?}");
    assert_eq!(rounds.town.leaders(FIRST), [leader]);
    let present = rounds.ask_about(leader, FIRST, 2 * END, false).unwrap();
    assert!(present.votes && present.number > END && present.members == 3);
    let promise = rounds.ask_about(leader, FIRST, 2 * END, true).unwrap();
    assert_eq!((promise.mark, promise.votes), (2 * END, false));
    assert!(rounds.town.leaders(FIRST).is_empty());
}

#[test]
fn a_node_names_the_latest_members_of_the_beginning_in_question() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.town.run(Span::secs(2));
    for id in 1..=7 {
        rounds.town.ask(id, FIRST, id);
    }
    let present = members(&rounds.town, FIRST);
    let leader = rounds.town.leaders(FIRST)[0];
    let other = (1..=7).find(|it| !present.contains(it)).unwrap();
    let of_former = rounds.ask_about(other, FIRST, END, false).unwrap();
    assert!(of_former.number <= END, "{of_former:?}");
    let of_present = rounds.ask_about(other, FIRST, 2 * END, false).unwrap();
    assert_eq!((of_present.number, of_present.members), (END + 1, 3));
    // A member remembers its own configuration, also where another node sends other members for it.
    let member = *present.iter().find(|it| **it != leader).unwrap();
    let item = Item::Where {
        group: FIRST,
        number: END + 1,
        leader: None,
        members: [life(other, 1)].into_iter().collect(),
    };
    rounds.send(life(other, 1), member, item);
    let own = rounds.ask_about(member, FIRST, 2 * END, false).unwrap();
    assert_eq!((own.number, own.members), (END + 1, 3));
}

pub(super) fn missing(group: GroupId, configuration: u64) -> Item<Change, u64> {
    let wants = Wants::Entries;
    let body = Body::Missing {
        committed: 0,
        wants,
    };
    let message = replica::Message {
        configuration,
        body,
    };
    Item::Replica { group, message }
}

#[test]
fn a_message_of_another_beginning_is_answered_with_the_place_or_ends_the_part() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.town.run(Span::secs(2));
    rounds.town.ask(1, FIRST, 1);
    let leader = rounds.town.leaders(FIRST)[0];
    let from = life((1..=7).find(|it| *it != leader).unwrap(), 1);
    rounds.town.wire.clear();
    rounds.send(from, leader, missing(FIRST, 1));
    let sent: Vec<_> = rounds
        .town
        .wire
        .iter()
        .flat_map(|it| it.3.items.iter())
        .collect();
    assert!(
        matches!(sent[..], [Item::Where { group: FIRST, number, .. }] if *number == END + 1),
        "{sent:?}"
    );
    assert_eq!(rounds.town.leaders(FIRST), [leader]);
    rounds.town.events.clear();
    rounds.send(from, leader, missing(FIRST, 2 * END + 1));
    assert!(has_begun_anew(&rounds.town, FIRST));
    assert!(rounds.town.leaders(FIRST).is_empty());
}

#[test]
fn a_node_reports_a_group_that_it_promised_to_end_until_it_has_begun_anew() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    assert_eq!(rounds.reports(other, 2), BTreeSet::new());
    rounds.ask_about(other, FIRST, END, true);
    assert_eq!(rounds.reports(other, 3), BTreeSet::from([FIRST]));
    let item = Item::Where {
        group: FIRST,
        number: END + 1,
        leader: None,
        members: [life(1, 1), life(2, 1), life(3, 1)].into_iter().collect(),
    };
    let by = (1..=7).find(|it| *it != other).unwrap();
    rounds.send(life(by, 1), other, item);
    assert_eq!(rounds.reports(other, 4), BTreeSet::new());
}

/// The number of its promise lies behind the beginning that has ended.
#[test]
fn a_command_after_a_promise_begins_the_next_beginning() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    rounds.ask_about(other, FIRST, END, true);
    rounds
        .town
        .input(other, Input::Command(Command::BeginAnew(FIRST)));
    rounds.town.run(Span::secs(10));
    assert_eq!(rounds.birth_number(), Some(END + 1));
}

/// It is no member, and others sent it the group's place.
#[test]
fn a_command_begins_the_beginning_after_the_one_that_the_node_was_sent() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.town.run(Span::secs(2));
    for id in 1..=7 {
        rounds.town.ask(id, FIRST, id);
    }
    let present = members(&rounds.town, FIRST);
    let other = (1..=7).find(|it| !present.contains(it)).unwrap();
    rounds
        .town
        .input(other, Input::Command(Command::BeginAnew(FIRST)));
    rounds.town.run(Span::secs(10));
    assert_eq!(rounds.birth_number(), Some(2 * END + 1));
}

#[test]
fn the_registrys_leader_reports_a_loss_to_itself() {
    let mut rounds = Rounds::new();
    let leader = rounds.leader;
    rounds.ask_about(leader, FIRST, END, true);
    rounds.town.wire.clear();
    rounds
        .town
        .input(leader, Input::Command(Command::SetEpoch(2)));
    rounds.town.run(Span::millis(10));
    let mut items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
    assert!(items.any(|it| matches!(it, Item::End { group: FIRST, .. })));
}

#[test]
fn a_node_reports_no_loss_after_the_news_of_the_next_beginning() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    rounds.ask_about(other, FIRST, END, true);
    assert_eq!(rounds.reports(other, 2), BTreeSet::from([FIRST]));
    let others: Vec<u64> = (1..=7).filter(|it| *it != other).collect();
    let birth = Birth {
        number: END + 1,
        generation: 1,
        founders: others[..3].iter().map(|it| life(*it, 1)).collect(),
    };
    let item = Item::Born {
        group: FIRST,
        birth,
    };
    // It may come twice.
    rounds.send(life(others[0], 1), other, item.clone());
    rounds.send(life(others[0], 1), other, item);
    let is_news =
        |it: &&(u64, Event<Held, u64>)| it.0 == other && matches!(it.1, Event::BegunAnew(FIRST));
    assert_eq!(rounds.town.events.iter().filter(is_news).count(), 1);
    rounds.town.wire.clear();
    for _ in 0..500 {
        rounds.town.run(Span::millis(10));
        let mut own = rounds.town.wire.iter().filter(|it| it.2.id.0 == other);
        assert!(!own.any(|it| it.3.items.iter().any(|it| matches!(it, Item::Lost { .. }))));
    }
}

/// It learned of the next beginning as one of its founders, and from nobody else.
#[test]
fn a_founder_of_the_next_beginning_reports_no_promise() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    rounds.ask_about(other, FIRST, END, true);
    let by = (1..=7).find(|it| *it != other).unwrap();
    let birth = Birth {
        number: END + 1,
        generation: 1,
        founders: [life(other, 1), life(by, 1)].into_iter().collect(),
    };
    let group = FIRST;
    rounds.send(life(by, 1), other, Item::Born { group, birth });
    assert_eq!(rounds.reports(other, 2), BTreeSet::new());
}

#[test]
fn a_loss_is_reported_until_the_site_has_the_group_no_more() {
    let second = GroupId(8);
    let mut rounds = Rounds::with(&[FIRST.0, second.0]);
    let other = rounds.outsider();
    for group in [FIRST, second] {
        rounds.ask_about(other, group, END, true);
    }
    assert_eq!(rounds.reports(other, 2), BTreeSet::from([FIRST, second]));
    let next = Land {
        groups: vec![FIRST.0],
        ..rounds.land.next()
    };
    rounds.town.change(rounds.leader, &next);
    let mut reported = BTreeSet::new();
    for _ in 0..2_000 {
        let generation = rounds.town.nodes[&other].machine().generation();
        for it in &mut rounds.town.wire {
            let (lost, rest): (Vec<_>, Vec<_>) =
                (it.3.items.iter().cloned()).partition(|it| matches!(it, Item::Lost { .. }));
            it.3.items = rest.into_iter().collect();
            reported.extend(lost.into_iter().map(|it| (generation, it)));
        }
        rounds.town.wire.retain(|it| !it.3.items.is_empty());
        rounds.town.run(Span::millis(10));
    }
    let of_next = reported.into_iter().filter(|it| it.0 == 2);
    let groups = of_next.map(|it| match it.1 {
        Item::Lost { group, .. } => group,
        other => panic!("{other:?}"),
    });
    assert_eq!(groups.collect::<Vec<_>>(), [FIRST]);
}

#[test]
fn a_node_reports_a_loss_at_once_to_a_leader_of_the_registry_of_which_it_learns() {
    let mut rounds = Rounds::new();
    let other = rounds.outsider();
    rounds.ask_about(other, FIRST, END, true);
    assert_eq!(rounds.reports(other, 2), BTreeSet::from([FIRST]));
    let leader = (1..=7).rfind(|it| *it != other);
    let item = Item::Where {
        group: GroupId::REGISTRY,
        number: 1_000,
        leader: leader.map(NodeId),
        members: [life(leader.unwrap(), 1)].into_iter().collect(),
    };
    rounds.town.wire.clear();
    rounds.send(life(leader.unwrap(), 1), other, item);
    let to_leader = rounds.town.wire.iter().filter(|it| Some(it.1) == leader);
    let mut items = to_leader.flat_map(|it| it.3.items.iter());
    assert!(items.any(|it| matches!(it, Item::Lost { group: FIRST, .. })));
}

#[test]
fn a_former_member_names_the_last_members_that_it_knows() {
    let mut rounds = Rounds::new();
    rounds.town.ask(1, FIRST, 1);
    let mut former = BTreeSet::new();
    for number in 2..8 {
        former.extend(members(&rounds.town, FIRST));
        epochs(&mut rounds.town, number..=number);
    }
    let present = members(&rounds.town, FIRST);
    former.retain(|it| !present.contains(it));
    assert!(!former.is_empty());
    for id in former {
        let answer = rounds.ask_about(id, FIRST, END, false).unwrap();
        assert!(answer.number > 0 && answer.members == 3, "{answer:?}");
    }
}
