//! A hub is saved and comes back.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use core::cell::RefCell;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::check::operations::run_under;
use selvedge_safehome::{
    Command, Config, Event, Flaw, Hub, Outcome, Priority, Reject, RestoreError, Routine, RoutineId,
    Saved, Scheduler, Skip, Step, Timer, Visibility, Why,
};
use selvedge_sim::histories;

struct Host {
    hub: Driver<Hub<u8>>,
    now: Time,
    rng: ChaCha8Rng,
}

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

impl Host {
    fn new(config: Config) -> Self {
        let mut host = Self::of(Hub::new(config).unwrap());
        for device in [A, B] {
            let state = Some(0);
            host.tell(Command::Device { device, state }).unwrap();
        }
        host
    }

    fn of(hub: Hub<u8>) -> Self {
        Self {
            hub: Driver::new(hub),
            now: Time::ZERO,
            rng: ChaCha8Rng::seed_from_u64(0),
        }
    }

    fn tell(&mut self, command: Command<u8>) -> Result<Vec<Event<u8>>, Reject> {
        self.input(Input::Command(command))
    }

    fn input(&mut self, input: Input<Hub<u8>>) -> Result<Vec<Event<u8>>, Reject> {
        let mut events = Vec::new();
        let told = self.hub.step(self.now, &mut self.rng, input, |it| {
            let Effect::Event(event) = it;
            events.push(event);
        });
        told.map(|()| events)
    }

    fn submit(&mut self, steps: &[(NodeId, u8)]) -> Vec<Event<u8>> {
        let steps = steps.iter().map(|it| Step::new(it.0, it.1)).collect();
        self.tell(Command::Submit(Routine { steps })).unwrap()
    }

    fn restarted(&self) -> (Self, Vec<Event<u8>>) {
        let hub = self.hub.machine();
        let mut host = Self::of(Hub::restore(*hub.config(), hub.save()).unwrap());
        let events = host.tell(Command::Resume).unwrap();
        (host, events)
    }
}

fn issues(events: &[Event<u8>]) -> Vec<(NodeId, u8, u64)> {
    let issue = |event: &Event<u8>| match event {
        Event::Issue {
            device,
            token,
            value,
            ..
        } => Some((*device, *value, *token)),
        _ => None,
    };
    events.iter().filter_map(issue).collect()
}

#[test]
fn what_was_on_its_way_is_asked_for_and_issued_again_only_if_it_was_not_done() {
    for is_done in [true, false] {
        let mut host = Host::new(Config::default());
        let events = host.submit(&[(A, 1), (B, 2)]);
        let [(_, _, token)] = issues(&events)[..] else {
            panic!("{events:?}");
        };
        let (mut host, events) = host.restarted();
        assert_eq!(events, [Event::Ask { device: A, token }]);
        let events = host
            .tell(Command::Answered {
                device: A,
                token,
                state: u8::from(is_done),
            })
            .unwrap();
        let [(device, value, next)] = issues(&events)[..] else {
            panic!("{events:?}");
        };
        assert_eq!((device, value), if is_done { (B, 2) } else { (A, 1) });
        assert!(next > token, "tokens are never used again");
    }
}

#[test]
fn what_cannot_be_asked_for_is_reconciled() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let token = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    let events = host
        .tell(Command::Outcome {
            device: A,
            token,
            outcome: Outcome::Unknown,
        })
        .unwrap();
    assert!(matches!(events[1], Event::Aborted { .. }), "{events:?}");
    assert_eq!(issues(&events)[0].1, 0, "what was before is brought back");
}

#[test]
fn a_cancelled_command_that_was_not_done_is_not_issued_again() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1)]);
    let token = issues(&events)[0].2;
    host.tell(Command::Cancel(RoutineId(1))).unwrap();
    let (mut host, _) = host.restarted();
    let answer = Command::Answered {
        device: A,
        token,
        state: 0,
    };
    let events = host.tell(answer).unwrap();
    assert_eq!(issues(&events), []);
    assert!(host.hub.machine().is_quiet());
}

/// The device was asked while it was up, and is down by the time that it says that nothing was done.
#[test]
fn what_was_not_done_is_not_issued_again_to_a_device_that_is_down() {
    let mut host = Host::new(Config::default());
    let mut first = Step::new(A, 1);
    first.priority = Priority::BestEffort;
    let steps = vec![first, Step::new(B, 2)];
    let events = host.tell(Command::Submit(Routine { steps })).unwrap();
    let token = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    let failed = Delta::Failed(Member::new(A.0, 0));
    host.input(Input::Membership(failed)).unwrap();
    let answer = Command::Answered {
        device: A,
        token,
        state: 0,
    };
    let events = host.tell(answer).unwrap();
    let skipped = Event::Skipped {
        routine: RoutineId(1),
        step: 0,
        why: Skip::Down(A),
    };
    assert_eq!(events.first(), Some(&skipped), "{events:?}");
    let issued: Vec<NodeId> = issues(&events).iter().map(|it| it.0).collect();
    assert_eq!(issued, [B]);
}

/// Its lease was over while nobody knew what became of its command. The device refused nothing.
#[test]
fn a_lease_that_is_over_is_the_reason_though_the_command_was_not_done() {
    let mut host = Host::new(Config::default());
    let lateness = Span::secs(60);
    host.tell(Command::Lateness {
        device: B,
        lateness,
    })
    .unwrap();
    let events = host.submit(&[(A, 1), (B, 1)]);
    let first = issues(&events)[0].2;
    let events = host.submit(&[(B, 2)]);
    let second = issues(&events)[0].2;
    let (mut host, _) = host.restarted();
    host.tell(Command::Answered {
        device: A,
        token: first,
        state: 1,
    })
    .unwrap();
    let is_over = |timer| matches!(timer, Timer::Late(_));
    while !host
        .hub
        .timers()
        .any(|(it, at)| is_over(it) && at <= host.now)
    {
        host.now = host.hub.deadline().unwrap();
        if !host
            .hub
            .timers()
            .any(|(it, at)| is_over(it) && at <= host.now)
        {
            host.hub.expire(host.now, &mut host.rng, |_| {});
        }
    }
    host.hub.expire(host.now, &mut host.rng, |_| {});
    let events = host
        .tell(Command::Answered {
            device: B,
            token: second,
            state: 0,
        })
        .unwrap();
    let aborting = Event::Aborting {
        routine: RoutineId(2),
        why: Why::LeaseOver(B),
    };
    assert_eq!(events.first(), Some(&aborting), "{events:?}");
    assert_eq!(issues(&events).first().map(|it| it.1), Some(1));
}

/// Those who waited just in time get their places in the order of their submission, and whoever
/// comes now comes later.
#[test]
fn who_waited_just_in_time_is_not_overtaken_under_another_scheduler() {
    for scheduler in [Scheduler::FirstCome, Scheduler::Timeline] {
        let config = |scheduler| Config {
            scheduler,
            ..Config::default()
        };
        let mut host = Host::new(config(Scheduler::JustInTime));
        let events = host.submit(&[(A, 1)]);
        let token = issues(&events)[0].2;
        host.submit(&[(B, 2), (A, 2)]);
        host.submit(&[(B, 3), (A, 3)]);
        let hub = Hub::restore(config(scheduler), host.hub.machine().save()).unwrap();
        let mut host = Host::of(hub);
        let mut issued = vec![(A, 1, token)];
        issued.extend(issues(&host.tell(Command::Resume).unwrap()));
        issued.extend(issues(&host.submit(&[(A, 4), (B, 4)])));
        let mut states = [0; 2];
        while let Some((device, state, token)) = issued.pop() {
            states[device.0 as usize] = state;
            let done = Command::Outcome {
                device,
                token,
                outcome: Outcome::Done,
            };
            issued.extend(issues(&host.tell(done).unwrap()));
        }
        assert!(host.hub.machine().is_quiet());
        assert_eq!(states, [4, 4], "{scheduler:?}");
    }
}

/// A device says by itself in which state it is; that is no answer.
#[test]
fn a_change_by_hand_while_a_command_is_on_its_way_issues_nothing() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1)]);
    let token = issues(&events)[0].2;
    let events = host
        .tell(Command::Observed {
            device: A,
            state: 9,
        })
        .unwrap();
    assert_eq!(issues(&events), []);
    let outcome = Outcome::Refused;
    let device = A;
    let events = host.tell(Command::Outcome {
        device,
        token,
        outcome,
    });
    assert_eq!(issues(&events.unwrap()), [], "it stays as the hand left it");
    assert_eq!(host.hub.machine().state(A), Some(&9));
}

/// However often a device says so: nothing grows.
#[test]
fn changes_by_hand_take_no_room() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let token = issues(&events)[0].2;
    let done = Command::Outcome {
        device: A,
        token,
        outcome: Outcome::Done,
    };
    host.tell(done).unwrap();
    let size = |host: &Host| {
        postcard::to_allocvec(&host.hub.machine().save())
            .unwrap()
            .len()
    };
    host.tell(Command::Observed {
        device: A,
        state: 9,
    })
    .unwrap();
    let before = size(&host);
    for state in 10..100 {
        host.tell(Command::Observed { device: A, state }).unwrap();
    }
    assert_eq!(size(&host), before);
}

/// A long command, a rollback that is tried again and a lease go on.
#[test]
fn timers_are_set_again() {
    let mut host = Host::new(Config::default());
    let mut step = Step::new(A, 1);
    step.hold = Span::secs(60);
    let steps = vec![step];
    let events = host.tell(Command::Submit(Routine { steps })).unwrap();
    let token = issues(&events)[0].2;
    let done = Command::Outcome {
        device: A,
        token,
        outcome: Outcome::Done,
    };
    host.tell(done).unwrap();
    let (mut host, events) = host.restarted();
    assert_eq!(events, []);
    assert_eq!(host.hub.deadline(), Some(Time::ZERO + Span::secs(60)));
    host.now = host.hub.deadline().unwrap();
    let mut events = Vec::new();
    host.hub
        .expire(host.now, &mut host.rng, |it| events.push(it));
    let committed = Effect::Event(Event::Committed(RoutineId(1)));
    assert!(events.contains(&committed), "{events:?}");
}

/// A command that may take longer than usual may so after a restart, too.
#[test]
fn a_command_keeps_its_own_timeout() {
    let mut host = Host::new(Config::default());
    let mut step = Step::new(A, 1);
    step.timeout = Some(Span::secs(60));
    let steps = vec![step];
    host.tell(Command::Submit(Routine { steps })).unwrap();
    let (host, _) = host.restarted();
    assert_eq!(host.hub.deadline(), Some(Time::ZERO + Span::secs(60)));
}

/// Invariant 4: two that wait for each other would wait for ever.
#[test]
fn routines_before_each_other_are_refused() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 1)]);
    host.submit(&[(A, 2), (B, 2)]);
    let mut saved = serde_json::to_value(host.hub.machine().save()).unwrap();
    let lineage = saved["devices"][1][1]["lineage"].as_array_mut().unwrap();
    assert_eq!(lineage.len(), 2);
    lineage.reverse();
    let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
    let restored = Hub::restore(Config::default(), saved).err();
    assert_eq!(restored, Some(RestoreError::Order(RoutineId(1))));
}

/// What the hub keeps at most one of between two routines, and never without a state.
#[test]
fn changes_by_hand_that_no_hub_has_noted_are_refused() {
    let mut host = Host::new(Config::default());
    let events = host.submit(&[(A, 1), (B, 2)]);
    let (device, token) = (A, issues(&events)[0].2);
    let outcome = Outcome::Done;
    let done = Command::Outcome {
        device,
        token,
        outcome,
    };
    host.tell(done).unwrap();
    let state = 9;
    host.tell(Command::Observed { device, state }).unwrap();
    let saved = serde_json::to_value(host.hub.machine().save()).unwrap();
    let restored = |change: fn(&mut Vec<serde_json::Value>)| {
        let mut saved = saved.clone();
        let lineage = saved["devices"][0][1]["lineage"].as_array_mut().unwrap();
        assert_eq!(lineage[1]["owner"], "Hand");
        change(lineage);
        let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
        Hub::restore(Config::default(), saved).err()
    };
    assert_eq!(restored(|_| {}), None);
    let is_refused = |flaw| Some(RestoreError::Device { device, flaw });
    let twice = restored(|it| it.push(it[1].clone()));
    assert_eq!(twice, is_refused(Flaw::Hands));
    let stateless = restored(|it| it[1]["wrote"] = serde_json::Value::Null);
    assert_eq!(stateless, is_refused(Flaw::Place));
}

/// Others could go in front of a command that is on its way.
#[test]
fn a_command_on_its_way_for_an_untouched_place_is_refused() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 1)]);
    let mut saved = serde_json::to_value(host.hub.machine().save()).unwrap();
    let touched = &mut saved["devices"][0][1]["lineage"][0]["touched"];
    assert_eq!(*touched, true);
    *touched = false.into();
    let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
    let restored = Hub::restore(Config::default(), saved).err();
    let flaw = Flaw::Command;
    assert_eq!(restored, Some(RestoreError::Device { device: A, flaw }));
}

/// Else the next routine or command would have no number.
#[test]
fn numbers_that_are_used_up_are_refused() {
    let saved = Host::new(Config::default()).hub.machine().save();
    for field in ["last", "token"] {
        let mut saved = serde_json::to_value(&saved).unwrap();
        saved[field] = u64::MAX.into();
        let saved: Saved<u8> = serde_json::from_value(saved).unwrap();
        let restored = Hub::restore(Config::default(), saved).err();
        assert_eq!(restored, Some(RestoreError::Number(u64::MAX)));
    }
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    let saved = host.hub.machine().save();
    let restore = |config| Hub::restore(config, saved.clone()).map(|_| ());
    let config = Config::default();
    assert_eq!(restore(config), Ok(()));
    let visibility = Visibility::Weak;
    assert_eq!(
        restore(Config {
            visibility,
            ..config
        }),
        Err(RestoreError::Visibility {
            saved: Visibility::Eventual,
            asked: Visibility::Weak
        })
    );
    let device_limit = 1;
    assert_eq!(
        restore(Config {
            device_limit,
            ..config
        }),
        Err(RestoreError::TooManyDevices { found: 2, limit: 1 })
    );
    let step_limit = 1;
    assert_eq!(
        restore(Config {
            step_limit,
            ..config
        }),
        Err(RestoreError::TooLong {
            routine: RoutineId(1),
            found: 2,
            limit: 1
        })
    );
    let mut bytes = postcard::to_allocvec(&saved).unwrap();
    bytes[0] = 9;
    assert_eq!(
        Hub::<u8>::restore(config, postcard::from_bytes(&bytes).unwrap()).err(),
        Some(RestoreError::Version { found: 9 })
    );
}

/// Text formats will do as well.
#[test]
fn a_state_is_the_same_in_every_format() {
    let mut host = Host::new(Config::default());
    host.submit(&[(A, 1), (B, 2)]);
    let saved = host.hub.machine().save();
    let text = serde_json::to_string(&saved).unwrap();
    let back: Saved<u8> = serde_json::from_str(&text).unwrap();
    assert_eq!(back, saved);
    assert!(text.starts_with("{\"version\":4,"), "{text}");
}

thread_local! {
    static STORED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what is stored.
fn kept(saved: Saved<u8>) -> Result<Saved<u8>, String> {
    let bytes = postcard::to_allocvec(&saved).map_err(|error| error.to_string())?;
    STORED.with_borrow_mut(|it| it.push(bytes));
    Ok(saved)
}

/// Files with bytes changed, cut or repeated. Either there is an error, or a hub that keeps its
/// invariants whatever it is told, and comes to rest.
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
                let config = Config {
                    visibility,
                    ..Config::default()
                };
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

/// All commands are done, until all is over.
fn go_on(mut host: Host) {
    let mut open = host.tell(Command::Resume).unwrap();
    let down: Vec<NodeId> = (0..8)
        .map(NodeId)
        .filter(|it| !host.hub.machine().is_up(*it))
        .collect();
    for id in down {
        // Of those that it does not know it wants to hear nothing.
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
            let done = Command::Outcome {
                device,
                token,
                outcome,
            };
            // After a timeout nobody waits for it.
            open.extend(host.tell(done).unwrap_or_default());
        }
    }
    assert!(host.hub.machine().is_quiet(), "{:#?}", host.hub.machine());
}

/// A weak hub restores nothing, so what it leaves behind gives another model nothing to restore.
#[test]
fn a_change_by_hand_at_a_weak_hub_is_not_brought_back_under_another_model() {
    let config = |visibility| Config {
        visibility,
        ..Config::default()
    };
    let mut host = Host::new(config(Visibility::Weak));
    let mut issued = issues(&host.submit(&[(A, 1), (B, 1)]));
    issued.extend(issues(&host.submit(&[(A, 7)])));
    // It overtakes a command that is refused.
    let (device, state) = (A, 5);
    host.tell(Command::Observed { device, state }).unwrap();
    let mut outcome = Outcome::Refused;
    while let Some((device, _, token)) = issued.pop() {
        let told = Command::Outcome {
            device,
            token,
            outcome,
        };
        issued.extend(issues(&host.tell(told).unwrap()));
        outcome = Outcome::Done;
    }
    let hub = host.hub.machine();
    assert!(hub.is_quiet());
    assert_eq!(hub.state(A), Some(&7));
    let hub = Hub::restore(config(Visibility::Eventual), hub.save()).unwrap();
    assert_eq!(issues(&Host::of(hub).tell(Command::Resume).unwrap()), []);
}
