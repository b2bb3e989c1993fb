//! The network carries out effects: messages travel, events are kept.

use selvedge_core::{Choose as _, Effect, Input, Machine, Member, Ratio};

use super::link::{Fate, Link};
use super::routes::Route;
use super::{Happened, Loss, Multicasts, Network, Pending, What};

/// A copy of a message that will arrive, unless its receiver cannot be reached then.
pub(super) struct Envelope<M: Machine> {
    from: Member,
    from_node: usize,
    to: usize,
    bytes: u64,
    message: M::Message,
}

impl<M: Machine> Network<M> {
    /// Carries out the effects of the last step of `node`.
    pub(super) fn carry(&mut self, node: usize) {
        if let Some(identity) = self.identity
            && let Some(slot) = self.nodes.get_mut(node)
        {
            slot.member = identity(slot.driver.machine());
        }
        self.keep_back(node);
        self.carry_out(node);
        self.begin_write(node);
    }

    /// Carries out all effects in the outbox.
    pub(super) fn carry_out(&mut self, node: usize) {
        let mut effects = core::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => self.send(node, to, message),
                Effect::Multicast { message } => self.multicast(node, &message),
                Effect::Event(event) => self.notify(node, event),
            }
        }
        self.effects = effects;
    }

    fn send(&mut self, from_node: usize, to: Member, message: M::Message) {
        let what = What::Sent {
            to: Some(to),
            message: &message,
        };
        self.tracer.line(self.now, Some(from_node), what);
        let bytes = (self.size)(&message) as u64;
        let from = self.count_sent(from_node, bytes);
        self.counters.sent += 1;
        let receiver = self.by_id.get(&to.id).copied();
        let route = receiver.and_then(|to| {
            self.routes
                .route(&self.topology, &self.radio, from_node, to)
        });
        let (Some(to), Some(route)) = (receiver, route) else {
            self.lose(from_node, receiver, Loss::NoPath);
            return;
        };
        let payload: Envelope<M> = Envelope {
            from,
            from_node,
            to,
            bytes,
            message,
        };
        if self.rng_chance_of_duplicate() {
            self.counters.duplicated += 1;
            let copy = Envelope {
                message: payload.message.clone(),
                ..payload
            };
            self.dispatch(copy, route, route.hops);
        }
        self.dispatch(payload, route, route.hops);
    }

    fn multicast(&mut self, from_node: usize, message: &M::Message) {
        let what = What::Sent { to: None, message };
        self.tracer.line(self.now, Some(from_node), what);
        let bytes = (self.size)(message) as u64;
        let from = self.count_sent(from_node, bytes);
        self.counters.multicasts += 1;
        if self.multicasts == Multicasts::Reliable {
            self.tell_everyone(from_node, from, bytes, message);
            return;
        }
        add(&mut self.counters.hop_bytes, bytes);
        let mut neighbours = core::mem::take(&mut self.neighbours);
        neighbours.extend(self.topology.neighbours(from_node));
        let sharers = u32::try_from(neighbours.len()).unwrap_or(u32::MAX);
        for to in neighbours.drain(..) {
            // A place that no node has taken yet, or a place beyond a partition, receives nothing.
            if to >= self.nodes.len() || !self.radio.same_side(from_node, to) {
                continue;
            }
            self.counters.sent += 1;
            let copies = 1 + u8::from(self.rng_chance_of_duplicate());
            self.counters.duplicated += u64::from(copies) - 1;
            for _ in 0..copies {
                let payload: Envelope<M> = Envelope {
                    from,
                    from_node,
                    to,
                    bytes,
                    message: message.clone(),
                };
                self.dispatch(payload, Route { hops: 1, sharers }, 0);
            }
        }
        self.neighbours = neighbours;
    }

    /// Sends a copy to each other node that has a path; no copy is lost on its way.
    fn tell_everyone(&mut self, from_node: usize, from: Member, bytes: u64, message: &M::Message) {
        let lossless = Link {
            loss: Ratio::NEVER,
            ..self.link
        };
        for to in (0..self.nodes.len()).filter(|&to| to != from_node) {
            let route = self
                .routes
                .route(&self.topology, &self.radio, from_node, to);
            let Some(route) = route else {
                continue;
            };
            self.counters.sent += 1;
            let fate = lossless.travel(route, bytes, &mut self.rng);
            let payload = Envelope {
                from,
                from_node,
                to,
                bytes,
                message: message.clone(),
            };
            self.send_off(payload, route, fate, route.hops);
        }
    }

    /// Lets one copy travel; at most `transmissions` hops of it are counted in bytes.
    fn dispatch(&mut self, payload: Envelope<M>, route: Route, transmissions: u16) {
        let fate = self.fate(&payload, route);
        self.send_off(payload, route, fate, transmissions);
    }

    /// The fate of a copy, between its two ends and at them.
    fn fate(&mut self, payload: &Envelope<M>, route: Route) -> Fate {
        let (from, to) = (payload.from_node, payload.to);
        if from != to && self.is_lost_by(from) {
            return Fate::Lost { hop: 1 };
        }
        let fate = self.link.travel(route, payload.bytes, &mut self.rng);
        if matches!(fate, Fate::Arrives { .. }) && from != to && self.is_lost_by(to) {
            return Fate::Lost { hop: route.hops };
        }
        fate
    }

    /// Returns true if a node loses a copy by itself. Draws nothing for nodes that never do.
    fn is_lost_by(&mut self, node: usize) -> bool {
        let loss = self.nodes.get(node).map_or(Ratio::NEVER, |slot| slot.loss);
        loss.numerator > 0 && self.rng.chance(loss)
    }

    fn send_off(&mut self, payload: Envelope<M>, route: Route, fate: Fate, transmissions: u16) {
        let travelled = match fate {
            Fate::Arrives { .. } => route.hops,
            Fate::Lost { hop } => hop,
        };
        let transmitted = payload
            .bytes
            .saturating_mul(u64::from(travelled.min(transmissions)));
        add(&mut self.counters.hop_bytes, transmitted);
        match fate {
            Fate::Arrives { after } => {
                self.in_flight += 1;
                self.queue
                    .push(self.now + after, Pending::Envelope(payload));
            }
            Fate::Lost { .. } => self.lose(payload.from_node, Some(payload.to), Loss::Hop),
        }
    }

    pub(super) fn arrive(&mut self, payload: Envelope<M>) -> Happened {
        self.in_flight -= 1;
        let node = payload.to;
        if let Some(why) = self.obstacle(&payload) {
            self.lose(node, Some(node), why);
            return Happened::Lost { node, why };
        }
        let what = What::Got {
            from: payload.from,
            message: &payload.message,
        };
        self.tracer.line(self.now, Some(node), what);
        self.counters.delivered += 1;
        if let Some(slot) = self.nodes.get_mut(node) {
            slot.counters.received += 1;
            add(&mut slot.counters.bytes_received, payload.bytes);
        }
        let input = Input::Message {
            from: payload.from,
            message: payload.message,
        };
        // A rejection is counted and traced; a network has no host to report it to.
        drop(self.feed(node, input));
        Happened::Delivered { node }
    }

    fn obstacle(&self, payload: &Envelope<M>) -> Option<Loss> {
        if !self.radio.same_side(payload.from_node, payload.to) {
            return Some(Loss::Partition);
        }
        if !self.radio.is_up(payload.to) {
            return Some(Loss::Down);
        }
        let awake = self
            .nodes
            .get(payload.to)
            .is_some_and(|slot| slot.is_awake(self.now));
        (!awake).then_some(Loss::Asleep)
    }

    fn lose(&mut self, node: usize, to: Option<usize>, why: Loss) {
        self.counters.count_loss(why);
        self.tracer
            .line(self.now, Some(node), What::Lost { to, why });
    }

    fn notify(&mut self, node: usize, event: M::Event) {
        self.tracer.line(self.now, Some(node), What::Event(&event));
        if let Some(delta) = self.learned.and_then(|learned| learned(&event))
            && let Some(slot) = self.nodes.get(node)
        {
            self.membership.push(self.now, slot.member.id, delta);
        }
        if self.keep_events {
            self.events.push((self.now, node, event));
        }
    }

    /// Counts at the sender; returns the sender's member.
    fn count_sent(&mut self, node: usize, bytes: u64) -> Member {
        add(&mut self.counters.bytes, bytes);
        let Some(slot) = self.nodes.get_mut(node) else {
            return Member::default();
        };
        slot.counters.sent += 1;
        add(&mut slot.counters.bytes_sent, bytes);
        slot.member
    }

    fn rng_chance_of_duplicate(&mut self) -> bool {
        self.rng.chance(self.link.duplicate)
    }
}

/// Sizes come from a user's function, so sums of them may be anything.
const fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}
