//! Storage that takes time, and its state after a crash.

use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Choose as _, Effect, Machine, Span};

use super::{Happened, Network, NodeCounters, Pending, What};
use crate::facts::Facts;

/// The time that a write to a node's storage takes, for any number of facts.
///
/// ```
/// use selvedge_core::Span;
/// use selvedge_sim::network::Storage;
/// let flash = Storage { latency: Span::millis(2), jitter: Span::millis(40) };
/// # let _ = flash;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Storage {
    /// The shortest time; less than 1 µs counts as 1 µs.
    pub latency: Span,
    /// The longest additional time; each length has the same chance.
    pub jitter: Span,
}

/// A node's storage, and the effects that wait for it.
pub(super) struct Disk<M: Machine> {
    /// The machine as this life began, with the facts folded that were stored in this life.
    pub(super) image: M,
    barrier: Barrier<Effect<M>>,
    /// The write in progress.
    write: Option<Write<M>>,
    /// The number of writes begun: it identifies a write that a crash ended.
    begun: u64,
}

struct Write<M: Machine> {
    number: u64,
    facts: Vec<M::Event>,
    mark: Mark,
}

impl<M: Machine> Disk<M> {
    pub(super) const fn new(image: M) -> Self {
        Self {
            image,
            // A simulated host takes every step: its memory is the memory of the test.
            barrier: Barrier::new(usize::MAX),
            write: None,
            begun: 0,
        }
    }

    /// Applies a crash: the first `kept` facts of the write in progress stay.
    pub(super) fn crash(&mut self, facts: Facts<M>, kept: u64, counters: &mut NodeCounters) {
        let unstored = self.barrier.unstored();
        let write = self.write.take();
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let kept = write.iter().flat_map(|it| &it.facts).take(kept);
        let mut stored = 0;
        for fact in kept {
            stored += 1;
            fold(facts, &mut self.image, fact, counters);
        }
        counters.facts_lost += unstored.saturating_sub(stored);
        self.barrier = Barrier::new(usize::MAX);
    }
}

fn fold<M: Machine>(facts: Facts<M>, image: &mut M, fact: &M::Event, counters: &mut NodeCounters) {
    match facts.fold(image, fact) {
        Ok(()) => counters.facts_stored += 1,
        Err(_) => counters.refused_facts += 1,
    }
}

impl<M: Durable> Network<M> {
    /// Gives every node storage for its facts, from now on: see [the module](super). Called before
    /// nodes are added; a node added earlier keeps its present state, as if that was stored.
    pub fn set_storage(&mut self, storage: Storage) {
        self.storage = Some((storage, Facts::new()));
        for slot in &mut self.nodes {
            if slot.disk.is_none() {
                slot.disk = Some(Disk::new(slot.driver.machine().clone()));
            }
        }
    }
}

impl<M: Machine> Network<M> {
    /// Leaves the effects of a step that wait for no fact.
    pub(super) fn keep_back(&mut self, node: usize) {
        let Some((_, facts)) = self.storage else {
            return;
        };
        let disk = self.nodes.get_mut(node).and_then(|it| it.disk.as_mut());
        let Some(disk) = disk else {
            return;
        };
        let ready = &mut self.ready;
        for effect in self.effects.drain(..) {
            let is_fact = matches!(&effect, Effect::Event(event) if facts.is_fact(event));
            if is_fact {
                disk.barrier.push_fact(effect);
            } else {
                disk.barrier.push(effect, |effect| ready.push(effect));
            }
        }
        core::mem::swap(&mut self.effects, &mut self.ready);
    }

    /// Writes all new facts, unless a write is in progress.
    pub(super) fn begin_write(&mut self, node: usize) {
        let Some((storage, _)) = self.storage else {
            return;
        };
        let disk = self.nodes.get_mut(node).and_then(|it| it.disk.as_mut());
        let Some(disk) = disk.filter(|it| it.write.is_none()) else {
            return;
        };
        let mut facts = Vec::new();
        let mark = disk.barrier.write(|effect| {
            if let Effect::Event(fact) = effect {
                facts.push(fact.clone());
            }
        });
        let Some(mark) = mark else {
            return;
        };
        disk.begun += 1;
        let number = disk.begun;
        disk.write = Some(Write {
            number,
            facts,
            mark,
        });
        let jitter = self.rng.below(storage.jitter.0.saturating_add(1));
        let after = Span(storage.latency.0.saturating_add(jitter).max(1));
        let write = number;
        self.queue
            .push(self.now + after, Pending::Write { node, write });
    }

    /// Completes a write, unless a crash ended it.
    pub(super) fn written(&mut self, node: usize, write: u64) -> Happened {
        let slot = self.nodes.get_mut(node);
        let (Some((_, facts)), Some(slot)) = (self.storage, slot) else {
            return Happened::Stored { node, facts: 0 };
        };
        let disk = slot.disk.as_mut();
        let Some((disk, done)) = disk.and_then(|disk| {
            let done = disk.write.take_if(|it| it.number == write)?;
            Some((disk, done))
        }) else {
            return Happened::Stored { node, facts: 0 };
        };
        for fact in &done.facts {
            fold(facts, &mut disk.image, fact, &mut slot.counters);
        }
        let effects = &mut self.effects;
        disk.barrier
            .stored(done.mark, |effect| effects.push(effect));
        let facts = done.facts.len();
        self.tracer.line(self.now, Some(node), What::Stored(facts));
        self.carry_out(node);
        self.begin_write(node);
        Happened::Stored { node, facts }
    }

    /// The number of facts of the write in progress that a crash keeps, by chance.
    pub(super) fn kept_by_crash(&mut self, node: usize) -> u64 {
        let disk = self.nodes.get(node).and_then(|it| it.disk.as_ref());
        let write = disk.and_then(|it| it.write.as_ref());
        // Nothing is drawn in a network without storage.
        let facts = write.map_or(0, |it| it.facts.len() as u64);
        self.rng.below(facts + 1)
    }

    /// The number of facts of `node` that are not stored.
    #[must_use]
    pub fn unstored(&self, node: usize) -> u64 {
        let disk = self.nodes.get(node).and_then(|it| it.disk.as_ref());
        disk.map_or(0, |it| it.barrier.unstored())
    }
}
