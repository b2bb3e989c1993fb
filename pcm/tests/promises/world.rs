//! The mesh: its nodes, and the choices of a history.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use selvedge_core::{Member, NodeId};
use selvedge_pcm::client::Client;
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway;
use selvedge_pcm::node::Event;
use selvedge_pcm::{Library, Limits, Message, Returned, Tables, TaskId};
use selvedge_replica::{Configuration, Fact, Stored};
use selvedge_sim::histories::{self, History, Hosts, Life, Real, What};

use crate::node::{In, Known, Machine, Node, Observed, Own, Role, to_follower, to_gateway};
use crate::oracle::Oracle;

pub(crate) const SECOND: Real = 1_000_000;

/// The events of this protocol beside those of every protocol.
#[derive(Debug)]
pub(crate) enum Then {
    /// A gateway's host gets something for a mailbox, from a follower of its own or another gateway.
    Post {
        at: u64,
        from: Member,
        to: u64,
        message: Message,
        hops: u8,
    },
    Fetch {
        follower: Member,
        gateway: u64,
    },
    Hand(Member, In),
    Ends {
        follower: Member,
        task: TaskId,
        run: u64,
        returned: Returned,
    },
    Library(Member, Library),
}

/// The behaviour of hosts and peers in one history.
#[derive(Debug)]
pub(crate) struct Habits {
    /// Single messages of a mailbox are lost, or come twice, or out of order.
    pub(crate) torn: u64,
    /// Gateways push messages at once to followers that are active.
    pub(crate) pushes: bool,
    /// A message between followers is dropped if the gateway's tables lack the receiver, and not kept at
    /// that gateway.
    pub(crate) drops_unknown: bool,
    /// Messages to a follower that sleeps are lost.
    pub(crate) drops_asleep: bool,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    pub(crate) hostile: bool,
    /// Membership notifies gateways of each other.
    pub(crate) membership: bool,
    /// The percentage of functions for which a follower's host is late.
    pub(crate) late: u64,
}

/// The effect of a function, by its code.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) result: Vec<u8>,
    pub(crate) fails_at: BTreeSet<u64>,
    pub(crate) takes: Real,
}

pub(crate) struct World {
    pub(crate) hosts: Hosts<Self>,
    pub(crate) habits: Habits,
    pub(crate) oracle: Oracle,
    pub(crate) first: Configuration,
    pub(crate) limits: Limits,
    pub(crate) specs: BTreeMap<Vec<u8>, Spec>,
    /// Libraries that cannot be had.
    pub(crate) missing: BTreeSet<Library>,
    pub(crate) next_function: u64,
    pub(crate) next_run: u64,
    /// The number of the last function before the final requests.
    pub(crate) asked_last: u64,
    /// The longest period that a follower had before it had another one. A unit that got a task then has
    /// that time for it.
    pub(crate) former_period: Real,
    /// A gateway that is cut off for the rest of the history.
    pub(crate) apart: Option<u64>,
    /// The number of the last configuration that was on its way.
    pub(crate) highest: u64,
    pub(crate) hops: BTreeMap<(u64, u64), u8>,
    /// Messages of the tables, by sender and receiver.
    pub(crate) sent_tables: BTreeMap<(u64, u64), u64>,
    pub(crate) sent_by_kind: BTreeMap<String, u64>,
    pub(crate) longest: BTreeMap<String, usize>,
    pub(crate) forged: u64,
}

impl Deref for World {
    type Target = Hosts<Self>;

    fn deref(&self) -> &Hosts<Self> {
        &self.hosts
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Hosts<Self> {
        &mut self.hosts
    }
}

impl History for World {
    type Machine = Machine;
    type Fact = Fact<Tables>;
    type Base = Stored<Tables>;
    type Note = Observed;
    type Happening = Then;
    type Node = Own;
    type Life = Known;

    fn fact(event: &Event) -> Option<&Fact<Tables>> {
        match event {
            Event::Gateway(gateway::Event::Fact(fact)) => Some(fact),
            _ => None,
        }
    }

    fn make(&mut self, life: Life) -> Machine {
        let ids = |all: Vec<u64>| all.into_iter().map(NodeId);
        match self.nodes[&life.me.id.0].own.role.clone() {
            Role::Gateway { config } => Machine::from(self.make_gateway(life, config)),
            Role::Follower {
                config, gateways, ..
            } => {
                let machine = Follower::new(life.me, config, ids(gateways)).unwrap();
                Machine::from(machine)
            }
            Role::Client { config, gateways } => {
                let machine = Client::new(life.me, config, ids(gateways)).unwrap();
                Machine::from(machine)
            }
        }
    }

    fn began(&mut self, me: Member) {
        let id = me.id.0;
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        let gateway = host.driver.machine().gateway();
        host.own.folded = gateway.cloned().map(Box::new);
        self.oracle.lives.insert(me);
        match self.nodes[&id].own.role {
            Role::Gateway { .. } => {
                self.input(id, to_gateway(gateway::Command::Start));
                self.measure_hops(id);
                self.introduce(me);
            }
            Role::Follower { .. } => self.input(id, to_follower(follower::Command::Start)),
            Role::Client { .. } => {}
        }
    }

    fn send(&mut self, from: Member, to: Member, message: Message) {
        self.dispatch(from, to, message);
    }

    fn stepped(&mut self, step: &histories::Step<'_, Self>) -> Vec<Observed> {
        self.examine(step)
    }

    fn note(&mut self, me: Member, note: Observed) {
        self.oracle.examine(me, note.version, &note.tables);
    }

    fn event(&mut self, me: Member, _: Real, event: Event) {
        match event {
            Event::Gateway(event) => self.gateway_event(me, event),
            Event::Follower(event) => self.follower_event(me, event),
            Event::Client(event) => self.client_event(me, event),
        }
    }

    fn happens(&mut self, what: Then) {
        match what {
            Then::Post {
                at,
                from,
                to,
                message,
                hops,
            } => self.post(at, from, to, message, hops),
            Then::Fetch { follower, gateway } => self.fetch(follower, gateway),
            Then::Hand(to, input) => {
                if self.is_up(to) {
                    self.input(to.id.0, input);
                }
            }
            Then::Ends {
                follower,
                task,
                run,
                returned,
            } => self.ends(follower, task, run, returned),
            Then::Library(who, library) => self.library(who, library),
        }
    }

    fn next_input(&mut self, id: u64) -> Option<histories::Waiting<Self>> {
        self.next_awake(id)
    }

    /// Handles the inputs that waited while a follower slept.
    fn ticked(&mut self, id: u64) {
        self.run(id);
    }
}

impl World {
    /// Schedules an event after this time.
    pub(crate) fn then(&mut self, after: Real, what: Then) {
        self.after(after, What::Own(what));
    }

    /// The nodes that are gateways, whether they are up or not.
    pub(crate) fn gateways(&self) -> Vec<u64> {
        self.ids_of(|it| matches!(it, Role::Gateway { .. }))
    }

    pub(crate) fn followers(&self) -> Vec<u64> {
        self.ids_of(|it| matches!(it, Role::Follower { .. }))
    }

    pub(crate) fn clients(&self) -> Vec<u64> {
        self.ids_of(|it| matches!(it, Role::Client { .. }))
    }

    fn ids_of(&self, is: impl Fn(&Role) -> bool) -> Vec<u64> {
        let ids = self.nodes.values().filter(|it| is(&it.own.role));
        ids.map(|it: &Node| it.id).collect()
    }
}
