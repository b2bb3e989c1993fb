//! What a run has come to, as events tell it.

use alloc::collections::BTreeMap;
use core::hash::{Hash as _, Hasher as _};
use std::hash::DefaultHasher;

use selvedge_replica::{Fact, Version};
use selvedge_sim::check::Observer;

use super::party::{Party, TASK};
use crate::Tables;
use crate::gateway::Gateway;

/// What a node of a check tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(
    clippy::large_enum_variant,
    reason = "a fact is told in most steps, and kept in none"
)]
pub enum Notified {
    /// To be stored.
    Fact(Fact<Tables>),
    /// A gateway has come to this version of the tables: with this digest, and perhaps with an answer.
    Holds(Version, u64, bool),
    /// A follower or gateway that counts votes changed or dropped one, within an attempt.
    Recounts,
}

/// Remembers what was decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// Whether it remembers tables; they make states differ that are alike otherwise.
    pub(super) is_tracking: bool,
    /// Of each version that a gateway came to, the digest of the tables.
    pub(super) tracked: BTreeMap<Version, u64>,
    /// Two tables had one version.
    pub(super) differs: bool,
    /// The first version that was seen with an answer.
    pub(super) answered: Option<Version>,
    pub(super) recounts: bool,
}

/// What a gateway holds now.
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
