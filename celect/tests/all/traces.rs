//! Elections with realistic errors in lists: the nodes' beliefs about each other come from recorded
//! runs of the membership protocol under churn, loss and partitions.
//!
//! The test counts the ends and the lengths of elections, and checks that the lowest live node leads
//! where c held. `SELVEDGE_HISTORIES` sets the number of histories; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

// One home for the recorder: Camera has the same histories.
#[allow(dead_code, reason = "Camera looks at more of it")]
#[path = "../../../camera/tests/all/history/plan.rs"]
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use plan::{Fault, Plan, first};
use selvedge_celect::check::ById;
use selvedge_celect::{Ballot, Celect, Command, Config, Event, Protocol};
use selvedge_core::{Choose, Member, Span, Time};
use selvedge_sim::network::{Link, Network};

/// Draws a time in the same way as the recorder.
pub(crate) fn between(rng: &mut ChaCha8Rng, low_ms: u64, high_ms: u64) -> Span {
    Span::millis(low_ms) + Span(rng.below((high_ms - low_ms) * 1_000))
}

selvedge_sim::counts! {
    struct Tally {
        begun: maybe,
        /// Its initiator completed it.
        ended: maybe,
        yielded: maybe,
        died: maybe,
        /// The lowest node that was up throughout was on all lists but c; it or a lower node leads.
        lowest_as_promised: maybe,
        /// Fewer lists had it, and it leads nevertheless.
        lowest_by_luck: maybe,
        not_the_lowest: maybe,
        /// A node was passed over that may be alive.
        passed_over: maybe,
        /// The total time of ended elections, in virtual microseconds.
        took: maybe,
        longest: max u64,
    }
}

/// An election in progress.
struct Run {
    since: Time,
    ballot: Ballot,
    rounds: u64,
    /// For each node that was up throughout, the nodes whose lists lacked it.
    lacked: BTreeMap<Member, BTreeSet<usize>>,
}

struct History {
    network: Network<Celect<ById>>,
    config: Config,
    runs: BTreeMap<usize, Run>,
    tally: Tally,
}

impl History {
    fn up(&self) -> Vec<usize> {
        let up = (0..self.network.len()).filter(|&it| self.network.is_up(it));
        up.collect()
    }

    fn machine(&self, node: usize) -> &Celect<ById> {
        self.network.machine(node).unwrap()
    }

    fn run_until(&mut self, until: Time) {
        while self.network.next_at().is_some_and(|at| at <= until) {
            self.network.step();
            self.look();
        }
        self.network.run_until(until);
    }

    fn look(&mut self) {
        let up = self.up();
        for run in self.runs.values_mut() {
            for (member, lacked) in &mut run.lacked {
                let lacks = |it: &usize| {
                    let machine = self.network.machine(*it).unwrap();
                    machine.me() != *member && !machine.members().any(|it| it == *member)
                };
                lacked.extend(up.iter().copied().filter(lacks));
            }
        }
        let events: Vec<_> = self.network.drain_events().collect();
        for (_, node, event) in events {
            match event {
                Event::Electing(ballot) => {
                    self.tally.begun += 1;
                    let members = up.iter().map(|&it| self.machine(it).me());
                    let run = Run {
                        since: self.network.now(),
                        ballot,
                        rounds: self.machine(node).counters().rounds,
                        lacked: members.map(|it| (it, BTreeSet::new())).collect(),
                    };
                    self.runs.insert(node, run);
                    self.look();
                }
                Event::Yielded { .. } => {
                    self.tally.yielded += 1;
                    self.runs.remove(&node);
                }
                _ => {}
            }
        }
        let over = |it: &usize| !self.machine(*it).is_electing();
        let over: Vec<usize> = self.runs.keys().copied().filter(over).collect();
        for node in over {
            let run = self.runs.remove(&node).unwrap();
            self.judge(node, &run);
        }
    }

    fn judge(&mut self, node: usize, run: &Run) {
        let machine = self.network.machine(node).unwrap();
        let tally = &mut self.tally;
        let Some((leader, ballot)) = machine.leader() else {
            tally.yielded += 1;
            return;
        };
        if (ballot.epoch, ballot.initiator) != (run.ballot.epoch, run.ballot.initiator) {
            tally.yielded += 1;
            return;
        }
        tally.ended += 1;
        let took = self.network.now().since(run.since).0;
        tally.took += took;
        tally.longest = tally.longest.max(took);
        if machine.counters().rounds > run.rounds {
            tally.passed_over += 1;
            return;
        }
        let lacked = |count: usize| count > usize::from(self.config.missing_from);
        let safe = run.lacked.iter().find(|(_, it)| !lacked(it.len()));
        // Nodes below the first safe node may lead as well.
        if let Some((safe, by)) = safe {
            assert!(
                leader.id <= safe.id,
                "{leader:?}, {safe:?} lacked by {by:?}"
            );
        }
        let lowest = run.lacked.first_key_value();
        match lowest {
            Some((lowest, by)) if leader <= *lowest && !lacked(by.len()) => {
                tally.lowest_as_promised += 1;
            }
            Some((lowest, _)) if leader <= *lowest => tally.lowest_by_luck += 1,
            _ => tally.not_the_lowest += 1,
        }
    }

    fn fault(&mut self, fault: Fault) {
        match fault {
            Fault::Crash(node) => self.crash(node),
            // A node takes no part before it knows its identity.
            Fault::Restart(_) => {}
            Fault::Start(node, me, notified) => {
                self.crash(node);
                let machine = Celect::new(me, self.config, ById).unwrap();
                self.network.restart(node, me, machine).unwrap();
                for delta in notified {
                    // It may refuse deltas about its own former lives.
                    drop(self.network.membership(node, delta));
                }
            }
            Fault::Part(groups) => self.network.partition(&groups).unwrap(),
            Fault::Heal => self.network.heal(),
            Fault::Confirm(dead) => {
                let dead = self.network.member(dead).unwrap();
                for node in self.up() {
                    let confirmed = selvedge_core::Delta::Confirmed(dead);
                    self.network.membership(node, confirmed).unwrap();
                }
            }
        }
        self.look();
    }

    fn crash(&mut self, node: usize) {
        if self.network.is_up(node) {
            let me = self.machine(node).me();
            self.network.crash(node).unwrap();
            self.tally.died += u64::from(self.runs.remove(&node).is_some());
            for run in self.runs.values_mut() {
                run.lacked.remove(&me);
            }
        }
    }
}

fn run(seed: u64) -> Tally {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let plan = Plan::new(seed, &mut rng, false);
    let nodes = plan.topology.len();
    let protocols = [Protocol::Base, Protocol::Optimistic, Protocol::Lean];
    let config = Config::new(0, 1)
        .with_protocol(protocols[rng.below(3) as usize])
        // Messages may take 2 s, and a leader whose lease has run out has a single timeout.
        .with_timeout(Span::secs(5))
        .with_resend(Span::secs(2))
        .with_lease((rng.below(2) == 0).then(|| Span::secs(12)))
        .with_missing_from(rng.below(3) as u16);
    let mut network = Network::new(seed, plan.topology.clone(), plan.link).unwrap();
    network.set_relays(plan.relays);
    for node in 0..nodes {
        let me = first(node);
        network
            .add(me, Celect::new(me, config, ById).unwrap())
            .unwrap();
        // It is down until its restart.
        network.crash(node).unwrap();
    }
    network.replay(&plan.trace).unwrap();
    let mut history = History {
        network,
        config,
        runs: BTreeMap::new(),
        tally: Tally::default(),
    };
    for (at, fault) in plan.faults.clone() {
        while history.network.now() < at {
            let next = history.network.now() + between(&mut rng, 500, 8_000);
            history.run_until(next.min(at));
            let up = history.up();
            if next < at && !up.is_empty() {
                let node = up[rng.below(up.len() as u64) as usize];
                // A node that runs an election refuses, and so does a node that knows no other.
                drop(history.network.command(node, Command::Elect));
                history.look();
            }
        }
        history.fault(fault);
    }
    let last = plan.trace.entries().last().map_or(plan.calm, |it| it.at);
    let calm = last.max(plan.calm) + Span::secs(60);
    history.run_until(calm);
    let up = history.up();
    let asks = up[rng.below(up.len() as u64) as usize];
    // Up to here all attempts to appoint the lowest may be lost.
    history.network.set_link(Link::default()).unwrap();
    // A node that runs an election refuses.
    drop(history.network.command(asks, Command::Elect));
    history.run_until(calm + Span::secs(120));
    let leaders: Vec<_> = up.iter().map(|&it| history.machine(it).leader()).collect();
    let (leader, ballot) = leaders[0].unwrap();
    assert!(leaders.iter().all(|it| *it == leaders[0]), "{leaders:?}");
    let lowest = history.machine(up[0]);
    assert_eq!((leader, Some(ballot)), (lowest.me(), lowest.leads()));
    history.tally
}

#[test]
fn elections_end_and_the_lowest_leads_where_c_held() {
    let mut all = Tally::default();
    let ran = selvedge_sim::histories(selvedge_sim::histories::seeds(200), |seed| {
        all.add(&run(seed));
    });
    let mean = all.took / all.ended.max(1) / 1_000;
    println!("{ran} histories: {all:#?}, {mean} ms in the mean");
    // Each kind of end must occur, or the test proves nothing.
    if ran >= 100 {
        for met in [
            all.ended * 4 / all.begun,
            all.yielded,
            all.died,
            all.lowest_as_promised,
            all.lowest_by_luck,
            all.not_the_lowest,
            all.passed_over,
        ] {
            assert!(met > 0, "{all:?}");
        }
    }
}
