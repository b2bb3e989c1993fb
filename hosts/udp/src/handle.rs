//! The application's end of a node.

use std::net::SocketAddr;
use std::sync::Arc;

use selvedge_camera::sections;
use selvedge_celect::{self as celect, Ballot};
use selvedge_core::shared::{self, Subscriber};
use selvedge_core::{Member, NodeId, Time};
use selvedge_membership as membership;
use selvedge_seal::Keyring;

use crate::kept::Kept;
use crate::service::{Answer, Command, Error, NodeService, Reject};
use crate::traffic::Traffic;
use crate::watch::Watches;
use crate::{Clock, MemberInfo, NodeState, Observed, Tags, block_on};

/// A running node, to clone into every thread and task that needs it.
///
/// Reads ([`members`](Self::members), [`leader`](Self::leader), ..) return the node's latest
/// published state, without waiting. A request to the mesh ([`lock`](Self::lock),
/// [`elect`](Self::elect), [`map`](Self::map), ..) waits until the node has joined, as
/// [`joined`](Self::joined) does, and ends with an error when the node stops. Each wait is a future
/// that runs on any executor. A dropped future stops waiting; a command that the node has accepted
/// is carried out all the same.
///
/// Calls with a `blocking_` form block their thread, and others can, by
/// [`block_on`](crate::block_on). In a task of a tokio runtime they panic, as tokio's own do.
///
/// When the last handle is dropped the node stops without an announcement, as in a crash: use
/// [`leave`](Self::leave) first. Gates, guards of locks of the mesh and subscriptions do not keep it running;
/// watches, sessions and what [`recipes`](crate::recipes) return do.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) shared: shared::Handle<NodeService, NodeState>,
    pub(crate) id: NodeId,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) watches: Watches,
    pub(crate) kept: Kept,
}

/// A reader of a node's events, with its own cursor. See [`Handle::events`].
pub type Events = Subscriber<Observed>;

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

    /// Its clock, which gives [`leads_until`](Self::leads_until) and the times of events.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Its counters. They outlive the node.
    #[must_use]
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// The node's latest published state, of one moment. It never changes. A reader that saw an
    /// event reads a state that reflects it.
    #[must_use]
    pub fn state(&self) -> Arc<NodeState> {
        self.shared.snapshot()
    }

    /// Waits for a [`state`](Self::state) that `is_so` accepts, the present one included, and
    /// returns it. `is_so` runs for the latest state each time that there is a new one. A state that
    /// lasts for a moment may be missed: read [`events`](Self::events) for each change. As any wait,
    /// it keeps its handle, and therefore the node.
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let state = node.wait_for(|state| state.members.len() > 2 && state.leader.is_some()).await?;
    /// println!("{:?} leads {} members", state.leader, state.members.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`](shared::Error::Closed) when the node has stopped, and `is_so` does not
    /// accept its last state.
    pub async fn wait_for(
        &self,
        is_so: impl FnMut(&NodeState) -> bool,
    ) -> Result<Arc<NodeState>, Error> {
        Ok(self.shared.wait_for(is_so).await?)
    }

    /// Does as [`wait_for`](Self::wait_for) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_wait_for(
        &self,
        is_so: impl FnMut(&NodeState) -> bool,
    ) -> Result<Arc<NodeState>, Error> {
        block_on(self.wait_for(is_so))
    }

    /// Waits until the node is in the mesh ([`NodeState::is_in`]): at once where it has no seeds,
    /// and for as long as no seed answers.
    ///
    /// # Errors
    /// [`Error::Closed`](shared::Error::Closed) when the node has stopped: it has left, also before
    /// it joined, or was [killed](Self::kill).
    pub async fn joined(&self) -> Result<(), Error> {
        self.wait_for(|state| state.is_in).await.map(|_state| ())
    }

    /// Does as [`joined`](Self::joined) and blocks this thread meanwhile.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_joined(&self) -> Result<(), Error> {
        block_on(self.joined())
    }

    /// The member list, this node included. It is rebuilt with each event of membership; a failed
    /// or left member may stay in it until the next one, after membership has forgotten it. Once
    /// the node has stopped the last list stays.
    #[must_use]
    pub fn members(&self) -> Arc<[MemberInfo]> {
        Arc::clone(&self.state().members)
    }

    /// The leader, perhaps this node, and its ballot; `None` when this node knows of no leader, and
    /// once it has stopped. Send the ballot with every operation as the leader, and have the
    /// receivers refuse smaller ones.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        self.state().leader
    }

    /// The end of the time for which this node leads, by its [`clock`](Self::clock); `None` when it
    /// does not lead, when no other node has acknowledged that yet, and once it has stopped.
    /// Without a [`lease`](celect::Config::lease), as the settings have it by default, it is the
    /// end of time. Two parts of a mesh that was cut may both have a leader, also with a lease. See
    /// [`Celect::leads_until`](celect::Celect::leads_until). Compare it with the clock right before
    /// you write as the leader: it does not wait for the node's task, which may be late.
    ///
    /// If machines are suspended that clock may stand still, and the lease outlasts the time that
    /// other nodes wait: rely on the ballot there.
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        self.state().leads_until
    }

    /// Reads the events of the node from now on. To miss no change: subscribe, then read the
    /// [`state`](Self::state), and read it again after each event.
    ///
    /// The ring of events is bounded ([`Setup::limits`](crate::Setup::limits)). A reader that falls
    /// behind by more gets [`RecvError::Lagged`](shared::RecvError::Lagged) with the number of
    /// events that it missed, and continues with the oldest event that is kept. It blocks neither
    /// the node nor other readers.
    #[must_use]
    pub fn events(&self) -> Events {
        self.shared.subscribe()
    }

    /// Reads the events from the oldest that is kept: right after the start, all of them.
    #[must_use]
    pub fn events_from_oldest(&self) -> Events {
        self.shared.subscribe_from_oldest()
    }

    /// Begins an election. Its end is an event, on all nodes.
    ///
    /// # Errors
    /// When this node runs one already, was started without
    /// [`Setup::election`](crate::Setup::election), or has stopped.
    pub async fn elect(&self) -> Result<(), Error> {
        let elect = celect::Command::Elect;
        self.ask(selvedge::Command::Election(elect)).await
    }

    /// Sets the number of lists from which a live node may be missing, and the number of
    /// listed nodes that may be dead, at a time: an election that waits for answers ends by
    /// them. They apply to a later life, too.
    ///
    /// # Errors
    /// When the node was started without [`Setup::election`](crate::Setup::election), or has
    /// stopped.
    pub async fn set_bounds(&self, missing_from: u16, failures: u16) -> Result<(), Error> {
        let bounds = celect::Command::SetBounds {
            missing_from,
            failures,
        };
        self.ask(selvedge::Command::Election(bounds)).await
    }

    /// Sets a new bound for the number of lives, in all locks, see
    /// [`max_lives`](selvedge_camera::Config::max_lives).
    ///
    /// # Errors
    /// When the machine refuses it, or the node has stopped, also before it joined.
    pub async fn set_max_lives(&self, max_lives: u32) -> Result<(), Error> {
        let bound = sections::Command::SetMaxLives(max_lives);
        self.ask(selvedge::Command::Sections(bound)).await
    }

    /// Replaces the tags of this node. To change one, take the present ones from
    /// [`members`](Self::members). When this returns, the node's own list has them; other members
    /// have them some periods later, or with the first message of a node that has not joined yet.
    /// Of two calls at once, either may be the last. Equal tags are no change.
    ///
    /// # Errors
    /// [`Reject::Tags`] when they are too long; they are as before then. When the node has stopped.
    pub async fn set_tags(&self, tags: impl Into<Tags>) -> Result<(), Error> {
        self.submit(Command::SetTags(tags.into())).await
    }

    /// Replaces the keys of this node: it seals with the first one from now on, and opens with all.
    ///
    /// A mesh changes its key without an interruption in three rounds, each of which all nodes have
    /// before the next one begins: the new key last, the new key first, the old key removed. The
    /// functions for key files in [`seal`](crate::seal) do these changes.
    ///
    /// # Errors
    /// [`Reject::NotSealed`] where the node started without keys. When the node has stopped.
    pub async fn set_keys(&self, keys: Keyring) -> Result<(), Error> {
        self.submit(Command::SetKeys(keys)).await
    }

    /// Gives membership a command, for instance a broadcast. It does not wait: a command for members
    /// alone is refused before the node has [joined](Self::joined).
    ///
    /// To leave, use [`leave`](Self::leave), which waits for guards and returns when the node has
    /// stopped. [`Command::Leave`](membership::Command::Leave) returns when the announcement has
    /// begun, is refused while a thread or task waits for a lock or has one
    /// ([`selvedge::Reject::InUse`]), and stops the node when the announcement is
    /// over. The metadata has the node's addresses: for the application's data use
    /// [`set_tags`](Self::set_tags).
    ///
    /// # Errors
    /// [`Reject::Metadata`] for [`Command::SetMetadata`](membership::Command::SetMetadata). When the
    /// machine refuses the command, or the node has stopped.
    pub async fn command(&self, command: membership::Command) -> Result<(), Error> {
        self.ask(selvedge::Command::Membership(command)).await
    }

    /// Announces to the others that this node leaves, and stops it. Returns when that is done and
    /// its port is free. Gates admit no more users. It waits for guards, because to other nodes the
    /// announcement ends all that this node holds. [Sessions](crate::Session) end, also those that handles still
    /// have; it waits for that up to two seconds.
    ///
    /// It waits for no answer: if the announcement reaches no other node, as in a cut, the other
    /// nodes see a crash ([A dead holder of a lock](crate#a-dead-holder-of-a-lock)).
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
    ///
    /// # Panics
    /// In a task, see [`block_on`](crate::block_on).
    #[track_caller]
    pub fn blocking_leave(&self) -> Result<(), Error> {
        block_on(self.leave())
    }

    /// Stops the node at once, as a crash would: the others get no announcement. Its port is free
    /// when this returns, and its folder ([`Setup::state`](crate::Setup::state)): it waits for the present
    /// write.
    pub async fn kill(&self) {
        // It may have stopped already.
        let _stopped = self.submit(Command::Kill).await.is_ok();
    }

    pub(crate) async fn ask(&self, command: selvedge::Command) -> Result<(), Error> {
        self.submit_in(Command::Machine(command))
            .await
            .map(|_done| ())
    }

    /// Submits a command that needs the mesh, and once more when the node has joined.
    pub(crate) async fn submit_in(&self, command: Command) -> Result<Answer, Error> {
        match self.shared.submit(command.clone()).await {
            Err(Error::Rejected(Reject::Node(selvedge::Reject::NotPresent))) => {
                self.joined().await?;
                self.shared.submit(command).await
            }
            outcome => outcome,
        }
    }

    async fn submit(&self, command: Command) -> Result<(), Error> {
        self.shared.submit(command).await.map(|_done| ())
    }
}
