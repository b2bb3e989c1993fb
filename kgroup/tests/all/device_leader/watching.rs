//! Status messages to routines, and their requests.

use super::*;

#[test]
fn a_routine_is_told_of_a_status_until_it_has_seen_it() {
    let mut bench = Bench::new(Limits::new());
    let notified = bench.ask(watch(1));
    let resend = arm(Timer::Resend, Config::new().resend);
    assert_eq!(
        notified,
        [notify(HERE, shown(0, false, None, 1)), resend.clone()]
    );
    let on = shown(1, true, Some("on".into()), 1);
    assert!(bench.report(LAMP, "on").contains(&notify(HERE, on.clone())));
    let again = Effect::Inform {
        group: GroupId(1),
        answer: on,
    };
    let seen = |version| Request::Seen {
        device: LAMP,
        routine: GroupId(1),
        version,
    };
    bench.ask(seen(0));
    assert_eq!(bench.tick(Timer::Resend), [again.clone(), resend.clone()]);
    bench.ask(seen(1));
    assert_eq!(bench.tick(Timer::Resend), []);
    // A new leader sends it once more, for it does not know.
    let mut next = bench.succeeded(12);
    assert!(next.effects.contains(&again));
    assert_eq!(next.tick(Timer::Resend), [again, resend]);
}

/// The number of ticks before each of a number of status messages.
fn ticks_between(bench: &mut Bench, tellings: usize) -> Vec<u64> {
    let mut ticks = Vec::new();
    let mut passed = 0;
    while ticks.len() < tellings {
        passed += 1;
        assert!(passed < 1_000, "no further message: {ticks:?}");
        let is_notified = |it: &Effect<_, _, _>| matches!(it, Effect::Inform { .. });
        if bench.tick(Timer::Resend).iter().any(is_notified) {
            ticks.push(core::mem::take(&mut passed));
        }
    }
    ticks
}

#[test]
fn a_routine_that_never_answers_is_told_less_and_less_often_until_it_is_heard() {
    let config = Config::new();
    let most = config.resend_most.0 / config.resend.0;
    let doubling: Vec<u64> = (0..8).map(|nth| (1_u64 << nth).min(most)).collect();
    let mut bench = Bench::new(Limits::new());
    bench.ask(watch(1));
    bench.report(LAMP, "on");
    assert_eq!(ticks_between(&mut bench, 8), doubling);
    // A later status is sent at once, and then as seldom.
    let notified = bench.report(LAMP, "off");
    assert!(notified.contains(&notify(HERE, shown(2, true, Some("off".into()), 1))));
    assert_eq!(ticks_between(&mut bench, 1), [most]);
    // It has seen an earlier one, or asks for a device: so its leader runs.
    let seen = Request::Seen {
        device: LAMP,
        routine: GroupId(1),
        version: 0,
    };
    for request in [seen, lock(DOOR, claim(1, 1))] {
        bench.ask(request);
        assert_eq!(ticks_between(&mut bench, 8), doubling);
    }
}

#[test]
fn a_state_is_read_when_it_is_up_to_date_and_only_by_the_claim_that_holds() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    let question = |device| Request::Read {
        device,
        claim: one,
        step: 3,
    };
    let notified = bench.ask(question(NOWHERE));
    assert_eq!(
        notified,
        [notify(
            HERE,
            Answer::NoDevice {
                device: NOWHERE,
                routine: GroupId(1),
                generation: 0
            }
        )]
    );
    assert_eq!(bench.ask(question(LAMP)), [Effect::Read(1)]);
    assert_eq!(bench.ask(question(LAMP)), [Effect::Read(2)]);
    bench.report(LAMP, "on");
    let readable = |bench: &mut Bench, read| {
        bench.effects.clear();
        bench.call(|leader, state, out| leader.on_readable(state, read, out));
        core::mem::take(&mut bench.effects)
    };
    let read = Answer::Read {
        device: LAMP,
        claim: one,
        step: 3,
        status: bench.status(LAMP),
    };
    assert_eq!(readable(&mut bench, 1), [notify(HERE, read.clone())]);
    assert_eq!(readable(&mut bench, 1), [], "it was answered");
    bench.ask(release(LAMP, one));
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    assert_eq!(readable(&mut bench, 2), [notify(HERE, over)]);
    // Questions that are never answered leave room for others.
    bench.ask(lock(LAMP, claim(1, 2)));
    for _ in 0..1_000 {
        bench.ask(question(LAMP));
    }
    assert_eq!(readable(&mut bench, 3), []);
    assert_ne!(readable(&mut bench, 1_002), []);
}

#[test]
fn each_routine_that_watches_is_told_until_it_has_seen_it() {
    let mut bench = Bench::new(Limits::new());
    for routine in [2, 3, 1, 2] {
        bench.ask(watch(routine));
    }
    let all: Vec<GroupId> = bench.state.watchers(LAMP).collect();
    assert_eq!(all, [1, 2, 3].map(GroupId));
    bench.report(LAMP, "on");
    let again = |routine| Effect::Inform {
        group: GroupId(routine),
        answer: shown(1, true, Some("on".into()), routine),
    };
    let resend = arm(Timer::Resend, Config::new().resend);
    let notified = bench.tick(Timer::Resend);
    assert_eq!(notified, [again(1), again(2), again(3), resend.clone()]);
    bench.ask(Request::Seen {
        device: LAMP,
        routine: GroupId(2),
        version: 1,
    });
    assert_eq!(bench.tick(Timer::Resend), core::slice::from_ref(&resend));
    assert_eq!(bench.tick(Timer::Resend), [again(1), again(3), resend]);
}

#[test]
fn a_new_leader_notes_where_a_routine_is_by_whatever_it_asks() {
    let one = claim(1, 1);
    let question = Request::Read {
        device: LAMP,
        claim: one,
        step: 0,
    };
    let seen = Request::Seen {
        device: LAMP,
        routine: GroupId(1),
        version: 0,
    };
    for request in [
        question,
        lock(DOOR, one),
        release(DOOR, one),
        watch(1),
        seen,
    ] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(watch(1));
        let mut next = bench.succeeded(12);
        next.ask_from(THERE, request);
        let on = shown(1, true, Some("on".into()), 1);
        assert!(next.report(LAMP, "on").contains(&notify(THERE, on)));
    }
}

#[test]
fn devices_are_found_in_whatever_order_they_are_named() {
    let state = Devices::new([5, 3, 4, 1, 3, 2].map(NodeId), Limits::new());
    assert!(state.ids().eq([1, 2, 3, 4, 5].map(NodeId)));
    assert!(state.ids().all(|it| state.status(it).is_some()));
    assert!(state.status(NOWHERE).is_none());
}

#[test]
fn a_device_that_is_not_there_is_named() {
    let mut bench = Bench::new(Limits::new());
    let answer = Answer::NoDevice {
        device: NOWHERE,
        routine: GroupId(1),
        generation: 0,
    };
    for request in [
        lock(NOWHERE, claim(1, 1)),
        release(NOWHERE, claim(1, 1)),
        Request::Watch {
            generation: 0,
            device: NOWHERE,
            routine: GroupId(1),
        },
    ] {
        assert_eq!(bench.ask(request), vec![notify(HERE, answer.clone())]);
    }
}
