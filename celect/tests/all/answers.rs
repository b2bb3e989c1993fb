//! One node by hand: its reaction to answers, to former lives, and to nodes without a place on its
//! list.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{
    Ballot, Celect, Command, Config, Event, LeaderState, Members, Message, Protocol,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// A node, 9 by default, that knows some others.
struct Node {
    driver: Driver<Celect<ById>>,
    rng: ChaCha8Rng,
    now: Time,
}

type Effects = Vec<Effect<Celect<ById>>>;

impl Node {
    fn new(config: Config, known: &[u64]) -> Self {
        Self::called(member(9), config, known)
    }

    fn called(me: Member, config: Config, known: &[u64]) -> Self {
        let mut node = Self {
            driver: Driver::new(Celect::new(me, config, ById).unwrap()),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
        };
        for &id in known {
            node.learn(Delta::Joined(member(id)));
        }
        node
    }

    fn step(&mut self, input: Input<Celect<ById>>) -> Effects {
        let mut effects = Vec::new();
        let carry_out = |it| effects.push(it);
        self.driver
            .step(self.now, &mut self.rng, input, carry_out)
            .unwrap();
        effects
    }

    fn learn(&mut self, delta: Delta) -> Effects {
        self.step(Input::Membership(delta))
    }

    fn ask(&mut self, command: Command) -> Effects {
        self.step(Input::Command(command))
    }

    fn receive(&mut self, from: Member, message: Message) -> Effects {
        self.step(Input::Message { from, message })
    }

    /// Delivers an answer to the round of `ballot`.
    fn answer(&mut self, from: Member, ballot: Ballot, candidate: Member) -> Effects {
        self.answer_all(from, ballot, &[candidate])
    }

    fn answer_all(&mut self, from: Member, ballot: Ballot, candidates: &[Member]) -> Effects {
        let candidates = candidates.iter().copied().collect();
        let (unhealthy, known) = (Members::new(), Members::new());
        let message = Message::Response {
            ballot,
            candidates,
            unhealthy,
            known,
        };
        self.receive(from, message)
    }

    fn pass(&mut self, span: Span) -> Effects {
        let end = self.now + span;
        let mut effects = Vec::new();
        while let Some(due) = self.driver.deadline().filter(|due| *due <= end) {
            self.now = due;
            let carry_out = |it| effects.push(it);
            self.driver.expire(due, &mut self.rng, carry_out);
        }
        self.now = end;
        effects
    }
}

/// Returns the receivers of queries, with the ballot and the excluded nodes.
fn queries(effects: &Effects) -> Vec<(u64, Ballot, Members)> {
    let query = |it: &Effect<Celect<ById>>| match it {
        Effect::Send {
            to,
            message: Message::Query {
                ballot, exclude, ..
            },
        } => Some((to.id.0, *ballot, exclude.clone())),
        _ => None,
    };
    effects.iter().filter_map(query).collect()
}

/// Returns the numbers of candidates that queries ask for.
fn candidates_wanted(effects: &Effects) -> Vec<u8> {
    let wanted = |it: &Effect<Celect<ById>>| match it {
        Effect::Send {
            message: Message::Query { lowest: x, .. },
            ..
        } => Some(*x),
        _ => None,
    };
    effects.iter().filter_map(wanted).collect()
}

/// Returns the appointed node.
fn appointed(effects: &Effects) -> Option<Member> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send {
            to,
            message: Message::Appoint { .. },
        } => Some(*to),
        _ => None,
    })
}

/// Node 1 has left, and 2 does not know: its answer hides the nodes that it knows behind 1.
#[test]
fn an_answer_that_names_one_who_has_left_is_asked_for_again() {
    let mut node = Node::new(Config::new(1, 0), &[2, 3]);
    node.learn(Delta::Left(member(1)));
    let asked = queries(&node.ask(Command::Elect));
    let effects = node.answer(member(2), asked[0].1, member(1));
    let again = queries(&effects);
    assert_eq!(again.len(), 2, "{effects:?}");
    assert!(again[0].1 > asked[0].1 && again[0].2[..] == [member(1)]);
    // So two lists name 2, where before one of them would have hidden it.
    assert_eq!(
        appointed(&node.answer(member(3), again[0].1, member(3))),
        None
    );
    let effects = node.answer(member(2), again[0].1, member(2));
    assert_eq!(appointed(&effects), Some(member(2)));
}

/// The same case when a query may name no more nodes: it asks for one candidate more instead.
#[test]
fn behind_those_whom_a_query_does_not_name_another_candidate_is_asked_for() {
    let config = Config::new(1, 0).with_exclude_limit(1);
    let mut node = Node::new(config, &[3, 4]);
    node.learn(Delta::Left(member(1)));
    node.learn(Delta::Left(member(2)));
    let asked = queries(&node.ask(Command::Elect));
    let asked = queries(&node.answer(member(3), asked[0].1, member(1)));
    let effects = node.answer(member(3), asked[0].1, member(2));
    assert_eq!(candidates_wanted(&effects), [2, 2]);
    let asked = queries(&effects);
    assert_eq!(asked[0].2[..], [member(1)]);
    assert_eq!(node.answer(member(4), asked[0].1, member(4)), []);
    let effects = node.answer_all(member(3), asked[0].1, &[member(2), member(3)]);
    assert_eq!(appointed(&effects), Some(member(3)));
}

/// Nodes that are all suspected by some node: else no node could lead.
#[test]
fn fewer_suspects_are_asked_for_where_all_who_are_named_are_among_them() {
    let config = Config::new(0, 0)
        .with_protocol(Protocol::Hybrid)
        .with_lowest(1)
        .with_suspected(1);
    let mut node = Node::new(config, &[2, 3]);
    let asked = queries(&node.ask(Command::Elect));
    let [(from, ballot, _)] = asked[..] else {
        panic!("{asked:?}");
    };
    let answer = Message::Response {
        ballot,
        candidates: [member(2)].into_iter().collect(),
        unhealthy: [member(2)].into_iter().collect(),
        known: [].into_iter().collect(),
    };
    let effects = node.receive(member(from), answer);
    let again = effects.iter().find_map(|effect| match effect {
        Effect::Send {
            message:
                Message::Query {
                    lowest: x,
                    suspected: y,
                    ..
                },
            ..
        } => Some((*x, *y)),
        _ => None,
    });
    assert_eq!(again, Some((2, 0)), "{effects:?}");
    assert_eq!(node.driver.machine().counters().rounds, 1);
}

/// Three lists for c = 2. The list of a node that restarted does not count twice.
#[test]
fn two_lives_of_a_node_are_one_answer() {
    let mut node = Node::new(Config::new(2, 0), &[2, 3, 4]);
    let asked = queries(&node.ask(Command::Elect));
    let ballot = asked[0].1;
    node.answer(member(3), ballot, member(3));
    // 2 and 4 are slow, so the later life of 3 is asked too, and the list of the initiator counts.
    node.learn(Delta::Joined(Member::new(3, 1)));
    let again = queries(&node.pass(Span::secs(10)));
    assert!(again.iter().any(|(id, ..)| *id == 3), "{again:?}");
    let later = Member::new(3, 1);
    assert_eq!(appointed(&node.answer(later, ballot, later)), None);
    let effects = node.answer(member(4), ballot, member(2));
    assert_eq!(appointed(&effects), Some(member(2)));
}

/// Others do not know that 1 restarted. It must not appoint its own former life and wait for it.
#[test]
fn who_is_named_by_its_former_life_leads() {
    let me = Member::new(1, 1);
    let mut node = Node::called(me, Config::new(1, 0), &[2, 3]);
    let asked = queries(&node.ask(Command::Elect));
    for from in [2, 3] {
        node.answer(member(from), asked[0].1, member(1));
    }
    let leads = node.driver.machine().leads();
    assert!(leads.is_some_and(|it| it > asked[0].1), "{leads:?}");
    assert!(!node.driver.machine().is_electing());
}

/// The present life of a node is appointed, where others know a former life.
#[test]
fn who_is_named_by_a_former_life_is_appointed_in_its_present_one() {
    let mut node = Node::new(Config::new(0, 0), &[2]);
    node.learn(Delta::Joined(Member::new(1, 1)));
    node.learn(Delta::Failed(Member::new(1, 1)));
    let asked = queries(&node.ask(Command::Elect));
    let effects = node.answer(member(2), asked[0].1, member(1));
    assert_eq!(appointed(&effects), Some(Member::new(1, 1)));
}

/// 1 restarted, 3 does not know, and the present life of 1 is silent. The answer of 3 hides the nodes
/// that it knows behind 1.
#[test]
fn an_answer_that_names_a_former_life_of_one_passed_over_is_asked_for_again() {
    let config = Config::new(1, 1).with_attempts(1);
    let mut node = Node::new(config, &[2, 3]);
    let present = Member::new(1, 1);
    node.learn(Delta::Joined(present));
    let asked = queries(&node.ask(Command::Elect));
    for from in [2, 3] {
        node.answer(member(from), asked[0].1, present);
    }
    let asked = queries(&node.pass(config.timeout));
    assert_eq!(asked[0].2[..], [present]);
    let again = queries(&node.answer(member(3), asked[0].1, member(1)));
    assert_eq!(again[0].2[..], [present, member(1)]);
    let effects = node.answer(member(3), again[0].1, member(2));
    assert_eq!(appointed(&effects), Some(member(2)));
}

/// Optimistic leads itself before all have answered; then c falls, so no more answers are needed.
#[test]
fn less_to_tolerate_ends_an_election_that_has_enough() {
    for protocol in [Protocol::Optimistic, Protocol::Base] {
        let config = Config::new(2, 0).with_protocol(protocol);
        let mut node = Node::called(member(1), config, &[2, 3, 4]);
        let asked = queries(&node.ask(Command::Elect));
        node.answer(member(2), asked[0].1, member(1));
        assert!(node.driver.machine().is_electing());
        node.ask(Command::SetBounds {
            missing_from: 0,
            failures: 0,
        });
        assert!(!node.driver.machine().is_electing(), "{protocol:?}");
        let later = node.pass(Span::secs(60));
        assert_eq!(appointed(&later), None, "{protocol:?}");
        assert!(node.driver.machine().leads().is_some());
    }
}

/// A leader sends LEADER to the nodes on its list until they acknowledge it, and once to a newcomer
/// without a place.
#[test]
fn a_newcomer_without_a_place_is_told_once() {
    let config = Config::new(0, 0).with_peer_limit(2);
    let mut node = Node::called(member(1), config, &[2, 3]);
    let asked = queries(&node.ask(Command::Elect));
    node.answer(member(asked[0].0), asked[0].1, member(1));
    assert!(node.driver.machine().leads().is_some());
    let is_notified = |it: &Effect<Celect<ById>>, id: u64| matches!(it, Effect::Send { to, .. } if *to == member(id));
    let told = node.learn(Delta::Joined(member(4)));
    assert!(matches!(&told[..], [it] if is_notified(it, 4)), "{told:?}");
    assert_eq!(node.driver.machine().counters().no_room, 1);
    let later = node.pass(Span::secs(60));
    assert!(later.iter().any(|it| is_notified(it, 2)), "{later:?}");
    assert!(!later.iter().any(|it| is_notified(it, 4)), "{later:?}");
    // It gets the place of the next node that fails.
    let told = node.learn(Delta::Failed(member(3)));
    assert!(matches!(&told[..], [it] if is_notified(it, 4)), "{told:?}");
    let later = node.pass(Span::millis(600));
    assert!(later.iter().any(|it| is_notified(it, 4)), "{later:?}");
}

/// Four names of the longest kind fit the shortest frames, in a query and in an answer. So of seven
/// nodes that are passed over, a query names four, and an answer can name one node behind the others.
/// An eighth would hide the nodes behind it.
#[test]
fn no_more_are_passed_over_than_queries_and_answers_can_name() {
    let config = Config::new(0, 0).with_frame_budget(127).with_attempts(1);
    let long = |nth: u64| Member::new(u64::MAX - 100 + nth, u32::MAX);
    let mut node = Node::called(long(99), config, &[]);
    node.learn(Delta::Joined(long(90)));
    let mut asked = queries(&node.ask(Command::Elect));
    for nth in 0..9 {
        let effects = node.answer(long(90), asked[0].1, long(nth));
        assert_eq!(appointed(&effects), Some(long(nth)));
        let effects = node.pass(node.driver.machine().config().timeout);
        asked = queries(&effects);
        let first = nth.saturating_sub(6);
        let named: Members = (first..=nth).take(4).map(long).collect();
        assert_eq!(asked[0].2, named);
        let unnamed = (first..=nth).skip(4).count() as u8;
        assert_eq!(candidates_wanted(&effects), [1 + unnamed]);
    }
}

/// Eight nodes have left, and a node that does not know names them. Seven of them fill the shortest
/// frames: if the first were forgotten for the eighth, it would be named again, and so on for ever.
#[test]
fn who_has_left_is_not_passed_over_in_turn_for_ever() {
    let config = Config::new(0, 0).with_frame_budget(127);
    let long = |nth: u64| Member::new(u64::MAX - 100 + nth, u32::MAX);
    let mut node = Node::called(long(99), config, &[]);
    node.learn(Delta::Joined(long(90)));
    for nth in 0..8 {
        node.learn(Delta::Left(long(nth)));
    }
    let mut effects = node.ask(Command::Elect);
    let mut rounds = 0;
    while let Some((_, ballot, exclude)) = queries(&effects).pop() {
        rounds += 1;
        assert!(rounds <= 8, "no time has passed, and {rounds} rounds have");
        let wanted = candidates_wanted(&effects)[0].min(4);
        let others = (0..8).map(long).filter(|it| !exclude.contains(it));
        let lowest: Vec<Member> = others.take(wanted.into()).collect();
        effects = node.answer_all(long(90), ballot, &lowest);
    }
    assert_eq!((rounds, node.driver.machine().counters().stale), (8, 1));
}

/// Four nodes that are passed over and not named fill the shortest frame of an answer: the sender may
/// know a node below them, so its answer does not count. A shorter answer names all.
#[test]
fn an_answer_whose_frame_is_too_short_for_what_was_asked_does_not_count() {
    let config = Config::new(0, 0).with_exclude_limit(1).with_attempts(1);
    let mut node = Node::new(config, &[8]);
    let mut asked = queries(&node.ask(Command::Elect));
    for id in 1..=5 {
        let named: Vec<Member> = (1..=id)
            .map(member)
            .filter(|it| !asked[0].2.contains(it))
            .collect();
        assert_eq!(
            appointed(&node.answer_all(member(8), asked[0].1, &named)),
            Some(member(id))
        );
        asked = queries(&node.pass(node.driver.machine().config().timeout));
    }
    let named: Vec<Member> = (2..=5).map(member).collect();
    assert_eq!(node.answer_all(member(8), asked[0].1, &named), []);
    assert_eq!(node.driver.machine().counters().stale, 1);
    let named: Vec<Member> = [2, 3, 4, 5, 8].map(member).to_vec();
    let effects = node.answer_all(member(8), asked[0].1, &named);
    assert_eq!(appointed(&effects), Some(member(8)));
}

/// Former followers may have restarted, and know no leader.
#[test]
fn a_leader_whose_lease_ran_out_begins_an_election_when_nobody_else_does() {
    let config = Config::new(1, 0).with_lease(Some(Span::secs(9)));
    let mut node = Node::called(member(1), config, &[2, 3]);
    let asked = queries(&node.ask(Command::Elect));
    for (id, ballot, _) in &asked {
        node.answer(member(*id), *ballot, member(1));
    }
    assert!(node.driver.machine().leads().is_some());
    let effects = node.pass(Span::secs(9));
    let ended = |it: &Effect<_>| matches!(it, Effect::Event(Event::Ended(_)));
    assert!(effects.iter().any(ended) && !node.driver.machine().is_electing());
    let effects = node.pass(config.patience);
    let ended_by = asked[0].1;
    assert!(queries(&effects)[0].1.epoch > ended_by.epoch);
}

/// Optimistic has a leader before the run ends. It fails in between; the last answer ends the run, and
/// a node has to begin another.
#[test]
fn a_leader_that_is_lost_before_its_election_is_over_is_replaced() {
    let config = Config::new(1, 0).with_protocol(Protocol::Optimistic);
    let mut node = Node::new(config, &[1, 2]);
    let asked = queries(&node.ask(Command::Elect));
    let notified = node.answer(member(2), asked[0].1, member(1));
    let ballot = ballot_of(&notified).unwrap();
    let (leader, told) = (member(1), Members::new());
    let message = Message::Leader {
        ballot,
        leader,
        renewal: 0,
        lease: Span::ZERO,
        state: LeaderState::Leading,
        covered: told.to_vec().into(),
    };
    node.receive(leader, message);
    assert_eq!(node.driver.machine().leader(), Some((leader, ballot)));
    node.learn(Delta::Failed(leader));
    node.pass(Span::millis(400));
    node.answer(member(1), asked[0].1, member(1));
    let later = node.pass(Span::millis(400));
    assert!(queries(&later)[0].1.epoch > ballot.epoch, "{later:?}");
}

/// A node whose answer to a streaming initiator was lost already follows when it is asked again.
#[test]
fn who_follows_already_answers_the_run_that_appointed_its_leader() {
    let mut node = Node::new(Config::new(1, 0), &[1, 2]);
    let ballot = Ballot {
        epoch: 1,
        initiator: member(2),
        step: 0,
    };
    let query = Message::Query {
        ballot,
        lowest: 1,
        suspected: 0,
        want: 0,
        exclude: Members::new(),
        no_majority: false,
    };
    let has_answered = |effects: &Effects| {
        matches!(
            &effects[..],
            [Effect::Send {
                message: Message::Response { .. },
                ..
            }]
        )
    };
    assert!(has_answered(&node.receive(member(2), query.clone())));
    let leader = |epoch, step| Message::Leader {
        ballot: Ballot {
            epoch,
            step,
            ..ballot
        },
        leader: member(1),
        renewal: 0,
        lease: Span::ZERO,
        state: LeaderState::Leading,
        covered: [].into(),
    };
    node.receive(member(1), leader(1, 1));
    assert!(has_answered(&node.receive(member(2), query.clone())));
    assert!(node.driver.machine().leader().is_some());
    // It answers another run with LEADER.
    node.receive(member(1), leader(2, 1));
    assert!(!has_answered(&node.receive(member(2), query)));
}

fn ballot_of(effects: &Effects) -> Option<Ballot> {
    effects.iter().find_map(|effect| match effect {
        Effect::Send {
            message: Message::Appoint { ballot, .. },
            ..
        } => Some(*ballot),
        _ => None,
    })
}
