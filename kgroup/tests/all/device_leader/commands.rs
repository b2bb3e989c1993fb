//! Commands, and their outcomes.

use super::*;

#[test]
fn a_command_is_decided_then_given_and_its_end_is_told() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    let order = act(one, 0, Delivery::AtLeastOnce);
    bench.report(LAMP, "on");
    assert_eq!(bench.ask(order.clone()), [notify(HERE, over)]);
    bench.ask(lock(LAMP, one));
    assert_eq!(bench.ask(order.clone()), [gives(1), armed_act()]);
    assert_eq!(bench.ask(order.clone()), []);
    // The next one waits for it.
    let second = act(one, 1, Delivery::AtLeastOnce);
    assert_eq!(bench.ask(second.clone()), []);
    let done = notify(HERE, acted(one, 0, Outcome::Done));
    let disarm = Effect::Disarm(Timer::Act(LAMP));
    assert_eq!(bench.acted(1, Outcome::Done), [done.clone(), disarm]);
    assert_eq!(bench.acted(1, Outcome::Failed), []);
    assert_eq!(bench.ask(order.clone()), [done]);
    assert_eq!(bench.ask(second), [gives(2), armed_act()]);
    // A late copy of the first does nothing, and is not answered: no node waits for that.
    assert_eq!(bench.ask(order), []);
}

#[test]
fn a_released_device_is_passed_on_when_its_command_has_ended() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    bench.ask(release(LAMP, one));
    assert_eq!(bench.state.holder(LAMP), None);
    let queued = Answer::Queued {
        device: LAMP,
        claim: two,
    };
    assert_eq!(
        bench.ask_from(THERE, lock(LAMP, two)),
        [notify(THERE, queued)]
    );
    let notified = bench.acted(1, Outcome::Failed);
    assert!(
        notified.contains(&notify(THERE, granted(two))),
        "{notified:?}"
    );
    assert_eq!(bench.state.holder(LAMP), Some(two));
}

#[test]
fn a_command_that_is_overdue_ends_unknown() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    let notified = bench.tick(Timer::Act(LAMP));
    assert_eq!(
        notified,
        [
            armed_act(),
            notify(HERE, acted(one, 0, Outcome::Unknown)),
            Effect::Disarm(Timer::Act(LAMP))
        ]
    );
    // The leader proposes an outcome of the host again that the group did not decide.
    bench.ask(act(one, 1, Delivery::AtLeastOnce));
    bench.call(|leader, _, out| {
        let ticket = Ticket {
            device: LAMP,
            number: 2,
        };
        leader.acted(ticket, Outcome::Done, out);
        leader.acted(ticket, Outcome::Failed, out);
    });
    bench.proposed.clear();
    let notified = bench.tick(Timer::Act(LAMP));
    assert!(notified.contains(&notify(HERE, acted(one, 1, Outcome::Done))));
    assert_eq!(bench.tick(Timer::Act(LAMP)), [], "a stray tick");
}

#[test]
fn a_device_that_is_down_fails_at_once() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    bench.tick(Timer::Unanswered);
    let failed = [notify(HERE, acted(one, 0, Outcome::Failed))];
    let order = act(one, 0, Delivery::AtLeastOnce);
    assert_eq!(bench.ask(order.clone()), failed);
    // It was answered so: it stays so.
    bench.report(LAMP, "off");
    assert_eq!(bench.ask(order), failed);
    assert_eq!(
        bench.ask(act(one, 1, Delivery::AtLeastOnce)),
        [gives(2), armed_act()]
    );
}

#[test]
fn a_new_leader_gives_a_command_again_only_if_it_may() {
    let one = claim(1, 1);
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(lock(LAMP, one));
        assert!(bench.ask(act(one, 0, delivery)).contains(&gives(1)));
        let mut next = bench.succeeded(12);
        let is_again = delivery == Delivery::AtLeastOnce;
        assert!(
            !next.effects.contains(&gives(1)),
            "it may be over, and not known here"
        );
        next.decide();
        let begins = core::mem::take(&mut next.effects);
        assert_eq!(begins.contains(&gives(1)), is_again);
        // The outcome is reported at once. The former leader's host may still have the command, so the
        // device gets no other claim and no other command before that time has passed.
        let outcome = match is_again {
            true => Outcome::Done,
            false => Outcome::Unknown,
        };
        if is_again {
            let notified = next.acted(1, Outcome::Done);
            let done = Effect::Inform {
                group: one.routine,
                answer: acted(one, 0, Outcome::Done),
            };
            assert!(notified.contains(&done), "{notified:?}");
            assert_eq!(next.ask(act(one, 1, delivery)), []);
        }
        next.ask(release(LAMP, one));
        assert_eq!(next.state.act(LAMP).unwrap().outcome, Some(outcome));
        assert_eq!(next.state.holder(LAMP), None);
        next.ask(lock(LAMP, claim(2, 1)));
        assert_eq!(next.state.holder(LAMP), None, "it is not passed on");
        let held = next.hold();
        assert!(held >= Config::new().act_timeout * 2, "{held:?}");
        assert_eq!(next.state.act(LAMP).unwrap().outcome, Some(outcome));
        assert_eq!(next.state.holder(LAMP), Some(claim(2, 1)));
    }
}

#[test]
fn a_hold_goes_on_where_the_leader_before_left_it() {
    let one = claim(1, 1);
    let most = Config::new().act_timeout * 2;
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(lock(LAMP, one));
        bench.ask(act(one, 0, delivery));
        let (mut given, mut held) = (1, Span::ZERO);
        for leader in 12..200 {
            bench = bench.succeeded(leader);
            bench.decide();
            let is_given = bench.effects.contains(&gives(1));
            if is_given {
                (given, held) = (given + 1, Span::ZERO);
            }
            // Each leads for three parts, and the last one of them is not decided.
            for _ in 0..2 {
                held = held + bench.armed;
                bench.tick(Timer::Act(LAMP));
            }
            if bench.state.act(LAMP).unwrap().is_settled {
                break;
            }
            assert_eq!(bench.state.act(LAMP).unwrap().waited, held, "{leader}");
        }
        assert!(bench.state.act(LAMP).unwrap().is_settled, "after {held:?}");
        assert!(held >= most, "{held:?}");
        let most_given = if delivery == Delivery::AtLeastOnce {
            3
        } else {
            1
        };
        assert_eq!(given, most_given);
    }
}

#[test]
fn a_command_whose_claim_was_released_is_given_no_more() {
    let (one, again, two) = (claim(1, 1), claim(1, 2), claim(2, 1));
    for released in [release(LAMP, one), lock(LAMP, again)] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(lock(LAMP, one));
        bench.ask(act(one, 0, Delivery::AtLeastOnce));
        bench.ask(lock(LAMP, two));
        bench.ask(released);
        let outcome = bench.state.act(LAMP).unwrap().outcome;
        assert_eq!(outcome, Some(Outcome::Unknown));
        let mut next = bench.succeeded(12);
        next.decide();
        assert!(!next.effects.contains(&gives(1)), "for no claim");
        assert_eq!(next.state.holder(LAMP), None, "the first host may have it");
        next.hold();
        assert_eq!(next.state.holder(LAMP), Some(two));
    }
}

#[test]
fn what_another_leader_proposed_counts_as_given() {
    // It was applied there first, perhaps, before that leader failed.
    let one = claim(1, 1);
    for (by, is_given) in [(11, true), (12, false)] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(lock(LAMP, one));
        bench.effects.clear();
        bench.decide_on(&Update::Act {
            device: LAMP,
            claim: one,
            step: 0,
            value: "on".into(),
            delivery: Delivery::AtMostOnce,
            by: Member::new(by, 0),
        });
        assert_eq!(bench.effects.contains(&gives(1)), is_given);
        bench.decide();
        assert!(bench.state.act(LAMP).is_some_and(Act::is_under_way));
        bench.hold();
        let outcome = bench.state.act(LAMP).unwrap().outcome;
        assert_eq!(outcome, Some(Outcome::Unknown), "no host reported more");
    }
}

#[test]
fn a_command_that_ended_before_its_leader_learned_of_it_is_not_given() {
    // A leader may learn of several decisions at once: the state has all of them then.
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    let updates = [
        Update::Act {
            device: LAMP,
            claim: one,
            step: 0,
            value: "on".into(),
            delivery: Delivery::AtMostOnce,
            by: Member::new(11, 0),
        },
        Update::Acted {
            device: LAMP,
            number: 1,
            turn: 0,
            outcome: Outcome::Unknown,
        },
    ];
    bench.effects.clear();
    let verdicts = updates.map(|it| bench.state.apply(&it));
    for verdict in verdicts {
        bench.call(|leader, state, out| leader.on_applied(state, &verdict, out));
    }
    assert_eq!(
        bench.effects,
        [notify(HERE, acted(one, 0, Outcome::Unknown))]
    );
    assert_eq!(bench.proposed, []);
}

#[test]
fn what_is_said_of_another_command_does_not_count() {
    let mut bench = Bench::new(Limits::new().with_word(3));
    let one = claim(1, 1);
    let ticket = |number| Ticket {
        device: LAMP,
        number,
    };
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    bench.acted(1, Outcome::Failed);
    bench.ask(act(one, 1, Delivery::AtLeastOnce));
    // The host repeats its report, and the proposal is lost.
    bench.call(|leader, _, out| leader.acted(ticket(1), Outcome::Done, out));
    bench.proposed.clear();
    // A command that cannot be given leaves the timer of the command under way.
    let notified = bench.ask(Request::Act {
        device: LAMP,
        claim: one,
        step: 2,
        value: "dark".into(),
        delivery: Delivery::AtLeastOnce,
    });
    assert_eq!(notified, [notify(HERE, acted(one, 2, Outcome::Failed))]);
    let notified = bench.tick(Timer::Act(LAMP));
    assert!(notified.contains(&notify(HERE, acted(one, 1, Outcome::Unknown))));
}
