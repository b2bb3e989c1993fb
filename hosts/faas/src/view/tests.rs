//! Tests of the combined view of several gateways.

use std::time::{Duration, Instant};

use selvedge_core::wire::List;
use selvedge_core::{Member, NodeId};
use selvedge_pcm::{Answer, Class, DutyCycle, Libraries, Library, TaskId};

use super::{Phase, Role, SILENT, Seen};
use crate::Counters;
use crate::notice::{AnswerStatus, FollowerStatus, Status, TaskStatus};

const DUTY: DutyCycle = DutyCycle {
    active_ms: 1_000,
    busy_ms: 2_000,
    asleep_ms: 7_000,
};

fn status(version: u64, manages: bool) -> Status {
    Status {
        manages,
        is_available: true,
        era: Some((NodeId(1), 4)),
        version,
        gateways: List::new(),
        units: 0,
        followers: 0,
        some_followers: List::new(),
        open: 0,
        some_tasks: List::new(),
        answers: List::new(),
        counters: Counters::default(),
        modules: 0,
    }
}

fn follower(id: u64, gateway: u64, class: Class, woke_ms: Option<u32>) -> FollowerStatus {
    FollowerStatus {
        member: Member::new(id, 0),
        gateway: NodeId(gateway),
        duty: DUTY,
        unit: Some(0),
        class: Some(class),
        woke_ms,
        libraries: [Library(0xab)].into_iter().collect::<Libraries>(),
    }
}

const fn task(number: u64) -> TaskId {
    let client = Member::new(u64::MAX, 3);
    TaskId { client, number }
}

fn open(votes: &[u64], age_ms: u32) -> TaskStatus {
    TaskStatus {
        task: task(1),
        attempts: 1,
        electors: [Member::new(102, 0), Member::new(101, 0)]
            .into_iter()
            .collect(),
        votes: votes.iter().map(|it| NodeId(*it)).collect(),
        function: b"gcd(84i64, 36i64)".iter().copied().collect(),
        age_ms,
    }
}

fn answer(number: u64, function: &[u8], votes: &[u64], ago_ms: u32) -> AnswerStatus {
    AnswerStatus {
        task: task(number),
        answer: Answer::Value(b"12i64".iter().copied().collect()),
        attempt: 1,
        electors: [Member::new(102, 0)].into_iter().collect(),
        votes: votes.iter().map(|it| NodeId(*it)).collect(),
        function: function.iter().copied().collect(),
        took_ms: 80,
        ago_ms,
    }
}

const ALL: [NodeId; 3] = [NodeId(1), NodeId(2), NodeId(3)];

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn gateways_are_shown_as_they_say_and_as_the_manager_says() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    let mut leads = status(9, true);
    let here = |id, is_here| (Member::new(id, 0), is_here);
    leads.gateways = [here(1, true), here(2, false), here(3, true)]
        .into_iter()
        .collect();
    seen.see(Member::new(1, 7), leads, now);
    let mut follows = status(20, false);
    follows.is_available = false;
    seen.see(Member::new(2, 1), follows, now);
    assert!(!seen.has_all(ALL.into_iter()));
    let view = seen.view(ALL.into_iter(), now);
    assert_eq!(
        (view.manager, view.era, view.version),
        (Some(NodeId(1)), Some(4), 20)
    );
    let roles: Vec<(Role, bool)> = view
        .gateways
        .iter()
        .map(|it| (it.role, it.is_gone))
        .collect();
    let wanted = [
        (Role::Manager, false),
        (Role::NoQuorum, true),
        (Role::Unknown, false),
    ];
    assert_eq!(roles, wanted);
    // The manager falls silent, and the other gateway sends a status.
    let later = now + SILENT + Duration::from_secs(1);
    seen.see(Member::new(2, 1), status(8, false), later);
    let view = seen.view(ALL.into_iter(), later);
    assert_eq!((view.manager, view.version), (None, 8));
    assert_eq!(view.gateways[0].role, Role::Silent);
    assert_eq!(view.gateways[0].said_ms, Some(4_000));
    assert_eq!(view.gateways[1].role, Role::Member);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn what_several_gateways_saw_of_followers_and_tasks_is_put_together() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    let both = |first, second| {
        let low = follower(101, 1, Class::Low, first);
        let orchestrator = follower(102, 2, Class::Orchestrator, second);
        [low, orchestrator].into_iter().collect()
    };
    let mut one = status(9, true);
    one.some_followers = both(Some(500), Some(123));
    one.some_tasks = [open(&[101], 70)].into_iter().collect();
    one.answers = [answer(5, b"", &[], 300), answer(6, b"x", &[], 100)]
        .into_iter()
        .collect();
    let mut other = status(8, false);
    other.some_followers = both(None, Some(2_500));
    other.some_tasks = [open(&[102, 101], 90)].into_iter().collect();
    other.answers = [answer(5, b"sum()", &[101, 102], 310)]
        .into_iter()
        .collect();
    seen.see(Member::new(1, 0), one, now);
    seen.see(Member::new(2, 0), other, now);
    let view = seen.view(ALL.into_iter(), now + Duration::from_secs(1));
    let followers = view.some_followers.iter();
    let followers: Vec<_> = followers
        .map(|it| (it.id.0, it.woke_ms, it.phase))
        .collect();
    // Another gateway's report of when it woke does not count.
    let wanted = [
        (102, Some(3_500), Phase::Asleep),
        (101, Some(1_500), Phase::Busy),
    ];
    assert_eq!(followers, wanted);
    let [task] = view.some_tasks.as_slice() else {
        panic!("{view:?}");
    };
    assert_eq!(task.votes, [NodeId(101), NodeId(102)]);
    assert_eq!(task.age_ms, 1_090);
    let answers = view.answers.iter();
    let answers: Vec<_> = answers
        .map(|it| (it.number, it.function.as_str(), it.ago_ms))
        .collect();
    assert_eq!(answers, [(6, "x", 1_100), (5, "sum()", 1_310)]);
    assert_eq!(view.answers[1].votes, [NodeId(101), NodeId(102)]);
}

#[test]
fn a_follower_sleeps_when_it_was_active_and_busy() {
    let phase = |at| Phase::of(DUTY, at);
    assert_eq!(phase(None), Phase::Unknown);
    for (from, to, wanted) in [
        (0, 999, Phase::Active),
        (1_000, 2_999, Phase::Busy),
        (3_000, 10_999, Phase::Asleep),
        (11_000, u64::MAX, Phase::Late),
    ] {
        assert_eq!((phase(Some(from)), phase(Some(to))), (wanted, wanted));
    }
    assert_eq!(Phase::of(DutyCycle::always(), Some(1_999)), Phase::Active);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn a_gateway_that_says_too_much_is_cut_short() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    let mut much = status(1, true);
    much.some_followers = (0..9_000)
        .map(|it| follower(it, 1, Class::Low, None))
        .collect();
    much.answers = (0..900)
        .map(|it| answer(it, &[b'x'; 200_000], &[], 1))
        .collect();
    seen.see(Member::new(1, 0), much, now);
    let view = seen.view(ALL.into_iter(), now);
    assert_eq!(view.some_followers.len(), Status::SHOWN);
    assert_eq!(view.answers.len(), Status::ANSWERS);
    assert!(view.answers.iter().all(|it| it.function.len() == 600));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn between_two_words_of_its_gateway_a_follower_goes_on_as_its_cycle_says() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    let mut one = status(1, true);
    let woke = [(101, 9_800), (102, 10_500), (103, 0)].into_iter();
    one.some_followers = woke
        .map(|it| follower(it.0, 1, Class::Low, Some(it.1)))
        .collect();
    seen.see(Member::new(1, 0), one, now);
    let phases = |after| {
        let view = seen.view(ALL.into_iter(), now + Duration::from_millis(after));
        let phases = view.some_followers.iter().map(|it| it.phase);
        phases.collect::<Vec<Phase>>()
    };
    assert_eq!(phases(0), [Phase::Asleep, Phase::Asleep, Phase::Active]);
    assert_eq!(phases(900), [Phase::Active, Phase::Late, Phase::Active]);
    // The phase is unknown while its gateway is silent.
    assert_eq!(phases(3_000), [Phase::Busy, Phase::Late, Phase::Asleep]);
    assert_eq!(phases(3_001), [Phase::Unknown; 3]);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn a_gateway_is_silent_after_three_seconds() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    assert!(!seen.has_all([NodeId(1)].into_iter()));
    seen.see(Member::new(1, 0), status(9, true), now);
    assert!(seen.has_all([NodeId(1)].into_iter()));
    assert!(!seen.has_all(ALL.into_iter()));
    let at = |after| {
        let view = seen.view(ALL.into_iter(), now + after);
        (view.manager, view.gateways[0].role)
    };
    assert_eq!(at(SILENT), (Some(NodeId(1)), Role::Manager));
    let later = SILENT + Duration::from_millis(1);
    assert_eq!(at(later), (None, Role::Silent));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
fn the_unit_of_the_last_attempt_is_shown() {
    let (now, mut seen) = (Instant::now(), Seen::default());
    for (id, attempt) in [(1, 1), (2, 3), (3, 2)] {
        let mut of = status(id, false);
        let mut answer = answer(5, b"x", &[], 1);
        answer.attempt = attempt;
        answer.electors = [Member::new(attempt.into(), 0)].into_iter().collect();
        of.answers = [answer].into_iter().collect();
        seen.see(Member::new(id, 0), of, now);
    }
    let view = seen.view(ALL.into_iter(), now);
    let [answer] = view.answers.as_slice() else {
        panic!("{view:?}");
    };
    assert_eq!(
        (answer.attempt, answer.electors.as_slice()),
        (3, &[NodeId(3)][..])
    );
}
