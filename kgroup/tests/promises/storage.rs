//! How a life begins and ends, and what storage keeps of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Choose, Delta, Driver, Effect};
use selvedge_groups::Begin;
use selvedge_kgroup::{Command, Kgroup};

use crate::node::{Disk, Host, Item, Write};
use crate::world::{Real, What, World};

impl World {
    /// Hands storage what is new, if it is idle, or else sometimes.
    pub(crate) fn write(&mut self, id: u64) {
        let more = self.percent(30);
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        if !host.writes.is_empty() && !more {
            return;
        }
        let mut facts = Vec::new();
        let mark = host.barrier.write(|Item { effect, .. }| {
            if let Effect::Event(event) = effect {
                facts.extend(Kgroup::fact(event).cloned());
            }
        });
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
    }

    fn queue_write(&mut self, id: u64, mark: Mark, write: Write) {
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        host.writes.push_back((mark, write));
        let me = host.me;
        if host.writes.len() == 1 {
            let took = self.rng.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(me));
        }
    }

    /// Stores what all facts so far come to, in their place, of all groups or of one.
    pub(crate) fn snapshot(&mut self, id: u64) {
        let whole = self.percent(50);
        let groups = self.groups();
        let group = groups[self.below(groups.len() as u64) as usize];
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| node.stores) else {
            return;
        };
        let groups = host.driver.machine().groups();
        let write = match whole {
            true => Write::All(groups.stored().collect()),
            false => match groups.base(Some(group)) {
                Some(fact) => Write::Base(Box::new(fact)),
                None => return,
            },
        };
        // What is new of other groups comes before it.
        let mut facts = Vec::new();
        let mark = host.barrier.write(|Item { effect, .. }| {
            if let Effect::Event(event) = effect {
                facts.extend(Kgroup::fact(event).cloned());
            }
        });
        let last = host.barrier.last();
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
        self.queue_write(id, last, write);
    }

    pub(crate) fn written(&mut self, who: selvedge_core::Member) {
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
        self.stages(who.id.0);
        self.write(who.id.0);
        self.run(who.id.0);
    }

    /// Whether one more node may forget: f of each group at most do.
    pub(crate) fn may_forget(&self, id: u64) -> bool {
        let most = usize::from(self.failures());
        self.spent.contains(&id) || self.spent.len() < most
    }

    pub(crate) fn failures(&self) -> u8 {
        self.site.plan().unwrap().selection().failures
    }

    /// Stops a node. What is not stored is lost, with all that waits for it; storage may have kept
    /// a part of what it was handed.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real, is_told: bool) {
        let node = &self.nodes[&id];
        if node.host.is_none() || (!node.stores && !self.may_forget(id)) {
            return;
        }
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.stores {
            self.spent.insert(id);
        }
        let host = node.host.take().unwrap();
        let me = host.me;
        if let Some((_, Write::Facts(mut facts))) = host.writes.into_iter().next() {
            let kept = self.rng.below(facts.len() as u64 + 1);
            facts.truncate(kept as usize);
            node.disk.take(Write::Facts(facts));
        }
        if self.rng.below(2) == 0 {
            node.disk.compact();
        }
        node.life += 1 + self.rng.below(2) as u32;
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += self.now - since;
        }
        self.say(|| format!("{me:?} stops"));
        self.restarts += 1;
        self.at(self.now + restart_after, What::Restart(id));
        self.runs.stopped(me);
        if is_told {
            let delta = match self.below(3) {
                0 => Delta::Left(me),
                1 => Delta::Confirmed(me),
                _ => Delta::Failed(me),
            };
            self.spread(delta);
        }
    }

    /// All stop at once, and keep what they stored.
    pub(crate) fn blackout(&mut self) {
        for id in self.ids() {
            let after = self.below(3_000_000);
            let told = self.percent(20);
            self.crash(id, after, told);
        }
    }

    /// A node that stores loses its storage, and stores no more.
    pub(crate) fn lose_storage(&mut self, id: u64, after: Real) {
        if !self.nodes[&id].stores || self.nodes[&id].host.is_none() || !self.may_forget(id) {
            return;
        }
        self.nodes.get_mut(&id).unwrap().stores = false;
        self.crash(id, after, true);
        self.nodes.get_mut(&id).unwrap().disk = Disk::default();
    }

    /// Begins the node's next life.
    pub(crate) fn start(&mut self, id: u64) {
        let never = self.never.contains(&id);
        let site = Arc::clone(&self.site);
        let node = self.nodes.get_mut(&id).unwrap();
        if node.host.is_some() || never {
            return;
        }
        let me = node.member();
        let begin = match node.was_up && !node.stores {
            true => Begin::Again,
            false => Begin::First,
        };
        node.was_up = true;
        let mut machine = Kgroup::new(me, node.config, site, begin).unwrap();
        if node.stores {
            for fact in &node.disk.facts {
                machine.fold(fact).unwrap();
            }
        }
        node.host = Some(Host {
            me,
            driver: Driver::new(machine),
            barrier: Barrier::new(node.limit),
            writes: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
            watches: BTreeSet::new(),
            shown: BTreeMap::new(),
        });
        node.asleep = false;
        self.say(|| format!("{me:?} begins, {begin:?}"));
        let epoch = self.epoch;
        self.command(id, Command::Epoch(epoch));
        for other in self.ids() {
            if other == id {
                continue;
            }
            if self.percent(70) {
                self.tell(other, Delta::Joined(me));
            }
            let there = self.nodes[&other].host.as_ref().map(|it| it.me);
            if let Some(there) = there.filter(|_| self.percent(70)) {
                self.tell(id, Delta::Joined(there));
            }
        }
        self.ask_again(id);
    }
}
