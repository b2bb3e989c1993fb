//! Every outcome of every choice is explored, however unlikely.

use selvedge_core::{Context, Input, Ratio, WeightTree};
use selvedge_sim::check::{Incomplete, Limits, Outcome};

use crate::check::toy::{Toy, seen, toys};

fn draw(toy: &mut Toy, _: Input<Toy>, cx: &mut Context<'_, Toy>) -> Result<(), &'static str> {
    let mut weights = WeightTree::default();
    for weight in [0, 1, 1_000_000] {
        weights.push(weight);
    }
    let die = u8::try_from(cx.below(6)).unwrap();
    let coin = cx.chance(Ratio::new(1, 1_000_000));
    let drawn = u8::try_from(cx.weighted(&weights).unwrap()).unwrap();
    toy.seen = vec![die, u8::from(coin), drawn];
    Ok(())
}

#[test]
fn all_outcomes_of_a_step_are_states() {
    let model = toys(1, draw)
        .commands(0, [0])
        .sometimes("the rarest", |state| seen(state, 0) == [5, 1, 1])
        .always("never a weight of 0", |state| {
            seen(state, 0).last() != Some(&0)
        });
    assert_eq!(model.verify().unwrap(), 1 + 6 * 2 * 2);
}

#[test]
fn outcomes_that_lead_to_one_state_are_one_state() {
    let parity = |toy: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        toy.seen = vec![u8::try_from(cx.below(100) % 2).unwrap()];
        Ok(())
    };
    let model = toys(1, parity).commands(0, [0]).always("true", |_| true);
    assert_eq!(model.verify().unwrap(), 3);
}

#[test]
fn starts_may_choose_too() {
    let model = toys(2, draw)
        .start(|_, _, toy, cx| {
            toy.seen = vec![u8::try_from(cx.below(3)).unwrap()];
            Ok(())
        })
        .always("not both 2", |state| {
            seen(state, 0) != [2] || seen(state, 1) != [2]
        });
    let broken = model.verify().unwrap_err();
    assert_eq!((broken.0.steps, broken.0.states), (0, 9));
    let Outcome::Breaks { trace } = &broken.0.outcome else {
        panic!("{broken:?}");
    };
    assert!(
        trace.start.iter().all(|node| node.contains("seen: [2]")),
        "{trace}"
    );
}

#[test]
fn the_trace_names_the_choices() {
    let model = toys(1, draw)
        .commands(0, [0])
        .always("not that", |state| seen(state, 0) != [4, 1, 2]);
    let broken = model.verify().unwrap_err().to_string();
    assert!(
        broken.contains("(choosing 4 below 6, yes, outcome 2, one of 2)"),
        "{broken}"
    );
}

fn why(rule: crate::check::toy::Rule) -> Incomplete {
    let limits = Limits {
        choices: 50,
        ..Limits::default()
    };
    let model = toys(1, rule).commands(0, [0]).always("true", |_| true);
    match model.check(&limits).remove(0).outcome {
        Outcome::Truncated { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn too_many_sequences_are_no_proof() {
    let wide = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        cx.below(51);
        Ok(())
    };
    assert_eq!(why(wide), Incomplete::Choices { node: 0, limit: 50 });
}

#[test]
fn a_draw_without_end_is_no_proof() {
    let endless = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        while cx.below(2) == 0 {}
        Ok(())
    };
    assert_eq!(why(endless), Incomplete::Endless { node: 0 });
}

#[test]
fn a_hidden_state_that_decides_is_no_proof() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static HIDDEN: AtomicU64 = AtomicU64::new(2);
    let hidden = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        cx.below(HIDDEN.fetch_add(1, Ordering::Relaxed));
        Ok(())
    };
    assert_eq!(why(hidden), Incomplete::Unrepeatable { node: 0 });
}
