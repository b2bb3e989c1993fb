//! A leader's part in a cluster: a group that decides at once.

mod claims;
mod commands;
mod edits;
mod locks;
mod reclaiming;
mod reports;
mod sleeping;
mod turns;
mod watching;

use selvedge_core::{Member, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_replica::State as _;
use selvedge_routine::State;

use selvedge_kgroup::check::leaders::{DeviceLeader, Effect, Effects};
use selvedge_kgroup::devices::{
    Act, Config, Devices, Event, Limits, Reject, Ticket, Timer, Update, Verdict,
};
use selvedge_kgroup::{Answer, Claim, Delivery, Outcome, Patience, Request, Status};

const LAMP: NodeId = NodeId(1);
const DOOR: NodeId = NodeId(2);
const NOWHERE: NodeId = NodeId(9);

/// The routine's leader was here last.
const HERE: Member = Member::new(21, 0);
const THERE: Member = Member::new(22, 0);

type Out = Effects<Update, Timer, Event>;

/// A leader, and a group that decides the leader's proposals on request.
struct Bench {
    state: Devices,
    leader: DeviceLeader,
    proposed: Vec<Update>,
    effects: Out,
    /// The time for which the timer of a command was armed last.
    armed: Span,
    /// The same of the timer of a device that sleeps.
    counts: Span,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        Self::led(Devices::new([DOOR, LAMP], limits), 11, Config::new())
    }

    fn led(state: Devices, by: u64, config: Config) -> Self {
        Self::led_with(state, by, config, &[])
    }

    /// The same, where these devices sleep.
    fn led_with(
        state: Devices,
        by: u64,
        config: Config,
        wake_intervals: &[(NodeId, Span)],
    ) -> Self {
        let mut bench = Self {
            leader: DeviceLeader::new(Member::new(by, 0), config, &state),
            state,
            proposed: Vec::new(),
            effects: Vec::new(),
            armed: Span::ZERO,
            counts: Span::ZERO,
        };
        bench.follow(wake_intervals);
        bench.call(|leader, state, out| leader.on_leads(state, out));
        bench
    }

    /// By the site of its node these devices sleep.
    fn follow(&mut self, wake_intervals: &[(NodeId, Span)]) {
        let all = wake_intervals.iter().copied();
        self.call(|leader, state, out| leader.follow_wake_intervals(state, all, out));
    }

    /// Another node leads, and the proposals are lost.
    fn succeeded(self, by: u64) -> Self {
        Self::led(self.state, by, Config::new())
    }

    fn call<T>(&mut self, call: impl FnOnce(&mut DeviceLeader, &Devices, &mut Out) -> T) -> T {
        let mut out = Vec::new();
        let result = call(&mut self.leader, &self.state, &mut out);
        for effect in out {
            if let Effect::Arm {
                timer: Timer::Act(LAMP),
                after,
            } = effect
            {
                self.armed = after;
            }
            if let Effect::Arm {
                timer: Timer::Wake(_),
                after,
            } = effect
            {
                self.counts = after;
            }
            match effect {
                Effect::Propose(update) => self.proposed.push(update),
                other => self.effects.push(other),
            }
        }
        result
    }

    /// The group decides on all proposals.
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
        self.effects.clear();
        self.call(|leader, state, out| leader.on_asked(state, from, request, out));
        self.decide();
        core::mem::take(&mut self.effects)
    }

    /// Messages to a node that asks, and to others.
    fn ask(&mut self, request: Request) -> Out {
        self.ask_from(HERE, request)
    }

    fn tick(&mut self, timer: Timer) -> Out {
        self.effects.clear();
        self.call(|leader, state, out| leader.on_tick(state, timer, out));
        self.decide();
        core::mem::take(&mut self.effects)
    }

    fn report(&mut self, device: NodeId, value: impl Into<State>) -> Out {
        let value = value.into();
        self.effects.clear();
        self.call(|leader, state, out| leader.reported(state, device, Some(value), out))
            .unwrap();
        self.decide();
        core::mem::take(&mut self.effects)
    }

    fn acted(&mut self, number: u64, outcome: Outcome) -> Out {
        self.effects.clear();
        let device = LAMP;
        let ticket = Ticket { device, number };
        self.call(|leader, _, out| leader.acted(ticket, outcome, out));
        self.decide();
        core::mem::take(&mut self.effects)
    }

    /// The time for which the device is held until its command is settled.
    fn hold(&mut self) -> Span {
        let mut held = Span::ZERO;
        while self.state.act(LAMP).is_some_and(|it| !it.is_settled) {
            held = held + self.armed;
            self.tick(Timer::Act(LAMP));
        }
        held
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
        generation: 0,
    }
}

fn release(device: NodeId, claim: Claim) -> Request {
    Request::Release {
        device,
        claim,
        generation: 0,
    }
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
        generation: 0,
        device: LAMP,
        routine: GroupId(routine),
    }
}

fn notify(to: Member, answer: Answer) -> Effect<Update, Timer, Event> {
    Effect::Answer { to, answer }
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

fn gives(number: u64) -> Effect<Update, Timer, Event> {
    Effect::Event(Event::Act {
        ticket: Ticket {
            device: LAMP,
            number,
        },
        value: "on".into(),
    })
}

fn arm(timer: Timer, after: Span) -> Effect<Update, Timer, Event> {
    Effect::Arm { timer, after }
}

fn armed_act() -> Effect<Update, Timer, Event> {
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
