//! Sessions of maps, for the application.

use std::sync::Arc;

use selvedge_core::{Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{Operation, SessionId, Stored, Transaction};

use crate::kept::{Owner, Standing};
use crate::service::{Answer, Command, Error, Question, Reject, misplaced};
use crate::{Handle, Map};

/// A session of a map, which this node keeps alive. It owns entries ([`Transaction::put_owned`]), which are
/// removed when it ends. See [`Map::session`].
///
/// There are two facts, and a program that acts by an owned entry needs the first:
///
/// | fact | by | when |
/// |---|---|---|
/// | the session may have ended | [`is_alive`](Self::is_alive), [`lapsed`](Self::lapsed) | no answer came for seven eighths of the time to live; it may turn out alive later |
/// | the session is over, and its entries are removed | [`ended`](Self::ended) | the group has decided it, and this node has learned of it |
///
/// It outlives a new life of the node, which goes on to keep it alive, and changes of the group's leader. It
/// ends at once when the `Session` is dropped, as by [`end`](Self::end), but without an answer; when the node
/// leaves; and when its time to live is over after the node was killed, was cut off, or has lost its last
/// handle. [`detach`](Self::detach) has another node go on with it. Sessions keep their node running, as a
/// [`Handle`] does.
///
/// [`Transaction::put_owned`]: selvedge_groups::store::Transaction::put_owned
#[derive(Debug)]
#[must_use = "a session that is dropped ends, and its entries are removed"]
pub struct Session {
    node: Handle,
    owner: Arc<Owner>,
}

/// A session that began with a change of entries. See [`Map::session_with`].
#[derive(Debug)]
#[must_use = "a session that is dropped ends, and its entries are removed"]
#[non_exhaustive]
pub struct Begun {
    /// The session.
    pub session: Session,
    /// The version of the map after the change, which is in the names of
    /// [appended](selvedge_groups::store::appended) entries.
    pub version: u64,
    /// True if an entry was not as expected, and the
    /// [other steps](selvedge_groups::store::Transaction::otherwise) were done.
    pub is_otherwise: bool,
}

impl Session {
    /// Waits until the session is known to be alive.
    pub(crate) async fn new(node: &Handle, owner: Arc<Owner>) -> Result<Self, Error> {
        let session = Self {
            node: node.clone(),
            owner,
        };
        let is_known = |it: &Standing| it.until.is_some();
        let standing = session.wait(is_known).await;
        if standing.until.is_none() {
            return Err(match standing.is_closed {
                true => Error::Closed,
                false => Error::Rejected(Reject::SessionOver(session.id())),
            });
        }
        session.owner.set_ends(true);
        Ok(session)
    }

    /// Its name, by which entries name their owner, and another node [resumes](Map::resume) it.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.owner.name.1
    }

    /// The group of its map.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.owner.name.0
    }

    /// The time by the node's [`clock`](Handle::clock) before which it does not end, unless a program ends
    /// it. It moves on with each answer of the map's group, of which there are three or more in each time to
    /// live. It holds as long as the speeds of clocks differ by less than an eighth. If the machine
    /// is suspended that clock may stand still, and the session ends earlier: rely on a fencing token there.
    /// So it does where the map [begins anew](Handle::begin_anew).
    #[must_use]
    pub fn until(&self) -> Time {
        self.standing().until.unwrap_or(Time::ZERO)
    }

    /// Returns true if it is certainly alive now: [`until`](Self::until) is later, and it has not ended. It does
    /// not wait for the node's task, which may be late.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let standing = self.standing();
        !standing.is_over && !standing.is_closed && standing.until > Some(self.node.clock().now())
    }

    /// Waits until the session may have ended: [`until`](Self::until) has passed, it is over, or the node has
    /// stopped. It may turn out alive later: then it has never ended.
    pub async fn lapsed(&self) {
        self.wait(|it| it.has_lapsed).await;
    }

    /// Waits until it is over, and its entries are removed.
    ///
    /// # Errors
    /// [`Error::Closed`] when the node has stopped, and does not know.
    pub async fn ended(&self) -> Result<(), Error> {
        match self.wait(|_| false).await.is_over {
            true => Ok(()),
            false => Err(Error::Closed),
        }
    }

    /// Ends it, and removes its entries by the same change. A dropped future ends it, too.
    ///
    /// # Errors
    /// As [`Map::put`]: it ends later.
    pub async fn end(self) -> Result<(), Error> {
        let (group, id) = self.owner.name;
        self.owner.lapse();
        let question = Question::Change(Operation::EndSession(id));
        let answer = self.node.ask_group(group, question).await?;
        let Answer::Stored(_) = answer else {
            return Err(misplaced(&answer));
        };
        self.owner.end();
        Ok(())
    }

    /// Stops keeping it alive, and returns its name: it ends when its time to live is over, unless another
    /// node [resumes](Map::resume) it before. Leave the mesh only when the other node has done so: the group's leader
    /// ends the sessions that a node that leaves kept alive alone.
    #[must_use]
    pub fn detach(self) -> SessionId {
        self.owner.set_ends(false);
        self.id()
    }

    fn standing(&self) -> Standing {
        *self.owner.standing.borrow()
    }

    /// Waits for a standing, or the last one.
    async fn wait(&self, is_so: impl Fn(&Standing) -> bool) -> Standing {
        let mut standing = self.owner.standing.clone();
        let is_last = |it: &Standing| it.is_over || it.is_closed || is_so(it);
        let found = standing.wait_for(is_last).await.map(|it| *it);
        found.unwrap_or_else(|_| self.standing())
    }
}

impl Map<'_> {
    /// Begins a session, which this node keeps alive. It owns entries that are put for it, and ends when its
    /// time to live passes without a request of this node; also when the [`Session`] is dropped, or the
    /// node leaves. From [`TTL_MIN`] (a second) to [`TTL_MAX`] (a day); a time of a few periods of membership
    /// outlasts a change of the group's leader. Three requests in each time to live, and one each 15 s at least.
    ///
    /// ```no_run
    /// use selvedge_udp::Span;
    /// use selvedge_udp::selvedge::groups::store::Transaction;
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let services = node.map("services");
    /// let session = services.session(Span::secs(10)).await?;
    /// let here = Transaction::new().put_owned("printer/7", b"192.0.2.7:631", session.id());
    /// services.transact(here).await?;
    /// session.ended().await?;
    /// println!("the entry is gone");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Reject::NoSession`] when the map has [`SESSIONS_MAX`] sessions; when the time to live is out of its
    /// range, or this node keeps too many sessions alive; as [`put`](Self::put): a session that has begun
    /// without an answer ends after its time to live.
    ///
    /// [`TTL_MIN`]: selvedge_groups::store::TTL_MIN
    /// [`TTL_MAX`]: selvedge_groups::store::TTL_MAX
    /// [`SESSIONS_MAX`]: selvedge_groups::store::SESSIONS_MAX
    pub async fn session(&self, ttl: Span) -> Result<Session, Error> {
        let begun = self.session_with(ttl, Transaction::new()).await?;
        Ok(begun.session)
    }

    /// Begins a session and changes entries by one change of the map: both are done, or neither. The session owns
    /// the entries that are put for [`Owner::Begun`]: a dropped [`Begun`] ends it, and removes them.
    ///
    /// ```no_run
    /// use selvedge_udp::Span;
    /// use selvedge_udp::selvedge::groups::store::{Owner, Transaction};
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let here = Transaction::new().put_owned("printer/7", b"192.0.2.7:631", Owner::Begun);
    /// let begun = node.map("services").session_with(Span::secs(10), here).await?;
    /// begun.session.ended().await?;
    /// println!("the entry is gone");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Reject::Mismatch`] when an entry is not as expected, and there are no other steps;
    /// [`Reject::MapFull`] when the map has no room for the entries; [`Reject::NoSession`] also when another session
    /// that was to own one has ended; as [`session`](Self::session). Where a session has begun without an answer,
    /// its entries stay for its time to live.
    ///
    /// [`Owner::Begun`]: selvedge_groups::store::Owner::Begun
    pub async fn session_with(&self, ttl: Span, transaction: Transaction) -> Result<Begun, Error> {
        let question = Question::Change(Operation::BeginSession { ttl, transaction });
        let answer = self.node.ask_group(self.group, question).await?;
        if let Answer::Stored(stored) = answer {
            return Err(Error::Rejected(match stored {
                Stored::NoSession => Reject::NoSession,
                Stored::Full => Reject::MapFull,
                Stored::Mismatch { found } => Reject::Mismatch { found },
                Stored::Over
                | Stored::Done { .. }
                | Stored::Otherwise { .. }
                | Stored::Begun { .. } => Reject::NewLife,
            }));
        }
        let Answer::Begun {
            owner,
            version,
            is_otherwise,
        } = answer
        else {
            return Err(misplaced(&answer));
        };
        Ok(Begun {
            session: Session::new(self.node, owner).await?,
            version,
            is_otherwise,
        })
    }

    /// Keeps a session alive that another node, or an earlier run of this program, began. Several
    /// nodes may keep it alive; it ends for all of them when one drops its [`Session`], or leaves, and has not
    /// [detached](Session::detach) it.
    ///
    /// # Errors
    /// [`Reject::SessionOver`] when it has ended; when this node keeps too many sessions alive; as
    /// [`get`](Self::get).
    pub async fn resume(&self, session: SessionId) -> Result<Session, Error> {
        let name = (self.group, session);
        let answer = self.node.submit_in(Command::Resume(name)).await?;
        let Answer::Session(owner) = answer else {
            return Err(misplaced(&answer));
        };
        Session::new(self.node, owner).await
    }
}
