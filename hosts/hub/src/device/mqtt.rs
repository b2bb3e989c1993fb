//! Devices that hear and say their states at topics of MQTT.
//!
//! A command is published once, at quality of service 0, and not retained: a broker keeps nothing of it for a
//! device that is away, which would carry it out when it comes back. Proof that it was done is that the device
//! says the state afterwards; what a broker retained proves nothing.

mod conventions;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_mqtt::link::{Link, Unsaid};
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

pub use self::conventions::{Availability, Conventions, Payload, Question};
use super::{Device, Heard, half_way};

// A report of the wanted state that was under way before a command was sent is taken as that command's proof.
// That is harmless: the command asks for the same state, and one broker delivers commands in order, so it cannot
// overtake a later one.

/// How long to wait before a device that does not answer is asked again.
const RETRY: Duration = Duration::from_millis(500);
/// How long to wait before a command that found no room is tried again.
const FULL: Duration = Duration::from_millis(20);
/// How much of the time before the hub gives up is left for saying so.
const MARGIN: Duration = Duration::from_millis(400);
/// How long a command may still act that was published and not answered: a guess, which a file may overrule. A
/// broker keeps what it could not hand on until it notices that a device is gone.
const LATENESS: Span = Span::secs(10);

/// What is known of a device from what was published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// Whether the broker is there. What follows was said since.
    is_up: bool,
    /// Whether the device is there, if that was said.
    is_there: Option<bool>,
    /// The state that was said last.
    state: Option<State>,
    /// Whether the device said a state, which a broker did not retain.
    is_fresh: bool,
    /// How often it did, ever.
    said: u64,
}

impl Known {
    /// Whether something can be said to the device.
    fn is_here(&self) -> bool {
        self.is_up && self.is_there != Some(false)
    }
}

/// Where what is published about a device is heard.
#[derive(Clone, Debug)]
pub struct Ear {
    how: Arc<Conventions>,
    known: watch::Sender<Known>,
}

impl Ear {
    /// The topics at which it hears.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.how.hears()
    }

    /// The broker is there, or is not. What was known before is not known any more.
    pub fn on_link(&self, is_up: bool) {
        self.known.send_modify(|it| {
            *it = Known {
                is_up,
                said: it.said,
                ..Known::default()
            };
        });
    }

    /// Something was published. Returns whether it is understood.
    pub fn on_published(&self, topic: &str, payload: &[u8], is_retained: bool) -> bool {
        let mut is_understood = false;
        if topic == self.how.state
            && let Some(state) = self.how.state_in(payload)
        {
            is_understood = true;
            self.known.send_modify(|it| {
                it.state = Some(state);
                it.is_fresh |= !is_retained;
                it.said += u64::from(!is_retained);
            });
        }
        let availability = self.how.availability.as_ref().map(|it| &it.topic);
        if availability.is_some_and(|it| it == topic)
            && let Some(is_there) = self.how.is_there(payload)
        {
            is_understood = true;
            self.known.send_modify(|it| {
                if !is_there {
                    // It may come back as something else.
                    (it.state, it.is_fresh) = (None, false);
                }
                it.is_there = Some(is_there);
            });
        }
        is_understood
    }
}

/// A device that hears and says its state at topics.
#[derive(Debug)]
pub struct Mqtt {
    how: Arc<Conventions>,
    link: Arc<Link>,
    known: watch::Receiver<Known>,
    /// What it had said when it was told something that it did not answer: only what it says since counts.
    doubt: Option<u64>,
    /// What was told of it last: how much it had said, and whether it was gone.
    told: (u64, bool),
}

impl Mqtt {
    /// The state that it is in, as far as that is known without a question.
    fn state(&self) -> Option<State> {
        let known = self.known.borrow();
        // What a broker retained counts where the device is there, and nothing else is in doubt.
        let is_said = known.is_fresh || known.is_there == Some(true);
        let is_sure = is_said && self.doubt.is_none_or(|said| known.said > said);
        known.state.clone().filter(|_| known.is_here() && is_sure)
    }

    /// The next state that it says after so many.
    async fn next(&mut self, said: u64) -> Option<State> {
        let known = self
            .known
            .wait_for(|it| it.said > said && it.state.is_some());
        known.await.ok()?.state.clone()
    }

    /// Asks; returns whether that was possible.
    fn question(&self) -> bool {
        let is_here = self.known.borrow().is_here();
        let question = self.how.question.as_ref().filter(|_| is_here);
        let asked = question.map(|it| self.link.publish_once(&it.topic, it.payload.clone()));
        asked.is_some_and(|it| it.is_ok())
    }
}

/// A device whose broker is not known yet.
#[derive(Debug)]
pub struct Unlinked {
    how: Arc<Conventions>,
    known: watch::Receiver<Known>,
}

impl Unlinked {
    /// A device, and where what is published about it is to be told.
    #[must_use]
    pub fn new(how: Conventions) -> (Self, Ear) {
        let how = Arc::new(how);
        let (tell, known) = watch::channel(Known::default());
        let ear = Ear {
            how: Arc::clone(&how),
            known: tell,
        };
        (Self { how, known }, ear)
    }

    /// For how long a command may still act after its outcome came back unknown.
    #[must_use]
    pub const fn lateness() -> Span {
        LATENESS
    }

    /// The device, at this broker.
    #[must_use]
    pub fn link(self, link: Arc<Link>) -> Mqtt {
        Mqtt {
            how: self.how,
            link,
            known: self.known,
            doubt: None,
            told: (0, false),
        }
    }
}

impl Device for Mqtt {
    fn lateness(&self) -> Span {
        LATENESS
    }

    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    async fn set(&mut self, state: &State, until: Instant) -> Outcome {
        let last = half_way(until, 2 * MARGIN);
        let command = self.how.command_for(state);
        // Until something is sent, it can be waited for: for the device, and for room among what is said.
        let said = loop {
            let ready = timeout_at(last.into(), self.known.wait_for(Known::is_here)).await;
            let Ok(Ok(said)) = ready.map(|it| it.map(|it| it.said)) else {
                return Outcome::Refused;
            };
            // The host may have slept meanwhile.
            if Instant::now() >= last {
                return Outcome::Refused;
            }
            match self.link.publish_once(&self.how.command, command.clone()) {
                Ok(()) => break said,
                Err(Unsaid::TooLong { .. } | Unsaid::NoTopic) => return Outcome::Refused,
                Err(_) => sleep(FULL).await,
            }
        };
        // This may be dropped at any point from here on.
        self.doubt = Some(said);
        let mut next = half_way(until, Duration::MAX);
        while Instant::now() < until {
            let says = |it: &Known| it.said > said && it.state.as_ref() == Some(state);
            if let Ok(Ok(_)) = timeout_at(next.into(), self.known.wait_for(says)).await {
                self.doubt = None;
                return Outcome::Done;
            }
            self.question();
            next = (Instant::now() + RETRY).min(until);
        }
        Outcome::Unknown
    }

    async fn ask(&mut self) -> Option<State> {
        let said = self.known.borrow().said;
        if self.question() {
            return self.next(said).await;
        }
        // It cannot be asked: what it said since counts, and what a broker retained proves nothing.
        let is_fresh = self.known.borrow().is_fresh;
        self.state().filter(|_| is_fresh)
    }

    async fn look(&mut self) -> Option<State> {
        match self.state() {
            Some(state) => Some(state),
            None if self.known.borrow().is_here() => self.ask().await,
            None => None,
        }
    }

    async fn hear(&mut self) -> Heard {
        loop {
            {
                let known = self.known.borrow_and_update();
                let is_gone = known.is_there == Some(false);
                let was = core::mem::replace(&mut self.told, (known.said, is_gone));
                if is_gone && !was.1 {
                    return Heard::Gone;
                }
                if let Some(state) = known.state.clone().filter(|_| known.said > was.0) {
                    return Heard::State(state);
                }
            }
            if self.known.changed().await.is_err() {
                core::future::pending().await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::conventions::tests::relay;
    use super::*;

    #[test]
    fn what_was_retained_is_shown_where_the_device_is_there_and_proves_nothing() {
        let (device, ear) = Unlinked::new(relay(Payload::Text("{}".into())));
        let known = || device.known.borrow().clone();
        assert!(ear.on_published("state", b"ON", true));
        assert_eq!((known().said, known().is_fresh), (0, false));
        assert!(ear.on_published("there", b"online", true));
        ear.on_link(true);
        assert_eq!(
            (known().state, known().is_there),
            (None, None),
            "said before"
        );
        assert!(ear.on_published("state", b"OFF", false));
        assert!(!ear.on_published("state", b"", false));
        assert!(!ear.on_published("elsewhere", b"OFF", false));
        assert_eq!((known().said, known().is_fresh), (1, true));
        assert!(ear.on_published("there", b"offline", false));
        assert_eq!((known().state, known().is_here()), (None, false));
        assert_eq!(ear.topics().collect::<Vec<_>>(), ["state", "there"]);
    }
}
