//! Random histories: loss, duplicates, partitions, false suspicions, crashes and restarts, with
//! every protocol, with leases and without, and checks of the leader of each ballot.
//!
//! `SELVEDGE_HISTORIES` sets the number of histories; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{Ballot, Celect, Command, Config, Event, Protocol};
use selvedge_core::{Choose, Delta, Member, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

const PROTOCOLS: [Protocol; 5] = [
    Protocol::Base,
    Protocol::Optimistic,
    Protocol::Preferred,
    Protocol::Hybrid,
    Protocol::Lean,
];

selvedge_sim::counts! {
    /// Counts of all histories together.
    struct Tally {
        elections,
        led,
        deposed,
        yielded,
        leaders_lost,
        leases_over,
        ended,
        too_few,
        messages_lost,
        crashes_of_leaders,
        crashes_of_initiators,
        restarts,
        false_failures,
        partitions,
        /// Histories that ended with an election whose winner was known.
        lowest,
        /// Histories that reached agreement without another command to elect.
        by_itself,
    }
}

struct History {
    mesh: Network<Celect<ById>>,
    rng: ChaCha8Rng,
    config: Config,
    lives: Vec<u32>,
    /// True if nodes run different protocols.
    is_mixed: bool,
    /// Lives that have ended, with the times at which this is reported to others.
    ends: Vec<(Time, Member)>,
    /// The last ballot in each node's events, in its present life.
    last: Vec<Option<Ballot>>,
    /// The node that took the lead by each ballot.
    taken: BTreeMap<Ballot, Member>,
    tally: Tally,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = 3 + rng.below(8) as usize;
        let link = Link {
            loss: Ratio::new(rng.below(25) as u32, 100),
            duplicate: Ratio::new(rng.below(10) as u32, 100),
            max_delay: Span::millis(5 + rng.below(400)),
            ..Link::default()
        };
        let mesh = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        let c = rng.below(nodes as u64 / 2) as u16;
        let config = Config::new(c, 0)
            .with_protocol(PROTOCOLS[rng.below(5) as usize])
            .with_lowest(2)
            .with_suspected(1 + rng.below(2) as u8)
            .with_lease((rng.below(2) == 0).then(|| Span::secs(6)))
            .with_patience([Span::ZERO, Span::secs(3)][rng.below(2) as usize])
            .with_exclude_limit([1, 16][rng.below(2) as usize])
            .with_frame_budget([127, 1_400][rng.below(2) as usize])
            .with_failures(rng.below(3) as u16);
        let is_mixed = rng.below(3) == 0;
        let mut history = Self {
            mesh,
            config,
            lives: vec![0; nodes],
            is_mixed,
            ends: Vec::new(),
            last: vec![None; nodes],
            taken: BTreeMap::new(),
            tally: Tally::default(),
            rng,
        };
        for node in 0..nodes {
            let (me, machine) = (history.member(node), history.machine(node));
            history.mesh.add(me, machine).unwrap();
        }
        for node in 0..nodes {
            history.introduce(node, true);
        }
        history
    }

    fn nodes(&self) -> usize {
        self.lives.len()
    }

    fn member(&self, node: usize) -> Member {
        Member::new(node as u64 + 1, self.lives[node])
    }

    fn machine(&self, node: usize) -> Celect<ById> {
        let protocol = if self.is_mixed {
            PROTOCOLS[node % PROTOCOLS.len()]
        } else {
            self.config.protocol
        };
        let config = self.config.with_protocol(protocol);
        Celect::new(self.member(node), config, ById).unwrap()
    }

    /// Introduces others to `node`: all, or most.
    fn introduce(&mut self, node: usize, all: bool) {
        for other in 0..self.nodes() {
            if other != node && self.mesh.is_up(other) && (all || self.rng.below(8) > 0) {
                let joined = Delta::Joined(self.member(other));
                self.mesh.membership(node, joined).unwrap();
            }
        }
    }

    fn notify_all(&mut self, delta: Delta) {
        let whom = (delta.member().id.0 - 1) as usize;
        for node in 0..self.nodes() {
            if self.mesh.is_up(node) && node != whom {
                self.mesh.membership(node, delta).unwrap();
            }
        }
    }

    fn pass(&mut self, span: Span) {
        let end = self.mesh.now() + span;
        self.look();
        while self.mesh.next_at().is_some_and(|at| at <= end) {
            self.mesh.step();
            self.look();
        }
        self.mesh.run_until(end);
        let now = self.mesh.now();
        let (due, rest) = self.ends.iter().partition(|(at, _)| *at <= now);
        self.ends = rest;
        let due: Vec<(Time, Member)> = due;
        for (_, member) in due {
            self.notify_all(Delta::Confirmed(member));
            self.look();
        }
    }

    fn look(&mut self) {
        let events: Vec<_> = self.mesh.drain_events().collect();
        for (_, node, event) in events {
            match event {
                Event::Elected { leader, ballot } => self.elected(node, leader, ballot),
                Event::Electing(_) => self.tally.elections += 1,
                Event::Yielded { ballot, to } => {
                    assert!(to > ballot);
                    self.tally.yielded += 1;
                }
                Event::Deposed { ballot, by } => {
                    assert!(by > ballot && self.taken[&ballot] == self.member(node));
                    self.tally.deposed += 1;
                }
                Event::Lost { .. } => self.tally.leaders_lost += 1,
                Event::LeaseExpired { .. } => self.tally.leases_over += 1,
                Event::Ended(ballot) => {
                    assert_eq!(self.taken[&ballot], self.member(node));
                    self.tally.ended += 1;
                }
                Event::Regained { ballot, .. } => assert_eq!(self.last[node], Some(ballot)),
                Event::Stalled { .. } => self.tally.too_few += 1,
                Event::Concluded { .. }
                | Event::Measured(_)
                | Event::Unmeasured(_)
                | Event::BoundChanged { .. } => {}
                other => panic!("a history does not know {other:?}"),
            }
        }
    }

    fn elected(&mut self, node: usize, leader: Member, ballot: Ballot) {
        let last = self.last[node].replace(ballot);
        assert!(
            last < Some(ballot),
            "node {node}: {last:?}, then {ballot:?}"
        );
        if leader == self.member(node) {
            self.tally.led += 1;
            let before = self.taken.insert(ballot, leader);
            assert_eq!(before, None, "{ballot:?} was used twice");
        } else {
            assert_eq!(self.taken.get(&ballot), Some(&leader), "{ballot:?}");
        }
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
            // A node that runs an election refuses, and so does a node that knows no other.
            0..=3 => drop(self.mesh.command(node, Command::Elect)),
            4..=6 => self.slander(node),
            7 | 8 => self.crash(node),
            9 => {
                // A crash is most interesting at a node that runs an election.
                let is_electing = |it: &usize| self.mesh.machine(*it).unwrap().is_electing();
                let electing = (0..self.nodes()).filter(|it| self.mesh.is_up(*it));
                if let Some(electing) = electing.clone().find(is_electing) {
                    self.crash(electing);
                }
            }
            10 => {
                self.tally.partitions += 1;
                let side: Vec<usize> = (0..self.nodes()).filter(|it| it % 3 == node % 3).collect();
                let rest: Vec<usize> = (0..self.nodes()).filter(|it| it % 3 != node % 3).collect();
                self.mesh.partition(&[side, rest]).unwrap();
            }
            11 | 12 => self.mesh.heal(),
            13 => self.introduce(node, true),
            _ => {}
        }
    }

    /// Gives `node` a false delta.
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
                Delta::Failed(member)
            }
        };
        self.mesh.membership(node, delta).unwrap();
    }

    /// Crashes a node. Others may be notified late, and first by their own suspicion.
    fn crash(&mut self, node: usize) {
        let machine = self.mesh.machine(node).unwrap();
        self.tally.crashes_of_leaders += u64::from(machine.leads().is_some());
        self.tally.crashes_of_initiators += u64::from(machine.is_electing());
        self.mesh.crash(node).unwrap();
        let at = self.mesh.now() + Span::millis(self.rng.below(10_000));
        self.ends.push((at, self.member(node)));
    }

    /// Restarts a node without memory.
    fn come_back(&mut self, node: usize) {
        self.tally.restarts += 1;
        self.lives[node] += 1;
        self.last[node] = None;
        let (me, machine) = (self.member(node), self.machine(node));
        self.mesh.restart(node, me, machine).unwrap();
        self.introduce(node, false);
        self.notify_all(Delta::Joined(me));
    }

    /// Ends all faults, lets all nodes that are up know each other, and checks that all follow a leader
    /// that is up and leads.
    fn end(mut self) -> Tally {
        self.mesh.heal();
        self.mesh.set_link(Link::default()).unwrap();
        let up: Vec<usize> = (0..self.nodes())
            .filter(|&it| self.mesh.is_up(it))
            .collect();
        let Some(&first) = up.first() else {
            return self.tally;
        };
        for node in 0..self.nodes() {
            let member = self.member(node);
            self.notify_all(if self.mesh.is_up(node) {
                Delta::Joined(member)
            } else {
                Delta::Confirmed(member)
            });
        }
        let c = self.config.missing_from.min(up.len() as u16 - 1);
        for &node in &up {
            let tolerate = Command::SetBounds {
                missing_from: c,
                failures: 0,
            };
            self.mesh.command(node, tolerate).unwrap();
        }
        let knows = |it: &usize| self.last[*it].is_some();
        if up.iter().any(knows) {
            self.tally.by_itself += 1;
        } else {
            drop(self.mesh.command(first, Command::Elect));
        }
        self.pass(Span::secs(60));
        self.check_agreement(&up);
        // Now the test knows which node must win.
        let asks = up[self.rng.below(up.len() as u64) as usize];
        self.mesh.command(asks, Command::Elect).unwrap();
        self.pass(Span::secs(30));
        let leader = self.check_agreement(&up);
        let protocol = self.mesh.machine(asks).unwrap().config().protocol;
        if !matches!(protocol, Protocol::Preferred | Protocol::Hybrid) {
            assert_eq!(leader, self.member(first), "asked by {asks}");
            self.tally.lowest += 1;
        }
        self.tally.messages_lost = self.mesh.counters().lost();
        for (node, _) in self.mesh.machines() {
            assert_eq!(self.mesh.node_counters(node).rejected_ticks, 0);
        }
        self.tally
    }

    fn check_agreement(&self, up: &[usize]) -> Member {
        let machine = |node: usize| self.mesh.machine(node).unwrap();
        let all: Vec<_> = up.iter().map(|&it| machine(it).leader()).collect();
        assert!(
            all.iter().all(|it| it.is_some() && *it == all[0]),
            "{all:?}"
        );
        let (leader, ballot) = all[0].unwrap();
        let node = leader.id.0 as usize - 1;
        assert!(self.mesh.is_up(node) && machine(node).leads() == Some(ballot));
        let electing = up.iter().map(|&it| machine(it)).find(|it| it.is_electing());
        assert!(electing.is_none(), "{electing:?}");
        leader
    }
}

#[test]
fn ballots_rise_and_in_the_end_all_follow_one() {
    let mut all = Tally::default();
    let ran = selvedge_sim::histories(selvedge_sim::histories::seeds(400), |seed| {
        let mut history = History::new(seed);
        for _ in 0..120 {
            history.step();
            let millis = history.rng.below(1_500);
            history.pass(Span::millis(millis));
        }
        all.add(&history.end());
    });
    println!("{ran} histories: {all:#?}");
    // Each kind of trouble must occur, or the test proves nothing.
    if ran >= 100 {
        assert_eq!(all.missing(), None, "it never happened");
    }
}
