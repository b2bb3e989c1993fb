//! Questions about the states of devices.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::Condition;

/// A question about the states of devices.
///
/// The evaluation takes one walk over it, as deep on the stack as it is nested. Feature `serde`
/// writes it as a row of its parts, and reads no more than [`MOST`](Self::MOST) of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Clause<V> {
    /// A comparison of one device's state.
    Is(Condition<V>),
    /// The contrary.
    Not(Box<Self>),
    /// Each of these; true if empty.
    All(Vec<Self>),
    /// At least one of these; false if empty.
    Any(Vec<Self>),
}

impl<V: Ord> Clause<V> {
    /// Returns true or false as far as `state` knows; `None` if the answer depends on unknown
    /// states.
    ///
    /// One false part makes [`All`](Self::All) false, and one true part makes [`Any`](Self::Any)
    /// true, even if other parts are unknown (Kleene's logic).
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
    /// The largest number of parts in the condition of a command, and in a clause that `serde`
    /// reads.
    pub const MOST: usize = 64;

    /// The number of comparisons, negations and lists.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + match self {
            Self::Is(_) => 0,
            Self::Not(clause) => clause.size(),
            Self::All(clauses) | Self::Any(clauses) => clauses.iter().map(Self::size).sum(),
        }
    }

    /// Returns true if a device is mentioned.
    #[must_use]
    pub fn asks(&self, device: NodeId) -> bool {
        match self {
            Self::Is(condition) => condition.device == device,
            Self::Not(clause) => clause.asks(device),
            Self::All(clauses) | Self::Any(clauses) => clauses.iter().any(|it| it.asks(device)),
        }
    }

    /// The devices that are mentioned, in their order; a device appears as often as it is
    /// mentioned.
    pub fn devices(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.conditions().map(|it| it.device)
    }

    /// The comparisons, in their order. Allocates where the clause has more than one part.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition<V>> + '_ {
        Self::conditions_of(Some(self))
    }

    /// The comparisons of a clause, if there is one.
    pub(crate) fn conditions_of(this: Option<&Self>) -> impl Iterator<Item = &Condition<V>> {
        let (mut next, mut waiting) = (this, Vec::new());
        core::iter::from_fn(move || {
            loop {
                match next.take().or_else(|| waiting.pop())? {
                    Self::Is(condition) => return Some(condition),
                    Self::Not(clause) => next = Some(clause),
                    Self::All(clauses) | Self::Any(clauses) => waiting.extend(clauses.iter().rev()),
                }
            }
        })
    }

    /// The comparison, if the clause is a single one.
    #[must_use]
    pub const fn single(&self) -> Option<&Condition<V>> {
        match self {
            Self::Is(condition) => Some(condition),
            Self::Not(_) | Self::All(_) | Self::Any(_) => None,
        }
    }

    /// A clause that joins this and the other one. Lists of both are joined.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut all = match self {
            Self::All(clauses) => clauses,
            one @ (Self::Is(_) | Self::Not(_) | Self::Any(_)) => [one].into(),
        };
        match other {
            Self::All(clauses) => all.extend(clauses),
            one @ (Self::Is(_) | Self::Not(_) | Self::Any(_)) => all.push(one),
        }
        Self::All(all)
    }
}

impl<V> From<Condition<V>> for Clause<V> {
    fn from(condition: Condition<V>) -> Self {
        Self::Is(condition)
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

/// A row of parts: input from outside nests no deeper than it has parts, and is refused before the
/// stack grows.
#[cfg(feature = "serde")]
mod parts {
    use alloc::boxed::Box;
    use alloc::vec::{IntoIter, Vec};

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use super::Clause;
    use crate::Condition;

    #[derive(Serialize, Deserialize)]
    enum Part<C> {
        Is(C),
        Not,
        All(u32),
        Any(u32),
    }

    impl<V: Serialize> Serialize for Clause<V> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut parts: Vec<Part<&Condition<V>>> = Vec::new();
            let mut waiting = Vec::from([self]);
            let count = |all: &Vec<Self>| u32::try_from(all.len()).unwrap_or(u32::MAX);
            while let Some(clause) = waiting.pop() {
                match clause {
                    Self::Is(condition) => parts.push(Part::Is(condition)),
                    Self::Not(inner) => {
                        parts.push(Part::Not);
                        waiting.push(inner);
                    }
                    Self::All(all) => {
                        parts.push(Part::All(count(all)));
                        waiting.extend(all.iter().rev());
                    }
                    Self::Any(all) => {
                        parts.push(Part::Any(count(all)));
                        waiting.extend(all.iter().rev());
                    }
                }
            }
            parts.serialize(serializer)
        }
    }

    impl<'de, V: Deserialize<'de>> Deserialize<'de> for Clause<V> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let parts = Vec::<Part<Condition<V>>>::deserialize(deserializer)?;
            if parts.len() > Self::MOST {
                return Err(de::Error::custom("a clause of too many parts"));
            }
            let mut parts = parts.into_iter();
            match (build(&mut parts), parts.next()) {
                (Some(clause), None) => Ok(clause),
                _ => Err(de::Error::custom("parts of a clause that do not fit")),
            }
        }
    }

    /// Builds a clause, as deep on the stack as there are parts, at most.
    fn build<V>(parts: &mut IntoIter<Part<Condition<V>>>) -> Option<Clause<V>> {
        Some(match parts.next()? {
            Part::Is(condition) => Clause::Is(condition),
            Part::Not => Clause::Not(Box::new(build(parts)?)),
            Part::All(count) => Clause::All(list(count, parts)?),
            Part::Any(count) => Clause::Any(list(count, parts)?),
        })
    }

    fn list<V>(count: u32, parts: &mut IntoIter<Part<Condition<V>>>) -> Option<Vec<Clause<V>>> {
        (0..count).map(|_| build(parts)).collect()
    }
}
