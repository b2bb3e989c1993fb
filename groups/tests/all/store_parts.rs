//! A node that asks and a leader, by hand.

use std::fmt::Debug;

use selvedge_core::{Member, Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{
    Change, ClientEffect, Entry, Expected, Key, LeaderEffect, Operation, Position, Store,
    StoreAnswer, StoreClient, StoreCommand, StoreConfig, StoreEvent, StoreLeader, StoreReject,
    StoreRequest, StoreTimer, Stored,
};
use selvedge_replica::State as _;

use crate::mesh::encoded_len;

/// The most watches, and the most questions, that a leader has at once.
const LIMIT: usize = 1_024;

/// The number of ticks for which a watch lasts that is not requested again.
const PATIENCE: u8 = 32;

const MAP: GroupId = GroupId(2);
const RESEND: Span = Span::millis(400);
/// The version at a node without a report.
const NOTHING: u64 = u64::MAX;

fn effects<T>(call: impl FnOnce(&mut Vec<T>)) -> Vec<T> {
    let mut out = Vec::new();
    call(&mut out);
    out
}

fn put(key: &str, value: &[u8]) -> Operation {
    Operation::set(key, Expected::Any, Some(value.iter().copied().collect()))
}

fn entry(version: u64, value: &[u8]) -> Option<Entry> {
    let value = value.iter().copied().collect();
    Some(Entry {
        created: version,
        version,
        session: None,
        value,
    })
}

fn ask(request: StoreRequest) -> ClientEffect {
    ClientEffect::Ask { map: MAP, request }
}

fn ask_change(number: u64, operation: &Operation) -> ClientEffect {
    let operation = operation.clone().into();
    ask(StoreRequest::Change { number, operation })
}

fn ask_get(number: u64, key: &str) -> ClientEffect {
    let key = key.into();
    ask(StoreRequest::Get { number, key })
}

fn ask_watch(key: &str, known: u64) -> ClientEffect {
    let key = key.into();
    ask(StoreRequest::Watch { key, known })
}

const fn event(event: StoreEvent) -> ClientEffect {
    ClientEffect::Event { map: MAP, event }
}

const fn changed(ticket: u64, version: u64) -> ClientEffect {
    let stored = Stored::Done { version };
    event(StoreEvent::Changed { ticket, stored })
}

const fn arm() -> ClientEffect {
    ClientEffect::Arm {
        map: MAP,
        after: RESEND,
    }
}

/// A node that asks, with room for this number of requests.
struct Asker(StoreClient);

impl Asker {
    fn new(pending: u16) -> Self {
        let config = StoreConfig::new().with_pending(pending).with_resend(RESEND);
        Self(StoreClient::new(config, 1_400))
    }

    fn refused(&mut self, map: GroupId, command: StoreCommand) -> StoreReject {
        self.0
            .on_command(Time::ZERO, map, command, &mut vec![])
            .unwrap_err()
    }

    fn command(&mut self, command: StoreCommand) -> Vec<ClientEffect> {
        effects(|out| self.0.on_command(Time::ZERO, MAP, command, out).unwrap())
    }

    fn change(&mut self, ticket: u64, operation: &Operation) -> Vec<ClientEffect> {
        let operation = operation.clone();
        self.command(StoreCommand::Change { ticket, operation })
    }

    fn get(&mut self, ticket: u64, key: &str) -> Vec<ClientEffect> {
        let key = key.into();
        self.command(StoreCommand::Get { ticket, key })
    }

    fn receive(&mut self, answer: StoreAnswer) -> Vec<ClientEffect> {
        effects(|out| self.0.on_answered(Time::ZERO, MAP, answer, out))
    }

    fn receive_changed(&mut self, number: u64, version: u64) -> Vec<ClientEffect> {
        let stored = Stored::Done { version };
        self.receive(StoreAnswer::Changed { number, stored })
    }

    fn receive_watched(&mut self, version: u64, entry: Option<Entry>) -> Vec<ClientEffect> {
        let key = "door".into();
        self.receive(StoreAnswer::Watched {
            key,
            version,
            entry,
        })
    }

    fn tick(&mut self) -> Vec<ClientEffect> {
        effects(|out| self.0.on_tick(Time::ZERO, MAP, out))
    }
}

#[test]
fn changes_of_a_map_are_asked_one_after_another_and_told_once() {
    let mut node = Asker::new(9);
    let [one, two] = [put("a", b"1"), put("a", b"2")];
    assert_eq!(node.change(7, &one), [ask_change(1, &one), arm()]);
    assert_eq!(node.change(8, &two), []);
    assert_eq!(node.tick(), [ask_change(1, &one), arm()]);
    assert_eq!(node.receive_changed(2, 1), [], "it is not asked yet");
    assert_eq!(
        node.receive_changed(1, 1),
        [changed(7, 1), ask_change(2, &two)]
    );
    assert_eq!(node.receive_changed(1, 1), [], "it was told");
    assert_eq!(node.receive_changed(2, 2), [changed(8, 2)]);
    assert_eq!(node.receive_changed(3, 3), [], "nobody asked");
    assert_eq!(node.tick(), [], "nothing waits");
    assert_eq!(node.change(9, &one), [ask_change(3, &one), arm()]);
}

#[test]
fn a_question_is_asked_until_it_is_answered() {
    let mut node = Asker::new(9);
    let found = |number| StoreAnswer::Found {
        number,
        entry: None,
    };
    let notified = |ticket| {
        event(StoreEvent::Found {
            ticket,
            entry: None,
        })
    };
    assert_eq!(node.get(7, "a"), [ask_get(1, "a"), arm()]);
    assert_eq!(node.get(8, "b"), [ask_get(2, "b")]);
    assert_eq!(node.receive(found(2)), [notified(8)]);
    assert_eq!(node.receive(found(2)), [], "it was told");
    assert_eq!(node.tick(), [ask_get(1, "a"), arm()]);
    assert_eq!(node.receive(found(1)), [notified(7)]);
    assert_eq!(node.tick(), []);
}

#[test]
fn a_watched_entry_is_told_when_it_is_another_one() {
    let mut node = Asker::new(9);
    let notified = |entry| {
        let key = "door".into();
        event(StoreEvent::Watched { key, entry })
    };
    let watch = node.command(StoreCommand::Watch("door".into()));
    assert_eq!(watch, [ask_watch("door", NOTHING), arm()]);
    assert_eq!(node.tick(), [ask_watch("door", NOTHING), arm()]);

    let [open, shut] = [entry(3, b"open"), entry(6, b"shut")];
    let answered = node.receive_watched(5, open.clone());
    assert_eq!(answered, [ask_watch("door", 3), notified(open.clone())]);
    let again = node.receive_watched(5, open.clone());
    assert_eq!(again, [ask_watch("door", 3)], "the leader has not heard it");
    let next = node.receive_watched(6, shut.clone());
    assert_eq!(next, [ask_watch("door", 6), notified(shut)]);
    assert_eq!(node.receive_watched(5, open), [], "late");
    let none = node.receive_watched(7, None);
    assert_eq!(none, [ask_watch("door", 0), notified(None)]);

    let watch = node.command(StoreCommand::Watch("door".into()));
    assert_eq!(watch, [ask_watch("door", NOTHING)]);
    assert_eq!(node.receive_watched(6, entry(6, b"shut")), [], "late");
    let again = node.receive_watched(7, None);
    assert_eq!(again, [ask_watch("door", 0), notified(None)]);

    let ticks: Vec<_> = (0..16).map(|_| node.tick()).collect();
    let asked = ticks.iter().filter(|it| **it != [arm()]);
    let renewed = [ask_watch("door", 0), arm()];
    assert_eq!(
        asked.collect::<Vec<_>>(),
        [&renewed; 2],
        "now and then, as leaders change"
    );
    let key: Key = "door".into();
    let unwatch = || StoreCommand::Unwatch("door".into());
    let asked = node.command(unwatch());
    assert_eq!(asked, [ask(StoreRequest::Unwatch { key })]);
    assert_eq!(node.command(unwatch()), [], "it is not watched");
    assert_eq!(node.receive_watched(8, None), []);
    assert_eq!(node.tick(), []);
}

#[test]
fn a_node_with_no_room_refuses_to_ask() {
    let full = StoreReject::Full { limit: 1 };
    let commands = || {
        let operation = put("a", b"1");
        [
            StoreCommand::Change {
                ticket: 1,
                operation,
            },
            StoreCommand::Get {
                ticket: 1,
                key: "a".into(),
            },
            StoreCommand::Watch("a".into()),
        ]
    };
    let mut node = Asker::new(1);
    for command in commands() {
        node.command(command);
    }
    for command in commands().into_iter().take(2) {
        assert_eq!(node.refused(MAP, command), full);
    }
    assert_eq!(node.refused(MAP, StoreCommand::Watch("b".into())), full);
    let (other, maps) = (GroupId(MAP.0 + 4), StoreReject::Maps { limit: 1 });
    for command in commands() {
        assert_eq!(node.refused(other, command), maps);
    }
}

#[test]
fn what_does_not_fit_into_a_frame_is_refused() {
    let mut node = Asker::new(9);
    let of_len = |value: usize| {
        let operation = put("a", &vec![1; value]);
        let len = encoded_len(&operation);
        let change = StoreCommand::Change {
            ticket: 1,
            operation,
        };
        (change, len)
    };
    let (change, len) = of_len(2_000);
    let refusal = node.refused(MAP, change);
    let StoreReject::TooLong { len: found, room } = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(found, len);
    assert!((1_000..1_400).contains(&room));
    let fits = 2_000 - (len - room);
    node.command(of_len(fits).0);
    let refusal = node.refused(MAP, of_len(fits + 1).0);
    let len = room + 1;
    assert_eq!(refusal, StoreReject::TooLong { len, room });

    // Short names have no room in a short frame.
    let mut node = Asker(StoreClient::new(StoreConfig::new(), 350));
    let room = 350 - (1_400 - room);
    let key = String::from_utf8(vec![b'a'; room]).unwrap();
    let len = encoded_len(&key);
    for command in [
        StoreCommand::Get {
            ticket: 1,
            key: key.clone(),
        },
        StoreCommand::Watch(key.clone()),
        StoreCommand::Unwatch(key),
    ] {
        assert_eq!(
            node.refused(MAP, command),
            StoreReject::TooLong { len, room }
        );
    }
}

#[test]
fn settings_of_maps_have_ranges() {
    let config = StoreConfig::new();
    assert!(config.check().is_ok());
    assert!(config.with_pending(0).check().is_err());
    assert!(config.with_resend(Span(0)).check().is_err());
}

const fn notify(to: Member, answer: StoreAnswer) -> LeaderEffect {
    LeaderEffect::Answer { to, answer }
}

const ARM: LeaderEffect = LeaderEffect::Arm {
    timer: StoreTimer::Resend,
    after: RESEND,
};

/// A leader of a group that decides at once.
struct Leader {
    state: Store,
    leader: StoreLeader,
}

impl Leader {
    fn new() -> Self {
        let leader = StoreLeader::new(Member::new(9, 0), RESEND, 1_400);
        let state = Store::default();
        Self { state, leader }
    }

    fn asked(&mut self, from: Member, request: StoreRequest) -> Vec<LeaderEffect> {
        effects(|out| self.leader.on_asked(&self.state, from, request, out))
    }

    fn watch(&mut self, from: Member, key: &str, known: u64) -> Vec<LeaderEffect> {
        let key = key.into();
        self.asked(from, StoreRequest::Watch { key, known })
    }

    fn get(&mut self, from: Member, number: u64, key: &str) -> Vec<LeaderEffect> {
        let key = key.into();
        self.asked(from, StoreRequest::Get { number, key })
    }

    fn change(&mut self, by: Member, number: u64, operation: &Operation) -> Vec<LeaderEffect> {
        let operation = operation.clone().into();
        self.asked(by, StoreRequest::Change { number, operation })
    }

    fn decided(&mut self, by: Member, number: u64, operation: Operation) -> Vec<LeaderEffect> {
        let decided = self.state.apply(&Change::Asked {
            by,
            number,
            operation,
        });
        effects(|out| self.leader.on_applied(&self.state, &decided, out))
    }

    fn readable(&mut self, read: u64) -> Vec<LeaderEffect> {
        effects(|out| self.leader.on_readable(&self.state, read, out))
    }

    fn tick(&mut self) -> Vec<LeaderEffect> {
        effects(|out| self.leader.on_tick(&self.state, StoreTimer::Resend, out))
    }

    /// The answer to a node that watches.
    fn watched(&self, to: Member, key: &str) -> LeaderEffect {
        let entry = self.state.get(key).cloned();
        let (key, version) = (key.into(), self.state.version());
        notify(
            to,
            StoreAnswer::Watched {
                key,
                version,
                entry,
            },
        )
    }
}

const ONE: Member = Member::new(1, 0);
const TWO: Member = Member::new(2, 0);

fn same<T: PartialEq + Debug>(found: Vec<T>, expected: impl IntoIterator<Item = T>) {
    assert_eq!(found, Vec::from_iter(expected));
}

#[test]
fn a_change_that_was_decided_is_answered_and_not_proposed_again() {
    let mut map = Leader::new();
    let operation = put("a", b"1");
    let proposed = LeaderEffect::Propose(Change::Asked {
        by: ONE,
        number: 1,
        operation: operation.clone(),
    });
    same(map.change(ONE, 1, &operation), [proposed]);
    let stored = Stored::Done { version: 1 };
    let answer = notify(ONE, StoreAnswer::Changed { number: 1, stored });
    same(map.decided(ONE, 1, operation.clone()), [answer.clone()]);
    same(map.change(ONE, 1, &operation), [answer]);
}

#[test]
fn a_question_is_answered_when_the_state_is_up_to_date() {
    let mut map = Leader::new();
    map.decided(ONE, 1, put("a", b"1"));
    same(map.get(ONE, 5, "a"), [LeaderEffect::Read(1)]);
    same(map.get(TWO, 9, "b"), [LeaderEffect::Read(2)]);
    let found = |number, entry| StoreAnswer::Found { number, entry };
    same(map.readable(2), [notify(TWO, found(9, None))]);
    same(map.readable(2), []);
    same(map.readable(1), [notify(ONE, found(5, entry(1, b"1")))]);
}

#[test]
fn of_too_many_questions_the_oldest_is_forgotten() {
    let mut map = Leader::new();
    for number in 1..=LIMIT as u64 + 1 {
        same(map.get(ONE, number, "a"), [LeaderEffect::Read(number)]);
    }
    same(map.readable(1), []);
    assert_eq!(map.readable(2).len(), 1);
    same(map.get(ONE, 1, "a"), [LeaderEffect::Read(LIMIT as u64 + 2)]);
    assert_eq!(map.readable(3).len(), 1, "there was room");
}

/// Several changes are decided at once, so the leader reads a state that is later than the first of them.
#[test]
fn a_watch_of_a_prefix_reports_a_change_that_was_decided_with_one_of_other_entries() {
    let others = [
        put("window", b"1"),
        Operation::set("door/1", Expected::Version(7), None),
    ];
    for other in others {
        let mut map = Leader::new();
        let watch = StoreRequest::WatchPrefix {
            watch: 5,
            number: 0,
            prefix: "door".into(),
            since: Position::at(0),
        };
        map.asked(TWO, watch);
        let operations = [other, put("door/1", b"open")];
        let changes = operations.into_iter().zip(1..);
        let changes: Vec<_> = changes
            .map(|(operation, number)| Change::Asked {
                by: ONE,
                number,
                operation,
            })
            .collect();
        let all: Vec<_> = changes.iter().map(|it| map.state.apply(it)).collect();
        let mut out = Vec::new();
        for decided in &all {
            map.leader.on_applied(&map.state, decided, &mut out);
        }
        let reported = out.iter().any(|it| match it {
            LeaderEffect::Answer {
                to: TWO,
                answer: StoreAnswer::PrefixChanged { found, .. },
            } => found.changes.iter().any(|it| it.key == "door/1"),
            _ => false,
        });
        assert!(reported, "{out:?}");
    }
}

#[test]
fn nodes_that_watch_are_told_until_they_know() {
    let mut map = Leader::new();
    same(map.watch(ONE, "a", NOTHING), [map.watched(ONE, "a"), ARM]);
    same(map.watch(ONE, "a", 0), [notify(ONE, StoreAnswer::Known)]);
    same(map.watch(TWO, "b", 0), [notify(TWO, StoreAnswer::Known)]);
    same(map.tick(), [ARM]);

    let stored = Stored::Done { version: 1 };
    let answer = notify(TWO, StoreAnswer::Changed { number: 1, stored });
    let notified = map.decided(TWO, 1, put("a", b"1"));
    same(notified, [answer, map.watched(ONE, "a")]);
    same(map.tick(), [map.watched(ONE, "a"), ARM]);
    same(map.watch(ONE, "a", 1), [notify(ONE, StoreAnswer::Known)]);
    same(map.tick(), [ARM]);
    assert_eq!(map.decided(TWO, 2, put("c", b"1")).len(), 1);

    same(
        map.asked(ONE, StoreRequest::Unwatch { key: "a".into() }),
        [],
    );
    assert_eq!(map.decided(TWO, 3, put("a", b"2")).len(), 1);
}

#[test]
fn a_node_that_is_not_heard_of_watches_no_longer() {
    let mut map = Leader::new();
    map.watch(ONE, "a", 0);
    for _ in 1..PATIENCE {
        same(map.tick(), [ARM]);
    }
    map.watch(ONE, "a", 0);
    for _ in 1..PATIENCE {
        same(map.tick(), [ARM]);
    }
    same(map.tick(), []);
    assert_eq!(map.decided(TWO, 1, put("a", b"1")).len(), 1);
}

#[test]
fn a_watch_of_a_life_that_is_over_is_passed_over() {
    let mut map = Leader::new();
    let later = Member::new(1, 1);
    map.watch(later, "a", 0);
    same(map.watch(ONE, "a", NOTHING), []);
    let notified = map.decided(TWO, 1, put("a", b"1"));
    assert!(notified.contains(&map.watched(later, "a")), "{notified:?}");
    let latest = Member::new(1, 2);
    same(map.watch(latest, "a", 0), [map.watched(latest, "a")]);
}

#[test]
fn more_watches_than_there_is_room_for_are_refused() {
    let mut map = Leader::new();
    for id in 0..LIMIT as u64 {
        map.watch(Member::new(id, 0), "a", 0);
    }
    let one_more = Member::new(LIMIT as u64, 0);
    let refusal = notify(one_more, StoreAnswer::Refused);
    same(map.watch(one_more, "a", 0), [refusal]);
    let known = notify(ONE, StoreAnswer::Known);
    same(map.watch(ONE, "a", 0), [known]);
}
