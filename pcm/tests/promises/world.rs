//! What happens when: nodes, the order of real time, and the weather.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Delta, Member};
use selvedge_pcm::{Library, Limits, Message, Returned, TaskId};
use selvedge_replica::Configuration;

use crate::node::{In, Node};
use crate::oracle::Oracle;

/// Microseconds of real time.
pub(crate) type Real = u64;

pub(crate) const SECOND: Real = 1_000_000;

pub(crate) enum What {
    Deliver {
        to: u64,
        from: Member,
        message: Message,
    },
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
    Tick(u64),
    Written(Member),
    Wake(u64),
    Restart(u64),
    Told(u64, Delta),
    Ends {
        follower: Member,
        task: TaskId,
        run: u64,
        returned: Returned,
    },
    Library(Member, Library),
}

/// What differs from history to history.
#[derive(Debug)]
pub(crate) struct Weather {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) delay: u64,
    pub(crate) far: u64,
    pub(crate) write: u64,
    /// Single messages of a mailbox are lost, or come twice, or out of order.
    pub(crate) torn: u64,
    /// Gateways hand over to followers that are active at once.
    pub(crate) pushes: bool,
    /// What followers say to one that the tables do not name is dropped, and not kept where it came to.
    pub(crate) drops_unknown: bool,
    /// What comes for a follower that sleeps is lost.
    pub(crate) drops_asleep: bool,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    pub(crate) hostile: bool,
    /// Membership tells which gateways are here.
    pub(crate) membership: bool,
    pub(crate) burst_first: bool,
    /// How often hosts of followers are late.
    pub(crate) late: u64,
}

/// What a function does, by its code.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) result: Vec<u8>,
    pub(crate) fails_at: BTreeSet<u64>,
    pub(crate) takes: Real,
}

pub(crate) struct World {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Real,
    pub(crate) seq: u64,
    pub(crate) queue: BinaryHeap<Reverse<(Real, u64)>>,
    pub(crate) events: BTreeMap<u64, What>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) cuts: BTreeSet<(u64, u64)>,
    pub(crate) weather: Weather,
    pub(crate) oracle: Oracle,
    pub(crate) first: Configuration,
    pub(crate) limits: Limits,
    pub(crate) specs: BTreeMap<Vec<u8>, Spec>,
    /// Libraries that cannot be had.
    pub(crate) missing: BTreeSet<Library>,
    /// Messages that were sent, and may come again.
    pub(crate) old: Vec<(Member, Member, Message)>,
    pub(crate) next_function: u64,
    pub(crate) next_run: u64,
    /// The last function before those that were asked for last.
    pub(crate) asked_last: u64,
    /// A gateway that is cut off for as long as it takes.
    pub(crate) apart: Option<u64>,
    /// The number of the last configuration that was on its way.
    pub(crate) highest: u64,
    pub(crate) hops: BTreeMap<(u64, u64), u8>,
    pub(crate) sent: u64,
    /// The present second, and the number of messages sent in it.
    pub(crate) rate: (u64, u64),
    pub(crate) sent_tables: u64,
    pub(crate) sent_by_kind: BTreeMap<String, u64>,
    pub(crate) longest: BTreeMap<String, usize>,
    pub(crate) restarts: u64,
    pub(crate) forged: u64,
    pub(crate) size_max: usize,
    pub(crate) trace: bool,
}

impl World {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub(crate) fn pick(&mut self, of: &[u64]) -> u64 {
        of[self.rng.below(of.len() as u64) as usize]
    }

    pub(crate) fn at(&mut self, when: Real, what: What) {
        self.seq += 1;
        self.queue.push(Reverse((when, self.seq)));
        self.events.insert(self.seq, what);
    }

    pub(crate) fn say(&self, text: impl FnOnce() -> String) {
        if self.trace {
            eprintln!("{:>12} {}", self.now, text());
        }
    }

    /// The nodes that are gateways, whether they are up or not.
    pub(crate) fn gateways(&self) -> Vec<u64> {
        self.ids(|it| matches!(it.role, crate::node::Role::Gateway { .. }))
    }

    pub(crate) fn followers(&self) -> Vec<u64> {
        self.ids(|it| matches!(it.role, crate::node::Role::Follower { .. }))
    }

    pub(crate) fn clients(&self) -> Vec<u64> {
        self.ids(|it| matches!(it.role, crate::node::Role::Client { .. }))
    }

    fn ids(&self, is: impl Fn(&Node) -> bool) -> Vec<u64> {
        let ids = self.nodes.values().filter(|it| is(it)).map(|it| it.id);
        ids.collect()
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
            What::Deliver { to, from, message } => {
                self.input(to, In::Message { from, message });
            }
            What::Post {
                at,
                from,
                to,
                message,
                hops,
            } => self.post(at, from, to, message, hops),
            What::Fetch { follower, gateway } => self.fetch(follower, gateway),
            What::Hand(to, input) => self.hand(to, input),
            What::Tick(id) => {
                let now = self.now;
                let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) else {
                    return;
                };
                if host.tick_at.is_none_or(|it| it > now) {
                    return; // Another one is scheduled.
                }
                host.tick_at = None;
                self.expire(id);
                self.run(id); // What waited for a follower that slept.
            }
            What::Written(who) => self.written(who),
            What::Wake(id) => self.wake(id),
            What::Restart(id) => self.start(id),
            What::Told(to, delta) => self.input(to, In::Membership(delta)),
            What::Ends {
                follower,
                task,
                run,
                returned,
            } => self.ends(follower, task, run, returned),
            What::Library(who, library) => self.library(who, library),
        }
    }

    /// How much the largest machine holds, by its print.
    pub(crate) fn measure(&mut self) {
        for node in self.nodes.values() {
            if let Some(host) = &node.host {
                self.size_max = self.size_max.max(host.machine.size());
            }
        }
    }
}
