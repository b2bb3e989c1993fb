//! A machine that is built from two: the effects, timers and refusals of the inner ones, without
//! allocation.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Nested, Span, Time};

use crate::allocator::allocations;

const PEER: Member = Member::new(9, 0);

/// A machine that counts its inputs, and refuses one number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Counter {
    count: u32,
}

/// The number that a [`Counter`] refuses.
const REFUSED: u32 = 13;
/// The number on which it disarms a timer.
const DISARM: u32 = 14;

impl Machine for Counter {
    type Message = u32;
    type Timer = u8;
    type Command = ();
    type Event = u32;
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        if let Input::Message {
            message: REFUSED, ..
        } = input
        {
            // A machine must not do this; `Nested` has to clean up after it all the same.
            cx.send(PEER, u32::MAX);
            cx.arm(0, Span::ZERO);
            return Err("not that one");
        }
        self.count += 1;
        match input {
            Input::Message {
                message: DISARM, ..
            } => cx.disarm(1),
            Input::Tick(timer) => cx.event(1_000 + u32::from(timer)),
            Input::Message { .. } | Input::Membership(_) | Input::Command(()) => {
                cx.event(self.count);
                cx.send(PEER, self.count);
                cx.arm(1, Span::secs(1));
                cx.multicast(self.count + 100);
                cx.disarm(2);
                cx.event(self.count + 200);
                cx.arm(2, Span::secs(2));
            }
        }
        Ok(())
    }
}

/// Two counters. A message or command goes to both; the events of the left one come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Pair {
    left: Nested<Counter>,
    right: Nested<Counter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Side {
    Left,
    Right,
}

use Side::{Left, Right};

impl Pair {
    fn new() -> Self {
        Self {
            left: Nested::new(Counter::default()),
            right: Nested::new(Counter::default()),
        }
    }

    fn counts(&self) -> (u32, u32) {
        (self.left.machine().count, self.right.machine().count)
    }
}

impl Machine for Pair {
    type Message = (Side, u32);
    type Timer = (Side, u8);
    type Command = Side;
    type Event = (Side, u32);
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        let (side, input) = match input {
            Input::Message {
                from,
                message: (side, message),
            } => (side, Input::Message { from, message }),
            Input::Tick((side, timer)) => (side, Input::Tick(timer)),
            Input::Command(side) => (side, Input::Command(())),
            Input::Membership(_) => return Err("has no list"),
        };
        let inner = match side {
            Left => &mut self.left,
            Right => &mut self.right,
        };
        inner.step(
            cx,
            input,
            |message| (side, message),
            |timer| (side, timer),
            |event, cx| cx.event((side, event)),
        )
    }
}

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(0)
}

fn effects(driver: &mut Driver<Pair>, side: Side) -> Vec<Effect<Pair>> {
    let mut seen = Vec::new();
    driver
        .step(Time::ZERO, &mut rng(), Input::Command(side), |effect| {
            seen.push(effect)
        })
        .unwrap();
    seen
}

fn send(driver: &mut Driver<Pair>, side: Side, number: u32) -> Result<(), &'static str> {
    let input = Input::Message {
        from: PEER,
        message: (side, number),
    };
    driver.step(Time::ZERO, &mut rng(), input, |effect| {
        panic!("unexpected: {effect:?}");
    })
}

#[test]
fn inner_effects_keep_their_order() {
    let mut driver = Driver::new(Pair::new());
    for side in [Left, Right] {
        let expected = [
            Effect::Event((side, 1)),
            Effect::Send {
                to: PEER,
                message: (side, 1),
            },
            Effect::Multicast {
                message: (side, 101),
            },
            Effect::Event((side, 201)),
        ];
        assert_eq!(effects(&mut driver, side), expected);
    }
}

#[test]
fn inner_timers_tick_at_their_own_machine() {
    let mut driver = Driver::new(Pair::new());
    effects(&mut driver, Left);
    effects(&mut driver, Right);
    let armed: Vec<_> = driver.timers().collect();
    let at = |secs| Time::ZERO + Span::secs(secs);
    assert_eq!(
        armed,
        [
            ((Left, 1), at(1)),
            ((Left, 2), at(2)),
            ((Right, 1), at(1)),
            ((Right, 2), at(2))
        ]
    );
    let mut ticked = Vec::new();
    driver.expire_into(at(2), &mut rng(), &mut ticked);
    let expected = [(Left, 1_001), (Right, 1_001), (Left, 1_002), (Right, 1_002)];
    assert_eq!(ticked, expected.map(Effect::Event));
    assert_eq!(driver.machine().counts(), (3, 3));
}

#[test]
fn an_inner_machine_disarms_its_own_timer() {
    let mut driver = Driver::new(Pair::new());
    effects(&mut driver, Left);
    effects(&mut driver, Right);
    send(&mut driver, Left, DISARM).unwrap();
    let armed: Vec<_> = driver.timers().map(|(timer, _)| timer).collect();
    assert_eq!(armed, [(Left, 2), (Right, 1), (Right, 2)]);
}

#[test]
fn an_inner_refusal_leaves_everything_as_it_was() {
    let mut driver = Driver::new(Pair::new());
    let first = effects(&mut driver, Left).len();
    let before = driver.machine().clone();
    let timers: Vec<_> = driver.timers().collect();
    assert_eq!(send(&mut driver, Left, REFUSED), Err("not that one"));
    assert_eq!(driver.machine(), &before);
    assert_eq!(driver.timers().collect::<Vec<_>>(), timers);
    // No effect of the refused step appears in the next one.
    assert_eq!(effects(&mut driver, Left).len(), first);
    assert_eq!(driver.timers().collect::<Vec<_>>(), timers);
}

#[test]
fn nothing_is_allocated_in_steady_state() {
    let mut driver = Driver::new(Pair::new());
    let mut rng = rng();
    let mut now = Time::ZERO;
    let mut work = |rounds: u32| {
        for round in 0..rounds {
            now = now + Span::secs(1);
            for side in [Left, Right] {
                let input = Input::Message {
                    from: PEER,
                    message: (side, round + 20),
                };
                driver.step(now, &mut rng, input, |_| ()).unwrap();
            }
            driver.expire(now, &mut rng, |_| ());
        }
    };
    work(10);
    assert_eq!(allocations(|| work(1_000)), 0);
}
