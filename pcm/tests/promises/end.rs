//! After faults end: whether all goes on, and how calm it is.

use std::collections::BTreeSet;

use selvedge_core::{Delta, Input, Member, NodeId};
use selvedge_pcm::check::operations;
use selvedge_pcm::follower::Phase;
use selvedge_pcm::gateway::{Gateway, Voting};
use selvedge_pcm::{Answer, DutyCycle, Function};
use selvedge_sim::histories::{History, Real};

use crate::node::{Node, Part, Role};
use crate::story::{Totals, longest};
use crate::world::{SECOND, Spec, World};

impl World {
    pub(crate) fn end(&mut self, all: &mut Totals) {
        self.heal();
        let began = self.now;
        let most = self.patience();
        self.wait("after faults", most, Self::is_well);
        all.slowest = all.slowest.max((self.now - began) / SECOND);
        // The tasks that units got during it have ended.
        self.former_period = 0;
        self.fall_apart();
        let right = self.ask_again();
        if right {
            self.is_right();
            all.right += 1;
        }
        self.is_calm();
        self.is_placed();
        self.oracle.nothing_made_up();
        self.measure();
    }

    /// Cuts one gateway off from the others for good, in one or both directions. The others, with all
    /// followers and clients, go on.
    fn fall_apart(&mut self) {
        let manager = self.manager().unwrap();
        let voters = manager.replica().configuration().members();
        let voters: Vec<u64> = voters
            .map(|it| it.member.id.0)
            .filter(|it| *it != 1)
            .collect();
        if voters.len() < 2 || !self.percent(60) {
            return;
        }
        let apart = self.pick(&voters);
        // Voters follow the gateways that are connected, if they are so both ways.
        let way = if self.is_dynamic() { 0 } else { self.below(3) };
        for other in self.gateways() {
            if way != 1 {
                self.cuts.insert((apart, other));
            }
            if way != 2 {
                self.cuts.insert((other, apart));
            }
        }
        self.apart = Some(apart);
        if self.habits.membership {
            for other in self.gateways().into_iter().filter(|it| *it != apart) {
                for (to, from) in [(other, apart), (apart, other)] {
                    let me = Member::new(from, self.nodes[&from].life);
                    self.input(to, Input::Membership(Delta::Failed(me)));
                }
            }
        }
        self.say(|| format!("{apart} is cut off, way {way}"));
        self.run_for(5 * SECOND);
        let most = self.patience();
        self.wait("with one gateway cut off", most, Self::is_well);
        self.ask_again();
        self.cuts.clear();
        self.apart = None;
        self.meet_again();
        self.say(|| "all are together again".to_owned());
        let most = self.patience();
        self.wait("together again", most, Self::is_well);
    }

    /// Some never come back.
    fn retire(&mut self) {
        if !self.percent(30) {
            return;
        }
        let followers = self.followers();
        for id in followers.into_iter().chain([31]) {
            if self.percent(30) && id != 11 {
                self.crash(id, 0);
                self.nodes.get_mut(&id).unwrap().never = true;
            }
        }
    }

    /// All faults end: all nodes that will ever be up are up, and know it.
    fn heal(&mut self) {
        self.calm();
        self.weather.delay = self.weather.delay.min(60_000);
        self.habits.torn = 0;
        self.habits.drops_asleep = false;
        self.retire();
        self.habits.late = 0;
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        for &id in &ids {
            self.wake(id);
            self.start(id);
        }
        // All late messages have arrived.
        self.run_for(50 * SECOND);
        for id in self.gateways() {
            // If a distance was lost, only the host can report it again.
            self.measure_hops(id);
        }
        self.meet_again();
    }

    /// Membership, if it is in use, notifies all gateways of all others.
    fn meet_again(&mut self) {
        if !self.habits.membership {
            return;
        }
        for id in self.gateways() {
            for other in self.gateways() {
                if let Some(me) = self.me(other).filter(|_| id != other) {
                    self.input(id, Input::Membership(Delta::Joined(me)));
                    self.input(id, Input::Membership(Delta::Refuted(me)));
                }
            }
        }
    }

    /// The time until all must be well: entries made in the name of strangers expire, then each task is
    /// tried as often as it may be, one after the other.
    fn patience(&self) -> Real {
        let period = self.longest_period();
        let purge = longest(self, |it| selvedge_core::Span(u64::from(it.purge_after)));
        let offload = longest(self, |it| selvedge_core::Span(u64::from(it.offload_after)));
        let review = longest(self, |it| it.review);
        let tries = u64::from(self.limits.attempts) + 1;
        let waves = 2 + self.oracle.submitted.len() as u64 / u64::from(self.limits.open);
        let try_one = period * offload / 10 + review + 2 * SECOND;
        120 * SECOND + 4 * review + period * purge / 10 + waves * tries * try_one
    }

    fn longest_period(&self) -> Real {
        let periods = self.nodes.values().filter_map(|it| match &it.own.role {
            Role::Follower { config, .. } => Some(config.duty.period().0),
            _ => None,
        });
        let most = periods.chain([self.former_period, SECOND]).max();
        let most = most.unwrap_or(SECOND);
        match self.forged > 0 && self.habits.hostile {
            true => most.max(DutyCycle::PERIOD_MAX.0),
            false => most,
        }
    }

    fn wait(&mut self, when: &str, most: Real, is: impl Fn(&Self) -> Result<(), String>) {
        let end = self.now + most;
        loop {
            let last = is(self);
            if last.is_ok() {
                return;
            }
            if self.now >= end {
                let nodes = self.nodes.values().filter_map(|it| it.machine());
                let nodes: String = nodes.map(operations::sketch).collect();
                panic!("{when}, {} s: {last:?}: {nodes}", most / SECOND);
            }
            self.run_for(2 * SECOND);
            let most = 3_000_000;
            assert!(self.sent < most, "a storm: {:?}", self.sent_by_kind);
        }
    }

    pub(crate) fn manager(&self) -> Result<&Gateway, String> {
        // A gateway that is cut off may not know that there is another manager.
        let nodes = self.nodes.values().filter(|it| self.apart != Some(it.id));
        let all = nodes.filter_map(|it| it.gateway());
        let managers: Vec<&Gateway> = all.filter(|it| it.manages()).collect();
        match managers[..] {
            [one] => Ok(one),
            _ => Err(format!(
                "managers: {:?}",
                managers.iter().map(|it| it.me()).collect::<Vec<_>>()
            )),
        }
    }

    /// Checks that no client waits, and that the tables match the nodes.
    fn is_well(&self) -> Result<(), String> {
        let manager = self.manager()?;
        for node in self.nodes.values() {
            if let Some(client) = node.client() {
                let waiting: Vec<u64> = client.waiting().collect();
                if !waiting.is_empty() {
                    return Err(format!("{:?} waits for {waiting:?}", client.me()));
                }
            }
        }
        let tables = manager.tables().ok_or("no tables")?;
        if let Some((task, open)) = tables.open().next() {
            return Err(format!("{task:?} is open: {open:?}"));
        }
        let here: Vec<Member> = tables.followers().map(|it| it.member).collect();
        for it in &here {
            let real = self.nodes.get(&it.id.0).and_then(|it| it.follower());
            if real.is_none_or(|real| real.me() != *it) {
                return Err(format!("{it:?} is still in the tables"));
            }
        }
        for node in self.nodes.values() {
            let Some(follower) = node.follower() else {
                continue;
            };
            let Role::Follower { config, .. } = &node.own.role else {
                continue;
            };
            let Some(known) = tables.follower(follower.me().id) else {
                if here.len() as u32 == self.limits.followers {
                    continue;
                }
                return Err(format!("{:?} is not in the tables", follower.me()));
            };
            if known.gateway != follower.attached_to() || known.duty != config.duty {
                return Err(format!(
                    "{known:?} is in the tables for a follower at {}",
                    follower.attached_to()
                ));
            }
            if tables.unit_of(known.member.id).is_none() {
                return Err(format!("{:?} is in no unit", known.member));
            }
        }
        self.is_whole(manager)
    }

    /// Checks that the voters are the intended gateways, and hold the manager's version of the tables.
    fn is_whole(&self, manager: &Gateway) -> Result<(), String> {
        let configuration = manager.replica().configuration();
        let voters: BTreeSet<u64> = configuration.members().map(|it| it.member.id.0).collect();
        for id in voters.iter().filter(|it| self.apart != Some(**it)) {
            let node = &self.nodes[id];
            let replica = node.gateway().map(Gateway::replica);
            if replica.is_none_or(|it| !it.votes()) {
                return Err(format!("{id} has no vote"));
            }
            if replica.map(|it| it.version()) != Some(manager.replica().version()) {
                return Err(format!("{id} is behind"));
            }
        }
        let dynamic = self.nodes.values().filter_map(|it| match &it.own.role {
            Role::Gateway { config, .. } => Some(config.voting == Voting::Dynamic),
            _ => None,
        });
        // Gateways do not know a newcomer that no configuration named.
        let mut all: BTreeSet<u64> = manager.gateways().map(|it| it.0.id.0).collect();
        if let Some(apart) = self.apart.filter(|it| !voters.contains(it)) {
            all.remove(&apart); // If it can send but not receive, it may stay a voter.
        }
        if dynamic.into_iter().all(|it| it) && voters != all {
            return Err(format!("{voters:?} decide, and {all:?} are here"));
        }
        for node in self.nodes.values() {
            let Some(host) = node.host.as_ref() else {
                continue;
            };
            if voters.contains(&node.id) && host.own.unavailable && self.apart != Some(node.id) {
                return Err(format!("{} reported Unavailable last", node.id));
            }
        }
        Ok(())
    }

    /// Each client submits a function that all followers can run. Returns true if the answers must be right.
    fn ask_again(&mut self) -> bool {
        let mut clients = self.clients();
        clients.retain(|it| !self.nodes[it].never);
        self.asked_last = self.next_function;
        let takes = if self.is_patient() { 4_400_000 } else { 1_000 };
        for client in clients {
            self.next_function += 1;
            let code = self.next_function.to_be_bytes();
            let result = vec![code[7]];
            self.specs.insert(
                code.to_vec(),
                Spec {
                    result,
                    fails_at: [].into(),
                    takes,
                },
            );
            assert!(self.submit(client, Function::new(&code)));
            // One after the other, so that there is room for each.
            let most = self.patience();
            self.wait("when asked again", most, Self::is_well);
        }
        let able = self.nodes.values().all(|it| match &it.own.role {
            Role::Follower { config, liar, .. } => {
                config.duty.active_ms >= 500 && config.code >= 8 && !liar
            }
            Role::Gateway { config, .. } => config.offload_after >= 40,
            Role::Client { .. } => true,
        });
        able && self.limits.open > 10 && self.oracle.keeps
    }

    /// Returns true if functions may take long here.
    fn is_patient(&mut self) -> bool {
        let lasts = self.nodes.values().all(|it| match &it.own.role {
            Role::Follower { config, .. } => config.time.0 >= 5_000_000,
            Role::Gateway { config, .. } => config.purge_after >= 35,
            Role::Client { .. } => true,
        });
        lasts && self.limits.attempts > 2 && self.percent(50)
    }

    /// The last task of each client has the right outcome.
    fn is_right(&self) {
        for (task, answer) in &self.oracle.received {
            let code = &self.oracle.submitted[task].code;
            let last = self.asked_last;
            let nth = <[u8; 8]>::try_from(&code[..]).map(u64::from_be_bytes);
            if nth.is_ok_and(|it| it > last) {
                // No other function has eight bytes and such a number.
                let value = Answer::Value([code[7]].into_iter().collect());
                assert_eq!(answer.as_ref(), Some(&value), "{task:?}");
            }
        }
    }

    /// Without tasks, gateways and followers report their presence.
    fn is_calm(&mut self) {
        // A follower reports its libraries in its next period. A new manager looks at units, and for a better
        // manager, at its next review.
        let period = self.longest_period();
        let review = longest(self, |it| it.review);
        self.run_for(30 * SECOND + 2 * period + 2 * review);
        let sent = self.sent;
        let kinds = self.sent_by_kind.clone();
        self.sent_tables.clear();
        let long = 60 * SECOND;
        self.run_for(long);
        let asked = self.strangers_ask(long);
        let mut most = 10 + asked;
        let gateways = self.gateways().len() as u64;
        for node in self.nodes.values() {
            match &node.own.role {
                Role::Follower { config, .. } => most += long / config.duty.period().0 + 2,
                Role::Gateway { config, .. } if config.heartbeat.0 > 0 => {
                    most += 2 * (long / config.heartbeat.0 + 1) * (gateways - 1);
                }
                _ => {}
            }
        }
        let sent = self.sent - sent;
        let kinds: Vec<(&String, u64)> = self
            .sent_by_kind
            .iter()
            .map(|(kind, many)| (kind, many - kinds.get(kind).unwrap_or(&0)))
            .filter(|it| it.1 > 0)
            .collect();
        assert!(sent <= most, "{sent} messages in a calm minute: {kinds:?}");
        let asleep = |it: &&Node| {
            let phase = it.host.as_ref().and_then(|it| it.own.work.phase);
            phase == Some(Phase::Asleep)
        };
        assert!(self.nodes.values().filter(asleep).count() <= self.followers().len());
    }

    /// The number of messages of the tables in a span in which all else is calm. Voters send each other
    /// none. A gateway that they do not know, because no list ever named it, may have an old list with a
    /// gateway that was taken off: they refuse its questions, so it asks less and less often for good.
    fn strangers_ask(&self, long: Real) -> u64 {
        let manager = self.manager().unwrap();
        let known: BTreeSet<u64> = manager.gateways().map(|it| it.0.id.0).collect();
        let gateways = self.gateways();
        let strangers = gateways.iter().filter(|it| !known.contains(it)).count() as u64;
        // A question to each other gateway, an answer of each, and a question to each gateway that the
        // answers name.
        let resend = longest(self, |it| it.replica.resend);
        let most = strangers * 3 * gateways.len() as u64 * (long / (64 * resend) + 1);
        let (sent, asked): (Vec<_>, Vec<_>) = (self.sent_tables.iter())
            .partition(|((from, to), _)| known.contains(from) && known.contains(to));
        assert!(sent.is_empty(), "of the tables in a calm minute: {sent:?}");
        let all = asked.iter().map(|it| it.1).sum();
        assert!(all <= most, "strangers: {:?}", self.sent_tables);
        all
    }

    /// Checks that the manager is the gateway that reaches followers over the fewest links.
    fn is_placed(&mut self) {
        // The distance of a gateway that is no voter for a while is forgotten, so hosts repeat it. A next manager
        // may know a gateway that becomes a voter then.
        let review = longest(self, |it| it.review);
        for _ in 0..3 {
            for id in self.gateways() {
                self.measure_hops(id);
            }
            self.run_for(2 * review + 10 * SECOND);
        }
        let manager = self.manager().unwrap();
        let tables = manager.tables().unwrap();
        let voters = manager.replica().configuration().members();
        let voters: Vec<NodeId> = voters.map(|it| it.member.id).collect();
        let best = tables.best_manager(&voters, manager.me().id);
        assert_eq!(best, Some(manager.me().id), "it knows of a better one");
        let cost = |id: NodeId| -> u64 {
            let links = tables.gateways().map(|(at, many)| {
                let key = (id.0, at.0);
                let far = if id == at {
                    0
                } else {
                    *self.hops.get(&key).unwrap_or(&1)
                };
                u64::from(far) * u64::from(many)
            });
            links.sum()
        };
        let best = voters.iter().map(|it| cost(*it)).min().unwrap();
        let is = cost(manager.me().id);
        let known = usize::from(self.limits.gateways) >= self.gateways().len();
        assert!(is == best || !known, "{is} links, and {best} would do");
    }
}
