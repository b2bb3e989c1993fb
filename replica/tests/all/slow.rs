//! Elections where a promise takes longer than a member waits at first.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose as _, Delta, Member, Span, Time};
use selvedge_replica::check::Journal;
use selvedge_replica::{Ballot, Command, Config, Configuration, Replica};
use selvedge_sim::network::{Action, Link, Network, Storage, Topology};

type Node = Replica<Journal>;

const NODES: usize = 5;

/// One time for all messages, and one for each write, from which the group has a leader for good
/// within a bound.
#[derive(Clone, Copy, Debug)]
struct Slow {
    message: Span,
    write: Span,
    within: Span,
}

const SLOW: [Slow; 3] = [
    Slow {
        message: Span::millis(800),
        write: Span::millis(1),
        within: Span::secs(20),
    },
    Slow {
        message: Span::secs(2),
        write: Span::millis(1),
        within: Span::secs(70),
    },
    Slow {
        message: Span::millis(300),
        write: Span::millis(700),
        within: Span::secs(30),
    },
];

const fn member(at: usize) -> Member {
    Member::new(at as u64 + 1, 1)
}

/// Five members with a fast network, and at first no leader.
fn five(seed: u64) -> Network<Node> {
    let topology = Topology::full_mesh(NODES).unwrap();
    let mut network = Network::new(seed, topology, Link::default()).unwrap();
    network.set_storage(Storage::default());
    let first = Configuration::of((0..NODES).map(member));
    for at in 0..NODES {
        let (first, state) = (first.clone(), Journal::default());
        let node = Replica::new(member(at), Config::new(), first, state);
        network.add(member(at), node.unwrap()).unwrap();
    }
    network
}

/// From now on all messages and writes take this long.
fn slow_down(network: &mut Network<Node>, slow: Slow) {
    let link = Link {
        min_delay: slow.message,
        max_delay: slow.message,
        ..Link::default()
    };
    network.set_link(link).unwrap();
    network.set_storage(Storage {
        latency: slow.write,
        jitter: Span::ZERO,
    });
}

/// The leader that all present members follow.
fn leader(network: &Network<Node>) -> Option<Ballot> {
    let up = network.machines().filter(|it| network.is_up(it.0));
    let mut leaders = up.map(|it| it.1.leader().map(|it| it.1));
    let first = leaders.next().unwrap()?;
    leaders.all(|it| it == Some(first)).then_some(first)
}

/// Has the present members act, all at once or each at a time of its own, and checks that a leader
/// is there in time, and stays.
fn elect(seed: u64, slow: Slow, network: &mut Network<Node>, act: impl Fn(usize) -> Action<Node>) {
    slow_down(network, slow);
    let start = network.now();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let spread = if seed.is_multiple_of(4) {
        1
    } else {
        Span::secs(2).0
    };
    for at in (0..NODES)
        .filter(|&it| network.is_up(it))
        .collect::<Vec<_>>()
    {
        let when = start + Span(rng.below(spread));
        network.schedule(when, act(at)).unwrap();
    }
    network.run_until(start + slow.within);
    let found = leader(network);
    assert!(found.is_some(), "seed {seed}: no leader, {slow:?}");
    network.run_for(Span::secs(60));
    assert_eq!(leader(network), found, "seed {seed}: it stays, {slow:?}");
}

#[test]
fn members_that_stand_together_get_a_leader_though_messages_or_writes_are_slow() {
    for (slow, seed) in SLOW
        .into_iter()
        .flat_map(|it| (0..20).map(move |seed| (it, seed)))
    {
        let mut network = five(seed);
        elect(seed, slow, &mut network, |node| Action::Command {
            node,
            command: Command::Campaign,
        });
    }
}

#[test]
fn a_leader_that_fails_is_replaced_though_messages_or_writes_are_slow() {
    for (slow, seed) in SLOW
        .into_iter()
        .flat_map(|it| (0..20).map(move |seed| (it, seed)))
    {
        let mut network = five(seed);
        network.command(0, Command::Propose(1)).unwrap();
        network.run_for(Span::secs(5));
        assert_eq!(leader(&network).map(|it| it.by), Some(member(0).id));
        network.crash(0).unwrap();
        elect(seed, slow, &mut network, |node| Action::Membership {
            node,
            delta: Delta::Failed(member(0)),
        });
    }
}

/// Each member takes a leader for lost that does not answer it in time, as here none can.
#[test]
fn proposals_of_all_members_are_applied_though_messages_or_writes_are_slow() {
    for (slow, seed) in SLOW
        .into_iter()
        .flat_map(|it| (0..20).map(move |seed| (it, seed)))
    {
        let mut network = five(seed);
        slow_down(&mut network, slow);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for node in 0..NODES {
            let command = Command::Propose(node as u16);
            let when = Time::ZERO + Span(rng.below(Span::secs(2).0));
            network
                .schedule(when, Action::Command { node, command })
                .unwrap();
        }
        network.run_for(slow.within * 2);
        for (node, it) in network.machines() {
            let applied = it.state().map_or(0, |it| it.0.len());
            assert_eq!(applied, NODES, "seed {seed}: node {node}, {slow:?}");
        }
    }
}
