//! Who leads, for threads and tasks; and what they ask.

use core::future;

use selvedge_celect::{Ballot, Command, Event};
use selvedge_core::Member;
use selvedge_core::shared::{Error, Handle, Port, RecvError, Request, Subscriber};

use crate::mesh::{self, Mesh, Reject};

type Leader = Option<(Member, Ballot)>;

/// The elections of one node, to clone into threads and tasks.
#[derive(Clone, Debug)]
pub struct Elections {
    handle: Handle<Mesh, Leader>,
}

impl Elections {
    pub(crate) const fn new(handle: Handle<Mesh, Leader>) -> Self {
        Self { handle }
    }

    /// Who leads, perhaps this node, and by which ballot; `None` when nobody does, as far as it
    /// knows. Give the ballot to whatever is done on the leader's account, and let that refuse
    /// smaller ones.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        *self.handle.snapshot()
    }

    /// Begins an election. Its end is an event, on all nodes.
    ///
    /// # Errors
    /// When this node runs one already, has not joined, or has stopped.
    pub async fn elect(&self) -> Result<(), Error<Reject>> {
        self.submit(Command::Elect).await
    }

    /// From how many lists a live node may be missing (`c`), and how many that are listed may be
    /// dead (`f`), at once: a run that waits for answers ends by them. A later life is held to
    /// them as well.
    ///
    /// # Errors
    /// When the node has stopped.
    pub async fn tolerate(&self, c: u16, f: u16) -> Result<(), Error<Reject>> {
        self.submit(Command::Tolerate { c, f }).await
    }

    /// What is told from now on. Whoever heard something reads a [`leader`](Self::leader) that
    /// reflects it.
    #[must_use]
    pub fn subscribe(&self) -> Changes {
        Changes(self.handle.subscribe())
    }

    async fn submit(&self, command: Command) -> Result<(), Error<Reject>> {
        self.handle.submit(mesh::Command::Election(command)).await
    }
}

/// What a node tells of elections, in order.
#[derive(Debug)]
pub struct Changes(Subscriber<mesh::Event>);

impl Changes {
    /// Waits for the next event.
    ///
    /// # Errors
    /// When some were missed, or the node has stopped.
    pub async fn recv(&mut self) -> Result<Event, RecvError> {
        loop {
            if let mesh::Event::Election(event) = self.0.recv().await? {
                return Ok(event);
            }
        }
    }
}

/// The host's end.
#[derive(Debug)]
pub(crate) struct Leading {
    port: Port<Mesh, Leader>,
    published: Leader,
    told: Vec<mesh::Event>,
}

impl Leading {
    pub(crate) const fn new(port: Port<Mesh, Leader>) -> Self {
        Self {
            port,
            published: None,
            told: Vec::new(),
        }
    }

    /// What is asked next.
    pub(crate) async fn next(&mut self) -> Request<Mesh> {
        match self.port.recv().await {
            Ok(request) => request,
            // Nobody has a handle, so nobody will ask.
            Err(_) => future::pending().await,
        }
    }

    /// What the elections tell, to be published.
    pub(crate) fn told(&mut self, event: Event) {
        self.told.push(mesh::Event::Election(event));
    }

    /// Shows who leads, if that or anything else was told.
    pub(crate) fn publish(&mut self, leader: Leader) {
        if leader != self.published || !self.told.is_empty() {
            self.published = leader;
            self.port.publish(leader, self.told.drain(..));
        }
    }
}
