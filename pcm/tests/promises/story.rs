//! One random history.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Delta, Input, Member, Span};
use selvedge_pcm::{Function, Library, client, follower, gateway};
use selvedge_replica::Configuration;
use selvedge_sim::histories::{Choices, History, What};

use crate::node::{Node, Part, Role, to_client, to_follower, to_gateway};
use crate::settings;
use crate::world::{SECOND, Spec, World};

#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) counts: BTreeMap<&'static str, u64>,
    pub(crate) sent: u64,
    pub(crate) restarts: u64,
    pub(crate) forged: u64,
    pub(crate) size_max: usize,
    pub(crate) deepest: u32,
    pub(crate) longest: BTreeMap<String, usize>,
    /// The seconds until all was well after faults ended.
    pub(crate) slowest: u64,
    /// The number of histories in which the last tasks had to have the right value.
    pub(crate) right: u64,
}

impl World {
    /// A function that was asked for before, or another one.
    pub(crate) fn function(&mut self) -> Function {
        let known = self.specs.len() as u64;
        if known > 0 && self.percent(25) {
            let at = self.below(known) as usize;
            let code = self.specs.keys().nth(at).unwrap();
            return Function::new(&code.clone());
        }
        self.next_function += 1;
        let mut code = self.next_function.to_be_bytes().to_vec();
        code.resize(self.pick(&[8, 8, 8, 30, 31, 300, 900, 1_300]) as usize, 7);
        if self.percent(3) {
            code.clear();
        }
        let most = u64::from(self.limits.result);
        let len = self.pick(&[0, 1, most / 2, most, most, most + 1]);
        let result = code.iter().copied().cycle().take(len as usize);
        let mut result: Vec<u8> = result.collect();
        result.resize(len as usize, 1);
        let mut fails_at = BTreeSet::new();
        if self.percent(20) {
            for id in self.followers() {
                if self.percent(40) {
                    fails_at.insert(id);
                }
            }
        }
        let takes = self.pick(&[0, 1_000, 1_000, 50_000, 6_000_000]);
        let spec = Spec {
            result,
            fails_at,
            takes,
        };
        let mut function = Function::new(&code);
        self.specs.insert(code, spec);
        if self.percent(20) {
            let many = self.pick(&[1, 1, 2, 3, 5]);
            function.libraries = (0..many).map(|_| Library(self.below(6))).collect();
            if self.percent(20) {
                self.missing.insert(Library(5));
                self.oracle.missing.insert(Library(5));
            }
        }
        function
    }

    pub(crate) fn submit(&mut self, id: u64, function: Function) -> bool {
        if self.nodes[&id].host.is_none() || self.nodes[&id].asleep {
            return false;
        }
        let command = client::Command::Submit(function);
        self.step(id, Some(to_client(command))).is_ok()
    }

    /// Empties all mailboxes of a follower, and returns the command that reports it.
    fn forget_mailboxes_of(&mut self, id: u64) -> follower::Command {
        for node in self.nodes.values_mut() {
            node.own.mailboxes.remove(&id);
        }
        follower::Command::Emptied
    }

    fn cancel(&mut self, id: u64) {
        let waits: Vec<u64> = match self.nodes[&id].client() {
            Some(it) if !self.nodes[&id].asleep => it.waiting().collect(),
            _ => return,
        };
        if waits.is_empty() {
            return;
        }
        let number = self.pick(&waits);
        let command = client::Command::Cancel(number);
        self.step(id, Some(to_client(command))).unwrap();
    }

    /// Asks the manager for other gateways.
    fn configure(&mut self) {
        let all = self.gateways();
        let mut members = Vec::new();
        let mut removed = Vec::new();
        for id in all {
            let node = &self.nodes[&id];
            let member = Member::new(
                id,
                node.host
                    .as_ref()
                    .map_or(node.life, |it| it.me.incarnation.0),
            );
            // The first one stays. Without heartbeats a gateway does not learn that it is taken off.
            if id == 1 || self.habits.membership || self.percent(75) {
                members.push(member);
            } else {
                removed.push(id);
            }
        }
        let next = Configuration::of(members);
        for id in self.gateways() {
            let manages = self.nodes[&id].gateway();
            let manages = manages.is_some_and(gateway::Gateway::manages);
            // A request that waits for a host may name lives that lose their memory meanwhile.
            if manages && self.is_running(id) {
                self.input(id, to_gateway(gateway::Command::Configure(next.clone())));
            }
        }
    }

    fn cut(&mut self) {
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        let id = self.pick(&ids);
        match self.below(4) {
            0 => {
                let other = self.pick(&ids);
                self.cuts.insert((id, other));
            }
            1 => {
                // One node receives nothing, or no node receives its messages.
                let out = self.percent(50);
                for &other in &ids {
                    let cut = if out { (id, other) } else { (other, id) };
                    self.cuts.insert(cut);
                }
            }
            2 => {
                // Gateways fall apart.
                let side: BTreeSet<u64> =
                    ids.iter().copied().filter(|_| self.below(2) == 0).collect();
                for one in self.gateways() {
                    for other in self.gateways() {
                        if side.contains(&one) != side.contains(&other) {
                            self.cuts.insert((one, other));
                        }
                    }
                }
            }
            _ => {
                let gateways = self.gateways();
                let other = self.pick(&gateways);
                self.cuts.insert((id, other));
                self.cuts.insert((other, id));
            }
        }
    }

    /// The nodes of a process: a gateway, a follower and a client may share one.
    fn process(&mut self) -> Vec<u64> {
        let ids: Vec<u64> = self.nodes.keys().copied().collect();
        match self.below(8) {
            0 => vec![1, 11, 31],
            _ => vec![self.pick(&ids)],
        }
    }

    fn action(&mut self) {
        let clients = self.clients();
        let client = self.pick(&clients);
        let gateways = self.gateways();
        let gateway = self.pick(&gateways);
        let followers = self.followers();
        let follower = self.pick(&followers);
        match self.below(50) {
            0..14 => {
                let function = self.function();
                self.submit(client, function.clone());
                if self.percent(15) {
                    // Another one wants the same at the same time.
                    let other = self.pick(&clients);
                    self.submit(other, function);
                }
            }
            14..16 => self.cancel(client),
            16..20 => {
                let after = self.below(20 * SECOND);
                for id in self.process() {
                    self.crash(id, after);
                }
            }
            20 if !self.is_dynamic() => {
                let after = self.below(3 * SECOND);
                self.lose_storage(gateway, after);
            }
            21..24 => {
                let long = self.pick(&[SECOND / 10, 3 * SECOND, 60 * SECOND]);
                for id in self.process() {
                    self.sleep(id, long);
                }
            }
            24 => {
                let by = self.pick(&[SECOND, 30 * SECOND, 3_600 * SECOND]);
                for id in self.process() {
                    self.jump(id, by);
                }
            }
            25..28 => self.cut(),
            28..31 => self.cuts.clear(),
            31 => self.snapshot(gateway),
            32 | 33 => self.configure(),
            34 => {
                let node = self.nodes.get_mut(&gateway).unwrap();
                let mailboxes: Vec<u64> = node.own.mailboxes.keys().copied().collect();
                for id in mailboxes {
                    if self.below(2) == 0 {
                        self.nodes
                            .get_mut(&gateway)
                            .unwrap()
                            .own
                            .mailboxes
                            .remove(&id);
                    }
                }
            }
            35 | 36 => self.change_duty(follower),
            37 => {
                if phase_is_awake(&self.nodes[&follower]) {
                    let command = match self.percent(50) {
                        true => follower::Command::Unreachable,
                        false => self.forget_mailboxes_of(follower),
                    };
                    self.input(follower, to_follower(command));
                }
            }
            38 if self.percent(50) && self.nodes[&client].host.is_some() => {
                self.input(client, to_client(client::Command::Unreachable));
            }
            38..43 => {
                for _ in 0..self.pick(&[1, 2, 4]) {
                    self.forge();
                }
            }
            43..46 if self.habits.echoes => self.echo(),
            46 | 47 => {
                let other = self.pick(&gateways);
                let member = Member::new(other, self.nodes[&other].life);
                let delta = match self.below(3) {
                    0 => Delta::Suspected(member),
                    1 => Delta::Failed(member),
                    _ => Delta::Refuted(member),
                };
                if other != gateway {
                    self.input(gateway, Input::Membership(delta));
                    if self.percent(70) {
                        self.input(gateway, Input::Membership(Delta::Refuted(member)));
                    }
                }
            }
            _ => {
                let to = selvedge_core::NodeId(self.pick(&gateways));
                let hops = self.pick(&[0, 1, 3, 255]) as u8;
                self.hops.insert((gateway, to.0), hops);
                self.hops.insert((to.0, gateway), hops);
                self.input(gateway, to_gateway(gateway::Command::SetHops { to, hops }));
                let back = selvedge_core::NodeId(gateway);
                self.input(
                    to.0,
                    to_gateway(gateway::Command::SetHops { to: back, hops }),
                );
            }
        }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.nodes.values().any(|it| match &it.own.role {
            Role::Gateway { config, .. } => config.voting == gateway::Voting::Dynamic,
            _ => false,
        })
    }

    fn change_duty(&mut self, id: u64) {
        let mut duty = selvedge_pcm::DutyCycle::always();
        duty.active_ms = self.pick(&[500, 1_000, 4_000]) as u32;
        duty.asleep_ms = self.pick(&[0, 500, 2_000]) as u32;
        let mut former = 0;
        if let Role::Follower { config, .. } = &mut self.nodes.get_mut(&id).unwrap().own.role {
            former = config.duty.period().0;
            // A later life begins with it, too.
            config.duty = duty;
        }
        self.former_period = self.former_period.max(former);
        self.input(id, to_follower(follower::Command::SetDutyCycle(duty)));
    }
}

fn phase_is_awake(node: &Node) -> bool {
    let host = node.host.as_ref().filter(|_| !node.asleep);
    host.is_some_and(|it| it.own.work.phase == Some(follower::Phase::Active))
}

/// Runs one history.
pub(crate) fn describe(choices: Choices, all: &mut Totals) {
    let mut world = settings::begin(choices);
    let settings = (&world.limits, &world.weather, &world.habits);
    world.say(|| format!("{settings:?}"));
    for node in world.nodes.values() {
        let (id, role, stores) = (node.id, &node.own.role, node.stores);
        world.say(|| format!("{id}: {role:?}, stores: {stores}"));
    }
    for id in world.ids() {
        let late = world.percent(20);
        if world.nodes[&id].own.is_founder {
            // Not all at one moment: gateways that stand for manager in step may do so for good.
            let after = world.below(SECOND);
            world.at(after, What::Restart(id));
        } else if !late {
            world.start(id);
        } else {
            let after = world.below(60 * SECOND);
            world.at(after, What::Restart(id));
        }
    }
    let steps = 10 + world.below(60);
    let pace = world.pick(&[SECOND / 10, SECOND, 6 * SECOND]);
    if world.percent(70) {
        world.run_until(6 * SECOND);
    }
    for _ in 0..steps {
        world.action();
        let gap = world.below(pace);
        world.run_for(gap);
        world.measure();
    }
    world.end(all);
    for (what, many) in &world.oracle.counts {
        *all.counts.entry(what).or_default() += many;
    }
    for (what, len) in &world.longest {
        let longest = all.longest.entry(what.clone()).or_default();
        *longest = *len.max(longest);
    }
    all.sent += world.sent;
    all.restarts += world.restarts;
    all.forged += world.forged;
    all.size_max = all.size_max.max(world.size_max);
    all.deepest = all.deepest.max(world.deepest);
}

/// The longest time a gateway's review takes, and the like, of all that may manage.
pub(crate) fn longest(world: &World, of: impl Fn(&gateway::Config) -> Span) -> u64 {
    let configs = world.nodes.values().filter_map(|it| match &it.own.role {
        Role::Gateway { config, .. } => Some(of(config).0),
        _ => None,
    });
    configs.max().unwrap_or(0)
}
