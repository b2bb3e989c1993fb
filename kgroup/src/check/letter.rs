//! Messages on their way between groups.

use alloc::format;
use core::fmt;

use selvedge_core::Member;
use selvedge_groups::GroupId;

use crate::{Answer, Due, Request, TriggerId};

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum To {
    /// A node that believes to lead this group.
    Group(GroupId),
    /// This node, if it believes to lead its group.
    Node(Member),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Body {
    Asks { from: Member, request: Request },
    Answers { group: GroupId, answer: Answer },
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Letter {
    pub(super) to: To,
    pub(super) body: Body,
}

impl Letter {
    /// The trigger that an application asks for.
    pub(super) const fn trigger(&self) -> Option<TriggerId> {
        match self.body {
            Body::Asks {
                request: Request::Trigger(id),
                ..
            } => Some(id),
            Body::Asks { .. } | Body::Answers { .. } => None,
        }
    }

    /// The occurrence that a clock reports.
    pub(super) const fn due(&self) -> Option<Due> {
        match self.body {
            Body::Asks {
                request: Request::Due(due),
                ..
            } => Some(due),
            Body::Asks { .. } | Body::Answers { .. } => None,
        }
    }

    /// Returns true if its sender repeats it until the routine's group has decided.
    pub(super) const fn is_trigger(&self) -> bool {
        self.trigger().is_some() || self.due().is_some()
    }
}

impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = match self.to {
            To::Group(group) => format!("group {}", group.0),
            To::Node(node) => format!("node {}", node.id.0),
        };
        match &self.body {
            Body::Asks { from, request } => write!(f, "{request:?} from {} to {to}", from.id.0),
            Body::Answers { group, answer } => {
                write!(f, "{answer:?} of group {} to {to}", group.0)
            }
        }
    }
}
