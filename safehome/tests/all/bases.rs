//! The storage of a host that stopped while it stored a new base.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, at, long, set};
use selvedge_core::{NodeId, Span};
use selvedge_safehome::{Command, Config, Damage, Difference, Hub, Saved, Visibility};

/// A base, the differences behind it and, for each, the state with it.
struct Stored {
    home: Home,
    base: Saved<u8>,
    differences: Vec<Difference<u8>>,
    states: Vec<Saved<u8>>,
}

impl Stored {
    /// Stores the changes.
    fn store(&mut self) {
        let mut last = self.states.last().unwrap_or(&self.base).clone();
        let difference = self.home.hub.machine().difference(&mut last);
        self.differences.push(difference);
        self.states.push(last);
    }

    /// The last stored state.
    fn now(&self) -> &Saved<u8> {
        self.states.last().unwrap()
    }
}

/// A run in which routines come and finish, devices fail and are changed by hand.
fn stored() -> Stored {
    let mut home = Home::new(Config::default(), 4);
    home.submit(vec![set(0, 1), long(1, 1, Span::secs(60))]);
    home.pass(at(1_000));
    let mut stored = Stored {
        base: home.hub.machine().save(),
        home,
        differences: Vec::new(),
        states: Vec::new(),
    };
    for nth in 0..4 {
        stored.home.submit(vec![set(2, nth), set(0, nth)]);
        stored.store();
        stored.home.wait(Span::millis(30));
        stored.home.by_hand(3, nth);
        stored.store();
        stored.home.wait(Span::millis(500));
        stored.store();
    }
    stored.home.flip(2);
    stored.store();
    // No earlier routine is unfinished any more.
    stored.home.wait(Span::secs(70));
    stored.store();
    stored
}

fn read(base: &Saved<u8>, differences: &[Difference<u8>]) -> Result<Saved<u8>, Damage> {
    let mut differences = differences.iter();
    differences.try_fold(base.clone(), |state, it| state.apply(it.clone()))
}

/// The new base is stored and the old differences are dropped after that, in any order. Whichever
/// of them remain, the state is the stored one, and later differences apply to it.
#[test]
fn a_new_base_passes_over_what_is_left_of_the_differences_before_it() {
    let mut old = stored();
    let saved = old.home.hub.machine().save();
    let all = old.differences.len();
    let kept = old.now().clone();
    old.home.submit(vec![set(0, 9)]);
    old.store();
    let next = old.differences[all..].to_vec();
    for base in [&saved, &kept] {
        for from in 0..=all {
            for to in from..=all {
                let left = &old.differences[from..to];
                assert_eq!(read(base, left).as_ref(), Ok(&saved), "{from}..{to}");
                let left = [left, &next].concat();
                let after = read(base, &left);
                assert_eq!(after.as_ref(), Ok(old.now()), "{from}..{to} and one more");
                let hub = Hub::restore(Config::default(), after.unwrap()).unwrap();
                assert_eq!(hub.save(), old.home.hub.machine().save());
            }
        }
    }
    // No new base was stored: all are needed.
    assert_eq!(read(&old.base, &old.differences).as_ref(), Ok(old.now()));
    for ended in 0..all {
        let mut left = old.differences.clone();
        left.remove(ended);
        let found = read(&old.base, &left);
        assert!(
            matches!(found, Err(Damage::Gap { .. })),
            "without {ended}: {found:?}"
        );
    }
}

/// A restored hub continues the count of steps, so older records are recognized as old.
#[test]
fn a_hub_that_comes_back_goes_on_counting() {
    let mut old = stored();
    let hub = Hub::restore(Config::default(), old.now().clone()).unwrap();
    old.home.hub = selvedge_core::Driver::new(hub);
    assert_eq!(old.home.hub.machine().save(), *old.now());
    old.home.notify(Command::Resume).unwrap();
    old.store();
    old.home.submit(vec![set(1, 5)]);
    old.store();
    let base = old.home.hub.machine().save();
    assert_eq!(read(&base, &old.differences), Ok(base));
    assert_eq!(read(&old.base, &old.differences).as_ref(), Ok(old.now()));
}

/// The stored state has another model, though no step was taken under it.
#[test]
fn a_difference_without_a_step_tells_of_another_model() {
    let mut home = Home::new(Config::default(), 1);
    home.submit(vec![set(0, 1)]);
    home.rest();
    let base = home.hub.machine().save();
    let config = Config::default().with_visibility(Visibility::GlobalStrict);
    let hub = Hub::restore(config, base.clone()).unwrap();
    let mut last = base.clone();
    let difference = hub.difference(&mut last);
    assert_eq!(base.apply(difference), Ok(hub.save()));
}

/// No hub takes this number of steps; a state with such a number is damaged, and is refused.
#[test]
fn a_number_at_its_end_is_refused() {
    let home = Home::new(Config::default(), 1);
    let saved = home.hub.machine().save();
    let mut notified = serde_json::to_value(&saved).unwrap();
    notified["number"] = u64::MAX.into();
    let mut damaged: Saved<u8> = serde_json::from_value(notified).unwrap();
    let refused = Hub::restore(Config::default(), damaged.clone()).err();
    assert_eq!(refused, Some(Damage::Number(u64::MAX)));
    let before = damaged.clone();
    let difference = home.hub.machine().difference(&mut damaged);
    assert_eq!(before.apply(difference), Err(Damage::OtherBase));
    assert_eq!(home.hub.machine().state(NodeId(0)), Some(&0));
}
