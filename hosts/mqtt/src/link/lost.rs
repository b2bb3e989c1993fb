//! Why a link is lost, and why something is not said.

use core::fmt;

use rumqttc::{ConnectionError, StateError, mqttbytes};
use thiserror::Error;

use super::{Dialect, Setup};

/// Why a link was lost, or does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// For people, with the mend.
    pub why: String,
    /// Whether the broker is there and does not want this program, or this program not the broker.
    pub is_refused: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Lost {
    /// Something that has this name.
    pub fn by(why: &dyn fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            is_refused: false,
        }
    }

    /// The broker hands on nothing of this.
    pub(super) fn unread(setup: &Setup) -> Self {
        let filters = setup.filters.join(" and ");
        Self {
            why: format!(
                "the broker refuses to hand on {filters}: let its user read them ({})",
                setup.dialect.credentials
            ),
            is_refused: true,
        }
    }

    /// What ended a connection; what is said of one that never came up has a mend.
    pub(super) fn of(error: &ConnectionError, was_up: bool, dialect: &Dialect) -> Self {
        let Dialect {
            credentials,
            certificates,
            incoming_max,
            ..
        } = dialect;
        let refused = |why: String| Self {
            why,
            is_refused: true,
        };
        match error {
            ConnectionError::ConnectionRefused(code) => refused(format!(
                "the broker refuses it ({code:?}): see {credentials}"
            )),
            #[cfg(feature = "tls")]
            ConnectionError::Tls(why) => refused(format!(
                "no TLS with the broker ({why}): see whether it has TLS, whether {certificates} vouches for \
                 its certificate, and whether that names the address at which it is"
            )),
            // The library does not say at which topic.
            ConnectionError::MqttState(StateError::Deserialization(
                mqttbytes::Error::PayloadSizeLimitExceeded(bytes),
            )) => Self::by(&format!(
                "the broker hands on a message of {bytes} bytes, and a link takes {incoming_max}: see what is \
                 published, or retained, at the topics that it hears, and have less said at once"
            )),
            ConnectionError::MqttState(why) if !was_up => refused(format!(
                "the broker ends the connection at once ({why}): see {credentials}, and whether it \
                 wants TLS ({certificates})"
            )),
            _ => Self::by(error),
        }
    }
}

/// Why something was not handed over to be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unsaid {
    /// It is longer than a packet may be.
    #[error("a packet of {bytes} bytes, and a link says {most}: say less at once")]
    TooLong {
        /// How many bytes it has, with its topic and its header.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
    /// It is empty, or has a character that no topic of a message has.
    #[error("this is no topic: leave +, # and zeros out of it")]
    NoTopic,
    /// The broker is not there.
    #[error("there is no connection to the broker: say it when there is one")]
    NoBroker,
    /// Too much waits for the broker.
    #[error("too much waits for the broker: say it again in a moment")]
    NoRoom,
}
