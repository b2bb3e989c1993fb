//! Many machines together, at random: a discrete-event simulator for any
//! [`Machine`].
//!
//! A [`Network`] runs each machine in a [`Driver`](selvedge_core::Driver), as a real host does, and
//! carries messages over a [`Topology`] of [`Link`]s, in virtual time. A test can partition it,
//! crash and restart nodes, put them to sleep and move them.
//!
//! ```
//! use selvedge_core::{Context, Input, Machine, Member, Ratio, Span};
//! use selvedge_sim::network::{Link, Network, Topology};
//!
//! /// Sends a greeting to its peer every second; reports each greeting that arrives.
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Greeter(Member);
//!
//! impl Machine for Greeter {
//!     type Message = &'static str;
//!     type Timer = ();
//!     type Command = ();
//!     type Event = Member;
//!     type Reject = ();
//!
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
//!         match input {
//!             Input::Message { from, .. } => cx.event(from),
//!             Input::Command(()) | Input::Tick(()) => {
//!                 cx.send(self.0, "good day");
//!                 cx.arm((), Span::secs(1));
//!             }
//!             Input::Membership(_) => {}
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let link = Link { loss: Ratio::new(1, 10), ..Link::default() };
//! let mut network = Network::new(7, Topology::full_mesh(2)?, link)?;
//! let (a, b) = (Member::new(1, 0), Member::new(2, 0));
//! let node = network.add(a, Greeter(b))?;
//! network.add(b, Greeter(a))?;
//! network.command(node, ()).map_err(|error| error.to_string())?;
//!
//! network.run_for(Span::secs(100));
//! let received = network.drain_events().count() as u64;
//! assert_eq!((network.counters().sent, network.counters().delivered), (101, received));
//! assert!((80..100).contains(&received), "a tenth was lost: {received}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! | promise | how |
//! |---|---|
//! | the same seed and the same calls give the same run, byte for byte, in every build and on every platform | whole numbers only; everything in order of time, then of arrival, then of node; compare with [`Network::trace_digest`] |
//! | the draws of one node affect no other node | each has a stream of its own, which continues when the node restarts |
//! | the cost of an event does not grow with the network, but for a logarithm | a heap of messages, one alarm a node; a path costs O(1) once searched |
//! | time always moves | a message takes at least 1 µs; a timer that ticks and is armed with no delay ticks again 1 µs later |
//!
//! # How messages travel
//!
//! - A message takes a shortest path over nodes that relay ([`Relays`]), chosen when it is sent.
//!   Each hop delays it and may lose it ([`Link`]), and so may its two ends
//!   ([`Network::set_node_loss`]). A node that sends to itself takes no hop.
//! - A multicast goes to the neighbours, one hop, each with its own delay and loss, or reaches
//!   every node ([`Multicasts`]).
//! - A message is for a node, not for one of its lives: a message sent to the former life reaches
//!   the present one. Machines see the sender's life, and no more, as on a radio.
//! - A message arrives if then its receiver is up and awake and no partition stands between it and
//!   the sender. Messages that a node sent before it crashed still arrive.
//!
//! # How facts are stored
//!
//! In a network with storage ([`Network::set_storage`]), the effects after a fact wait until the
//! fact is stored. A node has one write in progress at a time, and the next one takes all facts
//! that arrived meanwhile. A crash loses unwritten facts: of the write in progress it keeps the
//! first facts, any number of them, and no waiting effect is carried out. Then [`Network::machine`]
//! shows the machine with which its life began, with the stored facts folded, and nothing else.
//!
//! At one moment messages and scheduled actions come first, in the order in which they were sent or
//! scheduled, then timers, in the order of nodes.

mod actions;
mod carry;
mod counters;
mod duty;
mod error;
mod faults;
mod inspect;
mod link;
mod membership_trace;
mod node;
mod queue;
mod replay;
mod routes;
mod run;
mod storage;
mod topology;
mod trace;

use alloc::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use selvedge_core::{Delta, Effect, Machine, Member, NodeId, Time};

pub use actions::Action;
pub use counters::{Counters, Loss, NodeCounters};
pub use duty::DutyCycle;
pub use error::{CallError, NetworkError};
pub use link::{Link, Multicasts};
pub use membership_trace::{MembershipEntry, MembershipTrace, MembershipTraceError};
pub use routes::Relays;
pub use run::{Happened, Step};
pub use storage::Storage;
pub use topology::{PAPER_CLUSTERS, Point, Square, Topology, TopologyError};
pub use trace::{TraceLine, What};

use carry::Envelope;
use node::Node;
use queue::Alarms;
pub(crate) use queue::Queue;
use routes::{Radio, Routes};
use storage::Disk;
use trace::Tracer;

use crate::facts::Facts;

/// Machines, and the network between them. See the [module](self).
pub struct Network<M: Machine> {
    seed: u64,
    now: Time,
    topology: Topology,
    link: Link,
    size: fn(&M::Message) -> usize,
    identity: Option<fn(&M) -> Member>,
    multicasts: Multicasts,
    radio: Radio,
    routes: Routes,
    rng: ChaCha8Rng,
    nodes: Vec<Node<M>>,
    by_id: BTreeMap<NodeId, usize>,
    queue: Queue<Pending<M>>,
    in_flight: usize,
    alarms: Alarms,
    storage: Option<(Storage, Facts<M>)>,
    /// Reused by every step.
    effects: Vec<Effect<M>>,
    ready: Vec<Effect<M>>,
    neighbours: Vec<usize>,
    keep_events: bool,
    events: Vec<(Time, usize, M::Event)>,
    learned: Option<Learned<M::Event>>,
    membership: MembershipTrace,
    counters: Counters,
    tracer: Tracer<M>,
}

/// Converts an event to a membership delta, if it is one.
type Learned<E> = fn(&E) -> Option<Delta>;

/// An entry of the queue.
enum Pending<M: Machine> {
    Envelope(Envelope<M>),
    Action(Action<M>),
    /// This write of this node may be complete.
    Write {
        node: usize,
        write: u64,
    },
}

impl<M: Machine> Network<M> {
    /// An empty network at time 0. Nodes that are [`add`](Self::add)ed take the places of
    /// `topology` in order.
    ///
    /// # Errors
    /// [`NetworkError::Delays`] when the link's shortest delay is longer than its longest.
    pub fn new(seed: u64, topology: Topology, link: Link) -> Result<Self, NetworkError> {
        link.check()?;
        let places = topology.len();
        Ok(Self {
            seed,
            now: Time::ZERO,
            topology,
            link,
            size: |_| 0,
            identity: None,
            multicasts: Multicasts::default(),
            radio: Radio::new(places),
            routes: Routes::new(places),
            rng: node::stream(seed, 0),
            nodes: Vec::new(),
            by_id: BTreeMap::new(),
            queue: Queue::new(),
            in_flight: 0,
            alarms: Alarms::new(places),
            storage: None,
            effects: Vec::new(),
            ready: Vec::new(),
            neighbours: Vec::new(),
            keep_events: true,
            events: Vec::new(),
            learned: None,
            membership: MembershipTrace::default(),
            counters: Counters::default(),
            tracer: Tracer {
                sink: None,
                digest: None,
            },
        })
    }

    /// Adds a node that runs `machine` and is reached under the id of `member`. Returns its index:
    /// 0, 1, 2 and so on. The machine receives no input: most need a first command.
    ///
    /// Takes O(log nodes).
    ///
    /// # Errors
    /// [`NetworkError::NoPlaceLeft`] when the topology is full, [`NetworkError::DuplicateId`] when
    /// another node has this id.
    pub fn add(&mut self, member: Member, machine: M) -> Result<usize, NetworkError> {
        let node = self.nodes.len();
        if node >= self.topology.len() {
            return Err(NetworkError::NoPlaceLeft { nodes: node });
        }
        if let Some(&node) = self.by_id.get(&member.id) {
            return Err(NetworkError::DuplicateId {
                id: member.id,
                node,
            });
        }
        // Stream 0 belongs to the network.
        let rng = node::stream(self.seed, node as u64 + 1);
        let disk = self.storage.map(|_| Disk::new(machine.clone()));
        let mut slot = Node::new(member, machine, rng);
        slot.disk = disk;
        self.nodes.push(slot);
        self.by_id.insert(member.id, node);
        self.set_up(node, true);
        self.tracer
            .line(self.now, Some(node), What::Started(member));
        Ok(node)
    }

    /// Sets the function for a message's size in bytes. Without it, messages have 0 bytes.
    pub const fn set_size(&mut self, size: fn(&M::Message) -> usize) {
        self.size = size;
    }

    /// Sets the function that reads a machine's member, for machines that may take a later
    /// incarnation while they run. It is called after every step. Without it, a node stays the
    /// member as which it was added or restarted.
    pub const fn set_identity(&mut self, identity: fn(&M) -> Member) {
        self.identity = Some(identity);
    }

    /// Sets the nodes that relay; [`Relays::Live`] by default.
    pub const fn set_relays(&mut self, relays: Relays) {
        self.radio.relays = relays;
        self.routes.invalidate();
    }

    /// Sets the receivers of a multicast; [`Multicasts::Neighbours`] by default.
    pub const fn set_multicasts(&mut self, multicasts: Multicasts) {
        self.multicasts = multicasts;
    }

    /// Changes all links from now on. Messages in flight are not affected.
    ///
    /// # Errors
    /// [`NetworkError::Delays`] when the shortest delay is longer than the longest.
    pub fn set_link(&mut self, link: Link) -> Result<(), NetworkError> {
        link.check()?;
        self.link = link;
        self.tracer.line(self.now, None, What::Relinked);
        Ok(())
    }

    fn set_up(&mut self, node: usize, up: bool) {
        if let Some(state) = self.radio.up.get_mut(node) {
            *state = up;
        }
        if self.radio.relays == Relays::Live {
            self.routes.invalidate();
        }
    }

    fn checked(&self, node: usize) -> Result<usize, NetworkError> {
        let nodes = self.nodes.len();
        if node >= nodes {
            return Err(NetworkError::NoSuchNode { node, nodes });
        }
        Ok(node)
    }
}
