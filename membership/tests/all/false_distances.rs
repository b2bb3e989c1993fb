//! A liar among the members that pretends to be near, where distances are measured.

use crate::lone::{Lone, pings, quiet, says_that_it_lives};

use selvedge_core::{Member, Span};
use selvedge_membership::{Body, Config, Message, Selection};

/// A node with six honest members at 80 ms and a liar that acknowledges pings at once. Returns the
/// numbers of pings of all, the liar's first, and the longest time between two of one honest member
/// in periods.
fn beside_a_liar(config: Config, periods: u64) -> (Vec<u64>, u64) {
    const LIAR: u64 = 2;
    let mut lone = Lone::new(config, &[]);
    for id in LIAR..9 {
        lone.receive(Member::new(id, 0), says_that_it_lives(id));
    }
    let (mut pinged, mut last, mut longest) = (vec![0; 7], [0; 7], 0);
    for period in 1..=periods {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        let target = pings(&lone.effects)[0];
        let place = (target.id.0 - LIAR) as usize;
        let is_liar = target.id.0 == LIAR;
        let later = Span::millis(if is_liar { 0 } else { 80 });
        let ack = Message::bare(Body::Ack { origin: None });
        lone.receive_at(now + later, target, ack);
        pinged[place] += 1;
        last[place] = period;
        let silent = last[1..].iter().map(|last| period - last).max();
        longest = longest.max(silent.unwrap());
    }
    (pinged, longest)
}

/// It pretends to be near, where nobody is.
#[test]
fn a_liar_draws_the_probes_by_weight_and_none_in_turn() {
    let every = 8;
    let config = quiet()
        .with_jitter(Span::ZERO)
        .with_active(None)
        .with_round_trip_unit(Some(Config::ROUND_TRIP_UNIT));
    let mix = config
        .clone()
        .with_selection(Selection::BoundedMix { every });
    let (pinged, longest) = beside_a_liar(mix, 20_000);
    println!("pings {pinged:?}, and {longest} periods between two");
    let of_liar = f64::from(u32::try_from(pinged[0]).unwrap()) / 20_000.0;
    assert!(of_liar > 0.85, "{of_liar} of all probes");
    assert!(longest <= 8 * u64::from(every), "{longest}");
    // It is the turns that keep the bound.
    let (_, longest) = beside_a_liar(config.with_selection(Selection::Plain), 20_000);
    assert!(longest > 8 * u64::from(every), "{longest}");
}

/// An acknowledgement is a measurement for the target of the open probe alone.
#[test]
fn acknowledgements_that_no_one_asked_for_measure_nothing() {
    let config = quiet()
        .with_jitter(Span::ZERO)
        .with_round_trip_unit(Some(Config::ROUND_TRIP_UNIT));
    let mut lone = Lone::new(config, &[]);
    let liar = Member::new(2, 0);
    for id in 2..9 {
        lone.receive(Member::new(id, 0), says_that_it_lives(id));
    }
    let mut probes = 0;
    while probes < 20 {
        lone.effects.clear();
        let now = lone.driver.deadline().unwrap();
        lone.silence(now);
        let target = pings(&lone.effects)[0];
        let ack = || Message::bare(Body::Ack { origin: None });
        let measured = |lone: &Lone| lone.driver.machine().member(liar.id).unwrap().round_trip;
        if target == liar {
            probes += 1;
            lone.receive_at(now + Span::millis(80), target, ack());
            assert_eq!(measured(&lone), Some(Span::millis(80)));
        } else {
            let before = measured(&lone);
            lone.receive_at(now + Span::millis(1), liar, ack());
            lone.receive_at(now + Span::millis(2), target, ack());
            assert_eq!(measured(&lone), before);
        }
        lone.receive_at(now + Span::millis(90), liar, ack());
    }
    let view = lone.driver.machine().member(liar.id).unwrap();
    assert_eq!(view.round_trip, Some(Span::millis(80)));
}
