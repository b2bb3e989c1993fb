//! The beginning and the end of lives, and the content of a gateway's storage.

use selvedge_core::durable::Durable as _;
use selvedge_core::{Delta, Member, NodeId};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_sim::histories::{History, Life, Real, What, Write};

use crate::node::{Part, Role, to_gateway};
use crate::world::World;

impl World {
    pub(crate) fn make_gateway(&mut self, life: Life, config: gateway::Config) -> Gateway {
        let me = life.me;
        let others: Vec<NodeId> = self.gateways().into_iter().map(NodeId).collect();
        let others = others.into_iter().filter(|it| *it != me.id);
        let (first, limits) = (self.first.clone(), self.limits);
        let node = self.hosts.nodes.get_mut(&me.id.0).unwrap();
        let machine = match node.disk.base.clone() {
            Some(base) => {
                let mut machine = Gateway::restore(me, config, base, others).unwrap();
                for fact in &node.disk.facts {
                    machine.fold(fact).unwrap();
                }
                machine
            }
            None if node.own.is_founder && life.is_first => {
                Gateway::new(me, config, first, limits).unwrap()
            }
            None => Gateway::newcomer(me, config, others).unwrap(),
        };
        if node.stores && node.disk.base.is_none() {
            node.disk.base = Some(machine.replica().stored());
        }
        machine
    }

    /// Notifies a gateway of its distance from each other one.
    pub(crate) fn measure_hops(&mut self, id: u64) {
        let hops: Vec<((u64, u64), u8)> = self.hops.iter().map(|(it, to)| (*it, *to)).collect();
        for ((from, to), hops) in hops {
            if from == id {
                let to = NodeId(to);
                self.input(id, to_gateway(gateway::Command::SetHops { to, hops }));
            }
        }
    }

    /// Membership notifies the gateways of a new life, and the new life of the gateways.
    pub(crate) fn introduce(&mut self, me: Member) {
        if !self.habits.membership {
            return;
        }
        for other in self.gateways() {
            let Some(them) = self.me(other).filter(|it| *it != me) else {
                continue;
            };
            let after = self.below(200_000);
            self.after(after, What::Notified(other, Delta::Joined(me)));
            self.after(after, What::Notified(me.id.0, Delta::Joined(them)));
        }
    }

    /// A gateway stores all that it holds, and needs its older facts no longer.
    pub(crate) fn snapshot(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| node.stores) else {
            return;
        };
        let gateway = host.driver.machine().gateway().unwrap();
        let base = Write::Base(Box::new(gateway.replica().stored()));
        host.barrier.write(|_| {});
        let mark = host.barrier.last();
        self.queue_write(id, mark, base);
    }

    /// Stops a node, if its part allows that. Returns true if it stopped.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real) -> bool {
        let node = &self.nodes[&id];
        let is_gateway = matches!(node.own.role, Role::Gateway { .. });
        if node.host.is_none() || (is_gateway && !node.stores && !self.can_forget(id)) {
            return false;
        }
        let keeps_mail = self.percent(50);
        let me = self.stop(id, restart_after).unwrap();
        if !keeps_mail {
            self.nodes.get_mut(&id).unwrap().own.mailboxes.clear();
        }
        if is_gateway && self.habits.membership {
            for other in self.gateways() {
                let delta = match self.below(3) {
                    0 => Delta::Confirmed(me),
                    _ => Delta::Failed(me),
                };
                let after = self.below(2_000_000);
                self.after(after, What::Notified(other, delta));
            }
        }
        true
    }

    /// A gateway that stores facts loses them all.
    pub(crate) fn lose_storage(&mut self, id: u64, restart_after: Real) {
        if self.nodes[&id].stores && self.can_forget(id) && self.crash(id, restart_after) {
            let node = self.nodes.get_mut(&id).unwrap();
            node.lose_storage();
        }
    }

    /// Returns true if a quorum of the voters keeps its memory without this gateway. Called in quiet moments
    /// only: all are up, know the same configuration, and do not change it.
    fn can_forget(&self, id: u64) -> bool {
        let mut number = None;
        let mut voters = Vec::new();
        for gateway in self.gateways() {
            let node = &self.nodes[&gateway];
            let Some(replica) = node.gateway().map(Gateway::replica) else {
                return node.never;
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
        if !self.is_up(me) {
            return;
        }
        let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
        match event {
            gateway::Event::Unavailable | gateway::Event::Available => {
                let is = event == gateway::Event::Unavailable;
                assert_ne!(host.own.unavailable, is, "{me:?}: {event:?} twice");
                host.own.unavailable = is;
            }
            gateway::Event::Leading | gateway::Event::Deposed => {
                let is = event == gateway::Event::Leading;
                assert_ne!(host.own.manages, is, "{me:?}: {event:?} twice");
                host.own.manages = is;
            }
            gateway::Event::Purged(it) => self.oracle.purged(me, it.0),
            gateway::Event::Failed(it) => {
                assert!(host.own.ended.insert(it.id.0), "{me:?}: {event:?} twice");
            }
            gateway::Event::Returned(it) => {
                // A gateway that was never reported may have counted as failed from the beginning.
                host.own.ended.remove(&it.id.0);
            }
            _ => {}
        }
    }
}
