//! Estimates under churn, in overlays of all shapes, and by nodes that are cut off.

use std::collections::BTreeSet;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_camera::estimate::{Command, Config, Event, Failure};
use selvedge_core::{Choose, Delta, Span, Time};
use selvedge_sim::histories;
use selvedge_sim::network::{Action, Link};

use super::{A_TENTH, Sums, is_single, lossy, member, mesh, missing, run};

/// Ten of 49 are replaced during an estimate: five leave, five crash and are noticed later.
#[test]
fn churn_moves_an_estimate_by_no_more_than_those_who_came_and_went() {
    let config = Config::default();
    let mut sums = Sums::default();
    histories(0..300, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Nodes 49 to 58 are up, but no node knows them yet.
        let mut network = mesh(seed, 59, &config, Link::default(), |node, other| {
            node.max(other) < 49 && !rng.chance(A_TENTH)
        });
        for nth in 0..10 {
            let (gone, new) = (1 + 4 * nth, 49 + nth);
            let at = Time::ZERO + Span::millis(20 * nth as u64);
            network.schedule(at, Action::Crash { node: gone }).unwrap();
            for node in (0..59).filter(|&node| node != gone && node != new) {
                let mut notify = |node, delta, after| {
                    let at = at + Span::millis(after + rng.below(20));
                    network
                        .schedule(at, Action::Membership { node, delta })
                        .unwrap();
                };
                if nth % 2 == 0 {
                    notify(node, Delta::Left(member(gone)), 0);
                } else {
                    notify(node, Delta::Suspected(member(gone)), 40);
                    notify(node, Delta::Failed(member(gone)), 80);
                }
                notify(node, Delta::Joined(member(new)), 0);
                if node < 49 + nth && (node < 2 || node % 4 != 1 || node / 4 > nth) {
                    notify(new, Delta::Joined(member(node)), 0);
                }
            }
        }
        sums.add(&mut network, 0, 49);
    });
    let sums = sums.means("N 49, ten replaced");
    if is_single() {
        return;
    }
    // 59 were there at one time or another.
    assert!((0.98..1.20).contains(&sums.ratio), "{}", sums.ratio);
    assert!(sums.error() < 0.25, "{}", sums.error());
    assert_eq!(sums.missed, 0);
}

/// Degrees from 6 to 60 in one overlay: without the stay that shrinks with the degree, nodes would
/// be drawn in proportion to it.
#[test]
fn walks_end_at_all_nodes_alike_whatever_their_degrees() {
    let config = Config::default()
        .with_length(40)
        .with_hop_limit(1_000)
        .with_hits(255)
        .with_at_once(1)
        .with_count_known(false);
    let nodes = 64;
    // Node k learns of each other node with a probability that grows with both.
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut edges = BTreeSet::new();
    for a in 0..nodes {
        for b in 0..a {
            let weight = (a + 8) * (b + 8);
            if rng.below(72 * 36) < weight as u64 {
                edges.extend([(a, b), (b, a)]);
            }
        }
    }
    let mut network = mesh(1, nodes, &config, Link::default(), |a, b| {
        edges.contains(&(a, b))
    });
    let degrees: Vec<_> = network.machines().map(|(_, node)| node.degree()).collect();
    let (least, most) = (degrees.iter().min().unwrap(), degrees.iter().max().unwrap());
    println!("degrees from {least} to {most}");
    assert!(*least > 0 && *most > 6 * least);
    for nth in 0..60 {
        // A usual node asks.
        run(&mut network, 24 + nth % 16);
    }
    let ended: Vec<_> = network
        .machines()
        .map(|(_, node)| node.counters().ended)
        .collect();
    let total: u64 = ended.iter().sum();
    let expected = total as f64 / nodes as f64;
    let deviation = |count: &u64| (*count as f64 - expected) * (*count as f64 - expected);
    let chi: f64 = ended.iter().map(deviation).sum::<f64>() / expected;
    println!("{total} walks, chi-square {chi:.1} with 63 degrees of freedom");
    assert!(total > 15_000);
    // 63 expected, with a standard deviation of 11.
    assert!(chi < 63.0 + 4.0 * 11.3, "{chi}: {ended:?}");
}

/// A mesh of 256 with twelve random neighbours each, and edges both ways.
#[test]
fn sparse_overlays_want_longer_walks() {
    let lists = |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut edges = BTreeSet::new();
        for a in 0..256 {
            for _ in 0..6 {
                let b = rng.below(256) as usize;
                edges.extend([(a, b), (b, a)]);
            }
        }
        edges
    };
    let ratio = |length| {
        let config = Config::default()
            .with_length(length)
            .with_hop_limit(30 * length);
        let mut sums = Sums::default();
        histories(0..100, |seed| {
            let edges = lists(seed);
            let mut network = mesh(seed, 256, &config, Link::default(), |a, b| {
                edges.contains(&(a, b))
            });
            let node = (0..256)
                .find(|&node| network.machine(node).unwrap().degree() == 12)
                .unwrap();
            sums.add(&mut network, node, 256);
        });
        sums.means(&format!("N 256, 12 neighbours, length {length}"))
    };
    let (short, long) = (ratio(4), ratio(20));
    if is_single() {
        return;
    }
    assert!(short.ratio < 0.93, "{}", short.ratio);
    assert!((0.96..1.06).contains(&long.ratio), "{}", long.ratio);
    assert_eq!(long.missed, 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let digest = |seed| {
        let mut network = missing(seed, 49, &Config::default(), lossy(), A_TENTH);
        network.digest_trace();
        let event = run(&mut network, 3);
        (event, network.trace_digest().unwrap())
    };
    histories(0..3, |seed| {
        assert_eq!(digest(seed), digest(seed));
        assert_ne!(digest(seed).1, digest(seed + 1).1);
    });
}

#[test]
fn a_node_that_is_cut_off_gives_up() {
    let mut network = missing(1, 49, &Config::default(), Link::default(), A_TENTH);
    network.command(0, Command::Estimate).unwrap();
    network.run_for(Span::millis(40));
    network.partition(&[[0]]).unwrap();
    network.run_for(Span::secs(7));
    assert!(network.machine(0).unwrap().is_busy());
    // Eight walks at once, restarted every second: 64 restarts and the next one are 9 s.
    network.run_for(Span::secs(4));
    let notified: Vec<_> = network.drain_events().map(|(_, _, event)| event).collect();
    let [Event::Failed(Failure::Silence { samples })] = notified[..] else {
        panic!("{notified:?}");
    };
    assert!((1..64).contains(&samples), "{samples}");
    assert_eq!(network.timers(0).count(), 0);
    // It works as before when it is back.
    network.heal();
    assert!(matches!(run(&mut network, 0), Event::Estimated { .. }));
}
