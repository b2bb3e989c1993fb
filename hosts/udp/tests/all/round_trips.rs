//! Measured round trips in the published list.

use selvedge_core::Span;
use selvedge_membership::Config;
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::transport::Udp;

use crate::bench::{self, Node, until};

fn config() -> Config {
    let unit = Some(Config::ROUND_TRIP_UNIT);
    bench::config()
        .with_round_trip_unit(unit)
        .with_suppress_probes(false)
}

fn round_trip(node: &Node, of: u64) -> Option<Span> {
    let members = node.members();
    let entry = members.iter().find(|it| it.member.id.0 == of);
    entry.and_then(|it| it.round_trip)
}

/// A new distance is published though no event comes with it.
#[tokio::test]
async fn the_list_has_the_round_trips_and_their_changes() {
    let slow = Faults::none().with_delay(Span::millis(60), Span::millis(60));
    let control = FaultControl::new(slow);
    let transport = Faulty::new(Udp::new(), &control, 1);
    let one = bench::setup(1, &[]).membership(config());
    let one = Node::start(one.transport(transport)).await;
    let two = bench::setup(2, &[one.address()]).membership(config());
    let two = Node::start(two).await;
    until(|| round_trip(&one, 2).is_some() && round_trip(&two, 1).is_some()).await;
    assert!(round_trip(&one, 2) >= Some(Span::millis(60)));
    assert_eq!(round_trip(&one, 1), None, "itself");
    control.change(|faults| *faults = Faults::none());
    until(|| round_trip(&one, 2) < Some(Span::millis(45))).await;
    let uniform = bench::setup(3, &[one.address()]);
    let uniform = Node::start(uniform).await;
    until(|| round_trip(&one, 3).is_some()).await;
    assert_eq!(round_trip(&uniform, 1), None);
}
