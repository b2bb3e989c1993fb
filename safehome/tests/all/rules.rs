//! Errata that are not about a single order: the search for places, the times of waiting, and the
//! failures that count. Each is run with the published rule and with this crate's.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use crate::home;

use home::{Home, maybe, planned, set};
use selvedge_core::{NodeId, Span};
use selvedge_safehome::check::{Algorithm1, Slot, algorithm_1};
use selvedge_safehome::{
    Command, Config, Event, Outcome, Placed, Published, Scheduler, Step, Visibility,
};

/// A home with this number of devices, which take for a command as long as the hub estimates.
fn home(devices: usize, config: Config, rules: &[Published]) -> Home {
    let mut home = Home::under(rules, config, devices);
    home.delay = config.short;
    home
}

fn scheduled(scheduler: Scheduler) -> Config {
    Config::default().with_scheduler(scheduler)
}

/// R0 has B from 0 to 10 s and A from 10 to 20 s; R1 needs A for 5 s, then B for 5 s. Wherever it
/// goes on A before R0, it would have to go before R0 on B.
#[test]
fn h15_a_search_without_success_ends() {
    let lineages = [vec![Slot::new(0, 10, 20)], vec![Slot::new(0, 0, 10)]];
    let routine = [(0, 5), (1, 5)];
    let printed = Algorithm1 {
        tests_first: true,
        ..Algorithm1::default()
    };
    assert_eq!(algorithm_1(printed, &lineages, &routine, 1_000_000), None);
    let mended = Algorithm1 {
        ends: true,
        ..printed
    };
    let (places, calls) = algorithm_1(mended, &lineages, &routine, 1_000_000).unwrap();
    assert_eq!(places, [20, 25]);
    assert!(calls < 20, "{calls} calls");

    let mut home = home(3, scheduled(Scheduler::Timeline), &[]);
    // Another device, so that the rule for the same devices does not keep their order.
    home.submit(vec![
        planned(1, 1, 10_000),
        planned(0, 1, 10_000),
        set(2, 1),
    ]);
    let id = home.submit(vec![planned(0, 2, 5_000), planned(1, 2, 5_000)]);
    assert!(home.hub.machine().counters().searched < 20);
    home.wait(Span::secs(60));
    assert!(home.committed(id).is_some());
}

/// The device of the command behind the last one is read before it is asked whether there is one.
#[test]
fn h16_the_end_of_a_routine_is_tested_first() {
    let printed = Algorithm1::default();
    assert_eq!(algorithm_1(printed, &[Vec::new()], &[(0, 5)], 10), None);
    let mended = Algorithm1 {
        tests_first: true,
        ..printed
    };
    let placed = algorithm_1(mended, &[Vec::new()], &[(0, 5)], 10);
    assert_eq!(placed, Some((vec![0], 2)));
}

/// Five devices with 16 gaps each, one after the other, and a last one on which no choice will do
/// as long as the first stands before routine 99.
#[test]
fn h17_a_search_has_a_budget() {
    const GAPS: u64 = 16;
    let lineage = |device: u64| -> Vec<Slot> {
        let begin = device * 1_000;
        let others = (0..GAPS).map(|nth| {
            let start = begin + nth * 20 + 10;
            Slot::new(device * 100 + nth, start, start + 10)
        });
        others.collect()
    };
    let mut lineages: Vec<Vec<Slot>> = (0..5).map(lineage).collect();
    lineages[0].push(Slot::new(99, 900, 910));
    lineages.push(vec![Slot::new(99, 0, 9_000)]);
    let routine: Vec<(usize, u64)> = (0..6).map(|device| (device, 10)).collect();
    let mended = Algorithm1 {
        tests_first: true,
        ends: true,
    };
    let (_, calls) = algorithm_1(mended, &lineages, &routine, u64::MAX).unwrap();
    assert!(calls > 1_000_000, "{calls} calls");

    // This crate's search examines at most this number of gaps under any load.
    let config = scheduled(Scheduler::Timeline).with_search_limit(40);
    // Each also has a device of its own, so that the rule for the same devices does not apply.
    let mut home = home(6 + 200, config, &[]);
    let mut before = 0;
    for nth in 0..200_u64 {
        let device = |step: u64| (nth * 7 + step * (1 + nth % 5)) % 6;
        let mut steps: Vec<Step<u8>> = (0..6)
            .map(|step| planned(device(step), nth as u8, 200 + (nth * 31 + step * 17) % 900))
            .collect();
        steps.push(set(6 + nth, 1));
        home.submit(steps);
        let searched = home.hub.machine().counters().searched;
        assert!(searched - before <= 40);
        before = searched;
    }
    assert!(
        home.hub.machine().counters().unplaced > 0,
        "the limit was never met"
    );
    home.wait(Span::secs(3_600));
    assert!(home.hub.machine().is_quiet());
}

/// Two streams of routines, one on each device, half a second apart: the devices are never free at
/// the same time. How long a routine waits that needs both.
fn waits_behind_streams(rules: &[Published]) -> Option<Span> {
    let config = scheduled(Scheduler::JustInTime).with_patience(Span::secs(5));
    let mut home = home(2, config, rules);
    let mut both = None;
    for half in 0..200_u64 {
        home.submit(vec![planned(half % 2, 1, 1_000)]);
        if half == 4 {
            both = Some((home.now, home.submit(vec![set(0, 2), set(1, 2)])));
        }
        home.wait(Span::millis(490));
    }
    let (since, id) = both.unwrap();
    let started = home.when(&Event::Started(id));
    started.map(|at| at.since(since))
}

#[test]
fn h18_who_has_waited_for_long_is_let_in() {
    assert_eq!(waits_behind_streams(&[Published::LateIsMerelyFirst]), None);
    let waited = waits_behind_streams(&[]).unwrap();
    assert!(
        waited >= Span::secs(5) && waited < Span::secs(8),
        "{waited:?}"
    );
}

/// A device fails after a routine has finished with it, and another one before the routine needs
/// it. The first to fail is last in the order: the order is reported, and the time of the failure
/// is reported apart from it.
#[test]
fn h20_failures_have_their_place_in_the_order_and_their_time() {
    let mut home = home(2, Config::default(), &[]);
    let id = home.submit(vec![set(0, 1), planned(0, 2, 1_000), set(1, 1)]);
    home.wait(Span::millis(300));
    home.flip(1);
    home.flip(1);
    home.wait(Span::millis(1_000));
    home.flip(0);
    home.wait(Span::secs(5));
    assert!(home.committed(id).is_some());
    let (first, second) = (NodeId(0), NodeId(1));
    let expected = [
        Placed::Failed(second),
        Placed::Restarted(second),
        Placed::Routine(id),
        Placed::Failed(first),
    ];
    assert_eq!(home.order(), expected);
}

/// A device without which the routine could do fails between two commands to it.
#[test]
fn h21_a_device_that_is_not_needed_may_fail() {
    for (rules, is_committed) in [(&[Published::AnyCommandAborts][..], false), (&[], true)] {
        for visibility in [Visibility::Eventual, Visibility::PartitionedStrict] {
            let config = Config::default().with_visibility(visibility);
            let mut home = home(2, config, rules);
            let id = home.submit(vec![maybe(0, 1), planned(1, 1, 1_000), maybe(0, 2)]);
            home.wait(Span::millis(500));
            home.flip(0);
            home.wait(Span::secs(5));
            assert_eq!(home.committed(id).is_some(), is_committed);
        }
    }
}

/// A rollback that was refused is tried again later: until then the home is not at rest.
#[test]
fn a_hub_whose_rollback_is_tried_again_later_is_not_quiet() {
    let mut home = home(1, Config::default(), &[]);
    let id = home.submit(vec![planned(0, 1, 10_000)]);
    home.wait(Span::secs(1));
    home.notify(Command::Cancel(id)).unwrap();
    let rollback = home.events.iter().find_map(|(_, event)| match *event {
        Event::Issue {
            device,
            token,
            routine: None,
            ..
        } => Some((device, token)),
        _ => None,
    });
    let (device, token) = rollback.unwrap();
    let outcome = Outcome::Refused;
    home.notify(Command::Acted {
        device,
        token,
        outcome,
    })
    .unwrap();
    assert!(!home.hub.machine().is_quiet());
    // It is not to be waited for a device that is down.
    home.flip(0);
    assert!(home.hub.machine().is_quiet());
}
