//! Questions about the states of devices.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::Condition;

/// A question about the states of devices.
///
/// Its answer takes one walk over it, as deep on the stack as it is nested.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Clause<V> {
    /// How one device's state compares.
    Is(Condition<V>),
    /// The contrary.
    Not(Box<Self>),
    /// Each of these; true of none.
    All(Vec<Self>),
    /// One of these, or more; false of none.
    Any(Vec<Self>),
}

impl<V: Ord> Clause<V> {
    /// Whether it is true, as far as `state` knows; `None` if that depends on what is unknown.
    ///
    /// One false part makes [`All`](Self::All) false, and one true part makes [`Any`](Self::Any)
    /// true, whatever is unknown besides (Kleene's logic).
    pub fn holds<'a>(&self, state: &impl Fn(NodeId) -> Option<&'a V>) -> Option<bool>
    where
        V: 'a,
    {
        match self {
            Self::Is(condition) => state(condition.device).map(|it| condition.holds(it)),
            Self::Not(clause) => clause.holds(state).map(|it| !it),
            Self::All(clauses) => decide(clauses, state, false),
            Self::Any(clauses) => decide(clauses, state, true),
        }
    }
}

impl<V> Clause<V> {
    /// How many comparisons, contraries and lists it has.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + match self {
            Self::Is(_) => 0,
            Self::Not(clause) => clause.size(),
            Self::All(clauses) | Self::Any(clauses) => clauses.iter().map(Self::size).sum(),
        }
    }

    /// Whether a device is mentioned.
    #[must_use]
    pub fn asks(&self, device: NodeId) -> bool {
        match self {
            Self::Is(condition) => condition.device == device,
            Self::Not(clause) => clause.asks(device),
            Self::All(clauses) | Self::Any(clauses) => clauses.iter().any(|it| it.asks(device)),
        }
    }
}

/// `decisive` if one of them is; the contrary if all are that; else unknown.
fn decide<'a, V: Ord + 'a>(
    clauses: &[Clause<V>],
    state: &impl Fn(NodeId) -> Option<&'a V>,
    decisive: bool,
) -> Option<bool> {
    let mut answer = Some(!decisive);
    for clause in clauses {
        match clause.holds(state) {
            Some(it) if it == decisive => return Some(decisive),
            Some(_) => {}
            None => answer = None,
        }
    }
    answer
}
