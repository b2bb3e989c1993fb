//! Elections where a promise takes longer than a member waits at first.

use selvedge_core::Choose as _;
use selvedge_sim::network::{Action, Link, Network, Storage, Topology};

use crate::mesh::*;

const NODES: usize = 5;

/// One time for all messages, one for each write, and the time in which the group has a leader.
const SLOW: [(Span, Span, Span); 3] = [
    (Span::millis(800), Span::millis(1), Span::secs(30)),
    (Span::secs(2), Span::millis(1), Span::secs(70)),
    (Span::millis(300), Span::millis(700), Span::secs(40)),
];

fn slow_down(network: &mut Network<Machine>, message: Span, latency: Span) {
    let link = Link {
        min_delay: message,
        max_delay: message,
        ..Link::default()
    };
    network.set_link(link).unwrap();
    let jitter = Span::ZERO;
    network.set_storage(Storage { latency, jitter });
}

/// Five members that begin all at once, or each within this time.
fn five(seed: u64, within: Span) -> Network<Machine> {
    let topology = Topology::full_mesh(NODES).unwrap();
    let mut network = Network::new(seed, topology, Link::default()).unwrap();
    network.set_storage(Storage::default());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for node in 0..NODES {
        let me = life(node as u64 + 1, 0);
        let machine = machine_of(me, plan_for(2, NODES as u64), config(), Start::Fresh);
        network.add(me, machine).unwrap();
        let at = Time::ZERO + Span(rng.below(within.0.max(1)));
        for other in (1..=NODES as u64).filter(|it| *it != me.id.0) {
            let delta = Delta::Joined(life(other, 0));
            let joined = Action::Membership { node, delta };
            network.schedule(at, joined).unwrap();
        }
        let command = Command::SetEpoch(1);
        network
            .schedule(at, Action::Command { node, command })
            .unwrap();
    }
    network
}

/// The leader that all present members follow.
fn leader(network: &Network<Machine>) -> Option<NodeId> {
    let up = network.machines().filter(|it| network.is_up(it.0));
    let mut leaders = up.map(|it| it.1.replica(GROUP)?.leader());
    let first = leaders.next().unwrap()?;
    leaders.all(|it| it == Some(first)).then_some(first.0)
}

fn spread(seed: u64) -> Span {
    Span::secs(if seed.is_multiple_of(4) { 0 } else { 2 })
}

#[test]
fn a_group_gets_a_leader_though_messages_or_writes_are_slow() {
    for (seed, (message, write, within)) in (0..20).flat_map(|it| SLOW.map(|slow| (it, slow))) {
        let mut network = five(seed, spread(seed));
        slow_down(&mut network, message, write);
        network.run_for(within);
        let found = leader(&network);
        assert!(found.is_some(), "seed {seed}, messages of {message:?}");
    }
}

#[test]
fn a_leader_that_fails_is_replaced_though_messages_or_writes_are_slow() {
    for (seed, (message, write, within)) in (0..20).flat_map(|it| SLOW.map(|slow| (it, slow))) {
        let mut network = five(seed, Span::ZERO);
        network.run_for(Span::secs(30));
        let former = leader(&network).unwrap();
        let down = network.find(former).unwrap();
        network.crash(down).unwrap();
        slow_down(&mut network, message, write);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for node in (0..NODES).filter(|it| *it != down) {
            let delta = Delta::Failed(life(former.0, 0));
            let at = network.now() + Span(rng.below(spread(seed).0.max(1)));
            let failed = Action::Membership { node, delta };
            network.schedule(at, failed).unwrap();
        }
        network.run_for(within);
        let found = leader(&network).filter(|it| *it != former);
        assert!(found.is_some(), "seed {seed}, messages of {message:?}");
        network.run_for(Span::secs(60));
        assert_eq!(leader(&network), found, "seed {seed}: it stays");
    }
}
