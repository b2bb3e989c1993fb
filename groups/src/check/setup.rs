//! The mesh of a scenario: its past, and what may happen from there.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;

use selvedge_core::{Delta, Driver, Input, Machine as _, Member, Span};
use selvedge_replica as replica;
use selvedge_sim::check::{Bounds, Model, Observer, State};

use super::past::{Before, Past};
use super::watch::Watch;
use crate::{Begins, Command, Config, GroupId, Groups, Plan, Published, Start, Timer};

/// A kind of mesh: its site, its commands, and its promises beside those of each group.
pub(super) trait Kind: Copy + Debug + Send + Sync + 'static {
    /// The state of a group.
    type State: Begins<
            Site: Send + Sync + 'static,
            Update: Send + Sync + 'static,
            Outcome: Send + Sync + 'static,
        > + Send
        + Sync
        + 'static;
    /// An application's command, in a form that constants can have. Nodes stand by id.
    type Ask: Copy + Debug + PartialEq + Send + Sync + 'static;
    /// An event that must happen in some run, so that a scenario in which nothing happens does not
    /// pass.
    type Sight: Copy + Debug + Send + Sync + 'static;
    /// The record of events.
    type Watch: Watches<Self::State>;

    /// The promise that is checked under all rules: a search ends where one breaks.
    const SAFETY: &'static str;

    /// The goal from which no state may be cut off.
    const GOAL: &'static str;

    /// The site of so many nodes, and the groups to look at.
    fn site(nodes: u64) -> Site<Self::State>;

    fn command(world: &World<Self>, ask: Self::Ask) -> CommandOf<Self>;

    fn is_safe(mesh: &Mesh<Self>, groups: &[GroupId]) -> bool;

    /// Adds further promises.
    fn with_promises(model: ModelOf<Self>) -> ModelOf<Self> {
        model
    }

    /// Returns true if commands and deltas that are left suffice to reach the goal.
    fn may_end(_setup: &Setup<Self>, _mesh: &Mesh<Self>) -> bool {
        true
    }

    fn is_done(setup: &Setup<Self>, mesh: &Mesh<Self>, groups: &[GroupId]) -> bool;

    fn name(sight: Self::Sight) -> &'static str;

    fn is_seen(mesh: &Mesh<Self>, groups: &[GroupId], sight: Self::Sight) -> bool;
}

/// A record of events, with one for each group.
pub(super) trait Watches<S: Begins>:
    Observer<Groups<S, u8>> + Send + Sync + 'static
{
    /// A record of nodes that have done nothing.
    fn of(ids: Vec<u64>) -> Self;

    /// Some nodes are down for good, and a scenario begins.
    #[must_use]
    fn without(self, down: &[u64]) -> Self;

    fn of_groups(&self) -> &[Watch];
}

/// The plan, the site, and the groups.
pub(super) type Site<S> = (Plan, <S as Begins>::Site, Vec<GroupId>);

pub(super) type Machine<K> = Groups<<K as Kind>::State, u8>;
pub(super) type CommandOf<K> = Command<<<K as Kind>::State as replica::State>::Update, u8>;
pub(super) type Mesh<K> = State<Machine<K>, <K as Kind>::Watch>;
pub(super) type ModelOf<K> = Model<Machine<K>, <K as Kind>::Watch>;

/// A scenario: nodes 1, 2 and so on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup<K: Kind> {
    /// The number of nodes.
    pub nodes: u64,
    /// The past.
    pub before: &'static [Before<K::Ask>],
    /// Nodes (by id) that are down from here on, for good. Their knowledge does not reach the
    /// others.
    pub down: &'static [u64],
    /// The nodes (by id) with timers that tick; all, where none is named.
    pub ticks_at: &'static [u64],
    /// The commands of applications of nodes (by id), at any time, in this order at each node.
    pub asks: &'static [(u64, K::Ask)],
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
    /// True if only [`Kind::SAFETY`] is checked: for rules that break it.
    pub safety_only: bool,
    /// The events that must happen in some run.
    pub sees: &'static [K::Sight],
}

/// The first life: it stands for a life from a clock.
pub(super) const FIRST: u32 = 1;

/// Bounds with this number of ticks: timeouts are longer than any delivery, and nothing goes wrong.
pub(super) const fn ticks(count: u32) -> Bounds {
    Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: Some(count),
        early_ticks: Some(0),
    }
}

impl<K: Kind> Setup<K> {
    /// The mesh after this.
    #[must_use]
    pub(super) const fn after(before: &'static [Before<K::Ask>]) -> Self {
        Self {
            nodes: 4,
            before,
            down: &[],
            ticks_at: &[],
            asks: &[],
            deltas: &[],
            ends: &[],
            bounds: ticks(1),
            ends_within: Some(1),
            rules: &[],
            safety_only: false,
            sees: &[],
        }
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
    fn may_be_notified(&self, mesh: &Mesh<K>, node: u64, delta: Delta) -> bool {
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
    pub(super) fn model(self) -> ModelOf<K> {
        let world = World::<K>::new(self.nodes, self.rules);
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
        let machines: Vec<Machine<K>> = drivers.into_iter().map(Driver::into_machine).collect();
        let ids: Vec<u64> = machines.iter().map(|it| it.me().id.0).collect();
        let id_of = {
            let ids = ids.clone();
            move |node: usize| ids.get(node).copied().unwrap_or_default()
        };
        let (nodes, groups) = (self.nodes, Arc::clone(&world.groups));
        let (again, remains) = (world.clone(), world.clone());
        let [tick_of, delta_of, crash_of, restart_of] = [(); 4].map(|()| id_of.clone());
        let mut model = Model::observed(machines, Machine::<K>::me, watch)
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
            .delta_when(move |mesh: &Mesh<K>, node, delta| {
                self.may_be_notified(mesh, delta_of(node), delta)
            })
            .crash_when(move |_, node| self.ends.contains(&crash_of(node)))
            .tick_when(move |_, node, _| {
                self.ticks_at.is_empty() || self.ticks_at.contains(&tick_of(node))
            })
            .show(move |it| show(it, &groups));
        for (node, &id) in ids.iter().enumerate() {
            let asks = self.asks.iter().filter(|it| it.0 == id);
            let commands: Vec<_> = asks.map(|it| K::command(&world, it.1)).collect();
            model = model.commands(node, commands).deltas(node, self.deltas(id));
        }
        self.with_properties(model, &world.groups)
    }
}

/// Time is not modelled.
const SOON: Span = Span::millis(1);

/// The first inputs of a host: an epoch, and all other nodes.
pub(super) fn first_inputs<S: Begins>(me: Member, nodes: u64) -> Vec<Input<Groups<S, u8>>> {
    let others = (1..=nodes).filter(|it| *it != me.id.0);
    let others = others.map(|id| Input::Membership(Delta::Joined(Member::new(id, FIRST))));
    [Input::Command(Command::SetEpoch(1))]
        .into_iter()
        .chain(others)
        .collect()
}

/// The site: equal on all nodes.
#[derive(Clone)]
pub(super) struct World<K: Kind> {
    pub(super) plan: Arc<Plan>,
    pub(super) site: Arc<<K::State as Begins>::Site>,
    pub(super) groups: Arc<[GroupId]>,
    rules: &'static [Published],
}

impl<K: Kind> World<K> {
    fn new(nodes: u64, rules: &'static [Published]) -> Self {
        let (plan, site, groups) = K::site(nodes);
        Self {
            plan: Arc::new(plan),
            site: Arc::new(site),
            groups: groups.into(),
            rules,
        }
    }

    pub(super) fn nodes(&self) -> u64 {
        self.plan.nodes().len() as u64
    }

    pub(super) fn machine(&self, id: u64, life: u32, start: Start) -> Machine<K> {
        let replica = replica::Config::new()
            .with_attempts(1)
            .with_window(1)
            .with_pending(4)
            .with_peers(64);
        let groups = u16::try_from(self.groups.len()).unwrap_or(u16::MAX);
        let config = Config::new()
            .with_replica(replica)
            .with_replace_after(1)
            .with_change_delay(Span::ZERO)
            .with_stagger(Span::ZERO)
            .with_groups(groups)
            .with_leader_hints(groups);
        let (plan, site) = (Arc::clone(&self.plan), Arc::clone(&self.site));
        let made = Groups::new(Member::new(id, life), config, plan, site, start);
        let Ok(machine) = made else { unusable() };
        machine.published(self.rules)
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
pub(super) fn unusable() -> ! {
    panic!("the settings of a scenario can work")
}

/// A node in a line.
fn show<S: Begins>(machine: &Groups<S, u8>, groups: &[GroupId]) -> String {
    let parts = groups.iter().map(|it| show_part(machine, *it));
    let parts = parts.collect::<Vec<_>>().join("; ");
    match machine.generation() {
        0 => parts,
        generation => format!("generation {generation}; {parts}"),
    }
}

fn show_part<S: Begins>(machine: &Groups<S, u8>, group: GroupId) -> String {
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
        replica.state(),
        replica.leader(),
        if replica.leads() { " (leads)" } else { "" },
        replica.waiting(),
    )
}
