//! Stored states into which no hub comes.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, long, set};
use selvedge_core::{NodeId, Span, Time};
use selvedge_safehome::{
    Command, Config, Damage, Flaw, Hub, Outcome, RoutineId, Saved, Scheduler, Timer, Visibility,
};
use serde_json::{Value, json};

const DEVICE: NodeId = NodeId(0);
const ROUTINE: RoutineId = RoutineId(1);

/// A home in the middle of a long command.
fn held() -> Home {
    let mut home = Home::new(Config::default(), 2);
    home.submit(vec![long(0, 1, Span::secs(10)), set(1, 1)]);
    home.pass(Time::ZERO + Span::secs(1));
    home
}

fn refused(home: &Home, change: impl Fn(&mut Value)) -> Option<Damage> {
    let mut saved = serde_json::to_value(home.hub.machine().save()).unwrap();
    change(&mut saved);
    let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
    Hub::restore(Config::default(), saved).err()
}

#[test]
fn what_contradicts_itself_is_refused() {
    let home = held();
    assert_eq!(refused(&home, |_| {}), None);
    let of_device = |flaw| {
        Some(Damage::Device {
            device: DEVICE,
            flaw,
        })
    };
    let of_routine = |flaw| {
        Some(Damage::Routine {
            routine: ROUTINE,
            flaw,
        })
    };
    let flight = json!({"token": 1, "value": 1, "routine": 1, "is_reported": false});
    let both = refused(&home, |it| {
        it["devices"][0][1]["flight"] = flight.clone();
    });
    assert_eq!(both, of_device(Flaw::Command), "done, and on its way");
    let untouched = refused(&home, |it| {
        let entry = &mut it["devices"][0][1]["lineage"][0];
        entry["touched"] = false.into();
        entry["wrote"] = Value::Null;
    });
    assert_eq!(
        untouched,
        of_device(Flaw::Command),
        "held by who has not come"
    );
    let entry = |at: usize, change: fn(&mut Value)| {
        refused(&home, |it| change(&mut it["devices"][at][1]["lineage"][0]))
    };
    let handled = entry(1, |it| {
        it["touched"] = true.into();
        it["undo"] = 9.into();
    });
    let of_second = |flaw| {
        let device = NodeId(1);
        Some(Damage::Device { device, flaw })
    };
    assert_eq!(handled, of_second(Flaw::Place), "nothing to be undone");
    let doubtful = entry(1, |it| it["doubtful"] = true.into());
    assert_eq!(
        doubtful,
        of_second(Flaw::Place),
        "in doubt without a command"
    );
    let endless = entry(1, |it| {
        it["leased"] = true.into();
        it["length"] = 0.into();
    });
    assert_eq!(
        endless,
        of_second(Flaw::Place),
        "a lease that is over at once"
    );
    let tested = refused(&home, |it| it["runs"][0][1]["tested"] = true.into());
    assert_eq!(tested, of_routine(Flaw::Stage), "an answer and no question");
    let beyond = refused(&home, |it| it["runs"][0][1]["at"] = 2.into());
    assert_eq!(beyond, of_routine(Flaw::Stage), "done, and running");
    let stranger = refused(&home, |it| it["last"] = 0.into());
    assert_eq!(stranger, of_routine(Flaw::Misplaced), "never accepted");
}

/// Another model may be chosen when all routines are finished, and no rollback is in flight.
#[test]
fn another_model_waits_for_a_rollback_on_its_way() {
    let mut home = held();
    home.notify(Command::Cancel(ROUTINE)).unwrap();
    let asked = Visibility::GlobalStrict;
    let config = Config::default().with_visibility(asked);
    let restored = |home: &Home| Hub::restore(config, home.hub.machine().save()).err();
    let saved = Visibility::Eventual;
    let refused = Some(Damage::Visibility { saved, asked });
    assert_eq!(restored(&home), refused);
    home.rest();
    assert_eq!(restored(&home), None);
}

/// Another scheduler may be chosen at any time; routines that waited for a place get one.
#[test]
fn another_scheduler_goes_on_with_what_there_is() {
    let schedulers = [
        Scheduler::FirstCome,
        Scheduler::JustInTime,
        Scheduler::Timeline,
    ];
    for before in schedulers {
        for after in schedulers {
            let config = |scheduler| Config::default().with_scheduler(scheduler);
            let mut home = Home::new(config(before), 2);
            for value in 1..5 {
                home.submit(vec![long(0, value, Span::secs(1)), set(1, value)]);
                home.submit(vec![set(1, value), long(0, value, Span::secs(1))]);
            }
            home.pass(Time::ZERO + Span::millis(500));
            let hub = Hub::restore(config(after), home.hub.machine().save()).unwrap();
            home.hub = selvedge_core::Driver::new(hub);
            home.notify(Command::Resume).unwrap();
            home.rest();
            assert_eq!(home.order().len(), 8);
        }
    }
}

/// A weak hub restores nothing, and forgets no due rollback.
#[test]
fn a_pending_rollback_rests_while_the_hub_is_weak() {
    let mut home = held();
    home.flip(0);
    home.pass(Time::ZERO + Span::secs(2));
    assert!(home.hub.machine().is_quiet());
    let go_on_as = |home: &mut Home, visibility| {
        let config = Config::default().with_visibility(visibility);
        let hub = Hub::restore(config, home.hub.machine().save()).unwrap();
        home.hub = selvedge_core::Driver::new(hub);
        home.notify(Command::Resume).unwrap();
    };
    go_on_as(&mut home, Visibility::Weak);
    home.flip(0);
    home.rest();
    assert_eq!(home.states[0], 1);
    go_on_as(&mut home, Visibility::PartitionedStrict);
    home.rest();
    assert_eq!(home.states[0], 0);
}

/// A lease of a plan that is too short is looked at now and then, not all the time.
#[test]
fn a_stored_lease_is_not_over_all_the_time() {
    let mut home = Home::new(Config::default(), 2);
    home.is_mute[0] = true;
    home.submit(vec![long(1, 1, Span::secs(10)), set(0, 1)]);
    home.submit(vec![set(0, 2)]);
    let mut saved = serde_json::to_value(home.hub.machine().save()).unwrap();
    let entry = &mut saved["devices"][0][1]["lineage"][0];
    assert_eq!(entry["leased"], true);
    entry["length"] = 1.into();
    let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
    let hub = Hub::restore(Config::default(), saved).unwrap();
    home.hub = selvedge_core::Driver::new(hub);
    home.notify(Command::Resume).unwrap();
    home.pass(Time::ZERO + Span::millis(1));
    let mut timers = home.hub.timers();
    let lease = timers.find(|it| it.0 == Timer::Lease(DEVICE)).unwrap();
    assert!(lease.1 >= Time::ZERO + Config::default().short);
}

/// Invariant 4: two that wait for each other would wait for ever.
#[test]
fn routines_before_each_other_are_refused() {
    let mut home = Home::new(Config::default(), 2);
    home.submit(vec![set(0, 1), set(1, 1)]);
    home.submit(vec![set(0, 2), set(1, 2)]);
    let restored = refused(&home, |it| {
        let lineage = it["devices"][1][1]["lineage"].as_array_mut().unwrap();
        assert_eq!(lineage.len(), 2);
        lineage.reverse();
    });
    assert_eq!(restored, Some(Damage::Order(ROUTINE)));
}

/// Manual changes: the hub keeps at most one between two routines, and never without a state.
#[test]
fn changes_by_hand_that_no_hub_has_noted_are_refused() {
    let mut home = Home::new(Config::default(), 2);
    home.submit(vec![set(0, 1), set(1, 2)]);
    home.lands(0, Outcome::Done);
    home.by_hand(0, 9);
    let restored = |change: fn(&mut Vec<Value>)| {
        refused(&home, |it| {
            let lineage = it["devices"][0][1]["lineage"].as_array_mut().unwrap();
            assert_eq!(lineage[1]["owner"], "Hand");
            change(lineage);
        })
    };
    assert_eq!(restored(|_| {}), None);
    let device = DEVICE;
    let is_refused = |flaw| Some(Damage::Device { device, flaw });
    let twice = restored(|it| it.push(it[1].clone()));
    assert_eq!(twice, is_refused(Flaw::Hands));
    let stateless = restored(|it| it[1]["wrote"] = Value::Null);
    assert_eq!(stateless, is_refused(Flaw::Place));
}

/// Others could go in front of a command that is in flight.
#[test]
fn a_command_on_its_way_for_an_untouched_place_is_refused() {
    let mut home = Home::new(Config::default(), 2);
    home.submit(vec![set(0, 1), set(1, 1)]);
    let restored = refused(&home, |it| {
        let touched = &mut it["devices"][0][1]["lineage"][0]["touched"];
        assert_eq!(*touched, true);
        *touched = false.into();
    });
    let (device, flaw) = (DEVICE, Flaw::Command);
    assert_eq!(restored, Some(Damage::Device { device, flaw }));
}

/// Else the next routine or command would have no number.
#[test]
fn numbers_that_are_used_up_are_refused() {
    let home = Home::new(Config::default(), 2);
    for field in ["last", "token"] {
        let restored = refused(&home, |it| it[field] = u64::MAX.into());
        assert_eq!(restored, Some(Damage::Number(u64::MAX)));
    }
}
