//! A map, as a group's state.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use selvedge_core::{Member, Span};
use serde::{Deserialize, Serialize};

use crate::store::operation::appended;
use crate::store::{
    Action, Change, Decided, Entry, KEY_MAX, Key, Operation, Outcome, Owner, Position, SessionId,
    Stored, TTL_MAX, TTL_MIN, Transaction, Wait,
};

/// The most entries of a map.
pub const ENTRIES_MAX: usize = 4_096;

/// The most bytes of all names and values of a map: 256 KiB.
pub const BYTES_MAX: usize = 256 << 10;

/// The number of nodes of which the last change is remembered. Where more change the map, the one
/// that was idle for longest is forgotten: a change of it that is still in flight may be done
/// twice. A session that has ended begins again so, with its entries, and ends after its time to live.
pub const CLIENTS_MAX: usize = 64;

/// The most sessions of a map.
pub const SESSIONS_MAX: usize = 1_024;

/// The number of removed entries that a map remembers for nodes that watch a prefix.
pub const REMOVED_MAX: usize = 256;

/// The number of bits of a version that count the changes since the map began anew last.
const VERSION_BITS: u32 = 32;

/// The last change of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Client {
    by: Member,
    number: u64,
    stored: Stored,
    /// The change of the map, done or not, that it was.
    used: u64,
}

/// A session of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Session {
    /// The time to live.
    pub ttl: Span,
    /// The time that is left of it, as far as it is decided: a leader that takes over counts this time.
    pub left: Span,
    /// The number of decided renewals.
    pub renewals: u32,
}

/// A removed entry that is absent since.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Removed {
    version: u64,
    key: Key,
}

/// A change: the version of the map, the name of the entry, and its content if it was not removed.
pub(super) type ChangeRef<'a> = (u64, &'a Key, Option<&'a Entry>);

/// A map from names to bytes, with a version for each entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Store {
    version: u64,
    /// The number of changes that were decided, done or not.
    decided: u64,
    entries: BTreeMap<Key, Entry>,
    /// The bytes of all names and values.
    bytes: u64,
    clients: Vec<Client>,
    /// By version.
    removed: Vec<Removed>,
    /// No entry that was removed after this version was forgotten.
    compacted: u64,
    sessions: BTreeMap<SessionId, Session>,
    /// The number of leaders that have taken over the sessions.
    term: u64,
}

impl Store {
    /// An empty map that begins after this number of lost ones. Its versions are higher than theirs.
    #[must_use]
    pub fn after(before: u64) -> Self {
        let version = before << VERSION_BITS;
        Self {
            version,
            compacted: version,
            ..Self::default()
        }
    }

    /// The number of changes that were done.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// An entry. O(log n).
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All entries, by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries
            .iter()
            .map(|(key, entry)| (key.as_str(), entry))
    }

    /// The entries whose names begin so, by name, from the one after `after` on. O(log n) and then O(1) each.
    pub fn range(&self, prefix: &str, after: Option<&str>) -> impl Iterator<Item = (&Key, &Entry)> {
        let first = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            Some(_) | None => Bound::Included(prefix),
        };
        let range = self.entries.range::<str, _>((first, Bound::Unbounded));
        range.take_while(move |(key, _)| key.starts_with(prefix))
    }

    /// The changes of entries whose names begin so since a position: each entry that was changed, with its present
    /// content, and each that was removed, by version and name. `None` if the map has forgotten entries that were
    /// removed since then. O(e log e + log n) with e entries of the prefix.
    pub(super) fn changes(&self, prefix: &str, since: &Position) -> Option<Vec<ChangeRef<'_>>> {
        // The node has all entries that were removed up to here. One that has no entry misses no removed one.
        let complete = match since.is_beginning() {
            true => self.version,
            false => since.complete(),
        };
        if complete < self.compacted {
            return None;
        }
        let present = self.range(prefix, None);
        let present = present.map(|(key, entry)| (entry.version, key, Some(entry)));
        let removed = self.removed.iter().filter(|it| it.version > complete);
        let removed = removed.filter(|it| it.key.starts_with(prefix));
        let removed = removed.map(|it| (it.version, &it.key, None));
        let all = present.chain(removed);
        let news = all.filter(|(version, key, _)| since.is_before(prefix, *version, key));
        let mut changes: Vec<ChangeRef<'_>> = news.collect();
        changes.sort_unstable_by_key(|&(version, key, _)| (version, key));
        Some(changes)
    }

    /// The sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, Session)> {
        self.sessions.iter().map(|(&id, &session)| (id, session))
    }

    /// A session; `None` if it has ended.
    #[must_use]
    pub fn session(&self, session: SessionId) -> Option<Session> {
        self.sessions.get(&session).copied()
    }

    /// The number of sessions.
    pub(super) fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// The number of leaders that have taken over the sessions.
    pub(super) const fn term(&self) -> u64 {
        self.term
    }

    fn client(&self, by: Member) -> Option<&Client> {
        self.clients.iter().find(|it| it.by.id == by.id)
    }

    /// The outcome of a change that was decided before. O(number of clients).
    pub(super) fn former(&self, by: Member, number: u64) -> Option<Stored> {
        let client = self.client(by)?;
        let is_former_life = client.by.supersedes(by);
        let is_over = is_former_life || client.by == by && number < client.number;
        match client.by == by && number == client.number {
            true => Some(client.stored),
            false => is_over.then_some(Stored::Over),
        }
    }

    /// Does the steps of a transaction, with the session that begins with it, if one does.
    fn transact(
        &mut self,
        transaction: &Transaction,
        begun: Option<SessionId>,
        changed: &mut Vec<Key>,
    ) -> Stored {
        if transaction.key_len() > KEY_MAX {
            return Stored::Full;
        }
        let version_of = |key: &str| self.entries.get(key).map(|it| it.version);
        let compared = transaction.compare.iter();
        let mut compared = compared.map(|it| (it.expected, version_of(&it.key)));
        let failed = compared.find(|(expected, found)| !expected.accepts(*found));
        let actions = match failed {
            None => &transaction.then,
            Some((_, found)) if transaction.otherwise.is_empty() => {
                return Stored::Mismatch { found };
            }
            Some(_) => &transaction.otherwise,
        };
        let lives = |owner| match owner {
            Owner::Begun => begun.is_some(),
            Owner::Session(session) => self.sessions.contains_key(&session),
        };
        if !actions.iter().filter_map(Action::owner).all(lives) {
            return Stored::NoSession;
        }
        if !self.has_room(actions) {
            return Stored::Full;
        }
        let next = self.version.saturating_add(1);
        for action in actions.iter() {
            self.act(action, next, begun, changed);
        }
        let version = self.version;
        match failed {
            None => Stored::Done { version },
            Some(_) => Stored::Otherwise { version },
        }
    }

    /// Returns true if all of these steps have room together.
    fn has_room(&self, actions: &[Action]) -> bool {
        let next = self.version.saturating_add(1);
        // The length of each value after them.
        let mut after = BTreeMap::new();
        for action in actions {
            match action {
                Action::Put { key, value, .. } => after.insert(key.clone(), Some(value.len())),
                Action::Append { prefix, value, .. } => {
                    after.insert(appended(prefix, next), Some(value.len()))
                }
                Action::Remove { key } => after.insert(key.clone(), None),
            };
        }
        let (mut entries, mut bytes) = (self.entries.len(), self.bytes);
        for (key, value) in after {
            if let Some(former) = self.entries.get(&key) {
                entries = entries.saturating_sub(1);
                bytes = bytes.saturating_sub(len_of(&key, former));
            }
            if let Some(value) = value {
                entries += 1;
                bytes = bytes.saturating_add((key.len() + value) as u64);
            }
        }
        entries <= ENTRIES_MAX && bytes <= BYTES_MAX as u64
    }

    fn act(
        &mut self,
        action: &Action,
        version: u64,
        begun: Option<SessionId>,
        changed: &mut Vec<Key>,
    ) {
        let session = action.owner().and_then(|owner| match owner {
            Owner::Begun => begun,
            Owner::Session(session) => Some(session),
        });
        match action {
            Action::Put { key, value, .. } => {
                self.put(key.clone(), version, value, session, changed);
            }
            Action::Append { prefix, value, .. } => {
                self.put(appended(prefix, version), version, value, session, changed);
            }
            Action::Remove { key } => self.remove(key, version, changed),
        }
    }

    fn put(
        &mut self,
        key: Key,
        version: u64,
        value: &[u8],
        session: Option<SessionId>,
        changed: &mut Vec<Key>,
    ) {
        self.version = version;
        let former = self.entries.get(&key);
        let former = former.map(|it| (it.created, len_of(&key, it)));
        let left = self.bytes.saturating_sub(former.map_or(0, |it| it.1));
        self.bytes = left.saturating_add((key.len() + value.len()) as u64);
        let created = former.map_or(version, |it| it.0);
        if former.is_none() {
            self.removed.retain(|it| it.key != key);
        }
        changed.push(key.clone());
        let value = value.iter().copied().collect();
        let entry = Entry {
            created,
            version,
            session,
            value,
        };
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &str, version: u64, changed: &mut Vec<Key>) {
        let Some((key, former)) = self.entries.remove_entry(key) else {
            return;
        };
        self.version = version;
        self.bytes = self.bytes.saturating_sub(len_of(&key, &former));
        changed.push(key.clone());
        if self.removed.len() >= REMOVED_MAX {
            self.compacted = self.removed.remove(0).version;
        }
        self.removed.push(Removed { version, key });
    }

    /// Begins a session with the steps of a transaction.
    fn begin(
        &mut self,
        id: SessionId,
        ttl: Span,
        transaction: &Transaction,
        changed: &mut Vec<Key>,
    ) -> Stored {
        if self.sessions.contains_key(&id) {
            return Stored::Over; // It is decided again, and its first outcome is forgotten.
        }
        if self.sessions.len() >= SESSIONS_MAX {
            return Stored::NoSession;
        }
        let (version, is_otherwise) = match self.transact(transaction, Some(id), changed) {
            Stored::Done { version } => (version, false),
            Stored::Otherwise { version } => (version, true),
            refused @ (Stored::Mismatch { .. }
            | Stored::Full
            | Stored::Over
            | Stored::Begun { .. }
            | Stored::NoSession) => return refused,
        };
        let ttl = ttl.clamp(TTL_MIN, TTL_MAX);
        let session = Session {
            ttl,
            left: ttl,
            renewals: 0,
        };
        self.sessions.insert(id, session);
        Stored::Begun {
            session: id,
            version,
            is_otherwise,
        }
    }

    /// Notes the time that is left of some sessions, if they were not renewed since.
    fn wait(&mut self, waits: &[Wait]) {
        for wait in waits {
            let session = self.sessions.get_mut(&wait.session);
            if let Some(session) = session.filter(|it| it.renewals == wait.renewals) {
                session.left = session.left.min(wait.left);
            }
        }
    }

    fn renew(&mut self, session: SessionId) {
        if let Some(session) = self.sessions.get_mut(&session) {
            session.left = session.ttl;
            session.renewals = session.renewals.wrapping_add(1);
        }
    }

    /// Ends a session and removes its entries. O(n).
    fn end(&mut self, session: SessionId, changed: &mut Vec<Key>) {
        if self.sessions.remove(&session).is_none() {
            return;
        }
        let owned = self.entries.iter();
        let owned = owned.filter(|(_, it)| it.session == Some(session));
        let owned: Vec<Key> = owned.map(|(key, _)| key.clone()).collect();
        let next = self.version.saturating_add(1);
        for key in owned {
            self.remove(&key, next, changed);
        }
    }

    fn operate(
        &mut self,
        session: SessionId,
        operation: &Operation,
        changed: &mut Vec<Key>,
    ) -> Stored {
        match operation {
            Operation::Set {
                key,
                expected,
                value,
            } => {
                let transaction = Transaction::set(key, *expected, value.as_ref());
                self.transact(&transaction, None, changed)
            }
            Operation::Transact(transaction) => self.transact(transaction, None, changed),
            Operation::BeginSession { ttl, transaction } => {
                self.begin(session, *ttl, transaction, changed)
            }
            &Operation::EndSession(session) => {
                self.end(session, changed);
                Stored::Done {
                    version: self.version,
                }
            }
        }
    }

    fn remember(&mut self, client: Client) {
        let known = self.clients.iter().position(|it| it.by.id == client.by.id);
        let longest_idle = || {
            let clients = self.clients.iter().enumerate();
            let idle = clients.min_by_key(|(_, it)| it.used);
            idle.map(|it| it.0)
        };
        let is_full = self.clients.len() >= CLIENTS_MAX;
        let at = known.or_else(|| is_full.then(longest_idle).flatten());
        match at.and_then(|at| self.clients.get_mut(at)) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
    }

    fn asked(
        &mut self,
        by: Member,
        number: u64,
        operation: &Operation,
        changed: &mut Vec<Key>,
    ) -> Stored {
        if let Some(stored) = self.former(by, number) {
            return stored;
        }
        self.decided += 1;
        let stored = self.operate(SessionId { by, number }, operation, changed);
        let used = self.decided;
        self.remember(Client {
            by,
            number,
            stored,
            used,
        });
        stored
    }
}

fn len_of(key: &str, entry: &Entry) -> u64 {
    (key.len() + entry.value.len()) as u64
}

impl selvedge_replica::State for Store {
    type Update = Change;
    type Outcome = Decided;

    fn apply(&mut self, change: &Change) -> Decided {
        let mut changed = Vec::new();
        let outcome = match *change {
            Change::Asked {
                by,
                number,
                ref operation,
            } => {
                let stored = self.asked(by, number, operation, &mut changed);
                Outcome::Asked { by, number, stored }
            }
            Change::TakeOver { by } => {
                self.term = self.term.saturating_add(1);
                let term = self.term;
                Outcome::TakenOver { by, term }
            }
            // A leader that was followed by another one ends no session.
            Change::Expire { term, .. }
            | Change::Wait { term, .. }
            | Change::Renew { term, .. }
                if term != self.term =>
            {
                Outcome::Counted
            }
            Change::Expire { session, .. } => {
                self.end(session, &mut changed);
                Outcome::Counted
            }
            Change::Wait { ref waits, .. } => {
                self.wait(waits);
                Outcome::Counted
            }
            Change::Renew { session, .. } => {
                self.renew(session);
                Outcome::Counted
            }
        };
        Decided {
            outcome,
            changed,
            version: self.version,
        }
    }
}
