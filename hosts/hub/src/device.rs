//! What stands between the hub and a device: orders in, reports out, and what counts as proof.

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

/// A device, as its own protocol has it.
///
/// Each says for itself what is sent, what proves that it was done, and how long it may still act when
/// nothing proves it. What is sent is an absolute state, and never a toggle.
pub trait Device: Send + 'static {
    /// For how long a command may still act after its outcome came back unknown.
    fn lateness(&self) -> Span;

    /// Brings the device into a state, and says what is proven. What was sent once and not answered is not
    /// sent again: the first copy may act after the second one was acknowledged.
    ///
    /// Given up at `until`, as [`Unknown`](Outcome::Unknown): an implementation that waits before it sends
    /// anything ends before that, with [`Refused`](Outcome::Refused).
    fn set(&mut self, state: &State, until: Instant) -> impl Future<Output = Outcome> + Send;

    /// The state that the device is in; `None` if it cannot say.
    fn ask(&mut self) -> impl Future<Output = Option<State>> + Send;

    /// The state that the device is in, as it is looked at each few seconds; `None` if it does not answer. Where
    /// a question is dear, what it said by itself is an answer.
    fn look(&mut self) -> impl Future<Output = Option<State>> + Send {
        self.ask()
    }

    /// Why it did not answer when it was last asked, with the mend, if that is known.
    fn trouble(&self) -> Option<&str> {
        None
    }

    /// The next thing that the device says by itself; for a device that says nothing by itself it does not
    /// end. It may be dropped at any point.
    fn hear(&mut self) -> impl Future<Output = Heard> + Send {
        future::pending()
    }
}

/// What a device said by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It is in this state.
    State(State),
    /// It is gone.
    Gone,
}

/// What a device is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Be in this state.
    Set {
        /// The command's number.
        token: u64,
        /// Which state.
        state: State,
        /// When the hub gives up.
        until: Instant,
    },
    /// Say in which state it is, once the command with this number can no longer take effect.
    Ask {
        /// The command's number.
        token: u64,
    },
}

/// What is told of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// What became of a command.
    Outcome {
        /// The command's number.
        token: u64,
        /// What became of it.
        outcome: Outcome,
    },
    /// The state that was asked for.
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
    /// This is why it does not answer, with the mend. Told where it is another reason than before.
    Trouble(String),
}

/// How a device is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Care {
    /// How often it is asked for its state.
    pub every: Duration,
    /// How long it may take for an answer.
    pub answer: Duration,
    /// After how many questions without an answer it counts as down: from 1.
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

/// How much a device may say before it is told something.
const TALK: u32 = 64;

/// Carries out orders one by one, and tells what the device says, until there are no more orders to come.
///
/// What the device said before it did a command is told before the outcome of that command.
pub async fn attend<D: Device>(
    mut device: D,
    care: Care,
    mut orders: mpsc::UnboundedReceiver<Order>,
    tell: impl Fn(Report),
) {
    let mut view = View {
        tell,
        misses: 0,
        is_up: None,
        trouble: None,
    };
    let mut next = now();
    let mut heard_before_order = 0;
    loop {
        enum Turn {
            Order(Option<Order>),
            Heard(Heard),
            Look,
        }
        let turn = tokio::select! {
            biased;
            // What it has said by now comes before what it is told next, unless it does not stop.
            heard = device.hear(), if heard_before_order < TALK => Turn::Heard(heard),
            order = orders.recv() => Turn::Order(order),
            () = sleep_until(next.into()) => Turn::Look,
        };
        heard_before_order = match turn {
            Turn::Heard(_) => heard_before_order + 1,
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
                    // The hub has given it up: nothing is sent.
                    Outcome::Refused
                } else {
                    let set = timeout_at(until.into(), device.set(&state, until)).await;
                    set.unwrap_or(Outcome::Unknown)
                };
                if outcome != Outcome::Done {
                    // Whether it answers at all is known soon, and in which state it is.
                    next = now();
                }
                (view.tell)(Report::Outcome { token, outcome });
                if outcome != Outcome::Done && device.trouble().is_some() {
                    // It was asked in vain, while it was to be told something.
                    view.on_silence(care.misses, device.trouble());
                }
            }
            Turn::Order(Some(Order::Ask { token })) => {
                let state = timeout_at((now() + care.answer).into(), device.ask()).await;
                match state.ok().flatten() {
                    Some(state) => (view.tell)(Report::Answered { token, state }),
                    None => {
                        let outcome = Outcome::Unknown;
                        (view.tell)(Report::Outcome { token, outcome });
                    }
                }
            }
            Turn::Heard(Heard::State(state)) => view.on_state(state),
            Turn::Heard(Heard::Gone) => view.on_gone(),
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

/// On the clock that tokio waits by, which stands still in tests.
fn now() -> Instant {
    time::Instant::now().into_std()
}

/// What the hub was told of the device.
struct View<T> {
    tell: T,
    misses: u8,
    is_up: Option<bool>,
    trouble: Option<String>,
}

impl<T: Fn(Report)> View<T> {
    /// Each state is told, also one that was told before: while a command may still act, the hub takes none.
    fn on_state(&mut self, state: State) {
        self.misses = 0;
        self.trouble = None;
        if self.is_up != Some(true) {
            self.is_up = Some(true);
            (self.tell)(Report::Up);
        }
        (self.tell)(Report::Observed(state));
    }

    fn on_silence(&mut self, misses: u8, trouble: Option<&str>) {
        if let Some(why) = trouble.filter(|it| self.trouble.as_deref() != Some(it)) {
            self.trouble = Some(why.into());
            (self.tell)(Report::Trouble(why.into()));
        }
        self.misses = self.misses.saturating_add(1);
        if self.misses >= misses {
            self.on_gone();
        }
    }

    fn on_gone(&mut self) {
        if self.is_up != Some(false) {
            self.is_up = Some(false);
            (self.tell)(Report::Down);
        }
    }
}

/// Half-way from now until then, and at most half of so long before.
fn half_way(until: Instant, most: Duration) -> Instant {
    let left = until.saturating_duration_since(now());
    until.checked_sub(left.min(most) / 2).unwrap_or(until)
}

/// What a state is for a relay.
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
