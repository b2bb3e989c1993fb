use core::num::NonZeroU64;

use selvedge_core::{Ratio, Span, Time};
use selvedge_sim::network::{Link, Multicasts, NetworkError, Topology};

use crate::network::machines::{Ask, assert_balanced, line, member, quiet, received};

const MANY: u64 = 20_000;

/// Node 0 sends `MANY` messages over `hops` hops.
fn sent_over(
    hops: usize,
    link: Link,
    seed: u64,
) -> selvedge_sim::network::Network<crate::network::machines::Chatter> {
    let mut network = quiet(seed, line(hops + 1), link);
    network.set_size(|_| 10);
    for number in 0..MANY {
        let number = (number % 600) as u32;
        network.command(0, Ask::Say(member(hops), number)).unwrap();
    }
    network.run_for(Span::secs(60));
    assert_eq!(network.in_flight(), 0);
    assert_balanced(&network);
    network
}

#[test]
fn each_hop_loses_its_share() {
    let link = Link {
        loss: Ratio::new(1, 10),
        ..Link::default()
    };
    // 0.9 and 0.9^3 of 20,000, give or take five standard deviations (42 and 63).
    for (hops, delivered) in [(1, 17_790..18_210), (3, 14_265..14_895)] {
        let network = sent_over(hops, link, 11);
        let counters = network.counters();
        assert!(
            delivered.contains(&counters.delivered),
            "seed 11: {counters:?}"
        );
        assert_eq!(counters.lost_on_hop, MANY - counters.delivered);
    }
}

#[test]
fn lost_messages_count_in_bytes_up_to_the_hop_that_lost_them() {
    let link = Link {
        loss: Ratio::ALWAYS,
        ..Link::default()
    };
    let counters = sent_over(3, link, 1).counters();
    assert_eq!((counters.bytes, counters.hop_bytes), (10 * MANY, 10 * MANY));
    let counters = sent_over(3, Link::default(), 1).counters();
    assert_eq!((counters.bytes, counters.hop_bytes), (10 * MANY, 30 * MANY));
}

#[test]
fn copies_set_out_as_often_as_asked() {
    let link = Link {
        duplicate: Ratio::new(1, 5),
        ..Link::default()
    };
    let counters = sent_over(2, link, 12).counters();
    // 4,000, give or take five standard deviations of 57.
    assert!(
        (3_715..4_285).contains(&counters.duplicated),
        "seed 12: {counters:?}"
    );
    assert_eq!(counters.delivered, MANY + counters.duplicated);
    assert_eq!(counters.hop_bytes, 20 * (MANY + counters.duplicated));
    assert_eq!(counters.bytes, 10 * MANY);
}

#[test]
fn hops_delay_within_their_bounds_and_put_messages_out_of_order() {
    let link = Link {
        min_delay: Span(100),
        max_delay: Span(104),
        ..Link::default()
    };
    let mut network = sent_over(2, link, 13);
    let mut seen = [0_u64; 9];
    let mut numbers = Vec::new();
    for (at, _, event) in network.drain_events() {
        seen[usize::try_from(at.0 - 200).unwrap()] += 1;
        if let crate::network::machines::Notified::Received(_, number) = event {
            numbers.push(number);
        }
    }
    // Two draws from 0..=4 sum to 0..=8 in these parts of 25.
    for (micros, parts) in [1, 2, 3, 4, 5, 4, 3, 2, 1].into_iter().enumerate() {
        let expected = MANY * parts / 25;
        assert!(seen[micros].abs_diff(expected) < 350, "seed 13: {seen:?}");
    }
    let in_order: Vec<u32> = (0..MANY).map(|number| (number % 600) as u32).collect();
    assert_ne!(numbers, in_order);
}

#[test]
fn equal_delays_keep_the_order() {
    let link = Link {
        min_delay: Span(100),
        max_delay: Span(100),
        ..Link::default()
    };
    let numbers: Vec<u32> = received(&mut sent_over(2, link, 1))
        .iter()
        .map(|&(_, number)| number)
        .collect();
    assert!(
        numbers
            .iter()
            .copied()
            .eq((0..MANY).map(|number| (number % 600) as u32))
    );
}

#[test]
fn slow_messages_take_longer() {
    let link = Link {
        min_delay: Span(100),
        max_delay: Span(100),
        slow: Ratio::new(1, 4),
        slow_by: Span::secs(1),
        ..Link::default()
    };
    let mut network = sent_over(1, link, 14);
    let slow = network
        .drain_events()
        .filter(|(at, ..)| *at == Time(1_000_100))
        .count();
    // 5,000, give or take five standard deviations of 61.
    assert!((4_695..5_305).contains(&slow), "seed 14: {slow}");
}

#[test]
fn bandwidth_is_shared_by_neighbours() {
    let link = Link {
        min_delay: Span::ZERO,
        max_delay: Span::ZERO,
        bandwidth: NonZeroU64::new(1_000_000),
        ..Link::default()
    };
    let mut network = quiet(1, line(4), link);
    network.set_size(|_| 125);
    // 1,000 bits at 1 Mbit/s: 1 ms for the sender with one neighbour, 2 ms for each relay with two.
    network.command(0, Ask::Say(member(3), 1)).unwrap();
    network.command(0, Ask::Say(member(1), 2)).unwrap();
    network.command(1, Ask::Shout(3)).unwrap();
    network.run_for(Span::secs(1));
    let arrivals: Vec<(u64, usize)> = network
        .events()
        .iter()
        .map(|(at, node, _)| (at.0, *node))
        .collect();
    assert_eq!(arrivals, [(1_000, 1), (2_000, 0), (2_000, 2), (5_000, 3)]);
}

#[test]
fn a_multicast_reaches_the_neighbours_and_is_one_transmission() {
    let mut network = quiet(1, line(4), Link::default());
    network.set_size(|_| 7);
    network.command(1, Ask::Shout(9)).unwrap();
    network.run_for(Span::secs(1));
    let mut got = received(&mut network);
    got.sort_unstable();
    assert_eq!(got, [(0, 9), (2, 9)]);
    let counters = network.counters();
    assert_eq!(
        (counters.multicasts, counters.sent, counters.delivered),
        (1, 2, 2)
    );
    assert_eq!((counters.bytes, counters.hop_bytes), (7, 7));
    let node = network.node_counters(1);
    assert_eq!((node.sent, node.bytes_sent), (1, 7));
    let node = network.node_counters(2);
    assert_eq!((node.received, node.bytes_received), (1, 7));
}

#[test]
fn links_change_in_mid_run() {
    let mut network = quiet(1, Topology::full_mesh(2).unwrap(), Link::default());
    let deaf = Link {
        loss: Ratio::ALWAYS,
        ..Link::default()
    };
    network.set_link(deaf).unwrap();
    network.command(0, Ask::Say(member(1), 1)).unwrap();
    network.set_link(Link::default()).unwrap();
    network.command(0, Ask::Say(member(1), 2)).unwrap();
    network.run_for(Span::secs(1));
    assert_eq!(received(&mut network), [(1, 2)]);
    let (min, max) = (Span(2), Span(1));
    let wrong = Link {
        min_delay: min,
        max_delay: max,
        ..Link::default()
    };
    assert_eq!(
        network.set_link(wrong),
        Err(NetworkError::Delays { min, max })
    );
}

#[test]
fn the_longest_delay_there_is_does_not_overflow() {
    let link = Link {
        max_delay: Span(u64::MAX),
        bandwidth: NonZeroU64::new(1),
        ..Link::default()
    };
    let mut network = quiet(1, line(3), link);
    network.set_size(|_| usize::MAX);
    network.command(0, Ask::Say(member(2), 1)).unwrap();
    network.run_until(Time(u64::MAX));
    assert_eq!(received(&mut network), [(2, 1)]);
}

#[test]
fn a_node_loses_what_it_sends_and_is_sent_and_passes_on_the_rest() {
    let mut network = quiet(13, line(3), Link::default());
    network.set_size(|_| 10);
    network.set_node_loss(1, Ratio::ALWAYS).unwrap();
    for (from, to) in [(0, 2), (0, 1), (1, 2), (1, 1)] {
        network.command(from, Ask::Say(member(to), 1)).unwrap();
    }
    network.run_for(Span::secs(1));
    assert_balanced(&network);
    let counters = network.counters();
    assert_eq!((counters.delivered, counters.lost_on_hop), (2, 2));
    // Both ways of two hops, and two of one hop.
    assert_eq!(counters.hop_bytes, 10 * (2 + 1 + 1));
    let ended = network.set_node_loss(3, Ratio::NEVER);
    assert_eq!(ended, Err(NetworkError::NoSuchNode { node: 3, nodes: 3 }));
}

#[test]
fn both_ends_lose_their_share() {
    let mut network = quiet(14, line(4), Link::default());
    network.set_size(|_| 10);
    network.set_node_loss(0, Ratio::new(1, 10)).unwrap();
    network.set_node_loss(3, Ratio::new(1, 5)).unwrap();
    for _ in 0..MANY {
        network.command(0, Ask::Say(member(3), 1)).unwrap();
    }
    network.run_for(Span::secs(60));
    let counters = network.counters();
    // 0.9 x 0.8 of 20,000, give or take five standard deviations of 63.
    assert!(
        (14_085..14_715).contains(&counters.delivered),
        "seed 14: {counters:?}"
    );
    // The sender loses a copy on the first hop, the receiver on the last.
    let at_first = (30 * MANY - counters.hop_bytes) / 20;
    assert!((1_788..2_212).contains(&at_first), "seed 14: {counters:?}");
}

#[test]
fn a_reliable_multicast_reaches_everyone_who_has_a_path() {
    let link = Link {
        loss: Ratio::ALWAYS,
        ..Link::default()
    };
    let mut network = quiet(15, line(4), link);
    network.set_size(|_| 10);
    network.set_multicasts(Multicasts::Reliable);
    network.set_node_loss(0, Ratio::ALWAYS).unwrap();
    network.partition(&[[3]]).unwrap();
    network.command(0, Ask::Shout(1)).unwrap();
    network.run_for(Span::secs(1));
    assert_balanced(&network);
    let counters = network.counters();
    assert_eq!((counters.multicasts, counters.delivered), (1, 2));
    assert_eq!((counters.bytes, counters.hop_bytes), (10, 10 * (1 + 2)));
}
