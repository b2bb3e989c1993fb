//! Many routines that are committed behind a long one, and their stored form.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use home::{Home, at, if_it_is, long, set};
use selvedge_core::{Choose, Driver, NodeId, Span};
use selvedge_safehome::{
    Command, Config, Damage, Difference, Event, Flaw, Hub, Placed, Reject, Routine, RoutineId,
    Saved, Step,
};
use serde_json::Value;

/// More than may be unfinished.
const MANY: u64 = 4_200;

/// The first routine changes device 0 and then keeps device 1 for an hour.
fn held(config: Config, devices: usize) -> Home {
    let mut home = Home::new(config, devices);
    home.submit(vec![set(0, 1), long(1, 1, Span::secs(3_600))]);
    home.pass(at(1_000));
    home
}

/// The states at the end of the reported order.
fn serial(home: &Home, routines: &BTreeMap<RoutineId, Vec<Step<u8>>>) -> Vec<u8> {
    let mut states = vec![0; home.states.len()];
    for placed in home.order() {
        match placed {
            Placed::Routine(id) => {
                for step in &routines[&id] {
                    let is_met = |it: &selvedge_safehome::Clause<u8>| {
                        it.holds(&|device| states.get(device.0 as usize)) == Some(true)
                    };
                    if step.condition.as_ref().is_none_or(is_met) {
                        states[step.device.0 as usize] = step.value;
                    }
                }
            }
            Placed::Set { device, state } => states[device.0 as usize] = state.unwrap(),
            Placed::Failed(_) | Placed::Restarted(_) => {}
        }
    }
    states
}

#[test]
fn committed_routines_behind_a_long_one_do_not_fill_the_hub() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut home = held(Config::default(), 5);
    let mut routines = BTreeMap::new();
    let first = vec![set(0, 1), long(1, 1, Span::secs(3_600))];
    routines.insert(RoutineId(1), first);
    for nth in 0..MANY {
        // On two devices of four, so that most come behind the first one by way of others.
        let [one, two] = [rng.below(4), rng.below(4)].map(|it| if it == 1 { 4 } else { it });
        let mut steps = vec![set(one, rng.below(4) as u8), set(two, rng.below(4) as u8)];
        if rng.below(4) == 0 {
            // A condition about device 0 would wait for the first one.
            steps[1] = if_it_is(steps[1].clone(), 2, rng.below(4) as u8);
        }
        routines.insert(home.submit(steps.clone()), steps);
        home.wait(Span::millis(rng.below(1_000)));
        match nth % 100 {
            10 => home.by_hand(rng.below(5) as usize, 9),
            50 | 51 => {
                home.wait(Span::secs(1));
                home.flip(3);
            }
            _ => {}
        }
    }
    home.wait(Span::secs(10));
    assert_eq!(home.hub.machine().unfinished().count(), 1);
    let notified = home.order().len() as u64;
    assert!(notified < MANY / 10, "{notified} have their place already");
    home.rest();
    assert_eq!(home.order().first(), Some(&Placed::Routine(RoutineId(1))));
    let count = |is_it: fn(&Event<u8>) -> bool| {
        let events = home.events.iter();
        events.filter(|it| is_it(&it.1)).count() as u64
    };
    let committed = count(|it| matches!(it, Event::Committed(_)));
    let placed = count(|it| matches!(it, Event::Ordered(Placed::Routine(_))));
    assert_eq!(placed, committed);
    // A few meet a device that is down.
    assert!(committed > MANY - MANY / 20, "{committed} are committed");
    let happened = home.order().len() as u64 - placed;
    assert!(happened > 0, "no hand and no failure has its place");
    assert_eq!(serial(&home, &routines), home.states);
}

/// Through postcard, as a host would, which counts.
fn stored(saved: Saved<u8>, difference: &Difference<u8>) -> (Saved<u8>, usize) {
    let bytes = postcard::to_allocvec(difference).unwrap();
    let back: Difference<u8> = postcard::from_bytes(&bytes).unwrap();
    (saved.apply(back).unwrap(), bytes.len())
}

/// The stored difference of a step does not grow with the routines that were committed before it.
#[test]
fn a_difference_is_short_however_many_are_committed() {
    let mut home = held(Config::default(), 3);
    let mut last = home.hub.machine().save();
    let mut base = last.clone();
    let (mut longest, mut all, mut steps) = (0, 0, 0);
    for nth in 0..MANY {
        home.submit(vec![set(0, (nth % 4) as u8), set(2, (nth % 3) as u8)]);
        let until = home.now + Span::millis(200);
        loop {
            let difference = home.hub.machine().difference(&mut last);
            let length;
            (base, length) = stored(base, &difference);
            longest = longest.max(length);
            (all, steps) = (all + length, steps + 1);
            let Some(next) = home.next().filter(|it| *it <= until) else {
                break;
            };
            home.pass(next);
        }
        home.pass(until);
    }
    assert_eq!(base, last);
    let whole = postcard::to_allocvec(&base).unwrap().len();
    println!(
        "{MANY} committed: {whole} bytes; a step of {steps}: {} bytes, {longest} at most",
        all / steps
    );
    assert!(longest < 512, "{longest} bytes");
    let hub = Hub::restore(Config::default(), base).unwrap();
    assert_eq!(hub.save(), home.hub.machine().save());
    home.hub = Driver::new(hub);
    home.notify(Command::Resume).unwrap();
    home.gives_up(1);
    home.rest();
    assert_eq!(home.order().len() as u64, MANY + 1);
}

#[test]
fn a_difference_out_of_turn_is_refused() {
    let mut home = held(Config::default(), 3);
    let base = home.hub.machine().save();
    let mut last = base.clone();
    let mut differences = Vec::new();
    for value in 2..5 {
        home.submit(vec![set(0, value)]);
        home.wait(Span::secs(1));
        differences.push(home.hub.machine().difference(&mut last));
    }
    let taken = |saved: &Saved<u8>, nth: usize| saved.clone().apply(differences[nth].clone());
    let number = |saved: &Saved<u8>| serde_json::to_value(saved).unwrap()["number"].as_u64();
    let after = taken(&base, 0).unwrap();
    let missing = Damage::Gap {
        expected: number(&base).unwrap(),
        found: number(&after).unwrap(),
    };
    assert_eq!(taken(&base, 1), Err(missing));
    // It is in there already.
    assert_eq!(taken(&after, 0).as_ref(), Ok(&after));
    let after = taken(&after, 1).unwrap();
    assert_eq!(taken(&after, 2), Ok(last));
    // A difference of another state.
    let strange = Hub::<u8>::new(Config::default()).unwrap().save();
    let changed = |change: fn(&mut Value)| {
        let mut it = serde_json::to_value(&differences[0]).unwrap();
        change(&mut it);
        serde_json::from_value::<Difference<u8>>(it).unwrap()
    };
    let ended = changed(|it| it["gone_devices"] = vec![7].into());
    assert_eq!(base.clone().apply(ended), Err(Damage::OtherBase));
    let ended = changed(|it| it["gone_runs"] = vec![7].into());
    assert_eq!(base.clone().apply(ended), Err(Damage::OtherBase));
    let mut strange = serde_json::to_value(strange).unwrap();
    strange["number"] = number(&base).into();
    let strange: Saved<u8> = serde_json::from_value(strange).unwrap();
    assert_eq!(taken(&strange, 0), Err(Damage::OtherBase));
    let back = changed(|it| it["number"] = 0.into());
    assert_eq!(base.clone().apply(back), Err(Damage::OtherBase));
    let beyond: [fn(&mut Value); 2] = [
        |it| it["devices"][0][1]["lineage"]["at"] = u64::MAX.into(),
        |it| it["devices"][0][1]["lineage"]["ended"] = u64::MAX.into(),
    ];
    for change in beyond {
        let taken = base.clone().apply(changed(change));
        assert_eq!(taken, Err(Damage::OtherBase));
    }
    let found = 2;
    let older = changed(|it| it["version"] = 2.into());
    assert_eq!(base.apply(older), Err(Damage::DifferenceVersion { found }));
}

/// Committed routines that can be one count as one, however many are unfinished.
#[test]
fn committed_routines_that_can_be_one_take_one_place() {
    let limit = 64;
    let config = Config::default().with_routine_limit(limit);
    let mut home = held(config, 70);
    for nth in 2..41 {
        home.submit(vec![long(nth, 1, Span::secs(3_600))]);
    }
    for nth in 0..100 {
        home.submit(vec![set(0, nth)]);
        home.wait(Span::secs(1));
    }
    assert_eq!(home.hub.machine().unfinished().count(), 40);
    // All of the hundred have the first one before them.
    for nth in 41..64 {
        home.submit(vec![long(nth, 1, Span::secs(3_600))]);
    }
    let before = home.hub.machine().clone();
    let steps = vec![set(65, 1)];
    let another = Command::Submit(Routine { steps });
    let full = Err(Reject::TooManyRoutines { limit });
    assert_eq!(home.notify(another.clone()), full);
    assert_eq!(*home.hub.machine(), before, "nothing changed");
    home.notify(Command::Cancel(RoutineId(1))).unwrap();
    home.rest();
    assert_eq!(home.notify(another), Ok(()));
    assert_eq!(
        home.order().len(),
        162,
        "all but the one that was cancelled"
    );
}

/// They count as one in a stored state as well, also before they are joined.
#[test]
fn a_stored_state_counts_those_that_can_be_one_as_one() {
    let mut home = held(Config::default(), 70);
    for nth in 2..41 {
        home.submit(vec![long(nth, 1, Span::secs(3_600))]);
    }
    for value in 0..30 {
        home.submit(vec![set(0, value)]);
        home.wait(Span::secs(1));
    }
    let saved = home.hub.machine().save();
    let stored = serde_json::to_value(&saved).unwrap();
    let stored = stored["runs"].as_array().unwrap().len();
    assert_eq!(stored, 70, "none are joined yet");
    let with = |routine_limit| Config::default().with_routine_limit(routine_limit);
    let full = Hub::restore(with(70), saved.clone()).unwrap();
    assert_eq!(full.save(), saved, "all have room");
    let (found, limit) = (41, 40);
    let refused = Hub::restore(with(limit), saved.clone()).err();
    let expected = Damage::TooManyRoutines { found, limit };
    assert_eq!(refused, Some(expected));
    // There are too many that are unfinished alone.
    let (found, limit) = (70, 39);
    let refused = Hub::restore(with(limit), saved.clone()).err();
    let expected = Damage::TooManyRoutines { found, limit };
    assert_eq!(refused, Some(expected));
    let joined = Hub::restore(with(41), saved.clone()).unwrap();
    joined.check().unwrap();
    // A difference of the old state still applies to it.
    let mut last = saved.clone();
    let difference = joined.difference(&mut last);
    assert_eq!(saved.apply(difference), Ok(joined.save()));
    home.hub = Driver::new(joined);
    home.notify(Command::Resume).unwrap();
    home.rest();
    let order = home.order();
    let routines = order.iter().filter_map(|it| match it {
        Placed::Routine(id) => Some(id.0),
        _ => None,
    });
    let joined: Vec<u64> = routines.filter(|it| *it > 40).collect();
    assert_eq!(joined, (41..=70).collect::<Vec<_>>());
    assert_eq!((order.len(), home.states[0]), (70, 29));
}

/// The number of entries that wait for their place is bounded as well.
#[test]
fn no_more_wait_for_their_places_than_the_settings_allow() {
    let config = Config::default().with_order_limit(3);
    let mut home = held(config, 3);
    for value in 2..5 {
        home.submit(vec![set(0, value)]);
        home.wait(Span::secs(1));
    }
    let steps = vec![set(2, 1)];
    let another = Command::Submit(Routine { steps });
    let limit = 3;
    let full = Err(Reject::TooManyOrdered { limit });
    assert_eq!(home.notify(another.clone()), full);
    home.notify(Command::Cancel(RoutineId(1))).unwrap();
    home.rest();
    assert_eq!(home.notify(another), Ok(()));
}

/// Checks that stored lists of joined routines are validated.
#[test]
fn a_stored_order_is_sound() {
    let mut home = held(Config::default(), 3);
    for value in 2..5 {
        home.submit(vec![set(0, value)]);
        home.wait(Span::secs(1));
    }
    let saved = serde_json::to_value(home.hub.machine().save()).unwrap();
    assert_eq!(
        saved["runs"].as_array().unwrap().len(),
        2,
        "the three are one"
    );
    let refused = |order: Value| {
        let mut saved = saved.clone();
        saved["runs"][1][1]["order"] = order;
        let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
        Hub::restore(Config::default(), saved).err()
    };
    let routine = RoutineId(2);
    assert_eq!(
        saved["runs"][1][0], routine.0,
        "it has the number of the first"
    );
    let placed = |it: &[Placed<u8>]| serde_json::to_value(it).unwrap();
    let own = Placed::Routine(routine);
    let other = |id| Placed::Routine(RoutineId(id));
    assert_eq!(refused(placed(&[own.clone(), other(3)])), None);
    let joined = |routine| {
        let flaw = Flaw::Joined;
        Some(Damage::Routine { routine, flaw })
    };
    let device = NodeId(9);
    let state = Some(1);
    for wrong in [
        vec![other(3)],
        vec![own.clone(), other(0)],
        vec![own.clone(), other(99)],
        vec![own.clone(), own.clone()],
        vec![own.clone(), Placed::Failed(device)],
        vec![own.clone(), Placed::Set { device, state }],
    ] {
        assert_eq!(refused(placed(&wrong)), joined(routine), "{wrong:?}");
    }
    // An unfinished routine does not stand for others.
    assert_eq!(
        refused(placed(&[own.clone(), other(1)])),
        joined(RoutineId(1))
    );
}
