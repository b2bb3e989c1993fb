//! Histories of a map between nodes and leaders: messages are lost, doubled and late, clocks differ, leaders
//! change and do not notice, and what a former one proposed is decided later or never.
//!
//! At each moment a session is alive of which a node knows that. A node that watches a prefix has its content at each
//! version that a report names. At the end, when leaders stay and messages get through, sessions that no node keeps
//! alive have ended, others have not, and all nodes have the latest content.

mod steps;

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Choose as _, Member, Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{
    Action, Change, ClientEffect, Entry, Expected, LeaderEffect, Operation, Owner, REMOVED_MAX,
    SessionId, Store, StoreAnswer, StoreClient, StoreCommand, StoreConfig, StoreEvent, StoreLeader,
    StoreRequest, StoreTimer, Stored, Transaction,
};
use selvedge_replica::State as _;
use selvedge_sim::histories::{Choices, random, seeds};

const MAP: GroupId = GroupId(2);
pub(crate) const NODES: u64 = 4;
/// The time between steps, in milliseconds.
const STEP: u64 = 50;
const TICK: u64 = 400;
const PREFIX: &str = "a/";
const WATCH: u64 = 7;

/// A leader with the state that it has applied. It may have been deposed.
struct Leader {
    me: Member,
    leader: StoreLeader,
    state: Store,
    applied: usize,
    tick_at: Option<u64>,
    reads: Vec<u64>,
}

struct Node {
    /// The number of its restarts. A new life has no memory of the former one.
    life: u32,
    client: StoreClient,
    /// Its clock's speed, in percent.
    speed: u64,
    tick_at: Option<u64>,
    /// The sessions of which it knows that they live, and until when.
    lives: BTreeMap<SessionId, Time>,
    /// The sessions that it keeps alive.
    kept: BTreeSet<SessionId>,
    mirror: BTreeMap<String, Entry>,
    /// The tickets of watches.
    watch: u64,
    ticket: u64,
    /// The answers to its questions and changes, which were not taken.
    answers: Vec<StoreEvent>,
}

enum Message {
    Request(Member, StoreRequest),
    Answer(Member, StoreAnswer),
}

/// The member of a node in one of its lives, which is none of the leaders.
const fn member(at: usize, life: u32) -> Member {
    Member::new(at as u64 + 11, life)
}

#[derive(Debug, Default)]
struct Totals {
    sessions: usize,
    kept: usize,
    expired: usize,
    waits: usize,
    renewals: usize,
    reports: usize,
    compactions: usize,
    leaders: usize,
}

pub(crate) struct World {
    pub(crate) choices: Choices,
    frames: u16,
    now: u64,
    loss: u64,
    /// Leaders change often, or sessions are long.
    is_hasty: bool,
    log: Vec<Change>,
    state: Store,
    /// The content of the prefix at each version.
    contents: BTreeMap<u64, BTreeMap<String, Entry>>,
    /// Proposals that may be decided.
    proposals: Vec<Change>,
    /// The last one leads.
    leaders: Vec<Leader>,
    nodes: Vec<Node>,
    messages: Vec<(u64, Message)>,
    /// The node that gets no message, until this time.
    away: (usize, u64),
    totals: Totals,
}

impl World {
    /// A world with frames of this budget in bytes.
    pub(crate) fn new(mut choices: Choices, frames: u16) -> Self {
        let nodes = (0..NODES).map(|_| Node {
            life: 0,
            client: client(frames),
            speed: 95 + choices.below(11),
            tick_at: None,
            lives: BTreeMap::new(),
            kept: BTreeSet::new(),
            mirror: BTreeMap::new(),
            watch: WATCH,
            ticket: 0,
            answers: Vec::new(),
        });
        let nodes = nodes.collect();
        let is_hasty = choices.percent(50);
        let mut world = Self {
            choices,
            frames,
            is_hasty,
            now: 1_000,
            loss: 20,
            log: Vec::new(),
            state: Store::default(),
            contents: BTreeMap::from([(0, BTreeMap::new())]),
            proposals: Vec::new(),
            leaders: Vec::new(),
            nodes,
            messages: Vec::new(),
            away: (0, 0),
            totals: Totals::default(),
        };
        world.elect();
        for at in 0..world.nodes.len() {
            world.watch(at);
        }
        world
    }

    /// Restarts a node without memory: it has no answer to what it asked for.
    pub(crate) fn restart(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.life += 1;
        node.client = client(self.frames);
        node.tick_at = None;
        node.lives.clear();
        node.kept.clear();
        node.answers.clear();
        self.watch(at);
    }

    /// The answers to a node since the last call.
    pub(crate) fn take_answers(&mut self, at: usize) -> Vec<StoreEvent> {
        std::mem::take(&mut self.nodes[at].answers)
    }

    /// Returns true if the node knows that the session is alive now.
    pub(crate) fn is_alive(&self, at: usize, session: SessionId) -> bool {
        let until = self.nodes[at].lives.get(&session);
        until.is_some_and(|&it| self.clock(at) < it)
    }

    fn clock(&self, at: usize) -> Time {
        Time(Span::millis(self.now * self.nodes[at].speed / 100).0)
    }

    /// Another node leads, or the same one again. It has applied all that was decided.
    fn elect(&mut self) {
        let me = Member::new(1 + self.choices.below(3), 0);
        let leader = StoreLeader::new(me, Span::millis(TICK), self.frames);
        if self.leaders.len() > 2 {
            self.leaders.remove(0);
        }
        self.leaders.retain(|it| it.me != me);
        self.leaders.push(Leader {
            me,
            leader,
            state: Store::default(),
            applied: 0,
            tick_at: None,
            reads: Vec::new(),
        });
        self.totals.leaders += 1;
        let last = self.leaders.len() - 1;
        let led = &mut self.leaders[last];
        for change in &self.log {
            led.state.apply(change);
        }
        led.applied = self.log.len();
        let mut out = Vec::new();
        led.leader.on_leads(&led.state, &mut out);
        self.carry_out(last, out);
    }

    fn carry_out(&mut self, at: usize, effects: Vec<LeaderEffect>) {
        for effect in effects {
            match effect {
                LeaderEffect::Propose(change) => self.proposals.push(change),
                LeaderEffect::Read(read) => self.leaders[at].reads.push(read),
                LeaderEffect::Answer { to, answer } => {
                    if (1..=NODES).contains(&(to.id.0 - 10)) {
                        self.send(Message::Answer(to, answer));
                    }
                }
                LeaderEffect::Arm { after, .. } => {
                    let at_most = self.now + after.0 / Span::millis(1).0;
                    self.leaders[at].tick_at = Some(at_most + self.choices.below(100));
                }
            }
        }
    }

    fn send(&mut self, message: Message) {
        if self.choices.percent(self.loss) {
            return;
        }
        let longest = if self.choices.percent(self.loss / 4) {
            9_000
        } else {
            100
        };
        let at = self.now + self.choices.below(longest);
        if self.choices.percent(self.loss / 2) {
            let again = match &message {
                Message::Request(from, request) => Message::Request(*from, request.clone()),
                Message::Answer(to, answer) => Message::Answer(*to, answer.clone()),
            };
            let later = self.now + self.choices.below(5_000);
            self.messages.push((later, again));
        }
        self.messages.push((at, message));
    }

    pub(crate) fn command(&mut self, at: usize, command: StoreCommand) {
        let mut out = Vec::new();
        let now = self.clock(at);
        let taken = self.nodes[at]
            .client
            .on_command(now, MAP, command, &mut out);
        assert_eq!(taken, Ok(()));
        self.on_client(at, out);
    }

    /// Returns the ticket of the change.
    pub(crate) fn change(&mut self, at: usize, operation: Operation) -> u64 {
        self.nodes[at].ticket += 1;
        let ticket = self.nodes[at].ticket;
        self.command(at, StoreCommand::Change { ticket, operation });
        ticket
    }

    fn watch(&mut self, at: usize) {
        self.nodes[at].watch += 1;
        self.nodes[at].mirror.clear();
        let ticket = self.nodes[at].watch;
        let prefix = PREFIX.into();
        let since = 0;
        self.command(
            at,
            StoreCommand::WatchPrefix {
                ticket,
                prefix,
                since,
            },
        );
    }

    fn on_client(&mut self, at: usize, effects: Vec<ClientEffect>) {
        for effect in effects {
            match effect {
                ClientEffect::Ask { request, .. } => {
                    let from = member(at, self.nodes[at].life);
                    self.send(Message::Request(from, request));
                }
                ClientEffect::Arm { after, .. } => {
                    let after = after.0 / Span::millis(1).0 + self.choices.below(100);
                    self.nodes[at].tick_at = Some(self.now + after);
                }
                ClientEffect::Event { event, .. } => self.on_event(at, event),
            }
        }
    }

    fn on_event(&mut self, at: usize, event: StoreEvent) {
        let node = &mut self.nodes[at];
        if let StoreEvent::Changed { .. } | StoreEvent::Found { .. } | StoreEvent::Listed { .. } =
            event
        {
            node.answers.push(event.clone());
        }
        match event {
            StoreEvent::Changed {
                stored: Stored::Begun { session, .. },
                ..
            } => {
                self.totals.sessions += 1;
                node.kept.insert(session);
            }
            StoreEvent::SessionKept { session, until } => {
                self.totals.kept += 1;
                node.lives.insert(session, until);
            }
            StoreEvent::SessionOver { session } => {
                assert!(self.state.session(session).is_none(), "{session} is alive");
                node.kept.remove(&session);
                node.lives.remove(&session);
            }
            StoreEvent::PrefixChanged {
                ticket,
                changes,
                version,
            } => {
                assert_eq!(ticket, node.watch);
                self.totals.reports += 1;
                for change in changes {
                    assert!(change.key.starts_with(PREFIX));
                    match change.entry {
                        Some(entry) => node.mirror.insert(change.key, entry),
                        None => node.mirror.remove(&change.key),
                    };
                }
                if let Some(version) = version {
                    assert!(
                        node.mirror == self.contents[&version],
                        "node {at}, {version}"
                    );
                }
            }
            StoreEvent::Compacted { ticket } => {
                assert_eq!(ticket, node.watch);
                self.totals.compactions += 1;
                self.watch(at);
            }
            StoreEvent::Changed { .. }
            | StoreEvent::Found { .. }
            | StoreEvent::Listed { .. }
            | StoreEvent::Watched { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Decides one of the proposals, also of a former leader.
    fn decide(&mut self) {
        if self.proposals.is_empty() {
            return;
        }
        let at = self.choices.below(self.proposals.len() as u64) as usize;
        let change = self.proposals.remove(at);
        if self.loss > 0 && self.choices.percent(10) {
            return; // It is lost.
        }
        self.apply(change);
    }

    fn apply(&mut self, change: Change) {
        let before = self.state.sessions().count();
        self.state.apply(&change);
        if matches!(change, Change::Expire { .. }) {
            self.totals.expired += before - self.state.sessions().count();
        }
        self.totals.waits += usize::from(matches!(change, Change::Wait { .. }));
        self.totals.renewals += usize::from(matches!(change, Change::Renew { .. }));
        let of_prefix = self.state.range(PREFIX, None);
        let content = of_prefix
            .map(|(key, it)| (key.clone(), it.clone()))
            .collect();
        let former = self.contents.insert(self.state.version(), content);
        assert!(former.is_none_or(|it| it == self.contents[&self.state.version()]));
        self.log.push(change);
        self.follow(self.leaders.len() - 1);
    }

    /// More entries are removed than the map remembers, by nodes that do not watch it.
    fn remove_many(&mut self) {
        let by = Member::new(99, 0);
        for at in 1..=REMOVED_MAX as u64 + 9 {
            let value = Some([1].into_iter().collect());
            for (nth, value) in [(0, value), (1, None)] {
                let number = self.log.len() as u64 * 2 + nth;
                let operation = Operation::set(format!("a/x{at}"), Expected::Any, value);
                self.apply(Change::Asked {
                    by,
                    number,
                    operation,
                });
            }
        }
    }

    /// A leader applies what was decided.
    fn follow(&mut self, at: usize) {
        while let Some(change) = self.log.get(self.leaders[at].applied) {
            let led = &mut self.leaders[at];
            let decided = led.state.apply(change);
            led.applied += 1;
            let mut out = Vec::new();
            led.leader.on_applied(&led.state, &decided, &mut out);
            self.carry_out(at, out);
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let messages = std::mem::take(&mut self.messages);
        let (due, later): (Vec<_>, _) = messages.into_iter().partition(|it| it.0 <= now);
        self.messages = later;
        for (_, message) in due {
            let (Message::Request(life, _) | Message::Answer(life, _)) = message;
            let node = (life.id.0 - 11) as usize;
            if self.away.0 == node && now < self.away.1 {
                continue;
            }
            match message {
                Message::Request(from, request) => {
                    // A node may take a former leader for the present one.
                    let last = self.leaders.len() as u64 - 1;
                    let at = match self.loss > 0 && self.choices.percent(20) {
                        true => self.choices.below(last + 1),
                        false => last,
                    } as usize;
                    let led = &mut self.leaders[at];
                    let mut out = Vec::new();
                    led.leader.on_asked(&led.state, from, request, &mut out);
                    self.carry_out(at, out);
                }
                Message::Answer(_, answer) => {
                    if life != member(node, self.nodes[node].life) {
                        continue; // That life has ended.
                    }
                    let mut out = Vec::new();
                    let clock = self.clock(node);
                    self.nodes[node]
                        .client
                        .on_answered(clock, MAP, answer, &mut out);
                    self.on_client(node, out);
                }
            }
        }
    }

    fn tick(&mut self) {
        for at in 0..self.nodes.len() {
            if self.nodes[at].tick_at.is_some_and(|it| it <= self.now) {
                self.nodes[at].tick_at = None;
                let (clock, mut out) = (self.clock(at), Vec::new());
                self.nodes[at].client.on_tick(clock, MAP, &mut out);
                self.on_client(at, out);
            }
        }
        for at in 0..self.leaders.len() {
            let led = &mut self.leaders[at];
            if led.tick_at.is_some_and(|it| it <= self.now) {
                led.tick_at = None;
                let mut out = Vec::new();
                led.leader.on_tick(&led.state, StoreTimer::Resend, &mut out);
                self.carry_out(at, out);
            }
        }
        // Only the leader that a quorum follows reads.
        let last = self.leaders.len() - 1;
        let reads = std::mem::take(&mut self.leaders[last].reads);
        for read in reads {
            if self.loss > 0 && self.choices.percent(30) {
                self.leaders[last].reads.push(read);
                continue;
            }
            let led = &mut self.leaders[last];
            let mut out = Vec::new();
            led.leader.on_readable(&led.state, read, &mut out);
            self.carry_out(last, out);
        }
    }
}

fn client(frames: u16) -> StoreClient {
    let config = StoreConfig::new().with_resend(Span::millis(TICK));
    StoreClient::new(config, frames)
}

/// The command that ended the session.
fn ended_by(log: &[Change], session: SessionId) -> Change {
    let end = Operation::EndSession(session);
    let ends = |it: &&Change| matches!(it, Change::Asked { operation, .. } if *operation == end);
    let ended = log.iter().find(ends).cloned();
    ended.unwrap_or(Change::TakeOver {
        by: Member::new(0, 0),
    })
}

#[test]
fn sessions_live_as_long_as_nodes_know_and_watches_miss_nothing() {
    let mut totals = Totals::default();
    random(seeds(60), |choices| {
        let mut world = World::new(choices, 400);
        world.run();
        let of = world.totals;
        totals.sessions += of.sessions;
        totals.kept += of.kept;
        totals.expired += of.expired;
        totals.waits += of.waits;
        totals.renewals += of.renewals;
        totals.reports += of.reports;
        totals.compactions += of.compactions;
        totals.leaders += of.leaders;
    });
    println!("{totals:?}");
    assert!(totals.sessions > 100 && totals.kept > 1_000, "{totals:?}");
    assert!(totals.expired > 100 && totals.reports > 1_000, "{totals:?}");
    assert!(totals.waits > 50 && totals.renewals > 5, "{totals:?}");
    assert!(totals.compactions > 5, "{totals:?}");
}
