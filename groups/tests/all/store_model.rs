//! Any changes of a map, beside a model of it that remembers all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_core::{Member, Span};
use selvedge_groups::store::{
    Action, Change, Compare, Entry, Expected, Operation, Outcome, Owner, SessionId, Store, Stored,
    Transaction, Wait, appended,
};
use selvedge_replica::State as _;

const TTL: Span = Span::secs(5);

/// The model: it makes a transaction in a copy, and has no limits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    version: u64,
    pub(crate) entries: BTreeMap<String, Entry>,
    /// The sessions, with the time that is left and the number of renewals.
    sessions: BTreeMap<SessionId, (Span, u32)>,
    answers: BTreeMap<(Member, u64), Stored>,
    last: BTreeMap<u64, (Member, u64)>,
    term: u64,
}

impl Model {
    fn is_expected(&self, compare: &Compare) -> bool {
        let found = self.entries.get(&compare.key).map(|it| it.version);
        match compare.expected {
            Expected::Any => true,
            Expected::Absent => found.is_none(),
            Expected::Version(it) => found == Some(it),
        }
    }

    fn transact(&mut self, transaction: &Transaction, begun: Option<SessionId>) -> Stored {
        let failed = transaction.compare.iter().find(|it| !self.is_expected(it));
        let steps = match failed {
            None => &transaction.then,
            Some(first) if transaction.otherwise.is_empty() => {
                let found = self.entries.get(&first.key).map(|it| it.version);
                return Stored::Mismatch { found };
            }
            Some(_) => &transaction.otherwise,
        };
        let mut next = self.clone();
        let version = self.version + 1;
        for step in steps {
            let (key, value, owner) = match step.clone() {
                Action::Put { key, value, owner } => (key, value, owner),
                Action::Append {
                    prefix,
                    value,
                    owner,
                } => (appended(&prefix, version), value, owner),
                Action::Remove { key } => {
                    if next.entries.remove(&key).is_some() {
                        next.version = version;
                    }
                    continue;
                }
            };
            let session = match owner {
                None => None,
                Some(Owner::Begun) if begun.is_some() => begun,
                Some(Owner::Session(it)) if self.sessions.contains_key(&it) => Some(it),
                Some(_) => return Stored::NoSession,
            };
            let created = next.entries.get(&key).map_or(version, |it| it.created);
            let entry = Entry {
                created,
                version,
                session,
                value,
            };
            next.entries.insert(key, entry);
            next.version = version;
        }
        *self = next;
        let version = self.version;
        match failed {
            None => Stored::Done { version },
            Some(_) => Stored::Otherwise { version },
        }
    }

    fn end(&mut self, session: SessionId) {
        if self.sessions.remove(&session).is_none() {
            return;
        }
        let before = self.entries.len();
        self.entries.retain(|_, it| it.session != Some(session));
        self.version += u64::from(self.entries.len() < before);
    }

    pub(crate) fn operate(&mut self, by: Member, number: u64, operation: &Operation) -> Stored {
        match operation {
            Operation::Set {
                key,
                expected,
                value,
            } => {
                let (key, expected) = (key.clone(), *expected);
                let compare = [Compare {
                    key: key.clone(),
                    expected,
                }];
                let step = match value.clone() {
                    Some(value) => Action::Put {
                        key,
                        value,
                        owner: None,
                    },
                    None => Action::Remove { key },
                };
                let set = Transaction {
                    compare: compare.into_iter().collect(),
                    then: [step].into_iter().collect(),
                    ..Transaction::default()
                };
                self.transact(&set, None)
            }
            Operation::Transact(transaction) => self.transact(transaction, None),
            Operation::BeginSession { transaction, .. } => {
                let session = SessionId { by, number };
                let (version, is_otherwise) = match self.transact(transaction, Some(session)) {
                    Stored::Done { version } => (version, false),
                    Stored::Otherwise { version } => (version, true),
                    refused => return refused,
                };
                self.sessions.insert(session, (TTL, 0));
                Stored::Begun {
                    session,
                    version,
                    is_otherwise,
                }
            }
            Operation::EndSession(session) => {
                self.end(*session);
                let version = self.version;
                Stored::Done { version }
            }
        }
    }

    fn apply(&mut self, change: &Change) -> Option<Stored> {
        match *change {
            Change::Asked {
                by,
                number,
                ref operation,
            } => {
                let former = self.last.get(&by.id.0).copied();
                let is_over =
                    |(life, at): (Member, u64)| life.supersedes(by) || life == by && number < at;
                if former.is_some_and(is_over) {
                    return Some(Stored::Over);
                }
                if former == Some((by, number)) {
                    return self.answers.get(&(by, number)).copied();
                }
                let stored = self.operate(by, number, operation);
                self.last.insert(by.id.0, (by, number));
                self.answers.insert((by, number), stored);
                Some(stored)
            }
            Change::TakeOver { .. } => {
                self.term += 1;
                None
            }
            Change::Expire { session, term } => {
                if term == self.term {
                    self.end(session);
                }
                None
            }
            Change::Wait { ref waits, term } => {
                for wait in waits.iter().filter(|_| term == self.term) {
                    if let Some((left, renewals)) = self.sessions.get_mut(&wait.session)
                        && *renewals == wait.renewals
                    {
                        *left = wait.left.min(*left);
                    }
                }
                None
            }
            Change::Renew { session, term } => {
                if let (true, Some(it)) = (term == self.term, self.sessions.get_mut(&session)) {
                    *it = (TTL, it.1 + 1);
                }
                None
            }
        }
    }
}

fn any_member() -> impl Strategy<Value = Member> {
    (1..4u64, 0..2u32).prop_map(|(id, life)| Member::new(id, life))
}

fn any_session() -> impl Strategy<Value = SessionId> {
    (any_member(), 1..4u64).prop_map(|(by, number)| SessionId { by, number })
}

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]", "[ab]/[ab]", Just(appended("a/", 3))]
}

fn any_compare() -> impl Strategy<Value = Compare> {
    let expected = prop_oneof![
        Just(Expected::Any),
        Just(Expected::Absent),
        (0..9u64).prop_map(Expected::Version),
    ];
    (any_key(), expected).prop_map(|(key, expected)| Compare { key, expected })
}

fn any_action() -> impl Strategy<Value = Action> {
    let owner = || {
        let owner = prop_oneof![Just(Owner::Begun), any_session().prop_map(Owner::Session)];
        proptest::option::weighted(0.3, owner)
    };
    let value = || vec(any::<u8>(), 0..3).prop_map(|it| it.into_iter().collect());
    prop_oneof![
        (any_key(), value(), owner()).prop_map(|(key, value, owner)| Action::Put {
            key,
            value,
            owner
        }),
        ("[ab]/", value(), owner()).prop_map(|(prefix, value, owner)| Action::Append {
            prefix,
            value,
            owner
        }),
        any_key().prop_map(|key| Action::Remove { key }),
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let transaction = (
        vec(any_compare(), 0..3),
        vec(any_action(), 0..4),
        vec(any_action(), 0..3),
    );
    let transaction = transaction.prop_map(|(compare, then, otherwise)| Transaction {
        compare: compare.into_iter().collect(),
        then: then.into_iter().collect(),
        otherwise: otherwise.into_iter().collect(),
    });
    let transaction = transaction.boxed();
    let ttl = TTL;
    let begin = transaction
        .clone()
        .prop_map(move |transaction| Operation::BeginSession { ttl, transaction });
    prop_oneof![
        6 => transaction.prop_map(Operation::Transact),
        2 => (any_compare(), proptest::option::of(Just([7].into_iter().collect())))
            .prop_map(|(it, value)| Operation::set(it.key, it.expected, value)),
        1 => Just(Operation::begin(ttl)),
        2 => begin,
        1 => any_session().prop_map(Operation::EndSession),
    ]
}

fn any_change() -> impl Strategy<Value = Change> {
    let asked = (any_member(), 1..9u64, any_operation());
    prop_oneof![
        9 => asked.prop_map(|(by, number, operation)| Change::Asked { by, number, operation }),
        1 => any_member().prop_map(|by| Change::TakeOver { by }),
        1 => (any_session(), 0..3u64).prop_map(|(session, term)| Change::Expire { session, term }),
        1 => (any_session(), 0..3u64).prop_map(|(session, term)| Change::Renew { session, term }),
        1 => (any_session(), 0..3u64, 0..2u32).prop_map(|(session, term, renewals)| {
            let left = Span::secs(2);
            let wait = Wait { session, renewals, left };
            let waits = [wait].into_iter().collect();
            Change::Wait { waits, term }
        }),
    ]
}

proptest! {
    #[test]
    fn any_changes_in_any_order_are_decided_as_one_list(changes in vec(any_change(), 1..60)) {
        let (mut store, mut model) = (Store::default(), Model::default());
        for change in changes {
            let before = model.entries.clone();
            let decided = store.apply(&change);
            let stored = match decided.outcome {
                Outcome::Asked { stored, .. } => Some(stored),
                Outcome::TakenOver { .. } | Outcome::Counted => None,
            };
            prop_assert_eq!(stored, model.apply(&change));
            prop_assert_eq!(store.version(), model.version);
            let held: BTreeMap<String, Entry> =
                store.entries().map(|(key, it)| (key.to_owned(), it.clone())).collect();
            prop_assert_eq!(&held, &model.entries);
            let sessions = store.sessions().map(|(id, it)| (id, (it.left, it.renewals)));
            let sessions: BTreeMap<SessionId, (Span, u32)> = sessions.collect();
            prop_assert_eq!(&sessions, &model.sessions);
            let differs = |key: &&String| before.get(*key) != held.get(*key);
            let changed: BTreeSet<&String> =
                before.keys().chain(held.keys()).filter(differs).collect();
            let listed: BTreeSet<&String> = decided.changed.iter().collect();
            prop_assert!(changed.is_subset(&listed), "{:?}, {:?}", changed, listed);
        }
    }
}
