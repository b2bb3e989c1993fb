//! Actions that can be scheduled.

use core::fmt;

use selvedge_core::{Delta, Machine, Member};

use super::{Happened, Link, Network, NetworkError, Point};

/// An action at a future time, see [`Network::schedule`]. Each is the method of the same name.
#[derive(Clone)]
#[non_exhaustive]
pub enum Action<M: Machine> {
    /// The application issues a command: [`Network::command`].
    Command {
        /// The node.
        node: usize,
        /// The command.
        command: M::Command,
    },
    /// The membership service learned something: [`Network::membership`].
    Membership {
        /// The node.
        node: usize,
        /// The delta.
        delta: Delta,
    },
    /// [`Network::crash`].
    Crash {
        /// The node.
        node: usize,
    },
    /// [`Network::restart`].
    Restart {
        /// The node.
        node: usize,
        /// Its identity from then on.
        member: Member,
        /// The machine that it runs from then on.
        machine: Box<M>,
    },
    /// [`Network::partition`].
    Partition {
        /// The groups.
        groups: Vec<Vec<usize>>,
    },
    /// [`Network::heal`].
    Heal,
    /// [`Network::set_link`].
    SetLink(Link),
    /// [`Network::move_to`].
    MoveTo {
        /// The node.
        node: usize,
        /// The new place.
        place: Point,
    },
}

impl<M: Machine> Network<M> {
    pub(super) fn check_action(&self, action: &Action<M>) -> Result<(), NetworkError> {
        match action {
            Action::Command { node, .. }
            | Action::Membership { node, .. }
            | Action::Crash { node } => self.checked(*node).map(drop),
            Action::MoveTo { node, .. } => self.check_place(*node),
            Action::Restart { node, member, .. } => self.check_restart(*node, *member).map(drop),
            Action::Partition { groups } => self.sides(groups).map(drop),
            Action::SetLink(link) => link.check(),
            Action::Heal => Ok(()),
        }
    }

    pub(super) fn act(&mut self, action: Action<M>) -> Happened {
        let succeeded = match action {
            Action::Command { node, command } => self.command(node, command).is_ok(),
            Action::Membership { node, delta } => self.membership(node, delta).is_ok(),
            Action::Crash { node } => self.crash(node).is_ok_and(|was_up| was_up),
            Action::Restart {
                node,
                member,
                machine,
            } => self.restart(node, member, *machine).is_ok(),
            Action::Partition { groups } => self.partition(&groups).is_ok(),
            Action::Heal => {
                self.heal();
                true
            }
            Action::SetLink(link) => self.set_link(link).is_ok(),
            Action::MoveTo { node, place } => self.move_to(node, place).is_ok(),
        };
        if !succeeded {
            self.counters.failed_actions += 1;
        }
        Happened::Acted { succeeded }
    }
}

impl<M: Machine> fmt::Debug for Action<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { node, command } => write!(f, "Command({node}, {command:?})"),
            Self::Membership { node, delta } => write!(f, "Membership({node}, {delta:?})"),
            Self::Crash { node } => write!(f, "Crash({node})"),
            Self::Restart { node, member, .. } => write!(f, "Restart({node}, {member:?})"),
            Self::Partition { groups } => write!(f, "Partition({groups:?})"),
            Self::Heal => f.write_str("Heal"),
            Self::SetLink(link) => write!(f, "SetLink({link:?})"),
            Self::MoveTo { node, place } => write!(f, "MoveTo({node}, {place:?})"),
        }
    }
}
