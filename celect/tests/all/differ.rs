//! Nodes that differ in all of their settings, and in the speed of their clocks, in random histories
//! of loss, sleep and false failures: no follower gives a leader up before it has ended, and after
//! the last fault one node keeps leading.
//!
//! `SELVEDGE_HISTORIES` sets the number of histories; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{Ballot, Celect, Command, Config, Event, Message, Protocol};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, Ratio, Span, Time};

/// The differences between clock rates, in parts per million.
const DRIFTS: [u32; 4] = [0, 1_000, 300_000, 666_666];

struct Node {
    driver: Driver<Celect<ById>>,
    /// The clock rate, in parts per million of true time.
    rate: u64,
    asleep_until: u64,
    letters: Vec<(Member, Message)>,
}

struct World {
    rng: ChaCha8Rng,
    /// True time in microseconds.
    now: u64,
    nodes: Vec<Node>,
    wire: BTreeMap<(u64, u64), (Member, Member, Message)>,
    sent: u64,
    is_lossy: bool,
    /// The latest renewal of the ballot that the member has acknowledged to the leader.
    acknowledged: BTreeMap<(Ballot, Member), u32>,
    /// The times at which renewals were sent, by the leader's clock.
    renewed: BTreeMap<(Ballot, u32), Time>,
    elected_at: u64,
    given_up: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = 2 + rng.below(4);
        let drift = DRIFTS[rng.below(4) as usize];
        let config = |rng: &mut ChaCha8Rng| {
            Config::new(0, 0)
                .with_protocol(
                    [Protocol::Base, Protocol::Lean, Protocol::Optimistic][rng.below(3) as usize],
                )
                .with_lease(
                    [None, Some(1), Some(3), Some(9)][rng.below(4) as usize].map(Span::secs),
                )
                .with_drift(drift)
                .with_timeout(Span::millis(100 + 100 * rng.below(3)))
                .with_resend(Span::millis(100 + 100 * rng.below(3)))
                .with_patience(Span::secs(1 + rng.below(5)))
                .with_attempts(1 + rng.below(3) as u8)
                .with_exclude_limit(1 + rng.below(2) as u8)
                .with_frame_budget([127, 1_400][rng.below(2) as usize])
                .with_missing_from(rng.below(nodes) as u16)
                .with_failures(rng.below(2) as u16)
        };
        let made = (1..=nodes).map(|id| {
            let machine = Celect::new(Member::new(id, 0), config(&mut rng), ById).unwrap();
            Node {
                driver: Driver::new(machine),
                // The slowest clock is slower than the fastest by the drift.
                rate: 1_000_000 - rng.below(2) * u64::from(drift),
                asleep_until: 0,
                letters: Vec::new(),
            }
        });
        let nodes = made.collect();
        let mut world = Self {
            rng,
            now: 0,
            nodes,
            wire: BTreeMap::new(),
            sent: 0,
            is_lossy: false,
            acknowledged: BTreeMap::new(),
            renewed: BTreeMap::new(),
            elected_at: 0,
            given_up: 0,
        };
        for (at, other) in world.pairs() {
            world.step(at, Input::Membership(Delta::Joined(other)));
        }
        world
    }

    fn pairs(&self) -> Vec<(usize, Member)> {
        let all = 0..self.nodes.len();
        let pairs = all
            .clone()
            .flat_map(|one| all.clone().map(move |other| (one, other)));
        let pairs = pairs.filter(|(one, other)| one != other);
        pairs
            .map(|(one, other)| (one, Member::new(other as u64 + 1, 0)))
            .collect()
    }

    fn clock(&self, at: usize) -> Time {
        Time(self.now * self.nodes[at].rate / 1_000_000)
    }

    fn step(&mut self, at: usize, input: Input<Celect<ById>>) {
        let (now, mut effects) = (self.clock(at), Vec::new());
        let driver = &mut self.nodes[at].driver;
        // An election may already run.
        let _refused = driver.step_into(now, &mut self.rng, input, &mut effects);
        self.carry_out(at, effects);
    }

    fn carry_out(&mut self, at: usize, effects: Vec<Effect<Celect<ById>>>) {
        let me = Member::new(at as u64 + 1, 0);
        let now = self.clock(at);
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    if let Message::Leader {
                        ballot,
                        leader,
                        renewal,
                        ..
                    } = message
                        && leader == me
                    {
                        self.renewed.entry((ballot, renewal)).or_insert(now);
                    }
                    self.post(me, to, &message);
                }
                Effect::Event(Event::Elected { .. }) => self.elected_at = self.now,
                Effect::Event(Event::LeaseExpired { leader, ballot }) => {
                    self.given_up += 1;
                    self.given_up_by(me, leader, ballot);
                }
                Effect::Event(_) | Effect::Multicast { .. } => {}
            }
        }
    }

    /// Checks that the leader has ended, or that later renewals than the follower's support it.
    fn given_up_by(&self, follower: Member, leader: Member, ballot: Ballot) {
        let at = leader.id.0 as usize - 1;
        let machine = self.nodes[at].driver.machine();
        let Some(until) = machine
            .leads_until()
            .filter(|_| machine.leads() == Some(ballot))
        else {
            return;
        };
        let Some(&renewal) = self.acknowledged.get(&(ballot, follower)) else {
            return;
        };
        let (lease, drift) = (machine.config().lease.unwrap(), machine.config().drift);
        let term = lease.0 - lease.0 * u64::from(drift) / 1_000_000;
        let rests_on_it = until.0 <= self.renewed[&(ballot, renewal)].0 + term;
        assert!(
            !rests_on_it || until <= self.clock(at),
            "{follower:?} gave {leader:?} up at {:?}, and it leads until {until:?}",
            self.clock(at),
        );
    }

    fn post(&mut self, from: Member, to: Member, message: &Message) {
        let copies = if self.is_lossy { self.rng.below(3) } else { 1 };
        for _ in 0..copies {
            let is_late = self.is_lossy && self.rng.chance(Ratio::new(1, 20));
            let delay = 1_000 + self.rng.below(if is_late { 5_000_000 } else { 10_000 });
            self.sent += 1;
            let place = (self.now + delay, self.sent);
            self.wire.insert(place, (from, to, message.clone()));
        }
    }

    /// Lets a node handle its due timers and messages, in random order.
    fn serve(&mut self, at: usize) {
        let mut letters = core::mem::take(&mut self.nodes[at].letters).into_iter();
        let first = self.rng.below(letters.len() as u64 + 1) as usize;
        let before: Vec<(Member, Message)> = letters.by_ref().take(first).collect();
        self.read(at, before);
        let (now, mut effects) = (self.clock(at), Vec::new());
        let driver = &mut self.nodes[at].driver;
        driver.expire_into(now, &mut self.rng, &mut effects);
        self.carry_out(at, effects);
        self.read(at, letters.collect());
    }

    fn read(&mut self, at: usize, letters: Vec<(Member, Message)>) {
        for (from, message) in letters {
            let received = match message {
                Message::LeaderAck { ballot, renewal } => Some((ballot, renewal)),
                _ => None,
            };
            self.step(at, Input::Message { from, message });
            if let Some((ballot, renewal)) = received {
                let latest = self.acknowledged.entry((ballot, from)).or_default();
                *latest = renewal.max(*latest);
            }
        }
    }

    fn pass(&mut self, span: Span) {
        let end = self.now + span.0;
        while self.now < end {
            self.now += 1_000;
            while let Some(letter) = self.wire.first_entry().filter(|it| it.key().0 <= self.now) {
                let (from, to, message) = letter.remove();
                self.nodes[to.id.0 as usize - 1]
                    .letters
                    .push((from, message));
            }
            for at in 0..self.nodes.len() {
                let node = &self.nodes[at];
                let is_due = node
                    .driver
                    .deadline()
                    .is_some_and(|due| due <= self.clock(at));
                if node.asleep_until <= self.now && (is_due || !node.letters.is_empty()) {
                    self.serve(at);
                }
            }
        }
    }

    fn trouble(&mut self) {
        let at = self.rng.below(self.nodes.len() as u64) as usize;
        let other = (at + 1) % self.nodes.len();
        let other = Member::new(other as u64 + 1, 0);
        match self.rng.below(6) {
            0 => self.nodes[at].asleep_until = self.now + 1_000 * self.rng.below(15_000),
            1 => self.step(at, Input::Membership(Delta::Failed(other))),
            2 => self.step(at, Input::Membership(Delta::Refuted(other))),
            3 => self.step(at, Input::Command(Command::Elect)),
            _ => self.is_lossy = !self.is_lossy,
        }
        let span = Span::millis(self.rng.below(4_000));
        self.pass(span);
    }

    fn heal(&mut self) {
        self.is_lossy = false;
        for node in &mut self.nodes {
            node.asleep_until = 0;
        }
        for (at, other) in self.pairs() {
            self.step(at, Input::Membership(Delta::Refuted(other)));
        }
        self.pass(Span::secs(10));
        self.step(0, Input::Command(Command::Elect));
        self.pass(Span::secs(30));
    }
}

fn run(seed: u64) -> u64 {
    let mut world = World::new(seed);
    world.step(0, Input::Command(Command::Elect));
    for _ in 0..10 {
        world.trouble();
    }
    world.heal();
    let leader = |it: &Node| it.driver.machine().leader();
    let first = leader(&world.nodes[0]);
    assert!(first.is_some(), "somebody leads");
    assert!(
        world.nodes.iter().all(|it| leader(it) == first),
        "all follow one"
    );
    let since = world.now - world.elected_at;
    assert!(since > 15_000_000, "it was elected {since} us ago");
    world.given_up
}

#[test]
fn who_differs_in_settings_and_clocks_gives_no_leader_up_before_it_ends() {
    let mut given_up = 0;
    let ran = selvedge_sim::histories(selvedge_sim::histories::seeds(150), |seed| {
        given_up += run(seed)
    });
    assert!(ran < 100 || given_up > 100, "{given_up}");
}
