//! Locks and the like, kept by a connection.

use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::agent::parse;
use crate::events::Stream;
use crate::standing::{self, Standing};
use crate::{Agent, Candidate, Error, HoldInfo, Kind, Token};

/// The shortest wait for the answer to a release.
const RELEASE: Duration = Duration::from_secs(10);

/// A lock, a permit, a place in an election or the like, until it is dropped or ends.
///
/// It lapses when it may have ended: another program may hold it soon. A hold that has lapsed may be
/// [held](Self::is_held) again; an ended hold is never.
///
/// A task asks the agent each quarter of the time to live, at least 250 ms apart, for which time it certainly is
/// held, and counts this time from the moment when it sent the request. Time for which the host is suspended does not
/// count on every system, as on Linux: after it, only the [token](Self::token) protects.
#[derive(Debug)]
pub struct Hold {
    agent: Agent,
    info: HoldInfo,
    standing: watch::Receiver<Standing>,
    /// The task that reads the events: aborted on drop, and then the connection is closed.
    follows: JoinSet<()>,
    /// The task that extends it.
    extends: JoinSet<()>,
}

impl Hold {
    /// The shortest silence of an agent after which a hold ends: an agent sends a byte at least each 5 s. It lapses
    /// earlier.
    pub const SILENCE: Duration = Duration::from_secs(10);

    /// Awaits the event that it is held, and follows its standing from then on. Its request was sent at this moment.
    pub(crate) async fn begin(
        agent: Agent,
        mut stream: Stream,
        sent: Instant,
    ) -> Result<Self, Error> {
        let event = stream.next().await?;
        if event.name != "held" {
            let text = format!("a hold that begins with {:?}", event.name);
            return Err(Error::Misbehaviour(text));
        }
        let info: HoldInfo = parse(&event.data)?;
        let mut standing = Standing::new(sent, &info);
        if info.is_held && !standing.is_held() {
            // It waited for longer than the event may have been on its way: another answer counts from now on.
            let sent = standing::now();
            let patience = Duration::from_millis(info.alive_for_ms);
            if let Ok(Ok(info)) = timeout(patience, agent.extend_hold(&info.hold)).await {
                standing.answered(sent, &info);
            }
        }
        let (sender, standing) = watch::channel(standing);
        let wakes = Arc::<Notify>::default();
        let (mut follows, mut extends) = (JoinSet::new(), JoinSet::new());
        // The time counts from the request for the hold, which may be long ago: the next one is sent at once.
        extends.spawn(standing::extend(
            agent.clone(),
            info.clone(),
            sender.clone(),
            Arc::clone(&wakes),
        ));
        let ttl = Duration::from_millis(info.ttl_ms);
        follows.spawn(standing::follow(stream, ttl, sender, wakes));
        Ok(Self {
            agent,
            info,
            standing,
            follows,
            extends,
        })
    }

    /// Releases it, and waits until the mesh has accepted that; for a barrier until all leave, and for at most the
    /// agent's [wait](Agent::with_wait), or 10 s if that is less. After an error, too, the agent releases it, or it ends its time to live later.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it had ended before; as any call.
    pub async fn release(self) -> Result<(), Error> {
        let Self {
            agent,
            info,
            standing: _,
            follows,
            extends,
        } = self;
        drop(extends);
        // One attempt to get it has the wait 0, which is too short for its end.
        let wait = agent.wait().max(RELEASE);
        let released = agent.with_wait(wait).end_hold(&info.hold).await;
        // The connection is open until here: without it, the agent ends the hold and has no answer.
        drop(follows);
        released
    }

    /// Hands the place of a leader over to this candidate, or to the first one, which leads before all others. Where it
    /// waits no longer, nothing has changed, and the hold is returned. Act as the leader no longer once this is called.
    ///
    /// # Errors
    /// [`Kind::BadRequest`](crate::Kind::BadRequest) for a hold of another kind; as any call. The hold ends, or has been
    /// handed over.
    pub async fn hand_over(self, to: Option<&Candidate>) -> Result<Option<Self>, Error> {
        let to = to.and_then(|it| it.session.as_deref());
        let wait = self.agent.wait().max(RELEASE);
        let agent = self.agent.clone().with_wait(wait);
        match agent.hand_over(&self.info.hold, to).await {
            Ok(()) => Ok(None),
            Err(error) if error.kind() == Some(Kind::Mismatch) => Ok(Some(self)),
            Err(error) => Err(error),
        }
    }

    /// The number that a resource checks; a later holder has a greater one. `None` for a kind without tokens.
    #[must_use]
    pub const fn token(&self) -> Option<&Token> {
        self.info.token.as_ref()
    }

    /// Its session in the mesh, for entries that end with it.
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.info.session.as_deref()
    }

    /// Its data when it began.
    #[must_use]
    pub const fn info(&self) -> &HoldInfo {
        &self.info
    }

    /// True if it certainly is held, by the clock of this process. Needs no task.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.standing.borrow().is_held()
    }

    /// Waits until it may have ended.
    pub async fn lapsed(&self) {
        let mut standing = self.standing.clone();
        loop {
            let seen = *standing.borrow_and_update();
            if !seen.is_held() {
                return;
            }
            // An inner error: the tasks have ended, and so has the hold.
            if let Ok(Err(_)) = timeout_at(seen.until, standing.changed()).await {
                return;
            }
        }
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        let mut standing = self.standing.clone();
        // An error: the tasks have ended, and so has the hold.
        standing.wait_for(Standing::has_ended).await.ok();
    }
}

impl Agent {
    /// A hold of any program.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it has ended; as any call.
    pub async fn hold(&self, hold: &str) -> Result<HoldInfo, Error> {
        self.call(Method::GET, &["holds", hold]).value().await
    }

    /// Releases a hold of any program.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it has ended; as any call.
    pub async fn end_hold(&self, hold: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &["holds", hold]).done().await
    }

    /// Hands the place of a leader over, for any program: to the candidate with this session, or to the first one.
    ///
    /// # Errors
    /// [`Kind::Mismatch`](crate::Kind::Mismatch) when no such candidate waits: the leader leads on;
    /// [`Kind::NotFound`](crate::Kind::NotFound) when the hold has ended; as any call.
    pub async fn hand_over(&self, hold: &str, to: Option<&str>) -> Result<(), Error> {
        let call = self.call(Method::POST, &["holds", hold, "hand-over"]);
        call.maybe("to", to).done().await
    }

    /// Extends a hold by its time to live.
    pub(crate) async fn extend_hold(&self, hold: &str) -> Result<HoldInfo, Error> {
        self.call(Method::PUT, &["holds", hold]).value().await
    }
}
