//! A host: when it steps its machine, and what it does with the effects.

use selvedge_core::durable::Durable;
use selvedge_core::{Effect, Input, Member};
use selvedge_groups as groups;
use selvedge_kgroup::{Event, Kgroup, LeaderEvent, Reject, devices};

use crate::node::{Host, Item, Waiting};
use crate::world::{Real, What, World};

impl World {
    pub(crate) fn input(&mut self, to: u64, input: Input<Kgroup>, sent: Real) {
        let host = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut());
        if let Some(host) = host {
            host.inbox.push_back(Waiting { input, sent });
            self.run(to);
        }
    }

    /// Whether nothing keeps the host from running.
    fn is_running(&self, id: u64) -> bool {
        let node = &self.nodes[&id];
        let ready = |host: &Host| host.barrier.ready().is_ok();
        !node.asleep && node.host.as_ref().is_some_and(ready)
    }

    /// Takes what waits, as far as storage allows.
    pub(crate) fn run(&mut self, id: u64) {
        if !self.weather.burst_first {
            self.expire(id);
        }
        while self.is_running(id) {
            let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
            let Some(Waiting { input, sent }) = host.inbox.pop_front() else {
                break;
            };
            let is_message = matches!(input, Input::Message { .. });
            if is_message && self.now - sent > self.weather.latest {
                continue; // No message is under way for longer.
            }
            self.step(id, Some(input)).ok();
        }
        self.expire(id);
    }

    pub(crate) fn expire(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let node = &self.nodes[&id];
        let now = node.local(self.now);
        let due = node.host.as_ref().unwrap().driver.deadline();
        if due.is_some_and(|it| it <= now) {
            self.step(id, None).ok();
        }
        self.schedule(id);
    }

    fn schedule(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let due = node.host.as_ref().and_then(|it| it.driver.deadline());
        let Some(due) = due.filter(|_| node.paused_at.is_none()) else {
            return;
        };
        let when = node.real(due, now);
        let scheduled = node.host.as_ref().unwrap().tick_at;
        if scheduled.is_none_or(|it| when < it) {
            node.host.as_mut().unwrap().tick_at = Some(when);
            self.at(when, What::Tick(id));
        }
    }

    /// One step of a machine: an input, or what is due.
    pub(crate) fn step(&mut self, id: u64, input: Option<Input<Kgroup>>) -> Result<(), Reject> {
        let real = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let (now, stores) = (node.local(real), node.stores);
        let host = node.host.as_mut().unwrap();
        let me = host.me;
        if self.trace {
            match &input {
                Some(input) => eprintln!("{real:>10} {me:?} <- {input:?}"),
                None => eprintln!("{real:>10} {me:?} <- due"),
            }
        }
        let mut effects = Vec::new();
        let outcome = match input {
            Some(input) => {
                let take = |it| effects.push(it);
                host.driver.step(now, &mut self.rng, input, take)
            }
            None => {
                let take = |it| effects.push(it);
                host.driver.expire(now, &mut self.rng, take);
                Ok(())
            }
        };
        assert_eq!(host.driver.refused_ticks(), 0);
        if let Err(reject) = &outcome {
            if self.trace {
                eprintln!("{real:>10} {me:?} refused: {reject}");
            }
            assert!(effects.is_empty());
            self.refused += 1;
        }
        let named: Vec<_> = effects.iter().map(|it| self.claim(id, it)).collect();
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        let mut out = Vec::new();
        for (effect, named) in effects.into_iter().zip(named) {
            let is_fact = match &effect {
                Effect::Event(event) => Kgroup::fact(event).is_some(),
                _ => false,
            };
            let said = real;
            let item = Item {
                effect,
                said,
                named,
            };
            if is_fact && stores {
                host.barrier.push_fact(item);
            } else {
                host.barrier.push(item, |it| out.push(it));
            }
        }
        for item in out {
            self.carry_out(me, item);
        }
        self.stages(id);
        self.write(id);
        self.schedule(id);
        outcome
    }

    pub(crate) fn carry_out(&mut self, me: Member, item: Item) {
        if let (Some(named), Effect::Event(Event::Leader { event, .. })) =
            (item.named, &item.effect)
            && let LeaderEvent::Devices(devices::Event::Act { ticket, .. }) = event
        {
            self.runs.name(*ticket, named);
        }
        match item.effect {
            Effect::Send { to, message } => self.send(me, to.id.0, message),
            Effect::Multicast { .. } => panic!("nothing is multicast"),
            Effect::Event(event) => self.event(me, item.said, event),
        }
    }

    fn event(&mut self, me: Member, said: Real, event: Event) {
        if !matches!(event, Event::Groups(groups::Event::Fact(_))) {
            self.say(|| format!("{me:?} {event:?}"));
        }
        match event {
            Event::Map { map, event } => self.answered(me, map, event),
            Event::Triggered { routine, id } => self.runs.triggered(me, routine, id),
            Event::Leader { group, event } => match event {
                LeaderEvent::Devices(devices::Event::Ping { device }) => self.ping(me, device),
                LeaderEvent::Devices(devices::Event::Act { ticket, value }) => {
                    self.act(me, said, ticket, value);
                }
                LeaderEvent::Routine(event) => self.runs.said(group, event),
                _ => {}
            },
            _ => {}
        }
    }

    pub(crate) fn sleep(&mut self, id: u64, long: Real) {
        let stop = self.weather.clocks_stop;
        let node = self.nodes.get_mut(&id).unwrap();
        if node.asleep || node.host.is_none() {
            return;
        }
        node.asleep = true;
        if stop {
            node.paused_at = Some(self.now);
        }
        self.say(|| format!("{id} sleeps for {long}"));
        self.at(self.now + long, What::Wake(id));
    }

    pub(crate) fn wake(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.asleep {
            return;
        }
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += now - since;
        }
        if let Some(host) = node.host.as_mut() {
            host.tick_at = None;
        }
        self.say(|| format!("{id} wakes"));
        self.run(id);
    }
}
