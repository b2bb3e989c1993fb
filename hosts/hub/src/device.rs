//! The interface between the hub and a device: orders in, reports out, and proof that an order was carried
//! out.

pub mod dummy;
pub mod esphome;
pub mod kasa;
pub mod mqtt;

use core::future::{self, Future};
use core::time::Duration;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::sync::mpsc;
use tokio::time::{self, sleep_until, timeout_at};

/// A device behind its own protocol.
///
/// Each implementation defines the messages that it sends, the proof that a command was carried out, and the
/// time for which an unproven command may still take effect. It sends absolute states, never a toggle.
pub trait Device: Send + 'static {
    /// The time for which a command may still take effect after its outcome was reported as unknown.
    fn lateness(&self) -> Span;

    /// Brings the device into a state, and returns the proven outcome. A command that was sent once and not
    /// answered is not sent again: the first copy may act after the second was acknowledged.
    ///
    /// The caller gives up at `until`, with [`Unknown`](Outcome::Unknown): an implementation that waits
    /// before it sends anything ends before that, with [`Refused`](Outcome::Refused).
    fn set(&mut self, state: &State, until: Instant) -> impl Future<Output = Outcome> + Send;

    /// Asks for the state of the device; `None` if it cannot report it.
    fn ask(&mut self) -> impl Future<Output = Option<State>> + Send;

    /// The state of the device in the check that is made every few seconds; `None` if it does not answer.
    /// Where a question is expensive, a report that the device sent by itself is an answer.
    fn look(&mut self) -> impl Future<Output = Option<State>> + Send {
        self.ask()
    }

    /// The reason why it did not answer the last question, with the remedy, if it is known.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// The next report that the device sends by itself; never ready for a device that sends none. The future
    /// may be dropped at any point.
    fn receive(&mut self) -> impl Future<Output = Received> + Send {
        future::pending()
    }
}

/// A report that a device sent by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is in this state.
    State(State),
    /// It is not available any more.
    Ended,
}

/// An order to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Be in this state.
    Set {
        /// The command's number.
        token: u64,
        /// The state.
        state: State,
        /// The time at which the hub gives up.
        until: Instant,
    },
    /// Report the state, once the command with this number can no longer take effect.
    Ask {
        /// The command's number.
        token: u64,
    },
}

/// A report about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The outcome of a command.
    Outcome {
        /// The command's number.
        token: u64,
        /// Its outcome.
        outcome: Outcome,
    },
    /// The answer to a question for the state.
    Answered {
        /// The command's number.
        token: u64,
        /// The state.
        state: State,
    },
    /// It is in this state.
    Observed(State),
    /// It answers.
    Up,
    /// It does not answer any more.
    Down,
    /// The reason why it does not answer, with the remedy. Sent when the reason changes.
    Trouble(String),
}

/// Settings of the checks on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Care {
    /// The time between two questions for its state.
    pub every: Duration,
    /// The time within which it must answer.
    pub answer: Duration,
    /// The number of unanswered questions after which it counts as down: from 1.
    pub misses: u8,
}

impl Default for Care {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(2),
            answer: Duration::from_secs(1),
            misses: 2,
        }
    }
}

/// The number of reports that a device may send before a waiting order is taken.
const TALK: u32 = 64;

/// Carries out orders one by one and sends reports, until the channel of orders is closed.
///
/// Reports that the device sent before a command are passed on before the outcome of that command.
pub async fn attend<D: Device>(
    mut device: D,
    care: Care,
    mut orders: mpsc::UnboundedReceiver<Order>,
    notify: impl Fn(Report),
) {
    let mut view = View {
        notify,
        misses: 0,
        is_up: None,
        trouble: None,
    };
    let mut next = now();
    let mut heard_before_order = 0;
    loop {
        enum Turn {
            Order(Option<Order>),
            Received(Received),
            Look,
        }
        let turn = tokio::select! {
            biased;
            // Reports that have arrived are passed on before the next order, up to a limit.
            received = device.receive(), if heard_before_order < TALK => Turn::Received(received),
            order = orders.recv() => Turn::Order(order),
            () = sleep_until(next.into()) => Turn::Look,
        };
        heard_before_order = match turn {
            Turn::Received(_) => heard_before_order + 1,
            Turn::Order(_) | Turn::Look => 0,
        };
        match turn {
            Turn::Order(None) => return,
            Turn::Order(Some(Order::Set {
                token,
                state,
                until,
            })) => {
                let outcome = if now() >= until {
                    // The hub has given up: nothing is sent.
                    Outcome::Refused
                } else {
                    let set = timeout_at(until.into(), device.set(&state, until)).await;
                    set.unwrap_or(Outcome::Unknown)
                };
                if outcome != Outcome::Done {
                    // The next check is at once: whether it answers, and its state.
                    next = now();
                }
                (view.notify)(Report::Outcome { token, outcome });
                if outcome != Outcome::Done && device.trouble().is_some() {
                    // It could not be reached before the command was sent.
                    view.on_silence(care.misses, device.trouble());
                }
            }
            Turn::Order(Some(Order::Ask { token })) => {
                let state = timeout_at((now() + care.answer).into(), device.ask()).await;
                match state.ok().flatten() {
                    Some(state) => (view.notify)(Report::Answered { token, state }),
                    None => {
                        let outcome = Outcome::Unknown;
                        (view.notify)(Report::Outcome { token, outcome });
                    }
                }
            }
            Turn::Received(Received::State(state)) => view.on_state(state),
            Turn::Received(Received::Ended) => view.on_gone(),
            Turn::Look => {
                let asked = now();
                let state = timeout_at((asked + care.answer).into(), device.look()).await;
                match state.ok().flatten() {
                    Some(state) => view.on_state(state),
                    None => view.on_silence(care.misses, device.trouble()),
                }
                next = asked + care.every;
            }
        }
    }
}

/// The time on tokio's clock, which stands still in tests.
fn now() -> Instant {
    time::Instant::now().into_std()
}

/// The state of the device as reported to the hub.
struct View<T> {
    notify: T,
    misses: u8,
    is_up: Option<bool>,
    trouble: Option<String>,
}

impl<T: Fn(Report)> View<T> {
    /// Each state is reported, also a repeated one: the hub accepts none while a command may still act.
    fn on_state(&mut self, state: State) {
        self.misses = 0;
        self.trouble = None;
        if self.is_up != Some(true) {
            self.is_up = Some(true);
            (self.notify)(Report::Up);
        }
        (self.notify)(Report::Observed(state));
    }

    fn on_silence(&mut self, misses: u8, trouble: Option<&str>) {
        if let Some(why) = trouble.filter(|it| self.trouble.as_deref() != Some(it)) {
            self.trouble = Some(why.into());
            (self.notify)(Report::Trouble(why.into()));
        }
        self.misses = self.misses.saturating_add(1);
        if self.misses >= misses {
            self.on_gone();
        }
    }

    fn on_gone(&mut self) {
        if self.is_up != Some(false) {
            self.is_up = Some(false);
            (self.notify)(Report::Down);
        }
    }
}

/// The time halfway from now to `until`, but at most half of `most` before `until`.
fn half_way(until: Instant, most: Duration) -> Instant {
    let left = until.saturating_duration_since(now());
    until.checked_sub(left.min(most) / 2).unwrap_or(until)
}

/// The position of a relay in this state; `None` if the state is neither on nor off.
pub(crate) fn relay(state: &State) -> Option<bool> {
    match state {
        State::Word(word) if word == "on" => Some(true),
        State::Word(word) if word == "off" => Some(false),
        State::Word(_) | State::Number(_) => None,
    }
}

fn shown(is_on: bool) -> State {
    if is_on { "on" } else { "off" }.into()
}
