//! The time at which a closed device opens.

use super::*;

/// A host of the former beginning may carry a command out late.
#[test]
fn a_device_opens_when_it_was_held_and_all_its_routines_have_answered() {
    for answers_first in [true, false] {
        let mut anew = Anew::new(&[1, 2]);
        assert_eq!(anew.asked(), [1, 2]);
        let next = claim(1, 6);
        assert_eq!(anew.lock(next), [], "it is asked again");
        if answers_first {
            anew.rests(1, 5);
            assert_eq!(anew.asked(), [2]);
            anew.rests(2, 5);
            assert!(anew.asked().is_empty());
            assert!(!anew.is_open(), "it is held");
        }
        assert_eq!(anew.hold(), Config::new().act_timeout * 2);
        if !answers_first {
            assert_eq!(anew.asked(), [1, 2]);
            anew.rests(1, 5);
            assert!(!anew.is_open());
            assert_eq!(anew.lock(next), []);
            anew.rests(2, 5);
        }
        anew.passes_to(next);
        assert!(anew.asked().is_empty());
        assert_eq!(anew.lock(claim(2, 5)), [notify(HERE, is_over(claim(2, 5)))]);
    }
}

#[test]
fn another_leader_asks_all_again_and_holds_the_device_for_the_rest_of_the_time() {
    let mut anew = Anew::new(&[1, 2, 3]);
    anew.rests(1, 5);
    anew.answer(2, executes(claim(2, 4), 1));
    let mut held = Span::ZERO;
    for _ in 0..3 {
        held = held + anew.bench.armed;
        anew.bench.tick(Timer::Act(LAMP));
    }
    let mut anew = anew.succeeded(12);
    assert_eq!(anew.asked(), [1, 2, 3]);
    let before = anew.bench.state.clone();
    anew.rests(1, 5);
    anew.answer(2, executes(claim(2, 4), 1));
    assert_eq!(anew.bench.state, before, "it is decided");
    assert_eq!(anew.asked(), [3]);
    anew.rests(3, 0);
    let waits = anew.hold();
    assert_eq!(held + waits, Config::new().act_timeout * 2);
    assert!(anew.is_open());
    anew.bench.ask(release(LAMP, claim(2, 4)));
    anew.passes_to(claim(1, 6));
}

#[test]
fn routines_are_asked_a_few_at_once_until_all_have_answered() {
    let all: Vec<u64> = (1..=40).collect();
    let mut anew = Anew::new(&all);
    anew.hold();
    let first = anew.asked();
    assert_eq!(first, all[..32]);
    for &routine in &first {
        anew.rests(routine, 0);
    }
    let rest = anew.asked();
    assert_eq!(rest, all[32..]);
    for routine in rest {
        assert!(!anew.is_open());
        anew.rests(routine, 0);
    }
    anew.passes_to(claim(7, 1));
}

/// The former beginning gave it higher ones each time.
#[test]
fn commands_have_higher_numbers_than_those_of_the_former_beginning() {
    let number = |before| {
        let mut anew = Anew::new(&[1]);
        let state = Devices::begun_again(Limits::new(), before, GENERATION);
        anew.bench = Bench::led(state, 11, Config::new());
        anew.asked();
        assert_eq!(anew.is_open(), before == 0);
        if before > 0 {
            anew.rests(1, 5);
            anew.hold();
        }
        anew.passes_to(claim(1, 6));
        anew.bench.ask(act(claim(1, 6), 0, Delivery::AtMostOnce));
        anew.bench.state.act(LAMP).unwrap().number
    };
    let numbers = [0, 1, 2].map(number);
    assert!(numbers.is_sorted_by(|one, next| one + (1 << 32) <= *next));
}

/// A question about the present state of a device, for a condition.
#[test]
fn a_closed_device_is_not_read() {
    let mut anew = Anew::new(&[1]);
    let one = claim(1, 5);
    let read = |anew: &mut Anew| {
        let request = Request::Read {
            device: LAMP,
            claim: one,
            step: 0,
        };
        let asked = anew.bench.ask(request);
        let [Effect::Read(number)] = asked[..] else {
            panic!("{asked:?}");
        };
        anew.bench
            .call(|leader, state, out| leader.on_readable(state, number, out));
        core::mem::take(&mut anew.bench.effects)
    };
    assert_eq!(read(&mut anew), []);
    anew.answer(1, executes(one, 0));
    anew.hold();
    let answer = Answer::Read {
        device: LAMP,
        claim: one,
        step: 0,
        status: anew.bench.status(LAMP),
    };
    assert_eq!(read(&mut anew), [notify(HERE, answer)]);
    anew.bench.ask(release(LAMP, one));
    anew.passes_to(claim(1, 6));
}

/// No leader has a command of the former beginning, so no host's answer ends the hold.
#[test]
fn a_closed_device_is_held_for_a_command_that_no_host_can_end() {
    let mut state = Devices::begun_again(Limits::new(), 1, GENERATION);
    state.apply(&Update::Enter {
        generation: GENERATION,
        device: LAMP,
    });
    let act = state.act(LAMP).unwrap().clone();
    assert_eq!(
        (act.outcome, act.is_settled),
        (Some(Outcome::Unknown), false)
    );
    let ended = Update::Acted {
        device: LAMP,
        number: act.number,
        outcome: Outcome::Done,
        turn: 0,
    };
    let before = state.clone();
    state.apply(&ended);
    assert_eq!(state, before);
    let mut anew = Anew::new(&[1]);
    anew.bench = Bench::led(state, 12, Config::new());
    anew.bench.decide();
    anew.rests(1, 5);
    assert_eq!(anew.hold(), Config::new().act_timeout * 2);
    anew.passes_to(claim(1, 6));
}

/// A leader that is behind may propose them.
#[test]
fn a_lock_and_a_command_that_are_decided_too_early_change_nothing() {
    let mut anew = Anew::new(&[1, 2]);
    let (one, two) = (claim(1, 5), claim(2, 1));
    let lock = |claim| Update::Lock {
        device: LAMP,
        claim,
        patience: Patience::Queues,
        generation: GENERATION,
    };
    let act = Update::Act {
        device: LAMP,
        claim: one,
        step: 0,
        value: "on".into(),
        delivery: Delivery::AtMostOnce,
        by: HERE,
    };
    anew.hold();
    anew.answer(1, executes(one, 0));
    for update in [lock(claim(1, 6)), lock(two), act] {
        let before = anew.bench.state.clone();
        anew.bench.decide_on(&update);
        assert_eq!(anew.bench.state, before, "{update:?}");
    }
    anew.rests(2, 0);
    anew.bench.ask(release(LAMP, one));
    anew.passes_to(two);
}
