//! The application's end of a node.

use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

use selvedge_camera::sections::{self, Name};
use selvedge_celect::{self as celect, Ballot};
use selvedge_core::shared::gate::{EnterError, Limits};
use selvedge_core::shared::{self, Subscriber, block_on};
use selvedge_core::{Member, NodeId, Time};
use selvedge_membership as membership;
use thiserror::Error;

use crate::gates::{Gate, Guard, NoEntry};
use crate::service::{Answer, Command, Error, NodeService};
use crate::{Clock, MemberInfo, NodeState, Observed, Traffic};

/// A running node, to clone into every thread and task that needs it.
///
/// What it reads ([`members`](Self::members), [`leader`](Self::leader), ..) is what the node
/// published last: these calls wait for nothing. What it asks waits for the node. Each wait is a
/// future that runs on any executor, and those with a `blocking_` form block their thread; others
/// can, by [`block_on`](selvedge_core::shared::block_on).
///
/// When the last handle is dropped the node stops without a word, as in a crash: use
/// [`leave`](Self::leave) first. Gates, guards and subscriptions do not keep it running.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) shared: shared::Handle<NodeService, NodeState>,
    pub(crate) id: NodeId,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) traffic: Arc<Traffic>,
}

/// Reads the events of a node, each on a cursor of its own. See [`Handle::events`].
pub type Events = Subscriber<Observed>;

/// Why a lock was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LockError {
    /// There is no such lock at this node, or the node has stopped.
    #[error(transparent)]
    Unavailable(#[from] Error),
    /// The lock was not given.
    #[error(transparent)]
    NotEntered(#[from] EnterError<NoEntry>),
}

impl Handle {
    /// The node's id.
    #[must_use]
    pub const fn id(&self) -> NodeId {
        self.id
    }

    /// The address at which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its clock, which [`leads_until`](Self::leads_until) and the times of events are of.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Its counters. They outlive the node.
    #[must_use]
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// All that the node published last, of one moment. It never changes: read it as long as you
    /// like. A reader that saw an event reads a state that reflects it.
    #[must_use]
    pub fn state(&self) -> Arc<NodeState> {
        self.shared.snapshot()
    }

    /// The member list, this node included. It is made anew with each event of membership; a member
    /// that failed or left may stay in it until the next one, when membership has forgotten it.
    /// Once the node has stopped the last list stays.
    #[must_use]
    pub fn members(&self) -> Arc<[MemberInfo]> {
        Arc::clone(&self.state().members)
    }

    /// The leader, perhaps this node, and its ballot; `None` when this node knows of none, and once
    /// it has stopped. Give the ballot to whatever is done on the leader's account, and let that
    /// refuse smaller ones.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        self.state().leader
    }

    /// Until when this node leads, by its [`clock`](Self::clock); `None` when it does not lead,
    /// when no other node has acknowledged that yet, and once it has stopped. Without a
    /// [`lease`](celect::Config::lease), as the settings have it by default, it is the end of time.
    /// Two parts of a mesh that was cut may both have a leader, also with a lease. See
    /// [`Celect::leads_until`](celect::Celect::leads_until). Compare it with the clock right before
    /// you write as the leader: it does not wait for the node's task, which may be late.
    ///
    /// Where machines are suspended that clock may stand still, and the lease outlasts what others
    /// wait for: rely on the ballot there.
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        self.state().leads_until
    }

    /// Reads the events of the node from now on. To miss no change: subscribe, then read the
    /// [`state`](Self::state), and read it again after each event.
    ///
    /// The ring of events is bounded ([`Setup::limits`](crate::Setup::limits)). A reader that falls
    /// behind by more gets [`RecvError::Lagged`](shared::RecvError::Lagged) with the number of
    /// events that it missed, and goes on with the oldest that is kept. It holds up neither the
    /// node nor other readers.
    #[must_use]
    pub fn events(&self) -> Events {
        self.shared.subscribe()
    }

    /// Reads the events from the oldest that is kept: right after the start, all of them.
    #[must_use]
    pub fn events_from_oldest(&self) -> Events {
        self.shared.subscribe_from_oldest()
    }

    /// Takes the lock of this name: waits until no other thread, task or node has it. Its guard
    /// gives it back when dropped, and has the fencing token: give that to what the lock protects,
    /// and let it refuse lower ones. The whole token rises, not its number: two members may enter
    /// with one number, and are told apart by [`by`](selvedge_core::Stamp::by).
    ///
    /// A caller that asks before the node has joined waits until it has. A dropped future waits no
    /// more, so any timeout may be put around it.
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), Box<dyn std::error::Error>> {
    /// let guard = node.lock("printer".parse()?).await?;
    /// println!("the printer is ours, with token {:?}", guard.token());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the node was started without [`Setup::locks`](crate::Setup::locks), has too many locks
    /// or has stopped; when too many users wait, or too few nodes can be reached.
    pub async fn lock(&self, name: Name) -> Result<Guard, LockError> {
        let gate = self.gate(name).await?;
        Ok(gate.enter().await?)
    }

    /// Does as [`lock`](Self::lock) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn blocking_lock(&self, name: Name) -> Result<Guard, LockError> {
        block_on(self.lock(name))
    }

    /// Does as [`blocking_lock`](Self::blocking_lock), and gives up after `timeout`.
    ///
    /// # Errors
    /// As there, and [`EnterError::TimedOut`].
    pub fn blocking_lock_timeout(&self, name: Name, timeout: Duration) -> Result<Guard, LockError> {
        let gate = self.blocking_gate(name)?;
        Ok(gate.blocking_enter_timeout(timeout)?)
    }

    /// A gate to the lock of this name. It has more ways to wait than [`lock`](Self::lock), and
    /// while it is there the node keeps what it knows about the lock, so the next turn is cheaper.
    /// All gates of one name queue together.
    ///
    /// When the last gate and the last guard are gone the section is closed here. The node goes on
    /// taking part for others.
    ///
    /// # Errors
    /// When the node was started without [`Setup::locks`](crate::Setup::locks), has too many locks
    /// or has stopped.
    pub async fn gate(&self, name: Name) -> Result<Gate, Error> {
        self.ask_gate(name, None).await
    }

    /// Does as [`gate`](Self::gate) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn blocking_gate(&self, name: Name) -> Result<Gate, Error> {
        block_on(self.gate(name))
    }

    /// A gate to a section with these settings, or with those of all sections where `config` is
    /// `None`, and with these limits of its queue. In one mesh all nodes give a section the same
    /// settings. The limits are this node's: all its gates to the section share one queue.
    ///
    /// # Errors
    /// As [`gate`](Self::gate); when the settings cannot work; and
    /// [`Refused::OtherSettings`](crate::Refused::OtherSettings) when the section is in use here
    /// with other settings or other limits.
    pub async fn gate_with(
        &self,
        name: Name,
        config: Option<selvedge_camera::Config>,
        limits: Limits,
    ) -> Result<Gate, Error> {
        self.ask_gate(name, Some((config, limits))).await
    }

    /// Begins an election. Its end is an event, on all nodes.
    ///
    /// # Errors
    /// When this node runs one already, has not joined, was started without
    /// [`Setup::election`](crate::Setup::election), or has stopped.
    pub async fn elect(&self) -> Result<(), Error> {
        let elect = celect::Command::Elect;
        self.ask(selvedge::Command::Election(elect)).await
    }

    /// From how many lists a live node may be missing (`c`), and how many nodes that are listed may
    /// be dead (`f`), at a time: an election that waits for answers ends by them. A later life is
    /// held to them as well.
    ///
    /// # Errors
    /// When the node was started without [`Setup::election`](crate::Setup::election), or has
    /// stopped.
    pub async fn tolerate(&self, c: u16, f: u16) -> Result<(), Error> {
        let tolerate = celect::Command::Tolerate { c, f };
        self.ask(selvedge::Command::Election(tolerate)).await
    }

    /// A new bound for the number of nodes, in all locks, see
    /// [`upper`](selvedge_camera::Config::upper).
    ///
    /// # Errors
    /// When the machine refuses it, or the node has stopped.
    pub async fn bound(&self, upper: u32) -> Result<(), Error> {
        let bound = sections::Command::Bound(upper);
        self.ask(selvedge::Command::Sections(bound)).await
    }

    /// Gives membership a command, for instance a broadcast.
    ///
    /// To leave, use [`leave`](Self::leave), which waits for guards and returns when the node has
    /// stopped. [`Command::Leave`](membership::Command::Leave) returns when the announcement has
    /// begun, is refused while a thread or task waits for a lock or has one
    /// ([`Reject::InUse`](selvedge::Reject::InUse)), and stops the node when the announcement is
    /// over.
    ///
    /// # Errors
    /// When the machine refuses it, or the node has stopped.
    pub async fn command(&self, command: membership::Command) -> Result<(), Error> {
        self.ask(selvedge::Command::Membership(command)).await
    }

    /// Announces to the others that this node leaves, and stops it. Returns when that is done and
    /// its port is free. Gates admit no more users. A guard is waited for, because the others take
    /// the announcement for the end of what is held.
    ///
    /// # Errors
    /// When the node has stopped already, or is [killed](Self::kill) meanwhile. A node that has not
    /// joined has nothing to announce, and stops.
    pub async fn leave(&self) -> Result<(), Error> {
        self.submit(Command::Leave).await
    }

    /// Does as [`leave`](Self::leave) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    pub fn blocking_leave(&self) -> Result<(), Error> {
        block_on(self.leave())
    }

    /// Stops the node at once, as a crash would: the others hear nothing. Its port is free when
    /// this returns.
    pub async fn kill(&self) {
        // Or it has stopped already.
        let _stopped = self.submit(Command::Kill).await.is_ok();
    }

    pub(crate) async fn ask(&self, command: selvedge::Command) -> Result<(), Error> {
        self.submit(Command::Machine(command)).await
    }

    async fn submit(&self, command: Command) -> Result<(), Error> {
        self.shared.submit(command).await.map(|_done| ())
    }

    async fn ask_gate(
        &self,
        name: Name,
        settings: Option<crate::gates::Settings>,
    ) -> Result<Gate, Error> {
        match self.shared.submit(Command::Gate { name, settings }).await? {
            Answer::Gate(gate) => Ok(gate),
            Answer::Done | Answer::Found(_) | Answer::Stored(_) => {
                debug_assert!(false, "a gate is answered with a gate");
                Err(Error::Unanswered)
            }
        }
    }
}
