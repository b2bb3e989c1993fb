//! Faults end: requests are answered, each group has one leader, and then nodes are silent.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Delta, Input, Member, NodeId};
use selvedge_groups::GroupId;
use selvedge_kgroup::routines::{End, Locking, RoutineState, Stage};
use selvedge_kgroup::{Command, GroupState, TriggerId};
use selvedge_sim::histories::History;

use crate::world::World;

const SECOND: u64 = 1_000_000;

impl World {
    /// All faults end: all nodes that will ever run do run, and know it.
    pub(crate) fn heal(&mut self) {
        self.calm();
        self.weather.delay = self.weather.delay.min(20_000);
        self.devices.are_well();
        self.wake_all();
        // All late messages have arrived.
        self.run_for(30 * SECOND);
        self.notify_all();
        self.epoch += 1;
        let epoch = self.epoch;
        self.begin_epoch(epoch, SECOND, 0);
        self.run_for(2 * SECOND);
        // Some clocks stay wrong.
        for id in self.ids() {
            let lead = self.pick(&[0, 0, 0, 1, 50]);
            self.command(id, Command::SetEpoch(epoch + lead));
        }
        self.notify_all();
    }

    /// Membership reports each node to all others.
    fn notify_all(&mut self) {
        for id in self.ids() {
            for other in self.ids() {
                if id == other {
                    continue;
                }
                let deltas = match self.me(other) {
                    Some(me) => vec![Delta::Joined(me), Delta::Refuted(me)],
                    None => vec![Delta::Failed(self.nodes[&other].member())],
                };
                for delta in deltas {
                    self.input(id, Input::Membership(delta));
                }
            }
        }
    }

    /// The promises of progress, when no fault happens any more.
    pub(crate) fn ends_well(&mut self) {
        self.run_for(120 * SECOND);
        for id in self.nodes_of_the_site() {
            self.read_all(id);
        }
        self.run_for(40 * SECOND);
        self.sites_are_equal();
        self.all_is_answered();
        self.groups_have_one_leader();
        self.members_agree();
        self.spared_nodes_are_in_no_group();
        self.watches_are_up_to_date();
        self.devices_are_known();
        self.routines_run();
        self.groups_have_one_leader();
        self.devices_are_known();
        self.requests_led_to_runs();
        self.little_is_sent();
        self.unwatch_all();
        self.run_for(100 * SECOND);
        let quiet = self.now - self.last_sent;
        assert!(
            !self.is_whole() || self.has_strangers() || quiet > 30 * SECOND,
            "it is not silent: {quiet}"
        );
        for map in self.maps.clone() {
            let version = self.store(map).map(selvedge_groups::store::Store::version);
            self.oracle.check(map, version);
        }
        self.forget_what_was_spent();
        self.measure();
    }

    /// A leader that lacks members looks for others.
    pub(crate) fn is_whole(&self) -> bool {
        let nodes = self.nodes_of_the_site();
        nodes.iter().all(|it| !self.nodes[it].never)
    }

    /// A node that no site has goes on to ask.
    fn has_strangers(&self) -> bool {
        let nodes = self.nodes_of_the_site();
        self.ids()
            .iter()
            .any(|it| !nodes.contains(it) && self.me(*it).is_some())
    }

    /// Without requests, watches are renewed every eight ticks, and get no answers.
    fn little_is_sent(&mut self) {
        let before = self.sent;
        self.run_for(30 * SECOND);
        let sent = self.sent - before;
        if !self.is_whole() || self.has_strangers() {
            return;
        }
        // A third request to a group while two are open goes to all nodes, as does a request
        // without an answer.
        let all = 2 * self.nodes.len() as u64;
        let renewals = self.nodes.values().map(|node| {
            let mut watches = BTreeMap::new();
            for (map, _) in node.host.iter().flat_map(|it| &it.own.watches) {
                *watches.entry(*map).or_insert(0) += 1;
            }
            let cost = |it: &u64| 2 * it.min(&2) + all * it.saturating_sub(2);
            let tick = node.own.maps.resend.0;
            watches.values().map(cost).sum::<u64>() * (1 + 30 * SECOND / (8 * tick))
        });
        let most = 10 + renewals.sum::<u64>();
        assert!(sent <= most, "{sent} messages in peace, of {most}");
        self.idle = self.idle.max(sent);
    }

    /// All members of each group that are up have its configuration and its state.
    fn members_agree(&self) {
        for group in self.groups() {
            let replica = |id| self.machine(id)?.groups().replica(group);
            let latest = replica(self.leaders(group)[0]).unwrap().configuration();
            for id in latest.members().map(|it| it.member.id.0) {
                let is_settled = replica(id).is_some_and(|it| {
                    it.configuration().number == latest.number && it.state().is_some()
                });
                assert!(self.me(id).is_none() || is_settled, "{id} of {group:?}");
            }
        }
    }

    /// The number of times that groups changed their members, by the counters of nodes in their
    /// present lives.
    pub(crate) fn moved(&self) -> u64 {
        let counters = self.machines().map(|it| it.groups().counters());
        counters.map(|it| it.changes).sum()
    }

    /// Epochs are shorter than the timeouts of devices, which are slow, and runs end all the same.
    pub(crate) fn hurry(&mut self) {
        self.run_for(60 * SECOND);
        (self.devices.late, self.devices.slow) = (50, 50);
        let epoch = SECOND * self.pick(&[1, 3, 5, 7]);
        let mut asked = Vec::new();
        for routine in self.routines() {
            let before = self.routine(routine).map_or(0, RoutineState::instance);
            let (id, number) = (self.a_node(), self.runs.next_id(routine));
            self.trigger_as(id, routine, TriggerId(number));
            if self.runs.next_id(routine) > number {
                asked.push((routine, before));
            }
        }
        let began = self.now;
        while !asked.is_empty() {
            assert!(
                self.now - began < 300 * SECOND,
                "{asked:?} do not end in epochs of {epoch}"
            );
            self.run_for(epoch);
            self.epoch += 1;
            for id in self.ids() {
                let epoch = self.epoch;
                self.command(id, Command::SetEpoch(epoch));
            }
            asked.retain(|it| !self.has_run_since(it.0, it.1));
        }
    }

    /// Returns true if a later run has ended. Optimistic runs may conflict again and again.
    fn has_run_since(&self, routine: GroupId, before: u64) -> bool {
        self.routine(routine).is_some_and(|it| {
            let report = it.report();
            it.definition().locking == Locking::Optimistic
                || report.is_some_and(|report| report.instance > before)
        })
    }

    fn lives(&self) -> Vec<Member> {
        let nodes = self.nodes_of_the_site().into_iter();
        nodes.filter_map(|it| self.me(it)).collect()
    }

    /// Each request of a node that is up led to a run, and each name to one at most.
    pub(crate) fn requests_led_to_runs(&self) {
        let nodes: Vec<u64> = self.lives().iter().map(|it| it.id.0).collect();
        self.runs.check_counts(&self.site, &nodes, &self.times);
    }

    fn all_is_answered(&self) {
        for me in self.lives() {
            let open = self.oracle.open(me);
            let states = || {
                let groups: BTreeSet<GroupId> = open.iter().map(|it| it.map).collect();
                let groups = std::iter::once(GroupId::REGISTRY).chain(groups);
                groups.map(|it| self.knowledge(it)).collect::<String>()
            };
            assert!(open.is_empty(), "not answered: {open:?}{}", states());
        }
    }

    /// The knowledge of each node about a group, line by line.
    fn knowledge(&self, group: GroupId) -> String {
        let mut lines = format!("\n{group:?} in epoch {}", self.epoch);
        let nodes = self.nodes_of_the_site();
        for (id, node) in &self.nodes {
            let note = |it: bool, text: &'static str| if it { text } else { "" };
            let former = note(!nodes.contains(id), " (not in the site)");
            let never = note(node.never, " (never runs)");
            let stores = note(node.stores, " stores");
            lines += &format!("\n  n{id}{former}{never}{stores}: ");
            let Some(machine) = node.machine() else {
                lines += "down";
                continue;
            };
            let groups = machine.groups();
            let (me, generation) = (machine.me(), groups.generation());
            lines += &format!("{me:?}, generation {generation}");
            lines += note(!groups.has_site(), " (has no site)");
            lines += &format!(", epoch {}", groups.epoch());
            lines += &match groups.replica(group) {
                Some(it) => format!(
                    ", votes {}, leads {}, led by {:?}, holds {}, {:?}",
                    it.votes(),
                    it.leads(),
                    it.leader(),
                    machine.held(group).is_some(),
                    it.configuration()
                ),
                None => format!(
                    ", no part, {:?}, founders {:?}",
                    groups.whereabouts(group),
                    groups.founders(group)
                ),
            };
        }
        lines
    }

    fn groups_have_one_leader(&self) {
        for group in self.groups() {
            let leaders = self.leaders(group);
            let known = || self.knowledge(group) + &self.knowledge(GroupId::REGISTRY);
            assert_eq!(
                leaders.len(),
                1,
                "{group:?} is led by {leaders:?}{}",
                known()
            );
        }
    }

    /// Returns true if an optimistic run conflicts again and again, so that a changed definition waits for its end.
    pub(crate) fn is_starved(&self, group: GroupId) -> bool {
        let state = self.is_settled(group);
        let executes = *state.stage() != Stage::NotTriggered;
        executes && state.pending().is_some() && state.definition().locking == Locking::Optimistic
    }

    pub(crate) fn is_settled(&self, group: GroupId) -> &RoutineState {
        let leader = self.leaders(group)[0];
        match self.machine(leader).unwrap().held(group) {
            Some(GroupState::Routine(state)) => state,
            other => panic!("{group:?} holds {other:?}"),
        }
    }

    fn devices_are_known(&self) {
        for (&device, it) in &self.devices.all {
            let Some(group) = self.site.cluster_of(device) else {
                continue;
            };
            let leader = self.leaders(group)[0];
            let Some(GroupState::Devices(held)) = self.machine(leader).unwrap().held(group) else {
                panic!("{group:?} is no cluster");
            };
            let status = held.status(device).unwrap();
            assert!(
                status.is_up && status.value == it.value,
                "{device:?}: {status:?}"
            );
            assert_eq!(held.holder(device), None, "{device:?} is not free");
            assert_eq!(held.queue(device).count(), 0, "{device:?} is waited for");
            assert!(held.act(device).is_none_or(|it| !it.is_under_way()));
            for routine in self.routines() {
                let state = self.is_settled(routine);
                if state.definition().clause.is_some() && watched(state).contains(&device) {
                    let observed = state.observed(device).map(|it| it.value.clone());
                    assert_eq!(observed, Some(it.value.clone()), "{routine:?} {device:?}");
                }
            }
        }
        for routine in self.routines() {
            let state = self.is_settled(routine);
            let over = *state.stage() == Stage::NotTriggered && !state.is_queued();
            assert!(over, "{routine:?} {:?}", state.stage());
        }
    }

    /// Each routine runs by hand and by its clause, when nothing prevents it.
    fn routines_run(&mut self) {
        let devices = self.devices_of_the_site();
        for &device in &devices {
            self.turn(device, "0".into()); // No command ends a state that a hand made, and so makes a clause true.
        }
        self.run_for(20 * SECOND);
        for routine in self.routines() {
            let before = self.is_settled(routine).instance();
            let id = self.a_node_of_the_site();
            let number = self.runs.next_id(routine);
            let up = self.me(id).is_some();
            if up {
                self.trigger_as(id, routine, TriggerId(number));
            }
            self.run_for(20 * SECOND);
            let state = self.is_settled(routine);
            let known = || self.knowledge(routine);
            assert_eq!(
                state.instance(),
                before + u64::from(up),
                "{routine:?} is asked for by {id}{}",
                known()
            );
            if up {
                let report = state.report().unwrap();
                assert_eq!(report.instance, before + 1);
                assert_eq!(report.end, End::Completed, "{report:?}");
            }
        }
        for device in devices {
            let watching = |world: &Self| -> Vec<(GroupId, u64)> {
                let routines = world.routines().into_iter();
                let states = routines.map(|it| (it, world.is_settled(it)));
                let by = states.filter(|it| watched(it.1).contains(&device));
                by.map(|it| (it.0, it.1.instance())).collect()
            };
            self.turn(device, "0".into());
            self.run_for(20 * SECOND);
            let before = watching(self);
            // A clause becomes true, by one or the other.
            for value in ["9", "0"] {
                self.turn(device, value.into());
                self.run_for(40 * SECOND);
            }
            for (routine, runs) in before {
                let now = self.is_settled(routine).instance();
                assert!(now > runs, "{routine:?} is not triggered by {device:?}");
            }
        }
        self.run_for(20 * SECOND);
    }

    /// Removes nodes from `spent` that vote again, or are members no more: others may forget now.
    pub(crate) fn forget_what_was_spent(&mut self) {
        let nodes = self.nodes_of_the_site().into_iter();
        let mut old: BTreeSet<u64> = nodes.filter(|it| self.nodes[it].never).collect();
        for group in self.groups() {
            let Some(machine) = self.leaders(group).first().and_then(|it| self.machine(*it)) else {
                return;
            };
            let Some(replica) = machine.groups().replica(group) else {
                return;
            };
            for voter in replica.configuration().members() {
                let id = voter.member.id.0;
                let is_new = self.machine(id).is_some_and(|it| {
                    let replica = it.groups().replica(group);
                    replica.is_some_and(selvedge_replica::Replica::votes)
                });
                if self.spent.contains(&id) && !is_new {
                    old.insert(id);
                }
            }
        }
        self.spent.retain(|it| old.contains(it));
    }

    /// A clock that was wrong is set right.
    pub(crate) fn clock_is_wrong(&mut self, id: u64) {
        let by = 1 + self.below(4);
        let epoch = self.epoch + by;
        self.command(id, Command::SetEpoch(epoch));
        if self.percent(50) {
            let epoch = self.epoch;
            self.command(id, Command::SetEpoch(epoch));
        }
        self.epoch = self.epoch.max(epoch);
    }
}

/// The devices of a routine's clause.
fn watched(state: &RoutineState) -> Vec<NodeId> {
    use selvedge_routine::trigger::Clause;
    match &state.definition().clause {
        Some(Clause::Is(it)) => vec![it.device],
        _ => Vec::new(),
    }
}
