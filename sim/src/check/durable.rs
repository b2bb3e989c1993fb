//! Storage that takes time, and crashes that lose unstored facts.

use alloc::sync::Arc;

use selvedge_core::durable::Durable;
use selvedge_core::{Effect, Machine, Outbox};

use super::step::{Found, Scratch, Transition};
use super::successors::{panicked, plain, replace};
use super::{Action, Incomplete, Model, Node, Observer, State};
use crate::facts::Facts;
use crate::panics::caught;

/// A model's handling of its machines' facts.
pub(super) struct Durability<M: Machine> {
    facts: Facts<M>,
    /// The limit of waiting facts: a node with more of them takes no step.
    pub(super) unstored: usize,
}

// Derives would require that the machine itself be Copy.
impl<M: Machine> Clone for Durability<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Machine> Copy for Durability<M> {}

/// A node's storage, and the effects that wait for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Storage<M: Machine> {
    /// The machine as this life began, with the facts folded that were stored in this life.
    pub(super) image: M,
    /// Empty, or a fact that is not stored comes first.
    pub(super) waiting: Vec<Effect<M>>,
}

impl<M: Durable, O: Observer<M>> Model<M, O> {
    /// Makes the machines' facts durable, with storage that takes time: every effect after a fact
    /// waits until the fact is stored, which is a step of its own ([`Action::Store`]). A crash
    /// loses the last waiting facts, any number of them, and every effect behind them; a crash is
    /// also possible when facts are stored and some effects behind them are not carried out. What
    /// [remains](Self::restart) of a node is the machine as its life began, with its stored facts
    /// folded. The node restarts from it, unless [`restart`](Self::restart) is set.
    ///
    /// A node takes no step while more than `unstored` of its facts wait: 0 is a host that waits
    /// for each fact, and gives the fewest states; with more, facts of later steps wait behind
    /// facts of earlier ones.
    #[must_use]
    pub fn durable(mut self, unstored: usize) -> Self {
        let facts = Facts::new();
        self.durable = Some(Durability { facts, unstored });
        if self.restart.is_none() {
            self.restart = Some(Arc::new(|_, _, stored: &M| stored.clone()));
        }
        self
    }
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// The storage of a node at the beginning of a life.
    pub(super) fn empty_storage(&self, machine: &M) -> Option<Arc<Storage<M>>> {
        self.durable.as_ref()?;
        let storage = Storage {
            image: machine.clone(),
            waiting: Vec::new(),
        };
        Some(Arc::new(storage))
    }

    /// Returns true if this node's storage is so far behind that the node takes no step.
    pub(super) fn is_behind(&self, node: &Node<M>) -> bool {
        let Some(durable) = &self.durable else {
            return false;
        };
        let is_fact = |effect: &&Effect<M>| durable.is_fact(effect);
        node.waiting().iter().filter(is_fact).count() > durable.unstored
    }

    /// The storage of `node` after a step: with all effects from the first fact on, if none waits
    /// already. The other effects are returned; in a model without storage they stay in the outbox.
    pub(super) fn keep_back(
        &self,
        node: Option<&Node<M>>,
        outbox: &mut Outbox<M>,
    ) -> (Option<Arc<Storage<M>>>, Vec<Effect<M>>) {
        let storage = node.and_then(Node::storage);
        let (Some(durable), Some(storage)) = (&self.durable, storage) else {
            return (None, Vec::new());
        };
        let mut storage = Arc::clone(storage);
        let mut out: Vec<Effect<M>> = outbox.drain_effects().collect();
        let goes = match storage.waiting.is_empty() {
            true => out.iter().take_while(|it| !durable.is_fact(it)).count(),
            false => 0,
        };
        let kept = out.split_off(goes);
        if !kept.is_empty() {
            Arc::make_mut(&mut storage).waiting.extend(kept);
        }
        (Some(storage), out)
    }

    /// The machine that storage of `node` holds when it has the first `stored` of the facts that
    /// wait. `None` in a model without storage.
    pub(super) fn fold(
        &self,
        node_index: usize,
        node: &Node<M>,
        stored: usize,
    ) -> Result<Option<M>, Incomplete> {
        let (Some(durable), Some(storage)) = (&self.durable, node.storage()) else {
            return Ok(None);
        };
        let mut image = storage.image.clone();
        let facts = storage.waiting.iter().filter_map(|it| durable.fact(it));
        for fact in facts.take(stored) {
            let folded = durable.facts.fold(&mut image, fact);
            folded.map_err(|damage| Incomplete::Fold {
                node: node_index,
                damage,
            })?;
        }
        Ok(Some(image))
    }

    /// The points where a crash is possible: the numbers of further facts stored, and of waiting
    /// effects carried out. One write may store several facts before any effect behind them is
    /// carried out.
    pub(super) fn places(&self, node: &Node<M>) -> Vec<(usize, usize)> {
        let mut places = Vec::new();
        let mut stored = 0;
        for (nth, effect) in node.waiting().iter().enumerate() {
            let is_fact = self.durable.as_ref().is_some_and(|it| it.is_fact(effect));
            if is_fact {
                places.extend((0..=nth).map(|done| (stored, done)));
                stored += 1;
            }
        }
        places.extend((0..=node.waiting().len()).map(|done| (stored, done)));
        places
    }

    /// Stores the first waiting fact.
    pub(super) fn store(
        &self,
        state: &State<M, O>,
        index: usize,
        node: &Node<M>,
        scratch: &Scratch<M>,
        sink: &mut dyn FnMut(Transition<M, O>) -> Found,
    ) -> Found {
        let (Some(durable), Some(storage)) = (&self.durable, node.storage()) else {
            return Ok(());
        };
        if storage.waiting.is_empty() {
            return Ok(());
        }
        let behind = storage.waiting.iter().skip(1);
        let done = 1 + behind.take_while(|it| !durable.is_fact(it)).count();
        let action = Action::Store { node: index };
        let image = match caught(|| self.fold(index, node, 1)) {
            Ok(image) => image?,
            Err(why) => return sink(panicked(action, state, why)),
        };
        let mut out = storage.waiting.clone();
        let storage = Storage {
            image: image.unwrap_or_else(|| storage.image.clone()),
            waiting: out.split_off(done),
        };
        let effects = if scratch.record {
            out.clone()
        } else {
            Vec::new()
        };
        let mut next = state.clone();
        let (machine, member) = (node.machine().clone(), node.member());
        let storage = Some(Arc::new(storage));
        let stored = Node::new(machine, member, node.host.clone(), storage);
        replace(&mut next, index, stored);
        for effect in out {
            self.carry_out(&mut next, index, member, effect);
        }
        sink(Transition {
            effects,
            ..plain(action, next)
        })
    }
}

impl<M: Machine> Durability<M> {
    fn is_fact(&self, effect: &Effect<M>) -> bool {
        self.fact(effect).is_some()
    }

    /// The event that is a fact, if the effect is one.
    fn fact<'a>(&self, effect: &'a Effect<M>) -> Option<&'a M::Event> {
        match effect {
            Effect::Event(event) if self.facts.is_fact(event) => Some(event),
            Effect::Event(_) | Effect::Send { .. } | Effect::Multicast { .. } => None,
        }
    }
}
