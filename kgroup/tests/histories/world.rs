//! Nodes with clocks, a network that loses, doubles, delays and reorders, and hosts that sleep.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use selvedge_core::wire::Message as _;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Machine, Member, NodeId, Span, Time};
use selvedge_groups::{Begin, GroupId, Item};
use selvedge_kgroup::{Command, Config, Event, Held, Kgroup, LeaderEvent, Site, devices};

use crate::asked::Asked;
use crate::home::Devices;
use crate::oracle::Oracle;

type Message = <Kgroup as Machine>::Message;

pub(crate) struct Link {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) late: u64,
    pub(crate) most: Span,
}

impl Link {
    pub(crate) const GOOD: Self = Self {
        lost: 0,
        doubled: 0,
        late: 0,
        most: Span::millis(20),
    };
}

enum What {
    Message {
        to: NodeId,
        from: Member,
        message: Message,
    },
    /// Of one life of a node.
    Input(Member, Input<Kgroup>),
}

pub(crate) struct Node {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) driver: Option<Driver<Kgroup>>,
    pub(crate) sleeps: bool,
    inbox: VecDeque<Input<Kgroup>>,
}

pub(crate) struct World {
    pub(crate) rng: ChaCha8Rng,
    pub(crate) now: Time,
    pub(crate) site: Arc<Site>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) link: Link,
    pub(crate) devices: Devices,
    pub(crate) oracle: Oracle,
    pub(crate) asked: Asked,
    /// Of these a former life is still named by a group, or was.
    pub(crate) lost: BTreeSet<NodeId>,
    /// When nodes last said that they are here, and in which life: a group may name that one.
    said: BTreeMap<NodeId, (Member, Time)>,
    pub(crate) sent: u64,
    /// The present second, and the messages sent in it.
    second: (u64, u64),
    pub(crate) busiest: u64,
    pub(crate) restarts: u64,
    /// When a node began again.
    pub(crate) started: Time,
    /// Whether one history is run alone.
    is_alone: bool,
    /// What was sent since this was emptied, to say what a storm is made of: of a history that is run
    /// alone, for it takes most of the time.
    pub(crate) kinds: BTreeMap<String, u64>,
    queue: BTreeMap<(Time, u64), What>,
    entered: u64,
    /// At this moment so many steps were taken: a storm in no time has no end.
    busy: (Time, u64),
}

/// A node that says that it is here is named within this time, or in another life.
const NAMED_WITHIN: Span = Span::secs(60);

/// More on its way than any correct building has.
const LONGEST: usize = 50_000;

/// More messages in a second than any correct building sends.
const BUSIEST: u64 = 6_000;

/// More steps at one moment than any correct building needs.
const STORM: u64 = 50_000;

impl World {
    pub(crate) fn new(
        rng: ChaCha8Rng,
        site: Arc<Site>,
        configs: Vec<Config>,
        devices: Devices,
        asked: Asked,
    ) -> Self {
        let oracle = Oracle::new(Arc::clone(&site));
        let mut world = Self {
            rng,
            now: Time::ZERO,
            nodes: Vec::new(),
            site,
            link: Link::GOOD,
            devices,
            oracle,
            asked,
            lost: BTreeSet::new(),
            said: BTreeMap::new(),
            sent: 0,
            second: (0, 0),
            busiest: 0,
            restarts: 0,
            started: Time::ZERO,
            is_alone: std::env::var_os("SELVEDGE_SEED").is_some(),
            kinds: BTreeMap::new(),
            queue: BTreeMap::new(),
            entered: 0,
            busy: (Time::ZERO, 0),
        };
        for (id, config) in (1..).zip(configs) {
            let me = Member::new(id, 0);
            world.nodes.push(Node {
                me,
                config,
                driver: None,
                sleeps: false,
                inbox: VecDeque::new(),
            });
            world.begin(id as usize - 1, Begin::First);
        }
        world
    }

    fn begin(&mut self, at: usize, begin: Begin) {
        let node = &mut self.nodes[at];
        let site = Arc::clone(&self.site);
        let machine = Kgroup::new(node.me, node.config, site, begin).unwrap();
        node.driver = Some(Driver::new(machine));
        node.sleeps = false;
        node.inbox.clear();
    }

    pub(crate) fn is_up(&self, at: usize) -> bool {
        self.nodes[at].driver.is_some()
    }

    pub(crate) fn machine(&self, at: usize) -> Option<&Kgroup> {
        self.nodes[at].driver.as_ref().map(Driver::machine)
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = (usize, &Kgroup)> {
        (0..self.nodes.len()).filter_map(|at| Some((at, self.machine(at)?)))
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub(crate) fn pick(&mut self, below: usize) -> usize {
        self.rng.below(below as u64) as usize
    }

    pub(crate) fn within(&mut self, most: Span) -> Span {
        Span(self.rng.below(most.0 + 1))
    }

    /// The node stops, and its memory with it.
    pub(crate) fn stop(&mut self, at: usize) {
        self.nodes[at].driver = None;
        self.lost.insert(self.nodes[at].me.id);
        self.asked.forget(at);
    }

    /// The node begins its next life, without memory.
    pub(crate) fn start(&mut self, at: usize) {
        let Member { id, incarnation } = self.nodes[at].me;
        self.nodes[at].me = Member::new(id.0, incarnation.0 + 1);
        self.restarts += 1;
        self.started = self.now;
        self.begin(at, Begin::Again);
    }

    fn enter(&mut self, after: Span, what: What) {
        self.entered += 1;
        assert!(
            self.queue.len() < LONGEST,
            "a storm of messages at {:?}",
            self.now
        );
        self.queue.insert((self.now + after, self.entered), what);
    }

    pub(crate) fn tell(&mut self, at: usize, delta: Delta, after: Span) {
        let me = self.nodes[at].me;
        self.enter(after, What::Input(me, Input::Membership(delta)));
    }

    pub(crate) fn command(&mut self, at: usize, command: Command, after: Span) {
        let me = self.nodes[at].me;
        self.enter(after, What::Input(me, Input::Command(command)));
    }

    fn post(&mut self, from: Member, to: NodeId, message: &Message) {
        self.count_message();
        if self.is_alone {
            self.note(from, to, message);
        }
        self.oracle.look_at_links(message);
        if message
            .items
            .iter()
            .any(|it| matches!(it, Item::Here { .. }))
        {
            self.said.insert(from.id, (from, self.now));
        }
        if self.chance(self.link.lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance(self.link.doubled));
        for _ in 0..copies {
            let late = self.chance(self.link.late);
            let most = if late {
                self.link.most
            } else {
                Link::GOOD.most
            };
            let after = Span::millis(1) + self.within(most);
            let message = message.clone();
            self.enter(after, What::Message { to, from, message });
        }
    }

    /// No answer causes its question again: messages follow from timers, commands and decisions, and
    /// each second has few of these.
    fn count_message(&mut self) {
        self.sent += 1;
        let second = self.now.0 / 1_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        self.busiest = self.busiest.max(self.second.1);
        assert!(
            self.second.1 <= BUSIEST,
            "{} messages in second {second}: {:#?}",
            self.second.1,
            self.kinds
        );
    }

    fn note(&mut self, from: Member, to: NodeId, message: &Message) {
        for item in message.items.iter() {
            let text = format!("{item:?}");
            let kind: String = text
                .chars()
                .filter(|it| !it.is_whitespace())
                .take(110)
                .collect();
            *self.kinds.entry(format!("{from}>{to} {kind}")).or_default() += 1;
        }
    }

    pub(crate) fn wake(&mut self, at: usize) {
        self.nodes[at].sleeps = false;
        let timers_first = self.chance(50);
        if timers_first {
            self.expire(at);
        }
        while let Some(input) = self.nodes[at].inbox.pop_front() {
            self.step(at, input);
        }
        self.expire(at);
    }

    fn expire(&mut self, at: usize) {
        let now = self.now;
        let mut effects = Vec::new();
        let Some(driver) = &mut self.nodes[at].driver else {
            return;
        };
        driver.expire(now, &mut self.rng, |it| effects.push(it));
        self.count_step();
        self.carry_out(at, effects);
    }

    fn step(&mut self, at: usize, input: Input<Kgroup>) {
        let now = self.now;
        let mut effects = Vec::new();
        let node = &mut self.nodes[at];
        let Some(driver) = &mut node.driver else {
            return;
        };
        if node.sleeps {
            node.inbox.push_back(input);
            return;
        }
        let _refused = driver.step(now, &mut self.rng, input, |it| effects.push(it));
        self.count_step();
        self.carry_out(at, effects);
    }

    fn count_step(&mut self) {
        if self.busy.0 != self.now {
            self.busy = (self.now, 0);
        }
        self.busy.1 += 1;
        assert!(self.busy.1 < STORM, "a storm at {:?}", self.now);
    }

    fn carry_out(&mut self, at: usize, effects: Vec<Effect<Kgroup>>) {
        let me = self.nodes[at].me;
        if let Some(driver) = &self.nodes[at].driver {
            self.oracle.look(at, driver.machine());
        }
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    let length = selvedge_core::wire::HEADER_LEN
                        + selvedge_core::wire::member_len(me)
                        + message.encoded_len();
                    assert!(length <= 1_400, "a frame of {length} bytes: {message:?}");
                    if self.chance(3) {
                        let bytes = postcard::to_allocvec(&message).unwrap();
                        assert_eq!(postcard::from_bytes::<Message>(&bytes).unwrap(), message);
                    }
                    self.post(me, to.id, &message);
                }
                Effect::Multicast { .. } => panic!("groups multicast nothing"),
                Effect::Event(event) => self.on_event(at, event),
            }
        }
    }

    /// Checks that a leader gives commands for the claim that holds the device in its own state.
    fn check_holder(&self, at: usize, group: GroupId, event: &devices::Event) {
        let devices::Event::Act { ticket, .. } = event else {
            return;
        };
        let node = self.machine(at).unwrap();
        let many = node.groups().replica(group);
        // A group of one has decided the next updates in the same step.
        let (Some(Held::Devices(held)), true) = (
            node.held(group),
            many.is_some_and(|it| it.configuration().voters.len() > 1),
        ) else {
            return;
        };
        let act = held.act(ticket.device).unwrap();
        let holder = held.holder(ticket.device);
        assert!(
            act.number == ticket.number && holder == Some(act.claim),
            "{at} gives {ticket:?} for nobody: {holder:?} holds, {act:?}"
        );
    }

    fn on_event(&mut self, at: usize, event: Event) {
        let now = self.now;
        match event {
            Event::Leader { group, event } => match event {
                LeaderEvent::Devices(event) => {
                    self.check_holder(at, group, &event);
                    self.oracle.on_devices(at, now, &event);
                    let answers = self.devices.on_event(now, &event, &mut self.rng);
                    if let Some((after, command)) = answers {
                        self.command(at, command, after);
                    }
                }
                LeaderEvent::Routine(event) => {
                    self.oracle.on_routine(group, &event, &self.devices);
                }
                _ => {}
            },
            Event::Triggered { routine, id } => self.asked.on_triggered(at, routine, id),
            Event::Map { map, event } => self.asked.on_map(at, map, event, &self.oracle),
            _ => {}
        }
    }

    /// Runs until then.
    pub(crate) fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let queued = self.queue.first_key_value().map(|it| it.0.0);
            let due = self.nodes.iter().enumerate().filter_map(|(at, node)| {
                let deadline = node.driver.as_ref()?.deadline()?;
                (!node.sleeps).then_some((deadline, at))
            });
            let due = due.min();
            let next = queued.into_iter().chain(due.map(|it| it.0)).min();
            let Some(next) = next.filter(|it| *it <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            match due.filter(|it| queued.is_none_or(|queued| it.0 <= queued)) {
                Some((_, at)) => self.expire(at),
                None => self.take(),
            }
        }
    }

    fn take(&mut self) {
        let Some((_, what)) = self.queue.pop_first() else {
            return;
        };
        match what {
            What::Message { to, from, message } => {
                let at = to.0 as usize - 1;
                self.step(at, Input::Message { from, message });
            }
            What::Input(to, input) => {
                let at = to.id.0 as usize - 1;
                if self.nodes[at].me == to {
                    self.step(at, input);
                }
            }
        }
    }

    /// Forgets of the lost ones those that all their groups have named anew, or do without.
    ///
    /// A leader that has not heard of a node's present life may name the former one: that node is
    /// lost, too.
    pub(crate) fn look_for_named(&mut self) {
        let former = self.nodes.iter().filter(|node| {
            let mut all = self.oracle.configurations();
            all.any(|it| it.voter(node.me.id).is_some_and(|it| it.member != node.me))
        });
        let former: Vec<NodeId> = former.map(|it| it.me.id).collect();
        self.lost.extend(former);
        let groups: Vec<GroupId> = self.site.groups().chain(self.asked.maps()).collect();
        let settled = groups.into_iter().all(|group| self.is_settled(group));
        // A link that names the former life may be on its way.
        let is_early = self.now.since(self.started) < Span::secs(20);
        if !settled || is_early {
            return;
        }
        let still: BTreeSet<NodeId> = self
            .lost
            .iter()
            .copied()
            .filter(|id| {
                let node = &self.nodes[id.0 as usize - 1];
                // It said that it is here, and stopped: the link that names it is not made yet.
                let is_over = |life: Member| node.driver.is_none() || life != node.me;
                let said = self.said.get(id);
                if said.is_some_and(|it| is_over(it.0) && self.now.since(it.1) < NAMED_WITHIN) {
                    return true;
                }
                self.oracle.configurations().any(|configuration| {
                    let named = configuration.voter(*id);
                    named.is_some_and(|it| is_over(it.member))
                })
            })
            .collect();
        self.lost = still;
    }

    /// Whether all members of the latest configuration that are up have installed it, and nobody is
    /// still in another one.
    pub(crate) fn is_settled(&self, group: GroupId) -> bool {
        let Some(latest) = self.oracle.configuration(group) else {
            return false;
        };
        latest.members().all(|it| {
            let at = it.member.id.0 as usize - 1;
            self.machine(at).is_none_or(|node| {
                let replica = node.groups().replica(group);
                replica.is_some_and(|replica| {
                    replica.configuration().number == latest.number && replica.state().is_some()
                })
            })
        })
    }
}
