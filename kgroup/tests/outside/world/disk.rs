//! Disks: the facts of a step are stored before others see its effects.

use selvedge_core::durable::{Durable, Mark};
use selvedge_core::{Effect, Member, NodeId};
use selvedge_groups::Fact;
use selvedge_kgroup::{GroupState, Kgroup};

use super::{Ev, World};
use crate::oracle::{Given, Glimpse};

/// An effect that waits in a barrier, or the state of a node as others see it: a crash takes back everything that
/// is not stored.
pub(super) enum Out {
    Effect(Box<Effect<Kgroup>>),
    Given(Box<Given>),
    Seen(Box<Glimpse>),
}

impl World {
    /// The effects of a step: through the barrier where the node has a disk.
    pub(super) fn emitted(&mut self, node: NodeId, effects: Vec<Effect<Kgroup>>) {
        let now = self.now;
        let found = self.nodes.get_mut(&node).unwrap();
        let machine = found.driver.as_ref().unwrap().machine();
        let seen = self.oracle.glimpse(node, machine);
        let last_fact = effects.iter().rposition(|it| fact_of(it).is_some());
        let mut items = Vec::new();
        for (index, effect) in effects.into_iter().enumerate() {
            if let Effect::Event(event) = &effect {
                match Given::of(machine, event) {
                    Ok(Some(given)) => items.push(Out::Given(Box::new(given))),
                    Ok(None) => {}
                    Err(what) => self.oracle.fail(now, format!("{node}: {what}")),
                }
            }
            items.push(Out::Effect(Box::new(effect)));
            if Some(index) == last_fact {
                items.push(Out::Seen(Box::new(seen.clone())));
            }
        }
        if last_fact.is_none() {
            items.insert(0, Out::Seen(Box::new(seen)));
        }
        let mut out = Vec::new();
        let found = self.nodes.get_mut(&node).unwrap();
        for item in items {
            if !found.has_disk {
                out.push(item);
            } else if matches!(&item, Out::Effect(effect) if fact_of(effect).is_some()) {
                found.barrier.push_fact(item);
            } else {
                found.barrier.push(item, |it| out.push(it));
            }
        }
        for item in out {
            self.carry_out(node, item);
        }
        self.write(node);
        self.set_alarm(node);
    }

    fn write(&mut self, node: NodeId) {
        let storage = self.faults.storage;
        let found = self.nodes.get_mut(&node).unwrap();
        if found.writing.is_some() || found.driver.is_none() {
            return;
        }
        let mut facts = Vec::new();
        let store = |it: &Out| match it {
            Out::Effect(effect) => facts.extend(fact_of(effect).cloned()),
            Out::Given(_) | Out::Seen(_) => {}
        };
        let Some(mark) = found.barrier.write(store) else {
            return;
        };
        found.writing = Some(facts);
        let life = found.life;
        if storage == 0 {
            self.stored(node, life, mark);
        } else {
            let after = self.dice.below(storage);
            self.after(after, Ev::Stored { node, life, mark });
        }
    }

    pub(super) fn stored(&mut self, node: NodeId, life: u32, mark: Mark) {
        if !self.is_in(node, life) {
            return;
        }
        let found = self.nodes.get_mut(&node).unwrap();
        found
            .disk
            .extend(found.writing.take().into_iter().flatten());
        let mut out = Vec::new();
        found.barrier.stored(mark, |it| out.push(it));
        for effect in out {
            self.carry_out(node, effect);
        }
        self.write(node);
        self.compact(node);
    }

    /// Replaces stored facts by fewer ones, in each of the ways that the pages allow.
    fn compact(&mut self, node: NodeId) {
        if self.nodes[&node].disk.len() < 40 || !self.dice.percent(20) {
            return;
        }
        let found = self.nodes.get_mut(&node).unwrap();
        let machine = found.driver.as_ref().unwrap().machine();
        if found.barrier.unstored() == 0 && found.writing.is_none() {
            found.disk = machine.groups().stored().collect();
        } else {
            let mut kept: Vec<Fact<GroupState>> = Vec::new();
            for fact in found.disk.drain(..) {
                if fact.is_base() {
                    kept.retain(|it| it.group() != fact.group());
                }
                kept.push(fact);
            }
            found.disk = kept;
        }
    }

    fn carry_out(&mut self, node: NodeId, item: Out) {
        let effect = match item {
            Out::Effect(effect) => *effect,
            Out::Given(given) => return self.oracle.commanded(self.now, *given),
            Out::Seen(seen) => return self.oracle.look(self.now, node, *seen),
        };
        let found = &self.nodes[&node];
        let (life, from) = (found.life, Member::new(node.0, found.life));
        match effect {
            Effect::Send { to, message } => self.send(from, to.id, message),
            Effect::Multicast { message } => {
                let to: Vec<NodeId> = self
                    .nodes
                    .keys()
                    .copied()
                    .filter(|it| *it != node)
                    .collect();
                for to in to {
                    self.send(from, to, message.clone());
                }
            }
            Effect::Event(event) => self.event(node, life, event),
        }
    }
}

fn fact_of(effect: &Effect<Kgroup>) -> Option<&Fact<GroupState>> {
    match effect {
        Effect::Event(event) => Kgroup::fact(event),
        Effect::Send { .. } | Effect::Multicast { .. } => None,
    }
}
