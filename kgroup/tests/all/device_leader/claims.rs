//! Claims of several routines at one device.

use super::*;

fn over(claim: Claim) -> Answer {
    Answer::Over {
        device: LAMP,
        claim,
    }
}

fn leaves(claim: Claim) -> Request {
    Request::Lock {
        device: LAMP,
        claim,
        patience: Patience::Leaves,
        generation: 0,
    }
}

/// In each order of three routines.
#[test]
fn each_routine_has_a_mark_of_its_own() {
    for order in [
        [1, 2, 3],
        [1, 3, 2],
        [2, 1, 3],
        [2, 3, 1],
        [3, 1, 2],
        [3, 2, 1],
    ] {
        let mut bench = Bench::new(Limits::new());
        let mut past = Vec::new();
        for instance in 1..=2 {
            for claim in order.map(|it| claim(it, instance)) {
                assert!(!bench.state.is_over(LAMP, claim));
                assert_eq!(bench.ask(lock(LAMP, claim)), [notify(HERE, granted(claim))]);
                bench.ask(release(LAMP, claim));
                past.push(claim);
            }
            for &late in &past {
                assert!(bench.state.is_over(LAMP, late), "{order:?}");
                assert!(!bench.state.is_over(DOOR, late));
                assert_eq!(bench.ask(lock(LAMP, late)), [notify(HERE, over(late))]);
                assert_eq!(bench.ask(leaves(late)), [notify(HERE, over(late))]);
                assert_eq!(bench.state.holder(LAMP), None, "{order:?}");
            }
        }
        let next = order.map(|it| claim(it, 3));
        assert!(!next.into_iter().any(|it| bench.state.is_over(LAMP, it)));
    }
}

#[test]
fn a_later_claim_that_does_not_wait_gets_what_the_earlier_one_held() {
    let mut bench = Bench::new(Limits::new());
    let (one, again) = (claim(1, 1), claim(1, 2));
    bench.ask(leaves(one));
    assert_eq!(bench.ask(leaves(again)), [notify(HERE, granted(again))]);
    assert_eq!(bench.ask(leaves(one)), [notify(HERE, over(one))]);
}

#[test]
fn a_later_claim_finds_a_full_queue_while_the_device_is_at_a_command() {
    let mut bench = Bench::new(Limits::new().with_queue(1));
    let (one, two, again) = (claim(1, 1), claim(2, 1), claim(1, 2));
    bench.ask(lock(LAMP, one));
    bench.ask(lock(LAMP, two));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    let busy = Answer::Busy {
        device: LAMP,
        claim: again,
    };
    for _ in 0..2 {
        let notified = bench.ask(lock(LAMP, again));
        assert!(
            notified.contains(&notify(HERE, busy.clone())),
            "{notified:?}"
        );
        assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [two]);
    }
    assert!(bench.state.is_over(LAMP, one));
    let notified = bench.acted(1, Outcome::Done);
    assert!(
        notified.contains(&notify(HERE, granted(two))),
        "{notified:?}"
    );
}

#[test]
fn a_command_of_a_step_that_is_over_is_not_given_again() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    for step in 0..2 {
        let number = u64::from(step) + 1;
        let notified = bench.ask(act(one, step, Delivery::AtMostOnce));
        assert!(notified.contains(&gives(number)), "{notified:?}");
        let late = bench.ask(act(one, 0, Delivery::AtMostOnce));
        assert!(!late.contains(&gives(number + 1)), "{late:?}");
        bench.acted(number, Outcome::Done);
    }
    assert_eq!(bench.ask(act(one, 0, Delivery::AtMostOnce)), []);
    assert_eq!(bench.state.act(LAMP).unwrap().number, 2);
}

#[test]
fn a_routine_takes_the_room_of_one_however_often_it_asks() {
    let mut bench = Bench::new(Limits::new().with_routines(2));
    for instance in 1..6 {
        let claim = claim(1, instance);
        assert_eq!(bench.ask(lock(LAMP, claim)), [notify(HERE, granted(claim))]);
        bench.ask(release(LAMP, claim));
    }
    let other = claim(2, 1);
    assert_eq!(bench.ask(lock(LAMP, other)), [notify(HERE, granted(other))]);
    bench.ask(release(LAMP, other));
    let one_too_many = claim(3, 1);
    let notified = bench.ask(lock(LAMP, one_too_many));
    assert!(!notified.contains(&notify(HERE, granted(one_too_many))));
}

#[test]
fn a_claim_that_waits_and_asks_again_waits_once() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    for _ in 0..3 {
        let queued = Answer::Queued {
            device: LAMP,
            claim: two,
        };
        assert_eq!(bench.ask(lock(LAMP, two)), [notify(HERE, queued)]);
        assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [two]);
    }
    bench.ask(release(LAMP, one));
    bench.ask(release(LAMP, two));
    assert_eq!(bench.state.holder(LAMP), None);
}
