//! The settings of a node's start.

use std::net::SocketAddr;
use std::path::PathBuf;

use selvedge::{Coordination, Election, Exclusion};
use selvedge_camera::sections;
use selvedge_core::{Incarnation, NodeId, Span, shared};
use selvedge_kgroup::WallClock;
use selvedge_membership::Config;
use selvedge_seal::{Seal, since_1970};
use selvedge_store::redb::StorageBackend;

use crate::clock::LocalClock;
use crate::facts::Memory;
use crate::transport::{Transport, Udp};
use crate::{Clock, Seed, Tags};

/// The settings of a node's start: its id, its address, and differences from the defaults.
///
/// | setting | unit, range | default |
/// |---|---|---|
/// | [`life`](Self::life) | a number that this id never had before | drawn from the system's clock |
/// | [`transport`](Self::transport) | | [`Udp`] |
/// | [`advertise`](Self::advertise) | 1 to [`LIMIT`](crate::address::LIMIT) addresses | the address at which it listens; if these are all, the addresses from which it answers others |
/// | [`tags`](Self::tags) | 0 to 512 bytes, see [`Tags`] | none |
/// | [`seeds`](Self::seeds) | the first 65,535 are asked | none: it begins a mesh |
/// | [`membership`](Self::membership) | see [`Config`] | [`Config::default`] |
/// | [`locks`](Self::locks), [`exclusion`](Self::exclusion) | from 1 node; see [`Exclusion`] | no locks |
/// | [`takeover`](Self::takeover) | from 0 µs after a declared failure; needs locks | this node waits for a dead holder |
/// | [`keep`](Self::keep) | from 0 µs after an exit; needs locks | nothing is kept |
/// | [`eager`](Self::eager) | needs locks | all listed nodes answer before an entry |
/// | [`election`](Self::election) | see [`Election`] | no leader |
/// | [`coordination`](Self::coordination) | see [`Coordination`]; an epoch from 1 µs | no k-groups |
/// | [`local_clock`](Self::local_clock) | | the system's clock, in UTC |
/// | [`state`](Self::state) or [`stateless`](Self::stateless) | a folder of this node | none: k-groups need one of the two |
/// | [`seal`](Self::seal) | | datagrams in the clear |
/// | [`seal_clock`](Self::seal_clock) | microseconds since 1970 | the system's clock |
/// | [`random_seed`](Self::random_seed) | any | the system's entropy |
/// | [`clock`](Self::clock) | | a clock that starts with this setup |
/// | [`limits`](Self::limits) | from 1 | 64 commands, 1,024 events |
///
/// ```
/// use selvedge_core::NodeId;
/// use selvedge_udp::Setup;
///
/// let setup = Setup::new(NodeId(7), "127.0.0.1:0".parse()?)
///     .seeds(["192.0.2.1:7001".parse::<std::net::SocketAddr>()?])
///     .locks(16);
/// # drop(setup);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Setup {
    pub(crate) id: NodeId,
    pub(crate) life: Option<Incarnation>,
    pub(crate) listen: SocketAddr,
    pub(crate) transport: Box<dyn Transport>,
    pub(crate) advertise: Vec<SocketAddr>,
    pub(crate) tags: Tags,
    pub(crate) seeds: Vec<Seed>,
    pub(crate) config: Config,
    pub(crate) exclusion: Option<Exclusion>,
    pub(crate) takeover: Option<Span>,
    pub(crate) keep: Option<Span>,
    pub(crate) eager: bool,
    pub(crate) election: Option<Election>,
    pub(crate) coordination: Option<(Coordination, Span)>,
    pub(crate) local_clock: LocalClock,
    pub(crate) memory: Option<Memory>,
    pub(crate) seal: Option<Seal>,
    pub(crate) seal_clock: fn() -> u64,
    pub(crate) random_seed: Option<u64>,
    pub(crate) clock: Clock,
    pub(crate) limits: shared::Limits,
}

impl Setup {
    /// A node with the id `me`, up to [`MAX_NODE_ID`](crate::MAX_NODE_ID), that listens at
    /// `listen`. No two nodes of a mesh may share an id.
    ///
    /// Port 0 lets the system choose one. `0.0.0.0` is each of this machine's addresses of IPv4,
    /// `[::]` each of IPv4 and of IPv6. There the node finds the addresses to announce by itself
    /// ([`NodeEvent::Announced`](crate::NodeEvent::Announced)); behind a NAT it needs
    /// [`advertise`](Self::advertise).
    #[must_use]
    pub fn new(me: NodeId, listen: SocketAddr) -> Self {
        let events = core::num::NonZeroUsize::MIN.saturating_add(1_023);
        Self {
            id: me,
            life: None,
            listen,
            transport: Box::new(Udp::new()),
            advertise: Vec::new(),
            tags: Tags::new(),
            seeds: Vec::new(),
            config: Config::default(),
            exclusion: None,
            takeover: None,
            keep: None,
            eager: false,
            election: None,
            coordination: None,
            local_clock: LocalClock::utc(),
            memory: None,
            seal: None,
            seal_clock: since_1970,
            random_seed: None,
            clock: Clock::start(),
            limits: shared::Limits {
                events,
                ..shared::Limits::default()
            },
        }
    }

    /// The number of this life. Without it, [`new_life`](crate::new_life) gives one, for which the
    /// start waits up to [`Incarnation::TICK`]. Where another node remembers a later life, or the folder of
    /// [state](Self::state) has one, this node takes one after that.
    #[must_use]
    pub fn life(mut self, life: Incarnation) -> Self {
        self.life = Some(life);
        self
    }

    /// Sets the transport of datagrams, for instance a socket that is bound already
    /// ([`Udp::bound`]), or a transport with faults ([`Faulty`](crate::faults::Faulty)).
    #[must_use]
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.transport = Box::new(transport);
        self
    }

    /// Sets the addresses at which other nodes reach this one, if it listens at another address.
    /// Others use the addresses that they can send to. Several need a longer
    /// [`metadata_limit`](Config::metadata_limit) than one.
    #[must_use]
    pub fn advertise(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.advertise = addresses.into_iter().collect();
        self
    }

    /// The tags of this life at its start, as [`Handle::set_tags`](crate::Handle::set_tags) sets them
    /// later. They do not outlive the process: the next one gives its own.
    #[must_use]
    pub fn tags(mut self, tags: impl Into<Tags>) -> Self {
        self.tags = tags.into();
        self
    }

    /// The nodes through which it joins. Its own addresses are passed over. A name that has no other
    /// is looked up again while the node knows no other node; without other seeds, the node begins a
    /// mesh meanwhile. A name without an address is looked up until it has one. 16 are asked at a
    /// time: more take turns, each period of membership 16 others.
    #[must_use]
    pub fn seeds(mut self, seeds: impl IntoIterator<Item: Into<Seed>>) -> Self {
        self.seeds = seeds.into_iter().map(Into::into).collect();
        self
    }

    /// The settings of membership. Distances are measured with
    /// [`with_round_trip_unit`](Config::with_round_trip_unit), or come from the application by
    /// [`SetDistance`](selvedge_membership::Command::SetDistance); without either, all members weigh
    /// the same. The frame budget holds for all protocols, so the other settings'
    /// budgets are lowered to it.
    #[must_use]
    pub fn membership(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Takes part in locks with the default settings, in a mesh of at most `nodes` lives that are
    /// present, in all, while a lock is asked for and held: from 1. A node that restarts meanwhile
    /// counts twice. All nodes of a mesh give the same number.
    ///
    /// A lock is given only where more than half of `nodes` are present and answer. So among three
    /// nodes `locks(3)` lets one be away and has no room for a restart, and `locks(4)` is the other
    /// way round; five nodes with `locks(6)` have room for both
    /// ([`survives`](selvedge_camera::Config::survives)). With a number that is too low two nodes
    /// may hold one lock; with twice the nodes that there are, none ever does. In one mesh all
    /// nodes take part, or none, with the same number: nodes do not compare it.
    #[must_use]
    pub fn locks(self, nodes: u32) -> Self {
        self.exclusion(Exclusion::new(sections::Config::new(nodes)))
    }

    /// Takes part in locks. In one mesh all nodes do, or none: a node that is asked and cannot
    /// answer holds up all others.
    #[must_use]
    pub fn exclusion(mut self, exclusion: Exclusion) -> Self {
        self.exclusion = Some(exclusion);
        self
    }

    /// Passes over a node that may have a lock this long after membership has declared that node
    /// failed, or after a later request has met it: from zero, at once. It replaces the setting in
    /// [`exclusion`](Self::exclusion); without locks the node does not start
    /// ([`HostError::NoLocks`](crate::HostError::NoLocks)).
    ///
    /// Without it, the default, other nodes wait for a silent holder until its end is certain, see
    /// [A dead holder of a lock](crate#a-dead-holder-of-a-lock). With it a node that is silent and
    /// not dead has the lock together with its successor. The successor's
    /// [`token`](crate::Guard::token) is greater, and the other's guard is
    /// [fenced](crate::Guard::is_fenced) as soon as that node can be reached. So choose a time only
    /// if the resource that the lock protects keeps the greatest token that it has seen, and
    /// refuses lower ones. A longer time makes two holders rarer, and each wait for a dead holder
    /// longer. A single node with a takeover suffices for two holders, so give all nodes of a mesh
    /// the same: nodes do not compare it.
    #[must_use]
    pub const fn takeover(mut self, after: Span) -> Self {
        self.takeover = Some(after);
        self
    }

    /// Keeps the permissions of the other nodes after an exit until another node asks, or until
    /// `time` has passed since the first exit: meanwhile a thread or task of this node enters again
    /// without any message. For locks that one node takes again and again, while a
    /// [gate](crate::Handle::gate) of it exists: when the last one is dropped, permissions are given
    /// back. It replaces the setting in [`exclusion`](Self::exclusion); without locks the node does
    /// not start. Nodes of a mesh may differ in it.
    ///
    /// It costs two things. The lives that are present until the permissions are given back count in
    /// [`locks`](Self::locks), so a longer time needs more room for restarts. And a node that dies
    /// meanwhile holds up the lock as a dead holder does, though none of its threads has it. The time
    /// runs by this node's clock, which may stand still while the machine is suspended.
    #[must_use]
    pub const fn keep(mut self, time: Span) -> Self {
        self.keep = Some(time);
        self
    }

    /// Enters a lock as soon as more than half of the nodes of [`locks`](Self::locks) and all rivals
    /// have agreed, without waiting for the slower nodes. It is as safe as without; more messages may
    /// be needed to learn of the exit. It replaces the setting in [`exclusion`](Self::exclusion);
    /// without locks the node does not start. Nodes of a mesh may differ in it.
    #[must_use]
    pub const fn eager(mut self) -> Self {
        self.eager = true;
        self
    }

    /// Takes part in elections. In one mesh all nodes do, or none.
    #[must_use]
    pub fn election(mut self, election: Election) -> Self {
        self.election = Some(election);
        self
    }

    /// Takes part in k-groups: as a member, and as a client. Each `epoch`, by the system's clock,
    /// groups move; zero: only when members fail. In one mesh all nodes give the same epoch,
    /// and a site of generation 0 that is the same, or one of a later generation: see
    /// [A building that changes](crate#a-building-that-changes). If frames are shorter than the site's,
    /// the site's are shortened: then all nodes have the same settings of membership, and all seal or none.
    ///
    /// The node stores its promises: give the folder by [`state`](Self::state).
    #[must_use]
    pub fn coordination(mut self, coordination: Coordination, epoch: Span) -> Self {
        self.coordination = Some((coordination, epoch));
        self
    }

    /// The time that the local clock shows, for triggers of time
    /// ([`Definition::with_trigger`](selvedge_kgroup::routines::Definition::with_trigger)); `None` while
    /// it is not known: the node counts on from the last time. Read often, on the node's task, so that a step of the zone counts at once. All nodes show the same
    /// zone. Without it, the system's clock in UTC, without the sun.
    ///
    /// ```
    /// use std::time::UNIX_EPOCH;
    ///
    /// use selvedge_kgroup::WallClock;
    /// use selvedge_routine::trigger::TimeOfDay;
    ///
    /// # let setup = selvedge_udp::Setup::new(selvedge_core::NodeId(7), "127.0.0.1:0".parse()?);
    /// let setup = setup.local_clock(|| {
    ///     Some(WallClock {
    ///         utc: UNIX_EPOCH.elapsed().ok()?.into(),
    ///         ahead: 3_600, // From a library that knows time zones, which crate `jiff` is.
    ///         sunrise: None, // From `selvedge_routine::sun`.
    ///         sunset: TimeOfDay::parse("20:15"),
    ///     })
    /// });
    /// # drop(setup);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn local_clock(
        mut self,
        shown: impl FnMut() -> Option<WallClock> + Send + 'static,
    ) -> Self {
        self.local_clock = LocalClock::new(shown);
        self
    }

    /// Stores the node's promises in k-groups in this folder, which is made if it is not there and
    /// belongs to one node of one mesh. Each promise is stored before effects that depend on it. So
    /// a process that is started again with the same folder keeps them and votes at once, and groups
    /// continue when all nodes lose power together, in any order in which they return. Each start
    /// takes a later life than the stored one, even if the system's clock is wrong after a power cut.
    ///
    /// The folder has the node's [start](Coordination::start) as well; the one that is given here is
    /// for an empty folder. If a folder was lost or put aside, or its disk is not mounted, give
    /// [`Restarted`](selvedge_groups::Start::Restarted): a node that starts fresh a second time may
    /// contradict its promises. An earlier copy of a folder is not detected: never restore one.
    ///
    /// Membership continues during a slow write, until 1,024 effects wait for it; the end of the
    /// node waits for the write. A node that cannot store reports it and ends
    /// ([`NodeEvent::Unstored`](crate::NodeEvent::Unstored)). It loses nothing that it stored before.
    /// Without [`coordination`](Self::coordination) the epoch of the [seal](Self::seal) alone is stored.
    #[must_use]
    pub fn state(mut self, dir: impl Into<PathBuf>) -> Self {
        self.memory = Some(Memory::Folder(dir.into()));
        self
    }

    /// Does as [`state`](Self::state) with a medium other than a folder.
    #[must_use]
    pub fn state_on(mut self, medium: impl StorageBackend) -> Self {
        self.memory = Some(Memory::on(medium));
        self
    }

    /// Stores nothing: a later process of this node has forgotten its promises in k-groups. For
    /// tests and nodes without a disk. The first process of a node starts
    /// [fresh](selvedge_groups::Start::Fresh), each later one
    /// [restarted](selvedge_groups::Start::Restarted) ([`Coordination::with_start`]); it is up to the
    /// application to know which one it is. Groups are lost when more of their members than may fail
    /// stop at once.
    #[must_use]
    pub fn stateless(mut self) -> Self {
        self.memory = Some(Memory::None);
        self
    }

    /// Seals all datagrams. That takes [`OVERHEAD`](selvedge_seal::OVERHEAD) bytes of the frame
    /// budget.
    ///
    /// With a folder of [state](Self::state) each start takes a later epoch than the stored one, so a node whose
    /// clock is behind its former start is not refused. Without a folder it is, until its clock has passed that.
    #[must_use]
    pub fn seal(mut self, seal: Seal) -> Self {
        self.seal = Some(seal);
        self
    }

    /// The clock from which the seal takes the epochs of this node, in microseconds since 1970. For tests of clocks
    /// that are set back.
    #[must_use]
    pub const fn seal_clock(mut self, since_1970: fn() -> u64) -> Self {
        self.seal_clock = since_1970;
        self
    }

    /// Draws the node's choices from this seed. For tests: an attacker that knows it foresees them.
    #[must_use]
    pub const fn random_seed(mut self, seed: u64) -> Self {
        self.random_seed = Some(seed);
        self
    }

    /// Uses this clock. Nodes of one process that share it can compare their times.
    #[must_use]
    pub const fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the numbers of commands that may wait for the node, and of events that are kept for its
    /// subscribers.
    #[must_use]
    pub const fn limits(mut self, limits: shared::Limits) -> Self {
        self.limits = limits;
        self
    }
}
