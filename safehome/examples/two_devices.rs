//! Two routines that both command a window and a fan. The window fails in the middle. The same
//! minutes under two visibility models:
//!
//! ```console
//! $ cargo run -p selvedge-safehome --example two_devices
//! ```

#![allow(
    clippy::std_instead_of_alloc,
    clippy::wildcard_enum_match_arm,
    reason = "a program has the standard library, and acts on a few events"
)]

use core::error::Error;
use std::collections::{BTreeMap, VecDeque};

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Placed, Routine, Step, Visibility};

const WINDOW: NodeId = NodeId(1);
const FAN: NodeId = NodeId(2);

/// The result of a run: the states of window and fan, the routines in their serial order, and the
/// routines that were undone.
type End = (Vec<&'static str>, Vec<u64>, Vec<u64>);

/// The inputs from outside, by their second.
fn script() -> [(u64, &'static str, Input<Hub<&'static str>>); 6] {
    let add = |device, state| Input::Command(Command::AddDevice { device, state });
    let submit = |steps: [_; 2]| {
        Input::Command(Command::Submit(Routine {
            steps: steps.into(),
        }))
    };
    let minute = |device, value| Step {
        hold: Span::secs(60),
        ..Step::new(device, value)
    };
    let air = [minute(WINDOW, "open"), minute(FAN, "on")];
    let calm = [Step::new(WINDOW, "ajar"), Step::new(FAN, "low")];
    let window = Member {
        id: WINDOW,
        ..Member::new(0, 0)
    };
    [
        (0, "there is a window", add(WINDOW, Some("shut"))),
        (0, "there is a fan", add(FAN, Some("off"))),
        (
            0,
            "routine 1 is submitted: a minute with the window open, then one with the fan",
            submit(air),
        ),
        (
            10,
            "routine 2 is submitted: window ajar, fan low",
            submit(calm),
        ),
        // Both of these are from a membership service.
        (
            90,
            "the window fails",
            Input::Membership(Delta::Failed(window)),
        ),
        (
            200,
            "the window is back",
            Input::Membership(Delta::Refuted(window)),
        ),
    ]
}

fn simulate(visibility: Visibility) -> Result<End, Box<dyn Error>> {
    println!("{visibility:?}");
    let mut hub = Driver::new(Hub::new(Config::new().with_visibility(visibility))?);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (mut script, mut effects) = (script().into_iter().peekable(), VecDeque::new());
    let mut states = BTreeMap::from([(WINDOW, "shut"), (FAN, "off")]);
    let (mut order, mut undone) = (Vec::new(), Vec::new());
    let mut now = Time::ZERO;
    loop {
        while let Some(Effect::Event(event)) = effects.pop_front() {
            match event {
                // The device does it at once. A device that is down gets no command.
                Event::Issue {
                    device,
                    token,
                    value,
                    routine,
                } => {
                    let by = routine.map_or("the hub".into(), |it| format!("routine {}", it.0));
                    log(now, &format!("{by} sets the {} to {value}", name(device)));
                    states.insert(device, value);
                    let outcome = Outcome::Done;
                    let report = Input::Command(Command::Acted {
                        device,
                        token,
                        outcome,
                    });
                    hub.step(now, &mut rng, report, |it| effects.push_back(it))?;
                }
                Event::Committed(routine) => {
                    log(now, &format!("routine {} is complete", routine.0))
                }
                Event::Aborted { routine, .. } => {
                    log(
                        now,
                        &format!("routine {} needs the window: it is undone", routine.0),
                    );
                    undone.push(routine.0);
                }
                Event::Ordered(Placed::Routine(id)) => order.push(id.0),
                _ => {}
            }
        }
        // A timer of the hub or an input from outside, the earlier of the two.
        let due = hub.deadline();
        let next = script.next_if(|(second, ..)| due.is_none_or(|due| at(*second) <= due));
        if let Some((second, text, input)) = next {
            now = at(second);
            log(now, text);
            hub.step(now, &mut rng, input, |it| effects.push_back(it))?;
        } else if let Some(due) = due {
            now = due;
            hub.expire(now, &mut rng, |it| effects.push_back(it));
        } else {
            return Ok((states.into_values().collect(), order, undone));
        }
    }
}

const fn at(second: u64) -> Time {
    Time(second * 1_000_000)
}

fn log(now: Time, text: &str) {
    println!("{:>5} s: {text}", now.0 / 1_000_000);
}

fn name(device: NodeId) -> &'static str {
    if device == WINDOW { "window" } else { "fan" }
}

fn main() -> Result<(), Box<dyn Error>> {
    // Each routine was done with the window when it failed: both are complete, one after the other.
    let end = simulate(Visibility::Eventual)?;
    assert_eq!(end, (vec!["ajar", "low"], vec![1, 2], vec![]));
    // One routine at a time, and none that needs a device which fails meanwhile: neither stands.
    let end = simulate(Visibility::GlobalStrict)?;
    assert_eq!(end, (vec!["shut", "off"], vec![], vec![1, 2]));
    println!("both ends are as expected");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_visibility_has_its_own_end() {
        super::main().unwrap();
    }
}
