use selvedge_core::{Ratio, Span};
use selvedge_sim::network::{Link, Topology};

use crate::network::machines::{Ask, assert_balanced, quiet, talking};

#[test]
fn two_thousand_nodes_take_hundreds_of_thousands_of_steps() {
    // 0.22 nodes a square metre, the papers' density: 2,048 in 96.5 m by 96.5 m.
    let topology = Topology::random_geometric(2_048, 96_500, 4_000, 1).unwrap();
    let link = Link {
        loss: Ratio::new(1, 1_000),
        ..Link::default()
    };
    let mut network = talking(1, topology, link, Span::millis(100));
    network.keep_events(false);
    let steps = network.run_for(Span::secs(6));
    assert!(steps >= 200_000, "{steps}");
    assert!(network.counters().delivered > 100_000);
    assert_balanced(&network);
}

#[test]
fn queues_hold_what_is_on_its_way_and_one_alarm_a_node() {
    let mut network = quiet(1, Topology::full_mesh(8).unwrap(), Link::default());
    // Every start moves the timer: nothing of the old one may stay behind.
    for round in 0..5_000 {
        network.command(round % 8, Ask::Start).unwrap();
        network
            .with(round % 8, |_, cx| {
                cx.arm((round % 200) as u8, Span::millis(500));
                Ok::<_, ()>(())
            })
            .unwrap();
        assert!(
            network.pending() <= 8,
            "round {round}: {}",
            network.pending()
        );
        network.run_for(Span::micros(50));
    }
    for node in 0..8 {
        network.crash(node).unwrap();
    }
    assert_eq!(network.pending(), 0);
}
