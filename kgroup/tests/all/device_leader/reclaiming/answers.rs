//! Answers of routines.

use super::*;

#[test]
fn a_run_that_executes_holds_its_device_and_goes_on_with_the_next_command() {
    for given in 0..=2 {
        let mut anew = Anew::new(&[1, 2]);
        let (one, two) = (claim(1, 5), claim(2, 1));
        anew.answer(1, executes(one, given));
        anew.rests(2, 0);
        let order = |step| act(one, step, Delivery::AtMostOnce);
        assert_eq!(anew.bench.ask(order(given)), [], "it is asked again");
        anew.hold();
        assert!(anew.is_open());
        let unknown = |step| notify(HERE, acted(one, step, Outcome::Unknown));
        for step in 0..given {
            let is_last = step + 1 == given;
            let answers = is_last.then(|| unknown(step));
            let expected: Vec<_> = answers.into_iter().collect();
            assert_eq!(anew.bench.ask(order(step)), expected);
        }
        let gives = anew.bench.ask(order(given));
        let number = anew.bench.state.act(LAMP).unwrap().number;
        assert!(gives.contains(&super::gives(number)), "{gives:?}");
        // The device is its own until it gives it back.
        anew.lock(two);
        assert_eq!(anew.bench.state.holder(LAMP), Some(one));
        anew.bench.acted(number, Outcome::Done);
        let passed = anew.bench.ask(release(LAMP, one));
        assert!(passed.contains(&notify(HERE, granted(two))), "{passed:?}");
    }
}

/// The former beginning may have granted the first one, and the grant may come late.
#[test]
fn a_run_that_gets_its_devices_tries_again_before_the_device_opens() {
    let mut anew = Anew::new(&[1]);
    anew.hold();
    let one = claim(1, 5);
    let again = Claim { attempt: 2, ..one };
    let informed = [Effect::Inform {
        group: one.routine,
        answer: is_over(one),
    }];
    for _ in 0..3 {
        assert_eq!(anew.asked(), [1]);
        let acquires = Progress::Acquires { claim: one };
        assert_eq!(anew.answer(1, acquires), informed);
        assert!(!anew.is_open());
    }
    let acquires = Progress::Acquires { claim: again };
    assert_eq!(anew.answer(1, acquires), []);
    anew.passes_to(again);
    // Another leader begins with the second one, which may have been granted, too. The first one comes late.
    let mut anew = Anew::new(&[1]);
    anew.hold();
    for claim in [again, one, again] {
        anew.answer(1, Progress::Acquires { claim });
        assert!(!anew.is_open());
    }
    let third = Claim { attempt: 3, ..one };
    anew.answer(1, Progress::Acquires { claim: third });
    anew.passes_to(third);
}

/// The grant came before the message that it is over.
#[test]
fn a_run_that_was_to_try_again_and_executes_holds_its_device() {
    let mut anew = Anew::new(&[1]);
    anew.hold();
    let one = claim(1, 5);
    anew.answer(1, Progress::Acquires { claim: one });
    anew.answer(1, executes(one, 1));
    assert!(anew.is_open());
    assert_eq!(anew.bench.state.holder(LAMP), Some(one));
    anew.bench.ask(release(LAMP, one));
    anew.passes_to(claim(1, 6));
}

#[test]
fn a_routine_that_rests_gets_the_device_by_no_late_request() {
    let mut anew = Anew::new(&[1]);
    anew.rests(1, 5);
    anew.hold();
    for late in [claim(1, 4), claim(1, 5)] {
        assert_eq!(anew.lock(late), [notify(HERE, is_over(late))]);
        assert_eq!(anew.bench.state.holder(LAMP), None);
    }
    anew.passes_to(claim(1, 6));
}

/// Another leader asks again, and the run gives its devices back, or has ended.
#[test]
fn a_claim_that_is_over_holds_the_device_no_more() {
    let one = claim(1, 5);
    for ended in [Progress::Over { claim: one }, over(1, 5)] {
        let mut anew = Anew::new(&[1, 2]);
        anew.answer(1, executes(one, 0));
        anew.rests(2, 0);
        let mut anew = anew.succeeded(12);
        anew.asked();
        anew.answer(1, ended);
        anew.rests(2, 0);
        assert_eq!(anew.bench.state.holder(LAMP), None);
        anew.hold();
        anew.passes_to(claim(2, 1));
    }
}

/// Its run cannot hold the device, so its answer takes no room.
#[test]
fn a_routine_that_does_not_name_the_device_answers_and_is_not_remembered() {
    let mut anew = Anew::new(&[1, 7]);
    anew.plan.named = vec![1];
    anew.hold();
    anew.rests(1, 5);
    assert_eq!(anew.asked(), [7]);
    anew.rests(7, 5);
    assert_eq!(anew.bench.state.routines(LAMP).count(), 1);
    anew.passes_to(claim(1, 6));
    // The run of its former definition may hold the device.
    let mut anew = Anew::new(&[1, 7]);
    anew.plan.named = vec![1];
    anew.rests(1, 5);
    anew.answer(7, executes(claim(7, 5), 0));
    assert_eq!(anew.bench.state.holder(LAMP), Some(claim(7, 5)));
    let mut anew = anew.succeeded(12);
    anew.asked();
    anew.rests(1, 5);
    anew.rests(7, 5);
    anew.hold();
    anew.passes_to(claim(1, 6));
}

#[test]
fn an_answer_about_a_former_entry_of_the_device_or_of_another_routine_does_not_count() {
    let mut anew = Anew::new(&[1, 7]);
    anew.plan.named = vec![1];
    anew.hold();
    anew.asked();
    let before = (anew.bench.state.clone(), anew.since - 1);
    for progress in [over(7, 5), executes(claim(7, 5), 0)] {
        anew.answer_about(before.1, 7, progress, true);
        anew.answer(1, progress);
    }
    for instance in [1, 2] {
        let claim = claim(1, instance);
        let effects = anew.answer_about(before.1, 1, Progress::Acquires { claim }, false);
        assert_eq!(effects, []);
    }
    // A routine that the site does not have.
    anew.answer(8, executes(claim(8, 1), 0));
    assert_eq!(anew.bench.state, before.0);
    assert_eq!(anew.asked(), [1, 7]);
    let update = Update::Reclaim {
        device: LAMP,
        since: before.1,
        claim: claim(1, 5),
        given: Some(0),
    };
    anew.bench.decide_on(&update);
    assert_eq!(anew.bench.state, before.0, "it was proposed before");
    anew.rests(1, 5);
    anew.rests(7, 5);
    anew.passes_to(claim(1, 6));
}

/// The first answer counts, for the leader cannot distinguish a liar from the other one.
#[test]
fn a_second_routine_that_claims_to_execute_takes_nothing_and_does_not_count() {
    let mut anew = Anew::new(&[1, 2]);
    let (one, two) = (claim(1, 5), claim(2, 5));
    anew.answer(1, executes(one, 1));
    let before = anew.bench.state.clone();
    anew.answer(2, executes(two, 2));
    assert_eq!(anew.bench.state, before);
    anew.hold();
    assert!(!anew.is_open());
    assert_eq!(anew.asked(), [2]);
    let update = Update::Reclaim {
        device: LAMP,
        since: anew.since,
        claim: two,
        given: Some(2),
    };
    let held = anew.bench.state.clone();
    anew.bench.decide_on(&update);
    assert_eq!(anew.bench.state, held, "both were proposed at once");
    anew.rests(2, 5);
    assert!(anew.is_open());
    assert_eq!(anew.bench.state.holder(LAMP), Some(one));
    // An answer that comes late takes nothing either.
    let open = anew.bench.state.clone();
    anew.bench.decide_on(&update);
    anew.answer(2, executes(claim(2, 6), 0));
    let ends = Update::Reclaim {
        device: LAMP,
        since: anew.since,
        claim: one,
        given: None,
    };
    anew.bench.decide_on(&ends);
    assert_eq!(anew.bench.state, open);
    anew.bench.ask(release(LAMP, one));
    anew.passes_to(claim(2, 6));
}

#[test]
fn a_routine_that_watches_receives_the_status_again_and_answers_once_more() {
    let mut anew = Anew::new(&[1]);
    anew.hold();
    let effects = anew.answer_about(anew.since, 1, over(1, 5), true);
    let inform = Effect::Inform {
        group: GroupId(1),
        answer: shown(0, false, None, 1),
    };
    assert!(effects.contains(&inform), "{effects:?}");
    assert!(!anew.is_open());
    assert_eq!(anew.asked(), [1]);
    anew.answer_about(anew.since, 1, over(1, 5), true);
    let watchers: Vec<_> = anew.bench.state.watchers(LAMP).collect();
    assert_eq!(watchers, [GroupId(1)]);
    anew.passes_to(claim(1, 6));
}
