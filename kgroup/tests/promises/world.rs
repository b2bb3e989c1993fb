//! What happens when: nodes, the order of real time, and the weather.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Delta, Input, Member};
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Command, Kgroup, Message, Outcome, Site};
use selvedge_routine::State;

use crate::devices::Devices;
use crate::node::Node;
use crate::oracle::Maps;
use crate::runs::Runs;

/// Microseconds of real time.
pub(crate) type Real = u64;

#[allow(clippy::large_enum_variant, reason = "most are messages")]
pub(crate) enum What {
    Deliver {
        to: u64,
        from: Member,
        message: Message,
        sent: Real,
    },
    Tick(u64),
    Written(Member),
    Wake(u64),
    Restart(u64),
    Told(u64, Delta),
    Epoch(u64, u64),
    /// A command reaches its device.
    Arrives {
        by: Member,
        ticket: Ticket,
        value: State,
    },
    /// A device's answer reaches the host.
    Answers(Member, Ticket, Outcome),
    Reports(Member, selvedge_core::NodeId, Option<State>),
}

/// What differs from history to history.
pub(crate) struct Weather {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) delay: u64,
    pub(crate) far: u64,
    /// The latest that a message comes.
    pub(crate) latest: Real,
    pub(crate) write: u64,
    pub(crate) clocks_stop: bool,
    pub(crate) burst_first: bool,
    pub(crate) deltas_lost: u64,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    pub(crate) liars: bool,
}

pub(crate) struct World {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Real,
    seq: u64,
    queue: BinaryHeap<Reverse<(Real, u64)>>,
    events: BTreeMap<u64, What>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) site: Arc<Site>,
    pub(crate) maps: Vec<GroupId>,
    pub(crate) cuts: BTreeSet<(u64, u64)>,
    pub(crate) weather: Weather,
    pub(crate) oracle: Maps,
    pub(crate) devices: Devices,
    pub(crate) runs: Runs,
    /// Nodes that forgot, or never were here, since all were well.
    pub(crate) spent: BTreeSet<u64>,
    /// Nodes that never begin.
    pub(crate) never: BTreeSet<u64>,
    pub(crate) epoch: u64,
    /// Messages that were sent, and may come again.
    pub(crate) old: Vec<(Member, u64, Message)>,
    pub(crate) last_sent: Real,
    pub(crate) sent: u64,
    pub(crate) restarts: u64,
    pub(crate) lies: u64,
    pub(crate) refused: u64,
    pub(crate) size_max: usize,
    pub(crate) trace: bool,
}

impl World {
    pub(crate) fn new(
        rng: ChaCha8Rng,
        site: Site,
        maps: Vec<GroupId>,
        weather: Weather,
        nodes: Vec<Node>,
    ) -> Self {
        let devices = Devices::of(&site);
        Self {
            rng,
            now: 0,
            seq: 0,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            nodes: nodes.into_iter().map(|it| (it.id, it)).collect(),
            site: Arc::new(site),
            maps,
            cuts: BTreeSet::new(),
            weather,
            oracle: Maps::default(),
            devices,
            runs: Runs::default(),
            spent: BTreeSet::new(),
            never: BTreeSet::new(),
            epoch: 1,
            old: Vec::new(),
            last_sent: 0,
            sent: 0,
            restarts: 0,
            lies: 0,
            refused: 0,
            size_max: 0,
            trace: std::env::var_os("TRACE").is_some(),
        }
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    pub(crate) fn a_node(&mut self) -> u64 {
        let ids = self.ids();
        ids[self.below(ids.len() as u64) as usize]
    }

    pub(crate) fn at(&mut self, when: Real, what: What) {
        self.seq += 1;
        self.queue.push(Reverse((when, self.seq)));
        self.events.insert(self.seq, what);
    }

    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>10} {}", self.now, text());
        }
    }

    pub(crate) fn machine(&self, id: u64) -> Option<&Kgroup> {
        self.nodes[&id].host.as_ref().map(|it| it.driver.machine())
    }

    /// All groups that there are: the site's, and the maps that are asked for.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.site
            .groups()
            .chain(self.maps.iter().copied())
            .collect()
    }

    /// The nodes that believe to lead a group.
    pub(crate) fn leaders(&self, group: GroupId) -> Vec<u64> {
        let leads = |id: &u64| {
            self.machine(*id)
                .is_some_and(|it| it.leads().any(|led| led == group))
        };
        self.ids().into_iter().filter(leads).collect()
    }

    /// Runs on until then.
    pub(crate) fn run_until(&mut self, end: Real) {
        while let Some(&Reverse((when, seq))) = self.queue.peek() {
            if when > end {
                break;
            }
            self.queue.pop();
            self.now = self.now.max(when);
            let what = self.events.remove(&seq).unwrap();
            self.happens(what);
        }
        self.now = self.now.max(end);
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Deliver {
                to,
                from,
                message,
                sent,
            } => self.input(to, Input::Message { from, message }, sent),
            What::Tick(id) => {
                let now = self.now;
                let Some(host) = self.nodes.get_mut(&id).unwrap().host.as_mut() else {
                    return;
                };
                if host.tick_at.is_none_or(|it| it > now) {
                    return; // Another one is scheduled.
                }
                host.tick_at = None;
                self.expire(id);
            }
            What::Written(who) => self.written(who),
            What::Wake(id) => self.wake(id),
            What::Restart(id) => self.start(id),
            What::Told(to, delta) => self.input(to, Input::Membership(delta), self.now),
            What::Epoch(to, epoch) => self.command(to, Command::Epoch(epoch)),
            What::Arrives { by, ticket, value } => self.arrives(by, ticket, value),
            What::Answers(by, ticket, outcome) => {
                self.command_of(by, Command::Acted { ticket, outcome });
            }
            What::Reports(by, device, value) => {
                self.command_of(by, Command::Reported { device, value });
            }
        }
    }

    /// A command that may be refused: the host says what it knows.
    pub(crate) fn command(&mut self, id: u64, command: Command) {
        self.input(id, Input::Command(command), self.now);
    }

    /// The same, to one life of a node.
    pub(crate) fn command_of(&mut self, of: Member, command: Command) {
        let host = self.nodes[&of.id.0].host.as_ref();
        if host.is_some_and(|it| it.me == of) {
            self.command(of.id.0, command);
        }
    }

    /// How much the largest machine holds, by its print.
    pub(crate) fn measure(&mut self) {
        for node in self.nodes.values() {
            if let Some(host) = &node.host {
                let size = format!("{:?}", host.driver.machine()).len();
                self.size_max = self.size_max.max(size);
            }
        }
    }
}
