//! Holds: parts of the mesh that clients hold, each with a life of its own.
//!
//! A task for each hold owns it, and ends it when the client releases it, sends no request for its time to
//! live, or closes the connection to which it belongs; and when its session in the mesh has ended.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_udp::selvedge::groups::store::SessionId;
use selvedge_udp::{Clock, Error};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

use crate::audit::{self, Audit, Caller, Event, Names};
use crate::held::{HandOver, Held, TokenView};
use crate::keeper::{Keeper, LOOKS, Order, Reason, later};

/// The most holds of an agent.
pub(crate) const HOLDS_MAX: usize = 1_024;

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

/// The holds of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Holds {
    clock: Clock,
    audit: Audit,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    holds: BTreeMap<u64, Place>,
    /// The agent leaves: no client gets another hold.
    is_closed: bool,
}

/// The task of a hold, and what it holds.
#[derive(Clone, Debug)]
struct Place {
    orders: mpsc::Sender<Order>,
    kind: &'static str,
    name: String,
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
    pub(crate) fn new(clock: Clock, audit: Audit) -> Self {
        Self {
            clock,
            audit,
            table: Arc::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of holds.
    pub(crate) fn count(&self) -> usize {
        self.table().holds.len()
    }

    /// Keeps this for a client, and returns its view and its standing from now on.
    pub(crate) fn keep(
        &self,
        held: Held,
        name: &str,
        ttl: Duration,
        (caller, life): (Caller, Life),
    ) -> Result<(View, watch::Receiver<Standing>), NoHold> {
        let id = getrandom::u64().map_err(|_| NoHold::NoChance)?;
        let (orders, mut inbox) = mpsc::channel(8);
        {
            let mut table = self.table();
            if table.is_closed {
                return Err(NoHold::Leaving);
            }
            if table.holds.len() >= HOLDS_MAX || table.holds.contains_key(&id) {
                return Err(NoHold::Full);
            }
            let place = Place {
                orders,
                kind: held.kind(),
                name: name.to_owned(),
            };
            table.holds.insert(id, place);
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
            leaves: false,
            yields: None,
        };
        keeper.refresh(held.session());
        let view = keeper.view.clone();
        let holds = self.clone();
        tokio::spawn(async move {
            let (held, asked, why) = keeper.keep_to_its_end(held, &mut inbox).await;
            let place = holds.table().holds.get(&id).cloned();
            if let Some(place) = place {
                holds.audit.note(&caller, place.end(&place.names(), why));
            }
            // No client counts on it any more, and further requests find none.
            holds.table().holds.remove(&id);
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
            table.holds.values().map(|it| it.orders.clone()).collect()
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
        self.order(name, Order::HandOver((to, reply))).await?;
        answer.await.ok()
    }

    /// Hands the leadership of an election over, for a program that is not the leader: the leader's one learns first
    /// that it lapses, and the candidate leads when that program lets go or is certain no longer. `None` when no program
    /// leads through this agent.
    pub(crate) async fn depose(
        &self,
        election: &str,
        to: Option<SessionId>,
    ) -> Option<Result<HandOver, Error>> {
        let leads = |it: &&Place| it.kind == Held::ELECTION && it.name == election;
        let leads: Vec<_> = self.table().holds.values().filter(leads).cloned().collect();
        let mut outcome = None;
        // A former leader may not know yet that it leads no longer.
        for place in leads {
            let (reply, answer) = oneshot::channel();
            if place.orders.send(Order::Yield((to, reply))).await.is_err() {
                continue;
            }
            outcome = answer.await.ok().or(outcome);
            if matches!(outcome, Some(Ok(HandOver::Done))) {
                break;
            }
        }
        outcome
    }

    /// The kind and the name of what a hold holds, for the audit.
    pub(crate) fn names(&self, name: &str) -> Option<Names> {
        Some(self.table().holds.get(&id_of(name)?)?.names())
    }

    async fn order(&self, name: &str, order: Order) -> Option<()> {
        let orders = self.table().holds.get(&id_of(name)?)?.orders.clone();
        orders.send(order).await.ok()
    }
}

impl Place {
    fn names(&self) -> Names {
        Names::from_iter([
            ("kind".to_owned(), self.kind.into()),
            ("name".to_owned(), audit::name(&self.name)),
        ])
    }

    const fn end<'a>(&self, on: &'a Names, why: Reason) -> Event<'a> {
        Event {
            call: "end",
            on,
            status: None,
            outcome: why.text(),
        }
    }
}

fn id_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok()
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
