//! Clauses as rows of parts, and the devices that they name.

use selvedge_core::NodeId;
use selvedge_routine::{Clause, Comparison, Condition, State};

fn is(device: u64) -> Clause<State> {
    Clause::Is(Condition {
        device: NodeId(device),
        comparison: Comparison::Equal,
        value: "on".into(),
    })
}

fn not(clause: Clause<State>) -> Clause<State> {
    Clause::Not(Box::new(clause))
}

fn some() -> Clause<State> {
    let inner = Clause::Any(vec![is(2), not(is(1)), Clause::All(vec![])]);
    Clause::All(vec![is(1), not(inner), is(3)])
}

#[test]
fn a_clause_is_sent_and_read_as_it_was() {
    for clause in [is(1), not(not(is(1))), some(), Clause::Any(vec![])] {
        let text = serde_json::to_string(&clause).unwrap();
        assert_eq!(
            serde_json::from_str::<Clause<State>>(&text).unwrap(),
            clause
        );
    }
}

#[test]
fn parts_that_are_too_many_or_do_not_fit_are_refused() {
    let most = Clause::<State>::MOST;
    let text = |clause| serde_json::to_string(&clause).unwrap();
    let read = |text: &str| serde_json::from_str::<Clause<State>>(text);
    let deep = |parts: usize| (1..parts).fold(is(1), |clause, _| not(clause));
    assert_eq!(read(&text(deep(most))).unwrap(), deep(most));
    let error = read(&text(deep(most + 1))).unwrap_err().to_string();
    assert!(error.contains("too many parts"), "{error}");
    for wrong in [
        "[]",
        r#"["Not"]"#,
        r#"[{"All": 2}, "Not"]"#,
        r#"[{"Any": 0}, {"Any": 0}]"#,
        r#"[{"Any": 4000000000}]"#,
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains("do not fit"), "{wrong}: {error}");
    }
}

#[test]
fn a_clause_knows_its_devices_and_joins_another() {
    let devices = |clause: &Clause<State>| clause.devices().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(devices(&some()), [1, 2, 1, 3]);
    assert_eq!(some().size(), 9);
    assert!(is(1).single().is_some() && some().single().is_none());
    assert_eq!(is(1).and(is(2)), Clause::All(vec![is(1), is(2)]));
    let both = some().and(Clause::All(vec![is(9)]));
    assert_eq!(devices(&both), [1, 2, 1, 3, 9]);
    assert!(matches!(&both, Clause::All(four) if four.len() == 4));
    assert!(both.asks(NodeId(9)) && !both.asks(NodeId(8)));
}
