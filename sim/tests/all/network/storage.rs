//! Facts that are stored late, and crashes that lose them.

use selvedge_core::durable::Durable;
use selvedge_core::{Machine, Member, Span, Time};
use selvedge_sim::histories;
use selvedge_sim::network::{Action, Happened, Link, Network, Storage, Topology};

use crate::facts::{Counter, Notifier, Voter};

const DISK: Storage = Storage {
    latency: Span::millis(5),
    jitter: Span::millis(10),
};

fn network<M: Durable>(seed: u64, nodes: Vec<(Member, M)>) -> Network<M> {
    let mesh = Topology::full_mesh(nodes.len()).unwrap();
    let mut network = Network::new(seed, mesh, Link::default()).unwrap();
    network.set_storage(DISK);
    for (member, machine) in nodes {
        network.add(member, machine).unwrap();
    }
    network
}

/// Restarts from its stored state, unchanged.
fn come_back<M: Machine>(network: &mut Network<M>, node: usize) {
    let (member, machine) = (network.member(node), network.machine(node).cloned());
    let restarted = network.restart(node, member.unwrap(), machine.unwrap());
    assert_eq!(restarted, Ok(()));
}

/// Two candidates ask one voter, which crashes at a moment of its own. Returns how many are
/// elected, and whether a vote was lost.
fn elect(seed: u64, is_rash: bool) -> (usize, bool) {
    let voter = |id| (Member::new(id, 0), Voter::new(id, is_rash));
    let mut network = network(seed, (0..3).map(voter).collect());
    let command = Member::new(2, 0);
    for (node, at) in [(0, 0), (1, 2_000 * (seed % 20))] {
        // Once, and after the voter is back.
        for at in [at, 100_000 + at] {
            let ask = Action::Command { node, command };
            network.schedule(Time(at), ask).unwrap();
        }
    }
    network.run_until(Time(1_000 * (seed % 31)));
    assert_eq!(network.crash(2), Ok(true));
    assert_eq!(network.unstored(2), 0, "what was not stored is gone");
    network.run_for(Span::millis(10));
    come_back(&mut network, 2);
    network.run_for(Span::millis(300));
    let elected = network.machines().filter(|it| it.1.is_elected).count();
    let counters = network.node_counters(2);
    assert_eq!(counters.refused_facts, 0);
    (elected, counters.facts_lost > 0)
}

#[test]
fn a_voter_that_stores_its_vote_first_gives_it_once() {
    let mut lost = 0;
    let ran = histories(0..300, |seed| {
        let (elected, is_lost) = elect(seed, false);
        assert_eq!(elected, 1);
        lost += u64::from(is_lost);
    });
    assert!(ran == 1 || (10..ran).contains(&lost), "{lost} of {ran}");
}

#[test]
fn a_voter_that_answers_before_it_has_stored_its_vote_gives_it_twice() {
    let twice = (0..300).filter(|&seed| elect(seed, true).0 == 2).count();
    assert!(twice > 0, "a rash voter was never caught");
}

fn counters(seed: u64) -> Network<Counter> {
    let counter = |id| (Member::new(id, 0), Counter::default());
    network(seed, (0..2).map(counter).collect())
}

#[test]
fn facts_that_come_during_a_write_share_the_next_one() {
    let mut network = counters(7);
    for _ in 0..5 {
        network.command(0, Member::new(1, 0)).unwrap();
    }
    assert_eq!((network.unstored(0), network.counters().sent), (5, 0));
    let mut writes = Vec::new();
    while let Some(step) = network.step() {
        if let Happened::Stored { node, facts } = step.happened {
            assert_eq!(node, 0);
            writes.push(facts);
            let stored: usize = writes.iter().sum();
            assert_eq!(network.counters().sent, stored as u64, "and no sooner");
        }
    }
    assert_eq!(writes, [1, 4]);
    assert_eq!(network.unstored(0), 0);
    assert_eq!(network.node_counters(0).facts_stored, 5);
    assert_eq!(network.machine(1).unwrap().got.len(), 5);
    assert!(network.now() <= Time(2 * 15_000 + 5_000));
}

/// The write of the first life would be done in the middle of the second life's write.
#[test]
fn a_write_that_a_crash_ended_ends_no_later_write() {
    let mut network = counters(7);
    network.set_storage(Storage {
        latency: Span::millis(20),
        jitter: Span::ZERO,
    });
    let one = Member::new(1, 0);
    network.command(0, one).unwrap();
    network.run_until(Time(10_000));
    assert_eq!(network.crash(0), Ok(true));
    come_back(&mut network, 0);
    network.command(0, one).unwrap();
    for (at, unstored) in [(20_001, 1), (29_999, 1), (30_000, 0)] {
        network.run_until(Time(at));
        assert_eq!(network.unstored(0), unstored, "at {at} us");
        assert_eq!(network.counters().sent, 1 - unstored, "at {at} us");
    }
}

#[test]
fn stored_facts_that_a_machine_refuses_are_counted() {
    let mut network = network(7, vec![(Member::new(0, 0), Notifier::default())]);
    for number in [2, 10, 3, 12, 4] {
        network.command(0, number).unwrap();
    }
    // 3 is no fact, and waits for those before it.
    assert_eq!(network.unstored(0), 4);
    network.run_for(Span::secs(1));
    let counters = network.node_counters(0);
    assert_eq!((counters.facts_stored, counters.refused_facts), (2, 2));
    assert_eq!(network.crash(0), Ok(true));
    assert_eq!(network.machine(0).unwrap().folded, [2, 4]);
}

/// Commands and crashes at any moment: no number is given out twice, and a crash keeps all, some
/// or none of a write.
#[test]
fn no_number_is_given_out_twice() {
    let (mut all, mut some, mut none) = (0, 0, 0);
    let mut given = 0;
    let ran = histories(0..200, |seed| {
        let mut network = counters(seed);
        for round in 0..5 {
            for nth in 0..12 {
                network.command(0, Member::new(1, 0)).unwrap();
                network.run_for(Span::micros(
                    1 + (seed * 977 + round * 131 + nth * 37) % 3_000,
                ));
            }
            let before = network.node_counters(0);
            assert_eq!(network.crash(0), Ok(true));
            let after = network.node_counters(0);
            let kept = after.facts_stored - before.facts_stored;
            match (kept, after.facts_lost - before.facts_lost) {
                (_, 0) => all += 1,
                (0, _) => none += 1,
                _ => some += 1,
            }
            come_back(&mut network, 0);
            assert_eq!(
                u64::from(network.machine(0).unwrap().last),
                after.facts_stored
            );
        }
        network.run_for(Span::secs(1));
        let mut got = network.machine(1).unwrap().got.clone();
        let sent = network.counters().sent;
        assert_eq!(got.len() as u64, sent);
        given += sent;
        got.sort_unstable();
        assert!(got.windows(2).all(|it| it[0] < it[1]), "{got:?}");
    });
    assert!(
        ran == 1 || all.min(some).min(none).min(given) > 0,
        "{all} {some} {none}"
    );
}
