//! Commands and questions in flight when the hub stops, and when it restarts.

use selvedge_core::{Delta, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    AbortReason, Command, Config, Event, Outcome, Priority, Routine, RoutineId, SkipReason, Step,
    Timer,
};

use crate::save::host::{A, B, Host, issues};

#[test]
fn what_was_on_its_way_is_asked_for_and_issued_again_only_if_it_was_not_done() {
    for is_done in [true, false] {
        let mut host = Host::new(Config::default());
        let events = host.submit(&[(A, 1), (B, 2)]);
        let [(_, _, token)] = issues(&events)[..] else {
            panic!("{events:?}");
        };
        let (mut host, events) = host.restarted();
        assert_eq!(events, [Event::Ask { device: A, token }]);
        let events = host
            .notify(Command::Answered {
                device: A,
                token,
                state: u8::from(is_done),
            })
            .unwrap();
        let [(device, value, next)] = issues(&events)[..] else {
            panic!("{events:?}");
        };
        assert_eq!((device, value), if is_done { (B, 2) } else { (A, 1) });
        assert!(next > token, "tokens are never used again");
    }
}

#[test]
fn what_cannot_be_asked_for_is_reconciled() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let token = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    let events = host
        .notify(Command::Acted {
            device: A,
            token,
            outcome: Outcome::Unknown,
        })
        .unwrap();
    assert!(matches!(events[1], Event::Aborted { .. }), "{events:?}");
    assert_eq!(issues(&events)[0].1, 0, "what was before is brought back");
}

#[test]
fn a_cancelled_command_that_was_not_done_is_not_issued_again() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1)]);
    let token = issues(&events)[0].2;
    host.notify(Command::Cancel(RoutineId(1))).unwrap();
    let (mut host, _) = host.restarted();
    let answer = Command::Answered {
        device: A,
        token,
        state: 0,
    };
    let events = host.notify(answer).unwrap();
    assert_eq!(issues(&events), []);
    assert!(host.hub.machine().is_quiet());
}

/// Its report was about the command that was lost; the command that is sent again is refused.
#[test]
fn what_a_device_said_before_the_restart_is_not_said_of_the_next_command() {
    let mut host = Host::new(Config::default());
    let token = issues(&host.submit(&[(A, 1)]))[0].2;
    let (device, state) = (A, 1);
    host.notify(Command::Observed { device, state }).unwrap();
    let (mut host, _) = host.restarted();
    let state = 0;
    let answer = Command::Answered {
        device,
        token,
        state,
    };
    let token = issues(&host.notify(answer).unwrap())[0].2;
    let outcome = Outcome::Refused;
    host.notify(Command::Acted {
        device,
        token,
        outcome,
    })
    .unwrap();
    assert_eq!(host.hub.machine().state(A), Some(&0));
}

/// The device was asked while it was up, and is down when it answers that the command was not done.
#[test]
fn what_was_not_done_is_not_issued_again_to_a_device_that_is_down() {
    let mut host = Host::new(Config::default());
    let mut first = Step::new(A, 1);
    first.priority = Priority::BestEffort;
    let steps = vec![first, Step::new(B, 2)];
    let events = host.notify(Command::Submit(Routine { steps })).unwrap();
    let token = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    let failed = Delta::Failed(Member::new(A.0, 0));
    host.input(Input::Membership(failed)).unwrap();
    let answer = Command::Answered {
        device: A,
        token,
        state: 0,
    };
    let events = host.notify(answer).unwrap();
    let skipped = Event::Skipped {
        routine: RoutineId(1),
        step: 0,
        why: SkipReason::Down(A),
    };
    assert_eq!(events.first(), Some(&skipped), "{events:?}");
    let issued: Vec<NodeId> = issues(&events).iter().map(|it| it.0).collect();
    assert_eq!(issued, [B]);
}

/// Its lease was over while the outcome of its command was unknown. The device refused nothing.
#[test]
fn a_lease_that_is_over_is_the_reason_though_the_command_was_not_done() {
    let mut host = Host::new(Config::default());
    let lateness = Span::secs(60);
    host.notify(Command::SetLateness {
        device: B,
        lateness,
    })
    .unwrap();
    let events = host.submit(&[(A, 1), (B, 1)]);
    let first = issues(&events)[0].2;
    let events = host.submit(&[(B, 2)]);
    let second = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    host.notify(Command::Answered {
        device: A,
        token: first,
        state: 1,
    })
    .unwrap();
    let is_over = |timer| matches!(timer, Timer::Late(_));
    while !host
        .hub
        .timers()
        .any(|(it, at)| is_over(it) && at <= host.now)
    {
        host.now = host.hub.deadline().unwrap();
        if !host
            .hub
            .timers()
            .any(|(it, at)| is_over(it) && at <= host.now)
        {
            host.hub.expire(host.now, &mut host.rng, |_| {});
        }
    }
    host.hub.expire(host.now, &mut host.rng, |_| {});
    let events = host
        .notify(Command::Answered {
            device: B,
            token: second,
            state: 0,
        })
        .unwrap();
    let aborting = Event::Aborting {
        routine: RoutineId(2),
        why: AbortReason::LeaseExpired {
            device: B,
            step: Some(0),
        },
    };
    assert_eq!(events.first(), Some(&aborting), "{events:?}");
    assert_eq!(issues(&events).first().map(|it| it.1), Some(1));
}

/// A long command, a rollback that is tried again and a lease go on.
#[test]
fn timers_are_set_again() {
    let mut host = Host::new(Config::default());
    let mut step = Step::new(A, 1);
    step.hold = Span::secs(60);
    let steps = vec![step];
    let events = host.notify(Command::Submit(Routine { steps })).unwrap();
    let token = issues(&events)[0].2;
    let done = Command::Acted {
        device: A,
        token,
        outcome: Outcome::Done,
    };
    host.notify(done).unwrap();
    let (mut host, events) = host.restarted();
    assert_eq!(events, []);
    assert_eq!(host.hub.deadline(), Some(Time::ZERO + Span::secs(60)));
    host.now = host.hub.deadline().unwrap();
    let mut events = Vec::new();
    host.hub.expire_into(host.now, &mut host.rng, &mut events);
    let committed = Effect::Event(Event::Committed(RoutineId(1)));
    assert!(events.contains(&committed), "{events:?}");
}

/// A command that may take longer than usual may so after a restart, too.
#[test]
fn a_command_keeps_its_own_timeout() {
    let mut host = Host::new(Config::default());
    let mut step = Step::new(A, 1);
    step.timeout = Some(Span::secs(60));
    let steps = vec![step];
    host.notify(Command::Submit(Routine { steps })).unwrap();
    let (host, _) = host.restarted();
    assert_eq!(host.hub.deadline(), Some(Time::ZERO + Span::secs(60)));
}
