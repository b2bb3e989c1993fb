//! The mesh of a scenario.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Input, Machine as _, Member, NodeId, Span, Time};
use selvedge_sim::Bytes;
use selvedge_sim::check::{Bounds, Expected, Letter, Model, Node, Scenario, State, Trial};

use super::Journal;
use super::watch::Watch;
use crate::message::Body;
use crate::replica::Role;
use crate::{Command, Config, Configuration, Event, Lease, Published, Replica, Timer, Voter};

/// An application's command, in a form that constants can have. Nodes stand by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// See [`Command::Propose`]; each update of a setup differs.
    Propose(u16),
    /// See [`Command::ProposeAll`].
    ProposeAll(&'static [u16]),
    /// See [`Command::Read`].
    Read(u64),
    /// See [`Command::Campaign`].
    Stand,
    /// See [`Command::TransferLeadership`].
    HandOver(u64),
    /// See [`Command::Configure`].
    Configure(&'static [u64]),
}

/// A step of the past of a scenario, which has one order.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    /// A node (by id) learns this.
    Notified(u64, Delta),
    /// A node's application asks this.
    Asked(u64, Ask),
    /// From here on messages arrive among these nodes alone.
    Among(&'static [u64]),
}

/// The memory that a crash leaves of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing: it begins its next life with the first configuration.
    None,
    /// The stored facts; this number may wait for storage while the node goes on.
    Facts(usize),
}

/// Nodes 1 to n: the members among them, the commands and reports of each, and the possible faults.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of nodes.
    pub nodes: u64,
    /// The first configuration, by id, the most preferred leader first.
    pub members: &'static [u64],
    /// The members of it, by id, that are witnesses.
    pub witnesses: &'static [u64],
    /// True if members promise no other leader for a time. No member leads at first then, for no
    /// timer may be armed. The lease of a leader ends before the tie of a member that acknowledged it;
    /// both may end while messages are in flight, no other timer may tick then.
    pub lease: bool,
    /// The node that leads before anything happens, by id: all members follow it, and no message is
    /// in flight.
    pub led_by: Option<u64>,
    /// The steps after that, before the scenario. Each takes effect before the next one. No timer is
    /// left running.
    pub before: &'static [Before],
    /// Members, by id, that forgot all before anything else happens: they are in their next life.
    pub forgot: &'static [u64],
    /// The commands at nodes (by id) before anything happens.
    pub first: &'static [(u64, Ask)],
    /// The commands of each node's application, at any time.
    pub asks: &'static [&'static [Ask]],
    /// Deltas that a node (by id) learns before anything else.
    pub notified: &'static [(u64, Delta)],
    /// Deltas that a node (by id) may learn at any time, true or false.
    pub deltas: &'static [(u64, Delta)],
    /// Nodes (by id) that may crash; the others may learn of it, and of the next life.
    pub ends: &'static [u64],
    /// True if a node crashes only after an update was applied somewhere.
    pub ends_late: bool,
    /// The memory that a crash leaves.
    pub memory: Memory,
    /// See [`Config::attempts`].
    pub attempts: u8,
    /// See [`Config::window`].
    pub window: u32,
    /// See [`Configuration::frame_budget`].
    pub frame_budget: u16,
    /// The bounds of faults.
    pub bounds: Bounds,
    /// The number of ticks that suffice, after anything, to answer every command: from each state
    /// with at least this number left. `None` where that is not checked.
    pub ends_within: Option<u32>,
    /// Members stand with no ballot above this number, so that there are fewer states. `None` for any.
    pub most_ballots: Option<u64>,
    /// Published rules that take the place of this crate's.
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
    /// All updates of the setup are applied.
    AllApplied(usize),
    /// This number of leaders have led.
    Leaders(usize),
    /// This configuration counts somewhere.
    Configured(u64),
    /// A read was answered.
    Read,
    /// A read was answered by a leader that has sent no round.
    ReadByLease,
    /// A state was received whole.
    Installed,
    /// A node in a later life votes.
    VotesAgain,
}

type Mesh = State<Replica<Journal>, Watch>;

/// The nodes during the past of a scenario.
struct Past {
    drivers: Vec<Driver<Replica<Journal>>>,
    /// The nodes among which messages arrive; all at first.
    among: Option<&'static [u64]>,
    events: Vec<Earlier>,
}

/// A node, and an event that it emitted before the scenario.
pub(super) type Earlier = (usize, Event<Journal>);

impl Past {
    /// A node takes an input, and all take the messages that it causes.
    fn take(&mut self, id: u64, input: Input<Replica<Journal>>) {
        let mut bytes = Bytes::new(&[]);
        let mut inputs = VecDeque::from([(id, input)]);
        while let Some((id, input)) = inputs.pop_front() {
            let at = usize::try_from(id - 1).unwrap_or(usize::MAX);
            let Some(driver) = self.drivers.get_mut(at) else {
                continue;
            };
            let from = driver.machine().me();
            let among = self.among;
            let arrives = |to: u64| among.is_none_or(|it| it.contains(&id) && it.contains(&to));
            let step = driver.step(Time::ZERO, &mut bytes, input, |effect| match effect {
                Effect::Send { to, message } if arrives(to.id.0) => {
                    inputs.push_back((to.id.0, Input::Message { from, message }));
                }
                Effect::Event(event) => self.events.push((at, event)),
                Effect::Send { .. } | Effect::Multicast { .. } => {}
            });
            debug_assert!(step.is_ok(), "nothing is refused before: {step:?}");
        }
    }
}

impl Setup {
    /// Timeouts are longer than any delivery, few timers tick, and nothing goes wrong.
    pub const CALM: Bounds = Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: Some(2),
        early_ticks: Some(0),
    };

    /// These nodes are all members, and there is no other.
    #[must_use]
    pub const fn of(members: &'static [u64], asks: &'static [&'static [Ask]]) -> Self {
        Self {
            nodes: members.len() as u64,
            members,
            witnesses: &[],
            lease: false,
            led_by: None,
            before: &[],
            forgot: &[],
            first: &[],
            asks,
            notified: &[],
            deltas: &[],
            ends: &[],
            ends_late: false,
            memory: Memory::None,
            attempts: 1,
            window: 1,
            frame_budget: 1_400,
            bounds: Self::CALM,
            ends_within: Some(2),
            most_ballots: None,
            rules: &[],
            safety_only: false,
            sees: &[],
        }
    }

    fn configuration(&self) -> Configuration {
        let mut configuration = Configuration::new(self.members.iter().map(|id| {
            let member = Member::new(*id, 0);
            match self.witnesses.contains(id) {
                true => Voter::witness(member),
                false => Voter::new(member),
            }
        }));
        configuration.frame_budget = self.frame_budget;
        configuration.lease = self.lease.then_some(Lease {
            span: Span::secs(1),
            drift: 0,
        });
        configuration
    }

    fn config(&self) -> Config {
        Config::new()
            .with_attempts(self.attempts)
            .with_window(self.window)
            .with_pending(16)
            .with_peers(64)
    }

    fn machine(&self, id: u64, life: u32) -> Replica<Journal> {
        let (me, config) = (Member::new(id, life), self.config());
        let made = match self.members.contains(&id) {
            true => Replica::new(me, config, self.configuration(), Journal::default()).ok(),
            false => Replica::newcomer(me, config).ok(),
        };
        let Some(machine) = made else { unusable() };
        machine
            .standing_up_to(self.most_ballots)
            .published(self.rules)
    }

    fn restored(&self, id: u64, life: u32, remains: &Replica<Journal>) -> Replica<Journal> {
        let me = Member::new(id, life);
        let restored = Replica::restore(me, self.config(), remains.stored()).ok();
        let Some(machine) = restored else { unusable() };
        machine
            .standing_up_to(self.most_ballots)
            .published(self.rules)
    }

    fn command(&self, ask: Ask) -> Command<u16> {
        match ask {
            Ask::Propose(update) => Command::Propose(update),
            Ask::ProposeAll(updates) => Command::ProposeAll(updates.to_vec()),
            Ask::Read(number) => Command::Read(number),
            Ask::Stand => Command::Campaign,
            Ask::HandOver(to) => Command::TransferLeadership(NodeId(to)),
            Ask::Configure(ids) => {
                let mut next = self.configuration();
                let voters = ids.iter().map(|id| Voter::new(Member::new(*id, 0)));
                next.voters = voters.collect();
                Command::Configure(next)
            }
        }
    }

    fn deltas(&self, node: u64) -> Vec<Delta> {
        let listed = self.deltas.iter().filter(|(id, _)| *id == node);
        let mut deltas: Vec<Delta> = listed.map(|it| it.1).collect();
        for &id in self.ends.iter().filter(|&&id| id != node) {
            deltas.push(Delta::Failed(Member::new(id, 0)));
            if self.bounds.restarts > 0 {
                deltas.push(Delta::Joined(Member::new(id, 1)));
            }
        }
        deltas
    }

    /// Returns true for a listed delta, at any time; of a crash, and of the life after it, for a
    /// true one.
    fn may_be_notified(&self, state: &Mesh, node: usize, delta: Delta) -> bool {
        if self.deltas.contains(&(node as u64 + 1, delta)) {
            return true;
        }
        let member = delta.member();
        let place = state.position(member.id);
        let is_here = place
            .and_then(|at| state.node(at))
            .is_some_and(|it| it.is_up() && it.member() == member);
        is_here == matches!(delta, Delta::Joined(_))
    }

    /// The nodes as they begin, and the events of each before.
    fn machines(&self) -> (Vec<Replica<Journal>>, Vec<Earlier>) {
        let nodes = 1..=self.nodes;
        let mut past = Past {
            drivers: nodes.map(|id| Driver::new(self.machine(id, 0))).collect(),
            among: None,
            events: Vec::new(),
        };
        if let Some(id) = self.led_by {
            past.take(id, Input::Command(Command::Campaign));
        }
        let idles = |it: &Driver<Replica<Journal>>| it.timers().next().is_none();
        debug_assert!(
            past.drivers.iter().all(idles),
            "an idle group waits for nothing"
        );
        for step in self.before {
            match *step {
                Before::Notified(id, delta) => past.take(id, Input::Membership(delta)),
                Before::Asked(id, ask) => past.take(id, Input::Command(self.command(ask))),
                Before::Among(ids) => past.among = Some(ids),
            }
        }
        let machines = past.drivers.into_iter().map(Driver::into_machine);
        let machines = machines.map(|it| match it.me().id.0 {
            id if self.forgot.contains(&id) => self.machine(id, 1),
            _ => it,
        });
        (machines.collect(), past.events)
    }

    /// The promises of clocks: see [`lease`](Self::lease).
    fn may_tick(state: &Mesh, node: usize, timer: Timer) -> bool {
        let Some(me) = state.node(node).map(|it| it.member().id) else {
            return true;
        };
        match timer {
            Timer::Lease => true,
            Timer::Tied => !state.nodes().any(|it| is_tied_to(state, me, it)),
            Timer::Resend
            | Timer::Commit
            | Timer::Campaign
            | Timer::Pending
            | Timer::Watch
            | Timer::Fetch
            | Timer::Invite => !state.is_busy(),
        }
    }

    /// The scenario of this setup.
    #[must_use]
    pub fn model(self) -> Model<Replica<Journal>, Watch> {
        let (machines, events) = self.machines();
        let watch = Watch::of(&machines, &events);
        let mut model = Model::observed(machines, Replica::me, watch)
            .bounds(self.bounds)
            .start(move |node, life, machine, cx| {
                let id = node as u64 + 1;
                for &(_, delta) in self.notified.iter().filter(|it| it.0 == id && life == 0) {
                    machine.handle(Input::Membership(delta), cx)?;
                }
                let first = self.first.iter().filter(|it| it.0 == id && life == 0);
                for &(_, ask) in first {
                    machine.handle(Input::Command(self.command(ask)), cx)?;
                }
                Ok(())
            })
            .show(show)
            .delta_when(move |state: &Mesh, node, delta| self.may_be_notified(state, node, delta))
            .crash_when(move |state: &Mesh, node| {
                let may = !self.ends_late || !state.observer().applied.is_empty();
                may && self.ends.contains(&(node as u64 + 1))
            });
        if self.lease {
            model = model.tick_when(Self::may_tick);
        }
        model = match self.memory {
            Memory::None => model
                .restart(move |node, life, _| self.machine(node as u64 + 1, life))
                .remains(move |it| self.machine(it.me().id.0, 0)),
            Memory::Facts(unstored) => model
                .durable(unstored)
                .restart(move |node, life, it| self.restored(node as u64 + 1, life, it)),
        };
        for at in 0..self.nodes {
            let node = usize::try_from(at).unwrap_or(usize::MAX);
            let asks = self.asks.get(node).copied().unwrap_or_default();
            let commands: Vec<_> = asks.iter().map(|it| self.command(*it)).collect();
            model = model
                .commands(node, commands)
                .deltas(node, self.deltas(at + 1));
        }
        self.with_properties(model)
    }
}

impl Trial for Setup {
    const PROTOCOL: &'static str = "replica";

    type Rule = Published;
    type Promise = ();

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], _safety: ()) -> Self {
        Self {
            rules,
            safety_only: true,
            ..self
        }
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
fn unusable() -> ! {
    panic!("the settings of a scenario can work")
}

/// Returns true if this node leads, its lease runs, and this member has acknowledged its round.
fn is_tied_to(state: &Mesh, member: NodeId, node: &Node<Replica<Journal>>) -> bool {
    let leader = node.machine();
    let Role::Leader(leadership) = &leader.role else {
        return false;
    };
    if !node.is_up() || !node.timers().contains(&Timer::Lease) {
        return false;
    }
    let lease = leadership.lease.round;
    let is_acknowledged = || {
        let is_it = |it: &Letter<Replica<Journal>>| {
            let is_between = it.from().id == member && it.to() == leader.me().id;
            let is_acknowledgement = matches!(
                &it.message().body,
                Body::Accepted { ballot, round, .. }
                    if *ballot == leadership.ballot && *round >= lease
            );
            is_between && is_acknowledgement
        };
        leadership.acknowledged(member, lease) || state.letters().any(is_it)
    };
    lease != 0 && is_acknowledged()
}

/// A node in a line.
fn show(machine: &Replica<Journal>) -> String {
    let role = match &machine.role {
        Role::Follower => "follows".to_string(),
        Role::Candidate(it) => format!("stands with {:?}", it.ballot),
        Role::Leader(it) => format!("leads with {:?}", it.ballot),
    };
    let acceptor = &machine.acceptor;
    let tail: Vec<String> = acceptor.tail().map(|it| format!("{it:?}")).collect();
    format!(
        "configuration {}{}, promised {:?}, accepted {:?}, at {} with {:?} then [{}], leader {:?}, {} wait, {role}",
        machine.configuration().number,
        if machine.votes() { "" } else { " (no vote)" },
        acceptor.promised(),
        acceptor.accepted(),
        acceptor.committed(),
        machine.state().map(|it| &it.0),
        tail.join(" "),
        machine.lead,
        machine.waiting(),
    )
}
