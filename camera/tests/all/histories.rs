//! Random histories: loss, duplicates, partitions, false suspicions, crashes and restarts, with a
//! watch on who is inside.
//!
//! `SELVEDGE_HISTORIES` says how many; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::{Camera, Command, Config, Event, Refusal, Token};
use selvedge_core::{Choose, Delta, Member, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

/// What happened in all histories together.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    entries: u64,
    /// Entries whose token was compared with the one before.
    compared: u64,
    lost: u64,
    crashes: u64,
    died_inside: u64,
    restarts: u64,
    false_failures: u64,
    about_the_holder: u64,
    /// Visits that begin where one ended, with something false between.
    again: u64,
    cancels: u64,
    refused: u64,
    issued_again: u64,
    slow: u64,
    rebuilt: u64,
}

struct History {
    mesh: Network<Camera>,
    rng: ChaCha8Rng,
    configs: Vec<Config>,
    lives: Vec<u32>,
    /// Who knows whom: all, or only few.
    knows: Vec<Vec<bool>>,
    /// Nothing goes wrong any more, and everyone is up.
    is_calm: bool,
    /// Since when a node waits.
    waits: Vec<Option<Time>>,
    /// What others have to be told about a life that is over, and when.
    ends: Vec<(Time, Member)>,
    last: Token,
    /// The lives when a node's request began, or when it began to keep permissions.
    begun: Vec<Option<Vec<u32>>>,
    /// The lives when the request began that got in last.
    then: Vec<u32>,
    /// Whether this was so between all entries so far.
    is_sure: bool,
    tally: Tally,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = 3 + rng.below(6) as usize;
        let link = Link {
            loss: Ratio::new(rng.below(20) as u32, 100),
            duplicate: Ratio::new(rng.below(10) as u32, 100),
            max_delay: Span::millis(5 + rng.below(200)),
            ..Link::default()
        };
        let mesh = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        // So many lives may end and begin anew while a request is open.
        let restarts = 1 + rng.below(nodes as u64 - 2) as u32;
        let base = Config::for_devices(nodes as u32, restarts).with_refresh(Span::secs(5));
        let all_know_all = rng.below(2) == 0;
        let configs: Vec<Config> = (0..nodes)
            .map(|_| {
                base.with_keep(rng.below(2) == 0)
                    .with_eager(rng.below(2) == 0)
                    .with_slack([0, 1, 64][rng.below(3) as usize])
                    .with_multicast(rng.below(2) == 0)
                    .with_frame_budget([127, 1_400][rng.below(2) as usize])
                    // A node that knows few is refused without it.
                    .with_slow_path(!all_know_all || rng.below(4) > 0)
            })
            .collect();
        let knows = acquaintances(nodes, all_know_all, &mut rng);
        let mut history = Self {
            mesh,
            knows,
            is_calm: false,
            rng,
            configs,
            lives: vec![0; nodes],
            waits: vec![None; nodes],
            ends: Vec::new(),
            last: Token::default(),
            begun: vec![None; nodes],
            then: vec![0; nodes],
            is_sure: true,
            tally: Tally::default(),
        };
        for node in 0..nodes {
            let me = history.member(node);
            history
                .mesh
                .add(me, Camera::new(me, history.configs[node]).unwrap())
                .unwrap();
        }
        for node in 0..nodes {
            history.introduce(node);
        }
        history
    }

    fn nodes(&self) -> usize {
        self.lives.len()
    }

    fn member(&self, node: usize) -> Member {
        Member::new(node as u64 + 1, self.lives[node])
    }

    /// Tells `node` of all others.
    fn introduce(&mut self, node: usize) {
        for other in 0..self.nodes() {
            if self.knows[node][other] && self.mesh.is_up(other) {
                let member = self.member(other);
                self.mesh.membership(node, Delta::Joined(member)).unwrap();
            }
        }
    }

    fn tell_all(&mut self, delta: Delta) {
        let whom = (delta.member().id.0 - 1) as usize;
        for node in 0..self.nodes() {
            let is_news = self.knows[node][whom] || !matches!(delta, Delta::Joined(_));
            if self.mesh.is_up(node) && node != whom && is_news {
                self.mesh.membership(node, delta).unwrap();
            }
        }
    }

    /// Time passes, and everything is looked at in the step in which it happens.
    fn pass(&mut self, span: Span) {
        let end = self.mesh.now() + span;
        while self.mesh.next_at().is_some_and(|at| at <= end) {
            self.mesh.step();
            self.look();
        }
        self.mesh.run_until(end);
        self.look();
        let now = self.mesh.now();
        let (due, rest) = self.ends.iter().partition(|(at, _)| *at <= now);
        self.ends = rest;
        let due: Vec<(Time, Member)> = due;
        for (_, member) in due {
            self.tell_all(Delta::Confirmed(member));
            self.look();
        }
    }

    fn look(&mut self) {
        let events: Vec<_> = self.mesh.drain_events().collect();
        for (_, node, event) in events {
            match event {
                Event::Entered(token) => {
                    let is_remembered = self.is_remembered();
                    self.is_sure &= is_remembered;
                    if is_remembered {
                        assert!(token > self.last, "{token:?} after {:?}", self.last);
                        self.tally.compared += 1;
                    }
                    self.last = token;
                    self.then.clone_from(self.begun[node].as_ref().unwrap());
                    self.waits[node] = None;
                    self.tally.entries += 1;
                }
                Event::Refused(Refusal::TooFew { answered, upper }) => {
                    assert!(
                        !self.is_calm || self.waits[node].is_none(),
                        "node {node} got {answered} of {upper}"
                    );
                    self.waits[node] = None;
                    self.is_over(node);
                    self.tally.refused += 1;
                }
                Event::Refused(refusal @ Refusal::NoRoom { .. }) => panic!("{refusal}"),
                Event::Cancelled => {
                    self.waits[node] = None;
                    self.is_over(node);
                    self.tally.cancels += 1;
                }
                Event::Fenced(by) => {
                    assert!(!self.is_sure, "node {node} is fenced by {by:?}");
                }
                Event::PassedOver(whom) => panic!("node {node} passed {whom:?}"),
                Event::Released(_) => self.is_over(node),
                Event::SlowPath | Event::Waiting(_) => {}
                other => panic!("node {node} was told {other:?}"),
            }
        }
        let inside: Vec<usize> = (0..self.nodes()).filter(|&it| self.is_inside(it)).collect();
        assert!(inside.len() <= 1, "{inside:?} are inside");
    }

    /// A node's request is over, or may be.
    fn is_over(&mut self, node: usize) {
        if !self.configs[node].keep {
            self.begun[node] = None;
        }
    }

    /// How many lives have begun since.
    fn restarts_since(&self, then: &[u32]) -> usize {
        let lives = self.lives.iter().zip(then);
        lives.map(|(now, then)| (now - then) as usize).sum()
    }

    /// Whether those who knew of the last entry and those who allow the next one share a life,
    /// whoever they are.
    fn is_remembered(&self) -> bool {
        let quorum = self.configs[0].upper as usize / 2 + 1;
        2 * quorum > self.nodes() + self.restarts_since(&self.then)
    }

    fn is_inside(&self, node: usize) -> bool {
        self.mesh.is_up(node) && self.mesh.machine(node).unwrap().token().is_some()
    }

    fn step(&mut self) {
        let node = self.rng.below(self.nodes() as u64) as usize;
        if !self.mesh.is_up(node) {
            if self.rng.below(3) == 0 {
                self.come_back(node);
            }
            return;
        }
        match self.rng.below(24) {
            0..=9 => self.visit(node),
            10 => {
                // Who does not wait refuses.
                let _done = self.mesh.command(node, Command::Cancel);
                self.look();
            }
            11 | 12 => self.slander(node),
            13 => self.crash(node),
            14 => {
                let cut = self.rng.below(self.nodes() as u64) as usize;
                let rest: Vec<usize> = (0..self.nodes()).filter(|&it| it != cut).collect();
                self.mesh.partition(&[vec![cut], rest]).unwrap();
            }
            15 | 16 => self.mesh.heal(),
            _ => {}
        }
    }

    /// Who is inside leaves, who is not asks. Some ask again at once, and hear something false
    /// between.
    fn visit(&mut self, node: usize) {
        if self.is_inside(node) {
            self.mesh.command(node, Command::Exit).unwrap();
            self.look();
            if self.rng.below(3) == 0 {
                self.tally.again += 1;
                self.slander(node);
                self.ask(node);
            }
        } else {
            self.ask(node);
        }
    }

    fn ask(&mut self, node: usize) {
        if self.mesh.command(node, Command::Enter).is_ok() {
            self.waits[node] = Some(self.mesh.now());
            let lives = &self.lives;
            self.begun[node].get_or_insert_with(|| lives.clone());
        }
        self.look();
    }

    /// Tells `node` something that is false.
    fn slander(&mut self, node: usize) {
        let other = self.rng.below(self.nodes() as u64) as usize;
        if other == node || !self.mesh.is_up(other) {
            return;
        }
        let member = self.member(other);
        let delta = match self.rng.below(4) {
            0 => Delta::Suspected(member),
            1 => Delta::Refuted(member),
            _ => {
                self.tally.false_failures += 1;
                self.tally.about_the_holder += u64::from(self.is_inside(other));
                Delta::Failed(member)
            }
        };
        self.mesh.membership(node, delta).unwrap();
        self.look();
    }

    /// Not more lives than the bound says, for all requests that are open.
    fn crash(&mut self, node: usize) {
        let spare = self.configs[0].upper as usize - self.nodes();
        let is_full = |then: &Vec<u32>| self.restarts_since(then) >= spare;
        let is_down = (0..self.nodes()).any(|it| !self.mesh.is_up(it));
        if is_down || !self.ends.is_empty() || self.begun.iter().flatten().any(is_full) {
            return;
        }
        self.tally.crashes += 1;
        self.tally.died_inside += u64::from(self.is_inside(node));
        self.tally.issued_again += self.mesh.machine(node).unwrap().counters().issued_again;
        self.mesh.crash(node).unwrap();
        self.waits[node] = None;
        self.begun[node] = None;
        let at = self.mesh.now() + Span::millis(self.rng.below(20_000));
        self.ends.push((at, self.member(node)));
    }

    /// It comes back with no memory.
    fn come_back(&mut self, node: usize) {
        self.tally.restarts += 1;
        self.lives[node] += 1;
        let me = self.member(node);
        let machine = Camera::new(me, self.configs[node]).unwrap();
        self.mesh.restart(node, me, machine).unwrap();
        self.introduce(node);
        self.tell_all(Delta::Joined(me));
        self.look();
    }

    /// Nothing goes wrong any more, and everyone who waits is served.
    fn end(mut self) -> Tally {
        self.mesh.heal();
        for node in 0..self.nodes() {
            if !self.mesh.is_up(node) {
                self.come_back(node);
            }
        }
        self.pass(Span::secs(30));
        for node in 0..self.nodes() {
            self.introduce(node);
        }
        // Those that began while some were missing may be refused. None waits for another one to
        // ask.
        self.take_turns();
        self.pass(Span::secs(30));
        self.is_calm = true;
        for node in 0..self.nodes() {
            if !self.is_inside(node) {
                self.visit(node);
            }
        }
        self.take_turns();
        let again = |(_, machine): (usize, &Camera)| machine.counters().issued_again;
        self.tally.issued_again += self.mesh.machines().map(again).sum::<u64>();
        for (_, machine) in self.mesh.machines() {
            self.tally.slow += machine.counters().slow;
            self.tally.rebuilt += machine.counters().rebuilt;
        }
        self.tally.lost = self.mesh.counters().lost();
        self.tally
    }

    /// Each that waits takes its turn: nobody waits for longer than all others need.
    fn take_turns(&mut self) {
        for _ in 0..100 * self.nodes() {
            if self.waits.iter().all(Option::is_none) {
                break;
            }
            for node in 0..self.nodes() {
                if self.is_inside(node) {
                    self.mesh.command(node, Command::Exit).unwrap();
                }
            }
            self.pass(Span::secs(2));
        }
        let stuck = |&node: &usize| self.waits[node].is_some();
        let stuck: Vec<String> = (0..self.nodes())
            .filter(stuck)
            .map(|node| {
                let machine = self.mesh.machine(node).unwrap();
                format!(
                    "{node} waits for {:?}",
                    machine.waits_for().collect::<Vec<_>>()
                )
            })
            .collect();
        assert!(stuck.is_empty(), "{stuck:?}");
    }
}

/// Everyone knows everyone, or each knows few but all are connected.
fn acquaintances(nodes: usize, all: bool, rng: &mut ChaCha8Rng) -> Vec<Vec<bool>> {
    let mut knows: Vec<Vec<bool>> = (0..nodes)
        .map(|node| (0..nodes).map(|other| all && other != node).collect())
        .collect();
    let mut pairs: Vec<(usize, usize)> = (1..nodes)
        .map(|node| (node, rng.below(node as u64) as usize))
        .collect();
    pairs.extend(pairs.clone().iter().map(|&(node, other)| (other, node)));
    for (node, other) in pairs {
        knows[node][other] = true;
    }
    for _ in 0..rng.below(nodes as u64) {
        let node = rng.below(nodes as u64) as usize;
        let other = rng.below(nodes as u64) as usize;
        knows[node][other] |= node != other;
    }
    knows
}

#[test]
fn one_at_a_time_and_everyone_in_turn() {
    let count = std::env::var("SELVEDGE_HISTORIES");
    let count = count.ok().and_then(|it| it.parse().ok()).unwrap_or(300);
    let mut all = Tally::default();
    let ran = selvedge_sim::histories(0..count, |seed| {
        let mut history = History::new(seed);
        for _ in 0..120 {
            history.step();
            let millis = history.rng.below(1_500);
            history.pass(Span::millis(millis));
        }
        let tally = history.end();
        for (sum, one) in [
            (&mut all.entries, tally.entries),
            (&mut all.compared, tally.compared),
            (&mut all.lost, tally.lost),
            (&mut all.crashes, tally.crashes),
            (&mut all.died_inside, tally.died_inside),
            (&mut all.restarts, tally.restarts),
            (&mut all.false_failures, tally.false_failures),
            (&mut all.about_the_holder, tally.about_the_holder),
            (&mut all.again, tally.again),
            (&mut all.cancels, tally.cancels),
            (&mut all.refused, tally.refused),
            (&mut all.issued_again, tally.issued_again),
            (&mut all.slow, tally.slow),
            (&mut all.rebuilt, tally.rebuilt),
        ] {
            *sum += one;
        }
    });
    println!("{ran} histories: {all:?}");
    // Each kind of trouble was met, or the test says nothing.
    if ran >= 100 {
        for met in [
            all.entries / ran,
            all.compared * 2 / all.entries,
            all.lost,
            all.crashes,
            all.died_inside,
            all.restarts,
            all.false_failures,
            all.about_the_holder,
            all.again,
            all.cancels,
            all.refused,
            all.issued_again,
            all.slow,
            all.rebuilt,
        ] {
            assert!(met > 0, "{all:?}");
        }
    }
}
