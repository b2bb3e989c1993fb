//! Reports of devices.

use super::*;

#[test]
fn a_device_that_does_not_answer_is_down_and_one_that_answers_is_up() {
    let config = Config::new().with_misses(2);
    let state = Devices::new([LAMP, DOOR], Limits::new());
    let mut bench = Bench::led(state, 11, config);
    let ping = |device| Effect::Event(Event::Ping { device });
    let pings = [
        ping(LAMP),
        ping(DOOR),
        arm(Timer::Unanswered, config.ping_timeout),
        arm(Timer::Ping, config.ping),
    ];
    assert_eq!(bench.effects, pings);
    bench.report(DOOR, "shut");
    assert_eq!(bench.tick(Timer::Unanswered), []);
    assert_eq!(bench.status(LAMP).version, 0, "one miss is not enough");
    assert_eq!(bench.tick(Timer::Ping), pings);
    bench.report(DOOR, "shut");
    let notified = bench.tick(Timer::Unanswered);
    let down = Status {
        version: 1,
        is_up: false,
        value: None,
    };
    let received = Effect::Event(Event::Status {
        device: LAMP,
        status: down.clone(),
    });
    assert!(notified.contains(&received));
    assert_eq!(bench.status(LAMP), down);
    assert_eq!(bench.tick(Timer::Unanswered), [], "no ping is overdue");
    // It answers: up, and the misses count from the beginning.
    bench.report(LAMP, "off");
    assert_eq!(bench.status(LAMP).version, 2);
    assert!(bench.status(LAMP).is_up);
    bench.tick(Timer::Ping);
    bench.tick(Timer::Unanswered);
    assert!(bench.status(LAMP).is_up);
    // The door went down with it, and keeps its last reported state.
    bench.tick(Timer::Ping);
    bench.tick(Timer::Unanswered);
    assert_eq!(
        bench.status(DOOR),
        Status {
            version: 2,
            is_up: false,
            value: Some("shut".into())
        }
    );
    // An answer without a value: the last one stands.
    bench
        .call(|leader, state, out| leader.reported(state, DOOR, None, out))
        .unwrap();
    bench.decide();
    assert_eq!(bench.status(DOOR).value, Some("shut".into()));
    assert!(bench.status(DOOR).is_up);
}

#[test]
fn a_report_that_is_no_news_is_not_proposed() {
    let mut bench = Bench::new(Limits::new());
    bench.report(LAMP, "off");
    assert_eq!(bench.report(LAMP, "off"), []);
    assert_eq!(bench.status(LAMP).version, 1);
}

#[test]
fn reports_in_close_succession_are_decided_in_order() {
    let mut bench = Bench::new(Limits::new());
    bench.report(LAMP, "off");
    for value in ["on", "on", "off"] {
        bench
            .call(|leader, state, out| leader.reported(state, LAMP, Some(value.into()), out))
            .unwrap();
    }
    assert_eq!(bench.proposed.len(), 1);
    bench.decide();
    // A button that was pressed and let go is a change each.
    assert_eq!(bench.status(LAMP).version, 3);
    // A repeated report takes no room of other reports.
    for value in [
        ["on", "off"],
        ["off"; 2],
        ["off"; 2],
        ["off"; 2],
        ["dim", "off"],
    ] {
        for value in value {
            bench
                .call(|leader, state, out| leader.reported(state, LAMP, Some(value.into()), out))
                .unwrap();
        }
    }
    bench.decide();
    assert_eq!(bench.status(LAMP).version, 7);
    // More than fit: the last one counts.
    for value in 0..100 {
        bench
            .call(|leader, state, out| leader.reported(state, LAMP, Some(value.into()), out))
            .unwrap();
    }
    bench.decide();
    assert_eq!(bench.status(LAMP).value, Some(99.into()));
    assert_eq!(bench.status(LAMP).version, 7 + 8);
}

#[test]
fn a_report_that_comes_behind_another_leaders_is_proposed_again_if_it_is_news() {
    for (other, version) in [("off", 3), ("on", 2)] {
        let mut bench = Bench::new(Limits::new());
        bench.report(LAMP, "dim");
        bench
            .call(|leader, state, out| leader.reported(state, LAMP, Some("on".into()), out))
            .unwrap();
        let late = bench.proposed.remove(0);
        bench.decide_on(&Update::Observed {
            device: LAMP,
            after: 1,
            is_up: true,
            value: Some(other.into()),
        });
        bench.decide_on(&late);
        bench.decide();
        assert_eq!(bench.status(LAMP).value, Some("on".into()));
        assert_eq!(bench.status(LAMP).version, version);
    }
}

#[test]
fn a_report_that_is_lost_is_proposed_again() {
    let mut bench = Bench::new(Limits::new());
    bench
        .call(|leader, state, out| leader.reported(state, LAMP, Some("on".into()), out))
        .unwrap();
    bench.proposed.clear();
    let resend = arm(Timer::Resend, Config::new().resend);
    let notified = bench.tick(Timer::Resend);
    assert_eq!(bench.status(LAMP).value, Some("on".into()));
    assert_eq!(notified.first(), Some(&resend));
    assert_eq!(bench.tick(Timer::Resend), [], "all is decided");
}

#[test]
fn a_report_that_cannot_be_kept_is_refused() {
    let mut bench = Bench::new(Limits::new().with_word(3));
    let refused = bench.call(|leader, state, out| {
        [(NOWHERE, "on"), (LAMP, "dark")]
            .map(|(device, value)| leader.reported(state, device, Some(value.into()), out))
    });
    let long = Reject::LongWord { found: 4, limit: 3 };
    assert_eq!(refused, [Err(Reject::NoDevice(NOWHERE)), Err(long)]);
    bench.report(LAMP, "dim");
    // Nor does a device take a state that is too long.
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    let notified = bench.ask(Request::Act {
        device: LAMP,
        claim: one,
        step: 0,
        value: "dark".into(),
        delivery: Delivery::AtLeastOnce,
    });
    assert_eq!(notified, [notify(HERE, acted(one, 0, Outcome::Failed))]);
    assert_eq!(bench.state.act(LAMP), None);
    // Nor does a group keep it, from any proposer.
    bench.decide_on(&Update::Observed {
        device: LAMP,
        after: 1,
        is_up: true,
        value: Some("dark".into()),
    });
    assert_eq!(bench.status(LAMP).version, 1);
}

#[test]
fn what_a_device_did_says_how_it_is_until_it_reports_something_else() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.report(LAMP, "off");
    bench.ask(watch(1));
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    // It reports its old state, then that it did the command, then its new state.
    bench.effects.clear();
    bench.call(|leader, state, out| {
        let ticket = Ticket {
            device: LAMP,
            number: 1,
        };
        let mut report = |value: &str| leader.reported(state, LAMP, Some(value.into()), out);
        report("dim").unwrap();
        report("off").unwrap();
        leader.acted(ticket, Outcome::Done, out);
        leader
            .reported(state, LAMP, Some("on".into()), out)
            .unwrap();
    });
    bench.decide();
    let on = Status {
        version: 3,
        is_up: true,
        value: Some("on".into()),
    };
    assert_eq!(bench.status(LAMP), on);
    let notified = shown(3, true, Some("on".into()), 1);
    assert!(bench.effects.contains(&notify(HERE, notified)));
    // A failed command does not change the status.
    bench.report(LAMP, "off");
    bench.ask(act(one, 1, Delivery::AtLeastOnce));
    bench.acted(2, Outcome::Failed);
    assert_eq!(bench.status(LAMP).value, Some("off".into()));
    assert_eq!(bench.proposed, []);
}

#[test]
fn an_answer_in_time_keeps_a_device_up_and_a_stray_tick_counts_nothing() {
    let mut bench = Bench::new(Limits::new());
    for _ in 0..3 {
        bench.report(LAMP, "on");
        bench.tick(Timer::Unanswered);
        assert!(bench.status(LAMP).is_up);
        bench.tick(Timer::Ping);
    }
    let state = Devices::new([LAMP], Limits::new());
    let mut bench = Bench::led(state, 11, Config::new().with_misses(2));
    bench.report(LAMP, "on");
    bench.tick(Timer::Ping);
    for _ in 0..3 {
        bench.tick(Timer::Unanswered);
        assert!(bench.status(LAMP).is_up, "one ping was missed");
    }
}

#[test]
fn a_command_that_failed_says_nothing_of_reports_that_wait() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    bench.call(|leader, state, out| {
        for value in ["dim", "off"] {
            leader
                .reported(state, LAMP, Some(value.into()), out)
                .unwrap();
        }
        let ticket = Ticket {
            device: LAMP,
            number: 1,
        };
        leader.acted(ticket, Outcome::Failed, out);
    });
    bench.decide();
    assert_eq!(bench.status(LAMP).value, Some("off".into()));
}
