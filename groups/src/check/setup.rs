//! The mesh of a scenario.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Input, Machine as _, Member, NodeId, Span, Time};
use selvedge_replica as replica;
use selvedge_sim::Bytes;
use selvedge_sim::check::{Bounds, Model, Observer as _, State};

use super::watch::Watch;
use super::{Inner, Journal};
use crate::{Command, Config, Groups, Message, Plan, Published, Start, Timer};
use crate::{GroupId, Node, Place, Selection};

/// An application's command, in a form that constants can have. Nodes stand by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// An epoch in which these are the members, the preferred leader first.
    Epoch(&'static [u64]),
    /// An update of the group; each one of a setup differs.
    Propose(u8),
    /// A question to the group's leader.
    Ask(u8),
}

/// A step of the past of a scenario, which has one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A command at a node (by id).
    Asked(u64, Ask),
    /// A membership delta at a node (by id).
    Notified(u64, Delta),
    /// From now on these nodes receive and send nothing, and none of their timers ticks. Messages
    /// in flight arrive when the scenario begins.
    Cut(&'static [u64]),
    /// A node (by id) begins again without its memory.
    Again(u64),
    /// Timers that are due expire, messages in flight arrive, and new messages are in flight.
    Round,
    /// Messages in flight to a node (by id) are lost.
    Lost(u64),
    /// Goes on until no step is left, or a while has passed.
    Rest,
}

/// One node more than a group has members: 1 to 4, where one may fail. All but the last one found
/// the group, and 1 leads it at first if there is a past.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of members that may fail.
    pub failures: u8,
    /// The past.
    pub before: &'static [Before],
    /// Nodes (by id) that are down from here on, for good. Their knowledge does not reach the
    /// others.
    pub down: &'static [u64],
    /// The nodes (by id) with timers that tick; all, where none is named.
    pub ticks_at: &'static [u64],
    /// The commands of applications of nodes (by id), at any time, in this order at each node.
    pub asks: &'static [(u64, Ask)],
    /// Deltas that a node (by id) may learn at any time, true or false.
    pub deltas: &'static [(u64, Delta)],
    /// Nodes (by id) that may crash, and begin again without their memory; the others may learn of
    /// it, and of the next life.
    pub ends: &'static [u64],
    /// The bounds of faults.
    pub bounds: Bounds,
    /// The number of ticks that suffice, after anything, to carry out every command: from each
    /// state with at least this number left. `None` where that is not checked.
    pub ends_within: Option<u32>,
    /// Rules that take the place of this crate's.
    pub rules: &'static [Published],
    /// True if only one update a version is checked: for rules that break it.
    pub safety_only: bool,
    /// The events that must happen in some run.
    pub sees: &'static [Sight],
}

/// An event that must happen in some run, so that a scenario in which nothing happens does not
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// This number of updates are applied.
    Applied(usize),
    /// This number of leaders have led.
    Leaders(usize),
    /// This configuration counts somewhere.
    Configured(u64),
    /// A question has reached a leader.
    Asked,
    /// A node has given its part up, here or before.
    Left,
    /// This node votes, and not with its first memory.
    InAgain(u64),
}

type Mesh = State<Inner, Watch>;

/// The first life: it stands for a life from a clock.
const FIRST: u32 = 1;

/// The longest past: it ends earlier when no step is left.
const WHILE: Span = Span::secs(5);

impl Setup {
    /// Timeouts are longer than any delivery, few timers tick, and nothing goes wrong.
    pub const CALM: Bounds = Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: Some(1),
        early_ticks: Some(0),
    };

    /// The group after this.
    #[must_use]
    pub const fn after(before: &'static [Before]) -> Self {
        Self {
            failures: 1,
            before,
            down: &[],
            ticks_at: &[],
            asks: &[],
            deltas: &[],
            ends: &[],
            bounds: Self::CALM,
            ends_within: Some(1),
            rules: &[],
            safety_only: false,
            sees: &[],
        }
    }

    /// Returns true if a question is asked.
    pub(super) fn is_asked(&self) -> bool {
        self.asks.iter().any(|it| matches!(it.1, Ask::Ask(_)))
    }

    fn deltas(&self, node: u64) -> Vec<Delta> {
        let listed = self.deltas.iter().filter(|it| it.0 == node);
        let mut deltas: Vec<Delta> = listed.map(|it| it.1).collect();
        for &id in self.ends.iter().filter(|&&id| id != node) {
            deltas.push(Delta::Failed(Member::new(id, FIRST)));
            if self.bounds.restarts > 0 {
                deltas.push(Delta::Joined(Member::new(id, FIRST + 1)));
            }
        }
        deltas
    }

    /// Returns true for a listed delta, at any time; of a crash, and of the life after it, for a
    /// true one.
    fn may_be_notified(&self, mesh: &Mesh, node: u64, delta: Delta) -> bool {
        if self.deltas.contains(&(node, delta)) {
            return true;
        }
        let member = delta.member();
        let place = mesh.position(member.id).and_then(|at| mesh.node(at));
        let is_here = place.is_some_and(|it| it.is_up() && it.member() == member);
        is_here == matches!(delta, Delta::Joined(_))
    }

    /// The scenario of this setup.
    #[must_use]
    pub fn model(self) -> Model<Inner, Watch> {
        let world = World::new(self.failures, self.rules);
        let mut past = Past::new(&world);
        for &it in self.before {
            past.take(&world, it);
        }
        let Past {
            mut drivers,
            letters,
            watch,
            ..
        } = past;
        drivers.retain(|it| !self.down.contains(&it.machine().me().id.0));
        let watch = watch.without(self.down);
        let timers: Vec<Vec<Timer>> = (drivers.iter())
            .map(|it| it.timers().map(|it| it.0).collect())
            .collect();
        let machines: Vec<Inner> = drivers.into_iter().map(Driver::into_machine).collect();
        let ids: Vec<u64> = machines.iter().map(|it| it.me().id.0).collect();
        let id_of = {
            let ids = ids.clone();
            move |node: usize| ids.get(node).copied().unwrap_or_default()
        };
        let (group, nodes) = (world.group, world.nodes());
        let (again, remains) = (world.clone(), world.clone());
        let [tick_of, delta_of, crash_of, restart_of] = [(); 4].map(|()| id_of.clone());
        let mut model = Model::observed(machines, Inner::me, watch)
            .bounds(self.bounds)
            .start(move |node, life, machine, cx| {
                let me = machine.me();
                if life > 0 {
                    let mut inputs = first_inputs(me, nodes).into_iter();
                    return inputs.try_for_each(|it| machine.handle(it, cx));
                }
                for &timer in timers.get(node).into_iter().flatten() {
                    cx.arm(timer, SOON);
                }
                for (_, to, message) in letters.iter().filter(|it| it.0 == me) {
                    cx.send(Member::new(to.0, FIRST), message.clone());
                }
                Ok(())
            })
            .restart(move |node, life, _| {
                again.machine(restart_of(node), FIRST + life, Start::Restarted)
            })
            .remains(move |it| remains.machine(it.me().id.0, FIRST, Start::Restarted))
            .delta_when(move |mesh: &Mesh, node, delta| {
                self.may_be_notified(mesh, delta_of(node), delta)
            })
            .crash_when(move |_, node| self.ends.contains(&crash_of(node)))
            .tick_when(move |_, node, _| {
                self.ticks_at.is_empty() || self.ticks_at.contains(&tick_of(node))
            })
            .show(move |it| show(it, group));
        for (node, &id) in ids.iter().enumerate() {
            let asks = self.asks.iter().filter(|it| it.0 == id);
            let commands: Vec<_> = asks.map(|it| world.command(it.1)).collect();
            model = model.commands(node, commands).deltas(node, self.deltas(id));
        }
        self.with_properties(model, group)
    }
}

/// Time is not modelled.
const SOON: Span = Span::millis(1);

/// The first inputs of a host: an epoch, and all other nodes.
fn first_inputs(me: Member, nodes: u64) -> Vec<Input<Inner>> {
    let others = (1..=nodes).filter(|it| *it != me.id.0);
    let others = others.map(|id| Input::Membership(Delta::Joined(Member::new(id, FIRST))));
    [Input::Command(Command::SetEpoch(1))]
        .into_iter()
        .chain(others)
        .collect()
}

/// The site: equal on all nodes.
#[derive(Clone)]
struct World {
    plan: Arc<Plan>,
    site: Arc<GroupId>,
    group: GroupId,
    rules: &'static [Published],
}

impl World {
    fn new(failures: u8, rules: &'static [Published]) -> Self {
        let members = 2 * u64::from(failures) + 1;
        let nodes = (1..=members + 1).map(|id| Node::new(id, Place::default()));
        let Ok(plan) = Plan::new(Selection::new().with_failures(failures), nodes) else {
            unusable()
        };
        let founders: Vec<NodeId> = (1..=members).map(NodeId).collect();
        let is_founded = |group: &GroupId| plan.founders::<Journal>(group, *group) == founders;
        let Some(group) = (1..10_000).map(GroupId).find(is_founded) else {
            unusable()
        };
        Self {
            plan: Arc::new(plan),
            site: Arc::new(group),
            group,
            rules,
        }
    }

    fn nodes(&self) -> u64 {
        self.plan.nodes().len() as u64
    }

    fn machine(&self, id: u64, life: u32, start: Start) -> Inner {
        let replica = replica::Config::new()
            .with_attempts(1)
            .with_window(1)
            .with_pending(4)
            .with_peers(64);
        let config = Config::new()
            .with_replica(replica)
            .with_replace_after(1)
            .with_change_delay(Span::ZERO)
            .with_stagger(Span::ZERO)
            .with_groups(1)
            .with_leader_hints(1);
        let (plan, site) = (Arc::clone(&self.plan), Arc::clone(&self.site));
        let made = Groups::new(Member::new(id, life), config, plan, site, start);
        let Ok(machine) = made else { unusable() };
        machine.published(self.rules)
    }

    fn command(&self, ask: Ask) -> Command<u8, u8> {
        let group = self.group;
        match ask {
            Ask::Epoch(members) => Command::SetEpoch(self.epoch_of(members)),
            Ask::Propose(update) => Command::Propose { group, update },
            Ask::Ask(payload) => Command::Ask { group, payload },
        }
    }

    /// An epoch, but the first, in which all nodes would choose these.
    fn epoch_of(&self, members: &[u64]) -> u64 {
        let is_it = |epoch: &u64| {
            let nodes = self.plan.nodes().iter().copied();
            let plan = &self.plan;
            let chosen = plan.choose::<Journal>(&self.site, *epoch, nodes, [self.group]);
            let members = members.iter().map(|it| NodeId(*it));
            let chosen = chosen.into_iter().next();
            chosen.is_some_and(|it| it.1.is_ok_and(|it| it.into_iter().eq(members)))
        };
        match (2..10_000).find(is_it) {
            Some(epoch) => epoch,
            None => unusable(),
        }
    }
}

/// Nodes that run in one order.
struct Past {
    drivers: Vec<Driver<Inner>>,
    letters: VecDeque<(Member, NodeId, Message<u8, u8>)>,
    now: Time,
    cut: &'static [u64],
    watch: Watch,
}

impl Past {
    fn new(world: &World) -> Self {
        let machines = (1..=world.nodes()).map(|id| world.machine(id, FIRST, Start::Fresh));
        let drivers: Vec<_> = machines.map(Driver::new).collect();
        let mut past = Self {
            watch: Watch::of(1..=world.nodes()),
            drivers,
            letters: VecDeque::new(),
            now: Time::ZERO,
            cut: &[],
        };
        for id in 1..=world.nodes() {
            for input in first_inputs(Member::new(id, FIRST), world.nodes()) {
                past.step(NodeId(id), Some(input));
            }
        }
        past
    }

    fn take(&mut self, world: &World, it: Before) {
        match it {
            Before::Asked(id, ask) => {
                let command = world.command(ask);
                self.step(NodeId(id), Some(Input::Command(command)));
            }
            Before::Notified(id, delta) => self.step(NodeId(id), Some(Input::Membership(delta))),
            Before::Again(id) => {
                let place = self
                    .drivers
                    .iter_mut()
                    .find(|it| it.machine().me().id.0 == id);
                if let Some(driver) = place {
                    *driver = Driver::new(world.machine(id, FIRST + 1, Start::Restarted));
                    for input in first_inputs(Member::new(id, FIRST + 1), world.nodes()) {
                        self.step(NodeId(id), Some(input));
                    }
                }
            }
            Before::Cut(ids) => self.cut = ids,
            Before::Round => {
                self.expire();
                for _ in 0..self.letters.len() {
                    self.arrive();
                }
            }
            Before::Lost(id) => self.letters.retain(|it| it.1 != NodeId(id)),
            Before::Rest => self.rest(),
        }
    }

    fn rest(&mut self) {
        let until = self.now + WHILE;
        loop {
            while !self.letters.is_empty() {
                self.arrive();
            }
            let here = self
                .drivers
                .iter()
                .map(|it| (it.machine().me().id, it.deadline()));
            let here = here.filter(|it| !self.is_cut(it.0));
            let next = here.filter_map(|(id, at)| Some((at?, id))).min();
            let Some((at, id)) = next.filter(|it| it.0 <= until) else {
                self.now = until;
                return;
            };
            self.now = at;
            self.step(id, None);
        }
    }

    /// Expires the timers that are due now.
    fn expire(&mut self) {
        let due = |it: &&Driver<Inner>| it.deadline().is_some_and(|at| at <= self.now);
        let due = self.drivers.iter().filter(due);
        let ids: Vec<NodeId> = due.map(|it| it.machine().me().id).collect();
        for id in ids {
            self.step(id, None);
        }
    }

    /// The message that was sent first.
    fn arrive(&mut self) {
        if let Some((from, to, message)) = self.letters.pop_front()
            && !self.is_cut(from.id)
            && !self.is_cut(to)
        {
            self.step(to, Some(Input::Message { from, message }));
        }
    }

    fn is_cut(&self, id: NodeId) -> bool {
        self.cut.contains(&id.0)
    }

    /// A node takes an input, or its timers that are due.
    fn step(&mut self, id: NodeId, input: Option<Input<Inner>>) {
        let Some(at) = self
            .drivers
            .iter()
            .position(|it| it.machine().me().id == id)
        else {
            return;
        };
        let Some(driver) = self.drivers.get_mut(at) else {
            return;
        };
        let from = driver.machine().me();
        let (letters, watch) = (&mut self.letters, &mut self.watch);
        let mut bytes = Bytes::new(&[]);
        let carry_out = |effect: Effect<Inner>| match effect {
            Effect::Send { to, message } => letters.push_back((from, to.id, message)),
            Effect::Event(event) => watch.event(at, &event),
            Effect::Multicast { .. } => {}
        };
        match input {
            Some(input) => {
                let step = driver.step(self.now, &mut bytes, input, carry_out);
                debug_assert!(
                    step.is_ok(),
                    "what happened before refuses nothing: {step:?}"
                );
            }
            None => {
                driver.expire(self.now, &mut bytes, carry_out);
            }
        }
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
fn unusable() -> ! {
    panic!("the settings of a scenario can work")
}

/// A node in a line.
fn show(machine: &Inner, group: GroupId) -> String {
    let Some(replica) = machine.replica(group) else {
        let marks = machine.former();
        return format!("no part, {marks} left");
    };
    let members = replica.configuration().members();
    let members: Vec<String> = members
        .map(|it| format!("{}#{}", it.member.id, it.member.incarnation.0))
        .collect();
    format!(
        "link {} of {}{}, at {} with {:?}, leader {:?}{}, {} wait",
        replica.configuration().number,
        members.join(" "),
        if replica.votes() { "" } else { " (no vote)" },
        replica.version(),
        replica.state().map(|it: &Journal| &it.0),
        replica.leader(),
        if replica.leads() { " (leads)" } else { "" },
        replica.waiting(),
    )
}
