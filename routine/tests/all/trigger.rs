//! Triggers: times of day and the effect of setting the clock, intervals, clauses that become true,
//! manual runs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

mod clock;

use selvedge_core::{Choose, Driver, Effect, Input, NodeId, Ratio, Span, Time, Weights};
use selvedge_routine::trigger::{
    CORRECTION, Cause, Clause, Command, Config, Dispatcher, Event, Reject, TimeOfDay, Trigger,
    TriggerId,
};
use selvedge_routine::{Comparison, Condition, Routine, State, Step};

/// A dispatcher draws nothing.
struct Never;

impl Choose for Never {
    fn below(&mut self, _: u64) -> u64 {
        panic!("a dispatcher has no choice")
    }

    fn chance(&mut self, _: Ratio) -> bool {
        panic!("a dispatcher has no choice")
    }

    fn weighted(&mut self, _: &dyn Weights) -> Option<usize> {
        panic!("a dispatcher has no choice")
    }
}

struct Bench {
    driver: Driver<Dispatcher<State>>,
    now: Time,
    /// The runs, with their times and causes.
    runs: Vec<(u64, String, Cause)>,
    last: TriggerId,
    submitted: Vec<Routine<State>>,
    cooled: Vec<(TriggerId, Time)>,
}

fn routine(value: i32) -> Routine<State> {
    let steps = [Step::new(NodeId(1), value.into())];
    Routine {
        steps: steps.into(),
    }
}

fn clock(text: &str) -> Command<State> {
    Command::SetClock(TimeOfDay::parse(text).unwrap())
}

impl Bench {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let mut bench = Self {
            driver: Driver::new(Dispatcher::new(config).unwrap()),
            now: Time::ZERO,
            runs: Vec::new(),
            last: TriggerId(0),
            submitted: Vec::new(),
            cooled: Vec::new(),
        };
        bench.put("r", 1);
        bench
    }

    fn put(&mut self, name: &str, value: i32) {
        let (name, routine) = (name.into(), routine(value));
        self.notify(Command::AddRoutine { name, routine }).unwrap();
    }

    fn notify(&mut self, command: Command<State>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let input = Input::Command(command);
        let warned = self
            .driver
            .step_into(self.now, &mut Never, input, &mut effects);
        self.take(effects);
        warned
    }

    fn take(&mut self, effects: Vec<Effect<Dispatcher<State>>>) {
        for effect in effects {
            match effect {
                Effect::Event(Event::Added(id)) => self.last = id,
                Effect::Event(Event::Submit {
                    name,
                    routine,
                    cause,
                }) => {
                    self.runs.push((self.now.0 / 1_000_000, name, cause));
                    self.submitted.push(routine);
                }
                Effect::Event(Event::Cooling { trigger, until }) => {
                    self.cooled.push((trigger, until));
                }
                other => panic!("a dispatcher has no peers and two events: {other:?}"),
            }
        }
    }

    fn trigger(&mut self, trigger: Trigger<State>) -> TriggerId {
        let name = "r".into();
        self.notify(Command::AddTrigger { name, trigger }).unwrap();
        self.last
    }

    fn at(&mut self, text: &str) -> TriggerId {
        self.trigger(Trigger::At(TimeOfDay::parse(text).unwrap()))
    }

    fn observe(&mut self, device: u64, state: impl Into<State>) {
        let (device, state) = (NodeId(device), Some(state.into()));
        self.notify(Command::Observed { device, state }).unwrap();
    }

    /// Lets this many seconds pass, and returns the times of runs meanwhile.
    fn pass(&mut self, seconds: u64) -> Vec<u64> {
        let (until, before) = (self.now + Span::secs(seconds), self.runs.len());
        while let Some(due) = self.driver.deadline().filter(|&it| it <= until) {
            self.now = self.now.max(due);
            let mut effects = Vec::new();
            self.driver.expire_into(self.now, &mut Never, &mut effects);
            self.take(effects);
        }
        self.now = until;
        self.runs.iter().skip(before).map(|it| it.0).collect()
    }
}

fn is(device: u64, comparison: Comparison, value: impl Into<State>) -> Clause<State> {
    Clause::Is(Condition {
        device: NodeId(device),
        comparison,
        value: value.into(),
    })
}

const DAY: u64 = 86_400;

#[test]
fn an_interval_comes_again_and_again_until_it_is_removed() {
    let mut bench = Bench::new();
    bench.pass(5);
    let id = bench.trigger(Trigger::Every(Span::secs(10)));
    assert_eq!(bench.pass(35), [15, 25, 35]);
    bench.notify(Command::RemoveTrigger(id)).unwrap();
    assert!(bench.pass(100).is_empty());
    assert_eq!(
        bench.notify(Command::RemoveTrigger(id)),
        Err(Reject::UnknownTrigger(id))
    );
}

#[test]
fn a_clause_runs_its_routine_when_it_becomes_true_and_not_while_it_is() {
    let mut bench = Bench::new();
    bench.observe(1, 25);
    bench.trigger(Trigger::When(is(1, Comparison::Greater, 20)));
    bench.observe(1, 26);
    assert!(bench.runs.is_empty(), "it was so before");
    bench.observe(1, 20);
    bench.observe(1, 21);
    bench.observe(1, 22);
    bench.observe(2, 99);
    assert_eq!(bench.runs.len(), 1);
    let (device, state) = (NodeId(1), None);
    bench.notify(Command::Observed { device, state }).unwrap();
    bench.observe(1, 30);
    assert_eq!(bench.runs.len(), 2, "it was unknown in between");
}

#[test]
fn what_is_unknown_decides_nothing_unless_the_rest_does() {
    let a = || is(1, Comparison::Equal, "on");
    let b = || is(2, Comparison::Equal, "on");
    let not = |it| Clause::Not(Box::new(it));
    let (on, off) = (State::from("on"), State::from("off"));
    let ask = |clause: Clause<State>, first: Option<&State>, second: Option<&State>| {
        clause.holds(&|id| if id == NodeId(1) { first } else { second })
    };
    let all = || Clause::All([a(), b()].into());
    let any = || Clause::Any([a(), b()].into());
    for (clause, first, second, expected) in [
        (a(), Some(&on), None, Some(true)),
        (a(), None, None, None),
        (not(a()), None, None, None),
        (not(a()), Some(&off), None, Some(true)),
        (all(), Some(&on), None, None),
        (all(), Some(&off), None, Some(false)),
        (all(), None, Some(&off), Some(false)),
        (all(), Some(&on), Some(&on), Some(true)),
        (any(), Some(&on), None, Some(true)),
        (any(), None, Some(&on), Some(true)),
        (any(), Some(&off), None, None),
        (any(), Some(&off), Some(&off), Some(false)),
        (Clause::All([].into()), None, None, Some(true)),
        (Clause::Any([].into()), None, None, Some(false)),
    ] {
        assert_eq!(ask(clause.clone(), first, second), expected, "{clause:?}");
    }
}

#[test]
fn replacing_a_routine_changes_later_submissions_only() {
    let mut bench = Bench::new();
    bench.trigger(Trigger::Every(Span::secs(10)));
    bench.pass(10);
    bench.put("r", 2);
    assert_eq!(bench.submitted, [routine(1)]);
    bench.pass(10);
    assert_eq!(bench.submitted, [routine(1), routine(2)]);
    bench.notify(Command::Run("r".into())).unwrap();
    assert_eq!(bench.runs[2].2, Cause::Hand);
}

#[test]
fn who_forgets_a_routine_forgets_its_triggers() {
    let mut bench = Bench::new();
    bench.trigger(Trigger::Every(Span::secs(10)));
    bench.put("other", 3);
    bench.notify(Command::RemoveRoutine("r".into())).unwrap();
    assert!(bench.pass(100).is_empty());
    let machine = bench.driver.machine();
    assert_eq!(machine.routines().collect::<Vec<_>>(), ["other"]);
    assert_eq!(machine.triggers().count(), 0);
    for command in [
        Command::Run("r".into()),
        Command::RemoveRoutine("r".into()),
        Command::AddTrigger {
            name: "r".into(),
            trigger: Trigger::Manual,
        },
    ] {
        let refused = bench.notify(command).unwrap_err();
        assert_eq!(refused, Reject::UnknownRoutine("r".into()));
    }
}

#[test]
fn limits_are_kept_and_named() {
    let mut bench = Bench::with(
        Config::default()
            .with_routine_limit(1)
            .with_trigger_limit(1)
            .with_clause_limit(2)
            .with_device_limit(1),
    );
    let (name, routine) = (String::from("s"), routine(1));
    let refused = bench.notify(Command::AddRoutine { name, routine });
    assert_eq!(refused, Err(Reject::TooManyRoutines { limit: 1 }));
    let long = Clause::Any([is(1, Comparison::Equal, 1), is(1, Comparison::Equal, 2)].into());
    let add = |trigger| Command::AddTrigger {
        name: "r".into(),
        trigger,
    };
    let refused = bench.notify(add(Trigger::When(long)));
    assert_eq!(refused, Err(Reject::ClauseTooLong { found: 3, limit: 2 }));
    let refused = bench.notify(add(Trigger::Every(Span::ZERO)));
    assert_eq!(refused, Err(Reject::NoInterval));
    let full = Clause::Any([is(1, Comparison::Equal, 1)].into());
    bench.trigger(Trigger::When(full));
    let refused = bench.notify(add(Trigger::Manual));
    assert_eq!(refused, Err(Reject::TooManyTriggers { limit: 1 }));
    bench.observe(1, 1);
    let (device, state) = (NodeId(2), Some(1.into()));
    let refused = bench.notify(Command::Observed { device, state });
    assert_eq!(refused, Err(Reject::TooManyDevices { limit: 1 }));
    let nothing = Config::default().with_clause_limit(0);
    let refused = Dispatcher::<State>::new(nothing).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "clause_limit is 0: set it to at least 1"
    );
}

#[test]
fn times_of_day_are_written_as_they_are_read() {
    for text in ["00:00", "06:30", "23:59:59", "12:00:01"] {
        assert_eq!(TimeOfDay::parse(text).unwrap().to_string(), text);
    }
    for wrong in [
        "",
        "6:30",
        "24:00",
        "12:60",
        "12:00:60",
        "12",
        "12:00:00:00",
        "+1:00",
        "12:0a",
    ] {
        assert_eq!(TimeOfDay::parse(wrong), None, "{wrong}");
    }
    assert_eq!(TimeOfDay::from_seconds(TimeOfDay::DAY), None);
}

/// In the order of the documentation: the known states, the triggers, the present states.
#[test]
fn what_became_true_while_the_host_was_away_runs_and_what_was_true_does_not() {
    for (before, runs) in [("dry", 1), ("wet", 0)] {
        let mut bench = Bench::new();
        bench.observe(1, before);
        bench.trigger(Trigger::When(is(1, Comparison::Equal, "wet")));
        assert_eq!(bench.runs.len(), 0);
        bench.observe(1, "wet");
        assert_eq!(bench.runs.len(), runs);
    }
}

/// The triggers of a routine are removed with it, and their timers with them.
#[test]
fn what_is_forgotten_wakes_nobody() {
    let mut bench = Bench::new();
    bench.notify(clock("06:00")).unwrap();
    bench.at("06:30");
    bench.trigger(Trigger::Every(Span::secs(60)));
    bench.put("other", 2);
    assert!(bench.driver.deadline().is_some());
    bench.notify(Command::RemoveRoutine("r".into())).unwrap();
    assert_eq!(bench.driver.deadline(), None);
    assert_eq!(bench.driver.machine().triggers().count(), 0);
    assert!(bench.pass(DAY).is_empty());
}

#[test]
fn a_clause_asks_after_the_devices_in_its_comparisons() {
    let not = |it| Clause::Not(Box::new(it));
    let is = |device| is(device, Comparison::Less, 1);
    for (clause, devices) in [
        (is(1), &[1][..]),
        (not(is(2)), &[2]),
        (Clause::All([is(1), not(is(3))].into()), &[1, 3]),
        (
            Clause::Any([not(Clause::All([].into())), is(2)].into()),
            &[2],
        ),
        (Clause::Any([].into()), &[]),
    ] {
        for device in 0..5 {
            let asks = clause.asks(NodeId(device));
            assert_eq!(asks, devices.contains(&device), "{clause:?} {device}");
        }
    }
}

#[test]
fn what_was_put_is_shown_until_it_is_forgotten() {
    let mut bench = Bench::new();
    bench.put("s", 2);
    let manual = bench.trigger(Trigger::Manual);
    let every = bench.trigger(Trigger::Every(Span::secs(10)));
    let machine = bench.driver.machine();
    assert_eq!(machine.routine("r"), Some(&routine(1)));
    assert_eq!(machine.routine("s"), Some(&routine(2)));
    let shown: Vec<_> = machine.triggers().collect();
    let interval = Trigger::Every(Span::secs(10));
    assert_eq!(
        shown,
        [(manual, "r", &Trigger::Manual), (every, "r", &interval)]
    );
    assert_eq!(every.to_string(), every.0.to_string());
    bench.notify(Command::RemoveTrigger(manual)).unwrap();
    bench.notify(Command::RemoveRoutine("s".into())).unwrap();
    let machine = bench.driver.machine();
    assert_eq!(machine.routine("s"), None);
    assert!(machine.triggers().map(|it| it.0).eq([every]));
}

/// Events within the cool-down are left out and reported, and not made up for.
#[test]
fn a_trigger_that_cools_down_does_not_fire_again() {
    let mut bench = Bench::new();
    let trigger = bench.trigger(Trigger::When(is(1, Comparison::Equal, 1)));
    let span = Span::secs(30);
    bench
        .notify(Command::SetCoolDown { trigger, span })
        .unwrap();
    let flips = |bench: &mut Bench| {
        bench.observe(1, 0);
        bench.observe(1, 1);
    };
    assert_eq!(bench.driver.machine().cools_until(trigger), None);
    flips(&mut bench);
    let until = bench.now + span;
    assert_eq!(bench.driver.machine().cools_until(trigger), Some(until));
    bench.pass(29);
    flips(&mut bench);
    assert_eq!(
        (bench.runs.len(), &bench.cooled[..]),
        (1, &[(trigger, until)][..])
    );
    bench.pass(1);
    assert_eq!(bench.runs.len(), 1, "nothing is made up for");
    // It was true before, so it does not become true.
    bench.observe(1, 1);
    assert_eq!(bench.runs.len(), 1);
    flips(&mut bench);
    assert_eq!(bench.runs.len(), 2, "at its end it may fire");
    bench.notify(Command::Run("r".into())).unwrap();
    assert_eq!(bench.runs.len(), 3, "a hand does not wait");
    // A cool-down that is set to zero ends at once.
    let span = Span::ZERO;
    bench
        .notify(Command::SetCoolDown { trigger, span })
        .unwrap();
    flips(&mut bench);
    assert_eq!(bench.runs.len(), 4);
    let unknown = TriggerId(9);
    let trigger = unknown;
    let refused = bench.notify(Command::SetCoolDown { trigger, span });
    assert_eq!(refused, Err(Reject::UnknownTrigger(unknown)));
}

/// The span is counted by the clock of the steps, for any setting of the local clock.
#[test]
fn a_cool_down_does_not_depend_on_the_local_clock() {
    let mut bench = Bench::new();
    bench.notify(clock("06:29:55")).unwrap();
    let trigger = bench.at("06:30");
    let span = Span::secs(7_200);
    bench
        .notify(Command::SetCoolDown { trigger, span })
        .unwrap();
    assert_eq!(bench.pass(10), [5]);
    // Back by an hour, and on: the time of day comes again within the cool-down.
    bench.notify(clock("05:30:05")).unwrap();
    assert_eq!(bench.pass(3_700), [0_u64; 0]);
    assert_eq!(bench.cooled.len(), 1);
    assert_eq!(
        bench.pass(86_400),
        [5 + 3_600 + 86_400],
        "the next day it fires"
    );
}

/// An interval goes on below the cool-down.
#[test]
fn an_interval_that_cools_down_fires_when_it_is_due_again() {
    let mut bench = Bench::new();
    let trigger = bench.trigger(Trigger::Every(Span::secs(10)));
    let span = Span::secs(25);
    bench
        .notify(Command::SetCoolDown { trigger, span })
        .unwrap();
    assert_eq!(bench.pass(100), [10, 40, 70, 100]);
}

#[test]
fn what_does_not_cool_down_has_no_end_of_it() {
    let mut bench = Bench::new();
    let trigger = bench.trigger(Trigger::When(is(1, Comparison::Equal, 1)));
    let flip = |bench: &mut Bench| {
        bench.observe(1, 0);
        bench.observe(1, 1);
    };
    let cool = |bench: &mut Bench, span| {
        bench
            .notify(Command::SetCoolDown { trigger, span })
            .unwrap();
    };
    flip(&mut bench);
    cool(&mut bench, Span::secs(30));
    let ends = |bench: &Bench| bench.driver.machine().cools_until(trigger);
    assert_eq!(ends(&bench), None, "it fired before it cooled down");
    flip(&mut bench);
    assert_eq!(bench.runs.len(), 2);
    assert_eq!(ends(&bench), Some(bench.now + Span::secs(30)));
    cool(&mut bench, Span::ZERO);
    assert_eq!(ends(&bench), None);
}
