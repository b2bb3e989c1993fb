//! Random histories of nodes that are cut off, alone or with few, and come back while they lead,
//! elect, or have let their lease run out: the leader of the others stays.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{Celect, Command, Config, Event, Protocol};
use selvedge_core::{Choose, Delta, Member, Ratio, Span, Time};
use selvedge_sim::histories;
use selvedge_sim::network::{Link, Network, Topology};

const PROTOCOLS: [Protocol; 3] = [Protocol::Base, Protocol::Optimistic, Protocol::Lean];

struct History {
    mesh: Network<Celect<ById>>,
    rng: ChaCha8Rng,
    nodes: usize,
    c: u16,
    /// Reports of membership with their times: each delta, and the c that fits the list behind it.
    news: Vec<(Time, usize, Delta)>,
}

const fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

impl History {
    fn new(seed: u64, keep_leader: bool) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let nodes = 3 + rng.below(6) as usize;
        let link = Link {
            loss: Ratio::new([0, 0, 2, 5][rng.below(4) as usize], 100),
            max_delay: Span::millis(5 + rng.below(100)),
            ..Link::default()
        };
        let mut mesh = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
        let c = rng.below(nodes.div_ceil(2) as u64) as u16;
        let config = Config::new(c, rng.below(2) as u16)
            .with_protocol(PROTOCOLS[rng.below(3) as usize])
            .with_lease((rng.below(2) == 0).then(|| Span::secs(10)))
            .with_attempts(5)
            .with_retries(10)
            .with_keep_leader(keep_leader);
        for node in 0..nodes {
            let machine = Celect::new(member(node), config, ById).unwrap();
            mesh.add(member(node), machine).unwrap();
        }
        let mut history = Self {
            mesh,
            rng,
            nodes,
            c,
            news: Vec::new(),
        };
        for node in 0..nodes {
            for other in (0..nodes).filter(|&it| it != node) {
                history.notify(node, Delta::Joined(member(other)));
            }
        }
        history.mesh.command(nodes - 1, Command::Elect).unwrap();
        history.pass(Span::secs(20));
        history
    }

    /// Gives a node a delta, and limits its c to the number of others.
    fn notify(&mut self, node: usize, delta: Delta) {
        self.mesh.membership(node, delta).unwrap();
        let machine = self.mesh.machine(node).unwrap();
        let c = self.c.min(machine.members().count() as u16);
        let f = machine.config().failures;
        if machine.config().missing_from != c {
            let tolerate = Command::SetBounds {
                missing_from: c,
                failures: f,
            };
            self.mesh.command(node, tolerate).unwrap();
        }
    }

    fn pass(&mut self, span: Span) {
        let end = self.mesh.now() + span;
        loop {
            self.news.sort_by_key(|(at, ..)| *at);
            let Some(&(at, node, delta)) = self.news.first().filter(|(at, ..)| *at <= end) else {
                break;
            };
            self.news.remove(0);
            self.mesh.run_until(at);
            self.notify(node, delta);
        }
        self.mesh.run_until(end);
    }

    fn leader(&self, node: usize) -> Option<Member> {
        let leader = self.mesh.machine(node).unwrap().leader();
        leader.map(|(leader, _)| leader)
    }

    /// Gives each node of one side a `delta` about each node of the other side in the next seconds.
    fn announce(&mut self, [one, other]: [&[usize]; 2], delta: fn(Member) -> Delta, most: u64) {
        for (&left, &right) in one
            .iter()
            .flat_map(|it| other.iter().map(move |to| (it, to)))
        {
            for (node, about) in [(left, right), (right, left)] {
                let at = self.mesh.now() + Span::millis(self.rng.below(most));
                self.news.push((at, node, delta(member(about))));
            }
        }
    }

    /// Cuts off fewer than half, without the leader, and lets them come back. Returns the promise that
    /// broke, and true if one of them had led.
    fn cut_off(&mut self) -> (Result<(), String>, bool) {
        let leader = self.leader(0).unwrap();
        let mut side: Vec<usize> = (0..self.nodes).filter(|&it| member(it) != leader).collect();
        let size = if self.rng.below(4) > 0 {
            1
        } else {
            self.nodes.div_ceil(2) - 1
        };
        while side.len() > size {
            side.remove(self.rng.below(side.len() as u64) as usize);
        }
        let rest: Vec<usize> = (0..self.nodes).filter(|it| !side.contains(it)).collect();
        self.mesh.partition(&[side.clone(), rest.clone()]).unwrap();
        self.announce([&side, &rest], Delta::Failed, 3_000);
        // All nodes that have lost their leader elect; and leases run out, or do not.
        let alone = Span::millis(20_000 + self.rng.below(20_000));
        self.pass(alone);
        let led = side.iter().any(|&it| self.leader(it).is_some());
        self.mesh.drain_events().for_each(drop);
        self.mesh.heal();
        self.announce([&side, &rest], Delta::Refuted, 3_000);
        if self.rng.below(2) == 0 {
            // When it knows some of the others again.
            let first = Span::millis(self.rng.below(3_000));
            self.pass(first);
            // Refused if an election is under way, or too few nodes are known.
            let machine = self.mesh.machine(side[0]).unwrap();
            if machine.leader().is_none_or(|(it, _)| it != leader) {
                drop(self.mesh.command(side[0], Command::Elect));
            }
        }
        self.pass(Span::secs(60));
        let others: Vec<_> = (self.mesh.drain_events())
            .filter(|(_, node, event)| {
                let is_other = |it: &Member| *it != leader && rest.contains(node);
                matches!(event, Event::Elected { leader, .. } if is_other(leader))
            })
            .collect();
        let after: Vec<_> = (0..self.nodes).map(|it| self.leader(it)).collect();
        let is_kept = others.is_empty() && after.iter().all(|it| *it == Some(leader));
        let broken = format!("{leader} led; {side:?} came back; {after:?}; {others:?}");
        (if is_kept { Ok(()) } else { Err(broken) }, led)
    }
}

#[test]
fn a_leader_with_a_majority_stays_whatever_the_nodes_that_come_back_do() {
    let mut led = 0;
    let ran = histories(0..1_000, |seed| {
        let mut history = History::new(seed, true);
        for turn in 0..3 {
            let (kept, has_led) = history.cut_off();
            led += u32::from(has_led);
            assert!(kept.is_ok(), "return {turn}: {}", kept.unwrap_err());
        }
    });
    assert!(ran < 1_000 || led > 1_500, "{led} of 3,000 had led");
}

#[test]
fn without_keep_leader_nodes_that_come_back_take_the_lead() {
    let taken = |seed| History::new(seed, false).cut_off().0.is_err();
    let taken = (0..50).filter(|&seed| taken(seed)).count();
    assert!(taken > 25, "seeds 0 to 49: {taken}");
}
