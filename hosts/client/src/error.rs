//! Errors of calls.

use std::io;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

/// The most characters of a refusal that is a plain text.
const PLAIN: usize = 300;

/// An error of a call.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is an invalid address of an agent. Nothing was sent.
    #[error("{0:?} is an invalid address of an agent: write http://HOST:PORT or unix:/PATH")]
    Address(String),
    /// The token cannot be in a header. Nothing was sent.
    #[error("the token has characters that HTTP has not: use visible ASCII characters")]
    Token,
    /// The request cannot be written. Nothing was sent.
    #[error("HTTP has no form of {0}")]
    Request(String),
    /// No agent is at the address. Nothing was sent.
    #[error("no agent at {address}: {source}: start it, or give the address of another one")]
    Unreachable {
        /// The address of the agent.
        address: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The agent refused. [`Kind`] has the reason.
    #[error("{text}")]
    Refused {
        /// The reason.
        kind: Kind,
        /// The agent's text, with the remedy.
        text: String,
    },
    /// The connection ended before the answer. The agent may have carried the request out.
    #[error("the agent closed the connection: {0}: see its log, and ask again")]
    Lost(#[source] Box<dyn core::error::Error + Send + Sync>),
    /// No answer in time. The agent may have carried the request out.
    #[error("the agent did not answer within {0:?}: see its log, and ask again")]
    Silent(Duration),
    /// The answer does not belong to this API.
    #[error("{0}: give the address of an agent that has this version of the API")]
    Misbehaviour(String),
    /// An answer or an event is longer than [`Agent::LONGEST`](crate::Agent::LONGEST).
    #[error("the answer has more than {0} bytes: ask for less, such as a longer prefix")]
    TooLong(usize),
}

/// The reason why an agent refused a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// The request does not belong to the API, or a value is out of range.
    BadRequest,
    /// The token is missing or wrong.
    Unauthorized,
    /// The agent does not permit it.
    Forbidden,
    /// There is no such entry, hold or member.
    NotFound,
    /// The agent has no such path: it is of another version.
    NoPath,
    /// The wait was over: a lock is taken, a queue is empty, or the mesh did not answer.
    Timeout,
    /// A comparison failed: the entry has another version.
    Mismatch,
    /// The session is over.
    SessionOver,
    /// A key or a value is too long.
    TooLarge,
    /// The map or the agent has no room.
    Full,
    /// No answer of the mesh: too few nodes are up, or this one has no part in groups.
    Unavailable,
    /// A reason that a later version of the API has.
    #[serde(other)]
    Other,
}

impl Error {
    /// The reason of a refusal.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Refused { kind, .. } => Some(*kind),
            Self::Address(_)
            | Self::Token
            | Self::Request(_)
            | Self::Unreachable { .. }
            | Self::Lost(_)
            | Self::Silent(_)
            | Self::Misbehaviour(_)
            | Self::TooLong(_) => None,
        }
    }

    /// A connection that ended early.
    pub(crate) fn lost(why: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> Self {
        Self::Lost(why.into())
    }

    /// An answer that is refused: an error of the agent, or of another program.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Body {
            error: String,
            kind: Kind,
        }
        if let Ok(Body { error, kind }) = serde_json::from_slice(body) {
            return Self::Refused { kind, text: error };
        }
        // A request that is refused before the API reads it has a plain text.
        let kind = match status {
            401 => Kind::Unauthorized,
            403 => Kind::Forbidden,
            413 | 414 => Kind::TooLarge,
            _ => return Self::Misbehaviour(format!("status {status} without an error of the API")),
        };
        let text = String::from_utf8_lossy(body)
            .trim()
            .chars()
            .take(PLAIN)
            .collect();
        Self::Refused { kind, text }
    }
}
