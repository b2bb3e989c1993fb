//! Nodes, their disks, the network, membership's reports and the devices. Time is virtual.

mod dice;
mod disk;
mod events;
mod hosts;
mod lives;
mod membership;
mod network;
mod queue;

use std::collections::{BTreeMap, BTreeSet};

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use selvedge_core::{Driver, Effect, Input, NodeId, Time};
use selvedge_groups::Misbehaviour;
use selvedge_kgroup::{Command, Config, Kgroup, Message, Reject};
use selvedge_routine::State;

pub(crate) use self::dice::Dice;
pub(crate) use self::events::Ev;
use self::lives::Node;
use self::queue::Queue;
use crate::oracle::Oracle;
use crate::story::Break;

pub(crate) const MS: u64 = 1_000;

/// The faults of the network and of hosts, in microseconds and percent.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: u64,
    pub(crate) double: u64,
    pub(crate) delay: u64,
    /// Of 100 messages, the number that take up to `longest`.
    pub(crate) slow: u64,
    pub(crate) longest: u64,
    /// The longest time of a message without an item of a cluster.
    pub(crate) ages: u64,
    pub(crate) storage: u64,
    /// Of 100 commands, the number that a host carries out late, fails or does not report.
    pub(crate) act: u64,
    /// The longest time until membership reports.
    pub(crate) detection: u64,
}

/// The world of one history.
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) dice: Dice,
    machine_dice: ChaCha8Rng,
    queue: Queue,
    /// The effects of the present step; empty between steps.
    effects: Vec<Effect<Kgroup>>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) blocked: BTreeSet<(NodeId, NodeId)>,
    pub(crate) faults: Faults,
    pub(crate) config: Config,
    pub(crate) budget: u16,
    pub(crate) device_states: BTreeMap<NodeId, State>,
    pub(crate) epoch: u64,
    pub(crate) epoch_length: u64,
    pub(crate) oracle: Oracle,
    pub(crate) steps: u64,
    /// Messages that are lost.
    pub(crate) loses: fn(&Message) -> bool,
    pub(crate) trace: bool,
    pub(crate) broken: Option<Break>,
    traced_group: Option<u64>,
    /// The limit of groups is below the number that a node founds.
    pub(crate) is_unusable: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults, config: Config, budget: u16) -> Self {
        Self {
            now: 0,
            dice: Dice::new(seed ^ 0x5eed),
            machine_dice: ChaCha8Rng::seed_from_u64(seed),
            queue: Queue::default(),
            effects: Vec::new(),
            nodes: BTreeMap::new(),
            blocked: BTreeSet::new(),
            faults,
            config,
            budget,
            device_states: BTreeMap::new(),
            epoch: 1,
            epoch_length: 5_000 * MS,
            oracle: Oracle::default(),
            steps: 0,
            loses: |_| false,
            broken: None,
            is_unusable: false,
            traced_group: std::env::var("OUTSIDE_GROUP")
                .ok()
                .and_then(|it| it.parse().ok()),
            trace: std::env::var("OUTSIDE_TRACE").is_ok(),
        }
    }

    pub(crate) fn note(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>9.3} s  {}", self.now as f64 / 1e6, text());
        }
    }

    pub(crate) fn at(&mut self, at: u64, ev: Ev) {
        self.queue.push(at, ev);
    }

    pub(crate) fn after(&mut self, after: u64, ev: Ev) {
        self.at(self.now + after, ev);
    }

    pub(crate) fn next(&mut self, until: u64) -> Option<Ev> {
        let Some((at, ev)) = self.queue.pop(until) else {
            self.now = until;
            return None;
        };
        self.now = self.now.max(at);
        Some(ev)
    }

    pub(crate) fn alive(&self) -> Vec<NodeId> {
        let running = self.nodes.iter().filter(|it| it.1.driver.is_some());
        running.map(|it| *it.0).collect()
    }

    pub(crate) fn machine(&self, node: NodeId) -> Option<&Kgroup> {
        self.nodes.get(&node)?.machine()
    }

    /// Carries out an event of the world. Events of the story are returned.
    pub(crate) fn run(&mut self, ev: Ev) -> Option<Ev> {
        match ev {
            Ev::Deliver {
                from,
                to,
                sent,
                message,
            } => self.deliver(from, to, sent, message),
            Ev::Wake { node, life, times } => self.wake(node, life, times),
            Ev::Stored { node, life, mark } => self.stored(node, life, mark),
            Ev::Member { node, life, delta } => {
                if self.is_in(node, life) {
                    self.input(node, Input::Membership(delta));
                }
            }
            Ev::Execute {
                node,
                life,
                ticket,
                value,
                until,
            } => {
                self.execute(node, life, ticket, value, until);
            }
            Ev::Host {
                node,
                life,
                command,
            } => {
                if self.is_in(node, life) {
                    self.command(node, command);
                }
            }
            Ev::Start { node, file } => self.start(node, file),
            Ev::Heal(pairs) => self.heal(&pairs),
            Ev::Epoch => {
                self.epoch += 1;
                for node in self.alive() {
                    let after = self.dice.below(100 * MS);
                    let life = self.nodes[&node].life;
                    let command = Command::SetEpoch(self.epoch);
                    self.after(
                        after,
                        Ev::Host {
                            node,
                            life,
                            command,
                        },
                    );
                }
                self.after(self.epoch_length, Ev::Epoch);
            }
            Ev::Step(_) | Ev::Poll => return Some(ev),
        }
        None
    }

    fn is_in(&self, node: NodeId, life: u32) -> bool {
        let found = self.nodes.get(&node);
        found.is_some_and(|it| it.driver.is_some() && it.life == life)
    }

    /// Gives a node a command of its application. The refusal is returned.
    pub(crate) fn command(&mut self, node: NodeId, command: Command) -> Option<Reject> {
        self.input(node, Input::Command(command))
    }

    fn input(&mut self, node: NodeId, input: Input<Kgroup>) -> Option<Reject> {
        let now = self.now;
        let found = self.nodes.get_mut(&node)?;
        let driver = found.driver.as_mut()?;
        let time = Time(now + found.offset);
        self.steps += 1;
        let mut effects = std::mem::take(&mut self.effects);
        let refused = driver
            .step_into(time, &mut self.machine_dice, input, &mut effects)
            .err();
        self.oracle.refused(now, node, refused);
        self.emitted(node, effects);
        refused
    }

    /// Alarms of a node, one behind the other.
    fn wake(&mut self, node: NodeId, life: u32, times: u64) {
        let now = self.now;
        for rest in (1..=times).rev() {
            let found = self.nodes.get_mut(&node).filter(|it| it.life == life);
            let Some(found) = found.filter(|it| it.driver.is_some()) else {
                return;
            };
            if found.asleep_until > now {
                let at = found.asleep_until + self.dice.below(5);
                self.queue.push_wake(at, node, life, 1);
                continue;
            }
            found.wake_at = u64::MAX;
            let time = Time(now + found.offset);
            let driver = found.driver.as_mut().unwrap();
            // Most alarms are of a deadline that has moved.
            if driver.deadline().is_none_or(|it| it > time) {
                self.steps += rest;
                return self.set_alarm(node, rest);
            }
            self.steps += 1;
            let mut effects = std::mem::take(&mut self.effects);
            driver.expire_into(time, &mut self.machine_dice, &mut effects);
            let refused = driver.refused_ticks();
            self.oracle
                .expect(now, refused == 0, || format!("node {node} refused a tick"));
            self.emitted(node, effects);
        }
    }

    /// Sets the alarm of a node to its deadline, unless there is an earlier one.
    fn set_alarm(&mut self, node: NodeId, times: u64) {
        let found = self.nodes.get_mut(&node).unwrap();
        let Some(deadline) = found.driver.as_ref().and_then(Driver::deadline) else {
            return;
        };
        let at = deadline.0.saturating_sub(found.offset).max(self.now);
        if at < found.wake_at {
            found.wake_at = at;
            let life = found.life;
            self.queue.push_wake(at, node, life, times);
        }
    }
}

/// Returns true for a refusal that no correct peer causes.
pub(crate) fn is_misbehaviour(reject: &Reject) -> bool {
    use selvedge_groups::Reject as R;
    matches!(
        reject,
        Reject::Groups(R::Misbehaviour(
            Misbehaviour::OwnId(_) | Misbehaviour::Plan { .. } | Misbehaviour::Empty
        ))
    )
}
