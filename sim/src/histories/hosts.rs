//! Events in the order of time, and the nodes.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use selvedge_core::{Choose, Delta, Machine, Member, Time};

use super::{Choices, History, Node, Trace};
use crate::network::Queue;

/// Microseconds of real time, which no node knows.
pub type Real = u64;

type Message<H> = <<H as History>::Machine as Machine>::Message;

/// An event at a time.
#[derive(Debug)]
pub enum What<H: History> {
    /// A message arrives.
    Deliver {
        /// At this node.
        to: u64,
        /// From this life.
        from: Member,
        /// The message.
        message: Message<H>,
        /// The time at which it was sent.
        sent: Real,
    },
    /// Timers of a node may be due.
    Tick(u64),
    /// The storage of this life is done with a write.
    Written(Member),
    /// A node wakes.
    Wake(u64),
    /// A node begins its next life.
    Restart(u64),
    /// Membership notifies a node.
    Notified(u64, Delta),
    /// An event of the protocol.
    Own(H::Happening),
}

/// The faults of network and hosts. Shares are of 100.
#[derive(Clone, Debug)]
pub struct Weather {
    /// The share of messages that are lost.
    pub lost: u64,
    /// The share of messages that come twice.
    pub doubled: u64,
    /// The shortest delay.
    pub least: Real,
    /// The most that a delay is longer.
    pub delay: Real,
    /// The share of messages that come much later.
    pub far: u64,
    /// The most that these are later.
    pub farthest: Real,
    /// Messages that are older are dropped.
    pub latest: Real,
    /// The longest time of a write.
    pub write: Real,
    /// The clock of a host that sleeps stands still.
    pub clocks_stop: bool,
    /// A host that wakes takes all messages before it looks at its timers.
    pub burst_first: bool,
    /// The share of news of members that are lost.
    pub deltas_lost: u64,
}

/// Nothing goes wrong, and a message takes half a millisecond.
impl Default for Weather {
    fn default() -> Self {
        Self {
            lost: 0,
            doubled: 0,
            least: 500,
            delay: 0,
            far: 0,
            farthest: 20_000_000,
            latest: Real::MAX,
            write: 0,
            clocks_stop: false,
            burst_first: false,
            deltas_lost: 0,
        }
    }
}

/// The nodes of a history, and the time.
pub struct Hosts<H: History> {
    /// The source of all draws.
    pub choices: Choices,
    /// The present time.
    pub now: Real,
    queue: Queue<(u32, What<H>)>,
    /// The number of messages in a row, each caused by the one before, that led to the present
    /// event; 0 if a timer or the application caused it.
    pub depth: u32,
    /// The longest such row.
    pub deepest: u32,
    /// All nodes, by id.
    pub nodes: BTreeMap<u64, Node<H>>,
    /// The links, from a node to a node, over which no message arrives.
    pub cuts: BTreeSet<(u64, u64)>,
    /// The faults.
    pub weather: Weather,
    /// Messages that were sent, and may come again: see [`History::remember`].
    pub old: Vec<(Member, u64, Message<H>)>,
    /// The number of messages that were sent.
    pub sent: u64,
    /// The present second, and the number of messages sent in it.
    second: (u64, u64),
    /// The most messages in a second.
    pub busiest: u64,
    /// The number of lives that were not the first of their node.
    pub restarts: u64,
    /// The length of the largest machine's print: see [`Hosts::measure`].
    pub size_max: usize,
    /// The trace.
    pub trace: Trace,
}

impl<H: History> Hosts<H> {
    /// These nodes, all down.
    #[must_use]
    pub fn new(choices: Choices, weather: Weather, nodes: Vec<Node<H>>) -> Self {
        Self {
            choices,
            now: 0,
            queue: Queue::new(),
            depth: 0,
            deepest: 0,
            nodes: nodes.into_iter().map(|it| (it.id, it)).collect(),
            cuts: BTreeSet::new(),
            weather,
            old: Vec::new(),
            sent: 0,
            second: (0, 0),
            busiest: 0,
            restarts: 0,
            size_max: 0,
            trace: Trace::new(),
        }
    }

    /// Lets something happen at a time.
    pub(super) fn push(&mut self, when: Real, what: What<H>) {
        let depth = match &what {
            What::Deliver { .. } => self.depth + 1,
            What::Own(_) => self.depth,
            What::Tick(_)
            | What::Written(_)
            | What::Wake(_)
            | What::Restart(_)
            | What::Notified(..) => 0,
        };
        self.queue.push(Time(when), (depth, what));
    }

    /// The next event until then.
    pub(super) fn next(&mut self, end: Real) -> Option<What<H>> {
        if self.queue.next_at().is_none_or(|it| it.0 > end) {
            self.now = self.now.max(end);
            return None;
        }
        let (when, (depth, what)) = self.queue.pop()?;
        self.now = self.now.max(when.0);
        self.depth = depth;
        self.deepest = self.deepest.max(depth);
        Some(what)
    }

    /// A line of the trace.
    pub fn say(&self, text: impl FnOnce() -> String) {
        self.trace.line(|| format!("{:>12} {}", self.now, text()));
    }

    /// The ids of all nodes.
    #[must_use]
    pub fn ids(&self) -> Vec<u64> {
        self.nodes.keys().copied().collect()
    }

    /// The machine of a node that is up.
    #[must_use]
    pub fn machine(&self, id: u64) -> Option<&H::Machine> {
        self.nodes.get(&id)?.machine()
    }

    /// The machines of all nodes that are up.
    pub fn machines(&self) -> impl Iterator<Item = &H::Machine> {
        self.nodes.values().filter_map(Node::machine)
    }

    /// The life of a node that is up.
    #[must_use]
    pub fn me(&self, id: u64) -> Option<Member> {
        self.nodes.get(&id)?.me()
    }

    /// Returns true if this life is up.
    #[must_use]
    pub fn is_up(&self, who: Member) -> bool {
        self.me(who.id.0) == Some(who)
    }

    /// Returns true if nothing keeps the host of a node from running.
    #[must_use]
    pub fn is_running(&self, id: u64) -> bool {
        self.nodes.get(&id).is_some_and(Node::is_running)
    }

    /// Counts a message that is sent. Returns the number of messages in the present second.
    pub fn count(&mut self) -> u64 {
        self.sent += 1;
        let second = self.now / 1_000_000;
        let before = if self.second.0 == second {
            self.second.1
        } else {
            0
        };
        self.second = (second, before + 1);
        self.busiest = self.busiest.max(before + 1);
        before + 1
    }

    /// Sends over one link, which may be cut, lose it or double it.
    pub fn go(&mut self, from: u64, to: u64, what: impl Fn() -> What<H>) {
        if self.cuts.contains(&(from, to)) || self.choices.percent(self.weather.lost) {
            return;
        }
        let copies = 1 + u64::from(self.choices.percent(self.weather.doubled));
        for _ in 0..copies {
            let mut delay = self.weather.least + self.choices.below(self.weather.delay);
            if self.choices.percent(self.weather.far) {
                delay += self.choices.below(self.weather.farthest);
            }
            self.push(self.now + delay.min(self.weather.latest), what());
        }
    }

    /// Sends a message of a life over one link.
    pub fn carry(&mut self, from: Member, to: u64, message: &Message<H>) {
        let sent = self.now;
        self.go(from.id.0, to, || What::Deliver {
            to,
            from,
            message: message.clone(),
            sent,
        });
    }

    /// Cuts all links between these nodes and those.
    pub fn cut_apart(&mut self, left: &[u64], right: &[u64]) {
        for &one in left {
            for &other in right {
                self.cuts.insert((one, other));
                self.cuts.insert((other, one));
            }
        }
    }

    /// Ends the faults of links and of news.
    pub fn calm(&mut self) {
        self.cuts.clear();
        let weather = &mut self.weather;
        (
            weather.lost,
            weather.doubled,
            weather.far,
            weather.deltas_lost,
        ) = (0, 0, 0, 0);
    }

    /// Measures the largest machine by the length of its print.
    pub fn measure(&mut self) {
        let sizes = self.machines().map(|it| format!("{it:?}").len());
        self.size_max = sizes.max().unwrap_or_default().max(self.size_max);
    }
}

impl<H: History> fmt::Debug for Hosts<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts")
            .field("now", &self.now)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}
