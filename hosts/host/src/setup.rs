//! The settings of a host.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};

use selvedge_core::{Machine, Member, NodeId, Span, shared};
use selvedge_seal::Seal;

use crate::transport::{Transport, Udp};

/// The settings of a host: the node, its address, and all that differs from the defaults.
///
/// | setting | unit, range | default |
/// |---|---|---|
/// | [`transport`](Self::transport) | | [`Udp`] |
/// | [`peers`](Self::peers) | any number of nodes, each with one address | none |
/// | [`learn_addresses`](Self::learn_addresses) | number of nodes beside the peers | 0: the host delivers messages of peers alone |
/// | [`heartbeat`](Self::heartbeat) | from 1 µs | none: the application reports changes of membership |
/// | [`frame_budget`](Self::frame_budget) | bytes of a datagram, up to 65,507 | 1,400 |
/// | [`seal`](Self::seal) | | datagrams in the clear |
/// | [`view`](Self::view) | | `()` |
/// | [`identity`](Self::identity) | | the member of [`new`](Self::new) |
/// | [`ends_with`](Self::ends_with) | | no event ends the host |
/// | [`limits`](Self::limits) | from 1 | 64 commands, 256 events |
/// | [`random_seed`](Self::random_seed) | any | the system's entropy |
pub struct Setup<M: Machine, S = ()> {
    pub(crate) me: Member,
    pub(crate) listen: SocketAddr,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) peers: BTreeMap<NodeId, SocketAddr>,
    pub(crate) learned: usize,
    pub(crate) heartbeat: Option<Span>,
    pub(crate) frame_budget: usize,
    pub(crate) seal: Option<Seal>,
    pub(crate) view: Box<dyn Fn(&M) -> S + Send>,
    pub(crate) identity: Option<Identity<M>>,
    pub(crate) last: Option<IsLast<M>>,
    pub(crate) limits: shared::Limits,
    pub(crate) random_seed: Option<u64>,
}

/// Reads the node's present life from its machine.
pub(crate) type Identity<M> = Box<dyn Fn(&M) -> Member + Send>;
/// Accepts the event after which the host ends.
pub(crate) type IsLast<M> = Box<dyn Fn(&<M as Machine>::Event) -> bool + Send>;

impl<M: Machine> Setup<M> {
    /// The node `me`, which listens at `address`. Port 0 lets the system choose one
    /// ([`Handle::address`](crate::Handle::address)).
    ///
    /// A node that starts again is another [`Member`]: take the life from storage (`Memory` of
    /// `selvedge-store`) or from the clock
    /// ([`Incarnation::from_clock`](selvedge_core::Incarnation::from_clock)).
    #[must_use]
    pub fn new(me: Member, address: SocketAddr) -> Self {
        Self::with(me, address, Udp::new())
    }

    /// The node `me` with a socket that is bound already, for instance with a port that the
    /// system chose, or from a service manager.
    #[must_use]
    pub fn bound(me: Member, socket: UdpSocket) -> Self {
        let unknown = |_| SocketAddr::from(([0; 4], 0));
        let address = socket.local_addr().unwrap_or_else(unknown);
        Self::with(me, address, Udp::bound(socket))
    }

    fn with(me: Member, listen: SocketAddr, transport: Udp) -> Self {
        Self {
            me,
            listen,
            transport: Box::new(transport),
            peers: BTreeMap::new(),
            learned: 0,
            heartbeat: None,
            frame_budget: 1_400,
            seal: None,
            view: Box::new(|_| ()),
            identity: None,
            last: None,
            limits: shared::Limits::default(),
            random_seed: None,
        }
    }
}

impl<M: Machine, S> Setup<M, S> {
    /// Sets the transport of datagrams, for instance over another medium, or with faults.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Box::new(transport);
        self
    }

    /// The other nodes and their addresses, which never change. An entry for this node is passed
    /// over, so that all nodes can have one list. Multicasts go to each of them.
    #[must_use]
    pub fn peers(mut self, peers: impl IntoIterator<Item = (NodeId, SocketAddr)>) -> Self {
        self.peers = peers.into_iter().collect();
        self
    }

    /// Delivers messages of up to `limit` nodes beside the [`peers`](Self::peers), and sends to the
    /// address from which the machine last took a message of such a node.
    ///
    /// In the clear, any host that can send to the socket can pose as such a node, redirect its
    /// messages and use up the limit: [seal](Self::seal) datagrams where that matters.
    #[must_use]
    pub const fn learn_addresses(mut self, limit: usize) -> Self {
        self.learned = limit;
        self
    }

    /// Sends a heartbeat to each of the [`peers`](Self::peers) once a `period`, and derives
    /// changes of membership from their datagrams: [`Joined`](selvedge_core::Delta::Joined) at the first
    /// datagram of a life, `Confirmed` for the life before, `Failed` for a peer that was silent for
    /// five heartbeats of this host, and `Refuted` when such a peer sends again. All nodes have the
    /// same period. It suits a few fixed nodes; `selvedge-membership` is for many that come and go.
    #[must_use]
    pub const fn heartbeat(mut self, period: Span) -> Self {
        self.heartbeat = Some(period);
        self
    }

    /// The longest datagram, in bytes. All nodes have the same. Sealed, a frame has
    /// [`OVERHEAD`](selvedge_seal::OVERHEAD) bytes less. A machine that keeps a byte budget of its
    /// own must not exceed the rest: messages that do are dropped
    /// ([`Traffic::too_long`](crate::Traffic::too_long)).
    #[must_use]
    pub const fn frame_budget(mut self, bytes: usize) -> Self {
        self.frame_budget = bytes;
        self
    }

    /// Seals all datagrams, and drops all that arrive without a seal by a key of the ring. The epoch of a start is the
    /// time of the system's clock: where that is behind the former start, other nodes refuse this one until it has
    /// passed.
    #[must_use]
    pub fn seal(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }

    /// Publishes the result of `view` ([`Handle::snapshot`](crate::Handle::snapshot)): at the start,
    /// and after each round in which the machine took an input.
    #[must_use]
    pub fn view<T>(self, view: impl Fn(&M) -> T + Send + 'static) -> Setup<M, T> {
        Setup {
            me: self.me,
            listen: self.listen,
            transport: self.transport,
            peers: self.peers,
            learned: self.learned,
            heartbeat: self.heartbeat,
            frame_budget: self.frame_budget,
            seal: self.seal,
            view: Box::new(view),
            identity: self.identity,
            last: self.last,
            limits: self.limits,
            random_seed: self.random_seed,
        }
    }

    /// Reads the sender of each frame from the machine, for a machine that takes later lives by
    /// itself, as membership does. The node's id stays.
    #[must_use]
    pub fn identity(mut self, identity: impl Fn(&M) -> Member + Send + 'static) -> Self {
        self.identity = Some(Box::new(identity));
        self
    }

    /// Ends the host after an event that `is_last` accepts, for a machine that needs more than one
    /// step to leave ([`Handle::leave`](crate::Handle::leave)).
    #[must_use]
    pub fn ends_with(mut self, is_last: impl Fn(&M::Event) -> bool + Send + 'static) -> Self {
        self.last = Some(Box::new(is_last));
        self
    }

    /// The number of commands that may wait for the host, and of events that are kept for its
    /// subscribers.
    #[must_use]
    pub const fn limits(mut self, limits: shared::Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Draws the machine's choices from this seed. For tests: an attacker that knows it foresees
    /// them.
    #[must_use]
    pub const fn random_seed(mut self, seed: u64) -> Self {
        self.random_seed = Some(seed);
        self
    }
}

impl<M: Machine, S> core::fmt::Debug for Setup<M, S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Setup")
            .field("me", &self.me)
            .field("listen", &self.listen)
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}
