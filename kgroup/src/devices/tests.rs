//! What a leader does with a cluster: a group that decides at once.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "other wishes are kept as they are"
)]

mod claims;

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_replica::State as _;
use selvedge_routine::State;

use super::{
    Act, Config, DeviceLeader, Devices, Event, Limits, Refused, Ticket, Timer, Update, Verdict,
};
use crate::wish::{Wish, Wishes};
use crate::{Answer, Claim, Delivery, GroupId, Outcome, Patience, Request, Status};

const LAMP: NodeId = NodeId(1);
const DOOR: NodeId = NodeId(2);
const NOWHERE: NodeId = NodeId(9);

/// The routine's leader was here last.
const HERE: Member = Member::new(21, 0);
const THERE: Member = Member::new(22, 0);

type Out = Wishes<Update, Timer, Event>;

/// A leader, and a group that decides what it proposes when it is told to.
struct Bench {
    state: Devices,
    leader: DeviceLeader,
    proposed: Vec<Update>,
    wishes: Out,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        Self::led(Devices::new([DOOR, LAMP], limits), 11, Config::new())
    }

    fn led(state: Devices, by: u64, config: Config) -> Self {
        let mut bench = Self {
            leader: DeviceLeader::new(Member::new(by, 0), config, &state),
            state,
            proposed: Vec::new(),
            wishes: Vec::new(),
        };
        bench.call(|leader, state, out| leader.on_leads(state, out));
        bench
    }

    /// Another node leads, and what was proposed is lost.
    fn succeeded(self, by: u64) -> Self {
        Self::led(self.state, by, Config::new())
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut DeviceLeader, &Devices, &mut Out) -> T) -> T {
        let mut out = Vec::new();
        let result = call(&mut self.leader, &self.state, &mut out);
        for wish in out {
            match wish {
                Wish::Propose(update) => self.proposed.push(update),
                other => self.wishes.push(other),
            }
        }
        result
    }

    /// The group decides on all that is proposed.
    fn decide(&mut self) {
        while !self.proposed.is_empty() {
            let update = self.proposed.remove(0);
            self.decide_on(&update);
        }
    }

    fn decide_on(&mut self, update: &Update) -> Verdict {
        let before = self.state.clone();
        let verdict = self.state.apply(update);
        let judged = before.judge(update);
        assert_eq!(
            judged.is_some(),
            before == self.state,
            "{update:?} to {before:?}"
        );
        assert!(judged.is_none_or(|it| it == verdict));
        self.call(|leader, state, out| leader.on_applied(state, &verdict, out));
        verdict
    }

    fn ask_from(&mut self, from: Member, request: Request) -> Out {
        self.wishes.clear();
        self.call(|leader, state, out| leader.on_asked(state, from, request, out));
        self.decide();
        core::mem::take(&mut self.wishes)
    }

    /// What is told to a node that asks, and pushed to others.
    fn ask(&mut self, request: Request) -> Out {
        self.ask_from(HERE, request)
    }

    fn tick(&mut self, timer: Timer) -> Out {
        self.wishes.clear();
        self.call(|leader, state, out| leader.on_tick(state, timer, out));
        self.decide();
        core::mem::take(&mut self.wishes)
    }

    fn report(&mut self, device: NodeId, value: impl Into<State>) -> Out {
        let value = value.into();
        self.wishes.clear();
        self.call(|leader, state, out| leader.reported(state, device, Some(value), out))
            .unwrap();
        self.decide();
        core::mem::take(&mut self.wishes)
    }

    fn acted(&mut self, number: u64, outcome: Outcome) -> Out {
        self.wishes.clear();
        let device = LAMP;
        let ticket = Ticket { device, number };
        self.call(|leader, _, out| leader.acted(ticket, outcome, out));
        self.decide();
        core::mem::take(&mut self.wishes)
    }

    fn status(&self, device: NodeId) -> Status {
        self.state.status(device).unwrap().clone()
    }
}

fn claim(routine: u64, instance: u64) -> Claim {
    Claim {
        routine: GroupId(routine),
        instance,
        attempt: 1,
    }
}

fn lock(device: NodeId, claim: Claim) -> Request {
    Request::Lock {
        device,
        claim,
        patience: Patience::Queues,
    }
}

fn release(device: NodeId, claim: Claim) -> Request {
    Request::Release { device, claim }
}

fn act(claim: Claim, step: u16, delivery: Delivery) -> Request {
    Request::Act {
        device: LAMP,
        claim,
        step,
        value: "on".into(),
        delivery,
    }
}

fn watch(routine: u64) -> Request {
    Request::Watch {
        device: LAMP,
        routine: GroupId(routine),
    }
}

fn tell(to: Member, answer: Answer) -> Wish<Update, Timer, Event> {
    Wish::Tell { to, answer }
}

fn granted(claim: Claim) -> Answer {
    Answer::Granted {
        device: LAMP,
        claim,
    }
}

fn acted(claim: Claim, step: u16, outcome: Outcome) -> Answer {
    Answer::Acted {
        device: LAMP,
        claim,
        step,
        outcome,
    }
}

fn gives(number: u64) -> Wish<Update, Timer, Event> {
    Wish::Event(Event::Act {
        ticket: Ticket {
            device: LAMP,
            number,
        },
        value: "on".into(),
    })
}

fn arm(timer: Timer, after: Span) -> Wish<Update, Timer, Event> {
    Wish::Arm { timer, after }
}

fn armed_act() -> Wish<Update, Timer, Event> {
    arm(Timer::Act(LAMP), Config::new().act_timeout)
}

fn shown(version: u64, is_up: bool, value: Option<State>, routine: u64) -> Answer {
    Answer::Status {
        device: LAMP,
        routine: GroupId(routine),
        status: Status {
            version,
            is_up,
            value,
        },
    }
}

#[test]
fn a_lock_passes_to_the_claim_that_waits_and_its_routine_is_told_where_it_asked_last() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    assert_eq!(bench.ask(lock(LAMP, one)), [tell(HERE, granted(one))]);
    // Again: the same, without asking the group.
    assert_eq!(bench.ask(lock(LAMP, one)), [tell(HERE, granted(one))]);
    let queued = Answer::Queued {
        device: LAMP,
        claim: two,
    };
    assert_eq!(
        bench.ask_from(THERE, lock(LAMP, two)),
        [tell(THERE, queued)]
    );
    let released = Answer::Released {
        device: LAMP,
        claim: one,
    };
    let told = bench.ask(release(LAMP, one));
    assert_eq!(
        told,
        [tell(HERE, released.clone()), tell(THERE, granted(two))]
    );
    // Late, and again.
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    assert_eq!(bench.ask(lock(LAMP, one)), [tell(HERE, over)]);
    assert_eq!(bench.ask(release(LAMP, one)), [tell(HERE, released)]);
    assert_eq!(bench.state.holder(LAMP), Some(two));
}

#[test]
fn a_new_leader_passes_a_lock_on_by_way_of_the_routines_group() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    bench.ask_from(THERE, lock(LAMP, two));
    let mut next = bench.succeeded(12);
    let inform = Wish::Inform {
        group: GroupId(2),
        answer: granted(two),
    };
    assert_eq!(next.ask(release(LAMP, one)).last(), Some(&inform));
}

#[test]
fn one_lock_serves_a_device_that_a_routine_names_twice() {
    // Erratum G9: the second request for it is answered as the first, and one release frees it.
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    for _ in 0..2 {
        assert_eq!(bench.ask(lock(LAMP, one)), [tell(HERE, granted(one))]);
    }
    bench.ask(release(LAMP, one));
    assert_eq!(bench.state.holder(LAMP), None);
    assert_eq!(bench.state.queue(LAMP).count(), 0);
}

#[test]
fn a_later_claim_of_a_routine_takes_its_place_at_the_end() {
    let mut bench = Bench::new(Limits::new());
    let (one, two, again) = (claim(1, 1), claim(2, 1), claim(1, 2));
    bench.ask(lock(LAMP, one));
    bench.ask(lock(LAMP, two));
    let told = bench.ask(lock(LAMP, again));
    assert_eq!(told.last(), Some(&tell(HERE, granted(two))));
    assert_eq!(bench.state.holder(LAMP), Some(two));
    assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [again]);
    assert!(bench.state.is_over(LAMP, one));
    // In the queue, too.
    let third = claim(1, 3);
    bench.ask(lock(LAMP, third));
    assert_eq!(bench.state.queue(LAMP).collect::<Vec<_>>(), [third]);
}

#[test]
fn what_finds_no_room_is_refused_and_the_host_hears_of_it() {
    let limits = Limits::new()
        .with_queue(1)
        .with_routines(3)
        .with_watchers(1);
    let mut bench = Bench::new(limits);
    let claims = [1, 2, 3, 4].map(|it| claim(it, 1));
    let full = |routine| {
        Wish::Event(Event::Full {
            device: LAMP,
            routine: GroupId(routine),
        })
    };
    let busy = |claim| {
        tell(
            HERE,
            Answer::Busy {
                device: LAMP,
                claim,
            },
        )
    };
    bench.ask(lock(LAMP, claims[0]));
    bench.ask(lock(LAMP, claims[1]));
    assert_eq!(bench.ask(lock(LAMP, claims[2])), [busy(claims[2]), full(3)]);
    // The queue has room, the marks have none: a fourth routine never gets the device.
    bench.ask(lock(DOOR, claims[0]));
    for other in claims {
        bench.ask(release(LAMP, other));
    }
    assert_eq!(bench.state.holder(LAMP), None);
    assert_eq!(bench.ask(lock(LAMP, claims[3])), [busy(claims[3]), full(4)]);
    let late = bench.ask(release(LAMP, claims[3]));
    assert!(matches!(
        late[..],
        [Wish::Tell {
            answer: Answer::Released { .. },
            ..
        }]
    ));
    // Of two that watch, one is told once.
    bench.ask(watch(1));
    let told = bench.ask(watch(2));
    assert_eq!(told, [tell(HERE, shown(0, false, None, 2)), full(2)]);
    assert_eq!(bench.state.watchers(LAMP).collect::<Vec<_>>(), [GroupId(1)]);
}

#[test]
fn an_impatient_claim_leaves_and_nothing_remains_of_it() {
    let mut bench = Bench::new(Limits::new());
    let (one, two) = (claim(1, 1), claim(2, 1));
    bench.ask(lock(LAMP, one));
    let before = bench.state.clone();
    let told = bench.ask(Request::Lock {
        device: LAMP,
        claim: two,
        patience: Patience::Leaves,
    });
    let busy = Answer::Busy {
        device: LAMP,
        claim: two,
    };
    assert_eq!(told, [tell(HERE, busy)]);
    assert_eq!(bench.state, before);
}

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
    assert_eq!(bench.ask(order.clone()), [tell(HERE, over)]);
    bench.ask(lock(LAMP, one));
    assert_eq!(bench.ask(order.clone()), [gives(1), armed_act()]);
    assert_eq!(bench.ask(order.clone()), []);
    // The next one waits for it.
    let second = act(one, 1, Delivery::AtLeastOnce);
    assert_eq!(bench.ask(second.clone()), []);
    let done = tell(HERE, acted(one, 0, Outcome::Done));
    let disarm = Wish::Disarm(Timer::Act(LAMP));
    assert_eq!(bench.acted(1, Outcome::Done), [done.clone(), disarm]);
    assert_eq!(bench.acted(1, Outcome::Failed), []);
    assert_eq!(bench.ask(order.clone()), [done]);
    assert_eq!(bench.ask(second), [gives(2), armed_act()]);
    // A late copy of the first does nothing, and is not answered: nobody waits for that.
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
        [tell(THERE, queued)]
    );
    let told = bench.acted(1, Outcome::Failed);
    assert!(told.contains(&tell(THERE, granted(two))), "{told:?}");
    assert_eq!(bench.state.holder(LAMP), Some(two));
}

#[test]
fn a_command_that_is_overdue_ends_unknown() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    let told = bench.tick(Timer::Act(LAMP));
    assert_eq!(
        told,
        [
            armed_act(),
            tell(HERE, acted(one, 0, Outcome::Unknown)),
            Wish::Disarm(Timer::Act(LAMP))
        ]
    );
    // What the host said, and the group did not decide, is proposed again.
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
    let told = bench.tick(Timer::Act(LAMP));
    assert!(told.contains(&tell(HERE, acted(one, 1, Outcome::Done))));
    assert_eq!(bench.tick(Timer::Act(LAMP)), [], "a stray tick");
}

#[test]
fn a_device_that_is_down_fails_at_once() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    bench.tick(Timer::Unanswered);
    let failed = [tell(HERE, acted(one, 0, Outcome::Failed))];
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
            !next.wishes.contains(&gives(1)),
            "it may be over, and not known here"
        );
        next.decide();
        let begins = core::mem::take(&mut next.wishes);
        assert_eq!(begins.contains(&gives(1)), is_again);
        let twice = Config::new().act_timeout * 2;
        assert!(begins.contains(&arm(Timer::Act(LAMP), twice)));
        // The former leader's host may still have it: it does not end before the time is over.
        if is_again {
            let ticket = Ticket {
                device: LAMP,
                number: 1,
            };
            next.call(|leader, _, out| leader.acted(ticket, Outcome::Done, out));
            next.decide();
        }
        assert!(next.state.act(LAMP).is_some_and(Act::is_under_way));
        next.ask(release(LAMP, one));
        assert_eq!(next.state.holder(LAMP), None);
        next.ask(lock(LAMP, claim(2, 1)));
        assert_eq!(next.state.holder(LAMP), None, "it is not passed on");
        next.tick(Timer::Act(LAMP));
        let outcome = if is_again {
            Outcome::Done
        } else {
            Outcome::Unknown
        };
        assert_eq!(next.state.act(LAMP).unwrap().outcome, Some(outcome));
        assert_eq!(next.state.holder(LAMP), Some(claim(2, 1)));
    }
}

#[test]
fn what_another_leader_proposed_counts_as_given() {
    // It was applied there first, perhaps, before that leader failed.
    let one = claim(1, 1);
    for (by, is_given) in [(11, true), (12, false)] {
        let mut bench = Bench::new(Limits::new());
        bench.ask(lock(LAMP, one));
        bench.wishes.clear();
        bench.decide_on(&Update::Act {
            device: LAMP,
            claim: one,
            step: 0,
            value: "on".into(),
            delivery: Delivery::AtMostOnce,
            by: Member::new(by, 0),
        });
        assert_eq!(bench.wishes.contains(&gives(1)), is_given);
        bench.decide();
        assert!(bench.state.act(LAMP).is_some_and(Act::is_under_way));
        bench.tick(Timer::Act(LAMP));
        let outcome = bench.state.act(LAMP).unwrap().outcome;
        assert_eq!(outcome, Some(Outcome::Unknown), "nobody said more");
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
            outcome: Outcome::Unknown,
            by: Member::new(11, 0),
        },
    ];
    bench.wishes.clear();
    let verdicts = updates.map(|it| bench.state.apply(&it));
    for verdict in verdicts {
        bench.call(|leader, state, out| leader.on_applied(state, &verdict, out));
    }
    assert_eq!(bench.wishes, [tell(HERE, acted(one, 0, Outcome::Unknown))]);
    assert_eq!(bench.proposed, []);
}

#[test]
fn a_device_that_does_not_answer_is_down_and_one_that_answers_is_up() {
    let config = Config::new().with_misses(2);
    let state = Devices::new([LAMP, DOOR], Limits::new());
    let mut bench = Bench::led(state, 11, config);
    let ping = |device| Wish::Event(Event::Ping { device });
    let pings = [
        ping(LAMP),
        ping(DOOR),
        arm(Timer::Unanswered, config.ping_timeout),
        arm(Timer::Ping, config.ping),
    ];
    assert_eq!(bench.wishes, pings);
    bench.report(DOOR, "shut");
    assert_eq!(bench.tick(Timer::Unanswered), []);
    assert_eq!(bench.status(LAMP).version, 0, "one miss is not enough");
    assert_eq!(bench.tick(Timer::Ping), pings);
    bench.report(DOOR, "shut");
    let told = bench.tick(Timer::Unanswered);
    let down = Status {
        version: 1,
        is_up: false,
        value: None,
    };
    let heard = Wish::Event(Event::Status {
        device: LAMP,
        status: down.clone(),
    });
    assert!(told.contains(&heard));
    assert_eq!(bench.status(LAMP), down);
    assert_eq!(bench.tick(Timer::Unanswered), [], "no ping is overdue");
    // It answers: up, and the misses count anew.
    bench.report(LAMP, "off");
    assert_eq!(bench.status(LAMP).version, 2);
    assert!(bench.status(LAMP).is_up);
    bench.tick(Timer::Ping);
    bench.tick(Timer::Unanswered);
    assert!(bench.status(LAMP).is_up);
    // The door went down with it, and keeps what it said last.
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
    // What is said again and again takes no room of what is said once.
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
    let told = bench.tick(Timer::Resend);
    assert_eq!(bench.status(LAMP).value, Some("on".into()));
    assert_eq!(told.first(), Some(&resend));
    assert_eq!(bench.tick(Timer::Resend), [], "all is decided");
}

#[test]
fn a_report_that_cannot_be_kept_is_refused() {
    let mut bench = Bench::new(Limits::new().with_word(3));
    let refused = bench.call(|leader, state, out| {
        [(NOWHERE, "on"), (LAMP, "dark")]
            .map(|(device, value)| leader.reported(state, device, Some(value.into()), out))
    });
    let long = Refused::LongWord { found: 4, limit: 3 };
    assert_eq!(refused, [Err(Refused::NoDevice(NOWHERE)), Err(long)]);
    bench.report(LAMP, "dim");
    // Nor does a device do what is too long.
    let one = claim(1, 1);
    bench.ask(lock(LAMP, one));
    let told = bench.ask(Request::Act {
        device: LAMP,
        claim: one,
        step: 0,
        value: "dark".into(),
        delivery: Delivery::AtLeastOnce,
    });
    assert_eq!(told, [tell(HERE, acted(one, 0, Outcome::Failed))]);
    assert_eq!(bench.state.act(LAMP), None);
    // Nor does a group keep it, whoever proposes it.
    bench.decide_on(&Update::Observed {
        device: LAMP,
        after: 1,
        is_up: true,
        value: Some("dark".into()),
    });
    assert_eq!(bench.status(LAMP).version, 1);
}

#[test]
fn a_routine_is_told_of_a_status_until_it_has_seen_it() {
    let mut bench = Bench::new(Limits::new());
    let told = bench.ask(watch(1));
    let resend = arm(Timer::Resend, Config::new().resend);
    assert_eq!(told, [tell(HERE, shown(0, false, None, 1)), resend.clone()]);
    let on = shown(1, true, Some("on".into()), 1);
    assert!(bench.report(LAMP, "on").contains(&tell(HERE, on.clone())));
    let again = Wish::Inform {
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
    // A new leader tells it once more, for it does not know.
    let mut next = bench.succeeded(12);
    assert!(next.wishes.contains(&again));
    assert_eq!(next.tick(Timer::Resend), [again, resend]);
}

/// How many ticks pass before each of so many tellings.
fn ticks_between(bench: &mut Bench, tellings: usize) -> Vec<u64> {
    let mut ticks = Vec::new();
    let mut passed = 0;
    while ticks.len() < tellings {
        passed += 1;
        let is_told = |it: &Wish<_, _, _>| matches!(it, Wish::Inform { .. });
        if bench.tick(Timer::Resend).iter().any(is_told) {
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
    // A later status is told at once, and then as seldom.
    let told = bench.report(LAMP, "off");
    assert!(told.contains(&tell(HERE, shown(2, true, Some("off".into()), 1))));
    assert_eq!(ticks_between(&mut bench, 1), [most]);
    // It has seen an earlier one, or asks for a device: it is there.
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
fn what_a_device_did_says_how_it_is_until_it_reports_something_else() {
    let mut bench = Bench::new(Limits::new());
    let one = claim(1, 1);
    bench.report(LAMP, "off");
    bench.ask(watch(1));
    bench.ask(lock(LAMP, one));
    bench.ask(act(one, 0, Delivery::AtLeastOnce));
    // It says how it was, then that it did it, then how it is.
    bench.wishes.clear();
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
    let told = shown(3, true, Some("on".into()), 1);
    assert!(bench.wishes.contains(&tell(HERE, told)));
    // What failed says nothing.
    bench.report(LAMP, "off");
    bench.ask(act(one, 1, Delivery::AtLeastOnce));
    bench.acted(2, Outcome::Failed);
    assert_eq!(bench.status(LAMP).value, Some("off".into()));
    assert_eq!(bench.proposed, []);
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
    let told = bench.ask(question(NOWHERE));
    assert_eq!(told, [tell(HERE, Answer::NoDevice { device: NOWHERE })]);
    assert_eq!(bench.ask(question(LAMP)), [Wish::Read(1)]);
    assert_eq!(bench.ask(question(LAMP)), [Wish::Read(2)]);
    bench.report(LAMP, "on");
    let readable = |bench: &mut Bench, read| {
        bench.wishes.clear();
        bench.call(|leader, state, out| leader.on_readable(state, read, out));
        core::mem::take(&mut bench.wishes)
    };
    let read = Answer::Read {
        device: LAMP,
        claim: one,
        step: 3,
        status: bench.status(LAMP),
    };
    assert_eq!(readable(&mut bench, 1), [tell(HERE, read.clone())]);
    assert_eq!(readable(&mut bench, 1), [], "it was answered");
    bench.ask(release(LAMP, one));
    let over = Answer::Over {
        device: LAMP,
        claim: one,
    };
    assert_eq!(readable(&mut bench, 2), [tell(HERE, over)]);
    // Questions that are never answered leave room for others.
    bench.ask(lock(LAMP, claim(1, 2)));
    for _ in 0..1_000 {
        bench.ask(question(LAMP));
    }
    assert_eq!(readable(&mut bench, 3), []);
    assert_ne!(readable(&mut bench, 1_002), []);
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
    // The host repeats itself, and what it says is lost.
    bench.call(|leader, _, out| leader.acted(ticket(1), Outcome::Done, out));
    bench.proposed.clear();
    // A command that cannot be given leaves the timer of the one that is under way.
    let told = bench.ask(Request::Act {
        device: LAMP,
        claim: one,
        step: 2,
        value: "dark".into(),
        delivery: Delivery::AtLeastOnce,
    });
    assert_eq!(told, [tell(HERE, acted(one, 2, Outcome::Failed))]);
    let told = bench.tick(Timer::Act(LAMP));
    assert!(told.contains(&tell(HERE, acted(one, 1, Outcome::Unknown))));
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

#[test]
fn each_routine_that_watches_is_told_until_it_has_seen_it() {
    let mut bench = Bench::new(Limits::new());
    for routine in [2, 3, 1, 2] {
        bench.ask(watch(routine));
    }
    let all: Vec<GroupId> = bench.state.watchers(LAMP).collect();
    assert_eq!(all, [1, 2, 3].map(GroupId));
    bench.report(LAMP, "on");
    let again = |routine| Wish::Inform {
        group: GroupId(routine),
        answer: shown(1, true, Some("on".into()), routine),
    };
    let resend = arm(Timer::Resend, Config::new().resend);
    let told = bench.tick(Timer::Resend);
    assert_eq!(told, [again(1), again(2), again(3), resend.clone()]);
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
        assert!(next.report(LAMP, "on").contains(&tell(THERE, on)));
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
    let answer = Answer::NoDevice { device: NOWHERE };
    for request in [
        lock(NOWHERE, claim(1, 1)),
        release(NOWHERE, claim(1, 1)),
        Request::Watch {
            device: NOWHERE,
            routine: GroupId(1),
        },
    ] {
        assert_eq!(bench.ask(request), vec![tell(HERE, answer.clone())]);
    }
}
