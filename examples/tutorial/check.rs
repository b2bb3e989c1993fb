//! The lock in every order of events.

use selvedge_core::Member;
use selvedge_sim::check::{Bounds, Model};

use crate::machine::{Command, Lock, Rules, Stage};

// ANCHOR: model
/// A server and two clients that enter twice each, on a network that may lose two messages.
pub(crate) fn model(rules: Rules) -> Model<Lock> {
    let server = Member::new(0, 0);
    let nodes = (0..3).map(|id| Lock::new(Member::new(id, 0), server, rules));
    let turns = [Command::Enter, Command::Exit, Command::Enter, Command::Exit];
    let inside = |lock: &&Lock| lock.stage == Stage::Inside;
    Model::new(nodes.collect(), |lock| lock.me)
        .commands(1, turns.clone())
        .commands(2, turns)
        .bounds(Bounds {
            drops: 2,
            early_ticks: Some(1),
            ..Bounds::default()
        })
        .show(|lock| format!("{:?}, holder {:?}", lock.stage, lock.holder))
        .always("one is inside", move |state| {
            state.machines().filter(inside).count() <= 1
        })
        .progress("no client waits for ever", |state| {
            state.machines().all(|lock| lock.stage != Stage::Asking)
        })
}
// ANCHOR_END: model

#[cfg(test)]
mod tests {
    use selvedge_sim::check::Limits;

    use super::*;

    #[test]
    fn an_ask_that_overtakes_a_release_lets_two_in_with_the_first_lock() {
        let found = model(Rules::First).verify().unwrap_err();
        assert_eq!(found.to_string(), include_str!("first.txt").trim_end());
    }

    #[test]
    fn a_lost_release_stops_the_numbered_lock() {
        let found = model(Rules::Numbers).verify().unwrap_err();
        assert_eq!(found.to_string(), include_str!("numbers.txt").trim_end());
        let reports = model(Rules::Numbers).check(&Limits::default());
        let inside = reports.iter().find(|it| it.property == "one is inside");
        assert_eq!(inside.unwrap().outcome_name(), "holds");
    }

    // ANCHOR: holds
    #[test]
    fn the_lock_that_reminds_holds() {
        assert_eq!(model(Rules::Reminds).verify().unwrap(), 12_186);
    }
    // ANCHOR_END: holds

    #[test]
    fn a_holder_that_crashes_never_releases() {
        let bounds = Bounds {
            crashes: 1,
            early_ticks: Some(1),
            ..Bounds::default()
        };
        let found = model(Rules::Reminds).bounds(bounds).verify().unwrap_err();
        assert!(
            found.to_string().starts_with("no client waits for ever"),
            "{found}"
        );
    }
}
