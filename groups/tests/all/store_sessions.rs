//! Sessions, lists and watches of a prefix, by hand: the cases that histories meet too rarely.

use selvedge_core::{Member, Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{
    Action, Change, ClientEffect, Expected, LeaderEffect, Operation, Position, REMOVED_MAX,
    SessionId, Store, StoreAnswer, StoreClient, StoreCommand, StoreConfig, StoreEvent, StoreLeader,
    StoreReject, StoreRequest, StoreTimer, Stored, Transaction,
};
use selvedge_replica::State as _;

const MAP: GroupId = GroupId(2);
const ME: Member = Member::new(9, 0);
const ONE: Member = Member::new(1, 0);
const TWO: Member = Member::new(2, 0);
const TTL: Span = Span::secs(10);

/// A leader of a group that decides at once.
struct Leader {
    state: Store,
    leader: StoreLeader,
    number: u64,
}

impl Leader {
    fn new() -> Self {
        Self::with(Store::default(), ME)
    }

    fn with(state: Store, me: Member) -> Self {
        let mut leader = StoreLeader::new(me, Span::millis(500), 400);
        let mut out = Vec::new();
        leader.on_leads(&state, &mut out);
        let number = 0;
        let mut led = Self {
            state,
            leader,
            number,
        };
        led.settle(out);
        led
    }

    /// Decides and reads what is asked for, and returns the answers.
    fn settle(&mut self, effects: Vec<LeaderEffect>) -> Vec<(Member, StoreAnswer)> {
        let (mut answers, mut left) = (Vec::new(), effects);
        while !left.is_empty() {
            let mut out = Vec::new();
            for effect in left {
                match effect {
                    LeaderEffect::Propose(change) => {
                        let decided = self.state.apply(&change);
                        self.leader.on_applied(&self.state, &decided, &mut out);
                    }
                    LeaderEffect::Read(read) => {
                        self.leader.on_readable(&self.state, read, &mut out);
                    }
                    LeaderEffect::Answer { to, answer } => answers.push((to, answer)),
                    LeaderEffect::Arm { .. } => {}
                }
            }
            left = out;
        }
        answers
    }

    fn ask(&mut self, from: Member, request: StoreRequest) -> Vec<(Member, StoreAnswer)> {
        let mut out = Vec::new();
        self.leader.on_asked(&self.state, from, request, &mut out);
        self.settle(out)
    }

    fn change(&mut self, operation: Operation) -> Stored {
        self.number += 1;
        let number = self.number;
        let operation = Box::new(operation);
        let answers = self.ask(TWO, StoreRequest::Change { number, operation });
        let stored = answers.iter().find_map(|it| match it.1 {
            StoreAnswer::Changed { stored, .. } => Some(stored),
            _ => None,
        });
        stored.unwrap()
    }

    fn begin(&mut self) -> SessionId {
        let Stored::Begun { session, .. } = self.change(Operation::begin(TTL)) else {
            panic!("no session");
        };
        session
    }

    fn keep(&mut self, by: Member, session: SessionId) -> Option<Option<Span>> {
        let number = 1;
        let answers = self.ask(by, StoreRequest::KeepAlive { number, session });
        answers.into_iter().find_map(|it| match it.1 {
            StoreAnswer::KeptAlive { ttl, .. } => Some(ttl),
            _ => None,
        })
    }

    fn tick(&mut self, times: u32) {
        for _ in 0..times {
            let mut out = Vec::new();
            self.leader
                .on_tick(&self.state, StoreTimer::Resend, &mut out);
            self.settle(out);
        }
    }

    fn left(&mut self, member: Member) {
        let mut out = Vec::new();
        self.leader.on_left(member, &mut out);
        self.settle(out);
    }

    fn watch(&mut self, prefix: &str, since: Position) -> StoreAnswer {
        let watch = StoreRequest::WatchPrefix {
            watch: since.version,
            number: u64::from(since.after.is_none()),
            prefix: prefix.into(),
            since,
        };
        self.ask(ONE, watch).remove(0).1
    }

    fn list(&mut self, prefix: &str, after: Option<&str>) -> Vec<String> {
        let list = StoreRequest::List {
            number: 1,
            prefix: prefix.into(),
            after: after.map(Into::into),
        };
        match self.ask(ONE, list).remove(0).1 {
            StoreAnswer::Listed { page, .. } => page.entries.into_iter().map(|it| it.0).collect(),
            other => panic!("{other:?}"),
        }
    }
}

fn put(key: &str) -> Operation {
    Operation::set(key, Expected::Any, Some([1].into_iter().collect()))
}

fn remove(key: &str) -> Operation {
    Operation::set(key, Expected::Any, None)
}

fn put_owned(key: String, session: SessionId) -> Operation {
    let mut transaction = Transaction::default();
    transaction.then.push(Action::Put {
        key,
        value: [1].into_iter().collect(),
        owner: Some(session.into()),
    });
    Operation::Transact(transaction)
}

/// One change removes many entries, a node gets some of them, and then the map forgets the others.
#[test]
fn a_node_with_a_part_of_a_change_learns_that_the_rest_is_forgotten() {
    let mut map = Leader::new();
    let session = map.begin();
    for at in 0..200 {
        map.change(put_owned(format!("a/{at:03}"), session));
    }
    let Stored::Done { version } = map.change(Operation::EndSession(session)) else {
        panic!("it does not end");
    };
    let part = Position {
        version,
        after: Some("030".into()),
        base: 0,
    };
    let rest = map.watch("a/", part.clone());
    assert!(
        matches!(rest, StoreAnswer::PrefixChanged { .. }),
        "{rest:?}"
    );
    for at in 0..REMOVED_MAX - 150 {
        map.change(put(&format!("b/{at}")));
        map.change(remove(&format!("b/{at}")));
    }
    let rest = map.watch("a/", part);
    assert!(matches!(rest, StoreAnswer::Compacted { .. }), "{rest:?}");
    let all = map.watch("a/", Position::at(version));
    assert!(matches!(all, StoreAnswer::PrefixChanged { .. }), "{all:?}");
}

#[test]
fn a_session_that_two_nodes_keep_alive_is_not_ended_by_one_that_leaves() {
    let mut map = Leader::new();
    let (alone, shared) = (map.begin(), map.begin());
    assert_eq!(map.keep(ONE, shared), Some(Some(TTL)));
    let later = Member::new(2, 1);
    assert_eq!(map.keep(later, alone), Some(Some(TTL)));
    assert_eq!(map.keep(TWO, alone), None, "its life has ended");
    map.left(TWO);
    assert_eq!(map.state.sessions().count(), 2, "an earlier life left");
    map.left(later);
    assert_eq!(map.state.session(alone), None);
    map.tick(2 * TTL.0 as u32 / Span::secs(1).0 as u32 - 1);
    assert!(map.state.session(shared).is_some());
    map.tick(3);
    assert_eq!(map.state.session(shared), None);
}

/// A former leader may have answered another node about a session that this one receives later.
#[test]
fn a_session_that_begins_before_a_later_leader_takes_over_is_not_ended_by_one_node() {
    let mut map = Leader::new();
    let session = map.begin();
    map.change(Operation::EndSession(session));
    map = Leader::with(map.state, Member::new(10, 0));
    map.number = 2;
    let session = map.begin();
    map.left(TWO);
    assert!(map.state.session(session).is_some());
    let session = map.begin();
    map.left(TWO);
    assert_eq!(map.state.session(session), None, "it began after that");
}

#[test]
fn a_node_with_many_questions_takes_no_room_of_others() {
    let mut map = Leader::new();
    let mut out = Vec::new();
    let mut ask = |leader: &mut StoreLeader, state: &Store, from, number| {
        let key = "a".into();
        leader.on_asked(state, from, StoreRequest::Get { number, key }, &mut out);
    };
    ask(&mut map.leader, &map.state, TWO, 1);
    for number in 0..2_000 {
        ask(&mut map.leader, &map.state, ONE, number);
    }
    let mut answers = Vec::new();
    map.leader.on_readable(&map.state, 1, &mut answers);
    assert_eq!(answers.len(), 1, "the first question waits");
}

#[test]
fn a_session_whose_end_is_proposed_is_not_kept_alive() {
    let mut map = Leader::new();
    let session = map.begin();
    let mut end = Vec::new();
    while !end.contains(&LeaderEffect::Propose(Change::Expire { session, term: 1 })) {
        map.settle(std::mem::take(&mut end));
        map.leader.on_tick(&map.state, StoreTimer::Resend, &mut end);
    }
    assert_eq!(map.keep(TWO, session), None, "its end may be decided");
    map.settle(end);
    assert_eq!(map.keep(TWO, session), Some(None));
}

#[test]
fn a_session_ends_though_leaders_change_more_often_than_its_time_to_live() {
    let mut map = Leader::new();
    let session = map.begin();
    for id in 10..12 {
        assert!(map.state.session(session).is_some(), "{id}");
        map.tick(12);
        map = Leader::with(map.state, Member::new(id, 0));
    }
    assert_eq!(map.state.session(session), None);

    let mut map = Leader::new();
    let session = map.begin();
    map.tick(12);
    assert!(map.state.session(session).unwrap().left < TTL);
    assert_eq!(
        map.keep(ONE, session),
        None,
        "what is left is decided again first"
    );
    assert_eq!(map.keep(ONE, session), Some(Some(TTL)));
    map = Leader::with(map.state, Member::new(10, 0));
    map.tick(19);
    assert!(map.state.session(session).is_some());
}

#[test]
fn a_list_begins_after_any_name() {
    let mut map = Leader::new();
    for key in ["a", "b/a", "b/b", "c"] {
        map.change(put(key));
    }
    assert_eq!(map.list("b/", None), ["b/a", "b/b"]);
    assert_eq!(map.list("b/", Some("a")), ["b/a", "b/b"]);
    assert_eq!(map.list("b/", Some("b/a")), ["b/b"]);
    assert_eq!(map.list("b/", Some("c")), [""; 0]);
    assert_eq!(map.list("", Some("b/b")), ["c"]);
}

#[test]
fn a_map_that_begins_again_has_later_versions() {
    let mut map = Leader::with(Store::after(1), ME);
    let Stored::Done { version } = map.change(put("a")) else {
        panic!("it is not done");
    };
    assert!(version > u64::from(u32::MAX));
    let since = map.watch("", Position::at(5_000));
    assert!(matches!(since, StoreAnswer::Compacted { .. }), "{since:?}");
}

struct Node(StoreClient);

impl Node {
    fn command(&mut self, now: Time, command: StoreCommand) -> Vec<ClientEffect> {
        let mut out = Vec::new();
        self.0.on_command(now, MAP, command, &mut out).unwrap();
        out
    }

    fn kept(&mut self, number: u64, session: SessionId) -> Vec<ClientEffect> {
        let mut out = Vec::new();
        let ttl = Some(TTL);
        let answer = StoreAnswer::KeptAlive {
            number,
            session,
            ttl,
        };
        self.0.on_answered(Time::ZERO, MAP, answer, &mut out);
        out
    }
}

#[test]
fn a_late_answer_is_not_that_to_a_later_request() {
    let mut node = Node(StoreClient::new(StoreConfig::new().with_pending(1), 400));
    let session = SessionId { by: ONE, number: 1 };
    let at = |secs| Time::ZERO + Span::secs(secs);
    node.command(at(0), StoreCommand::KeepAlive(session));
    node.command(at(8), StoreCommand::StopKeepAlive(session));
    node.command(at(9), StoreCommand::KeepAlive(session));
    node.command(at(9), StoreCommand::KeepAlive(session));
    assert_eq!(node.kept(1, session), []);
    let until = at(9) + Span(TTL.0 - TTL.0 / 8);
    let kept = StoreEvent::SessionKept { session, until };
    assert_eq!(
        node.kept(2, session),
        [ClientEffect::Event {
            map: MAP,
            event: kept
        }]
    );
    let other = SessionId { by: ONE, number: 2 };
    let mut out = Vec::new();
    let refused = node
        .0
        .on_command(at(9), MAP, StoreCommand::KeepAlive(other), &mut out);
    assert_eq!(refused, Err(StoreReject::Full { limit: 1 }));
}

#[test]
fn answers_that_cannot_be_true_change_nothing() {
    let mut node = Node(StoreClient::new(StoreConfig::new(), 400));
    let session = SessionId { by: ONE, number: 1 };
    let operation = put("a");
    node.command(
        Time::ZERO,
        StoreCommand::Change {
            ticket: 7,
            operation,
        },
    );
    let stored = Stored::Begun {
        session,
        version: 1,
        is_otherwise: false,
    };
    let mut out = Vec::new();
    let answer = StoreAnswer::Changed { number: 1, stored };
    node.0.on_answered(Time::ZERO, MAP, answer, &mut out);
    let over = StoreEvent::Changed {
        ticket: 7,
        stored: Stored::Over,
    };
    assert_eq!(
        out,
        [ClientEffect::Event {
            map: MAP,
            event: over
        }]
    );

    node.command(Time::ZERO, StoreCommand::KeepAlive(session));
    assert_eq!(node.kept(1, session).len(), 1);
    let mut due = Vec::new();
    node.0.on_tick(Time::ZERO + TTL, MAP, &mut due);
    let mut out = Vec::new();
    let (number, ttl) = (2, Some(Span(u64::MAX)));
    let answer = StoreAnswer::KeptAlive {
        number,
        session,
        ttl,
    };
    node.0.on_answered(Time::ZERO, MAP, answer, &mut out);
    assert_eq!(out, []);
}

#[test]
fn names_times_and_tickets_out_of_range_are_refused() {
    let mut node = StoreClient::new(StoreConfig::new(), 1_400);
    let mut refused = |command| {
        let mut out = Vec::new();
        node.on_command(Time::ZERO, MAP, command, &mut out)
    };
    let begin = |ttl| StoreCommand::Change {
        ticket: 1,
        operation: Operation::begin(ttl),
    };
    for ttl in [Span::millis(999), Span::secs(86_401)] {
        assert_eq!(refused(begin(ttl)), Err(StoreReject::TimeToLive { ttl }));
    }
    assert_eq!(refused(begin(Span::secs(1))), Ok(()));
    let long = "a".repeat(256);
    assert_eq!(
        refused(StoreCommand::Watch(long)),
        Err(StoreReject::Name { len: 256 })
    );
    let watch = || StoreCommand::WatchPrefix {
        ticket: 7,
        prefix: "a".into(),
        since: 0,
    };
    assert_eq!(refused(watch()), Ok(()));
    assert_eq!(refused(watch()), Err(StoreReject::Ticket { ticket: 7 }));
}
