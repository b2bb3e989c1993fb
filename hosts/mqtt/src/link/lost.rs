//! The reasons why a link is lost, and why a message is not sent.

use core::fmt;

use rumqttc::{ConnectionError, StateError, mqttbytes};
use thiserror::Error;

use super::{Dialect, Setup};

/// The reason why a link was lost, or does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// A text for people, with the remedy.
    pub why: String,
    /// True if the broker is there and refuses this program, or this program the broker.
    pub is_refused: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Lost {
    /// A loss for this reason.
    pub fn by(why: &dyn fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            is_refused: false,
        }
    }

    /// The broker refuses a subscription.
    pub(super) fn unread(setup: &Setup) -> Self {
        let filters = setup.filters.join(" and ");
        Self {
            why: format!(
                "the broker refuses a subscription to {filters}: let this program's user read them ({})",
                setup.dialect.credentials
            ),
            is_refused: true,
        }
    }

    /// The reason for the end of a connection; the text has a remedy if the connection never came up.
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
                "the broker refuses the connection ({code:?}): see {credentials}"
            )),
            #[cfg(feature = "tls")]
            ConnectionError::Tls(why) => refused(format!(
                "no TLS with the broker ({why}): see whether it has TLS, whether {certificates} vouches for \
                 its certificate, and whether that names the address at which it is"
            )),
            // The library does not report the topic.
            ConnectionError::MqttState(StateError::Deserialization(
                mqttbytes::Error::PayloadSizeLimitExceeded(bytes),
            )) => Self::by(&format!(
                "the broker sends a message of {bytes} bytes, the limit is {incoming_max}: look for it among the \
                 messages, also retained ones, for this program, and publish smaller ones"
            )),
            ConnectionError::MqttState(why) if !was_up => refused(format!(
                "the broker ends the connection at once ({why}): see {credentials}, and whether it \
                 wants TLS ({certificates})"
            )),
            _ => Self::by(error),
        }
    }
}

/// The reason why a message was not handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// It is longer than a packet may be.
    #[error("the packet has {bytes} bytes, the limit is {most}: send smaller messages")]
    TooLong {
        /// The length with the topic and the header, in bytes.
        bytes: usize,
        /// The longest packet, in bytes.
        most: usize,
    },
    /// It is empty, or has a character that no topic of a message has.
    #[error("the topic is empty, or has +, # or a zero in it: choose another topic")]
    NoTopic,
    /// The broker is not connected.
    #[error("no connection to the broker: send it again when there is one")]
    NoBroker,
    /// Too many messages wait for the broker.
    #[error("too many messages wait for the broker: send it again in a moment")]
    NoRoom,
}
