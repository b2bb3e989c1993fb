//! Locks and the like, kept by a connection.

use core::time::Duration;

use hyper::Method;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::agent::parse;
use crate::events::Stream;
use crate::{Agent, Error, HoldInfo, Token};

/// The shortest wait for the answer to a release.
const RELEASE: Duration = Duration::from_secs(10);

/// A lock, a permit, a place in an election or the like, until it is dropped or ends.
///
/// It lapses when it may have ended: another program may hold it now. A hold that has lapsed may be
/// [held](Self::is_held) again; an ended hold is never.
#[derive(Debug)]
pub struct Hold {
    agent: Agent,
    info: HoldInfo,
    state: watch::Receiver<State>,
    /// The task that reads the events: aborted on drop, and then the connection is closed.
    _follows: JoinSet<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held,
    /// It may have ended.
    Lapsed,
    Ended,
}

impl Hold {
    /// The shortest silence of an agent after which a hold ends: an agent sends a byte at least each 5 s.
    pub const SILENCE: Duration = Duration::from_secs(10);

    /// Awaits the event that it is held, and follows its state from then on.
    pub(crate) async fn begin(agent: Agent, mut stream: Stream) -> Result<Self, Error> {
        let event = stream.next().await?;
        if event.name != "held" {
            let text = format!("a hold that begins with {:?}", event.name);
            return Err(Error::Misbehaviour(text));
        }
        let info: HoldInfo = parse(&event.data)?;
        let (sender, state) = watch::channel(State::Held);
        let mut follows = JoinSet::new();
        follows.spawn(follow(stream, sender, Duration::from_millis(info.ttl_ms)));
        Ok(Self {
            agent,
            info,
            state,
            _follows: follows,
        })
    }

    /// Releases it, and waits until the mesh has accepted that; for a barrier until all leave, and for at most the
    /// agent's [wait](Agent::with_wait), or 10 s if that is less. After an error, too, the agent releases it, or it ends its time to live later.
    ///
    /// # Errors
    /// [`Kind::NotFound`](crate::Kind::NotFound) when it had ended before; as any call.
    pub async fn release(self) -> Result<(), Error> {
        // The wait of one attempt to get it is no wait for its end.
        let wait = self.agent.wait().max(RELEASE);
        let agent = self.agent.clone().with_wait(wait);
        agent.end_hold(&self.info.hold).await
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

    /// False once it may have ended, as far as this process has received.
    #[must_use]
    pub fn is_held(&self) -> bool {
        *self.state.borrow() == State::Held
    }

    /// Waits until it may have ended.
    pub async fn lapsed(&self) {
        self.until(|state| state != State::Held).await;
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        self.until(|state| state == State::Ended).await;
    }

    async fn until(&self, is_so: impl Fn(State) -> bool) {
        let mut state = self.state.clone();
        // An error: the task has ended, and so has the hold.
        state.wait_for(|state| is_so(*state)).await.ok();
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
}

/// Reports the states of a hold until it has ended.
async fn follow(stream: Stream, state: watch::Sender<State>, ttl: Duration) {
    if read(stream, &state, ttl.max(Hold::SILENCE)).await.is_err() {
        // The connection is closed. An agent that is alive releases the hold now; without one, its session ends
        // after its time to live.
        state.send_replace(State::Lapsed);
        sleep(ttl).await;
    }
    state.send_replace(State::Ended);
}

/// Reads events until the hold has ended, or the agent is silent.
async fn read(
    mut stream: Stream,
    state: &watch::Sender<State>,
    silence: Duration,
) -> Result<(), Error> {
    loop {
        while let Some(event) = stream.ready()? {
            match &*event.name {
                "lapsed" => state.send_replace(State::Lapsed),
                "alive" => state.send_replace(State::Held),
                "ended" => return Ok(()),
                _ => continue,
            };
        }
        match timeout(silence, stream.read()).await {
            Ok(read) => read?,
            Err(_) => return Ok(()),
        }
    }
}
