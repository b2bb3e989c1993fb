//! The tables, by hand and at random, beside the obvious result.

use std::collections::BTreeMap;

use proptest::prelude::*;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Function, Hops, Libraries, Library, Limits, Outcome, Returned,
    Tables, TaskId, Update, Voters,
};
use selvedge_replica::State as _;

use super::sample::{answer, attached, check, follower, submit, tables, task};

/// The task that an update gives to a unit, or would if there were one.
fn assigned(tables: &mut Tables, update: &Update) -> Option<TaskId> {
    let Outcome::Assigned { task, .. } = tables.apply(update) else {
        return None;
    };
    Some(task)
}

/// The task that an update ends.
fn ended(tables: &mut Tables, update: &Update) -> Option<TaskId> {
    let Outcome::Ended { task, .. } = tables.apply(update) else {
        return None;
    };
    Some(task)
}

#[test]
fn what_is_said_late_brings_no_follower_back() {
    let mut tables = tables([(1, 1_000)]);
    let later = Attachment {
        number: 7,
        ..follower(1, 2_000)
    };
    tables.apply(&Update::Attach(later.clone()));
    assert_eq!(tables.apply(&Update::Purge(follower(1, 0))), Outcome::Stale);
    assert!(tables.follower(NodeId(1)).is_some());
    tables.apply(&Update::Purge(later.clone()));
    assert_eq!(
        tables.apply(&Update::Attach(follower(1, 1_000))),
        Outcome::Stale
    );
    let again = Update::Attach(later.clone());
    assert_eq!(tables.apply(&again), Outcome::Stale);
    let back = Attachment { number: 8, ..later };
    assert_eq!(tables.apply(&Update::Attach(back)), attached(1));
}

#[test]
fn a_task_ends_once_and_only_by_its_present_attempt() {
    let mut tables = tables((0..10).map(|id| (id, 1_000)));
    assert_eq!(assigned(&mut tables, &submit(1, b"f")), Some(task(1)));
    let first: Vec<Member> = tables.assignment(task(1)).unwrap().electors.to_vec();
    let retry = Update::Retry {
        task: task(1),
        after: 1,
    };
    assert_eq!(assigned(&mut tables, &retry), Some(task(1)));
    let second = tables.assignment(task(1)).unwrap();
    assert_eq!(second.attempt, 2);
    assert!(
        second.electors.iter().all(|it| !first.contains(it)),
        "another unit"
    );
    assert_eq!(tables.apply(&retry), Outcome::Stale);
    let late = answer(&tables, 1, 1, b"late");
    let [in_time, again] = [b"in time", b"again.."].map(|it| answer(&tables, 1, 2, it));
    assert_eq!(tables.apply(&late), Outcome::Stale);
    assert_eq!(ended(&mut tables, &in_time), Some(task(1)));
    assert_eq!(tables.apply(&again), Outcome::Stale);
    let value = b"in time".iter().copied().collect();
    assert_eq!(tables.answer(task(1)), Some(&Answer::Value(value)));
    assert_eq!(tables.apply(&submit(1, b"f")), Outcome::Done(task(1)));
    // The same function for another client costs no run.
    assert_eq!(ended(&mut tables, &submit(2, b"f")), Some(task(2)));
    assert_eq!(assigned(&mut tables, &submit(3, b"g")), Some(task(3)));
}

#[test]
fn a_follower_that_goes_or_begins_again_takes_part_in_no_task_any_more() {
    let mut tables = tables((0..5).map(|id| (id, 1_000 * id as u32)));
    tables.apply(&submit(1, b"f"));
    let again = Attachment {
        member: Member::new(4, 1),
        number: 0,
        ..follower(4, 4_000)
    };
    let tasks = vec![task(1)];
    let outcome = Outcome::Attached {
        follower: NodeId(4),
        tasks: tasks.clone(),
        is_other: false,
    };
    assert_eq!(tables.apply(&Update::Attach(again)), outcome);
    let assignment = tables.assignment(task(1)).unwrap();
    assert_eq!((assignment.term, assignment.electors.len()), (1, 4));
    for id in 0..4 {
        let purged = Outcome::Purged {
            follower: NodeId(id),
            tasks: tasks.clone(),
        };
        assert_eq!(tables.apply(&Update::Purge(follower(id, 0))), purged);
    }
    assert_eq!(tables.assignment(task(1)), None);
    // The orchestrator of the unit that is left is the follower in its new life.
    let retry = Update::Retry {
        task: task(1),
        after: 1,
    };
    assert_eq!(assigned(&mut tables, &retry), Some(task(1)));
    let electors = &tables.assignment(task(1)).unwrap().electors;
    assert_eq!(**electors, [Member::new(4, 1)]);
}

#[test]
fn a_function_goes_to_the_unit_that_keeps_its_libraries_where_others_are_as_free() {
    let mut tables = tables((0..15).map(|id| (id, 1_000)));
    let controller = tables.members(2).last().unwrap();
    let library = Library(7);
    let keeps = Attachment {
        number: 2,
        libraries: [library].into_iter().collect(),
        ..tables.follower(controller.id).unwrap().clone()
    };
    let outcome = Outcome::Attached {
        follower: controller.id,
        tasks: Vec::new(),
        is_other: false,
    };
    assert_eq!(tables.apply(&Update::Attach(keeps)), outcome);
    let needs = |number: u64| Update::Submit {
        task: task(number),
        function: Function {
            code: number.to_be_bytes().into_iter().collect(),
            libraries: [library].into_iter().collect(),
        },
    };
    let unit = |tables: &Tables, number| {
        let assignment = tables.assignment(task(number)).unwrap();
        tables.unit_of(assignment.electors[0].id)
    };
    tables.apply(&submit(1, b"f"));
    assert_eq!(unit(&tables, 1), Some(0), "the first of equals");
    tables.apply(&needs(2));
    assert_eq!(unit(&tables, 2), Some(2), "it keeps the library");
    tables.apply(&needs(3));
    assert_eq!(unit(&tables, 3), Some(1), "it has less to do");
    // A unit that did not answer is not asked again at once.
    tables.apply(&needs(4));
    assert_eq!(unit(&tables, 4), Some(2));
    let retry = Update::Retry {
        task: task(4),
        after: 1,
    };
    tables.apply(&retry);
    assert_ne!(unit(&tables, 4), Some(2));
}

#[test]
fn a_task_that_was_cancelled_before_it_came_does_not_run() {
    let mut tables = tables((0..10).map(|id| (id, 1_000)));
    assert_eq!(ended(&mut tables, &Update::Cancel(task(1))), Some(task(1)));
    assert_eq!(tables.apply(&submit(1, b"f")), Outcome::Done(task(1)));
    assert_eq!(tables.answer(task(1)), Some(&Answer::Cancelled));
}

#[test]
fn a_task_is_unanswered_after_as_many_attempts_as_are_allowed() {
    let mut tables = tables((0..10).map(|id| (id, 1_000)));
    tables.apply(&submit(1, b"f"));
    for after in 1..Limits::new().attempts {
        let retry = Update::Retry {
            task: task(1),
            after,
        };
        assert_eq!(assigned(&mut tables, &retry), Some(task(1)));
    }
    let after = Limits::new().attempts;
    let retry = Update::Retry {
        task: task(1),
        after,
    };
    assert_eq!(ended(&mut tables, &retry), Some(task(1)));
    assert_eq!(tables.answer(task(1)), Some(&Answer::Unanswered));
}

#[test]
fn tasks_that_are_forgotten_are_not_run_again_and_memory_is_bounded() {
    let limits = Limits::new()
        .with_done(2)
        .with_cache(2)
        .with_open(1)
        .with_clients(1);
    let mut tables = Tables::new(limits);
    for id in 0..5 {
        tables.apply(&Update::Attach(follower(id, 1_000)));
    }
    tables.apply(&Update::Cluster { after: 0 });
    for number in 1..=4 {
        assert_eq!(
            assigned(&mut tables, &submit(number, &[number as u8])),
            Some(task(number))
        );
        assert_eq!(
            tables.apply(&submit(9, b"one more")),
            Outcome::Full(task(9))
        );
        let ends = answer(&tables, number, 1, b"r");
        assert_eq!(ended(&mut tables, &ends), Some(task(number)));
    }
    for number in 1..=2 {
        assert_eq!(
            tables.apply(&submit(number, &[9])),
            Outcome::Forgotten(task(number))
        );
    }
    assert_eq!(tables.apply(&submit(3, &[9])), Outcome::Done(task(3)));
    // The results of the last two are known by their functions; the result of the second is forgotten.
    assert_eq!(ended(&mut tables, &submit(5, &[4])), Some(task(5)));
    assert_eq!(assigned(&mut tables, &submit(6, &[2])), Some(task(6)));
}

#[test]
fn a_distance_that_finds_no_room_changes_nothing_and_that_is_known() {
    let far = |other, hops| {
        Update::Hops(Hops {
            one: NodeId(1),
            other: NodeId(other),
            hops,
        })
    };
    let mut tables = Tables::new(Limits::new().with_gateways(2));
    assert_eq!(tables.apply(&far(2, 3)), Outcome::Measured);
    assert_eq!(tables.known(&far(3, 3)), Some(Outcome::Stale));
    assert_eq!(tables.apply(&far(3, 3)), Outcome::Stale);
    // One link is the default of an unknown distance: it makes room.
    assert_eq!(tables.known(&far(2, 1)), None);
    assert_eq!(tables.apply(&far(2, 1)), Outcome::Measured);
    assert_eq!(tables.apply(&far(3, 3)), Outcome::Measured);
}

#[test]
fn of_clients_the_one_whose_tasks_are_forgotten_for_longest_makes_room() {
    let mut tables = Tables::new(Limits::new().with_done(1).with_clients(2));
    let task = |client, number| TaskId {
        client: Member::new(client, 0),
        number,
    };
    let cancelled = [(1, 1), (2, 1), (1, 2), (3, 1), (4, 1)];
    for (client, number) in cancelled {
        let task = task(client, number);
        assert_eq!(ended(&mut tables, &Update::Cancel(task)), Some(task));
    }
    // All but the last are forgotten: of the first client twice.
    for (client, is_known) in [(1, true), (2, false), (3, true)] {
        let task = task(client, 1);
        let forgotten = is_known.then_some(Outcome::Forgotten(task));
        assert_eq!(tables.known(&Update::Cancel(task)), forgotten);
    }
}

fn updates() -> impl Strategy<Value = Update> {
    let any_follower = (0..30_u64, 0..2_u32, 0..4_u32, 0..3_u64, 0..100_000_u32).prop_map(
        |(id, life, number, gateway, active)| Attachment {
            member: Member::new(id, life),
            number,
            gateway: NodeId(gateway),
            ..follower(id, active)
        },
    );
    prop_oneof![
        8 => any_follower.clone().prop_map(Update::Attach),
        4 => any_follower.prop_map(Update::Purge),
        1 => (0..8_u64).prop_map(|after| Update::Cluster { after }),
        4 => (1..12_u64, 0..4_u8).prop_map(|(number, code)| submit(number, &[code])),
        2 => (1..12_u64, 0..4_u16).prop_map(|(number, after)| Update::Retry { task: task(number), after }),
        2 => (1..12_u64, 0..4_u16, any::<bool>()).prop_map(|(number, attempt, same)| {
            match same {
                true => answer(&Tables::new(Limits::new()), number, attempt, b"r"),
                false => Update::Answer {
                    task: task(number),
                    attempt,
                    term: 0,
                    answer: Answer::NoMajority,
                    voters: Voters::new(),
                },
            }
        }),
        1 => (1..12_u64).prop_map(|number| Update::Cancel(task(number))),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_each_follower_has_one_seat_and_each_task_one_answer(
        updates in proptest::collection::vec(updates(), 0..120),
        small in any::<bool>(),
    ) {
        let limits = match small {
            true => Limits::new().with_followers(7).with_unit(3).with_tombstones(2).with_open(2)
                .with_done(3).with_cache(1).with_clients(1).with_attempts(2),
            false => Limits::new(),
        };
        let mut tables = Tables::new(limits);
        let mut answers: BTreeMap<TaskId, Answer> = BTreeMap::new();
        for update in updates {
            // The electors of the task are known only now.
            let update = match update {
                Update::Answer { task, attempt, answer: Answer::Value(_), .. } => {
                    answer(&tables, task.number, attempt, b"r")
                }
                other => other,
            };
            let known = tables.known(&update);
            let before = tables.clone();
            let outcome = tables.apply(&update);
            if let Some(known) = known {
                prop_assert_eq!(&outcome, &known);
                prop_assert_eq!(&tables, &before, "nothing changes");
            }
            check(&tables);
            for number in 1..12 {
                let task = task(number);
                let Some(answer) = tables.answer(task) else { continue };
                let first = answers.entry(task).or_insert_with(|| answer.clone());
                prop_assert_eq!(first, answer, "a task that is over has one answer");
            }
            if small {
                prop_assert!(tables.followers().count() <= 7 && tables.open().count() <= 2);
            }
        }
    }
}

#[test]
fn no_state_is_longer_than_the_limits_say() {
    let limits = Limits::new()
        .with_followers(200)
        .with_tombstones(100)
        .with_open(40)
        .with_done(60)
        .with_cache(30)
        .with_clients(50)
        .with_result(100)
        .with_counts_votes(true);
    let far = u64::MAX - 1_000;
    let code = [7; 300];
    let mut tables = Tables::new(limits);
    let reports = |id: u64, number: u32| Attachment {
        member: Member::new(far + id, u32::MAX),
        number: u32::MAX - 9 + number,
        gateway: NodeId(far),
        duty: DutyCycle {
            active_ms: 40_000,
            busy_ms: 40_000,
            asleep_ms: 40_000,
        },
        libraries: (0..4).map(|it| Library(u64::MAX - it)).collect(),
    };
    for id in 0..300 {
        tables.apply(&Update::Attach(reports(id, 1)));
        if id >= 150 {
            tables.apply(&Update::Purge(reports(id - 150, 1)));
        }
        tables.apply(&Update::Attach(reports(id, 1)));
    }
    for after in 0..2 {
        tables.apply(&Update::Cluster { after });
    }
    for number in 0..200 {
        let task = TaskId {
            client: Member::new(far + number % 100, u32::MAX),
            number: far + number,
        };
        let mut code = code;
        code[0] = number as u8;
        let function = Function {
            code: code.into_iter().collect(),
            libraries: Libraries::new(),
        };
        tables.apply(&Update::Submit { task, function });
        let electors = tables.assignment(task).map(|it| it.electors.clone());
        for (nth, &by) in electors.iter().flat_map(|it| it.iter()).enumerate() {
            let ends = number < 160;
            let value: Vec<u8> = if ends {
                vec![1; 100]
            } else {
                vec![nth as u8; 100]
            };
            tables.apply(&Update::Vote {
                task,
                attempt: 1,
                by,
                returned: Returned::Value(value.into_iter().collect()),
            });
        }
    }
    let size = postcard::to_allocvec(&tables).unwrap().len() as u64;
    let most = limits.largest_state(301);
    assert!(size <= most && size * 4 > most, "{size} of {most}");
}
