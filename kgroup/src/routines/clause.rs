//! A clause in bytes: its parts in a row. A frame that nests it deeper than [`CLAUSE_MAX`] is
//! refused before the stack grows.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_routine::trigger::Clause;
use selvedge_routine::{Condition, State};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::definition::CLAUSE_MAX;

#[derive(Serialize, Deserialize)]
enum Part {
    Is(Condition<State>),
    Not,
    All(u16),
    Any(u16),
}

pub(super) fn serialize<S: Serializer>(
    clause: &Option<Clause<State>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut parts = Vec::new();
    let mut waiting: Vec<_> = clause.iter().collect();
    while let Some(clause) = waiting.pop() {
        let count = |all: &Vec<_>| u16::try_from(all.len()).unwrap_or(u16::MAX);
        match clause {
            Clause::Is(condition) => parts.push(Part::Is(condition.clone())),
            Clause::Not(inner) => {
                parts.push(Part::Not);
                waiting.push(inner);
            }
            Clause::All(all) => {
                parts.push(Part::All(count(all)));
                waiting.extend(all.iter().rev());
            }
            Clause::Any(all) => {
                parts.push(Part::Any(count(all)));
                waiting.extend(all.iter().rev());
            }
        }
    }
    parts.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Clause<State>>, D::Error> {
    let parts = Vec::<Part>::deserialize(deserializer)?;
    if parts.is_empty() {
        return Ok(None);
    }
    if parts.len() > CLAUSE_MAX {
        return Err(de::Error::custom("a clause of too many parts"));
    }
    let mut parts = parts.into_iter();
    match (build(&mut parts), parts.next()) {
        (Some(clause), None) => Ok(Some(clause)),
        _ => Err(de::Error::custom("parts of a clause that do not fit")),
    }
}

/// The depth of the stack is at most the number of parts.
fn build(parts: &mut alloc::vec::IntoIter<Part>) -> Option<Clause<State>> {
    Some(match parts.next()? {
        Part::Is(condition) => Clause::Is(condition),
        Part::Not => Clause::Not(Box::new(build(parts)?)),
        Part::All(count) => Clause::All(list(count, parts)?),
        Part::Any(count) => Clause::Any(list(count, parts)?),
    })
}

fn list(count: u16, parts: &mut alloc::vec::IntoIter<Part>) -> Option<Vec<Clause<State>>> {
    (0..count).map(|_| build(parts)).collect()
}
