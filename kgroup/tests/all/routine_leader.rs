//! A leader, by hand. Properties of every order are checked in `check`.

mod define;
mod late;
mod locks;
mod progress;
mod times;

use std::collections::BTreeMap;

use selvedge_core::{Member, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_replica::State as _;
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Priority, Routine, State, Step};

use selvedge_kgroup::check::leaders::{Effect, Effects, RoutineLeader};
use selvedge_kgroup::routines::{
    Definition, End, Locking, Retrigger, RoutineConfig, RoutineEvent, RoutineState, RoutineTimer,
    Stage, StepOutcome, Update,
};
use selvedge_kgroup::{Answer, Claim, Outcome, Patience, Request, Status, TriggerId};

type Out = Effects<Update, RoutineTimer, RoutineEvent>;

const ROUTINE: GroupId = GroupId(100);
const ASKER: Member = Member::new(9, 0);

/// A group that decides at once, its leader, and the leader's effects.
struct Bench {
    state: RoutineState,
    leader: RoutineLeader,
    asked: Vec<Request>,
    notified: Vec<Answer>,
    events: Vec<RoutineEvent>,
    armed: BTreeMap<RoutineTimer, Span>,
    reads: Vec<u64>,
}

impl Bench {
    /// Device n is looked after by group n; devices from 50 on by none.
    fn new(definition: Definition) -> Self {
        let state = RoutineState::new(definition).unwrap();
        let group_of = |device: NodeId| (device.0 < 50).then_some(GroupId(device.0));
        let leader = RoutineLeader::new(RoutineConfig::new(), ROUTINE, &state, group_of);
        let mut bench = Self {
            state,
            leader,
            asked: vec![],
            notified: vec![],
            events: vec![],
            armed: BTreeMap::new(),
            reads: vec![],
        };
        bench.step(|leader, state, out| leader.on_leads(state, out));
        bench
    }

    fn step(&mut self, call: impl FnOnce(&mut RoutineLeader, &RoutineState, &mut Out)) {
        let mut effects = Vec::new();
        call(&mut self.leader, &self.state, &mut effects);
        let mut at = 0;
        while let Some(effect) = effects.get(at).cloned() {
            at += 1;
            match effect {
                Effect::Propose(update) => {
                    let decided = self.state.apply(&update);
                    self.leader.on_applied(&self.state, &decided, &mut effects);
                }
                Effect::Ask { request, .. } => self.asked.push(request),
                Effect::Answer { to, answer } => {
                    assert_eq!(to, ASKER);
                    self.notified.push(answer);
                }
                Effect::Arm { timer, after } | Effect::ArmAbout { timer, after } => {
                    self.armed.insert(timer, after);
                }
                Effect::Disarm(timer) => {
                    self.armed.remove(&timer);
                }
                Effect::Event(event) => self.events.push(event),
                Effect::Read(number) => self.reads.push(number),
                Effect::Inform { .. } => panic!("{effect:?}"),
            }
        }
    }

    fn trigger(&mut self, id: u64) {
        let request = Request::Trigger(TriggerId(id));
        self.step(|leader, state, out| leader.on_asked(state, ASKER, &request, out));
    }

    fn receive(&mut self, device: u64, answer: Answer) {
        self.step(|leader, state, out| leader.on_answered(state, GroupId(device), &answer, out));
    }

    fn tick(&mut self, timer: RoutineTimer) {
        assert!(
            self.armed.remove(&timer).is_some(),
            "{timer:?} is not armed"
        );
        self.step(|leader, state, out| leader.on_tick(state, timer, out));
    }

    /// The time for which a command holds its device until its step is over.
    fn hold(&mut self) -> Span {
        let mut held = Span::ZERO;
        while let Some(&next) = self.armed.get(&RoutineTimer::Hold) {
            held = held + next;
            self.tick(RoutineTimer::Hold);
        }
        held
    }

    fn claim(&self) -> Claim {
        self.state.claim(ROUTINE).unwrap()
    }

    fn grant(&mut self, device: u64) {
        let (claim, device_id) = (self.claim(), NodeId(device));
        self.receive(
            device,
            Answer::Granted {
                device: device_id,
                claim,
            },
        );
    }

    /// Grants all requests, until the leader makes none.
    fn grant_all(&mut self) {
        loop {
            let asked = core::mem::take(&mut self.asked);
            let locks = asked.iter().filter_map(|it| match it {
                Request::Lock { device, .. } => Some(device.0),
                _ => None,
            });
            let locks: Vec<u64> = locks.collect();
            if locks.is_empty() {
                self.asked = asked;
                return;
            }
            for device in locks {
                self.grant(device);
            }
        }
    }

    fn acted(&mut self, device: u64, step: u16, outcome: Outcome) {
        let answer = Answer::Acted {
            device: NodeId(device),
            claim: self.claim(),
            step,
            outcome,
        };
        self.receive(device, answer);
    }

    fn released(&mut self, device: u64, claim: Claim) {
        let answer = Answer::Released {
            device: NodeId(device),
            claim,
        };
        self.receive(device, answer);
    }

    /// The requests since the last call: the device and the kind.
    fn asked(&mut self) -> Vec<(&'static str, u64)> {
        let asked = core::mem::take(&mut self.asked).into_iter();
        asked.map(|it| named(&it)).collect()
    }

    fn outcomes(&self) -> Vec<StepOutcome> {
        self.state.report().unwrap().steps.clone()
    }
}

fn named(request: &Request) -> (&'static str, u64) {
    match request {
        Request::Lock { device, .. } => ("lock", device.0),
        Request::Release { device, .. } => ("release", device.0),
        Request::Act { device, .. } => ("act", device.0),
        Request::Watch { device, .. } => ("watch", device.0),
        Request::Seen { device, .. } => ("seen", device.0),
        Request::Read { device, .. } => ("read", device.0),
        Request::Trigger(_) | Request::Due(_) | Request::Store(_) | Request::Progress { .. } => {
            panic!("{request:?}")
        }
    }
}

fn set(device: u64) -> Step<State> {
    Step::new(NodeId(device), "on".into())
}

fn routine(steps: Vec<Step<State>>) -> Definition {
    Definition::new(Routine { steps })
}

fn is_on(device: u64) -> Condition<State> {
    Condition {
        device: NodeId(device),
        comparison: Comparison::Equal,
        value: "on".into(),
    }
}

const fn status(version: u64, value: Option<State>) -> Status {
    Status {
        version,
        is_up: true,
        value,
    }
}

#[test]
fn nothing_heard_in_time_is_unknown() {
    let timeout = Some(Span::secs(3));
    let best_effort = Step {
        timeout,
        priority: Priority::BestEffort,
        ..set(1)
    };
    let definition = routine(vec![best_effort, set(2), set(3)]);
    let mut bench = Bench::new(definition.with_command_timeout(Span::secs(7)));
    bench.trigger(1);
    bench.grant_all();
    assert_eq!(
        bench.armed.get(&RoutineTimer::Command),
        Some(&Span::secs(3))
    );
    bench.tick(RoutineTimer::Command);
    assert_eq!(
        bench.armed.get(&RoutineTimer::Command),
        Some(&Span::secs(7))
    );
    bench.tick(RoutineTimer::Command);
    let unknown = StepOutcome::Unknown;
    assert_eq!(
        bench.outcomes(),
        [unknown, unknown, StepOutcome::NotReached]
    );
    assert_eq!(bench.state.report().unwrap().end, End::Failed { step: 1 });
    let reported = |it: &RoutineEvent| matches!(it, RoutineEvent::Reports(_));
    assert_eq!(bench.events.iter().filter(|it| reported(it)).count(), 1);
}

#[test]
fn a_condition_is_decided_before_its_command_is_given() {
    let step = || Step {
        condition: Some(is_on(2).into()),
        ..set(1)
    };
    let on = Some(State::from("on"));
    let cases = [
        (status(1, on.clone()), None),
        (status(1, Some("off".into())), Some(StepOutcome::Skipped)),
        (status(0, None), Some(StepOutcome::Failed)),
        (
            Status {
                is_up: false,
                ..status(1, on)
            },
            Some(StepOutcome::Failed),
        ),
    ];
    for (status, outcome) in cases {
        let mut bench = Bench::new(routine(vec![step()]));
        bench.trigger(1);
        bench.grant_all();
        assert_eq!(bench.asked(), [("read", 2)]);
        let (device, claim, step) = (NodeId(2), bench.claim(), 0);
        bench.receive(
            2,
            Answer::Read {
                device,
                claim,
                step,
                status,
            },
        );
        match outcome {
            None => {
                assert_eq!(bench.asked(), [("act", 1)]);
                let is_cleared = matches!(
                    bench.state.stage(),
                    Stage::Executing {
                        is_cleared: true,
                        ..
                    }
                );
                assert!(is_cleared);
            }
            Some(outcome) => assert_eq!(bench.outcomes(), [outcome]),
        }
    }
}

#[test]
fn a_device_without_a_group_ends_the_run_and_holds_nothing_up() {
    let mut bench = Bench::new(routine(vec![set(1), set(60)]));
    bench.trigger(1);
    let device = NodeId(60);
    assert_eq!(bench.state.report().unwrap().end, End::NoDevice { device });
    assert_eq!(bench.asked(), [("release", 1)]);
    let claim = bench.claim();
    bench.released(1, claim);
    assert_eq!(*bench.state.stage(), Stage::NotTriggered);
    // A device that is unknown to its group.
    let mut bench = Bench::new(routine(vec![set(1), set(2)]));
    bench.trigger(1);
    bench.grant(1);
    let device = NodeId(2);
    let generation = 0;
    bench.receive(
        2,
        Answer::NoDevice {
            device,
            routine: ROUTINE,
            generation,
        },
    );
    assert_eq!(bench.state.report().unwrap().end, End::NoDevice { device });
    let claim = bench.claim();
    bench.released(1, claim);
    let generation = 0;
    bench.receive(
        2,
        Answer::NoDevice {
            device,
            routine: ROUTINE,
            generation,
        },
    );
    assert_eq!(*bench.state.stage(), Stage::NotTriggered);
}

#[test]
fn the_asker_is_told_when_its_trigger_is_decided_and_each_time_that_it_asks() {
    let mut bench = Bench::new(routine(vec![set(1)]));
    for _ in 0..2 {
        bench.trigger(7);
        assert_eq!(
            core::mem::take(&mut bench.notified),
            [Answer::Triggered(TriggerId(7))]
        );
        assert_eq!(bench.state.instance(), 1);
    }
}

#[test]
fn a_status_is_seen_when_it_is_decided_and_a_leader_that_rests_is_silent() {
    let definition = routine(vec![set(1)]).with_clause(Clause::Is(is_on(2)));
    let mut bench = Bench::new(definition);
    assert_eq!(bench.asked(), [("watch", 2)]);
    bench.tick(RoutineTimer::Resend);
    assert_eq!(bench.asked(), [("watch", 2)]);
    let shown = |version, value: &str| Answer::Status {
        device: NodeId(2),
        routine: ROUTINE,
        status: status(version, Some(value.into())),
    };
    bench.receive(2, shown(3, "off"));
    let seen = |version| Request::Seen {
        device: NodeId(2),
        routine: ROUTINE,
        version,
    };
    assert_eq!(core::mem::take(&mut bench.asked), [seen(3)]);
    bench.tick(RoutineTimer::Resend);
    assert_eq!(bench.asked(), []);
    assert!(bench.armed.is_empty(), "it rests");
    // A late request is answered from the known state.
    bench.receive(2, shown(2, "on"));
    assert_eq!(core::mem::take(&mut bench.asked), [seen(3)]);
    assert_eq!(bench.state.instance(), 0);
    bench.receive(2, shown(4, "on"));
    assert_eq!(bench.asked(), [("seen", 2), ("lock", 1)]);
    assert_eq!(bench.events, [RoutineEvent::Triggered { instance: 1 }]);
}

#[test]
fn answers_of_others_count_for_nothing() {
    let mut bench = Bench::new(routine(vec![set(1), set(2)]));
    bench.trigger(1);
    let (claim, device) = (bench.claim(), NodeId(1));
    let granted = |claim| Answer::Granted { device, claim };
    bench.receive(2, granted(claim));
    let others = [
        Claim {
            routine: GroupId(101),
            ..claim
        },
        Claim {
            instance: 2,
            ..claim
        },
        Claim {
            attempt: 2,
            ..claim
        },
    ];
    for other in others {
        bench.receive(1, granted(other));
    }
    assert_eq!(bench.asked(), [("lock", 1)]);
    // A former leader of the cluster does not know that the claim holds the device.
    bench.grant(1);
    bench.grant(2);
    assert_eq!(bench.state.step(), Some(0));
    bench.receive(1, Answer::Over { device, claim });
    assert_eq!(bench.state.step(), Some(0));
}
