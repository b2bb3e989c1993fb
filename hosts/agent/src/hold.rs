//! Holds: parts of the mesh that clients hold, each with a life of its own.
//!
//! A task for each hold owns it, and ends it when the client releases it, sends no request for its time to
//! live, or closes the connection to which it belongs; and when its session in the mesh has ended.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_udp::selvedge::core::Time;
use selvedge_udp::selvedge::groups::store::SessionId;
use selvedge_udp::{Clock, Error, Session, Span};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::held::{HandOver, Held, TokenView};

/// The most holds of an agent.
pub(crate) const HOLDS_MAX: usize = 1_024;
/// The interval at which a hold that has lapsed is looked at.
const LOOKS: Duration = Duration::from_millis(100);

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
    /// Hand a leadership over, to the candidate with this session.
    HandOver(Option<SessionId>, oneshot::Sender<Result<HandOver, Error>>),
    /// The agent leaves.
    End,
}

/// The reason why a hold is kept no longer, or not for now.
enum End {
    /// It is over.
    Over,
    Release(oneshot::Sender<Result<(), Error>>),
    HandOver(Option<SessionId>, oneshot::Sender<Result<HandOver, Error>>),
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
            ttl,
            deadline: later(ttl),
            by_requests: matches!(life, Life::Requests),
            closed: match life {
                Life::Requests => None,
                Life::Connection(closed) => Some(closed),
            },
            standing,
            ends: None,
        };
        keeper.refresh(held.session());
        let view = keeper.view.clone();
        let holds = self.clone();
        tokio::spawn(async move {
            let (held, asked) = keeper.keep_to_its_end(held, &mut inbox).await;
            // No client counts on it any more, and further requests find none.
            holds.table().orders.remove(&id);
            drop(inbox);
            keeper.standing.send_replace(Standing::Ended);
            // Without a client that waits, a drop ends the session, without an answer.
            if let Some((held, mut reply)) = held.zip(asked) {
                tokio::select! {
                    released = held.release() => drop(reply.send(released)),
                    // The client waits no longer. The release has begun, and a drop ends the rest.
                    () = reply.closed() => {}
                }
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

    /// Hands a leadership over; `None` when there is no hold of this name.
    pub(crate) async fn hand_over(
        &self,
        name: &str,
        to: Option<SessionId>,
    ) -> Option<Result<HandOver, Error>> {
        let (reply, answer) = oneshot::channel();
        self.order(name, Order::HandOver(to, reply)).await?;
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
    ttl: Duration,
    deadline: Instant,
    /// It ends at that time, unless a request extends it.
    by_requests: bool,
    /// It ends when the other end of this channel is dropped.
    closed: Option<oneshot::Receiver<()>>,
    standing: watch::Sender<Standing>,
    /// The agent leaves: it is held until this time at most, and no client counts on it any more.
    ends: Option<Time>,
}

impl Keeper {
    /// Keeps it until it ends. Returns what is held then, and the client that waits for its release.
    async fn keep_to_its_end(
        &mut self,
        mut held: Held,
        inbox: &mut mpsc::Receiver<Order>,
    ) -> (Option<Held>, Option<oneshot::Sender<Result<(), Error>>>) {
        loop {
            match self.keep(held.session(), inbox).await {
                End::Over => return (Some(held), None),
                End::Release(reply) => return (Some(held), Some(reply)),
                End::HandOver(to, reply) => {
                    // The candidate may lead from now on.
                    self.standing.send_replace(Standing::Lapsed);
                    match held.hand_over(to, reply).await {
                        Some(rest) => held = rest,
                        None => return (None, None),
                    }
                }
            }
        }
    }

    /// Keeps it until it ends, or a client asks for more than a look.
    async fn keep(&mut self, session: &Session, inbox: &mut mpsc::Receiver<Order>) -> End {
        loop {
            let is_held = *self.standing.borrow() == Standing::Held;
            let may_revive = !is_held && self.ends.is_none();
            let closes = async {
                match &mut self.closed {
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
                        self.refresh(session);
                        // The client may have gone.
                        reply.send(self.view.clone()).ok();
                    }
                    Some(Order::Extend(reply)) => {
                        self.deadline = later(self.ttl);
                        self.refresh(session);
                        reply.send(self.view.clone()).ok();
                    }
                    Some(Order::Release(reply)) => return End::Release(reply),
                    Some(Order::HandOver(to, reply)) => return End::HandOver(to, reply),
                    Some(Order::End) => {
                        self.ends = Some(session.until());
                        self.standing.send_replace(Standing::Lapsed);
                    }
                    None => return End::Over,
                },
                () = session.lapsed(), if is_held => {
                    self.standing.send_replace(Standing::Lapsed);
                }
                () = sleep(LOOKS), if may_revive => {
                    if session.is_alive() {
                        self.standing.send_replace(Standing::Held);
                    }
                }
                _ended = session.ended() => return End::Over,
                () = sleep_until(self.deadline), if self.by_requests => return End::Over,
                () = closes => return End::Over,
                () = end, if left.is_some() => return End::Over,
            }
        }
    }

    fn refresh(&mut self, session: &Session) {
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
