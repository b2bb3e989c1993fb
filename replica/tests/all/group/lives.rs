//! The lives in which a member votes: names that stand for its memory, founders, and marks.

use super::*;
use selvedge_replica::{ConfigError, Configuration, Fact};

const HALF: u32 = 1 << 31;

/// The lives of nodes 1, 2, .. as a configuration names them.
fn lives(named: &[u32]) -> Configuration {
    Configuration::of((1..).zip(named).map(|(id, &life)| Member::new(id, life)))
}

fn rejoins(group: &Group) -> usize {
    let is_rejoin = |it: &&(Member, Member, Message<u16>)| matches!(it.2.body, Body::Rejoin { .. });
    group.wire.iter().filter(is_rejoin).count()
}

/// Node 3 has its memory since life 1, and is in life 3 now. 1 leads, and has applied an update.
fn restored() -> Group {
    let first = lives(&[1, 1, 1]);
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.restart_with_storage(3, &first);
    group.restart_with_storage(3, &first);
    assert_eq!(group.node(3).me(), Member::new(3, 3));
    assert_eq!(group.node(3).voter(), Member::new(3, 1));
    for id in [1, 2] {
        group.notify(id, Delta::Joined(Member::new(3, 3)));
    }
    group.wait(Span::secs(1));
    group
}

#[test]
fn a_member_votes_where_it_is_named_in_any_life_of_its_memory() {
    for named in 1..=3 {
        let mut group = restored();
        group.command(1, Command::Configure(lives(&[1, 1, named])));
        group.wait(Span::secs(2));
        assert_eq!(group.node(3).configuration().number, 2, "named in {named}");
        assert!(group.node(3).votes(), "named in {named}");
        // Without its vote nothing would be decided.
        group.command(1, Command::Propose(8));
        group.wait_without(Span::secs(2), &[2]);
        assert_eq!(group.state(1), [7, 8], "named in {named}");
        group.wait(Span::secs(9));
        assert_eq!(group.node(1).configuration().number, 2, "named in {named}");
    }
}

/// Another process votes under that name, present or future.
#[test]
fn a_member_that_is_named_in_a_later_life_does_not_vote_before_it() {
    let mut group = restored();
    let next = lives(&[1, 1, 4]);
    group.command(1, Command::Configure(next.clone()));
    let mut asked = 0;
    for _ in 0..20 {
        group.round_without(&[]);
        asked += rejoins(&group);
    }
    group.wait(Span::secs(2));
    assert_eq!(
        group.node(3).configuration(),
        &Configuration { number: 2, ..next }
    );
    assert!(!group.node(3).votes());
    assert_eq!(asked, 0, "it asks to be named in a former life");
    group.command(1, Command::Propose(8));
    group.wait_without(Span::secs(2), &[2]);
    assert_eq!(group.state(1), [7], "decided by one member of three");
    group.wait(Span::secs(2));
    assert_eq!(group.state(1), [7, 8]);
    assert_eq!(group.state(3), [7, 8], "it follows what is committed");
    group.restart_with_storage(3, &lives(&[1, 1, 1]));
    assert!(group.node(3).votes(), "the life that was meant has begun");
}

/// Two processes of one node are asked for the same promise: one of them gives it.
#[test]
fn a_former_process_that_still_runs_does_not_vote_beside_the_next_one() {
    let next = Configuration {
        number: 2,
        ..lives(&[1, 1, 4])
    };
    let prepare = || Body::Prepare {
        ballot: ballot(1, 1),
        committed: 2,
        accepted: Ballot::default(),
        end: 2,
        handed_over: Ballot::default(),
    };
    let is_promise = |it: &(u64, Body<u16>)| matches!(it.1, Body::Promise { .. });

    let mut former = restored();
    let learn = Body::Learn {
        after: 1,
        entries: [Entry::Configure(next.clone().into())]
            .into_iter()
            .collect(),
    };
    former.judged(3, member(1), 1, learn).unwrap();
    assert_eq!(former.node(3).configuration(), &next);
    let reported = former.say(3, member(1), prepare());
    assert!(!reported.iter().any(is_promise), "{reported:?}");

    let me = Member::new(3, 4);
    let node = Replica::new(me, Config::new(), next, Journal::default()).unwrap();
    let mut later = Group::of(&[1]);
    later.nodes = vec![Driver::new(node)];
    let reported = later.say(3, member(1), prepare());
    assert!(reported.iter().any(is_promise), "{reported:?}");
}

/// Returns true if a member with memory since `began`, now in `present`, votes where it is named
/// so.
fn votes(began: u32, present: u32, named: u32, is_founder: bool) -> Option<bool> {
    let me = Member::new(1, began);
    let first = lives(&[if is_founder { 0 } else { named }]);
    let (config, state) = (Config::new(), Journal::default());
    let node = match is_founder {
        true => Replica::founder(me, config, first, state).unwrap(),
        false => Replica::new(me, config, first, state).unwrap(),
    };
    let stored = postcard::to_allocvec(&node.stored()).unwrap();
    let stored = postcard::from_bytes(&stored).unwrap();
    let mut node: Node = Replica::restore(Member::new(1, present), config, stored).ok()?;
    if is_founder {
        let next = Configuration {
            number: 2,
            ..lives(&[named])
        };
        let entries = [Entry::Configure(next.into())].into_iter().collect();
        node.fold(&Fact::Learned { after: 0, entries }).unwrap();
    }
    Some(node.votes())
}

#[test]
fn lives_of_one_memory_may_wrap() {
    const TOP: u32 = u32::MAX;
    for (began, present, named, expected) in [
        (3, 5, 2, false),
        (3, 5, 3, true),
        (3, 5, 4, true),
        (3, 5, 5, true),
        (3, 5, 6, false),
        (3, 3 + HALF, 3 + HALF, true),
        (3, 3 + HALF, 4 + HALF, false),
        (3, 3 + HALF, TOP, false),
        (TOP - 1, 3, TOP - 2, false),
        (TOP - 1, 3, TOP - 1, true),
        (TOP - 1, 3, TOP, true),
        (TOP - 1, 3, 1, true),
        (TOP - 1, 3, 3, true),
        (TOP - 1, 3, 4, false),
        (0, 0, 0, true),
        (0, 2, 0, true),
        (0, 2, 2, true),
        (0, 2, 3, false),
        (0, 2, TOP, false),
        // Life 0 names founders alone, and lies between no others.
        (TOP - 1, 3, 0, false),
    ] {
        let voted = votes(began, present, named, false);
        assert_eq!(
            voted,
            Some(expected),
            "since {began}, in {present}, as {named}"
        );
    }
    // The stored memory is not of a later life.
    assert_eq!(votes(5, 3, 5, false), None);
    assert_eq!(votes(3, TOP - 1, 3, false), None);
}

#[test]
fn a_founder_votes_in_life_0_and_in_those_of_its_memory() {
    const TOP: u32 = u32::MAX;
    for (began, present, named, expected) in [
        (0, 0, 0, true),
        (7, 7, 0, true),
        (7, 7, 7, true),
        (7, 9, 0, true),
        (7, 9, 8, true),
        // Between 0 and its present life, and no life of its memory.
        (7, 9, 3, false),
        (7, 9, 10, false),
        (HALF + 7, HALF + 9, 0, true),
        (HALF + 7, HALF + 9, 1, false),
        (HALF + 7, HALF + 9, HALF + 6, false),
        (HALF + 7, HALF + 9, HALF + 8, true),
        (TOP, TOP, 0, true),
        // The life after this one: it is not between 0 and this one.
        (TOP, TOP, 1, false),
        (TOP, 1, 1, true),
    ] {
        let voted = votes(began, present, named, true);
        assert_eq!(
            voted,
            Some(expected),
            "since {began}, in {present}, as {named}"
        );
    }
}

fn founder(id: u64, life: u32) -> Driver<Node> {
    let me = Member::new(id, life);
    let first = lives(&[0, 0, 0]);
    Driver::new(Replica::founder(me, Config::new(), first, Journal::default()).unwrap())
}

/// Numbers from a clock wrap: about half of them do not compare as newer than 0.
#[test]
fn founders_begin_in_any_life_and_are_named_anew_in_any_other() {
    for life in [1, 2, HALF - 1, HALF, HALF + 1, u32::MAX - 1] {
        let mut group = Group::new(&lives(&[0, 0, 0]), &[]);
        group.nodes = [(1, life), (2, 9), (3, life)]
            .map(|(id, life)| founder(id, life))
            .into();
        group.command(1, Command::Propose(7));
        group.wait(Span::secs(1));
        for id in [1, 2, 3] {
            assert_eq!(group.state(id), [7], "node {id} in life {life}");
            assert!(group.node(id).votes());
        }
        // It forgets all, and comes back in its next life.
        let me = Member::new(3, life + 1);
        group.nodes[2] = Driver::new(Replica::newcomer(me, Config::new()).unwrap());
        for id in [1, 2] {
            group.notify(id, Delta::Joined(me));
        }
        let mut voted = Vec::new();
        for _ in 0..100 {
            group.round_without(&[]);
            group.wait_without(Span::millis(10), &[1, 2, 3]);
            if group.node(3).votes() {
                voted.push(group.node(3).configuration().number);
            }
        }
        group.wait(Span::secs(2));
        assert!(
            !voted.contains(&1),
            "a life without memory votes as a founder"
        );
        assert!(group.node(3).votes(), "life {life}");
        assert_eq!(group.node(1).configuration().number, 2);
        assert_eq!(group.node(1).configuration().voters[2], Voter::new(me));
        group.command(1, Command::Propose(8));
        group.wait_without(Span::secs(1), &[2]);
        assert_eq!(group.state(3), [7, 8]);
    }
}

/// A founder that stored all facts is named in its present life, and is no newcomer to any node.
#[test]
fn a_founder_with_storage_votes_in_later_lives_under_either_name() {
    let life = HALF + 5;
    let mut group = Group::new(&lives(&[0, 0, 0]), &[]);
    group.nodes = [1, 2, 3].map(|id| founder(id, life)).into();
    let base = group.node(3).stored();
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let me = Member::new(3, life + 1);
    let mut node: Node = Replica::restore(me, Config::new(), base).unwrap();
    for (by, event) in &group.events {
        if *by == 3
            && let Some(fact) = Node::fact(event)
        {
            node.fold(fact).unwrap();
        }
    }
    assert!(node.votes());
    group.nodes[2] = Driver::new(node);
    group.notify(1, Delta::Joined(me));
    group.wait(Span::secs(2));
    assert_eq!(group.node(1).configuration().number, 1, "it was named anew");
    group.command(1, Command::Configure(lives(&[0, 0, life + 1])));
    group.wait(Span::secs(2));
    assert!(group.node(3).votes());
    assert_eq!(group.node(3).configuration().number, 2);
}

#[test]
fn a_founder_is_named_in_life_0() {
    for named in [&[0, 1][..], &[0]] {
        let me = Member::new(2, 1);
        let refused = Replica::founder(me, Config::new(), lives(named), Journal::default());
        let expected = ConfigError::NoFounder(NodeId(2));
        assert_eq!(refused.err(), Some(Reject::Configuration(expected)));
    }
}

/// No node may be named in an earlier life: a node that begins in life 0 has no memory of a later
/// one.
#[test]
fn nobody_is_named_in_life_0_again() {
    for known in [1, HALF + 1, u32::MAX] {
        let mut group = Group::new(&lives(&[1, 1, known]), &[1, 2]);
        group.command(1, Command::Propose(7));
        group.wait(Span::secs(1));
        group.say(1, Member::new(3, known), Body::Rejoin { life: 0 });
        group.wait(Span::secs(1));
        assert_eq!(group.node(1).configuration().number, 1, "life {known}");
    }
}

/// The updates of 1 and 2 in the end. 1 and 3 decide an update, and then a configuration without 3,
/// which drops its memory. 2 knows of neither; 3 goes on in the same life, as `again` begins it,
/// and meets 2.
fn two_histories(again: impl FnOnce(Member, u64) -> Node) -> (Vec<u16>, Vec<u16>, bool) {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(11));
    group.wait_without(Span::secs(1), &[2]);
    group.command(1, Command::Configure(Configuration::of([member(1)])));
    // It asks, and learns that it is no longer a member.
    group.command(3, Command::Read(1));
    group.wait_without(Span::secs(1), &[2]);
    assert_eq!((group.state(1), group.state(2)), (&[11][..], &[][..]));
    let node = group.node(3);
    assert_eq!((node.configuration().number, node.state()), (2, None));
    assert_eq!(node.mark(), 2);
    let at = group.at(3);
    group.nodes[at] = Driver::new(again(member(3), 2));
    // Now 1 is cut off, or far away.
    group.notify(2, Delta::Failed(member(1)));
    group.command(2, Command::Propose(22));
    group.wait_without(Span::secs(5), &[1]);
    let takes = group.node(3).configuration().number == 1;
    let histories = (group.state(1).to_vec(), group.state(2).to_vec());
    // Where nothing was decided meanwhile, all is well when 1 is present again.
    if histories.1.is_empty() {
        group.notify(2, Delta::Refuted(member(1)));
        group.wait(Span::secs(5));
        let mut next = Configuration::of([1, 3].map(member));
        next.number = 0;
        group.command(1, Command::Configure(next));
        group.wait(Span::secs(5));
        assert_eq!(group.state(3), [11]);
        assert!(group.node(3).votes());
    }
    (histories.0, histories.1, takes)
}

#[test]
fn without_its_mark_a_node_that_dropped_its_memory_votes_twice() {
    let forgetful = |me, _| Replica::newcomer(me, Config::new()).unwrap();
    let (one, other, takes) = two_histories(forgetful);
    assert_eq!((one, other, takes), (vec![11], vec![22], true));

    let marked = |me, mark| Replica::newcomer_behind(me, Config::new(), mark).unwrap();
    let (one, other, takes) = two_histories(marked);
    assert_eq!((one, other, takes), (vec![11], vec![], false));
}

/// It answered in life 2, and lost power before it had a fact of the group to store.
#[test]
fn a_newcomer_answers_to_a_life_that_stored_nothing_of_the_group() {
    let me = Member::new(3, 4);
    for (since, named, votes) in [
        (2, 1, false),
        (2, 2, true),
        (2, 3, true),
        (2, 4, true),
        (4, 3, false),
        (2, 5, false),
    ] {
        let mut group = Group::new(&lives(&[1, 1]), &[1, 2, 3]);
        let node = Replica::newcomer_since(me, Config::new(), Incarnation(since), 0).unwrap();
        let at = group.at(3);
        group.nodes[at] = Driver::new(node);
        group.command(1, Command::Propose(7));
        group.wait(Span::secs(1));
        group.command(1, Command::Configure(lives(&[1, 1, named])));
        group.wait(Span::secs(2));
        let number = group.node(1).configuration().number;
        let case = format!("since {since}, named in {named}");
        assert_eq!(group.node(3).configuration().number, number, "{case}");
        if number == 2 {
            assert_eq!(group.node(3).votes(), votes, "{case}");
        } else {
            assert!(!votes, "{case}: it was named anew");
        }
    }
}

#[test]
fn the_mark_is_stored() {
    let stored = |me, mark| {
        let node = Node::newcomer_behind(me, Config::new(), mark).unwrap();
        let bytes = postcard::to_allocvec(&node.stored()).unwrap();
        let stored = postcard::from_bytes(&bytes).unwrap();
        Node::restore(me, Config::new(), stored).unwrap()
    };
    let (one, other, _) = two_histories(stored);
    assert_eq!((one, other), (vec![11], vec![]));
    let node = stored(member(3), 9);
    assert_eq!((node.mark(), node.configuration().number), (9, 0));
    let refused = Node::newcomer_behind(member(3), Config::new(), 1 << 28).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "mark is 268435456: set it to at most 268435455"
    );
}

/// A member of a later configuration serves the pages of an earlier one that others still fetch.
#[test]
fn no_state_of_a_configuration_up_to_the_mark_is_taken() {
    for (number, is_taken) in [(3, false), (4, false), (5, true)] {
        let of = Configuration {
            number,
            ..lives(&[1, 1])
        };
        let node = Replica::new(member(1), Config::new(), of, Journal::default()).unwrap();
        let mut source = Group::of(&[1]);
        source.nodes = vec![Driver::new(node)];
        let wants = selvedge_replica::Wants::State;
        let asks = Body::Missing {
            committed: 0,
            wants,
        };
        source.judged(1, member(2), 0, asks).unwrap();
        let pages = source.taken();
        let mut group = Group::of(&[1]);
        let behind = Replica::newcomer_behind(member(2), Config::new(), 4).unwrap();
        group.nodes = vec![Driver::new(behind)];
        for (_, body) in pages {
            assert!(matches!(body, Body::Page { .. }), "{body:?}");
            group.judged(2, member(1), 9, body).unwrap();
        }
        let known = group.node(2).configuration().number;
        assert_eq!(known == number, is_taken, "configuration {number}");
        assert_eq!(group.node(2).votes(), is_taken, "configuration {number}");
    }
}

/// The group remembers the applied numbers of this life.
#[test]
fn a_node_that_dropped_its_memory_gives_no_number_again() {
    let mut group = Group::of(&[1, 2, 3]);
    for update in 1..=3 {
        group.command(3, Command::Propose(update));
        group.wait(Span::secs(1));
    }
    group.command(1, Command::Configure(Configuration::of([1, 2].map(member))));
    group.wait(Span::secs(1));
    let mark = group.node(3).mark();
    assert_eq!((mark, group.node(3).state()), (2, None));
    let again = Replica::newcomer_behind(member(3), Config::new(), mark).unwrap();
    assert_eq!(again.next_number(), (2 << 32) + 1);
    let at = group.at(3);
    group.nodes[at] = Driver::new(again);
    group.command(
        1,
        Command::Configure(Configuration::of([1, 2, 3].map(member))),
    );
    group.wait(Span::secs(1));
    assert!(group.node(3).votes());
    let before = group.notified(3, |it| matches!(it, Event::Applied { .. }));
    group.command(3, Command::Propose(4));
    group.wait(Span::secs(1));
    assert_eq!(group.state(1), [1, 2, 3, 4]);
    assert_eq!(group.state(3), [1, 2, 3, 4]);
    assert_eq!(
        group.notified(3, |it| matches!(it, Event::Applied { .. })),
        before + 1
    );
    assert_eq!(
        group.notified(3, |it| matches!(it, Event::Overtaken { .. })),
        0
    );
}

/// Not each commit is a fact. A peer that lies sends other entries for committed versions, and one more: the
/// next life of the member has the state of the former one, and not the peer's.
#[test]
fn a_liar_cannot_replace_committed_versions_in_the_facts_of_a_member() {
    let first = Configuration::of([member(1), member(2)]);
    let mut group = Group::new(&first, &[1, 2]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let lie = |number, update| {
        Entry::Update(Proposal {
            by: member(2),
            number,
            first: 1,
            since: 0,
            update,
        })
    };
    let entries = [lie(1, 8), lie(2, 9)].into_iter().collect();
    group.say(1, member(2), Body::Learn { after: 0, entries });
    let held = group.state(1).to_vec();
    group.restart_with_storage(1, &first);
    assert_eq!((group.state(1), group.node(1).version()), (&*held, 2));
}

/// A former life was not a witness yet, and holds a state. Its entries accepted as a witness have
/// no updates.
#[test]
fn a_state_that_lacks_an_update_is_given_up_when_a_witness_comes_back() {
    for lacks_update in [false, true] {
        let first = Configuration::of([1, 2, 3].map(member));
        let node = Replica::new(member(3), Config::new(), first.clone(), Journal::default());
        let stored = node.unwrap().stored();
        let mut node = Node::restore(Member::new(3, 2), Config::new(), stored).unwrap();
        let mut next = first;
        next.number += 1;
        for voter in next.voters.iter_mut().filter(|it| it.member == member(3)) {
            voter.is_witness = true;
        }
        let entries = [Entry::Configure(next.into())].into_iter().collect();
        node.fold(&Fact::Learned { after: 0, entries }).unwrap();
        let elided = Fact::Accepted {
            ballot: ballot(1, 1),
            after: 1,
            committed: 1,
            commit: 2,
            entries: [Entry::Elided].into_iter().collect(),
        };
        if lacks_update {
            node.fold(&elided).unwrap();
        }
        let mut group = Group::of(&[3]);
        group.nodes = vec![Driver::new(node)];
        let asks = Body::Missing {
            committed: 0,
            wants: selvedge_replica::Wants::State,
        };
        let reported = group.say(3, member(1), asks);
        let is_page = |it: &(u64, Body<u16>)| matches!(it.1, Body::Page { .. });
        assert_eq!(reported.iter().any(is_page), !lacks_update, "{reported:?}");
    }
}

/// Such a state would not be taken, so it is not asked for.
#[test]
fn a_configuration_up_to_the_mark_causes_no_question() {
    for (number, is_asked) in [(3, false), (4, false), (5, true)] {
        let mut group = Group::of(&[1]);
        let behind = Node::newcomer_behind(member(2), Config::new(), 4).unwrap();
        group.nodes = vec![Driver::new(behind)];
        let of = Configuration {
            number,
            ..lives(&[1, 1])
        };
        let body = Body::Current {
            configuration: of.into(),
            is_active: true,
        };
        group.judged(2, member(1), number, body).unwrap();
        let reported = group.taken();
        assert_eq!(
            !reported.is_empty(),
            is_asked,
            "configuration {number}: {reported:?}"
        );
    }
}
