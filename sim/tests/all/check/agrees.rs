//! The explorer here and stateright's searches see the same states.

use selvedge_core::{Context, Delta, Incarnation, Input, Member, Ratio, Span};
use selvedge_sim::check::{Bounds, COMPLETE, Limits, Model};
use stateright::{Checker, Model as _};

use crate::check::toy::{Toy, member, seen, toys};

/// A bit of everything: timers, coins, multicasts, refusals.
fn busy(toy: &mut Toy, input: Input<Toy>, cx: &mut Context<'_, Toy>) -> Result<(), &'static str> {
    match input {
        Input::Command(number) => {
            cx.multicast(number);
            cx.arm(number, Span::secs(1));
        }
        Input::Tick(timer) => {
            if cx.chance(Ratio::new(1, 3)) {
                let to = member(10 * cx.below(3));
                cx.send(to, timer + 10);
            } else {
                cx.disarm(timer + 1);
            }
        }
        Input::Message { .. } if toy.seen.len() >= 2 => return Err("full"),
        Input::Message { message, from } => {
            toy.seen.push(message);
            if message < 10 {
                cx.send(from, message + 20);
            }
        }
        Input::Membership(_) => toy.seen.clear(),
    }
    Ok(())
}

fn model(bounds: Bounds) -> Model<Toy> {
    toys(3, busy)
        .commands(0, [1])
        .commands(1, [2])
        .deltas(0, [Delta::Failed(member(10))])
        .bounds(bounds)
        .restart(|node, life, _| {
            let mut toy = Toy::new(10 * node as u64, busy);
            toy.me.incarnation = Incarnation(life);
            toy
        })
}

fn faults() -> [Bounds; 4] {
    let quiet = Bounds {
        early_ticks: Some(0),
        ..Bounds::default()
    };
    [
        quiet,
        Bounds { drops: 1, ..quiet },
        Bounds {
            duplicates: 1,
            ticks: Some(1),
            ..Bounds::default()
        },
        Bounds {
            crashes: 1,
            restarts: 1,
            early_ticks: Some(1),
            ..quiet
        },
    ]
}

#[test]
fn counts_are_those_of_stateright() {
    for bounds in faults() {
        let model = model(bounds).always("true", |_| true);
        let ours = model.verify().unwrap();
        println!("{ours} states with {bounds}");
        let bfs = model
            .clone()
            .for_stateright(&Limits::default())
            .checker()
            .spawn_bfs()
            .join();
        assert!(bfs.is_done());
        assert_eq!(bfs.unique_state_count(), ours, "{bounds}");
        let dfs = model
            .for_stateright(&Limits::default())
            .checker()
            .spawn_dfs()
            .join();
        assert!(dfs.is_done());
        assert_eq!(dfs.unique_state_count(), ours, "{bounds}");
    }
}

#[test]
fn counterexamples_are_as_short_as_those_of_stateright() {
    for bounds in faults() {
        let name = "node 2 never hears two";
        let model = model(bounds).always(name, |state| seen(state, 2).len() < 2);
        let ours = model.check(&Limits::default()).remove(0);
        let theirs = model
            .for_stateright(&Limits::default())
            .checker()
            .spawn_bfs()
            .join();
        let path = theirs.discovery(name).unwrap().into_actions();
        assert_eq!((ours.outcome_name(), ours.steps), ("breaks", path.len()));
    }
}

#[test]
fn a_step_that_cannot_be_explored_breaks_a_property_there() {
    let endless = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        while cx.below(2) == 0 {}
        Ok(())
    };
    let model = toys(1, endless)
        .commands(0, [0])
        .sometimes("true", |_| true);
    let theirs = model
        .for_stateright(&Limits::default())
        .checker()
        .spawn_bfs()
        .join();
    assert!(theirs.discovery(COMPLETE).is_some());
    // And so does a model that cannot begin.
    let ill = toys(1, endless)
        .start(|_, _, _, _| Err("ill"))
        .sometimes("true", |_| true);
    assert!(
        ill.for_stateright(&Limits::default())
            .checker()
            .spawn_bfs()
            .join()
            .discovery(COMPLETE)
            .is_some()
    );
}

#[test]
fn a_member_that_is_not_there_gets_nothing() {
    let stranger = |_: &mut Toy, _, cx: &mut Context<'_, Toy>| {
        cx.send(Member::new(99, 0), 1);
        Ok(())
    };
    let model = toys(1, stranger)
        .commands(0, [0])
        .always("nothing on its way", |state| state.letters().len() == 0);
    assert_eq!(model.verify().unwrap(), 2);
}
