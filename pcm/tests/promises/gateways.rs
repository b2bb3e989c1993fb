//! How lives begin and end, and what the storage of a gateway keeps.

use std::collections::{BTreeSet, VecDeque};

use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Delta, Driver, Member, NodeId};
use selvedge_pcm::client::Client;
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway};

use crate::node::{Disk, Host, In, Item, Machine, Role, Work, Write};
use crate::world::{Real, What, World};

impl World {
    /// Begins the node's next life.
    pub(crate) fn start(&mut self, id: u64) {
        let node = &self.nodes[&id];
        if node.host.is_some() || node.is_over {
            return;
        }
        let me = Member::new(id, node.life);
        let machine = match node.role.clone() {
            Role::Gateway { config, .. } => self.make_gateway(me, config),
            Role::Follower {
                config, gateways, ..
            } => {
                let gateways = gateways.into_iter().map(NodeId);
                let machine = Follower::new(me, config, gateways).unwrap();
                Machine::Follower(Box::new(Driver::new(machine)))
            }
            Role::Client { config, gateways } => {
                let gateways = gateways.into_iter().map(NodeId);
                let machine = Client::new(me, config, gateways).unwrap();
                Machine::Client(Box::new(Driver::new(machine)))
            }
        };
        let node = self.nodes.get_mut(&id).unwrap();
        let folded = match &machine {
            Machine::Gateway(it) => Some(Box::new(it.machine().clone())),
            Machine::Follower(_) | Machine::Client(_) => None,
        };
        node.paused = false;
        self.restarts += u64::from(node.life != node.begins);
        node.host = Some(Host {
            me,
            machine,
            barrier: Barrier::new(node.limit),
            writes: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
            shown: 0,
            work: Work::default(),
            unavailable: false,
            manages: false,
            gone: BTreeSet::new(),
            folded,
        });
        self.oracle.lives.insert(me);
        self.say(|| format!("{me:?} begins"));
        match self.nodes[&id].role {
            Role::Gateway { .. } => {
                self.input(id, In::Gateway(gateway::Command::Start));
                self.measure_hops(id);
                self.meet(me);
            }
            Role::Follower { .. } => self.input(id, In::Follower(follower::Command::Start)),
            Role::Client { .. } => {}
        }
    }

    fn make_gateway(&mut self, me: Member, config: gateway::Config) -> Machine {
        let others: Vec<NodeId> = self.gateways().into_iter().map(NodeId).collect();
        let others = others.into_iter().filter(|it| *it != me.id);
        let (first, limits) = (self.first.clone(), self.limits);
        let node = self.nodes.get_mut(&me.id.0).unwrap();
        let machine = match node.disk.base.clone().filter(|_| node.stores()) {
            Some(base) => {
                let mut machine = Gateway::restore(me, config, base, others).unwrap();
                for fact in &node.disk.facts {
                    machine.fold(fact).unwrap();
                }
                machine
            }
            None if node.is_founder && node.life == node.begins => {
                Gateway::new(me, config, first, limits).unwrap()
            }
            None => Gateway::newcomer(me, config, others).unwrap(),
        };
        if node.stores() && node.disk.base.is_none() {
            node.disk.base = Some(machine.replica().stored());
        }
        Machine::Gateway(Box::new(Driver::new(machine)))
    }

    /// Each gateway knows how far it is from the others.
    pub(crate) fn measure_hops(&mut self, id: u64) {
        let hops: Vec<((u64, u64), u8)> = self.hops.iter().map(|(it, to)| (*it, *to)).collect();
        for ((from, to), hops) in hops {
            if from == id {
                let to = NodeId(to);
                self.input(id, In::Gateway(gateway::Command::Hops { to, hops }));
            }
        }
    }

    /// Membership tells of a life, and tells that life of the others.
    fn meet(&mut self, me: Member) {
        if !self.weather.membership {
            return;
        }
        for other in self.gateways() {
            let host = self.nodes[&other].host.as_ref();
            let Some(them) = host.map(|it| it.me).filter(|it| *it != me) else {
                continue;
            };
            let after = self.below(200_000);
            self.at(self.now + after, What::Told(other, Delta::Joined(me)));
            self.at(self.now + after, What::Told(me.id.0, Delta::Joined(them)));
        }
    }

    /// Hands storage what is new, when it is free.
    pub(crate) fn write(&mut self, id: u64) {
        let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) else {
            return;
        };
        let mut facts = Vec::new();
        let mark = host.barrier.write(|it| {
            if let Item::Gateway(gateway::Event::Fact(fact)) = it {
                facts.push(fact.clone());
            }
        });
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
    }

    fn queue_write(&mut self, id: u64, mark: Mark, write: Write) {
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        let me = host.me;
        host.writes.push_back((mark, write));
        if host.writes.len() == 1 {
            let took = 1 + self.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(me));
        }
    }

    /// A gateway stores all that it holds, and needs its older facts no longer.
    pub(crate) fn snapshot(&mut self, id: u64) {
        self.write(id);
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.stores() {
            return;
        }
        let Some(base) = node.gateway().map(|it| it.replica().stored()) else {
            return;
        };
        let mark = node.host.as_ref().unwrap().barrier.last();
        self.queue_write(id, mark, Write::Base(Box::new(base)));
    }

    pub(crate) fn written(&mut self, who: Member) {
        if !self.is_up(who) {
            return;
        }
        let node = self.nodes.get_mut(&who.id.0).unwrap();
        let host = node.host.as_mut().unwrap();
        let (mark, write) = host.writes.pop_front().unwrap();
        node.disk.take(write);
        let mut out = Vec::new();
        host.barrier.stored(mark, |it| out.push(it));
        let more = !host.writes.is_empty();
        for item in out {
            self.carry_out(who, item);
        }
        if more {
            let took = 1 + self.below(self.weather.write + 1);
            self.at(self.now + took, What::Written(who));
        }
        self.write(who.id.0);
        self.run(who.id.0);
    }

    /// Stops a node. What is not stored is lost, with all that waits for it; storage may have kept a
    /// part of what it was handed. Whether it stopped.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real) -> bool {
        let node = &self.nodes[&id];
        let is_gateway = matches!(node.role, Role::Gateway { .. });
        if node.host.is_none() || (is_gateway && !node.stores() && !self.can_forget(id)) {
            return false;
        }
        let keeps_mail = self.percent(50);
        let part = self.below(1_000);
        let node = self.nodes.get_mut(&id).unwrap();
        let host = node.host.take().unwrap();
        let me = host.me;
        if let Some((_, Write::Facts(mut facts))) = host.writes.into_iter().next() {
            facts.truncate(part as usize % (facts.len() + 1));
            node.disk.take(Write::Facts(facts));
        }
        node.life = node.life.wrapping_add(1);
        if !node.stores() {
            node.born = node.life;
        }
        if !keeps_mail {
            node.mailboxes.clear();
        }
        self.say(|| format!("{me:?} stops"));
        self.at(self.now + restart_after, What::Restart(id));
        if is_gateway && self.weather.membership {
            for other in self.gateways() {
                let delta = match self.below(3) {
                    0 => Delta::Confirmed(me),
                    _ => Delta::Failed(me),
                };
                let after = self.below(2_000_000);
                self.at(self.now + after, What::Told(other, delta));
            }
        }
        true
    }

    /// A gateway that stores facts loses them all.
    pub(crate) fn lose_storage(&mut self, id: u64, restart_after: Real) {
        if !self.nodes[&id].stores() || !self.can_forget(id) || !self.crash(id, restart_after) {
            return;
        }
        let node = self.nodes.get_mut(&id).unwrap();
        node.disk = Disk::default();
        node.born = node.life;
    }

    /// Whether a quorum of the gateways that decide keeps its memory without this one. Asked for in
    /// quiet moments only: all are up, know the same configuration, and change it not.
    fn can_forget(&self, id: u64) -> bool {
        let mut number = None;
        let mut voters = Vec::new();
        for gateway in self.gateways() {
            let node = &self.nodes[&gateway];
            let Some(replica) = node.gateway().map(Gateway::replica) else {
                return node.is_over;
            };
            if replica.configuration().number == 0 {
                continue;
            }
            let same = *number.get_or_insert(replica.configuration().number);
            if same != replica.configuration().number || same < self.highest {
                return false;
            }
            voters = replica.configuration().members().collect();
        }
        let keeps = voters.iter().filter(|it| {
            let node = &self.nodes[&it.member.id.0];
            it.member.id.0 != id && node.gateway().is_some_and(|it| it.replica().votes())
        });
        voters.iter().all(|it| it.member.id.0 != id) || keeps.count() * 2 > voters.len()
    }

    pub(crate) fn gateway_event(&mut self, me: Member, event: gateway::Event) {
        if matches!(event, gateway::Event::Fact(_)) {
            return;
        }
        self.say(|| format!("{me:?} {event:?}"));
        if !self.is_up(me) {
            return;
        }
        let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
        match event {
            gateway::Event::Unavailable | gateway::Event::Available => {
                let is = event == gateway::Event::Unavailable;
                assert_ne!(host.unavailable, is, "{me:?}: {event:?} twice");
                host.unavailable = is;
            }
            gateway::Event::Manages | gateway::Event::Deposed => {
                let is = event == gateway::Event::Manages;
                assert_ne!(host.manages, is, "{me:?}: {event:?} twice");
                host.manages = is;
            }
            gateway::Event::Purged(it) => self.oracle.purged(me, it.0),
            gateway::Event::Gone(it) => {
                assert!(host.gone.insert(it.id.0), "{me:?}: {event:?} twice");
            }
            gateway::Event::Returned(it) => {
                // One that was never told of may have been gone from the beginning.
                host.gone.remove(&it.id.0);
            }
            _ => {}
        }
    }
}
