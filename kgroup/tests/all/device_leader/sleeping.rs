//! Devices that sleep, and wake at an interval.

use selvedge_kgroup::check::leaders::Listed;

use super::*;

const INTERVAL: Span = Span::secs(600);
const SLEEPS: [(NodeId, Span); 1] = [(LAMP, INTERVAL)];

fn bench() -> Bench {
    let state = Devices::new([DOOR, LAMP], Limits::new());
    Bench::led_with(state, 11, Config::new().with_misses(2), &SLEEPS)
}

/// The lamp is up and held.
fn held() -> (Bench, Claim) {
    let mut bench = bench();
    let one = claim(1, 1);
    bench.report(LAMP, "off");
    bench.ask(lock(LAMP, one));
    (bench, one)
}

fn ping(device: NodeId) -> Effect<Update, Timer, Event> {
    Effect::Event(Event::Ping { device })
}

/// The count of the time without a report begins.
fn counts() -> Effect<Update, Timer, Event> {
    arm(Timer::Wake(LAMP), Span::secs(10))
}

/// Lets time pass until the lamp is down, or for so long.
fn silence(bench: &mut Bench, most: Span) -> Span {
    let mut passed = Span::ZERO;
    while bench.status(LAMP).version == 0 || bench.status(LAMP).is_up {
        passed = passed + bench.counts;
        if passed > most {
            return passed - bench.counts;
        }
        bench.tick(Timer::Wake(LAMP));
    }
    passed
}

fn asleep(claim: Claim, step: u16) -> Effect<Update, Timer, Event> {
    let device = LAMP;
    let answer = Answer::Asleep {
        device,
        claim,
        step,
    };
    notify(HERE, answer)
}

#[test]
fn a_device_that_sleeps_is_not_pinged_and_is_down_after_the_intervals_without_a_report() {
    let mut bench = bench();
    let begun = core::mem::take(&mut bench.effects);
    assert!(begun.contains(&counts()) && begun.contains(&ping(DOOR)));
    let pinged = bench.tick(Timer::Ping);
    assert!(![begun, pinged].concat().contains(&ping(LAMP)));
    // A miss of the other one is none of its own.
    for _ in 0..3 {
        bench.tick(Timer::Unanswered);
        bench.tick(Timer::Ping);
    }
    assert_eq!(bench.status(LAMP).version, 0);
    assert!(bench.report(LAMP, "off").contains(&counts()));
    assert!(bench.report(LAMP, "off").contains(&counts()));
    assert!(bench.status(LAMP).is_up);
    assert_eq!(silence(&mut bench, INTERVAL * 9), INTERVAL * 3);
    assert_eq!(bench.tick(Timer::Wake(LAMP)), []);
    assert_eq!(bench.status(LAMP).version, 2, "it is down once");
    bench.report(LAMP, "off");
    assert!(bench.status(LAMP).is_up);
    // A stray tick, for a device that does not sleep.
    bench.report(DOOR, "shut");
    bench.tick(Timer::Wake(DOOR));
    assert!(bench.status(DOOR).is_up);
}

#[test]
fn a_command_is_proposed_when_its_device_reports() {
    let (mut bench, one) = held();
    let request = act(one, 0, Delivery::AtLeastOnce);
    for _ in 0..3 {
        assert_eq!(bench.ask(request.clone()), [asleep(one, 0)]);
    }
    assert_eq!(bench.state.act(LAMP), None);
    let given = bench.report(LAMP, "off");
    assert_eq!(given, [counts(), gives(1), armed_act()]);
    // The host has it: no other answer than the outcome.
    assert_eq!(bench.ask(request.clone()), []);
    assert_eq!(bench.report(LAMP, "off"), [counts()]);
    let done = bench.acted(1, Outcome::Done);
    assert!(done.contains(&notify(HERE, acted(one, 0, Outcome::Done))));
    let again = bench.ask(request);
    assert_eq!(again, [notify(HERE, acted(one, 0, Outcome::Done))]);
    // The next one waits for the next report.
    let next = bench.ask(act(one, 1, Delivery::AtLeastOnce));
    assert_eq!(next, [asleep(one, 1)]);
    assert!(bench.report(LAMP, "on").contains(&gives(2)));
}

#[test]
fn a_command_whose_claim_was_released_is_not_given() {
    let (mut bench, one) = held();
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    bench.ask(release(LAMP, one));
    assert_eq!(bench.report(LAMP, "off"), [counts()]);
    let late = bench.ask(act(one, 0, Delivery::AtLeastOnce));
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    assert_eq!(late, [notify(HERE, over)]);
    assert_eq!(bench.state.act(LAMP), None);
}

#[test]
fn a_command_to_a_device_that_woke_no_more_fails_at_once() {
    let (mut bench, one) = held();
    let request = act(one, 0, Delivery::AtLeastOnce);
    bench.ask(request.clone());
    silence(&mut bench, INTERVAL * 9);
    let failed = notify(HERE, acted(one, 0, Outcome::Failed));
    assert_eq!(bench.ask(request), [failed]);
    // What had waited is over when it returns.
    bench.report(LAMP, "off");
    assert!(bench.status(LAMP).is_up);
    assert_eq!(bench.state.act(LAMP).unwrap().number, 1);
}

#[test]
fn a_command_of_a_former_leader_is_taken_over_when_the_device_reports() {
    for delivery in [Delivery::AtLeastOnce, Delivery::AtMostOnce] {
        let (mut bench, one) = held();
        let request = act(one, 0, delivery);
        bench.ask(request.clone());
        bench.report(LAMP, "off");
        let mut next = Bench::led_with(bench.state, 12, Config::new(), &SLEEPS);
        next.decide();
        let turn = |bench: &Bench| bench.state.act(LAMP).unwrap().turn;
        if delivery == Delivery::AtMostOnce {
            // It is held, and not given.
            assert_eq!(turn(&next), 1);
            assert_eq!(next.hold(), Config::new().act_timeout * 2);
            assert!(!next.report(LAMP, "off").contains(&gives(1)));
            continue;
        }
        for _ in 0..3 {
            next.tick(Timer::Act(LAMP));
            assert_eq!(next.ask(request.clone()), [asleep(one, 0)]);
            assert_eq!(turn(&next), 0);
        }
        let given = next.report(LAMP, "off");
        assert_eq!(given[..2], [counts(), gives(1)]);
        assert_eq!(turn(&next), 1);
        assert_eq!(next.ask(request.clone()), [], "the host has it");
        assert!(!next.report(LAMP, "off").contains(&gives(1)));
        // A claim that is over does not wait for a report.
        let mut last = Bench::led_with(next.state, 13, Config::new(), &SLEEPS);
        last.decide();
        assert_eq!(turn(&last), 1);
        last.ask(release(LAMP, one));
        last.tick(Timer::Act(LAMP));
        assert_eq!(turn(&last), 2);
        last.hold();
        assert!(last.state.act(LAMP).unwrap().is_settled);
    }
}

#[test]
fn another_site_has_another_interval_or_none() {
    let (mut bench, one) = held();
    let request = act(one, 0, Delivery::AtLeastOnce);
    bench.ask(request.clone());
    bench.effects.clear();
    bench.follow(&SLEEPS);
    assert_eq!(bench.effects, [], "the time goes on");
    bench.follow(&[(LAMP, Span::secs(32))]);
    let shorter = arm(Timer::Wake(LAMP), Span::secs(1));
    assert_eq!(core::mem::take(&mut bench.effects), [shorter]);
    bench.tick(Timer::Wake(LAMP));
    assert_eq!(bench.state.silent(LAMP), Span::secs(1));
    bench.effects.clear();
    bench.follow(&[]);
    assert_eq!(bench.effects, [Effect::Disarm(Timer::Wake(LAMP))]);
    bench.decide();
    assert_eq!(bench.state.silent(LAMP), Span::ZERO);
    assert!(bench.tick(Timer::Ping).contains(&ping(LAMP)));
    assert!(bench.ask(request).contains(&gives(1)));
    // It was pinged when the site came by which it sleeps.
    bench.follow(&SLEEPS);
    bench.tick(Timer::Unanswered);
    bench.tick(Timer::Unanswered);
    assert!(bench.status(LAMP).is_up);
}

#[test]
fn a_device_that_comes_and_sleeps_is_awaited() {
    let state = Devices::new([DOOR], Limits::new());
    let mut bench = Bench::led_with(state, 11, Config::new(), &SLEEPS);
    let sync = |bench: &mut Bench, generation, devices: &[NodeId]| {
        let has_routine = |_| true;
        let site = Listed {
            generation,
            devices,
            has_routine: &has_routine,
            routines_of: &|_| vec![],
            names: &|_, _| true,
        };
        bench.effects.clear();
        bench.call(|leader, state, out| leader.sync(state, &site, out));
        bench.decide();
        core::mem::take(&mut bench.effects)
    };
    assert_eq!(sync(&mut bench, 1, &[DOOR, LAMP]), [counts()]);
    let left = sync(&mut bench, 2, &[DOOR]);
    assert!(left.contains(&Effect::Disarm(Timer::Wake(LAMP))));
    bench.tick(Timer::Wake(LAMP));
    assert_eq!(bench.state.status(LAMP), None);
}

/// Each leads for two minutes of the thirty, and adds half of that at least.
#[test]
fn leaders_that_lead_for_less_than_an_interval_count_on_from_each_other() {
    let mut bench = bench();
    bench.report(LAMP, "off");
    let (mut leaders, mut passed) = (0, Span::ZERO);
    while bench.status(LAMP).is_up {
        leaders += 1;
        passed = passed + Span::secs(120);
        silence(&mut bench, Span::secs(120));
        assert!(bench.state.silent(LAMP) <= passed, "it counts too much");
        assert!(bench.state.silent(LAMP) * 2 >= passed || leaders > 15);
        let config = Config::new().with_misses(2);
        bench = Bench::led_with(bench.state, 11 + leaders, config, &SLEEPS);
    }
    assert!((15..31).contains(&leaders), "{leaders}");
    // A report ends the count, also for the next leader.
    bench.report(LAMP, "off");
    assert_eq!(bench.state.silent(LAMP), Span::ZERO);
    let mut next = Bench::led_with(bench.state, 9, Config::new(), &SLEEPS);
    assert_eq!(silence(&mut next, INTERVAL * 9), INTERVAL * 2);
}

#[test]
fn a_time_that_was_proposed_before_a_report_does_not_stand() {
    let mut bench = bench();
    bench.report(LAMP, "off");
    bench.tick(Timer::Wake(LAMP));
    bench.call(|leader, state, out| leader.on_tick(state, Timer::Wake(LAMP), out));
    let late = bench.proposed.remove(0);
    bench.report(LAMP, "off");
    assert_eq!(bench.state.silent(LAMP), Span::ZERO);
    // Another leader has counted meanwhile, so that it is decided all the same.
    bench.decide_on(&Update::Silent {
        device: LAMP,
        after: Span::ZERO,
        silent: Span::secs(10),
    });
    bench.proposed.clear();
    bench.decide_on(&late);
    bench.decide();
    assert_eq!(bench.state.silent(LAMP), Span::ZERO);
}

/// The last decision of a former leader comes when the next one leads.
#[test]
fn a_new_leader_takes_a_time_that_is_decided_late() {
    let mut bench = bench();
    bench.report(LAMP, "off");
    let (device, silent) = (LAMP, INTERVAL);
    let after = Span::ZERO;
    bench.decide_on(&Update::Silent {
        device,
        after,
        silent,
    });
    // It has reported to this one.
    assert_ne!(bench.proposed, []);
    let mut next = Bench::led_with(bench.state.clone(), 12, Config::new(), &SLEEPS);
    next.decide_on(&Update::Silent {
        device,
        after: silent,
        silent: INTERVAL + Span::secs(60),
    });
    assert_eq!(silence(&mut next, INTERVAL * 9), INTERVAL - Span::secs(60));
}
