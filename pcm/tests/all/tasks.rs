//! The table of tasks: the memory of finished tasks, and the votes and answers that count.

use selvedge_core::{Member, NodeId};
use selvedge_pcm::{
    Answer, Assignment, Attachment, Bytes, Function, Library, Limits, Outcome, Returned, Tables,
    TaskId, Update,
};
use selvedge_replica::State as _;

use super::sample::{follower, submit, task};

/// Ten followers that are alike, in two units.
fn tables(limits: Limits) -> Tables {
    let mut tables = Tables::new(limits);
    for id in 0..10 {
        tables.apply(&Update::Attach(follower(id, 1_000)));
    }
    tables.apply(&Update::Cluster { after: 0 });
    assert_eq!(tables.units(), 2);
    tables
}

fn of(client: u64, life: u32, number: u64) -> TaskId {
    TaskId {
        client: Member::new(client, life),
        number,
    }
}

/// A function that no task before had.
fn ask(task: TaskId) -> Update {
    let code = format!("{task:?}").into_bytes();
    Update::Submit {
        task,
        function: Function::new(&code),
    }
}

fn bytes(length: usize) -> Bytes {
    vec![7; length].into_iter().collect()
}

/// The result of a follower.
fn vote(task: TaskId, attempt: u16, by: Member, length: usize) -> Update {
    Update::Vote {
        task,
        attempt,
        by,
        returned: Returned::Value(bytes(length)),
    }
}

/// The followers that run a task.
fn electors(tables: &Tables, task: TaskId) -> Vec<Member> {
    let assignment = tables.assignment(task);
    assignment.map(|it| it.electors.to_vec()).unwrap()
}

/// Applies an update, and checks that its outcome is predicted exactly where it changes nothing.
fn apply(tables: &mut Tables, update: &Update) -> Outcome {
    let known = tables.known(update);
    let before = tables.clone();
    let outcome = tables.apply(update);
    assert_eq!(known, (*tables == before).then_some(outcome.clone()));
    outcome
}

#[test]
fn of_a_client_the_highest_number_that_is_forgotten_is_remembered() {
    let mut tables = tables(Limits::new().with_done(1));
    for number in [5, 3, 9] {
        tables.apply(&Update::Cancel(of(31, 0, number)));
    }
    let forgotten = of(31, 0, 4);
    assert_eq!(
        apply(&mut tables, &ask(forgotten)),
        Outcome::Forgotten(forgotten)
    );
    let next = apply(&mut tables, &ask(of(31, 0, 6)));
    assert!(matches!(next, Outcome::Assigned { .. }), "{next:?}");
}

#[test]
fn each_life_of_a_client_counts_its_tasks_anew() {
    let mut tables = tables(Limits::new().with_done(1));
    for (life, number) in [(0, 9), (1, 1), (2, 1)] {
        tables.apply(&Update::Cancel(of(31, life, number)));
    }
    // The second life is known; of the first one all is forgotten.
    for (life, number) in [(1, 1), (0, 1), (0, 10)] {
        let forgotten = of(31, life, number);
        assert_eq!(
            apply(&mut tables, &ask(forgotten)),
            Outcome::Forgotten(forgotten)
        );
    }
    let next = apply(&mut tables, &ask(of(31, 1, 2)));
    assert!(matches!(next, Outcome::Assigned { .. }), "{next:?}");
}

#[test]
fn what_a_former_life_asked_late_hides_no_later_one() {
    let mut tables = tables(Limits::new().with_done(2));
    // Both are over; the one of the former life is forgotten last.
    for (life, number) in [(1, 1), (0, 7)] {
        tables.apply(&Update::Cancel(of(31, life, number)));
    }
    for number in [1, 2] {
        tables.apply(&Update::Cancel(of(32, 0, number)));
    }
    let forgotten = of(31, 1, 1);
    assert_eq!(
        apply(&mut tables, &ask(forgotten)),
        Outcome::Forgotten(forgotten)
    );
}

#[test]
fn clients_whose_tasks_were_forgotten_last_are_remembered() {
    let mut tables = tables(Limits::new().with_done(1).with_clients(2));
    for client in [33, 32, 31, 34] {
        tables.apply(&Update::Cancel(of(client, 0, 1)));
    }
    for client in [32, 31] {
        let forgotten = of(client, 0, 1);
        assert_eq!(
            apply(&mut tables, &ask(forgotten)),
            Outcome::Forgotten(forgotten)
        );
    }
    let again = apply(&mut tables, &ask(of(33, 0, 1)));
    assert!(matches!(again, Outcome::Assigned { .. }), "{again:?}");
}

#[test]
fn as_many_results_are_kept_as_limits_say() {
    for kept in [0, 1, 2] {
        let limits = Limits::new().with_cache(kept).with_counts_votes(true);
        let mut tables = tables(limits);
        for number in 1..=3 {
            tables.apply(&submit(number, &[number as u8]));
            for by in electors(&tables, task(number)) {
                tables.apply(&vote(task(number), 1, by, 1));
            }
            assert_eq!(tables.answer(task(number)), Some(&Answer::Value(bytes(1))));
        }
        let known = (1..=3_u32).filter(|it| {
            let again = submit(10 + u64::from(*it), &[*it as u8]);
            let mut tables = tables.clone();
            matches!(tables.apply(&again), Outcome::Ended { .. })
        });
        let known: Vec<u32> = known.collect();
        assert_eq!(known, Vec::from_iter(4 - kept..4));
    }
}

#[test]
fn where_gateways_count_a_vote_counts_for_its_attempt_and_from_those_that_have_it() {
    let limits = Limits::new().with_counts_votes(true).with_result(4);
    let mut tables = tables(limits);
    tables.apply(&submit(1, b"f"));
    let first = electors(&tables, task(1));
    let after = 1;
    tables.apply(&Update::Retry {
        task: task(1),
        after,
    });
    let second = electors(&tables, task(1));
    assert!(second.iter().all(|it| !first.contains(it)));
    let late = Member::new(second[0].id.0, 1);
    for refused in [
        vote(task(1), 2, first[0], 4),
        vote(task(1), 2, late, 4),
        vote(task(1), 1, second[0], 4),
        vote(task(1), 3, second[0], 4),
        vote(task(1), 2, second[0], 5),
        vote(task(2), 2, second[0], 4),
    ] {
        let outcome = apply(&mut tables, &refused);
        assert_eq!(outcome, Outcome::Stale, "{refused:?}");
    }
    let voted = |by| Outcome::Voted {
        task: task(1),
        attempt: 2,
        by,
    };
    for &by in &second[..2] {
        // Once, and it is known from then on.
        for _ in 0..2 {
            let outcome = apply(&mut tables, &vote(task(1), 2, by, 4));
            assert_eq!(outcome, voted(by));
        }
    }
    let ended = apply(&mut tables, &vote(task(1), 2, second[2], 4));
    assert!(matches!(ended, Outcome::Ended { .. }), "{ended:?}");
    assert_eq!(tables.answer(task(1)), Some(&Answer::Value(bytes(4))));
}

#[test]
fn votes_do_not_count_where_orchestrators_do() {
    let mut tables = tables(Limits::new());
    tables.apply(&submit(1, b"f"));
    for by in electors(&tables, task(1)) {
        let outcome = apply(&mut tables, &vote(task(1), 1, by, 4));
        assert_eq!(outcome, Outcome::Stale);
    }
}

#[test]
fn an_answer_counts_in_its_attempt_under_its_orchestrator_and_where_gateways_do_not_count() {
    let limits = Limits::new().with_result(4);
    let mut tables = tables(limits);
    tables.apply(&submit(1, b"f"));
    let mut all: Vec<NodeId> = electors(&tables, task(1)).iter().map(|it| it.id).collect();
    all.sort_unstable();
    let reports = |number, attempt, term, length, voters: &[NodeId]| Update::Answer {
        task: task(number),
        attempt,
        term,
        answer: Answer::Value(bytes(length)),
        voters: voters.iter().copied().collect(),
    };
    for refused in [
        reports(2, 1, 0, 4, &all),
        reports(1, 0, 0, 4, &all),
        reports(1, 2, 0, 4, &all),
        reports(1, 1, 1, 4, &all),
        reports(1, 1, 0, 5, &all),
        reports(1, 1, 0, 4, &all[..1]),
    ] {
        let outcome = apply(&mut tables, &refused);
        assert_eq!(outcome, Outcome::Stale, "{refused:?}");
    }
    let ended = apply(&mut tables, &reports(1, 1, 0, 4, &all));
    assert!(matches!(ended, Outcome::Ended { .. }), "{ended:?}");
    let mut counts = self::tables(limits.with_counts_votes(true));
    counts.apply(&submit(1, b"f"));
    let outcome = apply(&mut counts, &reports(1, 1, 0, 4, &all));
    assert_eq!(outcome, Outcome::Stale);
}

#[test]
fn an_attempt_is_past_once_another_one_or_the_end_has_come() {
    let mut tables = tables(Limits::new());
    let past = |tables: &Tables| [0, 1, 2].map(|it| tables.is_past(task(1), it));
    assert_eq!(past(&tables), [false; 3], "nothing is known of it");
    tables.apply(&submit(1, b"f"));
    assert_eq!(past(&tables), [true, false, false]);
    tables.apply(&Update::Retry {
        task: task(1),
        after: 1,
    });
    assert_eq!(past(&tables), [true, true, false]);
    tables.apply(&Update::Cancel(task(1)));
    assert_eq!(past(&tables), [true; 3]);
}

#[test]
fn a_task_counts_for_its_unit_while_it_runs_there() {
    let mut tables = tables(Limits::new());
    assert_eq!(tables.load_of(task(1)), 0);
    for number in 1..=4 {
        tables.apply(&submit(number, &[number as u8]));
    }
    assert_eq!(tables.load_of(task(1)), 2, "two at each of two units");
    tables.apply(&Update::Cluster { after: 1 });
    assert_eq!(tables.load_of(task(1)), 2, "where its orchestrator is");
    tables.apply(&Update::Retry {
        task: task(1),
        after: 1,
    });
    assert_eq!(tables.load_of(task(1)), 3);
    tables.apply(&Update::Cancel(task(1)));
    assert_eq!(tables.load_of(task(1)), 0);
}

#[test]
fn a_task_counts_for_the_unit_that_its_orchestrator_is_in_now() {
    let mut tables = tables(Limits::new());
    for number in [1, 2] {
        tables.apply(&submit(number, &[number as u8]));
    }
    let gone: Vec<Member> = tables.members(0).collect();
    assert_eq!(electors(&tables, task(1)), gone);
    for follower in gone {
        let known = tables.follower(follower.id).unwrap().clone();
        tables.apply(&Update::Purge(known));
    }
    tables.apply(&Update::Cluster { after: 1 });
    assert_eq!(tables.units(), 1);
    assert_eq!(tables.load_of(task(2)), 1, "that was the second unit");
    tables.apply(&Update::Cancel(task(2)));
    tables.apply(&submit(3, b"3"));
    assert_eq!(tables.load_of(task(3)), 1);
}

#[test]
fn the_only_unit_gets_a_task_again_that_it_did_not_answer() {
    for libraries in [vec![], vec![Library(7)]] {
        let mut tables = Tables::new(Limits::new());
        for id in 0..3 {
            tables.apply(&Update::Attach(follower(id, 1_000)));
        }
        tables.apply(&Update::Cluster { after: 0 });
        tables.apply(&Update::Submit {
            task: task(1),
            function: Function {
                libraries: libraries.into_iter().collect(),
                ..Function::new(b"f")
            },
        });
        tables.apply(&Update::Retry {
            task: task(1),
            after: 1,
        });
        let assignment = tables.assignment(task(1));
        let attempt = |it: &Assignment| (it.attempt, it.electors.len());
        assert_eq!(assignment.map(attempt), Some((2, 3)));
    }
}

#[test]
fn tables_say_what_their_limits_are_and_what_they_know_of_followers() {
    let limits = Limits::new().with_tombstones(2).with_done(7);
    let mut tables = tables(limits);
    assert_eq!(*tables.limits(), limits);
    for id in [0, 1, 2] {
        tables.apply(&Update::Purge(follower(id, 1_000)));
    }
    let last = |tables: &Tables, id| tables.last_attachment(NodeId(id));
    assert_eq!(last(&tables, 0), None, "two that left are remembered");
    for id in [1, 2, 3] {
        assert_eq!(last(&tables, id), Some((Member::new(id, 0), 1)));
        let late = Update::Attach(follower(id, 1_000));
        assert_eq!(apply(&mut tables, &late), Outcome::Stale);
    }
    tables.apply(&Update::Attach(Attachment {
        number: 5,
        ..follower(1, 1_000)
    }));
    assert_eq!(last(&tables, 1), Some((Member::new(1, 0), 5)));
}

#[test]
fn the_best_manager_is_where_most_followers_are() {
    let mut tables = Tables::new(Limits::new());
    let gateways = [7, 8, 9].map(NodeId);
    assert_eq!(tables.best_manager(&gateways, NodeId(8)), Some(NodeId(8)));
    for id in 0..3 {
        tables.apply(&Update::Attach(Attachment {
            gateway: NodeId(if id == 0 { 8 } else { 9 }),
            ..follower(id, 1_000)
        }));
    }
    assert_eq!(tables.best_manager(&gateways, NodeId(8)), Some(NodeId(9)));
    assert_eq!(tables.best_manager(&[], NodeId(8)), None);
}
