//! The task of a hold.

use core::time::Duration;

use selvedge_udp::selvedge::core::Time;
use selvedge_udp::selvedge::groups::store::SessionId;
use selvedge_udp::{Clock, Error, Session, Span};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until};

use crate::held::{HandOver, Held, Rest};
use crate::hold::{Standing, View};

/// The interval at which a hold that has lapsed is looked at.
pub(crate) const LOOKS: Duration = Duration::from_millis(100);

/// The answer to a request to release.
pub(crate) type Released = oneshot::Sender<Result<(), Error>>;
/// The candidate to hand over to, the first one for `None`, and the answer.
pub(crate) type HandsOver = (Option<SessionId>, oneshot::Sender<Result<HandOver, Error>>);

pub(crate) enum Order {
    Show(oneshot::Sender<View>),
    Extend(oneshot::Sender<View>),
    Release(Released),
    /// Hand a leadership over, as its own program asks: it acts as the leader no longer.
    HandOver(HandsOver),
    /// Hand a leadership over, as another program asks: the leader's one learns of it first.
    Yield(HandsOver),
    /// The agent leaves.
    End,
}

/// The reason why a hold is kept no longer, or not for now.
enum End {
    Over(Reason),
    Release(Released),
    HandOver(HandsOver),
    /// It is certain no longer, as it is to be handed over or the agent leaves.
    Uncertain,
}

/// The reason why a hold is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Released,
    Expired,
    Disconnected,
    SessionOver,
    HandedOver,
    /// It was to be handed over, and the outcome is not known: the candidate leads, or no one.
    HandOverFailed,
    AgentLeaves,
}

impl Reason {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Disconnected => "disconnected",
            Self::SessionOver => "session_over",
            Self::HandedOver => "handed_over",
            Self::HandOverFailed => "hand_over_failed",
            Self::AgentLeaves => "agent_leaves",
        }
    }
}

/// The end of a hold: what is held still, the client that waits for its release, and the reason.
pub(crate) type Ended = (Option<Held>, Option<Released>, Reason);

/// The task of a hold.
pub(crate) struct Keeper {
    pub(crate) clock: Clock,
    pub(crate) view: View,
    pub(crate) ttl: Duration,
    pub(crate) deadline: Instant,
    /// It ends at that time, unless a request extends it.
    pub(crate) by_requests: bool,
    /// It ends when the other end of this channel is dropped.
    pub(crate) closed: Option<oneshot::Receiver<()>>,
    pub(crate) standing: watch::Sender<Standing>,
    /// It is held until this time at most, and no client counts on it any more.
    pub(crate) ends: Option<Time>,
    /// The agent leaves.
    pub(crate) leaves: bool,
    /// It is handed over then.
    pub(crate) yields: Option<HandsOver>,
}

impl Keeper {
    /// Keeps it until it ends.
    pub(crate) async fn keep_to_its_end(
        &mut self,
        mut held: Held,
        inbox: &mut mpsc::Receiver<Order>,
    ) -> Ended {
        loop {
            let end = self.keep(held.session(), inbox).await;
            let (hands_over, then) = match (end, self.yields.take()) {
                (End::HandOver(it), former) => {
                    overtake(former);
                    // The candidate may lead from now on.
                    self.standing.send_replace(Standing::Lapsed);
                    (it, None)
                }
                (End::Uncertain, Some(it)) if !self.leaves => (it, None),
                (End::Uncertain, Some(it)) => (it, Some((None, Reason::AgentLeaves))),
                (End::Uncertain, None) => return (Some(held), None, Reason::AgentLeaves),
                // Its program acts as the leader no longer.
                (End::Over(why), Some(it)) => (it, Some((None, why))),
                (End::Release(reply), Some(it)) => (it, Some((Some(reply), Reason::Released))),
                (End::Over(why), None) => return (Some(held), None, why),
                (End::Release(reply), None) => return (Some(held), Some(reply), Reason::Released),
            };
            let (to, reply) = hands_over;
            match (held.hand_over(to, reply).await, then) {
                (Rest::Over(outcome), then) => {
                    let why = match outcome {
                        Ok(()) => Reason::HandedOver,
                        Err(_) => Reason::HandOverFailed,
                    };
                    if let Some(reply) = then.and_then(|it| it.0) {
                        reply.send(outcome).ok();
                    }
                    return (None, None, why);
                }
                // There is no such candidate any more, and no one counts on this hold.
                (Rest::Kept(rest), Some((reply, why))) => return (Some(rest), reply, why),
                // It leads on.
                (Rest::Kept(rest), None) => {
                    held = rest;
                    self.ends = self.ends.filter(|_| self.leaves);
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
            let gives_up = async {
                match &mut self.yields {
                    Some((_, reply)) => reply.closed().await,
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
                    Some(Order::HandOver(it)) => return End::HandOver(it),
                    Some(Order::Yield(it)) => {
                        overtake(self.yields.replace(it));
                        self.lapse(session);
                    }
                    Some(Order::End) => {
                        self.leaves = true;
                        self.lapse(session);
                    }
                    None => return End::Over(Reason::AgentLeaves),
                },
                () = session.lapsed(), if is_held => {
                    self.standing.send_replace(Standing::Lapsed);
                }
                () = sleep(LOOKS), if may_revive => {
                    if session.is_alive() {
                        self.standing.send_replace(Standing::Held);
                    }
                }
                _ended = session.ended() => return End::Over(Reason::SessionOver),
                () = sleep_until(self.deadline), if self.by_requests => {
                    return End::Over(Reason::Expired);
                }
                () = closes => return End::Over(Reason::Disconnected),
                () = gives_up => {
                    self.yields = None;
                    self.ends = self.ends.filter(|_| self.leaves);
                }
                () = end, if left.is_some() => return End::Uncertain,
            }
        }
    }

    /// Has it lapse. It ends, or is handed over, when it is certain no longer.
    fn lapse(&mut self, session: &Session) {
        self.ends.get_or_insert(session.until());
        self.standing.send_replace(Standing::Lapsed);
    }

    pub(crate) fn refresh(&mut self, session: &Session) {
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

/// Answers a request whose place a later one takes.
fn overtake(former: Option<HandsOver>) {
    if let Some((_, reply)) = former {
        // The client may have gone.
        reply.send(Ok(HandOver::Overtaken)).ok();
    }
}

/// The time after this one.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
pub(crate) fn later(ttl: Duration) -> Instant {
    Instant::now() + ttl
}
