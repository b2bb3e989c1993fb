//! The state of a whole mesh at one moment.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use selvedge_core::{Effect, Machine, Member, NodeId};

use super::Bounds;
use super::durable::Storage;
use super::fingerprint::Fingerprint;

/// A node of the mesh under check: a machine, and its host's data.
///
/// It never changes: a step makes a new one. So its fingerprint is computed once.
#[derive(Clone)]
pub struct Node<M: Machine> {
    machine: M,
    member: Member,
    pub(super) host: Host<M::Timer>,
    /// `None` in a model without storage.
    storage: Option<Arc<Storage<M>>>,
    fingerprint: Fingerprint,
}

/// A machine's surroundings in a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Host<T> {
    pub(super) up: bool,
    pub(super) life: u32,
    /// Armed timers, sorted.
    pub(super) timers: Vec<T>,
    /// The number of listed commands that were carried out.
    pub(super) issued: u32,
    /// The listed deltas that were delivered, one bit each.
    pub(super) notified: u64,
}

impl<M: Machine> Node<M> {
    pub(super) fn new(
        machine: M,
        member: Member,
        host: Host<M::Timer>,
        storage: Option<Arc<Storage<M>>>,
    ) -> Self {
        let fingerprint = match &storage {
            None => Fingerprint::of(&(&machine, member, &host)),
            Some(storage) => Fingerprint::of(&(&machine, member, &host, storage)),
        };
        Self {
            machine,
            member,
            host,
            storage,
            fingerprint,
        }
    }

    pub(super) const fn storage(&self) -> Option<&Arc<Storage<M>>> {
        self.storage.as_ref()
    }

    /// The effects that wait for storage, in order: facts, and the effects behind them. Empty in a
    /// model without [storage](super::Model::durable).
    #[must_use]
    pub fn waiting(&self) -> &[Effect<M>] {
        let storage = self.storage.as_ref();
        storage.map_or(&[], |storage| &storage.waiting)
    }

    /// The machine of this life folded from stored facts alone, as a crash would leave it now.
    /// `None` in a model without [storage](super::Model::durable).
    #[must_use]
    pub fn stored(&self) -> Option<&M> {
        self.storage.as_ref().map(|storage| &storage.image)
    }

    /// The machine; of a node that is down, the rest of it.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The member that the machine identifies itself as.
    #[must_use]
    pub const fn member(&self) -> Member {
        self.member
    }

    /// Returns true if it runs.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.host.up
    }

    /// The number of the life: 0 at first, one more with each restart.
    #[must_use]
    pub const fn life(&self) -> u32 {
        self.host.life
    }

    /// The armed timers, sorted.
    #[must_use]
    pub fn timers(&self) -> &[M::Timer] {
        &self.host.timers
    }

    /// The number of commands in the model's list for this node that were carried out.
    #[must_use]
    pub const fn issued(&self) -> u32 {
        self.host.issued
    }
}

impl<M: Machine> PartialEq for Node<M> {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
            && self.member == other.member
            && self.host == other.host
            && self.machine == other.machine
            && self.storage == other.storage
    }
}

impl<M: Machine> Eq for Node<M> {}

impl<M: Machine> Hash for Node<M> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fingerprint.hash(hasher);
    }
}

impl<M: Machine> fmt::Debug for Node<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.host.up {
            f.write_str("down, ")?;
        }
        self.machine.fmt(f)?;
        if !self.host.timers.is_empty() {
            write!(f, ", armed {:?}", self.host.timers)?;
        }
        if !self.waiting().is_empty() {
            write!(f, ", {} wait for storage", self.waiting().len())?;
        }
        Ok(())
    }
}

/// A message on its way.
#[derive(Clone)]
pub struct Letter<M: Machine> {
    from: Member,
    to: NodeId,
    message: M::Message,
    fingerprint: Fingerprint,
}

impl<M: Machine> Letter<M> {
    pub(super) fn new(from: Member, to: NodeId, message: M::Message) -> Self {
        let fingerprint = Fingerprint::of(&(from, to, &message));
        Self {
            from,
            to,
            message,
            fingerprint,
        }
    }

    /// The member that sent it, by the identity that it had then.
    #[must_use]
    pub const fn from(&self) -> Member {
        self.from
    }

    /// The node that receives it, in any life.
    #[must_use]
    pub const fn to(&self) -> NodeId {
        self.to
    }

    /// The message itself.
    #[must_use]
    pub const fn message(&self) -> &M::Message {
        &self.message
    }
}

impl<M: Machine> PartialEq for Letter<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<M: Machine> Eq for Letter<M> {}

impl<M: Machine> Ord for Letter<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.to, self.from, &self.message).cmp(&(other.to, other.from, &other.message))
    }
}

impl<M: Machine> PartialOrd for Letter<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M: Machine> Hash for Letter<M> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.fingerprint.hash(hasher);
    }
}

impl<M: Machine> fmt::Debug for Letter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} from {:?} to {:?}",
            self.message, self.from, self.to
        )
    }
}

/// The whole mesh at one moment: nodes, messages in flight, the rest of the bounds, and the
/// [`Observer`](super::Observer). Conditions of properties read it.
///
/// Cloning is cheap: nodes and messages are shared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<M: Machine, O = ()> {
    pub(super) nodes: Vec<Arc<Node<M>>>,
    /// Sorted; equal letters are neighbours.
    pub(super) letters: Vec<Arc<Letter<M>>>,
    pub(super) left: Bounds,
    pub(super) observer: O,
}

impl<M: Machine, O> State<M, O> {
    /// All nodes in the model's order, up or down.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &Node<M>> + '_ {
        self.nodes.iter().map(AsRef::as_ref)
    }

    /// The node at this place in the model's list.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<&Node<M>> {
        self.nodes.get(index).map(AsRef::as_ref)
    }

    /// The machines of the nodes that are up.
    pub fn machines(&self) -> impl Iterator<Item = &M> + '_ {
        self.nodes().filter(|node| node.is_up()).map(Node::machine)
    }

    /// The messages in flight, sorted by receiver, sender and content; two copies come twice.
    pub fn letters(&self) -> impl ExactSizeIterator<Item = &Letter<M>> + '_ {
        self.letters.iter().map(AsRef::as_ref)
    }

    /// The events that the bounds still allow.
    #[must_use]
    pub const fn left(&self) -> &Bounds {
        &self.left
    }

    /// The observer.
    #[must_use]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The place of the node with this id.
    #[must_use]
    pub fn position(&self, id: NodeId) -> Option<usize> {
        self.nodes.iter().position(|node| node.member().id == id)
    }

    /// Returns true if a message is in flight, or an effect waits for storage. A message to a node
    /// that is down counts too, until it is missed: otherwise messages of other nodes would pile up
    /// for the node's next life.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.letters.is_empty() || self.nodes().any(|node| !node.waiting().is_empty())
    }

    pub(super) fn post(&mut self, letter: Letter<M>) {
        let letter = Arc::new(letter);
        let at = self.letters.partition_point(|other| *other <= letter);
        self.letters.insert(at, letter);
    }
}
