//! Breadth-first search through all states.

use alloc::collections::VecDeque;
use core::ops::ControlFlow;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use selvedge_core::Machine;

use super::fingerprint::Fingerprint;
use super::progress::Edges;
use super::property::Kind;
use super::step::Scratch;
use super::{Incomplete, Limits, Model, Observer, State};

/// The origin of a state: the state from which it was first reached, and the transition.
#[derive(Clone, Copy)]
struct Origin {
    from: u32,
    by: u32,
}

/// The parent of an initial state.
const NOWHERE: u32 = u32::MAX;

/// The number of states between two progress reports to the caller.
const NEWS: usize = 1 << 15;

/// The result of a search.
pub(super) struct Search {
    /// The numbers of all states, by fingerprint. A slot takes 5 bytes, so a table that doubles moves little.
    numbers: HashTable<u32>,
    /// The fingerprint of each state, by number.
    fingerprints: Vec<Fingerprint>,
    origins: Vec<Origin>,
    /// Steps from an initial state to the deepest state.
    pub(super) depth: usize,
    pub(super) end: End,
    /// For each property, whether a state was found in which it is true. Only for `sometimes`.
    pub(super) met: Vec<bool>,
    /// For each progress property, the states in which it is asked for (1) and reached (2).
    pub(super) marks: Vec<(usize, Vec<u8>)>,
    pub(super) edges: Edges,
}

/// The end of a search.
pub(super) enum End {
    /// Every state was visited.
    Complete,
    Truncated(Incomplete),
    /// A property broke in this state.
    Broke {
        property: usize,
        state: u32,
    },
    /// A property broke in a step out of this state: by this transition.
    Refused {
        property: usize,
        state: u32,
        by: u32,
    },
    /// A machine panicked in a step out of this state: by this transition.
    Panicked {
        state: u32,
        by: u32,
    },
}

impl Search {
    pub(super) const fn states(&self) -> usize {
        self.origins.len()
    }

    /// The transitions that lead to a state: its initial state's place, and from there the place
    /// of each transition among its state's.
    pub(super) fn way(&self, state: u32) -> (usize, Vec<u32>) {
        let mut way = Vec::new();
        let mut at = state;
        loop {
            let Some(origin) = self.origins.get(at as usize) else {
                return (0, way);
            };
            if origin.from == NOWHERE {
                way.reverse();
                return (origin.by as usize, way);
            }
            way.push(origin.by);
            at = origin.from;
        }
    }

    fn new<M: Machine, O>(model: &Model<M, O>) -> Self {
        let progress = model.properties.iter().enumerate();
        let progress =
            progress.filter(|(_, property)| matches!(property.kind, Kind::Progress { .. }));
        let marks: Vec<_> = progress.map(|(at, _)| (at, Vec::new())).collect();
        Self {
            numbers: HashTable::new(),
            fingerprints: Vec::new(),
            origins: Vec::new(),
            depth: 0,
            end: End::Complete,
            met: vec![false; model.properties.len()],
            edges: Edges::new(!marks.is_empty()),
            marks,
        }
    }

    /// The number of a state; whether it is new; and the property that breaks in it.
    fn meet<M: Machine, O: Observer<M>>(
        &mut self,
        model: &Model<M, O>,
        state: &State<M, O>,
        origin: Origin,
        limit: usize,
    ) -> Result<(u32, bool), End> {
        let fresh = u32::try_from(self.origins.len()).unwrap_or(NOWHERE);
        let fingerprint = Fingerprint::of(state);
        let fingerprints = &self.fingerprints;
        let of = |&number: &u32| fingerprints.get(number as usize).copied();
        let number = match self.numbers.entry(
            fingerprint.as_u64(),
            |number| of(number) == Some(fingerprint),
            |number| of(number).map_or(0, Fingerprint::as_u64),
        ) {
            Entry::Occupied(known) => return Ok((*known.get(), false)),
            Entry::Vacant(slot) => *slot.insert(fresh).get(),
        };
        if self.origins.len() >= limit.min(NOWHERE as usize) {
            return Err(End::Truncated(Incomplete::States { limit }));
        }
        self.fingerprints.push(fingerprint);
        self.origins.push(origin);
        for (at, property) in model.properties.iter().enumerate() {
            match &property.kind {
                Kind::Always(condition) => {
                    if !condition(state) {
                        return Err(End::Broke {
                            property: at,
                            state: number,
                        });
                    }
                }
                Kind::Sometimes(condition) => {
                    if let Some(met) = self.met.get_mut(at)
                        && !*met
                    {
                        *met = condition(state);
                    }
                }
                Kind::Progress { from, goal } => {
                    let mark = u8::from(from(state)) | u8::from(goal(state)) << 1;
                    if let Some((_, marks)) = self.marks.iter_mut().find(|(of, _)| *of == at) {
                        marks.push(mark);
                    }
                }
                Kind::NeverRejects => {}
            }
        }
        Ok((number, true))
    }
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Visits every reachable state, nearest first, until a property breaks or a limit is met.
    pub(super) fn search(
        &self,
        limits: &Limits,
        news: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Search {
        let mut search = Search::new(self);
        if let Err(end) = self.explore(&mut search, limits, news) {
            search.end = end;
        }
        search
    }

    fn explore(
        &self,
        search: &mut Search,
        limits: &Limits,
        news: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<(), End> {
        if let Some(defect) = self.defect() {
            return Err(End::Truncated(defect));
        }
        if self.properties.is_empty() {
            return Err(End::Truncated(Incomplete::NoProperty));
        }
        let never_rejects = self
            .properties
            .iter()
            .position(|property| matches!(property.kind, Kind::NeverRejects));
        let mut scratch = Scratch::new(limits.choices, false);
        let mut frontier = VecDeque::new();
        let mut cut = false;
        let within =
            |state: &State<M, O>| self.boundary.as_ref().is_none_or(|within| within(state));

        let initial = self.initial(&mut scratch).map_err(End::Truncated)?;
        for (by, state) in (0_u32..).zip(initial) {
            let origin = Origin { from: NOWHERE, by };
            let (_, new) = search.meet(self, &state, origin, limits.states)?;
            match new {
                true if within(&state) => frontier.push_back(Some(state)),
                true => {
                    cut = true;
                    frontier.push_back(None);
                }
                false => {}
            }
        }
        // Everything before this number is at most `depth` steps deep.
        let mut level_end = search.states();
        let mut from = 0_u32;
        while let Some(state) = frontier.pop_front() {
            if from as usize == level_end {
                search.depth += 1;
                level_end = search.states();
            }
            search.edges.begin();
            let mut end = None;
            let mut by = 0_u32;
            if let Some(state) = state {
                let outcome = self.successors(&state, &mut scratch, &mut |found| {
                    let origin = Origin { from, by };
                    by += 1;
                    if found.panicked.is_some() {
                        let (state, by) = (from, origin.by);
                        end = Some(End::Panicked { state, by });
                        return Err(Incomplete::Stopped);
                    }
                    if let (Some(property), true) = (never_rejects, found.refused.is_some()) {
                        let (state, by) = (from, origin.by);
                        end = Some(End::Refused {
                            property,
                            state,
                            by,
                        });
                        return Err(Incomplete::Stopped);
                    }
                    match search.meet(self, &found.next, origin, limits.states) {
                        Ok((number, new)) => {
                            if new {
                                let inside = within(&found.next);
                                cut |= !inside;
                                frontier.push_back(inside.then_some(found.next));
                            }
                            if !found.action.is_fault() {
                                search.edges.add(number);
                            }
                            Ok(())
                        }
                        Err(met) => {
                            end = Some(met);
                            Err(Incomplete::Stopped)
                        }
                    }
                });
                if let Err(why) = outcome {
                    return Err(end.unwrap_or(End::Truncated(why)));
                }
            }
            from += 1;
            if search.edges.overflowed() {
                return Err(End::Truncated(Incomplete::Transitions));
            }
            if (from as usize).is_multiple_of(NEWS) && news(search.states()).is_break() {
                return Err(End::Truncated(Incomplete::Stopped));
            }
        }
        if cut {
            return Err(End::Truncated(Incomplete::Boundary));
        }
        Ok(())
    }
}
