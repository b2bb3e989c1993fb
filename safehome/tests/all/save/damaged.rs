//! Stored states that were damaged, at random or in one thing alone.

use core::cell::RefCell;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Delta, Effect, Input, Member, NodeId, Span};
use selvedge_safehome::check::operations::run_under;
use selvedge_safehome::{
    Command, Comparison, Condition, Config, Damage, Event, Flaw, Hub, LONGEST_KEY,
    LONGEST_LATENESS, Mode, Outcome, Routine, RoutineId, Saved, Scheduler, Step, Terms, Visibility,
};
use selvedge_sim::histories;
use serde_json::{Value, json};

use crate::save::host::{A, B, Host, issues};

thread_local! {
    static STORED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a state if it can be stored.
fn kept(saved: Saved<u8>) -> Result<Saved<u8>, String> {
    let bytes = postcard::to_allocvec(&saved).map_err(|error| error.to_string())?;
    STORED.with_borrow_mut(|it| it.push(bytes));
    Ok(saved)
}

/// Files with bytes changed, cut or repeated: the result is an error, or a hub that keeps its
/// invariants after all inputs, and comes to rest.
#[test]
fn a_damaged_state_is_refused_or_does_no_harm() {
    let (mut refused, mut taken) = (0, 0);
    histories(0..300, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut operations = vec![0; 200];
        rng.fill_bytes(&mut operations);
        // Restarts around every step.
        operations[2] = operations[2] & !6 | 2;
        STORED.with_borrow_mut(Vec::clear);
        run_under(&operations, &[], kept).unwrap();
        let stored = STORED.with_borrow_mut(core::mem::take);
        for _ in 0..40 {
            let mut bytes = stored[rng.next_u32() as usize % stored.len()].clone();
            for _ in 0..=rng.next_u32() % 3 {
                let at = rng.next_u32() as usize % bytes.len();
                match rng.next_u32() % 4 {
                    0 => bytes[at] = bytes[at].wrapping_add(1),
                    1 => bytes[at] ^= 1 << (rng.next_u32() % 8),
                    2 => bytes[at] = rng.next_u32() as u8,
                    _ => drop(bytes.remove(at)),
                }
            }
            let Ok(saved) = postcard::from_bytes::<Saved<u8>>(&bytes) else {
                refused += 1;
                continue;
            };
            let visibilities = [
                Visibility::Eventual,
                Visibility::PartitionedStrict,
                Visibility::GlobalStrict,
                Visibility::StrongGlobalStrict,
                Visibility::Weak,
            ];
            let mut hubs = visibilities.into_iter().filter_map(|visibility| {
                let config = Config::default().with_visibility(visibility);
                Hub::restore(config, saved.clone()).ok()
            });
            match hubs.next() {
                None => refused += 1,
                Some(hub) => {
                    taken += 1;
                    go_on(Host::of(hub));
                }
            }
        }
    });
    println!("{refused} refused, {taken} taken");
    assert!(refused > 0 && taken > 0);
}

/// Does all commands, until no work is left.
fn go_on(mut host: Host) {
    let mut open = host.notify(Command::Resume).unwrap();
    let down: Vec<NodeId> = (0..8)
        .map(NodeId)
        .filter(|it| !host.hub.machine().is_up(*it))
        .collect();
    for id in down {
        // It accepts no news of devices that it does not know.
        for incarnation in [0, u32::MAX / 4, u32::MAX / 2, u32::MAX] {
            let delta = Delta::Refuted(Member::new(id.0, incarnation));
            open.extend(host.input(Input::Membership(delta)).unwrap_or_default());
        }
    }
    for _ in 0..3_000 {
        host.hub.machine().check().unwrap();
        let Some(event) = open.pop() else {
            let Some(due) = host.hub.deadline() else {
                break;
            };
            host.now = due;
            let (hub, rng) = (&mut host.hub, &mut host.rng);
            hub.expire(due, rng, |it| {
                let Effect::Event(event) = it;
                open.push(event);
            });
            continue;
        };
        if let Event::Issue { device, token, .. } | Event::Ask { device, token } = event {
            let outcome = Outcome::Done;
            let done = Command::Acted {
                device,
                token,
                outcome,
            };
            // After a timeout the hub does not wait for it.
            open.extend(host.notify(done).unwrap_or_default());
        }
    }
    assert!(host.hub.machine().is_quiet(), "{:#?}", host.hub.machine());
}

/// The result of restoring a stored state with these parts replaced.
fn restored(host: &Host, edits: &[(&str, Value)]) -> Result<(), Damage> {
    let hub = host.hub.machine();
    let mut stored = serde_json::to_value(hub.save()).unwrap();
    for (path, value) in edits {
        *stored.pointer_mut(path).expect(path) = value.clone();
    }
    let saved: Saved<u8> = serde_json::from_value(stored).unwrap();
    Hub::restore(*hub.config(), saved).map(|_| ())
}

/// Each of these edits by itself.
fn has_flaws(host: &Host, edits: &[(&str, Value, Damage)]) {
    assert_eq!(restored(host, &[]), Ok(()), "as it was stored");
    let found = edits.iter().map(|(path, value, error)| {
        let found = restored(host, &[(*path, value.clone())]);
        (found != Err(*error)).then(|| format!("{path} = {value}: {found:?}"))
    });
    let wrong: Vec<String> = found.flatten().collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

const fn of_device(device: NodeId, flaw: Flaw) -> Damage {
    Damage::Device { device, flaw }
}

const fn of_routine(routine: u64, flaw: Flaw) -> Damage {
    let routine = RoutineId(routine);
    Damage::Routine { routine, flaw }
}

fn outcome(host: &mut Host, events: &[Event<u8>], outcome: Outcome) -> Vec<Event<u8>> {
    let (device, _, token) = issues(events)[0];
    let notified = Command::Acted {
        device,
        token,
        outcome,
    };
    host.notify(notified).unwrap()
}

fn held(device: NodeId, value: u8) -> Step<u8> {
    let mut step = Step::new(device, value);
    step.hold = Span::secs(60);
    step
}

fn submit(host: &mut Host, steps: Vec<Step<u8>>) -> Vec<Event<u8>> {
    host.notify(Command::Submit(Routine { steps })).unwrap()
}

#[test]
fn numbers_that_no_hub_comes_to_are_refused() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    host.submit(&[(A, 2), (B, 3)]);
    let last = 1_u64 << 63;
    let error = Damage::Number(last);
    has_flaws(
        &host,
        &[
            ("/number", json!(last), error),
            ("/last", json!(last), error),
            ("/token", json!(last), error),
            ("/last", json!(0), of_routine(1, Flaw::Misplaced)),
            ("/runs/0/0", json!(0), of_routine(0, Flaw::Misplaced)),
            ("/runs/1/0", json!(1), of_routine(1, Flaw::Misplaced)),
            ("/devices/1/0", json!(0), of_device(A, Flaw::Misplaced)),
        ],
    );
    for path in ["/number", "/last", "/token"] {
        assert_eq!(restored(&host, &[(path, json!(last - 1))]), Ok(()));
    }
}

#[test]
fn a_command_on_its_way_is_one_of_a_routine_that_knows_of_it() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    let command = of_device(A, Flaw::Command);
    has_flaws(
        &host,
        &[
            ("/devices/0/1/flight/token", json!(0), command),
            ("/devices/0/1/flight/token", json!(9), command),
            ("/devices/0/1/flight/value", json!(9), command),
            (
                "/devices/0/1/flight/routine",
                json!(9),
                of_routine(1, Flaw::Command),
            ),
            (
                "/devices/0/1/flight/routine",
                json!(null),
                of_routine(1, Flaw::Command),
            ),
            (
                "/devices/0/1/flight",
                json!(null),
                of_routine(1, Flaw::Command),
            ),
            ("/devices/0/1/held", json!(1), command),
            ("/devices/0/1/lineage/0/touched", json!(false), command),
            ("/runs/0/1/busy", json!(1), of_routine(1, Flaw::Command)),
            ("/runs/0/1/busy", json!(null), command),
            ("/runs/0/1/at", json!(1), of_routine(1, Flaw::Command)),
            ("/runs/0/1/at", json!(2), of_routine(1, Flaw::Stage)),
            ("/runs/0/1/at", json!(3), of_routine(1, Flaw::Step)),
            ("/runs/0/1/tested", json!(true), of_routine(1, Flaw::Stage)),
            (
                "/runs/0/1/stage",
                json!("Placed"),
                of_routine(1, Flaw::Stage),
            ),
            (
                "/runs/0/1/stage",
                json!("Waiting"),
                of_routine(1, Flaw::Stage),
            ),
            (
                "/runs/0/1/stage",
                json!("Queued"),
                of_routine(1, Flaw::Stage),
            ),
            (
                "/runs/0/1/stage",
                json!("Committed"),
                of_routine(1, Flaw::Step),
            ),
            (
                "/runs/0/1/routine/steps",
                json!([]),
                of_routine(1, Flaw::Step),
            ),
            (
                "/runs/0/1/routine/steps/1/timeout",
                json!(0),
                of_routine(1, Flaw::NoTime),
            ),
            (
                "/runs/0/1/routine/steps/1/device",
                json!(7),
                of_routine(1, Flaw::UnknownDevice),
            ),
            (
                "/devices/1/1/lineage",
                json!([]),
                of_routine(1, Flaw::NoPlace),
            ),
            (
                "/devices/0/1/lineage",
                json!([]),
                of_routine(1, Flaw::NoPlace),
            ),
            ("/runs", json!([]), of_device(A, Flaw::Stranger)),
        ],
    );
    // Two commands do not have one number.
    host.submit(&[(B, 3)]);
    let second = "/devices/1/1/flight/token";
    assert_eq!(
        restored(&host, &[(second, json!(1))]),
        Err(of_device(B, Flaw::Command))
    );
}

#[test]
fn a_long_command_is_one_of_a_routine_that_knows_of_it() {
    let mut host = Host::new(Config::default());
    let issued = submit(&mut host, vec![held(A, 1), Step::new(B, 2)]);
    outcome(&mut host, &issued, Outcome::Done);
    let command = of_device(A, Flaw::Command);
    has_flaws(
        &host,
        &[
            ("/devices/0/1/held", json!(9), of_routine(1, Flaw::Command)),
            (
                "/devices/0/1/held",
                json!(null),
                of_routine(1, Flaw::Command),
            ),
            ("/devices/1/1/held", json!(1), of_device(B, Flaw::Command)),
            (
                "/devices/0/1/lineage/0/released",
                json!(true),
                of_device(A, Flaw::Place),
            ),
            ("/runs/0/1/routine/steps/0/hold", json!(0), command),
            ("/runs/0/1/busy", json!(null), command),
            (
                "/runs/0/1/stage",
                json!({"Aborting": "Cancelled"}),
                of_routine(1, Flaw::Command),
            ),
        ],
    );
}

#[test]
fn who_waits_has_done_nothing() {
    let mut host = Host::new(Config::default().with_scheduler(Scheduler::JustInTime));
    host.submit(&[(A, 1)]);
    let mut first = Step::new(B, 2);
    let condition = Condition {
        device: B,
        comparison: Comparison::Equal,
        value: 0,
    };
    first.condition = Some(condition.into());
    submit(&mut host, vec![first, Step::new(A, 2)]);
    let stage = of_routine(2, Flaw::Stage);
    has_flaws(
        &host,
        &[
            ("/runs/1/1/at", json!(1), stage),
            ("/runs/1/1/tested", json!(true), stage),
            ("/runs/1/1/busy", json!(1), stage),
            ("/runs/1/1/stage", json!("Queued"), stage),
            (
                "/runs/1/1/stage",
                json!("Placed"),
                of_routine(2, Flaw::NoPlace),
            ),
        ],
    );
    let mut host = Host::new(Config::default());
    let limit = 2.try_into().unwrap();
    for value in 1..3 {
        let steps = vec![Step::new(A, value), Step::new(B, value)];
        let terms = Terms::of("k", Mode::Queued { limit });
        let routine = Routine { steps };
        host.notify(Command::SubmitAs { routine, terms }).unwrap();
    }
    let key = |length: usize| json!({"key": "k".repeat(length), "mode": {"Queued": {"limit": 2}}});
    let series = "/runs/0/1/terms/series";
    has_flaws(
        &host,
        &[
            ("/runs/1/1/at", json!(1), stage),
            ("/runs/1/1/busy", json!(0), stage),
            ("/runs/1/1/terms/series", key(2), stage),
            (series, key(LONGEST_KEY + 1), of_routine(1, Flaw::Key)),
        ],
    );
    let both = [
        (series, key(LONGEST_KEY)),
        ("/runs/1/1/terms/series", key(LONGEST_KEY)),
    ];
    assert_eq!(restored(&host, &both), Ok(()));
}

#[test]
fn places_on_a_device_are_in_an_order_that_they_can_have() {
    // The first one has done its command to the device and is not finished; the second one is
    // committed behind it, then comes a manual change, and two more follow.
    let mut host = Host::new(Config::default());
    let issued = submit(&mut host, vec![Step::new(A, 1), held(B, 1)]);
    outcome(&mut host, &issued, Outcome::Done);
    let issued = host.submit(&[(A, 2)]);
    outcome(&mut host, &issued, Outcome::Done);
    let (device, state) = (A, 9);
    host.notify(Command::Observed { device, state }).unwrap();
    host.submit(&[(A, 3)]);
    host.submit(&[(A, 4), (B, 4)]);
    let place = of_device(A, Flaw::Place);
    let mixed = of_device(A, Flaw::Mixed);
    let hand = "/devices/0/1/lineage/2";
    let at = |part: &str| format!("{hand}/{part}");
    let fourth = "/devices/0/1/lineage/3";
    has_flaws(
        &host,
        &[
            (&at("wrote"), json!(null), place),
            (&at("undo"), json!(1), place),
            (&at("doubtful"), json!(true), place),
            (&at("leased"), json!(true), place),
            (&at("revoked"), json!(true), place),
            (&at("released"), json!(false), place),
            (&at("touched"), json!(false), mixed),
            (&at("owner"), json!("Failed"), place),
            (&at("owner"), json!("Restarted"), place),
            (
                &at("owner"),
                json!({"Routine": 3}),
                of_device(A, Flaw::TwoPlaces),
            ),
            (
                &at("owner"),
                json!({"Routine": 9}),
                of_device(A, Flaw::Stranger),
            ),
            ("/devices/0/1/lineage/0/released", json!(false), mixed),
            (
                "/devices/0/1/lineage/0/owner",
                json!({"Routine": 2}),
                of_device(A, Flaw::TwoPlaces),
            ),
            ("/devices/0/1/lineage/1/released", json!(false), mixed),
            (&format!("{fourth}/released"), json!(true), place),
            (&format!("{fourth}/undo"), json!(1), place),
            (&format!("{fourth}/revoked"), json!(true), place),
            ("/devices/0/1/lineage/4/touched", json!(true), mixed),
            ("/devices/0/1/lineage/4/wrote", json!(1), place),
            ("/devices/0/1/lineage/4/doubtful", json!(true), place),
            ("/devices/0/1/lineage/4/released", json!(true), mixed),
            ("/runs/1/1/busy", json!(0), of_routine(2, Flaw::Stage)),
            (
                "/runs/1/1/order",
                json!([{"Routine": 1}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Routine": 9}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Routine": 0}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Routine": 3}]),
                of_routine(3, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Failed": 1}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Restarted": 1}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Set": {"device": 0, "state": null}}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/1/1/order",
                json!([{"Routine": 2}, {"Set": {"device": 1, "state": 3}}]),
                of_routine(2, Flaw::Joined),
            ),
            (
                "/runs/2/1/order",
                json!([{"Routine": 3}]),
                of_routine(3, Flaw::Joined),
            ),
        ],
    );
    for order in [
        json!([{"Routine": 2}]),
        json!([{"Failed": 0}, {"Routine": 2}, {"Restarted": 0}]),
        json!([{"Routine": 2}, {"Set": {"device": 0, "state": 3}}]),
    ] {
        assert_eq!(restored(&host, &[("/runs/1/1/order", order)]), Ok(()));
    }
    let stored = serde_json::to_value(host.hub.machine().save()).unwrap();
    let mut lineage = stored.pointer("/devices/0/1/lineage").unwrap().clone();
    let places = lineage.as_array_mut().unwrap();
    places.insert(3, places[2].clone());
    let twice = [("/devices/0/1/lineage", lineage)];
    assert_eq!(restored(&host, &twice), Err(of_device(A, Flaw::Hands)));
    // Each comes before the other on one of their devices.
    let turned = [
        ("/devices/1/1/lineage/0/owner", json!({"Routine": 4})),
        ("/devices/1/1/lineage/1/owner", json!({"Routine": 1})),
    ];
    assert!(restored(&host, &turned).is_err());
}

#[test]
fn a_late_command_belongs_to_a_device_that_does_nothing_else() {
    let mut host = Host::new(Config::default());
    let (device, lateness) = (A, LONGEST_LATENESS);
    host.notify(Command::SetLateness { device, lateness })
        .unwrap();
    let issued = host.submit(&[(A, 1)]);
    let late = of_device(A, Flaw::Late);
    let longest = LONGEST_LATENESS.0;
    has_flaws(
        &host,
        &[("/devices/0/1/lateness", json!(longest + 1), late)],
    );
    let flight = json!({"token": 1, "value": 1, "routine": null, "is_reported": false});
    outcome(&mut host, &issued, Outcome::Unknown);
    has_flaws(
        &host,
        &[
            ("/devices/0/1/late/token", json!(0), late),
            ("/devices/0/1/late/token", json!(9), late),
            ("/devices/0/1/late/span", json!(0), late),
            ("/devices/0/1/late/span", json!(longest + 1), late),
            ("/devices/0/1/actual", json!(1), late),
            ("/devices/0/1/flight", flight, late),
            ("/devices/0/1/held", json!(1), late),
        ],
    );
    assert_eq!(
        restored(&host, &[("/devices/0/1/late/span", json!(longest))]),
        Ok(())
    );
}

#[test]
fn a_model_lets_run_beside_each_other_only_what_it_would() {
    for (visibility, run) in [
        (Visibility::GlobalStrict, "/runs/1/1/stage"),
        (Visibility::StrongGlobalStrict, "/runs/1/1/stage"),
    ] {
        let mut host = Host::new(Config::default().with_visibility(visibility));
        host.submit(&[(A, 1)]);
        host.submit(&[(B, 2)]);
        let entry = json!([{
            "owner": {"Routine": 2}, "touched": false, "released": false, "wrote": null,
            "undo": null, "doubtful": false, "leased": false, "revoked": false, "length": 0,
        }]);
        assert_eq!(restored(&host, &[]), Ok(()));
        let placed = [(run, json!("Placed")), ("/devices/1/1/lineage", entry)];
        assert_eq!(restored(&host, &placed), Err(of_routine(2, Flaw::Beside)));
    }
    let mut host = Host::new(Config::default().with_visibility(Visibility::Weak));
    host.submit(&[(A, 1)]);
    let command = of_device(A, Flaw::Command);
    has_flaws(
        &host,
        &[
            (
                "/runs/0/1/stage",
                json!("Waiting"),
                of_routine(1, Flaw::Stage),
            ),
            (
                "/devices/0/1/lineage/0/released",
                json!(true),
                of_device(A, Flaw::Place),
            ),
            (
                "/devices/0/1/lineage",
                json!([]),
                of_routine(1, Flaw::NoPlace),
            ),
            ("/devices/0/1/flight/token", json!(9), command),
        ],
    );
}
