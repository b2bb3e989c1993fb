//! A machine that panics breaks a property of every model, and the trace shows how.

use selvedge_core::{Context, Input, Ratio};
use selvedge_sim::check::{
    Bounds, Expected, Incomplete, Limits, Model, NO_PANIC, Outcome, Scenario,
};

use crate::check::toy::{Toy, member, remember, toys};

/// Sends the number of a command to node 10, which adds up numbers and cannot count beyond 255.
fn add(toy: &mut Toy, input: Input<Toy>, cx: &mut Context<'_, Toy>) -> Result<(), &'static str> {
    match input {
        Input::Command(number) => cx.send(member(10), number),
        Input::Message { message, .. } => {
            let sum = toy.seen.pop().unwrap_or(0).checked_add(message);
            assert!(sum.is_some(), "a sum within a byte");
            toy.seen.extend(sum);
        }
        Input::Tick(_) | Input::Membership(_) => {}
    }
    Ok(())
}

fn model() -> Model<Toy> {
    toys(2, add)
        .commands(0, [2, 254])
        .show(|toy| format!("{:?}", toy.seen))
        .always("true", |_| true)
}

#[test]
fn a_panic_is_a_break_with_the_steps_that_lead_there() {
    let reports = model().check(&Limits::default());
    let outcomes: Vec<_> = reports
        .iter()
        .map(|it| (it.property, it.outcome_name()))
        .collect();
    assert_eq!(outcomes, [(NO_PANIC, "breaks"), ("true", "truncated")]);
    let text = model().verify().unwrap_err().to_string();
    let place = text
        .split_once("panicked at ")
        .unwrap()
        .1
        .split_once('\n')
        .unwrap()
        .0;
    assert!(
        place.starts_with("sim/tests/all/check/panics.rs:"),
        "{text}"
    );
    assert!(place.ends_with(": a sum within a byte"), "{text}");
    let expected = format!(
        "no step panics (2 nodes, commands 2+0, no faults) breaks after 4 steps
  0. start
       n0#0 = []
       n10#0 = []
  1. n0#0 is asked to 2
       -> sends 2 to n10#0
  2. 2 from n0#0 to n10 arrives
       n10#0 = [2]
  3. n0#0 is asked to 254
       -> sends 254 to n10#0
  4. 254 from n0#0 to n10 arrives
       -> panicked at {place}
     it panicked"
    );
    assert_eq!(text, expected);
}

/// The same where a break after as many steps is expected.
#[test]
fn a_panic_is_never_what_a_scenario_expects() {
    let scenario = Scenario::new("sums", Expected::Breaks { steps: 4 }, model);
    assert_eq!(scenario.verify().unwrap_err().0.property, NO_PANIC);
}

#[test]
fn a_panic_after_some_choices_is_found_with_them() {
    let gamble = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        assert!(!cx.chance(Ratio::new(1, 2)), "lost");
        Ok(())
    };
    let model = toys(1, gamble).commands(0, [1]).always("true", |_| true);
    let text = model.verify().unwrap_err().to_string();
    assert!(text.contains("1. n0#0 is asked to 1 (choosing"), "{text}");
}

#[test]
fn a_restart_that_panics_is_a_break_and_a_start_that_does_is_no_pass() {
    let faults = Bounds {
        crashes: 1,
        restarts: 1,
        ..Bounds::default()
    };
    let model = toys(1, remember).bounds(faults).always("true", |_| true);
    let restarting = model.clone().restart(|_, life, _| panic!("life {life}"));
    let broken = restarting.verify().unwrap_err();
    assert_eq!((broken.0.property, broken.0.steps), (NO_PANIC, 2));
    assert!(broken.to_string().contains(": life 1"), "{broken}");

    let starting = toys(2, remember).always("true", |_| true);
    let starting = starting.start(|node, _, _, _| {
        assert!(node == 0, "no start");
        Ok(())
    });
    match starting.check(&Limits::default()).remove(0).outcome {
        Outcome::Truncated {
            why: Incomplete::Panicked { node: 1, panic },
        } => {
            assert!(panic.ends_with(": no start"), "{panic}");
        }
        other => panic!("{other:?}"),
    }
}

#[cfg(feature = "stateright")]
#[test]
fn stateright_finds_the_same_panic() {
    use core::ops::ControlFlow;

    use selvedge_sim::check::{COMPLETE, Verdict};
    use stateright::{Checker, Model as _};

    let (_, verdict) = model().check_both(&Limits::default(), &mut |_| ControlFlow::Continue(()));
    match verdict.unwrap() {
        Verdict::Broke {
            property, steps, ..
        } => assert_eq!((property, steps), (NO_PANIC, 4)),
        other => panic!("{other:?}"),
    }
    let sometimes = toys(2, add)
        .commands(0, [2, 254])
        .sometimes("true", |_| true);
    let theirs = sometimes.for_stateright(&Limits::default());
    let theirs = theirs.checker().spawn_bfs().join();
    let steps = theirs.discovery(COMPLETE).unwrap().into_actions();
    let notified: Vec<String> = steps.iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(
        notified,
        [
            "n0#0 is asked to 2",
            "2 from n0#0 to n10 arrives",
            "n0#0 is asked to 254",
            "254 from n0#0 to n10 arrives",
        ]
    );
}
