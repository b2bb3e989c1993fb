//! The clocks that a leader counts.

use selvedge_core::{Member, NodeId, Span};
use selvedge_kgroup::routines::{Definition, RoutineEvent};
use selvedge_kgroup::{Answer, Due};
use selvedge_routine::trigger::Trigger;

use super::{ASKER, Bench, routine, set};

const VOTERS: [NodeId; 3] = [NodeId(1), NodeId(2), ASKER.id];

fn timed() -> Definition {
    routine(vec![set(1)]).with_trigger(Trigger::Every(Span::secs(60)))
}

impl Bench {
    /// A clock of a node shows this occurrence. Answers are not looked at.
    fn report(&mut self, node: u64, occurrence: u64, is_late: bool) {
        let due = Due {
            since: 0,
            trigger: 0,
            occurrence,
            is_late,
        };
        let from = Member::new(node, 0);
        self.step(|leader, state, out| {
            leader.on_due(state, from, due, &VOTERS, out);
            let answer = Answer::Counted(due);
            let counted = selvedge_kgroup::check::leaders::Effect::Answer { to: from, answer };
            assert_eq!(out.remove(0), counted);
        });
    }
}

#[test]
fn an_occurrence_comes_when_a_quorum_of_clocks_has_reached_it() {
    let mut bench = Bench::new(timed());
    bench.report(1, 4, false);
    bench.report(1, 5, false);
    assert_eq!(bench.state.occurrence(0), None);
    bench.report(2, 4, false);
    assert_eq!(bench.state.occurrence(0), Some(4));
    assert_eq!(bench.state.instance(), 0, "the first one starts nothing");
    bench.report(2, 5, false);
    assert_eq!(
        (bench.state.occurrence(0), bench.state.instance()),
        (Some(5), 1)
    );
    // Late reports of other clocks, and of this one again.
    bench.report(9, 5, false);
    bench.report(9, 4, false);
    assert_eq!(
        (bench.state.occurrence(0), bench.state.instance()),
        (Some(5), 1)
    );
}

#[test]
fn a_clock_that_is_far_ahead_is_one_clock() {
    let mut bench = Bench::new(timed());
    bench.report(1, 4, false);
    bench.report(2, u64::MAX, false);
    assert_eq!(bench.state.occurrence(0), Some(4));
    bench.report(9, 5, false);
    assert_eq!(bench.state.occurrence(0), Some(5));
    assert_eq!(bench.state.instance(), 1);
    // It is set right: then it is one of the right ones.
    bench.report(2, 6, false);
    assert_eq!(bench.state.occurrence(0), Some(5));
    bench.report(1, 6, false);
    assert_eq!(bench.state.occurrence(0), Some(6));
}

#[test]
fn a_node_that_does_not_vote_and_an_unknown_trigger_are_not_counted() {
    let mut bench = Bench::new(timed());
    bench.report(1, 4, false);
    bench.report(7, 4, false);
    assert_eq!(bench.state.occurrence(0), None);
    let due = Due {
        since: 0,
        trigger: 1,
        occurrence: 4,
        is_late: false,
    };
    for from in VOTERS {
        bench.step(|leader, state, out| {
            let from = Member { id: from, ..ASKER };
            leader.on_due(state, from, due, &VOTERS, out);
            out.clear();
        });
    }
    assert_eq!(bench.state.occurrence(1), None);
}

#[test]
fn an_occurrence_that_is_late_by_a_quorum_of_clocks_is_left_out() {
    let mut bench = Bench::new(timed());
    bench.report(1, 4, false);
    bench.report(2, 4, false);
    bench.report(1, 5, true);
    bench.report(2, 5, false);
    assert_eq!(bench.state.instance(), 1, "it is in time by one of two");
    bench.report(1, 9, true);
    bench.report(2, 9, true);
    assert_eq!(
        (bench.state.occurrence(0), bench.state.instance()),
        (Some(9), 1)
    );
    let left_out = RoutineEvent::LeftOut {
        trigger: 0,
        occurrence: 9,
        count: 4,
    };
    assert_eq!(bench.events.last(), Some(&left_out));
}
