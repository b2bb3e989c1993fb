//! Conclusions of the checker, and cases in which it refuses to conclude.

use core::ops::ControlFlow;

use selvedge_core::{Context, Input, Span};
use selvedge_sim::check::{
    Bounds, Expected, Flaw, Incomplete, Limits, Model, Outcome, Rules, Scenario, verify_ours,
    verify_published,
};

use crate::check::toy::{Toy, member, remember, seen, toys};

type Step = Result<(), &'static str>;

fn first(model: &Model<Toy>) -> Outcome {
    model.check(&Limits::default()).remove(0).outcome
}

fn why(model: &Model<Toy>) -> Incomplete {
    match first(model) {
        Outcome::Truncated { why } => why,
        other => panic!("{other:?}"),
    }
}

fn talk() -> Model<Toy> {
    toys(2, remember).commands(0, [1, 2])
}

#[test]
fn a_counterexample_is_a_shortest_one() {
    let model = talk().always("never 2 first", |state| seen(state, 1).first() != Some(&2));
    let broken = model.verify().unwrap_err();
    assert_eq!((broken.0.outcome_name(), broken.0.steps), ("breaks", 3));
    let expected = "never 2 first (2 nodes, commands 2+0, no faults) breaks after 3 steps
  0. start
       n0#0 = []
       n10#0 = []
  1. n0#0 is asked to 1
       -> sends 1 to n10#0
  2. n0#0 is asked to 2
       -> sends 2 to n10#0
  3. 2 from n0#0 to n10 arrives
       n10#0 = [2]
     here it breaks";
    let shown = model.show(|toy| format!("{:?}", toy.seen)).verify();
    assert_eq!(shown.unwrap_err().to_string(), expected);
}

#[test]
fn progress_finds_a_dead_end_and_a_cycle() {
    // 1 and then 2 is the only way to the goal; 2 first ends.
    let dead_end = talk().progress("1, then 2", |state| seen(state, 1) == [1, 2]);
    assert_eq!(dead_end.verify().unwrap_err().0.steps, 3);
    assert!(
        dead_end
            .verify()
            .unwrap_err()
            .to_string()
            .contains("out of reach")
    );
    // Two that send one letter to and fro for ever: every state has a successor.
    let to_and_fro = |toy: &mut Toy, input, cx: &mut Context<'_, Toy>| -> Step {
        if let Input::Command(number)
        | Input::Message {
            message: number, ..
        } = input
        {
            cx.send(member(10 - toy.me.id.0), number);
        }
        Ok(())
    };
    let cycle = toys(2, to_and_fro).commands(0, [1]).progress_when(
        "silence after the command",
        |state| state.node(0).unwrap().issued() == 1,
        |state| state.letters().len() == 0,
    );
    assert_eq!(cycle.verify().unwrap_err().0.steps, 1);
}

#[test]
fn progress_does_not_count_on_faults() {
    let drops = Bounds {
        drops: 1,
        ..Bounds::default()
    };
    // Both are on their way. That 2 gets lost would be the only way to read 1 alone.
    let both = |left: u32| {
        talk().bounds(drops).progress_when(
            "1 alone in the end",
            move |state| state.letters().len() == 2 && state.left().drops >= left,
            |state| {
                seen(state, 1) == [1]
                    && state.letters().len() == 0
                    && state.node(0).unwrap().issued() == 2
            },
        )
    };
    assert_eq!(both(1).verify().unwrap_err().0.steps, 2);
    // Asked of no state, it holds.
    assert_eq!(
        both(2).verify().unwrap(),
        talk()
            .bounds(drops)
            .always("true", |_| true)
            .verify()
            .unwrap()
    );
}

#[test]
fn sometimes_needs_one_state() {
    let model = talk().sometimes("three", |state| seen(state, 1).len() == 3);
    let report = model.check(&Limits::default()).remove(0);
    assert_eq!((report.outcome_name(), report.complete), ("breaks", true));
    talk()
        .sometimes("two", |state| seen(state, 1).len() == 2)
        .verify()
        .unwrap();
}

#[test]
fn a_refusal_is_found_with_its_reason() {
    let rule = |toy: &mut Toy, input, cx: &mut Context<'_, Toy>| match input {
        Input::Message { message: 2, .. } if toy.seen.is_empty() => Err("1 comes first"),
        other => remember(toy, other, cx),
    };
    let model = toys(2, rule).commands(0, [1, 2]);
    let refused = model
        .clone()
        .never_rejects("takes all")
        .verify()
        .unwrap_err();
    assert_eq!(refused.0.steps, 3);
    assert!(
        refused.to_string().contains("refused: \"1 comes first\""),
        "{refused}"
    );
    // A refused letter is used up, and nothing else changed.
    let model = model
        .always("true", |_| true)
        .sometimes("1 alone, all read", |state| {
            seen(state, 1) == [1]
                && state.letters().len() == 0
                && state.node(0).unwrap().issued() == 2
        });
    model.verify().unwrap();
}

#[test]
fn a_refusal_that_changes_something_is_no_proof() {
    let change = |toy: &mut Toy, _, _: &mut Context<'_, Toy>| -> Step {
        toy.seen.push(0);
        Err("no")
    };
    let send = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| -> Step {
        cx.arm(1, Span::ZERO);
        Err("no")
    };
    for rule in [change as crate::check::toy::Rule, send] {
        let model = toys(1, rule).commands(0, [1]).always("true", |_| true);
        assert_eq!(why(&model), Incomplete::RefusedAndChanged { node: 0 });
    }
}

#[test]
fn a_run_that_was_cut_short_is_no_proof() {
    let model = || talk().always("true", |_| true).progress("true", |_| true);
    assert_eq!(model().verify().unwrap(), 8);
    assert_eq!(
        why(&model().boundary(|state| seen(state, 1).is_empty())),
        Incomplete::Boundary
    );
    let limits = |states| Limits {
        states,
        ..Limits::default()
    };
    let reports = model().check(&limits(7));
    for report in &reports {
        let Outcome::Truncated { why } = &report.outcome else {
            panic!("{report}");
        };
        assert_eq!(*why, Incomplete::States { limit: 7 });
        assert!(!report.complete && !report.as_expected());
    }
    assert!(
        model()
            .check(&limits(8))
            .iter()
            .all(|report| report.as_expected())
    );
}

#[test]
fn the_caller_may_stop_it() {
    // 2 to the 16th states.
    let coins = |toy: &mut Toy, _, cx: &mut Context<'_, Toy>| -> Step {
        toy.seen.push(u8::try_from(cx.below(2)).unwrap());
        Ok(())
    };
    let model = toys(1, coins).commands(0, [0; 16]).always("true", |_| true);
    let mut received = Vec::new();
    let reports = model.check_with(&Limits::default(), &mut |states| {
        received.push(states);
        ControlFlow::Break(())
    });
    assert_eq!(received.len(), 1);
    assert!(matches!(
        &reports[0].outcome,
        Outcome::Truncated {
            why: Incomplete::Stopped
        }
    ));
    assert_eq!(model.verify().unwrap(), (1 << 17) - 1);
}

#[test]
fn a_model_with_a_mistake_says_so() {
    let model = || talk().always("true", |_| true);
    assert_eq!(why(&talk()), Incomplete::NoProperty);
    let restarts = Bounds {
        restarts: 1,
        ..Bounds::default()
    };
    assert_eq!(why(&model().bounds(restarts)), Incomplete::NoRestart);
    let asked = "commands";
    let nodes = 2;
    let stranger = Incomplete::NoSuchNode {
        asked,
        node: 2,
        nodes,
    };
    assert_eq!(why(&model().commands(2, [])), stranger);
    assert!(matches!(
        why(&model().reach(0, [5])),
        Incomplete::NoSuchNode { node: 5, .. }
    ));
    let deltas = vec![selvedge_core::Delta::Joined(member(1)); 64];
    let none_is_notified = Bounds {
        deltas: Some(0),
        ..Bounds::default()
    };
    let model_with_64 = model().deltas(0, deltas).bounds(none_is_notified);
    assert_eq!(model_with_64.verify().unwrap(), 8);
    let deltas = vec![selvedge_core::Delta::Joined(member(1)); 65];
    assert_eq!(
        why(&model().deltas(0, deltas)),
        Incomplete::Deltas {
            node: 0,
            deltas: 65
        }
    );
    let reject = "\"ill\"".to_owned();
    let ill = model().start(|_, _, _, _| Err("ill"));
    assert_eq!(why(&ill), Incomplete::Start { node: 0, reject });
}

#[test]
fn when_one_breaks_the_others_are_open() {
    let model = talk()
        .always("never 1", |state| !seen(state, 1).contains(&1))
        .always("true", |_| true);
    let reports = model.check(&Limits::default());
    assert_eq!(reports[0].outcome_name(), "breaks");
    assert!(matches!(
        &reports[1].outcome,
        Outcome::Truncated {
            why: Incomplete::OtherBroke {
                property: "never 1"
            }
        }
    ));
}

#[test]
fn a_scenario_is_held_to_the_state_and_to_the_step() {
    let holds = |states| {
        let model = || talk().always("true", |_| true);
        Scenario::holds("talk", states, model)
    };
    let report = holds(8).verify().unwrap().remove(0);
    assert_eq!(
        (report.name.as_str(), report.rules, report.complete),
        ("talk", Rules::Ours, true)
    );
    assert!(
        holds(9)
            .verify()
            .unwrap_err()
            .to_string()
            .contains("expected: holds in 9 states")
    );
    let breaks = |steps| {
        let model = || talk().always("never 2", |state| !seen(state, 1).contains(&2));
        Scenario::breaks("talk", steps, model)
    };
    assert_eq!(
        breaks(3).verify().unwrap().remove(0).rules,
        Rules::Published
    );
    assert!(breaks(2).verify().is_err());
    let wrong = || talk().always("true", |_| true);
    let wrong = Scenario::new("talk", Expected::Breaks { steps: 3 }, wrong);
    assert!(wrong.verify().is_err());
}

#[test]
fn a_list_is_held_to_its_pairs() {
    let ours = |name: &str, states| {
        let model = || talk().always("true", |_| true);
        Scenario::holds(name, states, model)
    };
    let theirs = |name: &str, steps| {
        let model = || talk().always("never 2", |state| !seen(state, 1).contains(&2));
        Scenario::breaks(name, steps, model)
    };
    let sound = [ours("a", 8), ours("b", 9).deep(), theirs("a", 3)];
    assert_eq!(verify_ours(&sound).unwrap(), 1);
    assert_eq!(verify_published(&sound).unwrap(), 1);
    assert!(verify_ours(&[ours("a", 9)]).is_err());
    let is_run = verify_ours(&[ours("a large one", 40_001)]).is_err();
    assert_eq!(is_run, cfg!(not(debug_assertions)));
    let late = [ours("a", 8), theirs("a", 4)];
    assert!(matches!(verify_published(&late), Err(Flaw::Surprise(_))));
    // Each list has no quick scenario of this crate beside the published one.
    for alone in [
        [ours("b", 8), theirs("a", 3)],
        [ours("a", 8).deep(), theirs("a", 3)],
    ] {
        assert!(matches!(verify_published(&alone), Err(Flaw::Unpaired(name)) if name == "a"));
    }
}
