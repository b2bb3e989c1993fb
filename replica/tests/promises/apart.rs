//! Actions of several steps in a row, which single steps at random form too seldom.

use selvedge_core::{Delta, Member};
use selvedge_replica::{Command, Configuration, Voter};
use selvedge_sim::histories::History;

use crate::oracle::Op;
use crate::story;
use crate::world::World;

impl World {
    fn leader(&self) -> Option<u64> {
        let leads = |id: &u64| self.machine(*id).is_some_and(|it| it.leads());
        // The leader of the newest configuration, if several nodes lead.
        let newest = |id: &u64| self.machine(*id).map(|it| it.configuration().number);
        let ids: Vec<u64> = self.nodes.keys().copied().filter(leads).collect();
        ids.into_iter().max_by_key(newest)
    }

    fn wait(&mut self, most: u64) {
        let long = self.below(most);
        self.run_for(long);
    }

    /// Proposes `count` updates in one command.
    fn propose_many(&mut self, id: u64, count: u64) {
        if !self.is_running(id) {
            return;
        }
        let machine = self.machine(id).unwrap();
        let (me, number) = (machine.me(), machine.next_number());
        let updates: Vec<Op> = (0..count).map(|_| self.op()).collect();
        for (nth, op) in updates.iter().enumerate() {
            self.oracle.ask(me, number + nth as u64, op.id);
        }
        if !self.command(id, Command::ProposeAll(updates)) {
            for nth in 0..count {
                self.oracle.unask(me, number + nth);
            }
        }
    }

    /// A leader is cut off with at most one follower, before or during a change; the others decide
    /// and change the members, once or twice. Then some or all links are mended.
    pub(crate) fn part(&mut self) {
        let Some(leader) = self.leader() else {
            return;
        };
        let ids = self.ids();
        let follower = ids[self.below(ids.len() as u64) as usize];
        let left = [leader, follower];
        let right: Vec<u64> = ids
            .iter()
            .copied()
            .filter(|it| !left.contains(it))
            .collect();
        if self.percent(50) {
            self.cut_apart(&left, &right);
        }
        // More than fit into one frame; all of them must be applied in the remaining time.
        let most = if self.first.frame_budget < 1_000 {
            20
        } else {
            200
        };
        let many = [1, 3, most / 4, most][self.below(4) as usize];
        let asks_first = self.percent(50);
        if asks_first {
            self.propose_many(leader, many);
        }
        if self.percent(60) {
            let next = story::next(self);
            self.command(leader, Command::Configure(next));
        }
        self.wait(2 * self.weather.delay + 1_000);
        self.cut_apart(&left, &right);
        if !asks_first {
            self.propose_many(leader, many);
        }
        for &id in &right {
            for ended in left {
                if let Some(me) = self.me(ended) {
                    self.notify(id, Delta::Failed(me));
                }
            }
        }
        for _ in 0..1 + self.below(3) {
            self.wait(3_000_000);
            self.go_on(&right, many);
        }
        if self.percent(40) {
            self.read(leader);
            self.read(follower);
        }
        self.wait(1_000_000);
        self.mend(left, &right);
    }

    /// Changes the configuration at the leader to one without some of the present members. These accepted
    /// the change and did not learn that it was decided. They lead the present one, and read.
    pub(crate) fn leave_behind(&mut self) {
        let Some(leader) = self.leader() else {
            return;
        };
        let present = self.machine(leader).unwrap().configuration().clone();
        let others: Vec<u64> = (present.members())
            .map(|it| it.member.id.0)
            .filter(|&id| id != leader)
            .collect();
        let outside = |it: &u64| *it != leader && !others.contains(it);
        let mut right: Vec<u64> = self.nodes.keys().copied().filter(outside).collect();
        right.insert(0, leader);
        let mut named = right.clone();
        if let Some(&one) = others.first() {
            named.push(one);
        }
        let next = self.of_nodes(&named);
        self.command(leader, Command::Configure(next));
        self.wait(3 * self.weather.delay + 1_000);
        self.cut_apart(&others, &right);
        for &id in &others {
            if let Some(me) = self.me(leader) {
                self.input(id, selvedge_core::Input::Membership(Delta::Failed(me)));
            }
        }
        for _ in 0..3 {
            self.wait(500_000);
            self.propose(right[0]);
        }
        for _ in 0..6 {
            for &id in &others {
                self.read(id);
            }
            self.wait(4 * self.weather.delay + 100_000);
        }
        self.cuts.clear();
    }

    /// The others decide, and change the members.
    fn go_on(&mut self, right: &[u64], many: u64) {
        let leads = |world: &Self, id: u64| world.machine(id).is_some_and(|it| it.leads());
        let leader = right.iter().copied().filter(|&id| leads(self, id)).max();
        let Some(leader) = leader else {
            for &id in right {
                self.propose(id);
            }
            return;
        };
        let many = self.below(many + 1);
        self.propose_many(leader, many);
        self.wait(500_000);
        let next = match self.percent(50) {
            true => story::next(self),
            false => self.of_nodes(right),
        };
        self.command(leader, Command::Configure(next));
        self.wait(500_000);
        for &id in right {
            if self.percent(50) {
                self.propose(id);
            }
        }
    }

    /// A configuration of these nodes, each as it is now.
    fn of_nodes(&mut self, ids: &[u64]) -> Configuration {
        let voters: Vec<Voter> = ids
            .iter()
            .map(|&id| Voter::new(Member::new(id, self.nodes[&id].life)))
            .collect();
        let mut next = Configuration::new(voters);
        next.frame_budget = self.first.frame_budget;
        next.proposers = self.first.proposers;
        next.lease = self.first.lease;
        next
    }

    /// Reconnects the former leader; its follower, or the others, perhaps later.
    fn mend(&mut self, [leader, follower]: [u64; 2], right: &[u64]) {
        if self.percent(50) {
            // By one of the others alone at first.
            let some = right
                .get(self.below(right.len().max(1) as u64) as usize)
                .copied();
            self.cuts
                .retain(|it| Some(it.0) != some && Some(it.1) != some);
            self.wait(1_000_000);
        }
        let one = if self.percent(70) { leader } else { follower };
        self.cuts.retain(|it| it.0 != one && it.1 != one);
        self.wait(1_000_000);
        if self.percent(50) {
            self.cuts.clear();
        }
    }

    /// Stops the members that hold the state. Members that lack it, and witnesses, stay.
    pub(crate) fn lose_holders(&mut self) {
        self.starve();
        let ids = self.ids();
        for id in ids {
            let holds = self.machine(id).is_some_and(|it| it.state().is_some());
            if holds && self.percent(70) {
                let after = 200_000 + self.below(5_000_000);
                self.crash(id, after, true);
            }
        }
    }

    /// The leader and a witness change places, and no state reaches the former witness. It asks the
    /// former leader, which gives its state up once another member has it and leads.
    fn starve(&mut self) {
        let Some(leader) = self.leader() else {
            return;
        };
        let present = self.machine(leader).unwrap().configuration().clone();
        let up = |is_witness| {
            let members = present.members();
            let ids = members.filter(|it| it.is_witness == is_witness);
            let mut ids = ids.map(|it| it.member.id.0);
            ids.find(|it| *it != leader && self.nodes[it].host.is_some())
        };
        let (Some(holds), Some(lacks)) = (up(false), up(true)) else {
            return;
        };
        let mut next = self.of_nodes(&[holds, lacks, leader]);
        next.voters[2].is_witness = true;
        if self.percent(50) {
            next.also = vec![next.voters[0], next.voters[2]];
        }
        self.stateless = Some(lacks);
        self.command(leader, Command::Configure(next));
        self.wait(4_000_000);
        self.stateless = None;
    }
}
