//! The history of a run that properties need, taken from the nodes' events.

use alloc::collections::BTreeMap;
use core::hash::{Hash as _, Hasher as _};
use std::hash::DefaultHasher;

use selvedge_replica::{Fact, Version};
use selvedge_sim::check::Observer;

use super::party::{Party, TASK};
use crate::Tables;
use crate::gateway::Gateway;

/// An event of a node in a check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "a fact is told in most steps, and kept in none"
)]
pub enum Notified {
    /// A fact for the gateway's host to store.
    Fact(Fact<Tables>),
    /// A gateway has reached this version of the tables: their digest, and true if they have an answer.
    Holds(Version, u64, bool),
    /// A follower or gateway that counts votes changed or dropped a vote within an attempt.
    Recounts,
}

/// An observer that remembers the gateways' decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// True if it remembers digests of tables. They are part of the state, so equal states of the nodes
    /// count as different ones.
    pub(super) is_tracking: bool,
    /// The digest of the tables of each version that some gateway reached.
    pub(super) tracked: BTreeMap<Version, u64>,
    /// True if two different tables had one version.
    pub(super) differs: bool,
    /// The first version that was seen with an answer.
    pub(super) answered: Option<Version>,
    pub(super) recounts: bool,
}

/// The event with the tables that a gateway has now.
pub(super) fn holds(gateway: &Gateway) -> Option<Notified> {
    let tables = gateway.tables()?;
    let mut hasher = DefaultHasher::new();
    tables.hash(&mut hasher);
    let is_answered = tables.answer(TASK).is_some();
    let version = gateway.replica().version();
    Some(Notified::Holds(version, hasher.finish(), is_answered))
}

impl Observer<Party> for Watch {
    fn event(&mut self, _: usize, event: &Notified) {
        match *event {
            Notified::Holds(version, digest, is_answered) if self.is_tracking => {
                let first = *self.tracked.entry(version).or_insert(digest);
                self.differs |= first != digest;
                if is_answered {
                    let known = self.answered.unwrap_or(version);
                    self.answered = Some(known.min(version));
                }
            }
            Notified::Recounts => self.recounts = true,
            Notified::Holds(..) | Notified::Fact(_) => {}
        }
    }
}
