//! The names that a file knows: devices, groups and scenes; and how large it is written out.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::NodeId;

use super::tree::{Mark, Node, Place};
use super::{Fault, FileError, fields, near};
use crate::{Catalogue, Clause, State, Step};

/// The largest number of commands and parts of their conditions in the expanded form of a file.
pub(super) const LARGEST: usize = 1 << 18;

pub(super) struct Known {
    pub(super) catalogue: Catalogue,
    /// True if undeclared devices are refused.
    pub(super) is_declared: bool,
    pub(super) groups: BTreeMap<String, Vec<NodeId>>,
    pub(super) scenes: BTreeMap<String, Vec<(NodeId, State)>>,
    /// The places at which devices are named, if they are asked for.
    pub(super) uses: Option<Vec<Use>>,
    left: usize,
}

/// A place at which a device is named.
pub(super) struct Use {
    pub(super) device: NodeId,
    /// The state at that place.
    pub(super) state: Option<State>,
    pub(super) path: String,
    pub(super) mark: Mark,
}

impl Known {
    pub(super) const fn new(catalogue: Catalogue, keeps_uses: bool) -> Self {
        Self {
            catalogue,
            is_declared: false,
            groups: BTreeMap::new(),
            scenes: BTreeMap::new(),
            uses: if keeps_uses { Some(Vec::new()) } else { None },
            left: LARGEST,
        }
    }

    /// The device of this name.
    pub(super) fn device(&mut self, node: &Node, place: &Place<'_>) -> Result<NodeId, FileError> {
        let name = fields::name(node, place)?;
        self.find(name, node.mark, place)
    }

    pub(super) fn find(
        &mut self,
        name: &str,
        mark: Mark,
        place: &Place<'_>,
    ) -> Result<NodeId, FileError> {
        if !self.is_declared {
            return Ok(self.catalogue.id_or_new(name));
        }
        self.catalogue.id(name).ok_or_else(|| {
            let near = near(name, self.catalogue.iter().map(|it| it.1));
            let name = name.into();
            place.fault(mark, Fault::UnknownDevice { name, near })
        })
    }

    pub(super) fn group(&self, node: &Node, place: &Place<'_>) -> Result<Vec<NodeId>, FileError> {
        let name = fields::name(node, place)?;
        self.groups.get(name).cloned().ok_or_else(|| {
            let near = near(name, self.groups.keys().map(String::as_str));
            let name = name.into();
            place.fault(node.mark, Fault::UnknownGroup { name, near })
        })
    }

    pub(super) fn scene(
        &self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Vec<(NodeId, State)>, FileError> {
        let name = fields::name(node, place)?;
        self.scenes.get(name).cloned().ok_or_else(|| {
            let near = near(name, self.scenes.keys().map(String::as_str));
            let name = name.into();
            place.fault(node.mark, Fault::UnknownScene { name, near })
        })
    }

    /// Notes that a device is named, perhaps with a state.
    pub(super) fn note(
        &mut self,
        device: NodeId,
        state: Option<&State>,
        mark: Mark,
        place: &Place<'_>,
    ) {
        if let Some(uses) = &mut self.uses {
            uses.push(Use {
                device,
                state: state.cloned(),
                path: place.to_string(),
                mark,
            });
        }
    }

    /// Counts this many more commands and parts of conditions.
    pub(super) fn spend(
        &mut self,
        many: usize,
        mark: Mark,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        let limit = LARGEST;
        let left = self.left.checked_sub(many);
        self.left = left.ok_or_else(|| place.fault(mark, Fault::TooLarge { limit }))?;
        Ok(())
    }

    /// Adds the clause to the condition of each of the commands.
    pub(super) fn guard(
        &mut self,
        steps: &mut [Step<State>],
        clause: &Clause<State>,
        mark: Mark,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        // One more for the list that joins it with a command's own.
        let size = clause.size() + 1;
        self.spend(steps.len().saturating_mul(size), mark, place)?;
        for step in steps {
            let condition = match step.condition.take() {
                Some(own) => clause.clone().and(own),
                None => clause.clone(),
            };
            let (found, limit) = (condition.size(), Clause::<State>::MOST);
            if found > limit {
                return Err(place.fault(mark, Fault::LongCondition { found, limit }));
            }
            super::clauses::can_be(&condition, mark, place, &self.catalogue)?;
            step.condition = Some(condition);
        }
        Ok(())
    }

    /// Checks that no command changes a device in a condition that a later one still evaluates.
    pub(super) fn keep_apart(
        &self,
        steps: &[Step<State>],
        asked: &[&Clause<State>],
        mark: Mark,
        place: &Place<'_>,
    ) -> Result<(), FileError> {
        let mut before_last = steps.iter().rev().skip(1);
        let is_asked = |step: &&Step<State>| asked.iter().any(|it| it.asks(step.device));
        match before_last.find(is_asked) {
            Some(step) => {
                let name = self.catalogue.name(step.device).unwrap_or_default();
                Err(place.fault(mark, Fault::AsksWhatItSets(name.into())))
            }
            None => Ok(()),
        }
    }
}
