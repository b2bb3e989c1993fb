//! Who leads, for threads and tasks; and what they ask.

use core::future;

use selvedge_celect::{Ballot, Command, Event};
use selvedge_core::shared::{Error, Handle, Port, RecvError, Request, Subscriber};
use selvedge_core::{Member, Time};

use selvedge::{Mesh, Reject};

type Leader = Option<(Member, Ballot)>;

/// Who leads, and until when this node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) leader: Leader,
    pub(crate) until: Option<Time>,
}

impl Standing {
    /// Nobody was heard of yet.
    pub(crate) const NONE: Self = Self {
        leader: None,
        until: None,
    };
}

/// The elections of one node, to clone into threads and tasks.
#[derive(Clone, Debug)]
pub struct Elections {
    handle: Handle<Mesh, Standing>,
}

impl Elections {
    pub(crate) const fn new(handle: Handle<Mesh, Standing>) -> Self {
        Self { handle }
    }

    /// Who leads, perhaps this node, and by which ballot; `None` when nobody does, as far as it
    /// knows. Give the ballot to whatever is done on the leader's account, and let that refuse
    /// smaller ones. `None` as well once the node has stopped.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        self.handle.snapshot().leader
    }

    /// Until when this node leads, by the [`Clock`](super::Clock) of its host; `None` when it does
    /// not lead, or nobody has acknowledged that yet. See
    /// [`Celect::leads_until`](selvedge_celect::Celect::leads_until). Compare it with that clock right
    /// before you write as the leader: it does not wait for the host's loop, which may be late.
    ///
    /// Where machines are suspended that clock may stand still, and the lease outlasts what others
    /// wait for: rely on the ballot there. `None` once the node has stopped.
    #[must_use]
    pub fn leads_until(&self) -> Option<Time> {
        self.handle.snapshot().until
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
        self.handle
            .submit(selvedge::Command::Election(command))
            .await
    }
}

/// What a node tells of elections, in order.
#[derive(Debug)]
pub struct Changes(Subscriber<selvedge::Event>);

impl Changes {
    /// Waits for the next event.
    ///
    /// # Errors
    /// When some were missed, or the node has stopped.
    pub async fn recv(&mut self) -> Result<Event, RecvError> {
        loop {
            if let selvedge::Event::Election(event) = self.0.recv().await? {
                return Ok(event);
            }
        }
    }
}

/// The host's end.
#[derive(Debug)]
pub(crate) struct Leading {
    port: Port<Mesh, Standing>,
    published: Standing,
    told: Vec<selvedge::Event>,
}

impl Leading {
    pub(crate) const fn new(port: Port<Mesh, Standing>) -> Self {
        Self {
            port,
            published: Standing::NONE,
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
        self.told.push(selvedge::Event::Election(event));
    }

    /// Shows who leads and until when, if that has changed or anything else was told.
    pub(crate) fn publish(&mut self, standing: Standing) {
        if standing != self.published || !self.told.is_empty() {
            self.published = standing;
            self.port.publish(standing, self.told.drain(..));
        }
    }
}

impl Drop for Leading {
    /// Of a node that has stopped nobody is to believe that it leads on.
    fn drop(&mut self) {
        self.publish(Standing::NONE);
    }
}
