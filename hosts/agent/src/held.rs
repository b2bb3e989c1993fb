//! The parts of the mesh that clients hold.

use std::time::Duration;

use selvedge_udp::recipes::barrier::Inside;
use selvedge_udp::recipes::lock::{Guard, Token};
use selvedge_udp::recipes::priority_election::{Candidate, Leadership, PriorityElection};
use selvedge_udp::recipes::registry::Registration;
use selvedge_udp::recipes::semaphore::Permit;
use selvedge_udp::selvedge::groups::store::SessionId;
use selvedge_udp::{Error, Session};
use serde::Serialize;
use tokio::sync::oneshot;

/// A part of the mesh that a client holds.
#[derive(Debug)]
pub(crate) enum Held {
    Lock(Guard),
    SharedLock(Guard),
    Semaphore(Permit),
    Election(PriorityElection<'static>, Leadership<'static>),
    Service(Registration),
    Barrier(Inside<'static>),
    Session(Session),
}

/// A fencing token: later holders have greater versions, of one map.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TokenView {
    pub(crate) map: String,
    pub(crate) version: u64,
}

impl From<Token> for TokenView {
    fn from(token: Token) -> Self {
        Self {
            map: format!("{:x}", token.map.0),
            version: token.version,
        }
    }
}

impl Held {
    /// The kind of a leadership.
    pub(crate) const ELECTION: &'static str = "election";

    pub(crate) const fn session(&self) -> &Session {
        match self {
            Self::Lock(it) | Self::SharedLock(it) => it.session(),
            Self::Semaphore(it) => it.session(),
            Self::Election(_, it) => it.session(),
            Self::Service(it) => it.session(),
            Self::Barrier(it) => it.session(),
            Self::Session(it) => it,
        }
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Lock(_) => "lock",
            Self::SharedLock(_) => "shared_lock",
            Self::Semaphore(_) => "semaphore",
            Self::Election(..) => Self::ELECTION,
            Self::Service(_) => "service",
            Self::Barrier(_) => "barrier",
            Self::Session(_) => "session",
        }
    }

    pub(crate) fn token(&self) -> Option<Token> {
        match self {
            Self::Lock(it) | Self::SharedLock(it) => Some(it.token()),
            Self::Election(_, it) => Some(it.token()),
            Self::Semaphore(_) | Self::Service(_) | Self::Barrier(_) | Self::Session(_) => None,
        }
    }

    pub(crate) async fn release(self) -> Result<(), Error> {
        match self {
            Self::Lock(it) | Self::SharedLock(it) => it.release().await,
            Self::Semaphore(it) => it.release().await,
            Self::Election(_, it) => it.resign().await,
            Self::Service(it) => it.end().await,
            Self::Barrier(it) => it.leave().await,
            Self::Session(it) => it.end().await,
        }
    }
}

/// The outcome of a request to hand over.
#[derive(Debug)]
pub(crate) enum HandOver {
    /// The candidate leads.
    Done,
    /// No such candidate waits: all is as it was.
    NoCandidate,
    /// This kind of hold has no candidates.
    NoElection,
    /// A later request took the place of this one.
    Overtaken,
}

/// The longest time to list candidates, and to hand over. Meanwhile a hold has no answer for its client, nor its end.
const CANDIDATES: Duration = Duration::from_secs(5);
const HANDS_OVER: Duration = Duration::from_secs(10);

async fn within<T>(
    limit: Duration,
    it: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let outcome = tokio::time::timeout(limit, it).await;
    outcome.unwrap_or(Err(Error::Unanswered))
}

/// A hold after a request to hand it over.
#[derive(Debug)]
pub(crate) enum Rest {
    /// All is as it was.
    Kept(Held),
    /// The candidate leads; after an error that, or no one.
    Over(Result<(), Error>),
}

impl Held {
    /// Hands a leadership over: to the candidate with this session, else to the first one. When the client waits no
    /// longer, the leadership has been handed over, or ends.
    pub(crate) async fn hand_over(
        self,
        to: Option<SessionId>,
        mut reply: oneshot::Sender<Result<HandOver, Error>>,
    ) -> Rest {
        let Self::Election(election, leads) = self else {
            reply.send(Ok(HandOver::NoElection)).ok();
            return Rest::Kept(self);
        };
        let candidates = tokio::select! {
            candidates = within(CANDIDATES, election.candidates()) => candidates,
            () = reply.closed() => return Rest::Kept(Self::Election(election, leads)),
        };
        let candidates = match candidates {
            Ok(candidates) => candidates,
            Err(error) => {
                reply.send(Err(error)).ok();
                return Rest::Kept(Self::Election(election, leads));
            }
        };
        let is_meant = |it: &&Candidate| to.is_none_or(|to| it.session() == Some(to));
        let Some(next) = candidates.iter().find(is_meant) else {
            reply.send(Ok(HandOver::NoCandidate)).ok();
            return Rest::Kept(Self::Election(election, leads));
        };
        let outcome = tokio::select! {
            outcome = within(HANDS_OVER, leads.hand_over(next)) => outcome,
            () = reply.closed() => return Rest::Over(Err(Error::Unanswered)),
        };
        let (answer, rest) = match outcome {
            Ok(None) => (Ok(HandOver::Done), Rest::Over(Ok(()))),
            Ok(Some(leads)) => (
                Ok(HandOver::NoCandidate),
                Rest::Kept(Self::Election(election, leads)),
            ),
            Err(error) => (Err(error), Rest::Over(Err(error))),
        };
        // The client may have gone.
        reply.send(answer).ok();
        rest
    }
}
