//! How a life begins and ends, and what storage keeps of it.

use std::collections::{BTreeMap, VecDeque};

use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member};
use selvedge_replica::Event;

use crate::node::{Disk, Host, Item, Write};
use crate::world::{Machine, Real, What, World};

impl World {
    /// Hands storage what is new, if it is idle, or else sometimes.
    pub(crate) fn write(&mut self, id: u64) {
        let more = self.percent(30);
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        if !host.writes.is_empty() && !more {
            return;
        }
        let mut facts = Vec::new();
        let mark = host.barrier.write(|item| {
            if let Item::Effect(Effect::Event(Event::Fact(fact))) = item {
                facts.push(fact.clone());
            }
        });
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
    }

    pub(crate) fn queue_write(&mut self, id: u64, mark: Mark, write: Write) {
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        host.writes.push_back((mark, write));
        let me = host.me;
        if host.writes.len() == 1 {
            let took = self.rng.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(me));
        }
    }

    /// Stores a base in place of all facts so far.
    pub(crate) fn snapshot(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| node.stores) else {
            return;
        };
        let base = host.driver.machine().stored();
        host.barrier.write(|_| {});
        let mark = host.barrier.last();
        self.queue_write(id, mark, Write::Base(Box::new(base)));
    }

    pub(crate) fn written(&mut self, who: Member) {
        let node = self.nodes.get_mut(&who.id.0).unwrap();
        let Some(host) = node.host.as_mut().filter(|it| it.me == who) else {
            return;
        };
        let (mark, write) = host.writes.pop_front().unwrap();
        node.disk.take(write);
        let mut out = Vec::new();
        host.barrier.stored(mark, |it| out.push(it));
        let more = !host.writes.is_empty();
        for item in out {
            self.carry_out(who, item);
        }
        if more {
            let took = self.rng.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(who));
        }
        self.write(who.id.0);
        self.run(who.id.0);
    }

    /// Stops a node. What is not stored is lost, with all that waits for it; storage may have kept
    /// a part of what it was handed.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real, is_told: bool) {
        let node = &self.nodes[&id];
        if node.host.is_none() || (!node.stores && !self.keeps_quorums(Some(id), false)) {
            return;
        }
        let node = self.nodes.get_mut(&id).unwrap();
        let host = node.host.take().unwrap();
        let me = host.me;
        if let Some((_, Write::Facts(mut facts))) = host.writes.into_iter().next() {
            let kept = self.rng.below(facts.len() as u64 + 1);
            facts.truncate(kept as usize);
            node.disk.take(Write::Facts(facts));
        }
        node.life += 1;
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += self.now - since;
        }
        self.say(|| format!("{me:?} stops"));
        self.at(self.now + restart_after, What::Restart(id));
        if is_told {
            let others: Vec<u64> = self.nodes.keys().copied().filter(|&it| it != id).collect();
            for other in others {
                let delta = match self.below(4) {
                    0 => Delta::Confirmed(me),
                    1 => Delta::Left(me),
                    _ => Delta::Failed(me),
                };
                self.tell(other, delta);
            }
        }
    }

    /// Stops a node that stores facts. It loses them all.
    pub(crate) fn lose_storage(&mut self, id: u64, restart_after: Real) {
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.stores || node.host.is_none() {
            return;
        }
        node.stores = false;
        self.crash(id, restart_after, true);
        let node = self.nodes.get_mut(&id).unwrap();
        node.stores = true;
        if node.host.is_none() {
            node.disk = Disk::default();
            node.born = node.life;
        }
    }

    /// A node that has no part in the group any more drops its memory, and keeps its mark.
    pub(crate) fn drop_memory(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| !node.stores) else {
            return;
        };
        let machine = host.driver.machine();
        if !machine.is_over() {
            return;
        }
        let mark = machine.mark();
        let machine = Machine::newcomer_behind(host.me, node.config, mark).unwrap();
        assert!(machine.next_number() > host.driver.machine().next_number());
        host.driver = Driver::new(machine);
        host.tick_at = None;
        host.shown = 0;
        host.unavailable = false;
        let told: Vec<Delta> = host.told.values().copied().collect();
        self.dropped += 1;
        self.say(|| format!("{id} drops its memory, behind {mark}"));
        for delta in told {
            self.input(id, Input::Membership(delta));
        }
    }

    /// Begins the node's next life.
    pub(crate) fn start(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        if node.host.is_some() || node.never {
            return;
        }
        let me = Member::new(id, node.life);
        let config = node.config;
        let restored = node.stores.then(|| node.disk.base.clone()).flatten();
        let machine = match restored {
            Some(base) => {
                let mut machine = Machine::restore(me, config, base).unwrap();
                for fact in &node.disk.facts {
                    machine.fold(fact).unwrap();
                }
                machine
            }
            None if node.newcomer => Machine::newcomer(me, config).unwrap(),
            None => {
                let is_first = node.life == node.begins;
                let make = if is_first {
                    Machine::founder
                } else {
                    Machine::new
                };
                make(me, config, self.first.clone(), self.begin.clone()).unwrap()
            }
        };
        if node.stores && node.disk.base.is_none() {
            node.disk.base = Some(machine.stored());
        }
        assert_eq!(machine.voter(), node.voter());
        node.host = Some(Host {
            me,
            driver: Driver::new(machine),
            barrier: Barrier::new(node.limit),
            writes: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
            unavailable: false,
            next_read: 1,
            shown: 0,
            told: BTreeMap::new(),
        });
        node.asleep = false;
        self.restarts += u64::from(me.incarnation.0 > node.begins);
        self.say(|| format!("{me:?} begins"));
        let others: Vec<u64> = self.nodes.keys().copied().filter(|&it| it != id).collect();
        for other in others {
            if self.percent(70) {
                self.tell(other, Delta::Joined(me));
            }
            let host = &self.nodes[&other].host;
            if let Some(host) = host {
                let delta = Delta::Joined(host.me);
                if self.percent(70) {
                    self.tell(id, delta);
                }
            }
        }
    }
}
