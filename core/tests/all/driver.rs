//! Promises of the driver to its host: time, timers, refusals and the order of effects.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use rand_core::SeedableRng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Span, Time};

/// An action of the puppet, on a command or when a timer ticks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Act {
    Arm(u8, u64),
    Disarm(u8),
    Send(u8),
    Notify(u8),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// Do this now.
    Do(Vec<Act>),
    /// Do this whenever that timer ticks.
    OnTick(u8, Vec<Act>),
    /// Refuse this, as the contract demands.
    Refuse,
    /// Refuse this, but change something before.
    ChangeAndRefuse,
    /// Refuse this, but send something before.
    SendAndRefuse,
    /// From now on refuse the ticks of this timer.
    RefuseTicks(u8),
}

/// A machine that carries out the actions in its commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Puppet {
    on_tick: BTreeMap<u8, Vec<Act>>,
    refuses: Option<u8>,
    lies: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Notified {
    Ticked(u8, Time),
    Number(u8),
}

fn act(acts: &[Act], cx: &mut Context<'_, Puppet>) {
    for act in acts {
        match *act {
            Act::Arm(timer, after) => cx.arm(timer, Span(after)),
            Act::Disarm(timer) => cx.disarm(timer),
            Act::Send(number) => cx.send(Member::new(9, 0), number),
            Act::Notify(number) => cx.event(Notified::Number(number)),
        }
    }
}

impl Machine for Puppet {
    type Message = u8;
    type Timer = u8;
    type Command = Order;
    type Event = Notified;
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Tick(timer) if self.refuses == Some(timer) => return Err("not that one"),
            Input::Tick(timer) => {
                cx.event(Notified::Ticked(timer, cx.now()));
                if let Some(acts) = self.on_tick.get(&timer) {
                    act(acts, cx);
                }
            }
            Input::Command(Order::Do(acts)) => act(&acts, cx),
            Input::Command(Order::OnTick(timer, acts)) => {
                self.on_tick.insert(timer, acts);
            }
            Input::Command(Order::RefuseTicks(timer)) => self.refuses = Some(timer),
            Input::Command(Order::Refuse) => return Err("as commanded"),
            Input::Command(Order::ChangeAndRefuse) => {
                self.lies += 1;
                return Err("as commanded");
            }
            Input::Command(Order::SendAndRefuse) => {
                cx.send(Member::new(9, 0), 0);
                return Err("as commanded");
            }
            Input::Message { .. } | Input::Membership(_) => {}
        }
        Ok(())
    }
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

/// A simple model of the timers of a driver: a list.
#[derive(Default)]
struct Reference {
    now: u64,
    armed: Vec<(u64, u64, u8)>,
    order: u64,
    on_tick: BTreeMap<u8, Vec<Act>>,
}

impl Reference {
    fn act(&mut self, acts: &[Act]) {
        for act in acts {
            if let Act::Arm(timer, _) | Act::Disarm(timer) = act {
                self.armed.retain(|(_, _, other)| other != timer);
            }
            if let Act::Arm(timer, after) = act {
                self.order += 1;
                self.armed
                    .push((self.now.saturating_add(*after), self.order, *timer));
            }
        }
    }

    fn expire(&mut self, now: u64) -> Vec<(u8, u64)> {
        self.now = self.now.max(now);
        let horizon = self.order;
        let mut ticked = Vec::new();
        loop {
            let due = self.armed.iter().copied();
            let due = due.filter(|&(at, order, _)| at <= self.now && order <= horizon);
            let Some(first) = due.min() else {
                return ticked;
            };
            self.armed.retain(|&other| other != first);
            ticked.push((first.2, self.now));
            let acts = self.on_tick.get(&first.2).cloned().unwrap_or_default();
            self.act(&acts);
        }
    }
}

fn timer_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (0_u8..6, prop_oneof![Just(0), 0_u64..20, Just(u64::MAX)])
            .prop_map(|(timer, after)| Act::Arm(timer, after)),
        1 => (0_u8..6).prop_map(Act::Disarm),
    ]
}

#[derive(Clone, Debug)]
enum Call {
    Step(u64, Order),
    Expire(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let acts = || vec(timer_act(), 0..4);
    prop_oneof![
        3 => (0_u64..100, acts()).prop_map(|(now, acts)| Call::Step(now, Order::Do(acts))),
        1 => (0_u64..100, 0_u8..6, acts())
            .prop_map(|(now, timer, acts)| Call::Step(now, Order::OnTick(timer, acts))),
        1 => (0_u64..100).prop_map(|now| Call::Step(now, Order::Refuse)),
        3 => (0_u64..100).prop_map(Call::Expire),
    ]
}

proptest! {
    #[test]
    fn timers_are_those_of_a_plain_list(calls in vec(call(), 0..60)) {
        let mut driver = Driver::new(Puppet::default());
        let mut plain = Reference::default();
        for call in calls {
            match call {
                Call::Step(now, order) => {
                    plain.now = plain.now.max(now);
                    match &order {
                        Order::Do(acts) => plain.act(acts),
                        Order::OnTick(timer, acts) => {
                            plain.on_tick.insert(*timer, acts.clone());
                        }
                        _ => {}
                    }
                    let refused = order == Order::Refuse;
                    let outcome = driver.step(Time(now), &mut rng(), Input::Command(order), |_| ());
                    prop_assert_eq!(outcome.is_err(), refused);
                }
                Call::Expire(now) => {
                    let mut ticked = Vec::new();
                    let count = driver.expire(Time(now), &mut rng(), |effect| {
                        if let Effect::Event(Notified::Ticked(timer, at)) = effect {
                            ticked.push((timer, at.0));
                        }
                    });
                    prop_assert_eq!(count, ticked.len());
                    prop_assert_eq!(ticked, plain.expire(now));
                }
            }
            let earliest = plain.armed.iter().map(|&(at, _, _)| Time(at)).min();
            prop_assert_eq!(driver.deadline(), earliest);
            let mut armed: Vec<_> = plain.armed.iter().map(|&(at, _, tag)| (tag, Time(at))).collect();
            armed.sort();
            prop_assert_eq!(driver.timers().collect::<Vec<_>>(), armed);
        }
    }

    #[test]
    fn time_never_steps_back(moments in vec(0_u64..50, 1..40)) {
        let mut driver = Driver::new(Puppet::default());
        let mut latest = 0;
        for now in moments {
            latest = latest.max(now);
            let order = Order::Do(vec![Act::Arm(0, 0)]);
            driver.step(Time(now), &mut rng(), Input::Command(order), |_| ()).unwrap();
            let mut seen = None;
            driver.expire(Time(now), &mut rng(), |effect| {
                if let Effect::Event(Notified::Ticked(_, at)) = effect {
                    seen = Some(at);
                }
            });
            prop_assert_eq!(seen, Some(Time(latest)));
        }
    }
}

#[test]
fn a_refused_input_changes_nothing() {
    let mut driver = Driver::new(Puppet::default());
    let orders = [
        Order::OnTick(1, vec![Act::Send(1)]),
        Order::Do(vec![Act::Arm(1, 5), Act::Arm(2, 7)]),
    ];
    for order in orders {
        driver
            .step(Time(3), &mut rng(), Input::Command(order), |_| ())
            .unwrap();
    }
    let before = driver.machine().clone();
    let timers: Vec<_> = driver.timers().collect();
    let mut effects = 0;
    let outcome = driver.step(Time(4), &mut rng(), Input::Command(Order::Refuse), |_| {
        effects += 1;
    });
    assert_eq!((outcome, effects), (Err("as commanded"), 0));
    assert_eq!(driver.machine(), &before);
    assert_eq!(driver.timers().collect::<Vec<_>>(), timers);
}

#[test]
fn effects_come_in_the_order_in_which_they_were_asked_for() {
    let mut driver = Driver::new(Puppet::default());
    let acts = vec![
        Act::Send(1),
        Act::Notify(2),
        Act::Send(3),
        Act::Arm(0, 1),
        Act::Notify(4),
    ];
    let mut seen = Vec::new();
    driver
        .step(
            Time(0),
            &mut rng(),
            Input::Command(Order::Do(acts)),
            |effect| {
                seen.push(match effect {
                    Effect::Send { message, .. } => message,
                    Effect::Event(Notified::Number(number)) => number,
                    other => panic!("no input asked for {other:?}"),
                });
            },
        )
        .unwrap();
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[test]
fn a_refused_tick_is_counted_and_its_timer_is_gone() {
    let mut driver = Driver::new(Puppet::default());
    for order in [
        Order::RefuseTicks(1),
        Order::Do(vec![Act::Arm(1, 5), Act::Arm(2, 5)]),
    ] {
        driver
            .step(Time(0), &mut rng(), Input::Command(order), |_| ())
            .unwrap();
    }
    assert_eq!(driver.expire(Time(5), &mut rng(), |_| ()), 2);
    assert_eq!((driver.refused_ticks(), driver.deadline()), (1, None));
}

#[cfg(debug_assertions)]
mod lies {
    use super::*;

    fn refuse(order: Order) {
        let mut driver = Driver::new(Puppet::default());
        let _outcome = driver.step(Time(0), &mut rng(), Input::Command(order), |_| ());
    }

    #[test]
    #[should_panic = "a refused input changed the machine: Command(ChangeAndRefuse) was refused with"]
    fn a_change_behind_a_refusal_is_caught() {
        refuse(Order::ChangeAndRefuse);
    }

    #[test]
    #[should_panic = "a refused call changed the machine: it was refused with a &str"]
    fn a_change_behind_a_call_that_is_refused_is_caught() {
        let mut driver = Driver::new(Puppet::default());
        let change = |machine: &mut Puppet, cx: &mut Context<'_, Puppet>| {
            machine
                .handle(Input::Command(Order::ChangeAndRefuse), cx)
                .map_err(|_| "no")
        };
        let _outcome = driver.with(Time(0), &mut rng(), change, |_| ());
    }

    #[test]
    #[should_panic = "a refused input had effects: Command(SendAndRefuse) was refused with"]
    fn an_effect_behind_a_refusal_is_caught() {
        refuse(Order::SendAndRefuse);
    }
}

/// Release builds do not compare, but they do not release the effects either.
#[cfg(not(debug_assertions))]
#[test]
fn effects_behind_a_refusal_are_thrown_away() {
    let mut driver = Driver::new(Puppet::default());
    let mut effects = 0;
    for (order, refused) in [(Order::SendAndRefuse, true), (Order::Do(Vec::new()), false)] {
        let outcome = driver.step(Time(0), &mut rng(), Input::Command(order), |_| effects += 1);
        assert_eq!(outcome.is_err(), refused);
    }
    assert_eq!(effects, 0);
}
