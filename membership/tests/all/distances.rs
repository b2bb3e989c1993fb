//! Measured distances in a mesh of three sites, and their effect on traffic and detection.

use crate::sites::{FAR, Faults, NEAR, PERIOD, Sites, measured, three};

use selvedge_core::{Delta, Ratio, Span};
use selvedge_membership::Config;

/// The time in which nearly all distances of 15 nodes are measured.
const LEARNING: Span = Span::secs(300);

fn uniform() -> Config {
    measured().with_round_trip_unit(None)
}

/// Round trips with their jitter.
fn is_right(sites: &Sites, (node, other): (usize, usize)) -> bool {
    let is_far = sites.site[node] != sites.site[other];
    let least = if is_far { FAR * 2 } else { NEAR * 2 };
    let round_trip = sites.view(node, other).round_trip;
    round_trip.is_some_and(|it| it >= least && it <= Span(least.0 * 6 / 5))
}

#[test]
fn they_are_the_round_trips_and_far_members_are_seldom_drawn() {
    let mut sites = Sites::joined(1, &three(), &measured());
    sites.run(LEARNING);
    for pair in sites.pairs() {
        let found = sites.view(pair.0, pair.1).round_trip;
        assert!(is_right(&sites, pair), "{pair:?}: {found:?}");
    }
    for node in 0..15 {
        // Ten at 16 times the unit, and four at the unit.
        let share = sites.far_share(node);
        assert!(share < 0.001, "node {node}: {share}");
    }
    assert_eq!(sites.deltas, [], "far members are no suspects");
}

#[test]
fn without_a_unit_nothing_is_measured() {
    let mut sites = Sites::joined(1, &three(), &uniform());
    sites.run(LEARNING);
    for (node, other) in sites.pairs() {
        assert_eq!(sites.view(node, other).round_trip, None);
    }
    let counters = sites.nodes.iter().map(|node| node.machine().counters());
    assert_eq!(counters.map(|it| it.distances).sum::<u64>(), 0);
}

#[test]
fn few_probes_go_over_long_links() {
    let traffic = |config: &Config| {
        let mut sites = Sites::joined(2, &three(), config);
        sites.run(LEARNING);
        sites.count_anew();
        sites.run(PERIOD * 600);
        assert_eq!(sites.deltas, []);
        (sites.pings, sites.datagrams)
    };
    let (pings, datagrams) = traffic(&uniform());
    let (near_pings, near_datagrams) = traffic(&measured());
    println!("uniform: pings {pings:?}, datagrams {datagrams:?} inside sites and between them");
    println!("measured: pings {near_pings:?}, datagrams {near_datagrams:?}");
    assert!(near_pings[1] * 3 < pings[1]);
    assert!(near_datagrams[1] * 3 < datagrams[1]);
    assert!(near_pings[0] > pings[0]);
}

/// The bound of the mix, for 14 others and one probe of 8 in turn. Periods are longer by a tenth at
/// most.
#[test]
fn all_members_are_probed_within_the_bound() {
    let config = measured().with_suppress_probes(false);
    let bound = Span(PERIOD.0 * 11 / 10 * 15 * 8);
    let longest = |config: &Config| {
        let mut sites = Sites::joined(3, &three(), config);
        sites.run(LEARNING);
        sites.count_anew();
        sites.run(PERIOD * 1_000);
        sites.longest()
    };
    let found = longest(&config);
    assert!(found <= bound, "{found:?}");
    // It is the turns that make the difference.
    let plain = config
        .with_selection(selvedge_membership::Selection::Plain)
        .with_passive(None);
    let found = longest(&plain);
    assert!(found > bound, "{found:?}");
}

/// The times until the first node suspects a node that crashes, and until all others have it as
/// failed, in periods.
fn detection(seed: u64, site: &[usize], victim: usize, config: &Config) -> (u64, u64) {
    let mut sites = Sites::joined(seed, site, config);
    sites.run(LEARNING + Span(seed * 137_000));
    assert_eq!(sites.deltas, []);
    let crashed = sites.now;
    sites.crash(victim);
    let bound = site.len() as u64 * 8 + 12;
    sites.run(Span(PERIOD.0 * 11 / 10) * bound);
    let about = |delta: &Delta| delta.member().id.0 == victim as u64;
    assert!(sites.deltas.iter().all(|(_, _, delta)| about(delta)));
    let failures = sites
        .deltas
        .iter()
        .filter(|it| matches!(it.2, Delta::Failed(_)));
    let known: Vec<u64> = failures
        .map(|it| it.0.since(crashed).0 / PERIOD.0)
        .collect();
    assert_eq!(known.len(), site.len() - 1, "all others, seed {seed}");
    let first = sites.deltas.first().unwrap().0.since(crashed);
    (first.0 / PERIOD.0, known.into_iter().max().unwrap())
}

#[test]
fn a_failure_is_known_to_all_about_as_soon() {
    let mean = |site: &[usize], victim, config: &Config| {
        let found: Vec<_> = (0..20)
            .map(|seed| detection(seed, site, victim, config))
            .collect();
        let last = found.iter().map(|it| it.1).max().unwrap();
        let all: u64 = found.iter().map(|it| it.1).sum();
        println!(
            "victim {victim}: until all know {last} at most, {} in the mean",
            all / 20
        );
        (last, all / 20)
    };
    // A node that is alone in its site: few others probe it.
    let lone: Vec<_> = (0..15_usize).map(|node| node.div_ceil(7)).collect();
    assert_eq!(lone.iter().filter(|&&it| it == 0).count(), 1);
    for (site, victim, later) in [(three(), 12, 4), (lone, 0, 10)] {
        let (last, measured) = mean(&site, victim, &measured());
        let (_, uniform) = mean(&site, victim, &uniform());
        assert!(measured <= uniform + later, "{measured} and {uniform}");
        assert!(last <= 15 * 8 + 12);
    }
}

#[test]
fn a_member_that_moves_is_weighed_again() {
    let mut sites = Sites::joined(4, &three(), &measured());
    sites.run(LEARNING);
    sites.site[7] = 0;
    sites.run(LEARNING * 3);
    for other in (0..15).filter(|&other| other != 7) {
        for pair in [(7, other), (other, 7)] {
            let found = sites.view(pair.0, pair.1).round_trip;
            let is_far = sites.site[other] != 0;
            // A round trip rises in steps, one at each probe.
            let is_weighed = found.is_some_and(|it| (it > Span::millis(20)) == is_far);
            assert!(is_weighed, "{pair:?}: {found:?}");
        }
    }
    let share = sites.far_share(7);
    assert!(share < 0.005, "{share}");
}

/// Acknowledgements of earlier pings come in the periods of later ones, and copies as well.
#[test]
fn loss_and_late_answers_make_no_absurd_distances() {
    let mut sites = Sites::joined(5, &three(), &measured().with_hearsay_limit(0));
    sites.faults = Faults {
        loss: Ratio::new(5, 100),
        late_copy: Ratio::new(5, 100),
        late: Ratio::new(2, 100),
        cut: None,
    };
    let (mut seen, mut wrong) = (0, 0);
    for _ in 0..200 {
        sites.run(PERIOD * 10);
        for pair in sites.pairs() {
            let is_far = sites.site[pair.0] != sites.site[pair.1];
            let Some(found) = sites.view(pair.0, pair.1).round_trip else {
                continue;
            };
            seen += 1;
            let absurd = if is_far {
                found < Span::millis(60) || found > Span::millis(160)
            } else {
                found > Span::millis(20)
            };
            wrong += u32::from(absurd);
        }
    }
    println!("{wrong} of {seen} are off by more than a quarter");
    assert!(seen > 30_000 && wrong * 100 < seen, "{wrong} of {seen}");
}

#[test]
fn a_later_life_has_the_distance_of_the_one_before() {
    let mut sites = Sites::joined(6, &three(), &measured());
    sites.run(LEARNING);
    let before = sites.view(0, 12).round_trip;
    let share = sites.view(0, 12).share();
    sites.crash(12);
    sites.restart(12);
    // It has asked to be let in, and was not probed yet.
    sites.run(FAR * 2);
    let view = sites.view(0, 12);
    assert_eq!(view.member.incarnation.0, 8);
    assert!(view.round_trip.is_some());
    assert_eq!((view.round_trip, view.share()), (before, share));
}
