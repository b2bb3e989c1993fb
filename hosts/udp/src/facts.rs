//! A node's promises in k-groups, and the epoch of its seal, on a disk.

use core::fmt;

use std::net::SocketAddr;
use std::path::PathBuf;

use selvedge::{Fact, Node};
use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Effect, Incarnation, Member, NodeId, Time};
use selvedge_groups::Start;
use selvedge_host::parts::Disk;
use selvedge_kgroup as kgroup;
use selvedge_seal::Epoch;
use selvedge_store::redb::{StorageBackend, TableDefinition, TableError};
use selvedge_store::{Found, Schema, Store, StoreError};
use serde::{Deserialize, Serialize};

const SCHEMA: Schema = Schema {
    file: "node.redb",
    base: "selvedge udp: base",
    facts: "selvedge udp: facts",
    format: 2,
    limit: 1_000,
};
/// The epoch of the latest start of a node, by its id.
const EPOCHS: TableDefinition<'static, u64, u64> = TableDefinition::new("selvedge udp: epochs");
/// The limit of effects that wait for the disk.
const WAITING: usize = 1_024;

/// The place where a node keeps its promises in k-groups.
pub(crate) enum Memory {
    /// A folder.
    Folder(PathBuf),
    /// Another medium.
    Medium(Box<dyn FnOnce() -> Result<Facts, StoreError> + Send>),
    /// None: a later process of this node has forgotten them.
    None,
}

impl Memory {
    pub(crate) fn on(medium: impl StorageBackend) -> Self {
        Self::Medium(Box::new(|| Facts::on(medium)))
    }

    /// Opens it, and makes a folder that is not there. This reads and compares all stored data.
    pub(crate) fn open(self) -> Result<Option<Facts>, StoreError> {
        match self {
            Self::Folder(dir) => {
                let (store, found) = Store::open(&dir, SCHEMA)?;
                Ok(Some(Facts { store, found }))
            }
            Self::Medium(open) => open().map(Some),
            Self::None => Ok(None),
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(dir) => f.debug_tuple("Folder").field(dir).finish(),
            Self::Medium(_) => f.write_str("Medium"),
            Self::None => f.write_str("None"),
        }
    }
}

/// The stored promises of a node in k-groups.
#[derive(Debug)]
pub(crate) struct Facts {
    store: Store<Base, Fact>,
    found: Option<Found<Base, Fact>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Base {
    /// The node in its latest life.
    me: Member,
    /// True if the node started [fresh](Start::Fresh), with this as its memory ever since.
    is_fresh: bool,
    facts: Vec<Fact>,
}

impl Facts {
    fn on(medium: impl StorageBackend) -> Result<Self, StoreError> {
        let (store, found) = Store::on(medium, SCHEMA)?;
        Ok(Self { store, found })
    }

    /// A life that is later than the stored one: `life`, if it is. A system's clock may be behind
    /// after a power cut, and groups count two equal requests of one life once.
    pub(crate) fn later_life(&self, life: Incarnation) -> Incarnation {
        match &self.found {
            Some(found) if !life.newer_than(found.base.me.incarnation) => {
                found.base.me.incarnation.next()
            }
            Some(_) | None => life,
        }
    }

    /// The start of the node, which is `start` if nothing is stored, and its stored facts in
    /// k-groups.
    pub(crate) fn take(
        &mut self,
        id: NodeId,
        start: Start,
    ) -> Result<(Start, Vec<Fact>), StoreError> {
        self.check(id)?;
        let Some(Found { base, facts: since }) = self.found.take() else {
            return Ok((start, Vec::new()));
        };
        let start = match base.is_fresh {
            true => Start::Fresh,
            false => Start::Restarted,
        };
        let mut facts = base.facts;
        facts.extend(since);
        Ok((start, facts))
    }

    /// Refuses the folder of another node.
    fn check(&self, id: NodeId) -> Result<(), StoreError> {
        let found = self.found.as_ref().map(|it| it.base.me.id);
        match found.filter(|it| *it != id) {
            Some(found) => Err(StoreError::OtherNode { asked: id, found }),
            None => Ok(()),
        }
    }

    /// The epoch of the latest start of this node that sealed its datagrams.
    pub(crate) fn epoch(&self, id: NodeId) -> Result<Option<Epoch>, StoreError> {
        self.check(id)?;
        self.store.read(|txn| match txn.open_table(EPOCHS) {
            Ok(epochs) => Ok(epochs.get(id.0)?.map(|it| Epoch(it.value()))),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        })
    }

    /// Stores the epoch of this start. It is on the disk when this returns.
    pub(crate) fn set_epoch(&mut self, id: NodeId, epoch: Epoch) -> Result<(), StoreError> {
        set_epoch(&mut self.store, id, epoch)
    }

    /// Begins to keep the promises of this life. The start and the life are stored when this returns,
    /// so before another node learns of them.
    pub(crate) fn keep(
        self,
        me: Member,
        start: Start,
        facts: Vec<Fact>,
    ) -> Result<Keeping, StoreError> {
        let is_fresh = start == Start::Fresh;
        let base = Base {
            me,
            is_fresh,
            facts,
        };
        Ok(Keeping {
            me,
            // The first write of a life takes the place of the facts of all earlier ones.
            is_life_stored: false,
            is_fresh,
            barrier: Barrier::new(WAITING),
            disk: Disk::new(self.store, &base)?,
            written: None,
        })
    }
}

/// An effect that waits for the facts before it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) effect: Effect<Node>,
    /// The time of its cause: a command to a device must not be carried out late.
    pub(crate) at: Time,
    /// The life that caused it: a later life must not be mistaken for it.
    pub(crate) from: Member,
    /// The sender of the datagram that caused it.
    pub(crate) sender: Option<(NodeId, SocketAddr)>,
}

/// The store while the node runs. A write uses a separate thread, because a disk may be slow.
#[derive(Debug)]
pub(crate) struct Keeping {
    /// The life of the last effect.
    me: Member,
    is_life_stored: bool,
    is_fresh: bool,
    barrier: Barrier<Waiting>,
    disk: Disk<Base, Fact>,
    /// The last fact of the write that is under way.
    written: Option<Mark>,
}

impl Keeping {
    /// Holds back effects of k-groups until the facts before them and their life are stored: the
    /// first effect of a life waits like a fact. Returns an effect that need not wait.
    pub(crate) fn hold(&mut self, waiting: Waiting) -> Option<Waiting> {
        if !is_of_groups(&waiting.effect) {
            return Some(waiting);
        }
        let is_new_life = waiting.from != self.me;
        if is_new_life {
            self.me = waiting.from;
            self.is_life_stored = false;
        }
        if is_new_life || fact(&waiting).is_some() {
            self.barrier.push_fact(waiting);
            return None;
        }
        let mut free = None;
        self.barrier.push(waiting, |it| free = Some(it));
        free
    }

    /// Returns true if too many effects wait for another step of the machine.
    pub(crate) fn is_behind(&self) -> bool {
        self.barrier.ready().is_err()
    }

    /// Begins to write the new facts, if there are some and no write is in progress.
    pub(crate) fn write(&mut self, node: &Node) {
        if self.barrier.unstored() == 0 || !self.disk.is_free() {
            return;
        }
        let mut facts = Vec::new();
        self.written = self.barrier.write(|it| facts.extend(fact(it).cloned()));
        if self.written.is_none() {
            return;
        }
        let is_due = !self.is_life_stored || self.disk.is_due(facts.len());
        let groups = node.kgroup().filter(|_| is_due);
        let base = groups.map(|it| self.base(it.groups().stored().collect()));
        self.is_life_stored |= base.is_some();
        self.disk.write(base, facts);
    }

    /// Waits for the present write, and returns the effects behind it; without one, waits for ever.
    pub(crate) async fn written(&mut self) -> Result<Vec<Waiting>, String> {
        let Some(mark) = self.written else {
            return core::future::pending().await;
        };
        self.disk.written().await.map_err(|it| it.to_string())?;
        self.written = None;
        let mut free = Vec::new();
        self.barrier.stored(mark, |it| free.push(it));
        free.retain(|it| fact(it).is_none());
        Ok(free)
    }

    /// Stores a later epoch of this node. It is on the disk when this returns.
    pub(crate) async fn set_epoch(&mut self, id: NodeId, epoch: Epoch) -> Result<(), String> {
        let set = move |store: &mut Store<Base, Fact>| set_epoch(store, id, epoch);
        self.disk.work(set).await.map_err(|it| it.to_string())
    }

    /// Waits for the present write, if there is one. Then the folder is free.
    pub(crate) async fn close(mut self) {
        drop(self.disk.written().await);
    }

    const fn base(&self, facts: Vec<Fact>) -> Base {
        let (me, is_fresh) = (self.me, self.is_fresh);
        Base {
            me,
            is_fresh,
            facts,
        }
    }
}

fn set_epoch(store: &mut Store<Base, Fact>, id: NodeId, epoch: Epoch) -> Result<(), StoreError> {
    store.transact(|txn| {
        txn.open_table(EPOCHS)?.insert(id.0, epoch.0)?;
        Ok(())
    })
}

fn is_of_groups(effect: &Effect<Node>) -> bool {
    match effect {
        Effect::Send { message, .. } | Effect::Multicast { message } => {
            matches!(message, selvedge::Message::Groups(_))
        }
        Effect::Event(event) => matches!(event, selvedge::Event::Groups(_)),
    }
}

fn fact(waiting: &Waiting) -> Option<&Fact> {
    match &waiting.effect {
        Effect::Event(selvedge::Event::Groups(kgroup::Event::Groups(
            selvedge_groups::Event::Fact(fact),
        ))) => Some(fact),
        Effect::Event(_) | Effect::Send { .. } | Effect::Multicast { .. } => None,
    }
}
