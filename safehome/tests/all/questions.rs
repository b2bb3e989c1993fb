//! Conditions about several devices, and several conditions about one.

use crate::home;

use home::{Home, MODELS, at, if_it_is, long, maybe, set};
use selvedge_core::{NodeId, Span};
use selvedge_safehome::{
    Clause, Command, Comparison, Condition, Config, Event, Reject, Routine, SkipReason, Step,
    Visibility,
};

fn is(device: u64, value: u8) -> Clause<u8> {
    Clause::Is(Condition {
        device: NodeId(device),
        comparison: Comparison::Equal,
        value,
    })
}

fn only_if(step: Step<u8>, clause: Clause<u8>) -> Step<u8> {
    Step {
        condition: Some(clause),
        ..step
    }
}

fn strict() -> impl Iterator<Item = Config> {
    let models = MODELS.into_iter().filter(|it| *it != Visibility::Weak);
    models.map(|it| Config::default().with_visibility(it))
}

/// The blocks in routine files depend on this.
#[test]
fn a_routine_that_asks_again_gets_the_same_answer_whatever_a_hand_does() {
    for config in strict() {
        let mut home = Home::new(config, 3);
        let first = if_it_is(long(1, 1, Span::secs(2)), 0, 0);
        let other = if_it_is(set(2, 1), 0, 0);
        home.submit(vec![first, other]);
        home.pass(at(1_000));
        home.by_hand(0, 5);
        home.rest();
        assert_eq!(home.states, [5, 1, 1], "{config:?}");
    }
}

#[test]
fn a_condition_about_several_devices_sees_what_stays() {
    for config in strict() {
        for fails in [false, true] {
            let mut home = Home::new(config, 4);
            home.submit(vec![set(0, 1), long(3, 1, Span::secs(5)), set(3, 2)]);
            home.pass(at(100));
            let both = Clause::All(vec![is(1, 0), is(0, 1)]);
            home.submit(vec![only_if(set(2, 1), both)]);
            home.pass(at(1_000));
            assert!(home.issued(2).is_empty(), "the first may still be undone");
            if fails {
                home.flip(3);
            }
            home.rest();
            let expected = u8::from(!fails);
            assert_eq!(home.states[2], expected, "{config:?} {fails}");
        }
    }
}

#[test]
fn what_is_down_fails_a_command_only_where_the_answer_depends_on_it() {
    let down = |clause: Clause<u8>| {
        let mut home = Home::new(Config::default(), 3);
        home.flip(0);
        home.submit(vec![only_if(maybe(2, 1), clause)]);
        home.rest();
        let why = home.events.iter().find_map(|(_, event)| match event {
            Event::Skipped { why, .. } => Some(*why),
            _ => None,
        });
        (home.states[2], why)
    };
    let any = |clauses| Clause::Any(clauses);
    let all = |clauses| Clause::All(clauses);
    let unknown = Some(SkipReason::Down(NodeId(0)));
    assert_eq!(down(any(vec![is(0, 9), is(1, 0)])), (1, None));
    assert_eq!(down(any(vec![is(0, 9), is(1, 9)])), (0, unknown));
    assert_eq!(down(all(vec![is(1, 0), is(0, 0)])), (0, unknown));
    let condition = Some(SkipReason::Condition);
    assert_eq!(down(all(vec![is(0, 0), is(1, 9)])), (0, condition));
    let neither = Clause::Not(Box::new(any(vec![is(0, 9), is(1, 0)])));
    assert_eq!(down(neither), (0, condition));
}

#[test]
fn a_condition_of_too_many_parts_is_refused() {
    let mut home = Home::new(Config::default(), 2);
    let mut submit = |parts: usize| {
        let clause = Clause::Any(vec![is(0, 0); parts - 1]);
        let steps = vec![set(0, 1), only_if(set(1, 1), clause)];
        home.notify(Command::Submit(Routine { steps }))
    };
    assert_eq!(submit(Clause::<u8>::MOST), Ok(()));
    let (number, found) = (1, Clause::<u8>::MOST + 1);
    let refused = submit(found);
    assert_eq!(refused, Err(Reject::LongCondition { number, found }));
    let reported = refused.unwrap_err().to_string();
    assert!(reported.starts_with("the condition of command 2, counted from 1, has 65 parts"));
}

#[test]
fn an_unknown_device_in_a_condition_is_refused() {
    let mut home = Home::new(Config::default(), 2);
    let clause = Clause::All(vec![is(0, 0), is(7, 0)]);
    let steps = vec![only_if(set(1, 1), clause)];
    let refused = home.notify(Command::Submit(Routine { steps }));
    assert_eq!(refused, Err(Reject::UnknownDevice(NodeId(7))));
}
