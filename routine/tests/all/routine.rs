//! The devices of a routine, and the comparisons of its conditions.

use core::cmp::Ordering;

use selvedge_core::NodeId;
use selvedge_routine::{
    Clause, Comparison, Condition, Mode, Number, Priority, Routine, Series, State, Step, Terms,
    Urgency,
};

#[test]
fn conditions_compare_by_the_order_of_states() {
    let part = |it| State::Number(Number::from_thousandths(it).unwrap());
    let states = [part(-1), part(0), part(20_500), "off".into(), "on".into()];
    for (value, state) in states
        .iter()
        .flat_map(|it| states.iter().map(move |other| (it, other)))
    {
        for (comparison, holds_for) in [
            (Comparison::Equal, &[Ordering::Equal][..]),
            (Comparison::NotEqual, &[Ordering::Less, Ordering::Greater]),
            (Comparison::Less, &[Ordering::Less]),
            (Comparison::Greater, &[Ordering::Greater]),
        ] {
            let condition = Condition {
                device: NodeId(1),
                comparison,
                value: value.clone(),
            };
            let expected = holds_for.contains(&state.cmp(value));
            assert_eq!(
                condition.holds(state),
                expected,
                "{state} {comparison:?} {value}"
            );
        }
    }
}

/// All steps with devices 1 and 2, and conditions on 1, 2 and 3.
fn steps() -> Vec<Step<State>> {
    let mut steps = Vec::new();
    for (device, asked) in [1, 2]
        .iter()
        .flat_map(|it| (0..4).map(move |asked| (*it, asked)))
    {
        for priority in [Priority::Must, Priority::BestEffort] {
            let mut step = Step::new(NodeId(device), "on".into());
            step.priority = priority;
            step.condition = (asked > 0).then(|| {
                Clause::Is(Condition {
                    device: NodeId(asked),
                    comparison: Comparison::Equal,
                    value: "on".into(),
                })
            });
            steps.push(step);
        }
    }
    steps
}

/// The way in which a step names a device.
struct Mention {
    step: usize,
    device: NodeId,
    is_commanded: bool,
    must: bool,
}

fn mentions(routine: &Routine<State>) -> Vec<Mention> {
    let mut all = Vec::new();
    for (nth, step) in routine.steps.iter().enumerate() {
        let asked = step
            .condition
            .as_ref()
            .map(|it| (it.devices().next().unwrap(), false));
        for (device, is_commanded) in asked.into_iter().chain([(step.device, true)]) {
            all.push(Mention {
                step: nth,
                device,
                is_commanded,
                must: step.priority == Priority::Must,
            });
        }
    }
    all
}

#[test]
fn a_routine_knows_which_devices_it_needs_and_which_must_answer() {
    let all = steps();
    for (first, second) in all
        .iter()
        .flat_map(|it| all.iter().map(move |other| (it, other)))
    {
        let steps = vec![first.clone(), second.clone()];
        let routine = Routine { steps };
        let mentions = mentions(&routine);
        let mut needed: Vec<NodeId> = Vec::new();
        for it in &mentions {
            if !needed.contains(&it.device) {
                needed.push(it.device);
            }
        }
        assert_eq!(routine.devices(), needed, "{routine:?}");
        for device in (0..5).map(NodeId) {
            let of = || mentions.iter().filter(move |it| it.device == device);
            for from in 0..4 {
                let needs = of().any(|it| it.step >= from);
                assert_eq!(
                    routine.needs(device, from),
                    needs,
                    "{device} {from} {routine:?}"
                );
            }
            let must_command = of().any(|it| it.must && it.is_commanded);
            assert_eq!(
                routine.must_command(device),
                must_command,
                "{device} {routine:?}"
            );
            let must_reach = of().any(|it| it.must);
            assert_eq!(
                routine.must_reach(device),
                must_reach,
                "{device} {routine:?}"
            );
        }
    }
}

#[test]
fn terms_are_those_that_were_asked_for() {
    let series = || Series {
        key: "evening".into(),
        mode: Mode::Restart,
    };
    let calm = Terms::of("evening", Mode::Restart);
    let (series, urgency) = (Some(series()), Urgency(0));
    assert_eq!(
        calm,
        Terms {
            series: series.clone(),
            urgency
        }
    );
    assert_eq!((calm.key(), calm.mode()), (Some("evening"), Mode::Restart));
    let urgency = Urgency(9);
    assert_eq!(calm.with_urgency(urgency), Terms { series, urgency });
    let alone = Terms::urgent(urgency);
    let series = None;
    assert_eq!((alone.key(), alone.mode()), (None, Mode::Parallel));
    assert_eq!(alone, Terms { series, urgency });
    assert_eq!(urgency.to_string(), "9");
}
