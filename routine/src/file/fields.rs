//! The keys of an object, and the kinds of values that they have.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::Span;

use super::tree::{Data, Entry, Mark, Node, Place, scaled};
use super::{Fault, FileError, near};
use crate::{LONGEST_KEY, Number, State};

/// The longest time: 64 bits of microseconds.
const LONGEST: u64 = u64::MAX / 1_000;

/// The longest word that is a state, and the longest name, in bytes: both are written out again and
/// again. The name of a routine is the key of its runs.
const LONGEST_WORD: usize = LONGEST_KEY;

const STATE: &str = "a word, or a number of up to 12 digits before the point and 3 behind it";

/// An object with known keys, each present at most once.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    entries: &'a [Entry],
    pub(super) mark: Mark,
}

impl<'a> Fields<'a> {
    pub(super) fn of(
        node: &'a Node,
        place: &Place<'_>,
        what: &'static str,
        keys: &[&'static str],
    ) -> Result<Self, FileError> {
        let Data::Map(entries) = &node.data else {
            return Err(wrong(node, place, what));
        };
        for (nth, entry) in entries.iter().enumerate() {
            let place = place.key(&entry.key);
            if !keys.contains(&entry.key.as_str()) {
                return Err(place.fault(
                    entry.mark,
                    Fault::UnknownKey {
                        near: near(&entry.key, keys.iter().copied()),
                        found: super::tree::short(&entry.key),
                        keys: keys.join(", "),
                    },
                ));
            }
            let before = entries.get(..nth).unwrap_or_default();
            if before.iter().any(|it| it.key == entry.key) {
                return Err(place.fault(entry.mark, Fault::SameKey(super::tree::short(&entry.key))));
            }
        }
        let mark = node.mark;
        Ok(Self { entries, mark })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|it| it.key == key);
        entry.map(|it| &it.value)
    }

    pub(super) fn need(&self, key: &'static str, place: &Place<'_>) -> Result<&'a Node, FileError> {
        self.get(key)
            .ok_or_else(|| place.fault(self.mark, Fault::NoKey(key)))
    }

    /// The number of these keys that are present.
    pub(super) fn count(&self, keys: &[&str]) -> usize {
        let is_there = |it: &&Entry| keys.contains(&it.key.as_str());
        self.entries.iter().filter(is_there).count()
    }

    pub(super) fn millis(&self, key: &str, place: &Place<'_>) -> Result<Option<Span>, FileError> {
        let node = self.get(key);
        node.map(|it| millis(it, &place.key(key))).transpose()
    }

    /// Reads milliseconds above zero.
    pub(super) fn some_millis(
        &self,
        key: &str,
        place: &Place<'_>,
    ) -> Result<Option<Span>, FileError> {
        match (self.millis(key, place)?, self.get(key)) {
            (Some(Span::ZERO), Some(node)) => Err(place.key(key).fault(node.mark, Fault::Zero)),
            (span, _) => Ok(span),
        }
    }
}

/// Returns true if an object has this key.
pub(super) fn has(node: &Node, key: &str) -> bool {
    match &node.data {
        Data::Map(entries) => entries.iter().any(|it| it.key == key),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Word(_) | Data::List(_) => false,
    }
}

pub(super) fn wrong(node: &Node, place: &Place<'_>, wanted: &'static str) -> FileError {
    let found = node.shown();
    place.fault(node.mark, Fault::Wrong { found, wanted })
}

pub(super) fn truth(node: &Node, place: &Place<'_>, what: &'static str) -> Result<bool, FileError> {
    match node.data {
        Data::Bool(it) => Ok(it),
        Data::Null | Data::Number(_) | Data::Word(_) | Data::List(_) | Data::Map(_) => {
            Err(wrong(node, place, what))
        }
    }
}

/// The entries of an object with names as keys: each once, and none of them empty.
pub(super) fn named<'a>(
    node: &'a Node,
    place: &Place<'_>,
    what: &'static str,
) -> Result<&'a [Entry], FileError> {
    let Data::Map(entries) = &node.data else {
        return Err(wrong(node, place, what));
    };
    let mut names = BTreeSet::new();
    for entry in entries {
        let place = place.key(&entry.key);
        check_name(&entry.key, entry.mark, &place)?;
        if !names.insert(entry.key.as_str()) {
            return Err(place.fault(entry.mark, Fault::SameKey(super::tree::short(&entry.key))));
        }
    }
    Ok(entries)
}

/// The entries of a list that is not empty.
pub(super) fn some<'a>(
    node: &'a Node,
    place: &Place<'_>,
    what: &'static str,
) -> Result<&'a [Node], FileError> {
    let nodes = list(node, place, what)?;
    if nodes.is_empty() {
        return Err(place.fault(node.mark, Fault::EmptyList));
    }
    Ok(nodes)
}

pub(super) fn list<'a>(
    node: &'a Node,
    place: &Place<'_>,
    what: &'static str,
) -> Result<&'a [Node], FileError> {
    match &node.data {
        Data::List(nodes) => Ok(nodes),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Word(_) | Data::Map(_) => {
            Err(wrong(node, place, what))
        }
    }
}

pub(super) fn word<'a>(
    node: &'a Node,
    place: &Place<'_>,
    what: &'static str,
) -> Result<&'a str, FileError> {
    match &node.data {
        Data::Word(text) => Ok(text),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::List(_) | Data::Map(_) => {
            Err(wrong(node, place, what))
        }
    }
}

/// A word that is not empty.
pub(super) fn name<'a>(node: &'a Node, place: &Place<'_>) -> Result<&'a str, FileError> {
    let name = word(node, place, "a name, in quotes")?;
    check_name(name, node.mark, place)?;
    Ok(name)
}

pub(super) fn check_name(name: &str, mark: Mark, place: &Place<'_>) -> Result<(), FileError> {
    if name.is_empty() {
        return Err(place.fault(mark, Fault::NoName));
    }
    check_length(name, mark, place)
}

fn check_length(text: &str, mark: Mark, place: &Place<'_>) -> Result<(), FileError> {
    let (found, limit) = (text.len(), LONGEST_WORD);
    if found > limit {
        return Err(place.fault(mark, Fault::LongWord { found, limit }));
    }
    Ok(())
}

pub(super) fn state(node: &Node, place: &Place<'_>) -> Result<State, FileError> {
    match &node.data {
        Data::Word(text) => {
            check_length(text, node.mark, place)?;
            Ok(State::Word(text.clone()))
        }
        Data::Number(text) => number(text)
            .map(State::Number)
            .ok_or_else(|| place.fault(node.mark, Fault::Inexact(node.shown()))),
        Data::Null | Data::Bool(_) | Data::List(_) | Data::Map(_) => Err(wrong(node, place, STATE)),
    }
}

pub(super) fn number(text: &str) -> Option<Number> {
    let thousandths = scaled(text, 3)?;
    Number::from_thousandths(thousandths.try_into().ok()?)
}

pub(super) fn whole(node: &Node, place: &Place<'_>, what: &'static str) -> Result<i128, FileError> {
    let found = match &node.data {
        Data::Number(text) => scaled(text, 0),
        Data::Null | Data::Bool(_) | Data::Word(_) | Data::List(_) | Data::Map(_) => None,
    };
    found.ok_or_else(|| wrong(node, place, what))
}

fn millis(node: &Node, place: &Place<'_>) -> Result<Span, FileError> {
    const WANTED: &str = "whole milliseconds from 0";
    let found = whole(node, place, WANTED)?;
    if found < 0 {
        return Err(place.fault(node.mark, Fault::Negative(node.shown())));
    }
    match u64::try_from(found) {
        Ok(found) if found <= LONGEST => Ok(Span::millis(found)),
        Ok(_) | Err(_) => Err(place.fault(
            node.mark,
            Fault::TooLong {
                found: node.shown(),
                limit: LONGEST,
            },
        )),
    }
}

/// A key and its value, for writing.
pub(super) fn entry(key: &str, value: impl Into<Node>) -> Entry {
    Entry {
        key: key.into(),
        mark: Mark::default(),
        value: value.into(),
    }
}

/// A state, for writing.
pub(super) fn shown(state: &State) -> Node {
    match state {
        State::Word(word) => Data::Word(word.clone()).into(),
        State::Number(number) => plain(number),
    }
}

/// A number, for writing: whole ones without a point.
pub(super) fn plain(number: impl alloc::string::ToString) -> Node {
    Data::Number(number.to_string()).into()
}

/// Words, for writing.
pub(super) fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Node {
    let nodes: Vec<Node> = words.into_iter().map(Node::from).collect();
    nodes.into()
}
