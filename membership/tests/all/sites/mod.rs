//! Nodes in a few sites, with a delay for each pair of sites, in virtual time.

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Ratio, Span, Time};
use selvedge_membership::{
    Body, Command, Config, Event, MemberView, Membership, Message, Selection,
};

/// The time on the way of a datagram inside a site, and between two sites.
pub(crate) const NEAR: Span = Span::millis(1);
pub(crate) const FAR: Span = Span::millis(40);

pub(crate) const PERIOD: Span = Span::secs(1);

/// The faults of every link.
#[derive(Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) loss: Ratio,
    /// A copy arrives up to 3 s later.
    pub(crate) late_copy: Ratio,
    /// The datagram itself takes up to 3 s longer.
    pub(crate) late: Ratio,
    /// Two sites between which nothing arrives.
    pub(crate) cut: Option<[usize; 2]>,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        loss: Ratio::NEVER,
        late_copy: Ratio::NEVER,
        late: Ratio::NEVER,
        cut: None,
    };
}

pub(crate) struct Sites {
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Driver<Membership>>,
    is_up: Vec<bool>,
    /// The site of each node.
    pub(crate) site: Vec<usize>,
    pub(crate) faults: Faults,
    /// By the time of arrival, and then in order: receiver, sender, message.
    wire: BTreeMap<(Time, u64), (usize, Member, Message)>,
    sent: u64,
    rng: ChaCha8Rng,
    pub(crate) deltas: Vec<(Time, usize, Delta)>,
    /// The last direct ping from one node to another, and the longest time between two.
    pinged: BTreeMap<(usize, usize), Time>,
    pub(crate) longest: Span,
    /// Direct pings and datagrams, inside sites and between them.
    pub(crate) pings: [u64; 2],
    pub(crate) datagrams: [u64; 2],
}

impl Sites {
    /// A mesh of nodes at these sites, with their ids from 0 on, joined through node 0.
    pub(crate) fn joined(seed: u64, site: &[usize], config: &Config) -> Self {
        let node = |id| {
            let machine = Membership::new(Member::new(id, 7), config.clone());
            Driver::new(machine.unwrap())
        };
        let mut sites = Self {
            now: Time::ZERO,
            nodes: (0..site.len() as u64).map(node).collect(),
            is_up: vec![true; site.len()],
            site: site.to_vec(),
            faults: Faults::NONE,
            wire: BTreeMap::new(),
            sent: 0,
            rng: ChaCha8Rng::seed_from_u64(seed),
            deltas: Vec::new(),
            pinged: BTreeMap::new(),
            longest: Span::ZERO,
            pings: [0; 2],
            datagrams: [0; 2],
        };
        for node in 0..site.len() {
            let seeds = Vec::from_iter((node > 0).then_some(NodeId(0)));
            sites.step(node, Input::Command(Command::Join { seeds }));
            sites.run(Span::millis(300));
        }
        sites.run(PERIOD * 40);
        for node in &sites.nodes {
            assert_eq!(node.machine().live(), site.len());
        }
        sites.deltas.clear();
        sites
    }

    pub(crate) fn step(&mut self, node: usize, input: Input<Membership>) {
        let mut effects = Vec::new();
        let rng = &mut self.rng;
        let outcome = self.nodes[node].step_into(self.now, rng, input, &mut effects);
        // A message for a node that has not joined is refused.
        outcome.ok();
        self.carry(node, effects);
    }

    fn carry(&mut self, node: usize, effects: Vec<Effect<Membership>>) {
        let me = self.nodes[node].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(node, me, to.id.0 as usize, message),
                Effect::Event(Event::Changed(delta)) => self.deltas.push((self.now, node, delta)),
                Effect::Event(_) => {}
                Effect::Multicast { .. } => unreachable!("this protocol sends to one at a time"),
            }
        }
    }

    fn post(&mut self, node: usize, me: Member, to: usize, message: Message) {
        let is_far = self.site[node] != self.site[to];
        self.datagrams[usize::from(is_far)] += 1;
        if let Body::Ping { origin: None, .. } = message.body {
            self.pings[usize::from(is_far)] += 1;
            if let Some(before) = self.pinged.insert((node, to), self.now) {
                self.longest = self.longest.max(self.now.since(before));
            }
        }
        let faults = self.faults;
        let ends = [self.site[node], self.site[to]];
        if is_far
            && faults
                .cut
                .is_some_and(|cut| ends.iter().all(|it| cut.contains(it)))
        {
            return;
        }
        if self.rng.chance(faults.late_copy) {
            let later = Span(self.rng.below(3_000_000));
            self.travel(later, is_far, (to, me, message.clone()));
        }
        if !self.rng.chance(faults.loss) {
            let is_late = self.rng.chance(faults.late);
            let later = if is_late {
                self.rng.below(3_000_000)
            } else {
                0
            };
            self.travel(Span(later), is_far, (to, me, message));
        }
    }

    /// Delays vary by a fifth.
    fn travel(&mut self, later: Span, is_far: bool, datagram: (usize, Member, Message)) {
        let delay = if is_far { FAR } else { NEAR };
        let jitter = Span(self.rng.below(delay.0 / 5));
        self.sent += 1;
        let at = self.now + delay + jitter + later;
        self.wire.insert((at, self.sent), datagram);
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            let due = self.nodes.iter().enumerate();
            let due = due.filter(|&(node, _)| self.is_up[node]);
            let due = due
                .filter_map(|(node, driver)| Some((driver.deadline()?, node)))
                .min();
            let arrives = self.wire.first_key_value().map(|(&(at, _), _)| at);
            let tick = due.filter(|&(at, _)| arrives.is_none_or(|arrives| at <= arrives));
            let next = tick.map(|(at, _)| at).or(arrives);
            let Some(next) = next.filter(|&next| next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            if let Some((_, node)) = tick {
                let mut effects = Vec::new();
                self.nodes[node].expire_into(self.now, &mut self.rng, &mut effects);
                self.carry(node, effects);
            } else if let Some((_, (to, from, message))) = self.wire.pop_first()
                && self.is_up[to]
            {
                self.step(to, Input::Message { from, message });
            }
        }
        self.now = until;
    }

    /// Counts from now on.
    pub(crate) fn count_anew(&mut self) {
        (self.pings, self.datagrams, self.longest) = ([0; 2], [0; 2], Span::ZERO);
        // The first ping of each pair counts from now on, too.
        for node in 0..self.nodes.len() {
            for other in (0..self.nodes.len()).filter(|&other| other != node) {
                self.pinged.insert((node, other), self.now);
            }
        }
    }

    /// The longest time between two pings of one pair, up to now.
    pub(crate) fn longest(&self) -> Span {
        let open = self.pinged.values().map(|&at| self.now.since(at)).max();
        self.longest.max(open.unwrap_or_default())
    }

    pub(crate) fn crash(&mut self, node: usize) {
        self.is_up[node] = false;
    }

    /// Starts a crashed node again, in a later life without memory.
    pub(crate) fn restart(&mut self, node: usize) {
        let machine = self.nodes[node].machine();
        let Member { id, incarnation } = machine.me();
        let me = Member {
            id,
            incarnation: incarnation.next(),
        };
        let config = machine.config().clone();
        self.nodes[node] = Driver::new(Membership::new(me, config).unwrap());
        self.is_up[node] = true;
        let seeds = vec![NodeId(u64::from(node == 0))];
        self.step(node, Input::Command(Command::Join { seeds }));
    }

    pub(crate) fn view(&self, node: usize, of: usize) -> MemberView<'_> {
        self.nodes[node]
            .machine()
            .member(NodeId(of as u64))
            .unwrap()
    }

    /// All pairs of a node and another one.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let nodes = self.nodes.len();
        let pairs = (0..nodes).flat_map(move |a| (0..nodes).map(move |b| (a, b)));
        pairs.filter(|(a, b)| a != b)
    }

    /// The share of a node's draws by weight that fall on members of other sites.
    pub(crate) fn far_share(&self, node: usize) -> f64 {
        let far = (0..self.nodes.len()).filter(|&it| self.site[it] != self.site[node]);
        far.map(|it| {
            let (weight, total) = self.view(node, it).share();
            weight as f64 / total as f64
        })
        .sum()
    }
}

/// Three sites of five nodes.
pub(crate) fn three() -> Vec<usize> {
    (0..15).map(|node| node / 5).collect()
}

/// The default settings, with measured distances.
pub(crate) fn measured() -> Config {
    Config::default()
        .with_period(PERIOD)
        .with_selection(Selection::BoundedMix { every: 8 })
        .with_round_trip_unit(Some(Config::ROUND_TRIP_UNIT))
}
