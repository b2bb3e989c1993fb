//! What travels: the messages of each protocol under its own kind.

use alloc::vec::Vec;

use selvedge_camera::{estimate, sections};
use selvedge_celect as celect;
use selvedge_core::Member;
use selvedge_core::wire::Envelope;
use selvedge_membership as membership;
use serde::de::DeserializeOwned;

use crate::frame::{self, FrameError};

/// A message of one of the protocols.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Who is here.
    Membership(membership::Message),
    /// Who may enter.
    Sections(sections::Message),
    /// How many there are.
    Estimate(estimate::Message),
    /// Who leads.
    Election(celect::Message),
}

impl Message {
    /// The kind in its frame's header.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        match self {
            Self::Membership(_) => membership::KIND,
            Self::Sections(_) => sections::KIND,
            Self::Estimate(_) => estimate::KIND,
            Self::Election(_) => celect::KIND,
        }
    }
}

/// Writes the frame of `message` from `from` over what `frame` holds.
///
/// # Errors
/// [`FrameError::Oversize`] when it becomes longer than `budget`; `frame` is empty then.
pub fn encode(
    from: Member,
    message: &Message,
    budget: usize,
    frame: &mut Vec<u8>,
) -> Result<(), FrameError> {
    let kind = message.kind();
    match message {
        Message::Membership(message) => frame::encode(kind, from, message, budget, frame),
        Message::Sections(message) => frame::encode(kind, from, message, budget, frame),
        Message::Estimate(message) => frame::encode(kind, from, message, budget, frame),
        Message::Election(message) => frame::encode(kind, from, message, budget, frame),
    }
}

/// Reads a frame of this kind. Any bytes may be given.
///
/// # Errors
/// When the bytes are not exactly one frame of this `kind` within `budget`.
pub fn decode(kind: u8, bytes: &[u8], budget: usize) -> Result<Envelope<Message>, FrameError> {
    match kind {
        sections::KIND => read(kind, bytes, budget, Message::Sections),
        estimate::KIND => read(kind, bytes, budget, Message::Estimate),
        celect::KIND => read(kind, bytes, budget, Message::Election),
        _ => read(membership::KIND, bytes, budget, Message::Membership),
    }
}

fn read<T: DeserializeOwned>(
    kind: u8,
    bytes: &[u8],
    budget: usize,
    message: impl FnOnce(T) -> Message,
) -> Result<Envelope<Message>, FrameError> {
    let Envelope { from, message: it } = frame::decode::<T>(kind, bytes, budget)?;
    let message = message(it);
    Ok(Envelope { from, message })
}
