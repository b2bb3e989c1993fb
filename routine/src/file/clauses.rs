//! Clauses of a file.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::NodeId;

use super::fields::{self, Fields, entry};
use super::known::Known;
use super::tree::{Entry, Mark, Node, Place};
use super::{Fault, FileError};
use crate::{Catalogue, Clause, Comparison, Condition, State};

const WANTED: &str = "an object with DevID and a comparison, or with all, any or not";
const COMPARISONS: [(&str, Comparison); 4] = [
    ("equal", Comparison::Equal),
    ("not_equal", Comparison::NotEqual),
    ("less", Comparison::Less),
    ("greater", Comparison::Greater),
];
/// The depth to which a clause may be nested.
const DEEPEST: usize = 24;
const ONE_OF: &str = "equal, not_equal, less, greater, all, any and not";
const DEVICES: &str = "DevID, any_of, all_of and none_of";
const KEYS: [&str; 11] = [
    "DevID",
    "any_of",
    "all_of",
    "none_of",
    "equal",
    "not_equal",
    "less",
    "greater",
    "all",
    "any",
    "not",
];

impl Known {
    pub(super) fn clause(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Clause<State>, FileError> {
        let clause = self.part(node, place)?;
        check_depth(&clause, node.mark, place)?;
        Ok(clause)
    }

    /// Reads a part, as deep on the stack as the clause is nested, which the readers limit.
    fn part(&mut self, node: &Node, place: &Place<'_>) -> Result<Clause<State>, FileError> {
        let given = Fields::of(node, place, WANTED, &KEYS)?;
        let compares = given.count(&["equal", "not_equal", "less", "greater"]);
        let found = compares + given.count(&["all", "any", "not"]);
        if found != 1 {
            let keys = ONE_OF;
            return Err(place.fault(node.mark, Fault::OneOf { found, keys }));
        }
        let found = given.count(&["DevID", "any_of", "all_of", "none_of"]);
        if compares == 1 {
            return match found {
                0 => Err(place.fault(node.mark, Fault::NoDevice)),
                1 => self.comparison(&given, place),
                _ => {
                    let keys = DEVICES;
                    Err(place.fault(node.mark, Fault::OneOf { found, keys }))
                }
            };
        }
        if found > 0 {
            return Err(place.fault(node.mark, Fault::StrayDevice));
        }
        if let Some(node) = given.get("all") {
            let place = place.key("all");
            let clause = Clause::All(self.clauses(node, &place)?);
            can_be(&clause, node.mark, &place, &self.catalogue)?;
            return Ok(clause);
        }
        if let Some(node) = given.get("any") {
            return Ok(Clause::Any(self.clauses(node, &place.key("any"))?));
        }
        let node = given.need("not", place)?;
        let clause = self.part(node, &place.key("not"))?;
        Ok(Clause::Not(Box::new(clause)))
    }

    fn clauses(&mut self, node: &Node, place: &Place<'_>) -> Result<Vec<Clause<State>>, FileError> {
        let nodes = fields::some(node, place, "a list of clauses")?;
        let clauses = nodes.iter().enumerate();
        let clauses = clauses.map(|(nth, it)| self.part(it, &place.nth(nth)));
        clauses.collect()
    }

    fn comparison(
        &mut self,
        given: &Fields<'_>,
        place: &Place<'_>,
    ) -> Result<Clause<State>, FileError> {
        let mut all = COMPARISONS.iter();
        let found = all.find_map(|&(key, it)| Some((key, it, given.get(key)?)));
        let Some((key, comparison, node)) = found else {
            return Err(place.fault(given.mark, Fault::NoKey("equal")));
        };
        let at = place.key(key);
        let value = fields::state(node, &at)?;
        if let (Comparison::Less | Comparison::Greater, State::Word(word)) = (comparison, &value) {
            return Err(at.fault(node.mark, Fault::WordOrder(word.clone())));
        }
        let is = |device| {
            Clause::Is(Condition {
                device,
                comparison,
                value: value.clone(),
            })
        };
        let is_state = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let state = Some(&value).filter(|_| is_state);
        if let Some(node) = given.get("DevID") {
            let device = self.device(node, &place.key("DevID"))?;
            self.note(device, state, given.mark, place);
            return Ok(is(device));
        }
        for key in ["any_of", "all_of", "none_of"] {
            let Some(node) = given.get(key) else {
                continue;
            };
            let devices = self.group(node, &place.key(key))?;
            self.spend(devices.len(), node.mark, place)?;
            for &device in &devices {
                self.note(device, state, given.mark, place);
            }
            let clauses: Vec<_> = devices.into_iter().map(is).collect();
            return Ok(match key {
                "all_of" => Clause::All(clauses),
                "any_of" => Clause::Any(clauses),
                _ => Clause::Not(Box::new(Clause::Any(clauses))),
            });
        }
        Err(place.fault(given.mark, Fault::NoDevice))
    }
}

/// Checks the depth of a clause for writing: written text has lists and objects around a clause,
/// and must be read again.
pub(super) fn check_depth(
    clause: &Clause<State>,
    mark: Mark,
    place: &Place<'_>,
) -> Result<(), FileError> {
    fn depth(clause: &Clause<State>) -> usize {
        1 + match clause {
            Clause::Is(_) => 0,
            Clause::Not(clause) => depth(clause),
            Clause::All(clauses) | Clause::Any(clauses) => {
                clauses.iter().map(depth).max().unwrap_or_default()
            }
        }
    }
    let limit = DEEPEST;
    if depth(clause) > limit {
        return Err(place.fault(mark, Fault::DeepClause { limit }));
    }
    Ok(())
}

/// A device is in one state at a time.
pub(super) fn can_be(
    clause: &Clause<State>,
    mark: Mark,
    place: &Place<'_>,
    catalogue: &Catalogue,
) -> Result<(), FileError> {
    let Clause::All(clauses) = clause else {
        return Ok(());
    };
    let mut states: BTreeMap<NodeId, &State> = BTreeMap::new();
    for (nth, clause) in clauses.iter().enumerate() {
        let Clause::Is(condition) = clause else {
            continue;
        };
        if condition.comparison != Comparison::Equal {
            continue;
        }
        let before = states.insert(condition.device, &condition.value);
        if let Some(first) = before.filter(|it| **it != condition.value) {
            let fault = Fault::NeverTrue {
                device: catalogue
                    .name(condition.device)
                    .map_or_else(String::new, Into::into),
                first: first.to_string(),
                second: condition.value.to_string(),
            };
            return Err(place.nth(nth).fault(mark, fault));
        }
    }
    Ok(())
}

/// A clause for writing.
pub(super) fn written(
    it: &Clause<State>,
    name: &impl Fn(NodeId) -> Result<String, FileError>,
) -> Result<Node, FileError> {
    let list = |clauses: &[Clause<State>]| {
        let nodes = clauses.iter().map(|it| written(it, name));
        nodes.collect::<Result<Vec<Node>, _>>()
    };
    let entries: Vec<Entry> = match it {
        Clause::Is(condition) => {
            let mut all = COMPARISONS.iter();
            let key = all.find(|it| it.1 == condition.comparison);
            let device = super::tree::Data::Word(name(condition.device)?);
            [
                entry("DevID", device),
                entry(
                    key.map_or("equal", |it| it.0),
                    fields::shown(&condition.value),
                ),
            ]
            .into()
        }
        Clause::Not(it) => [entry("not", written(it, name)?)].into(),
        Clause::All(clauses) => [entry("all", list(clauses)?)].into(),
        Clause::Any(clauses) => [entry("any", list(clauses)?)].into(),
    };
    Ok(entries.into())
}
