//! Facts that are stored late, and crashes that lose them.

use core::ops::ControlFlow;

use selvedge_core::Member;
use selvedge_sim::check::{Bounds, Limits, Model};

use crate::facts::{Counter, Notifier, Voter};

/// Where the voter stands, behind two candidates that ask it once or twice.
const VOTER: usize = 2;

/// Two candidates and one voter, which may crash.
fn election(is_rash: bool, asks: usize) -> Model<Voter> {
    let nodes = (0..3).map(|id| Voter::new(id, is_rash)).collect();
    let ask = vec![Member::new(2, 0); asks];
    Model::new(nodes, |voter| voter.me)
        .commands(0, ask.clone())
        .commands(1, ask)
        .bounds(Bounds {
            crashes: 1,
            restarts: 1,
            ..Bounds::default()
        })
        .crash_when(|_, node| node == VOTER)
        .always("a voter votes once", |state| {
            state.machines().filter(|it| it.is_elected).count() <= 1
        })
        .never_rejects("nothing unexpected arrives")
}

#[test]
fn a_voter_that_stores_its_vote_first_gives_it_once() {
    let model = election(false, 1)
        .durable(0)
        .sometimes("a candidate is elected", |state| {
            state.machines().any(|it| it.is_elected)
        })
        .sometimes("a vote of which nobody heard is lost", |state| {
            let voter = state.node(VOTER).unwrap();
            voter.life() == 1 && voter.machine().vote.is_none() && state.letters().len() == 0
        })
        .sometimes("a vote is stored, and its answer is lost", |state| {
            let voter = state.node(VOTER).unwrap();
            let is_kept = !voter.is_up() && voter.machine().vote.is_some();
            is_kept && !state.is_busy() && !state.machines().any(|it| it.is_elected)
        })
        .sometimes("a stored vote comes back", |state| {
            let voter = state.node(VOTER).unwrap();
            voter.life() == 1 && voter.machine().vote.is_some()
        });
    assert_eq!(model.verify().unwrap(), 80);
}

#[test]
fn a_voter_that_answers_before_it_has_stored_its_vote_gives_it_twice() {
    let model = election(true, 1).durable(0);
    let found = model.verify().unwrap_err();
    let text = found.to_string();
    let steps: Vec<&str> = text.lines().filter(|line| line.contains(". ")).collect();
    assert_eq!(
        steps,
        [
            "  0. start",
            "  1. n0#0 is asked to n2#0",
            "  2. Ask from n0#0 to n2 arrives",
            "  3. Granted from n2#0 to n0 arrives",
            "  4. n1#0 is asked to n2#0",
            "  5. n2#0 crashes",
            "  6. n2#0 restarts",
            "  7. Ask from n1#0 to n2 arrives",
            "  8. Granted from n2#0 to n1 arrives",
        ]
    );
    for line in [
        "a voter votes once (3 nodes, commands 1+1+0, crashes 1, restarts 1, unstored facts 0)",
        "       -> sends Granted to n0#0\n       -> reports Voted(n0), once storage is done",
        "vote: Some(n0), is_elected: false }, 1 wait for storage",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn a_step_of_storage_is_told_with_the_effects_that_waited_for_it() {
    let found = election(false, 1)
        .durable(0)
        .always("no candidate is elected", |state| {
            !state.machines().any(|it| it.is_elected)
        })
        .verify()
        .unwrap_err();
    let text = found.to_string();
    let step =
        "has stored Voted(n0)\n       -> reports Voted(n0)\n       -> sends Granted to n0#0\n";
    assert!(text.contains(step), "{text}");
}

/// A fact waits in a state of its own until it is stored. An event that is no fact waits for
/// nothing.
#[test]
fn events_that_are_no_facts_are_not_stored() {
    for (number, states) in [(1, 2), (2, 3)] {
        let model = Model::with_members(vec![(Member::new(0, 0), Notifier::default())])
            .commands(0, [number])
            .durable(0)
            .always("folded in its time", move |state| {
                let folded = &state.node(0).unwrap().stored().unwrap().folded;
                folded.is_empty() || *folded == [number]
            });
        assert_eq!(model.verify().unwrap(), states, "event {number}");
    }
}

/// Without storage a voter that crashes keeps everything, so the same voter is safe.
#[test]
fn without_storage_nothing_is_lost() {
    let model = election(true, 1).restart(|_, _, voter| voter.clone());
    model.verify().unwrap();
}

/// More facts may wait, so there are more states, and the rule holds in them as well.
#[test]
fn facts_of_later_steps_wait_behind_those_of_earlier_ones() {
    let states = |unstored| election(false, 2).durable(unstored).verify().unwrap();
    assert!(states(0) < states(1));
}

/// A crash loses any number of the last facts, and every message sent rests on the others.
#[test]
fn any_number_of_the_last_facts_is_lost() {
    let nodes = (0..2).map(|id| (Member::new(id, 0), Counter::default()));
    let to = Member::new(1, 0);
    let mut model = Model::with_members(nodes.collect())
        .commands(0, [to, to])
        .bounds(Bounds {
            crashes: 1,
            ..Bounds::default()
        })
        .crash_when(|_, node| node == 0)
        .durable(1)
        .always("a number that was sent is stored", |state| {
            let got = &state.node(1).unwrap().machine().got;
            let stored = state.node(0).unwrap().stored().unwrap().last;
            let sent = state.letters().map(|letter| letter.message());
            sent.chain(got).all(|number| *number <= stored)
        });
    // All three, and each with all, some or none of its effects out.
    for (name, kept, sent) in [
        ("both lost", 0, 0),
        ("one kept, nothing sent", 1, 0),
        ("one kept, one sent", 1, 1),
        ("both kept, nothing sent", 2, 0),
        ("both kept, one sent", 2, 1),
        ("both kept, both sent", 2, 2),
    ] {
        model = model.sometimes(name, move |state| {
            let node = state.node(0).unwrap();
            let got = state.node(1).unwrap().machine().got.len();
            let is_so = node.machine().last == kept && got + state.letters().len() == sent;
            !node.is_up() && node.issued() == 2 && is_so
        });
    }
    let found = model.verify();
    assert!(found.is_ok(), "{}", found.unwrap_err());
}

/// The second engine hashes waiting effects and stored facts by itself, and finds as many states.
#[test]
fn both_engines_agree_on_what_storage_does() {
    for (is_rash, unstored) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let model = election(is_rash, 2).durable(unstored);
        let mut go_on = |_| ControlFlow::Continue(());
        let (reports, verdict) = model.check_both(&Limits::default(), &mut go_on);
        let breaks = reports.iter().any(|it| it.outcome_name() == "breaks");
        assert_eq!(breaks, is_rash);
        println!("rash {is_rash}, unstored {unstored}: {}", verdict.unwrap());
    }
}
