//! The voters of an answer, and the kinds of failures.

use std::collections::BTreeSet;

use selvedge_core::{Member, NodeId, Span};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::{
    Answer, Attachment, DutyCycle, Failure, Function, Libraries, Library, Limits, Message, Outcome,
    Returned, Run, Tables, TaskId, Update, Voters, gateway,
};
use selvedge_replica::State as _;

use super::alone::{APP, Alone, HUB, hub, keep_alive, submit};

fn ids(ids: &[u64]) -> Voters {
    ids.iter().copied().map(NodeId).collect()
}

fn value(byte: u8) -> Returned {
    Returned::Value([byte].into_iter().collect())
}

const fn task(number: u64) -> TaskId {
    TaskId {
        client: APP,
        number,
    }
}

/// A unit of `followers` followers, with ids from 11, and its first task. The orchestrator is 11.
fn tables(followers: u64, limits: Limits) -> Tables {
    let mut tables = Tables::new(limits);
    for id in 11..11 + followers {
        tables.apply(&Update::Attach(Attachment {
            member: Member::new(id, 0),
            number: 1,
            gateway: HUB.id,
            duty: DutyCycle::always(),
            libraries: Libraries::new(),
        }));
    }
    tables.apply(&Update::Cluster { after: 0 });
    tables.apply(&submitted(1));
    let assignment = tables.assignment(task(1)).unwrap();
    assert_eq!(assignment.orchestrator(), Some(Member::new(11, 0)));
    assert_eq!(assignment.electors.len() as u64, followers);
    tables
}

fn submitted(number: u64) -> Update {
    Update::Submit {
        task: task(number),
        function: Function::new(b"f"),
    }
}

fn answer(answer: impl Into<Answer>, voters: &[u64]) -> Update {
    Update::Answer {
        task: task(1),
        attempt: 1,
        term: 0,
        answer: answer.into(),
        voters: ids(voters),
    }
}

#[test]
fn an_answer_counts_when_enough_of_those_that_have_the_task_made_it() {
    let counts = |followers, update: &Update| {
        let mut tables = tables(followers, Limits::new());
        let known = tables.known(update);
        let outcome = tables.apply(update);
        match outcome {
            Outcome::Stale => assert_eq!(known, Some(Outcome::Stale)),
            _ => assert_eq!(known, None),
        }
        outcome != Outcome::Stale
    };
    let made = |voters: &[u64]| counts(5, &answer(value(1), voters));
    assert!(made(&[11, 12, 13]));
    assert!(made(&[13, 14, 15]), "the orchestrator may differ");
    assert!(made(&[11, 12, 13, 14, 15]));
    assert!(!made(&[]));
    assert!(!made(&[11, 12]), "too few");
    assert!(!made(&[11, 12, 12]), "one twice");
    assert!(!made(&[12, 11, 13]), "not in their order");
    assert!(!made(&[11, 12, 13, 16]), "one of another unit");
    let of_four = |voters: &[u64]| counts(4, &answer(value(1), voters));
    assert!(of_four(&[11, 14]), "half with the orchestrator");
    assert!(!of_four(&[12, 14]), "half without it");
    let failed = Answer::Failed(Failure::Time);
    assert!(counts(5, &answer(failed.clone(), &[12, 13, 14])));
    assert!(!counts(5, &answer(failed, &[])));
    assert!(counts(5, &answer(Answer::NoMajority, &[])));
    assert!(!counts(5, &answer(Answer::NoMajority, &[11, 12, 13])));
}

/// An orchestrator that lies names itself as the only voter. The answer is accepted if its vote is half of
/// the present unit or more, and otherwise refused; the same holds where gateways count votes.
#[test]
fn an_orchestrator_decides_alone_where_one_other_or_none_is_left() {
    for counts_votes in [false, true] {
        for left in 1..=5 {
            let mut tables = tables(5, Limits::new().with_counts_votes(counts_votes));
            for id in 11 + left..16 {
                let ended = tables.follower(NodeId(id)).unwrap().clone();
                tables.apply(&Update::Purge(ended));
            }
            let (task, attempt, by) = (task(1), 1, Member::new(11, 0));
            let returned = value(9);
            let vote = Update::Vote {
                task,
                attempt,
                by,
                returned,
            };
            for update in [answer(value(9), &[11]), vote] {
                tables.apply(&update);
            }
            let is_taken = tables.answer(task).is_some();
            assert_eq!(is_taken, left <= 2, "{left} left, counted: {counts_votes}");
            let voters = if is_taken { ids(&[11]) } else { ids(&[]) };
            assert_eq!(tables.voters(task), &*voters);
        }
    }
}

#[test]
fn an_answer_that_is_kept_tells_the_voters_of_the_run_that_made_it() {
    let mut tables = tables(5, Limits::new());
    assert_eq!(tables.voters(task(1)), []);
    tables.apply(&answer(value(1), &[11, 13, 14]));
    tables.apply(&submitted(2));
    for number in [1, 2] {
        let notified = (tables.answer(task(number)), tables.voters(task(number)));
        assert_eq!(notified, (Some(&value(1).into()), &*ids(&[11, 13, 14])));
    }
    tables.apply(&Update::Cancel(task(3)));
    assert_eq!(tables.answer(task(3)), Some(&Answer::Cancelled));
    assert_eq!(tables.voters(task(3)), []);
}

#[test]
fn gateways_that_count_tell_the_voters_that_they_counted() {
    let mut tables = tables(5, Limits::new().with_counts_votes(true));
    let word = answer(value(9), &[11, 12, 13]);
    assert_eq!(
        tables.apply(&word),
        Outcome::Stale,
        "an orchestrator's word"
    );
    for (by, byte) in [(15, 1), (11, 9), (12, 1), (13, 1)] {
        assert_eq!(tables.answer(task(1)), None);
        tables.apply(&Update::Vote {
            task: task(1),
            attempt: 1,
            by: Member::new(by, 0),
            returned: value(byte),
        });
    }
    assert_eq!(tables.answer(task(1)), Some(&value(1).into()));
    assert_eq!(tables.voters(task(1)), &*ids(&[12, 13, 15]));
}

fn follower(config: follower::Config) -> Alone<Follower> {
    let made = Follower::new(Member::new(11, 0), config, [HUB.id]);
    let mut follower = Alone::new(made.unwrap());
    follower.command(follower::Command::Start);
    follower
}

fn always() -> follower::Config {
    follower::Config::new(DutyCycle::always())
}

fn run(electors: &[u64], function: Function) -> Message {
    Message::Run(Box::new(Run {
        task: task(1),
        attempt: 1,
        term: 0,
        electors: electors.iter().map(|id| Member::new(*id, 0)).collect(),
        to_gateway: false,
        function,
    }))
}

fn vote(returned: Returned) -> Message {
    Message::Vote {
        task: task(1),
        attempt: 1,
        returned,
    }
}

/// The verdict of an orchestrator of five that returned the first value, where the others returned the rest.
fn verdict(returned: [Returned; 5]) -> Option<(Answer, Voters)> {
    let mut follower = follower(always());
    follower.receive(HUB, run(&[11, 12, 13, 14, 15], Function::new(b"f")));
    for (id, returned) in (11..).zip(returned) {
        let task = task(1);
        match id {
            11 => {
                follower.command(follower::Command::Returned { task, returned });
            }
            other => follower.receive(Member::new(other, 0), vote(returned)),
        }
    }
    follower.sent.iter().find_map(|(_, it)| match it {
        Message::Verdict { answer, voters, .. } => Some((answer.clone(), voters.clone())),
        _ => None,
    })
}

#[test]
fn an_orchestrator_names_those_that_returned_what_it_says() {
    let reported = verdict([value(1), value(2), value(1), value(2), value(1)]);
    assert_eq!(reported, Some((value(1).into(), ids(&[11, 13, 15]))));
    let reported = verdict([value(1), value(2), value(3), value(2), value(1)]);
    assert_eq!(reported, Some((Answer::NoMajority, Voters::new())));
}

#[test]
fn failures_are_alike_when_their_kinds_are() {
    let [time, memory] = [Failure::Time, Failure::Memory].map(Returned::Failed);
    let reported = verdict([
        value(1),
        time.clone(),
        memory.clone(),
        time.clone(),
        time.clone(),
    ]);
    assert_eq!(
        reported,
        Some((Answer::Failed(Failure::Time), ids(&[12, 14, 15])))
    );
    let reported = verdict([value(1), time.clone(), memory.clone(), time, memory]);
    assert_eq!(reported, Some((Answer::NoMajority, Voters::new())));
}

/// The vote of a follower that fails a function itself.
fn failure(
    config: follower::Config,
    function: Function,
    then: Option<follower::Command>,
) -> Failure {
    let mut follower = follower(config.with_result(4));
    follower.receive(HUB, run(&[12, 11, 13], function));
    if let Some(command) = then {
        follower.command(command);
    }
    follower.pass(Span::millis(500));
    let reported = follower.sent.iter().find_map(|(_, it)| match it {
        Message::Vote {
            returned: Returned::Failed(why),
            ..
        } => Some(*why),
        _ => None,
    });
    reported.unwrap()
}

#[test]
fn a_follower_says_why_it_lets_a_function_fail() {
    let library = Library(7);
    let needs = Function {
        libraries: [library].into_iter().collect(),
        ..Function::new(b"f")
    };
    let long = Returned::Value(b"longer".iter().copied().collect());
    let returned = |returned| {
        Some(follower::Command::Returned {
            task: task(1),
            returned,
        })
    };
    let plain = || Function::new(b"f");
    let brief = always().with_time(Span::millis(400));
    let missing = Some(follower::Command::Missing(library));
    let failures = [
        failure(always().with_code(1), Function::new(b"too long"), None),
        failure(always().with_libraries(0), needs.clone(), None),
        failure(always(), needs, missing),
        failure(always(), plain(), returned(long)),
        failure(brief, plain(), None),
        failure(
            always(),
            plain(),
            returned(Returned::Failed(Failure::Trapped)),
        ),
    ];
    let expected = [
        Failure::TooLong,
        Failure::TooLong,
        Failure::NoLibrary,
        Failure::Result,
        Failure::Time,
        Failure::Trapped,
    ];
    assert_eq!(failures, expected);
}

/// An orchestrator names a follower that was purged meanwhile, or a follower that never had the task.
#[test]
fn an_orchestrator_that_is_not_believed_hears_who_has_the_task() {
    let mut hub = hub(&[HUB], gateway::Config::new(), Limits::new());
    for id in 11..16 {
        hub.receive(Member::new(id, 0), keep_alive(1));
    }
    hub.pass(Span::secs(2));
    hub.receive(APP, submit(1, Function::new(b"f")));
    let gateway = hub.driver.machine();
    let electors = gateway.tables().unwrap().assignment(task(1)).unwrap();
    let orchestrator = electors.orchestrator().unwrap();
    let electors: BTreeSet<NodeId> = electors.electors.iter().map(|it| it.id).collect();
    assert_eq!(electors.len(), 5);
    let verdict = |voters: Voters| Message::Verdict {
        task: task(1),
        attempt: 1,
        term: 0,
        answer: value(1).into(),
        voters,
    };
    let others: Voters = electors
        .iter()
        .copied()
        .take(4)
        .chain([NodeId(99)])
        .collect();
    let version = gateway.replica().version();
    for (nth, voters) in (1..).zip([others, Voters::new()]) {
        hub.sent.clear();
        hub.receive(orchestrator, verdict(voters));
        let gateway = hub.driver.machine();
        assert_eq!(gateway.counters().disbelieved, nth);
        assert_eq!(gateway.replica().version(), version, "it costs no update");
        assert!(matches!(&*hub.sent, [(_, Message::Run(run))] if run.electors.len() == 5));
    }
    hub.sent.clear();
    let voters: Voters = electors.into_iter().take(3).collect();
    hub.receive(orchestrator, verdict(voters.clone()));
    let notified = Message::Answer {
        task: task(1),
        answer: value(1).into(),
        voters,
    };
    assert!(hub.sent.contains(&(APP.id.0, notified)), "{:?}", hub.sent);
}
