//! Tests of the evaluation's scenarios, and of traces of runs.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking, its helpers too"
)]

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{NodeId, Span, Time};
use selvedge_home::{End, Happened, Lease, Outage, Plan, Report, Scenario, picture, run};
use selvedge_routine::file::Home;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_safehome::{Config, Scheduler, Visibility};

fn rng(seed: u64) -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(seed)
}

fn devices(home: &Home, nth: usize) -> BTreeSet<NodeId> {
    let steps = home.routines[nth].routine.steps.iter();
    steps.map(|step| step.device).collect()
}

/// The number of routines that use each device, ascending, of devices that two or more use.
fn sharing(home: &Home) -> Vec<usize> {
    let mut users: BTreeMap<NodeId, usize> = BTreeMap::new();
    for nth in 0..home.routines.len() {
        for device in devices(home, nth) {
            *users.entry(device).or_default() += 1;
        }
    }
    let mut counts: Vec<usize> = users.into_values().filter(|&it| it > 1).collect();
    counts.sort_unstable();
    counts
}

/// The facts of a scenario: routines, commands, devices, pairs of routines with a common device,
/// commands longer than a second, and all holds in seconds.
fn facts(home: &Home) -> [usize; 6] {
    let many = home.routines.len();
    let pairs = (0..many).flat_map(|a| (0..a).map(move |b| (a, b)));
    let meets = |&(a, b): &(usize, usize)| !devices(home, a).is_disjoint(&devices(home, b));
    let steps = || home.routines.iter().flat_map(|it| &it.routine.steps);
    [
        many,
        steps().count(),
        steps().map(|it| it.device).collect::<BTreeSet<_>>().len(),
        pairs.filter(meets).count(),
        steps().filter(|it| it.hold > Span::secs(1)).count(),
        steps().map(|it| it.hold.0 as usize / 1_000_000).sum(),
    ]
}

/// The number of seconds that each routine needs without waits.
fn lengths(home: &Home) -> Vec<u64> {
    let holds = home.routines.iter().map(|it| it.routine.steps.iter());
    holds
        .map(|it| it.map(|step| step.hold.0 / 1_000_000).sum())
        .collect()
}

#[test]
fn the_morning_has_the_counts_and_the_sharing_of_the_evaluation() {
    let home = Scenario::Morning.home(&mut rng(0)).unwrap();
    assert_eq!(facts(&home), [29, 74, 39, 41, 31, 7_473]);
    assert_eq!(home.catalogue.len(), 39);
    let shared = [2; 14].iter().chain(&[3, 3, 3, 3, 4, 4, 4, 5]);
    assert_eq!(sharing(&home), shared.copied().collect::<Vec<usize>>());
    let expected = [
        304, 332, 49, 2, 3, 2, 504, 301, 121, 90, 301, 902, 603, 180, 10, 1, 60, 60, 60, 180,
        1_202, 205, 300, 270, 210, 1_200, 11, 2, 8,
    ];
    assert_eq!(lengths(&home), expected);
}

#[test]
fn the_party_has_the_counts_and_the_sharing_of_the_evaluation() {
    let home = Scenario::Party.home(&mut rng(0)).unwrap();
    assert_eq!(facts(&home), [12, 23, 7, 27, 11, 11_472]);
    assert_eq!(sharing(&home), [2, 3, 3, 4, 4, 6]);
    let expected = [7_204, 3, 241, 3_601, 30, 30, 30, 30, 30, 91, 91, 91];
    assert_eq!(lengths(&home), expected);
}

#[test]
fn the_factory_is_drawn_by_its_rule() {
    let home = Scenario::Factory.home(&mut rng(5)).unwrap();
    // 50 stages and 50 boundaries of 4, and 5 for all.
    assert_eq!((home.routines.len(), home.catalogue.len()), (400, 405));
    let mut sides = BTreeMap::new();
    for (nth, it) in home.routines.iter().enumerate() {
        let stage = nth / 8 + 1;
        assert!(!it.routine.steps.is_empty());
        let mut last = 0;
        for step in &it.routine.steps {
            let name = home.catalogue.name(step.device).unwrap();
            let (kind, number) = name.split_once(' ').unwrap();
            let number: usize = number
                .trim_end_matches(char::is_alphabetic)
                .parse()
                .unwrap();
            let side = match kind {
                "belt" if number + 1 == stage => 0,
                "station" if number == stage => 1,
                "belt" if number == stage => 2,
                "crane" => 3,
                _ => panic!("stage {stage} uses {name}"),
            };
            assert!(side >= last, "the order of sides");
            last = side;
            *sides.entry(side).or_insert(0) += 1;
            let seconds = step.hold.0 / 1_000_000;
            assert!((1..=30).contains(&seconds));
        }
    }
    // 49, 50 and 50 groups of 4 with 8 items, and 5 with 400: within 5 standard deviations.
    for (side, devices, tenths) in [(0, 1_568, 3), (1, 1_600, 6), (2, 1_600, 3), (3, 2_000, 1)] {
        let chance = f64::from(tenths) / 10.0;
        let (mean, variance) = (
            f64::from(devices) * chance,
            f64::from(devices) * chance * (1.0 - chance),
        );
        let found = f64::from(sides[&side]);
        assert!(
            (found - mean).abs() < 5.0 * variance.sqrt(),
            "side {side}: {found} of {mean}"
        );
    }
}

#[test]
fn arrivals_follow_their_rules() {
    for seed in 0..50 {
        let mut rng = rng(seed);
        let draw = |scenario: Scenario, rng: &mut ChaCha12Rng| {
            let home = scenario.home(rng).unwrap();
            let arrivals = scenario
                .arrivals(home.routines.len())
                .draw(&home.routines, rng);
            let once: BTreeSet<usize> = arrivals.iter().map(|it| it.1).collect();
            assert_eq!(
                once.len(),
                home.routines.len(),
                "each comes once, seed {seed}"
            );
            assert!(arrivals.is_sorted_by_key(|it| it.0));
            assert!(arrivals.iter().all(|it| it.0.0 % 1_000_000 == 0));
            (home, arrivals)
        };
        let (_, morning) = draw(Scenario::Morning, &mut rng);
        assert_eq!(morning[0].0, Time::ZERO);
        assert_eq!(morning[28], (Time::ZERO + Span::secs(1_500), 28));
        let (_, party) = draw(Scenario::Party, &mut rng);
        assert_eq!(party[0], (Time::ZERO, 0));
        assert!(
            party
                .iter()
                .all(|it| it.0 <= Time::ZERO + Span::secs(7_200))
        );
        let (home, factory) = draw(Scenario::Factory, &mut rng);
        let lengths = lengths(&home);
        let at: BTreeMap<usize, u64> = factory
            .iter()
            .map(|it| (it.1, it.0.0 / 1_000_000))
            .collect();
        for nth in 0..400 {
            match nth % 8 {
                0 => assert!(at[&nth] < 100),
                _ => assert_eq!(at[&nth], at[&(nth - 1)] + lengths[nth - 1]),
            }
        }
    }
}

fn plan(scenario: Scenario, visibility: Visibility, rng: &mut ChaCha12Rng) -> Plan {
    let home = scenario.home(rng).unwrap();
    let arrivals = scenario.arrivals(home.routines.len());
    Plan {
        arrivals: arrivals.draw(&home.routines, rng),
        home,
        outages: Vec::new(),
        hands: Vec::new(),
        config: Config::default().with_visibility(visibility),
        clock: None,
        length: Span::ZERO,
    }
}

fn morning(seed: u64, visibility: Visibility, scheduler: Scheduler) -> Report {
    let mut rng = rng(seed);
    let mut plan = plan(Scenario::Morning, visibility, &mut rng);
    plan.config.scheduler = scheduler;
    for (name, from, until) in [("toaster", 300, 900), ("small bathroom door", 700, 760)] {
        plan.outages.push(Outage {
            device: plan.home.catalogue.id(name).unwrap(),
            from: Time::ZERO + Span::secs(from),
            until: Time::ZERO + Span::secs(until),
        });
    }
    run(&plan, rng, &mut ()).unwrap()
}

/// Mornings with any failures: each ends in the reported order, no two routines have a device
/// together, and the picture shows everything.
#[test]
fn mornings_with_failures_end_as_their_order_says() {
    let (mut undone, mut restored) = (0, 0);
    for seed in 0..20 {
        for visibility in [
            Visibility::Eventual,
            Visibility::PartitionedStrict,
            Visibility::GlobalStrict,
            Visibility::StrongGlobalStrict,
        ] {
            let report = morning(seed, visibility, Scheduler::Timeline);
            assert_eq!(report.explained, Some(true), "seed {seed}, {visibility:?}");
            assert!(report.held(), "seed {seed}, {visibility:?}");
            assert_eq!(report.routines().len(), 29);
            let trace = &report.trace;
            for one in &trace.accesses {
                let meets = trace.accesses.iter().find(|it| {
                    it.device == one.device && it.from > one.from && it.from < one.until
                });
                assert!(meets.is_none(), "seed {seed}: {one:?} and {meets:?}");
            }
            let svg = picture(&report);
            assert_eq!(
                svg.matches("<rect class=\"it bar").count(),
                trace.accesses.len()
            );
            let aborted =
                |it: &&selvedge_home::Occurrence| matches!(it.ended, Some((_, End::Aborted(_))));
            let aborted = trace.occurrences.values().filter(aborted).count();
            assert_eq!(svg.matches("sign aborted").count(), aborted);
            assert_eq!(svg.matches("sign back").count(), trace.restores.len());
            assert_eq!(svg.matches("class=\"down\"").count(), 2);
            undone += aborted;
            restored += trace.restores.len();
        }
    }
    assert!(
        undone > 20 && restored > 5,
        "{undone} undone, {restored} restored"
    );
}

#[test]
fn leases_are_seen_under_eventual_visibility_alone() {
    let leases = |visibility, scheduler| {
        let (mut pre, mut post) = (0, 0);
        for seed in 0..10 {
            let report = morning(seed, visibility, scheduler);
            let late = scheduler == Scheduler::JustInTime;
            for access in &report.trace.accesses {
                match report.trace.lease(access, visibility, late) {
                    Some(Lease::Pre(_)) => pre += 1,
                    Some(Lease::Post(_)) => post += 1,
                    None => {}
                }
            }
        }
        (pre, post)
    };
    let (pre, post) = leases(Visibility::Eventual, Scheduler::Timeline);
    assert!(pre > 0 && post > 10, "{pre} {post}");
    // The routine that came first has the device first.
    let (pre, post) = leases(Visibility::Eventual, Scheduler::FirstCome);
    assert!(pre == 0 && post > 10, "{pre} {post}");
    let none = leases(Visibility::PartitionedStrict, Scheduler::Timeline);
    assert_eq!(none, (0, 0));
}

#[test]
fn one_seed_is_one_run() {
    let run = || morning(3, Visibility::Eventual, Scheduler::Timeline);
    assert_eq!(run().json(), run().json());
    assert_eq!(picture(&run()), picture(&run()));
}

/// A device is down during any of its outages, in any order of the options.
#[test]
fn outages_of_one_device_that_overlap_are_one() {
    let mut rng = rng(1);
    let mut plan = plan(Scenario::Party, Visibility::Eventual, &mut rng);
    let at = |seconds| Time::ZERO + Span::secs(seconds);
    let id = |name| plan.home.catalogue.id(name).unwrap();
    let [one, other] = [id("microphone"), id("disco light")];
    let down = |device, from, until| Outage {
        device,
        from: at(from),
        until: at(until),
    };
    plan.outages = vec![
        // Two outages follow each other, one is within another, and one begins where another ends.
        down(one, 400, 500),
        down(one, 300, 420),
        down(one, 310, 320),
        down(one, 500, 600),
        down(one, 700, 800),
        down(other, 450, 550),
    ];
    let report = run(&plan, rng, &mut ()).unwrap();
    let mut happened = report.trace.happened.clone();
    happened.retain(|it| matches!(it.2, Happened::Failed | Happened::Restarted));
    let expected = [
        (at(300), one, Happened::Failed),
        (at(450), other, Happened::Failed),
        (at(550), other, Happened::Restarted),
        (at(600), one, Happened::Restarted),
        (at(700), one, Happened::Failed),
        (at(800), one, Happened::Restarted),
    ];
    assert_eq!(happened, expected);
}

#[test]
fn triggers_run_routines_in_a_home() {
    let text = r#"{"devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "blind", "initial": "closed"}],
        "routines": [
          {"RoutineName": "wake", "CommandList": [{"DevID": "lamp", "Action": "on", "hold_ms": 60000}]},
          {"RoutineName": "daylight", "CommandList": [{"DevID": "blind", "Action": "open"},
                                                      {"DevID": "lamp", "Action": "off"}]}],
        "triggers": [
          {"RoutineName": "wake", "at": "06:30"},
          {"RoutineName": "daylight", "when": {"DevID": "lamp", "equal": "on"}}]}"#;
    let plan = Plan {
        home: Home::read(text.as_bytes()).unwrap(),
        arrivals: Vec::new(),
        outages: Vec::new(),
        hands: Vec::new(),
        config: Config::default(),
        clock: TimeOfDay::parse("06:00"),
        length: Span::secs(86_400),
    };
    let report = run(&plan, rng(1), &mut ()).unwrap();
    let routines = report.routines();
    let names: Vec<&str> = routines.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["wake", "daylight"]);
    assert!((routines[0].arrived - 1_800.0).abs() < 0.001);
    assert!((1_800.0..1_800.2).contains(&routines[1].arrived));
    assert!(report.held());
}

/// A command to a failed lamp may wait in a queue: the lamp is restored when the command can no
/// longer arrive.
#[test]
fn a_device_with_late_commands_is_restored_when_they_are_over() {
    let restored = |lateness: &str| {
        let text = format!(
            r#"{{"devices": [{{"DevID": "lamp", "initial": "off"{lateness}}}],
                "routines": [{{"RoutineName": "wake", "CommandList": [
                  {{"DevID": "lamp", "Action": "on"}}]}}]}}"#
        );
        let plan = Plan {
            home: Home::read(text.as_bytes()).unwrap(),
            arrivals: vec![(Time::ZERO, 0)],
            outages: vec![Outage {
                device: NodeId(0),
                from: Time::ZERO + Span::millis(10),
                until: Time::ZERO + Span::millis(1_500),
            }],
            hands: Vec::new(),
            config: Config::default(),
            clock: None,
            length: Span::secs(600),
        };
        let report = run(&plan, rng(1), &mut ()).unwrap();
        assert_eq!(report.explained, Some(true));
        let restores = &report.trace.restores;
        restores.iter().map(|it| it.from).collect::<Vec<_>>()
    };
    // The lamp lost its command, so it is not reported for 5 s.
    let after = |seconds| vec![Time::ZERO + Span::secs(seconds)];
    assert_eq!(restored(""), after(5));
    assert_eq!(restored(r#", "lateness_ms": 60000"#), after(65));
}
