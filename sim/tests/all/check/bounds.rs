//! Each kind of fault happens as often as its bound allows, and no more.

use selvedge_core::Delta;
use selvedge_sim::check::{Bounds, Model};

use crate::check::toy::{Toy, member, remember, seen, toys};

fn two() -> Model<Toy> {
    toys(2, remember)
}

/// All that node 1 can have seen in the end: with nothing more on its way to it, nor to be asked.
fn endings(model: Model<Toy>, commands: u32) -> Vec<Vec<u8>> {
    use std::sync::{Arc, Mutex};
    let found = Arc::new(Mutex::new(std::collections::BTreeSet::new()));
    let sink = Arc::clone(&found);
    let model = model.always("noted", move |state| {
        let over = state.letters().len() == 0 && state.node(0).unwrap().issued() == commands;
        if over {
            sink.lock().unwrap().insert(seen(state, 1).to_vec());
        }
        true
    });
    model.verify().unwrap();
    let found = found.lock().unwrap();
    found.iter().cloned().collect()
}

#[test]
fn without_faults_every_order_arrives_once() {
    let model = two().commands(0, [1, 2]);
    assert_eq!(endings(model, 2), [[1, 2], [2, 1]]);
}

#[test]
fn a_run_without_faults_has_the_states_counted_by_hand() {
    // Issued 0; issued 1 with the letter on its way or read; issued 2 with both on their way,
    // 1 read, 2 read, both read in two orders.
    let model = two().commands(0, [1, 2]).always("true", |_| true);
    assert_eq!(model.verify().unwrap(), 1 + 2 + 5);
}

#[test]
fn one_drop_loses_one() {
    let bounds = Bounds {
        drops: 1,
        ..Bounds::default()
    };
    let all = endings(two().commands(0, [1, 2]).bounds(bounds), 2);
    assert_eq!(all, [vec![1], vec![1, 2], vec![2], vec![2, 1]]);
}

#[test]
fn one_duplicate_arrives_twice() {
    let bounds = Bounds {
        duplicates: 1,
        ..Bounds::default()
    };
    let all = endings(two().commands(0, [1]).bounds(bounds), 1);
    assert_eq!(all, [vec![1], vec![1, 1]]);
}

#[test]
fn equal_letters_are_two_letters() {
    assert_eq!(endings(two().commands(0, [7, 7]), 2), [[7, 7]]);
}

#[test]
fn ticks_are_counted() {
    let run = |ticks| {
        let bounds = Bounds {
            ticks,
            ..Bounds::default()
        };
        two()
            .commands(0, [50, 50, 50])
            .bounds(bounds)
            .always("true", |_| true)
            .sometimes("ticks twice", |state| seen(state, 0).len() == 2)
            .sometimes("ticks thrice", |state| seen(state, 0).len() == 3)
            .check(&Default::default())
            .iter()
            .map(|report| report.outcome_name())
            .collect::<Vec<_>>()
    };
    assert_eq!(run(None), ["holds", "holds", "holds"]);
    assert_eq!(run(Some(2)), ["holds", "holds", "breaks"]);
    assert_eq!(run(Some(1)), ["holds", "breaks", "breaks"]);
}

#[test]
fn early_ticks_are_those_with_a_letter_on_its_way() {
    let early = |early_ticks| {
        let bounds = Bounds {
            early_ticks,
            ..Bounds::default()
        };
        // Node 0 arms two timers, then sends. The letter is on its way while timers fire.
        two()
            .commands(0, [50, 51, 1])
            .bounds(bounds)
            .sometimes("one early", |state| {
                state.is_busy() && seen(state, 0) == [150] && state.left().ticks.is_none()
            })
            .sometimes("both after it was sent", |state| {
                state.is_busy() && seen(state, 0).len() == 2
            })
            .progress("both tick", |state| seen(state, 0).len() == 2)
            .check(&Default::default())
            .iter()
            .map(|report| (report.outcome_name(), report.states))
            .collect::<Vec<_>>()
    };
    let [any, one, none] = [None, Some(1), Some(0)].map(early);
    // Without early ticks both can still fire before the letter is sent, or after it arrived.
    assert!(none.iter().all(|&(outcome, _)| outcome == "holds"));
    assert!(one[0].1 > none[0].1, "{one:?} {none:?}");
    assert!(any.iter().all(|&(outcome, _)| outcome == "holds"));
}

#[test]
fn no_early_tick_while_a_letter_is_on_its_way() {
    // The timer is armed by the same command that sends, so only an early tick precedes arrival.
    let model = |early_ticks| {
        toys(2, |toy, input, cx| {
            if let selvedge_core::Input::Command(_) = input {
                cx.arm(1, selvedge_core::Span::secs(1));
                cx.send(member(10), 1);
                return Ok(());
            }
            remember(toy, input, cx)
        })
        .commands(0, [1])
        .bounds(Bounds {
            early_ticks,
            ..Bounds::default()
        })
        .always("arrival before timeout", |state| {
            seen(state, 0).is_empty() || !seen(state, 1).is_empty()
        })
    };
    assert_eq!(model(Some(0)).verify().unwrap(), 4);
    let early = model(Some(1)).verify().unwrap_err();
    assert_eq!((early.0.outcome_name(), early.0.steps), ("breaks", 2));
}

#[test]
fn each_delta_is_told_once_and_confirmed_only_of_the_dead() {
    let deltas = [Delta::Suspected(member(10)), Delta::Confirmed(member(10))];
    let bounds = |deltas| Bounds {
        crashes: 1,
        deltas,
        ..Bounds::default()
    };
    let model = |limit| {
        two()
            .deltas(0, deltas)
            .bounds(bounds(limit))
            .crash_when(|_, node| node == 1)
            .always("two at most", |state| seen(state, 0).len() <= 2)
            .always("the second means death", |state| {
                seen(state, 0).len() < 2 || !state.node(1).unwrap().is_up()
            })
            .sometimes("two", |state| seen(state, 0).len() == 2)
    };
    // Up: no delta or the suspicion received. Down: any of the four.
    assert_eq!(model(None).verify().unwrap(), 2 + 4);
    let one = model(Some(1)).verify().unwrap_err();
    assert_eq!(one.0.property, "two");
    // A guard set by the test replaces the default one.
    let lies = model(None).delta_when(|_, _, _| true).verify().unwrap_err();
    assert_eq!(lies.0.property, "the second means death");
}

#[test]
fn a_multicast_reaches_whom_it_can() {
    let model = |reach: Option<Vec<usize>>| {
        let model = toys(3, |toy, input, cx| {
            if let selvedge_core::Input::Command(number) = input {
                cx.multicast(number);
                return Ok(());
            }
            remember(toy, input, cx)
        })
        .commands(0, [1])
        .always("not to oneself", |state| seen(state, 0).is_empty())
        .progress("all others", |state| {
            seen(state, 1) == [1] && seen(state, 2) == [1]
        });
        match reach {
            Some(others) => model.reach(0, others),
            None => model,
        }
    };
    assert_eq!(model(None).verify().unwrap(), 1 + 4);
    assert_eq!(model(Some(vec![1, 2])).verify().unwrap(), 1 + 4);
    assert!(model(Some(vec![2])).verify().is_err());
}

#[test]
fn a_refused_command_waits() {
    let rule = |toy: &mut Toy, input, cx: &mut selvedge_core::Context<'_, Toy>| match input {
        selvedge_core::Input::Command(9) if toy.seen.is_empty() => Err("not yet"),
        selvedge_core::Input::Command(9) => {
            toy.seen.push(9);
            Ok(())
        }
        other => remember(toy, other, cx),
    };
    let model = toys(2, rule)
        .commands(0, [1])
        .commands(1, [9])
        .always("in order", |state| seen(state, 1) != [9])
        .progress("in the end", |state| seen(state, 1) == [1, 9])
        .never_rejects("a refused command is no defect");
    assert_eq!(model.verify().unwrap(), 4);
}

#[test]
fn a_timer_that_outlasts_another_one_fires_after_it() {
    let first = |rule: bool| {
        let model = two().commands(1, [50, 51]).sometimes("151 first", |state| {
            state.node(1).unwrap().issued() == 2 && seen(state, 1) == [151]
        });
        let model = match rule {
            true => model.tick_when(|state, node, timer| {
                timer != 51 || !state.node(node).unwrap().timers().contains(&50)
            }),
            false => model,
        };
        model.verify().is_ok()
    };
    assert!(first(false));
    assert!(!first(true));
}
