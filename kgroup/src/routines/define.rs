//! Definitions that a routine gets while its group runs: the group follows the site that its leader's node
//! has.
//!
//! A definition takes its place while the routine is at rest, so each run has one: a run in progress ends
//! under the definition with which it began. Nodes adopt a later generation of the site one after another, so
//! two leaders may follow two generations; the group never goes back to a lower one.

use alloc::boxed::Box;
use alloc::vec;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_routine::Routine;

use super::machine::{Out, RoutineLeader};
use super::state::observes;
use super::{Decided, Definition, RoutineState, RoutineTimer, Stage, Update};
use crate::effect::Effect;

impl RoutineState {
    /// A routine of a later generation of the site, before its group has decided its definition. It runs
    /// nothing, and remembers no trigger. It is the first state after so many beginnings before, of
    /// which the memory was lost: runs have higher numbers than all before, since a device never goes
    /// back to a lower one.
    #[must_use]
    pub fn undefined(before: u64) -> Self {
        let mut state = Self::begin_with(Definition::new(Routine { steps: vec![] }));
        state.instance = before << 32;
        state
    }

    /// Returns true if its group has a definition.
    #[must_use]
    pub fn is_defined(&self) -> bool {
        !self.definition().routine.steps.is_empty()
    }

    /// The generation of the site that brought the present definition; 0 for the first one.
    #[must_use]
    pub const fn since(&self) -> u32 {
        self.since
    }

    /// The definition that takes its place after the present run, if there is one.
    #[must_use]
    pub fn pending(&self) -> Option<&Definition> {
        self.pending.as_deref().map(|it| &it.1)
    }

    /// The highest generation of a site by which its definition was changed; 0 before the first change.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.pending.as_deref().map_or(self.since, |it| it.0)
    }

    /// The definition that an update brings, if it changes anything.
    pub(super) fn judge_define(&self, generation: u32, bytes: &[u8]) -> Option<Definition> {
        let is_first = !self.is_defined() && self.pending.is_none();
        if generation <= self.generation() && !is_first && !self.rules.defines_late() {
            return None;
        }
        let definition: Definition = postcard::from_bytes(bytes).ok()?;
        definition.check().is_ok().then_some(definition)
    }

    pub(super) fn on_define(&mut self, generation: u32, bytes: &[u8]) -> Decided {
        let Some(definition) = self.judge_define(generation, bytes) else {
            return Decided::Nothing;
        };
        let begins_anew = !self.is_defined() && self.instance > 0;
        self.pending = Some(Box::new((generation, definition)));
        if self.stage == Stage::NotTriggered || self.rules.defines_at_once() {
            self.take_pending();
        }
        if begins_anew {
            // A run of which the memory was lost may hold devices.
            self.stage = Stage::ReleasingLocks { attempt: 1 };
        }
        Decided::Defined
    }

    /// No run is in progress: the pending definition takes its place. Its clause and its times count
    /// anew.
    pub(super) fn take_pending(&mut self) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        let (since, definition) = *pending;
        self.since = since;
        self.observed = observes(&definition);
        self.is_true = false;
        self.marks = vec![None; definition.triggers.len()];
        self.definition = definition;
    }
}

impl RoutineLeader {
    /// The same at a node with a site of this generation.
    #[must_use]
    pub const fn at(mut self, generation: u32) -> Self {
        self.generation = generation;
        self
    }

    /// Returns true if a site of this generation is later than the site by which it leads.
    pub const fn is_before(&self, generation: u32) -> bool {
        self.generation < generation
    }

    /// Compares the definition with the one of its node's site, and proposes that if it is later: when it
    /// begins to lead, and when the node adopts another site.
    pub fn sync(
        &mut self,
        state: &RoutineState,
        generation: u32,
        definition: Option<&Definition>,
        out: &mut Out,
    ) {
        self.generation = generation;
        let latest = state.pending().unwrap_or_else(|| state.definition());
        let Some(definition) = definition.filter(|it| *it != latest) else {
            return;
        };
        let definition = postcard::to_allocvec(definition).unwrap_or_default();
        let update = Update::Define {
            generation,
            definition,
        };
        self.propose(state, update, out);
        self.arm(out);
    }

    /// Returns true if the definition is another one than that by which it leads.
    pub fn is_outdated(&self, state: &RoutineState) -> bool {
        // A group that begins anew may get its definition from generation 0.
        let is_first = self.locks.is_empty() && state.is_defined();
        is_first || self.since != state.since()
    }

    /// Begins anew, as another leader would: the definition or the site is another one.
    pub fn renew(
        &mut self,
        state: &RoutineState,
        group_of: impl Fn(NodeId) -> Option<GroupId>,
        out: &mut Out,
    ) {
        let all = [
            RoutineTimer::Resend,
            RoutineTimer::Backoff,
            RoutineTimer::Command,
            RoutineTimer::Hold,
        ];
        out.extend(all.map(Effect::Disarm));
        let mut next = Self::new(self.config, self.routine, state, group_of);
        next.generation = self.generation;
        next.rules = self.rules;
        next.askers = core::mem::take(&mut self.askers);
        // Reads of before may still be answered.
        next.last = self.last;
        next.proposed = core::mem::take(&mut self.proposed);
        next.proposed.retain(|it| state.is_due(it));
        if !self.is_outdated(state) {
            next.clocks = core::mem::take(&mut self.clocks);
        }
        *self = next;
        self.on_leads(state, out);
    }
}
