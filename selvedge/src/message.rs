//! The messages of all protocols, each under its own kind.

use alloc::vec::Vec;

#[cfg(feature = "estimate")]
use selvedge_camera::estimate;
use selvedge_camera::sections;
use selvedge_celect as celect;
use selvedge_core::Member;
use selvedge_core::wire::{self, Envelope};
use selvedge_membership as membership;
use serde::de::DeserializeOwned;

use crate::frame::{self, FrameError};

/// Defines [`Message`], [`encode`] and [`decode`] by one line for each protocol, with the feature
/// that it needs.
macro_rules! protocols {
    ($($(#[$doc:meta])* $protocol:ident($message:ty) $(if $feature:literal)?,)*) => {
        /// A message of one of the protocols.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Message {
            $(
                $(#[cfg(feature = $feature)])?
                $(#[$doc])*
                $protocol($message),
            )*
        }

        impl Message {
            /// The kind in its frame's header.
            #[must_use]
            pub const fn kind(&self) -> u8 {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        Self::$protocol(_) => <$message as wire::Message>::KIND,
                    )*
                }
            }
        }

        /// Writes the frame of `message` from `from` into `frame`, replacing its content.
        ///
        /// # Errors
        /// [`FrameError::Oversize`] when it becomes longer than `budget`; `frame` is empty then.
        pub fn encode(
            from: Member,
            message: &Message,
            budget: usize,
            frame: &mut Vec<u8>,
        ) -> Result<(), FrameError> {
            match message {
                $(
                    $(#[cfg(feature = $feature)])?
                    Message::$protocol(message) => frame::encode(from, message, budget, frame),
                )*
            }
        }

        /// Reads a frame of this kind. Any bytes may be given.
        ///
        /// # Errors
        /// When the bytes are not exactly one frame of this `kind` within `budget`, or no protocol
        /// has this `kind`.
        pub fn decode(
            kind: u8,
            bytes: &[u8],
            budget: usize,
        ) -> Result<Envelope<Message>, FrameError> {
            match kind {
                $(
                    $(#[cfg(feature = $feature)])?
                    <$message as wire::Message>::KIND => read(bytes, budget, Message::$protocol),
                )*
                found => Err(FrameError::Kind {
                    found,
                    expected: membership::KIND,
                }),
            }
        }
    };
}

protocols! {
    /// A message about the members of the mesh.
    Membership(membership::Message),
    /// A message about the right to enter a section.
    Sections(sections::Message),
    /// A message about the number of nodes. Feature `estimate`.
    Estimate(estimate::Message) if "estimate",
    /// A message about the leader.
    Election(celect::Message),
    /// A message about the decisions of k-groups. Feature `kgroup`.
    Groups(selvedge_kgroup::Message) if "kgroup",
}

fn read<T: wire::Message + DeserializeOwned>(
    bytes: &[u8],
    budget: usize,
    message: impl FnOnce(T) -> Message,
) -> Result<Envelope<Message>, FrameError> {
    let Envelope { from, message: it } = frame::decode::<T>(bytes, budget)?;
    let message = message(it);
    Ok(Envelope { from, message })
}
