//! Devices that take commands and report their states at topics of MQTT.
//!
//! A command is published once, at quality of service 0, and not retained: otherwise a broker would keep it
//! for a device that is away, which would carry it out when it returns. The proof that it was carried out is
//! a report of the state by the device afterwards; a retained message proves nothing.

mod conventions;

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_mqtt::link::{Link, PublishError};
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::sync::watch;
use tokio::time::{sleep, timeout_at};

pub use self::conventions::{Availability, Conventions, Payload, Question};
use super::{Device, Received, half_way};

// A report of the wanted state that was under way before a command was sent is taken as that command's proof.
// That is harmless: the command asks for the same state, and one broker delivers commands in order, so it cannot
// overtake a later one.

/// The wait before a device that does not answer is asked again.
const RETRY: Duration = Duration::from_millis(500);
/// The wait before a command that found no room is tried again.
const FULL: Duration = Duration::from_millis(20);
/// The time before the hub gives up that is left for the report of a refusal.
const MARGIN: Duration = Duration::from_millis(400);
/// The time for which a published command without an answer may still take effect: a guess, which a file may
/// override. A broker keeps messages that it could not deliver until it notices that a device has left.
const LATENESS: Span = Span::secs(10);

/// The state of a device, as known from published messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// True if the broker is connected. The fields below are from messages since then.
    is_up: bool,
    /// The device's availability, if it was reported.
    is_there: Option<bool>,
    /// The state that was reported last.
    state: Option<State>,
    /// True if the device reported a state in a message that was not retained.
    is_fresh: bool,
    /// The number of such reports since the start.
    reported: u64,
}

impl Known {
    /// Returns true if a message can reach the device.
    fn is_here(&self) -> bool {
        self.is_up && self.is_there != Some(false)
    }
}

/// The receiver of published messages about a device.
#[derive(Clone, Debug)]
pub struct Ear {
    how: Arc<Conventions>,
    known: watch::Sender<Known>,
}

impl Ear {
    /// The topics that it listens to.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.how.receives()
    }

    /// Handles a change of the connection to the broker. Earlier knowledge is dropped.
    pub fn on_link(&self, is_up: bool) {
        self.known.send_modify(|it| {
            *it = Known {
                is_up,
                reported: it.reported,
                ..Known::default()
            };
        });
    }

    /// Handles a published message. Returns true if it is understood.
    pub fn on_published(&self, topic: &str, payload: &[u8], is_retained: bool) -> bool {
        let mut is_understood = false;
        if topic == self.how.state
            && let Some(state) = self.how.state_in(payload)
        {
            is_understood = true;
            self.known.send_modify(|it| {
                it.state = Some(state);
                it.is_fresh |= !is_retained;
                it.reported += u64::from(!is_retained);
            });
        }
        let availability = self.how.availability.as_ref().map(|it| &it.topic);
        if availability.is_some_and(|it| it == topic)
            && let Some(is_there) = self.how.is_there(payload)
        {
            is_understood = true;
            self.known.send_modify(|it| {
                if !is_there {
                    // It may return in another state.
                    (it.state, it.is_fresh) = (None, false);
                }
                it.is_there = Some(is_there);
            });
        }
        is_understood
    }
}

/// A device that takes commands and reports its state at topics.
#[derive(Debug)]
pub struct Mqtt {
    how: Arc<Conventions>,
    link: Arc<Link>,
    known: watch::Receiver<Known>,
    /// The number of its reports when it left a command unanswered: only later reports count.
    doubt: Option<u64>,
    /// The last report to the hub: the device's number of reports, and true if it was not available.
    notified: (u64, bool),
}

impl Mqtt {
    /// The state that it is in, as far as it is known without a question.
    fn state(&self) -> Option<State> {
        let known = self.known.borrow();
        // A retained message counts if the device is available and no command is in doubt.
        let is_reported = known.is_fresh || known.is_there == Some(true);
        let is_sure = is_reported && self.doubt.is_none_or(|reported| known.reported > reported);
        known.state.clone().filter(|_| known.is_here() && is_sure)
    }

    /// The next state that it reports after this number of reports.
    async fn next(&mut self, reported: u64) -> Option<State> {
        let known = self
            .known
            .wait_for(|it| it.reported > reported && it.state.is_some());
        known.await.ok()?.state.clone()
    }

    /// Asks for the state; returns true if that was possible.
    fn question(&self) -> bool {
        let is_here = self.known.borrow().is_here();
        let question = self.how.question.as_ref().filter(|_| is_here);
        let asked = question.map(|it| self.link.publish_once(&it.topic, it.payload.clone()));
        asked.is_some_and(|it| it.is_ok())
    }
}

/// A device without its broker yet.
#[derive(Debug)]
pub struct Unlinked {
    how: Arc<Conventions>,
    known: watch::Receiver<Known>,
}

impl Unlinked {
    /// A device, and the receiver of messages about it.
    #[must_use]
    pub fn new(how: Conventions) -> (Self, Ear) {
        let how = Arc::new(how);
        let (notify, known) = watch::channel(Known::default());
        let ear = Ear {
            how: Arc::clone(&how),
            known: notify,
        };
        (Self { how, known }, ear)
    }

    /// The time for which a command may still take effect after its outcome was reported as unknown.
    #[must_use]
    pub const fn lateness() -> Span {
        LATENESS
    }

    /// The device, with the link to its broker.
    #[must_use]
    pub fn link(self, link: Arc<Link>) -> Mqtt {
        Mqtt {
            how: self.how,
            link,
            known: self.known,
            doubt: None,
            notified: (0, false),
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
        // Until the command is sent, it can wait: for the device, and for room among outgoing messages.
        let reported = loop {
            let ready = timeout_at(last.into(), self.known.wait_for(Known::is_here)).await;
            let Ok(Ok(reported)) = ready.map(|it| it.map(|it| it.reported)) else {
                return Outcome::Refused;
            };
            // The host may have slept meanwhile.
            if Instant::now() >= last {
                return Outcome::Refused;
            }
            match self.link.publish_once(&self.how.command, command.clone()) {
                Ok(()) => break reported,
                Err(PublishError::TooLong { .. } | PublishError::NoTopic) => {
                    return Outcome::Refused;
                }
                Err(_) => sleep(FULL).await,
            }
        };
        // This future may be dropped at any point from here on.
        self.doubt = Some(reported);
        let mut next = half_way(until, Duration::MAX);
        while Instant::now() < until {
            let reports = |it: &Known| it.reported > reported && it.state.as_ref() == Some(state);
            if let Ok(Ok(_)) = timeout_at(next.into(), self.known.wait_for(reports)).await {
                self.doubt = None;
                return Outcome::Done;
            }
            self.question();
            next = (Instant::now() + RETRY).min(until);
        }
        Outcome::Unknown
    }

    async fn ask(&mut self) -> Option<State> {
        let reported = self.known.borrow().reported;
        if self.question() {
            return self.next(reported).await;
        }
        // It cannot be asked: its reports since then count, and a retained message proves nothing.
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

    async fn receive(&mut self) -> Received {
        loop {
            {
                let known = self.known.borrow_and_update();
                let has_ended = known.is_there == Some(false);
                let was = core::mem::replace(&mut self.notified, (known.reported, has_ended));
                if has_ended && !was.1 {
                    return Received::Ended;
                }
                if let Some(state) = known.state.clone().filter(|_| known.reported > was.0) {
                    return Received::State(state);
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
        assert_eq!((known().reported, known().is_fresh), (0, false));
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
        assert_eq!((known().reported, known().is_fresh), (1, true));
        assert!(ear.on_published("there", b"offline", false));
        assert_eq!((known().state, known().is_here()), (None, false));
        assert_eq!(ear.topics().collect::<Vec<_>>(), ["state", "there"]);
    }
}
