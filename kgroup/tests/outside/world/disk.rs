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
    pub(super) fn emitted(&mut self, node: NodeId, mut effects: Vec<Effect<Kgroup>>) {
        let now = self.now;
        let found = &self.nodes[&node];
        let from = Member::new(node.0, found.life);
        let machine = found.driver.as_ref().unwrap().machine();
        let mut seen = self.oracle.glimpse(node, machine);
        let mut given = Vec::new();
        for (index, effect) in effects.iter().enumerate() {
            if let Effect::Event(event) = effect {
                match Given::of(machine, event) {
                    Ok(it) => given.extend(it.map(|it| (index, it))),
                    Err(what) => self.oracle.fail(now, format!("{node}: {what}")),
                }
            }
        }
        let last_fact = effects.iter().rposition(|it| fact_of(it).is_some());
        if last_fact.is_none() {
            self.show(from, seen.take());
        }
        let mut given = given.into_iter().peekable();
        for (index, effect) in effects.drain(..).enumerate() {
            if let Some((_, given)) = given.next_if(|it| it.0 == index) {
                self.pass(from, Out::Given(Box::new(given)));
            }
            self.pass_effect(from, effect);
            if Some(index) == last_fact {
                self.show(from, seen.take());
            }
        }
        self.effects = effects; // Its room is used again.
        self.write(node);
        self.set_alarm(node, 1);
    }

    fn show(&mut self, from: Member, seen: Option<Box<Glimpse>>) {
        if let Some(seen) = seen {
            self.pass(from, Out::Seen(seen));
        }
    }

    /// Carries out an effect, or has it wait in the barrier.
    fn pass_effect(&mut self, from: Member, effect: Effect<Kgroup>) {
        let found = self.nodes.get_mut(&from.id).unwrap();
        if found.has_disk && fact_of(&effect).is_some() {
            found.barrier.push_fact(Out::Effect(Box::new(effect)));
        } else if found.waits() {
            self.pass(from, Out::Effect(Box::new(effect)));
        } else {
            self.carry_out_effect(from, effect);
        }
    }

    fn pass(&mut self, from: Member, item: Out) {
        let found = self.nodes.get_mut(&from.id).unwrap();
        let mut out = None;
        match found.has_disk {
            true => found.barrier.push(item, |it| out = Some(it)),
            false => out = Some(item),
        }
        if let Some(item) = out {
            self.carry_out(from, item);
        }
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
        let from = Member::new(node.0, life);
        for item in out {
            self.carry_out(from, item);
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

    fn carry_out(&mut self, from: Member, item: Out) {
        match item {
            Out::Effect(effect) => self.carry_out_effect(from, *effect),
            Out::Given(given) => self.oracle.commanded(self.now, *given),
            Out::Seen(seen) => self.oracle.look(self.now, from.id, *seen),
        }
    }

    fn carry_out_effect(&mut self, from: Member, effect: Effect<Kgroup>) {
        match effect {
            Effect::Send { to, message } => self.send(from, to.id, message),
            Effect::Multicast { message } => {
                let others = self.nodes.keys().copied().filter(|it| *it != from.id);
                for to in others.collect::<Vec<NodeId>>() {
                    self.send(from, to, message.clone());
                }
            }
            Effect::Event(event) => self.event(from.id, from.incarnation.0, &event),
        }
    }
}

fn fact_of(effect: &Effect<Kgroup>) -> Option<&Fact<GroupState>> {
    match effect {
        Effect::Event(event) => Kgroup::fact(event),
        Effect::Send { .. } | Effect::Multicast { .. } => None,
    }
}
