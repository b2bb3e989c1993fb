//! Holds: parts of the mesh that clients hold, each with a life of its own.
//!
//! A task for each hold owns it, and ends it when the client releases it, sends no request for its time to
//! live, or closes the connection to which it belongs; and when its session in the mesh has ended.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_udp::recipes::barrier::Inside;
use selvedge_udp::recipes::election::Leadership;
use selvedge_udp::recipes::lock::{Guard, Token};
use selvedge_udp::recipes::registry::Registration;
use selvedge_udp::recipes::semaphore::Permit;
use selvedge_udp::selvedge::core::Time;
use selvedge_udp::{Clock, Error, Session, Span};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

/// The most holds of an agent.
pub(crate) const HOLDS_MAX: usize = 1_024;
/// The interval at which a hold that has lapsed is looked at.
const LOOKS: Duration = Duration::from_millis(100);

/// A part of the mesh that a client holds.
#[derive(Debug)]
pub(crate) enum Held {
    Lock(Guard),
    Semaphore(Permit),
    Election(Leadership),
    Service(Registration),
    Barrier(Inside<'static>),
    Session(Session),
}

/// A hold, as clients see it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct View {
    /// Its secret name.
    pub(crate) hold: String,
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) token: Option<TokenView>,
    pub(crate) session: String,
    pub(crate) ttl_ms: u64,
    /// True if it is certainly held now.
    pub(crate) is_held: bool,
    /// The time for which it is certainly held.
    pub(crate) alive_for_ms: u64,
}

/// A fencing token: later holders have greater versions, of one map.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TokenView {
    pub(crate) map: String,
    pub(crate) version: u64,
}

/// The end of a hold without a request: by time, or with its connection.
#[derive(Debug)]
pub(crate) enum Life {
    /// It ends when no request extends it for its time to live.
    Requests,
    /// It ends when the other end of this channel is dropped.
    Connection(oneshot::Receiver<()>),
}

/// The standing of a hold, for the connection to which it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is held.
    Held,
    /// It may have ended.
    Lapsed,
    /// It has ended.
    Ended,
}

enum Order {
    Show(oneshot::Sender<View>),
    Extend(oneshot::Sender<View>),
    Release(oneshot::Sender<Result<(), Error>>),
    /// The agent leaves.
    End,
}

/// The holds of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Holds {
    clock: Clock,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    orders: BTreeMap<u64, mpsc::Sender<Order>>,
    /// The agent leaves: no client gets another hold.
    is_closed: bool,
}

/// No room, or no random numbers.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum NoHold {
    #[error("{HOLDS_MAX} are held by this agent, the limit: release some")]
    Full,
    #[error("the agent leaves the mesh: ask another one")]
    Leaving,
    #[error("the system gives no random numbers: see whether /dev/urandom is there")]
    NoChance,
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
    const fn session(&self) -> &Session {
        match self {
            Self::Lock(it) => it.session(),
            Self::Semaphore(it) => it.session(),
            Self::Election(it) => it.session(),
            Self::Service(it) => it.session(),
            Self::Barrier(it) => it.session(),
            Self::Session(it) => it,
        }
    }

    const fn kind(&self) -> &'static str {
        match self {
            Self::Lock(_) => "lock",
            Self::Semaphore(_) => "semaphore",
            Self::Election(_) => "election",
            Self::Service(_) => "service",
            Self::Barrier(_) => "barrier",
            Self::Session(_) => "session",
        }
    }

    fn token(&self) -> Option<Token> {
        match self {
            Self::Lock(it) => Some(it.token()),
            Self::Election(it) => Some(it.token()),
            Self::Semaphore(_) | Self::Service(_) | Self::Barrier(_) | Self::Session(_) => None,
        }
    }

    async fn release(self) -> Result<(), Error> {
        match self {
            Self::Lock(it) => it.release().await,
            Self::Semaphore(it) => it.release().await,
            Self::Election(it) => it.resign().await,
            Self::Service(it) => it.end().await,
            Self::Barrier(it) => it.leave().await,
            Self::Session(it) => it.end().await,
        }
    }
}

impl Holds {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            table: Arc::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of holds.
    pub(crate) fn count(&self) -> usize {
        self.table().orders.len()
    }

    /// Keeps this for a client, and returns its view and its standing from now on.
    pub(crate) fn keep(
        &self,
        held: Held,
        name: &str,
        ttl: Duration,
        life: Life,
    ) -> Result<(View, watch::Receiver<Standing>), NoHold> {
        let id = getrandom::u64().map_err(|_| NoHold::NoChance)?;
        let (orders, mut inbox) = mpsc::channel(8);
        {
            let mut table = self.table();
            if table.is_closed {
                return Err(NoHold::Leaving);
            }
            if table.orders.len() >= HOLDS_MAX || table.orders.contains_key(&id) {
                return Err(NoHold::Full);
            }
            table.orders.insert(id, orders);
        }
        let (standing, seen) = watch::channel(Standing::Held);
        let mut keeper = Keeper {
            clock: self.clock,
            view: view(id, &held, name, ttl),
            held,
            ttl,
            deadline: later(ttl),
            by_requests: matches!(life, Life::Requests),
            standing,
            ends: None,
        };
        keeper.refresh();
        let view = keeper.view.clone();
        let holds = self.clone();
        tokio::spawn(async move {
            let asked = keeper.keep(&mut inbox, life).await;
            // No client counts on it any more, and further requests find none.
            holds.table().orders.remove(&id);
            drop(inbox);
            let Keeper { held, standing, .. } = keeper;
            standing.send_replace(Standing::Ended);
            match asked {
                Some(mut reply) => tokio::select! {
                    released = held.release() => drop(reply.send(released)),
                    // The client waits no longer. The release has begun, and a drop ends the rest.
                    () = reply.closed() => {}
                },
                // A drop ends the session, without an answer.
                None => drop(held),
            }
        });
        Ok((view, seen))
    }

    /// Has all holds lapse, and ends each when it is released, or when it is certain no longer.
    pub(crate) async fn end(&self) {
        let all: Vec<_> = {
            let mut table = self.table();
            table.is_closed = true;
            table.orders.values().cloned().collect()
        };
        for orders in all {
            // It ends by itself.
            orders.send(Order::End).await.ok();
        }
        while self.count() > 0 {
            sleep(LOOKS).await;
        }
    }

    /// Shows a hold; `None` when there is none of this name.
    pub(crate) async fn show(&self, name: &str) -> Option<View> {
        let (reply, answer) = oneshot::channel();
        self.order(name, Order::Show(reply)).await?;
        answer.await.ok()
    }

    /// Extends a hold by its time to live; `None` when there is none of this name.
    pub(crate) async fn extend(&self, name: &str) -> Option<View> {
        let (reply, answer) = oneshot::channel();
        self.order(name, Order::Extend(reply)).await?;
        answer.await.ok()
    }

    /// Releases a hold; `None` when there is none of this name.
    pub(crate) async fn release(&self, name: &str) -> Option<Result<(), Error>> {
        let (reply, answer) = oneshot::channel();
        self.order(name, Order::Release(reply)).await?;
        answer.await.ok()
    }

    async fn order(&self, name: &str, order: Order) -> Option<()> {
        let id = u64::from_str_radix(name, 16).ok()?;
        let orders = self.table().orders.get(&id)?.clone();
        orders.send(order).await.ok()
    }
}

/// The task of a hold.
struct Keeper {
    clock: Clock,
    view: View,
    held: Held,
    ttl: Duration,
    deadline: Instant,
    /// It ends at that time, unless a request extends it.
    by_requests: bool,
    standing: watch::Sender<Standing>,
    /// The agent leaves: it is held until this time at most, and no client counts on it any more.
    ends: Option<Time>,
}

impl Keeper {
    /// Keeps it until it ends. Returns the client that waits for its release.
    async fn keep(
        &mut self,
        inbox: &mut mpsc::Receiver<Order>,
        life: Life,
    ) -> Option<oneshot::Sender<Result<(), Error>>> {
        let mut closed = match life {
            Life::Requests => None,
            Life::Connection(closed) => Some(closed),
        };
        loop {
            let session = self.held.session();
            let is_held = *self.standing.borrow() == Standing::Held;
            let may_revive = !is_held && self.ends.is_none();
            let closes = async {
                match &mut closed {
                    // It is never sent: the other end is dropped.
                    Some(closed) => drop(closed.await),
                    None => core::future::pending().await,
                }
            };
            let left = self.ends.map(|it| it.since(self.clock.now()));
            let end = sleep(left.map_or(Duration::MAX, Duration::from));
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Show(reply)) => {
                        self.refresh();
                        // The client may have gone.
                        reply.send(self.view.clone()).ok();
                    }
                    Some(Order::Extend(reply)) => {
                        self.deadline = later(self.ttl);
                        self.refresh();
                        reply.send(self.view.clone()).ok();
                    }
                    Some(Order::Release(reply)) => return Some(reply),
                    Some(Order::End) => {
                        self.ends = Some(session.until());
                        self.standing.send_replace(Standing::Lapsed);
                    }
                    None => return None,
                },
                () = session.lapsed(), if is_held => {
                    self.standing.send_replace(Standing::Lapsed);
                }
                () = sleep(LOOKS), if may_revive => {
                    if session.is_alive() {
                        self.standing.send_replace(Standing::Held);
                    }
                }
                _ended = session.ended() => return None,
                () = sleep_until(self.deadline), if self.by_requests => return None,
                () = closes => return None,
                () = end, if left.is_some() => return None,
            }
        }
    }

    fn refresh(&mut self) {
        let session = self.held.session();
        let mut left = session.until().since(self.clock.now());
        if self.by_requests {
            // It ends earlier, unless a request extends it.
            left = left.min(Span::from(
                self.deadline
                    .saturating_duration_since(later(Duration::ZERO)),
            ));
        }
        self.view.is_held = session.is_alive() && self.ends.is_none();
        self.view.alive_for_ms = if self.view.is_held { left.0 / 1_000 } else { 0 };
    }
}

fn view(id: u64, held: &Held, name: &str, ttl: Duration) -> View {
    View {
        hold: format!("{id:016x}"),
        kind: held.kind(),
        name: name.to_owned(),
        token: held.token().map(TokenView::from),
        session: held.session().id().to_string(),
        ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
        is_held: false,
        alive_for_ms: 0,
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn later(ttl: Duration) -> Instant {
    Instant::now() + ttl
}
