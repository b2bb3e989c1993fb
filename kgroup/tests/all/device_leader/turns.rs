//! Turns of leaders.

use super::*;

#[test]
fn a_release_takes_nothing_from_other_routines_in_whatever_order_their_ids_are() {
    for (first, next) in [(1, 2), (2, 1)] {
        let mut bench = Bench::new(Limits::new());
        let (first, next) = (claim(first, 1), claim(next, 1));
        bench.ask(lock(LAMP, first));
        bench.ask(lock(LAMP, next));
        bench.ask(release(LAMP, first));
        assert_eq!(bench.state.holder(LAMP), Some(next));
    }
}

/// Any other decisions about the device may come meanwhile.
#[test]
fn a_report_is_proposed_once_while_the_status_stays() {
    let mut bench = Bench::new(Limits::new());
    let reported =
        bench.call(|leader, state, out| leader.reported(state, LAMP, Some("on".into()), out));
    reported.unwrap();
    let report = bench.proposed.clone();
    assert_eq!(report.len(), 1);
    let one = claim(1, 1);
    bench.call(|leader, state, out| leader.on_asked(state, HERE, lock(LAMP, one), out));
    let lock = bench.proposed.remove(1);
    bench.decide_on(&lock);
    assert_eq!(bench.state.holder(LAMP), Some(one));
    assert_eq!(bench.proposed, report);
}
