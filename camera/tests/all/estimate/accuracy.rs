//! The accuracy of estimates.

use selvedge_camera::estimate::Config;
use selvedge_core::{Ratio, Span};
use selvedge_sim::histories;
use selvedge_sim::network::Link;

use super::{A_TENTH, NOBODY, Sums, is_single, lossy, missing, over};

#[test]
fn complete_lists_are_counted_exactly_and_bounded_closely() {
    for (nodes, seeds) in [(49, 0..100), (256, 0..20)] {
        let sums = over(
            &format!("N {nodes}, complete lists"),
            seeds,
            nodes,
            &Config::default(),
            Link::default(),
            NOBODY,
        );
        // All are known, so every sample is a hit.
        assert_eq!((sums.error(), sums.samples), (0.0, 64.0));
        // 1,000^(1 / 64) = 1.114, one skew more and whole numbers.
        assert!((1.11..1.16).contains(&sums.max_lives), "{}", sums.max_lives);
        // 64 answers of walks of 8 hops, and the steps of the last 8 walks.
        assert!((560.0..640.0).contains(&sums.messages), "{}", sums.messages);
    }
}

#[test]
fn lists_that_miss_a_tenth_are_filled_up() {
    for (nodes, seeds) in [(49, 0..300), (256, 0..60)] {
        let sums = over(
            &format!("N {nodes}, a tenth missing"),
            seeds,
            nodes,
            &Config::default(),
            Link::default(),
            A_TENTH,
        );
        if is_single() {
            return;
        }
        assert!((0.98..1.02).contains(&sums.ratio), "{}", sums.ratio);
        assert!(sums.error() < 0.06, "{}", sums.error());
        assert!(sums.max_lives < 1.3, "{}", sums.max_lives);
        assert_eq!(sums.missed, 0);
    }
}

#[test]
fn loss_costs_messages_and_time_and_nothing_else() {
    for (nodes, seeds) in [(49, 0..300), (256, 0..60)] {
        let sums = over(
            &format!("N {nodes}, a tenth missing, 5 % loss"),
            seeds,
            nodes,
            &Config::default(),
            lossy(),
            A_TENTH,
        );
        if is_single() {
            return;
        }
        assert!((0.98..1.02).contains(&sums.ratio), "{}", sums.ratio);
        assert!(sums.error() < 0.06, "{}", sums.error());
        assert_eq!(sums.missed, 0);
        assert!(
            (640.0..1_000.0).contains(&sums.messages),
            "{}",
            sums.messages
        );
    }
}

#[test]
fn second_copies_are_not_counted_twice() {
    let link = Link {
        duplicate: Ratio::new(1, 10),
        ..Link::default()
    };
    let config = Config::default();
    let mut stale = 0;
    let mut sums = Sums::default();
    histories(0..300, |seed| {
        let mut network = missing(seed, 49, &config, link, A_TENTH);
        sums.add(&mut network, 0, 49);
        network.run_for(Span::secs(1));
        let counters = network.machine(0).unwrap().counters();
        stale += counters.stale;
        assert!(network.events().is_empty(), "it is over");
    });
    let sums = sums.means("N 49, a tenth missing, 10 % doubled");
    println!("{stale} stale answers and walks");
    if is_single() {
        return;
    }
    assert!(stale > 10_000, "nothing was put to the test: {stale}");
    assert!((0.98..1.02).contains(&sums.ratio), "{}", sums.ratio);
    assert!(sums.error() < 0.06, "{}", sums.error());
    assert_eq!(sums.missed, 0);
}

/// The paper's method to the letter: nothing is known in the beginning.
#[test]
fn an_empty_collection_takes_more_samples_for_a_looser_bound() {
    let config = Config::default().with_count_known(false);
    for (nodes, seeds, samples) in [(49, 0..300, 107.0), (256, 0..60, 205.0)] {
        let sums = over(
            &format!("N {nodes}, a tenth missing, nothing known"),
            seeds,
            nodes,
            &config,
            Link::default(),
            A_TENTH,
        );
        if is_single() {
            return;
        }
        assert!((0.97..1.05).contains(&sums.ratio), "{}", sums.ratio);
        // At most 1 / sqrt(64).
        assert!((0.05..0.135).contains(&sums.error()), "{}", sums.error());
        assert!((sums.samples - samples).abs() < 8.0, "{}", sums.samples);
        assert!((1.25..1.6).contains(&sums.max_lives), "{}", sums.max_lives);
    }
}

/// At 1 in 1,000 hardly any run misses, even with wrong code; at 1 in 10 a bound that is too low
/// or too high shows.
#[test]
fn the_bound_is_exceeded_as_seldom_as_stated() {
    let stated = |miss, count_known| {
        Config::default()
            .with_miss(miss)
            .with_count_known(count_known)
            .with_skew(Ratio::NEVER)
    };
    let often = Ratio::new(1, 10);
    for (what, config, lack, least) in [
        ("nothing known", stated(often, false), A_TENTH, 60),
        ("a tenth missing", stated(often, true), A_TENTH, 20),
        ("a half missing", stated(often, true), Ratio::new(1, 2), 40),
    ] {
        let what = format!("N 49, {what}, 5 % loss, miss 1 in 10");
        let sums = over(&what, 0..1_000, 49, &config, lossy(), lack);
        if is_single() {
            return;
        }
        // 100 are allowed in 1,000; two standard deviations of that are 19.
        assert!(sums.missed <= 119, "{what}: {}", sums.missed);
        assert!(sums.missed >= least, "{what}: {}", sums.missed);
    }
    let sums = over(
        "N 49, a tenth missing, 5 % loss, default",
        0..1_000,
        49,
        &Config::default(),
        lossy(),
        A_TENTH,
    );
    assert!(sums.missed <= 3, "{}", sums.missed);
}
