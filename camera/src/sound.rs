//! The check for messages that a correct peer never sends.

use crate::config::DEPTH_MAX;
use crate::message::{in_order, is_walk};
use crate::{Message, Misbehaviour, Request, TreeId};

impl Message {
    /// Checks that a correct peer can have sent this message.
    pub(crate) fn check(&self) -> Result<(), Misbehaviour> {
        match self {
            Self::Request { request, .. } => request.check(),
            Self::Join {
                tree, up_to, last, ..
            }
            | Self::Adopt {
                tree, up_to, last, ..
            } => tree.request(*up_to, *last).check(),
            Self::Ok {
                after,
                rivals,
                more,
                ..
            }
            | Self::Up {
                after,
                rivals,
                more,
                ..
            } if !in_order(*after, rivals) || *more && rivals.is_empty() => Err(Misbehaviour::List),
            Self::Echo {
                levels, branches, ..
            } if *levels > DEPTH_MAX || !is_walk(branches, *levels) => Err(Misbehaviour::Tree),
            Self::Ok { .. }
            | Self::Up { .. }
            | Self::Echo { .. }
            | Self::Wait { .. }
            | Self::Release { .. }
            | Self::Fence { .. }
            | Self::Floor { .. }
            | Self::Nack { .. }
            | Self::Broken { .. }
            | Self::Over { .. }
            | Self::Abstain { .. } => Ok(()),
        }
    }
}

impl TreeId {
    pub(crate) const fn request(self, up_to: u64, last: u64) -> Request {
        Request {
            number: self.number,
            up_to,
            last,
        }
    }
}

impl Request {
    const fn check(&self) -> Result<(), Misbehaviour> {
        if self.number == 0 || self.up_to < self.number {
            return Err(Misbehaviour::Number {
                number: self.number,
                up_to: self.up_to,
            });
        }
        Ok(())
    }
}
