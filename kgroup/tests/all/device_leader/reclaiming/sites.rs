//! Sites that change meanwhile, limits, and holders that their routines do not know.

use super::*;

/// A late request of a routine that was forgotten before is known by its generation alone.
#[test]
fn a_cluster_that_begins_again_follows_no_site_before_the_one_by_which_it_began() {
    let mut anew = Anew::new(&[1]);
    let state = Devices::begun_again(Limits::new(), 1, GENERATION);
    assert_eq!(state.generation(), GENERATION);
    anew.bench = Bench::led(state, 11, Config::new());
    anew.plan.generation = GENERATION - 1;
    anew.asked();
    assert_eq!(anew.bench.state.ids().count(), 0, "an earlier site");
    anew.plan.generation = GENERATION;
    anew.asked();
    anew.rests(1, 5);
    anew.hold();
    assert!(anew.is_open());
    let late = Request::Lock {
        device: LAMP,
        claim: claim(9, 1),
        patience: Patience::Queues,
        generation: GENERATION - 1,
    };
    assert_eq!(anew.bench.ask(late), []);
    assert_eq!(anew.bench.state.holder(LAMP), None);
    anew.passes_to(claim(9, 2));
    // Founders begin alike with any sites.
    let first = |generation| Devices::begun_again(Limits::new(), 0, generation);
    assert_eq!(first(GENERATION), first(0));
}

/// It may not know that the routine names the device by now.
#[test]
fn a_leader_of_an_earlier_site_counts_no_answer_until_it_has_the_later_one() {
    let mut anew = Anew::new(&[1, 2]);
    anew.hold();
    anew.rests(2, 5);
    let later = anew.plan.clone();
    anew.plan = Plan {
        generation: GENERATION - 1,
        named: vec![2],
        ..later.clone()
    };
    assert_eq!(anew.asked(), [1]);
    let before = anew.bench.state.clone();
    for instance in 1..3 {
        let acquires = Progress::Acquires {
            claim: claim(1, instance),
        };
        assert_eq!(anew.answer(1, acquires), []);
    }
    anew.rests(1, 5);
    anew.answer(1, executes(claim(1, 5), 0));
    anew.answer_about(anew.since, 1, over(1, 5), true);
    assert_eq!(anew.bench.state, before);
    // With its own site alone it would open the device.
    anew.plan.routines = vec![2];
    anew.asked();
    assert!(!anew.is_open());
    anew.plan = later;
    assert_eq!(anew.asked(), [1]);
    anew.rests(1, 5);
    assert_eq!(anew.lock(claim(1, 5)), [notify(HERE, is_over(claim(1, 5)))]);
    anew.passes_to(claim(1, 6));
}

/// A run that executes holds it, or a host of the former beginning may still carry a command out.
#[test]
fn a_device_that_leaves_the_site_stays_until_it_has_opened() {
    for is_held in [true, false] {
        let mut anew = Anew::new(&[1]);
        anew.plan.devices = vec![DOOR];
        if is_held {
            anew.hold();
        } else {
            anew.rests(1, 5);
        }
        anew.asked();
        assert!(anew.bench.state.status(LAMP).is_some(), "it is closed");
        if is_held {
            anew.rests(1, 5);
            assert!(anew.is_open());
        } else {
            anew.hold();
        }
        anew.asked();
        assert_eq!(anew.bench.state.status(LAMP), None);
        // It comes back with a later site, and is closed again.
        anew.plan.devices = vec![LAMP, DOOR];
        anew.plan.generation += 1;
        anew.asked();
        assert!(!anew.is_open());
        anew.hold();
        assert_eq!(anew.asked(), [1]);
        anew.rests(1, 5);
        anew.passes_to(claim(1, 6));
    }
}

#[test]
fn routines_that_rest_take_no_room_and_those_that_ask_do() {
    let mut anew = Anew::limited(Limits::new().with_routines(2), &[1, 2, 3]);
    for routine in [1, 2, 3] {
        anew.rests(routine, 5);
    }
    anew.hold();
    // A later routine has room.
    for first in [claim(4, 1), claim(2, 6)] {
        anew.passes_to(first);
        anew.bench.ask(release(LAMP, first));
    }
    let one_too_many = claim(3, 6);
    let busy = Answer::Busy {
        device: LAMP,
        claim: one_too_many,
    };
    let refused = anew.lock(one_too_many);
    assert!(refused.contains(&notify(HERE, busy)), "{refused:?}");
    anew.passes_to(claim(2, 7));
}

/// The group of a routine that has begun again does not know the run by which it held the device.
#[test]
fn a_holder_whose_routine_names_the_device_no_more_is_asked_and_released() {
    let mut anew = Anew::new(&[1, 2]);
    anew.rests(1, 4);
    anew.rests(2, 4);
    anew.hold();
    let (one, two) = (claim(1, 5), claim(2, 5));
    anew.passes_to(one);
    anew.lock(two);
    assert!(anew.asked().is_empty());
    anew.plan.named = vec![2];
    assert_eq!(anew.asked(), [1]);
    // A run that goes on keeps it, and nothing else releases it.
    let held = anew.bench.state.clone();
    anew.answer(1, executes(one, 0));
    anew.answer(1, Progress::Acquires { claim: one });
    anew.answer(1, over(1, 4));
    anew.answer(1, over(2, 9));
    anew.rests(2, 9);
    anew.answer_about(anew.since - 1, 1, over(1, 5), false);
    assert_eq!(anew.bench.state, held);
    assert_eq!(anew.asked(), [1]);
    let passed = anew.answer(1, Progress::Over { claim: one });
    assert!(passed.contains(&notify(HERE, granted(two))), "{passed:?}");
    assert!(anew.asked().is_empty());
    // By now that one has no run either.
    anew.plan.named = vec![1];
    anew.rests(2, 5);
    anew.passes_to(claim(1, 6));
}

#[test]
fn a_device_is_asked_about_by_itself_when_it_enters() {
    let mut anew = Anew::new(&[1]);
    anew.plan.devices = vec![LAMP, DOOR];
    anew.asked();
    anew.bench.effects.clear();
    anew.call(|leader, state, site, out| {
        leader.ask_routines(state, (CLUSTER, site), Some(DOOR), out);
    });
    let request = Request::Progress {
        cluster: CLUSTER,
        device: DOOR,
        since: anew.since,
    };
    let group = GroupId(1);
    assert_eq!(anew.bench.effects, [Effect::Ask { group, request }]);
    anew.rests(1, 5);
    anew.hold();
    assert!(!anew.bench.state.is_open(DOOR));
    anew.passes_to(claim(1, 6));
}
