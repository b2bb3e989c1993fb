//! A follower's response to tasks, votes, libraries and messages of gateways: one follower, by hand.

use selvedge_core::{Input, Member, NodeId, Span};
use selvedge_pcm::follower::{
    Command, Config, Counters, Event, Follower, Misbehaviour, Phase, Reject,
};
use selvedge_pcm::{Assignment, DutyCycle, Function, Library, Message, Returned, Run, TaskId};

use super::alone::Alone;

const ME: Member = Member::new(11, 0);
const ORCHESTRATOR: Member = Member::new(12, 0);
const GATEWAY: Member = Member::new(1, 0);

/// A follower of the gateways 1, 2 and 3 that is started.
fn follower(config: Config) -> Alone<Follower> {
    let follower = Follower::new(ME, config, [1, 2, 3].map(NodeId)).unwrap();
    let mut it = Alone::new(follower);
    it.command(Command::Start);
    it.forget();
    it
}

impl Alone<Follower> {
    /// A task of the unit that `electors` are, which needs these libraries.
    fn run(&mut self, task: TaskId, electors: &[Member], libraries: &[u64]) {
        let function = Function {
            libraries: libraries.iter().map(|it| Library(*it)).collect(),
            ..Function::new(&task.number.to_be_bytes())
        };
        self.receive(GATEWAY, request(task, (1, 0), electors, &function));
    }

    /// Ends the function of this task with the result that all return.
    fn end(&mut self, task: TaskId) {
        let returned = value(4);
        self.command(Command::Returned { task, returned });
    }

    fn counters(&self) -> Counters {
        *self.driver.machine().counters()
    }

    /// Its votes, and their receivers.
    fn votes(&self) -> Vec<(u64, TaskId, bool)> {
        let votes = self.sent.iter().filter_map(|(to, it)| match it {
            Message::Vote { task, returned, .. } => {
                Some((*to, *task, matches!(returned, Returned::Value(_))))
            }
            _ => None,
        });
        votes.collect()
    }

    /// The tasks for which it sends a verdict.
    fn verdicts(&self) -> Vec<TaskId> {
        let verdicts = self.sent.iter().filter_map(|(_, it)| match it {
            Message::Verdict { task, .. } => Some(*task),
            _ => None,
        });
        verdicts.collect()
    }

    /// The functions that it has its host run.
    fn begun(&self) -> Vec<TaskId> {
        let begun = self.notified.iter().filter_map(|it| match it {
            Event::Run { task, .. } => Some(*task),
            _ => None,
        });
        begun.collect()
    }

    /// The gateways to which it sends a keep-alive, each with its attachment.
    fn keep_alives(&self) -> Vec<(u64, u32)> {
        let reported = self.sent.iter().filter_map(|(to, it)| match it {
            Message::KeepAlive { number, .. } => Some((*to, *number)),
            _ => None,
        });
        reported.collect()
    }
}

fn request(
    task: TaskId,
    (attempt, term): (u16, u16),
    electors: &[Member],
    function: &Function,
) -> Message {
    let assignment = Assignment {
        attempt,
        term,
        electors: electors.iter().copied().collect(),
    };
    Message::Run(Box::new(Run::new(task, &assignment, function, false)))
}

fn always() -> Config {
    Config::new(DutyCycle::always())
}

fn task(number: u64) -> TaskId {
    TaskId {
        client: Member::new(31, 0),
        number,
    }
}

/// A result of this length in bytes.
fn value(length: usize) -> Returned {
    Returned::Value(vec![7; length].into_iter().collect())
}

/// The unit of an orchestrator with two followers.
const UNIT: [Member; 3] = [ORCHESTRATOR, ME, Member::new(13, 0)];
/// The same followers where this one is the orchestrator.
const OWN_UNIT: [Member; 3] = [ME, ORCHESTRATOR, Member::new(13, 0)];

#[test]
fn a_function_that_is_too_long_or_needs_too_many_libraries_fails_unrun() {
    let mut it = follower(always().with_code(8).with_libraries(2));
    it.run(task(1), &UNIT, &[]);
    assert_eq!(it.begun(), [task(1)], "as long as may be");
    it.end(task(1));
    it.run(task(2), &UNIT, &[1, 2]);
    assert_eq!(it.notified.last(), Some(&Event::Load(Library(1))));
    it.forget();
    it.run(task(3), &UNIT, &[1, 2, 3]);
    let longer = Function::new(&[0; 9]);
    it.receive(GATEWAY, request(task(4), (1, 0), &UNIT, &longer));
    assert_eq!(it.notified, []);
    let failed = [(12, task(3), false), (12, task(4), false)];
    assert_eq!(it.votes(), failed);
    assert_eq!(it.counters().beyond_limits, 2);
}

#[test]
fn a_task_that_finds_no_room_is_counted_and_one_that_is_over_makes_room() {
    let mut it = follower(always().with_jobs(2));
    for number in 1..=3 {
        it.run(task(number), &UNIT, &[]);
    }
    assert_eq!(it.counters().no_room, 1);
    it.end(task(1));
    it.end(task(2));
    assert_eq!(it.begun(), [task(1), task(2)], "the third one is not there");
    let over = Message::Over {
        task: task(1),
        attempt: 1,
    };
    it.receive(GATEWAY, over);
    it.run(task(3), &UNIT, &[]);
    assert_eq!(it.begun().last(), Some(&task(3)));
    assert_eq!(it.counters().no_room, 1);
}

#[test]
fn a_library_that_came_first_makes_room_unless_it_is_needed() {
    let mut it = follower(always().with_libraries(2));
    let kept = |it: &Alone<Follower>| -> Vec<u64> {
        let kept = it.driver.machine().libraries();
        kept.map(|it| it.0).collect()
    };
    it.run(task(1), &UNIT, &[1, 2]);
    for library in [1, 2] {
        assert_eq!(it.notified.last(), Some(&Event::Load(Library(library))));
        it.command(Command::Loaded(Library(library)));
    }
    assert_eq!(it.begun(), [task(1)]);
    assert!(
        !it.notified.contains(&Event::Unload(Library(1))),
        "there is room"
    );
    it.end(task(1));
    it.forget();
    it.run(task(2), &UNIT, &[1, 3]);
    it.command(Command::Loaded(Library(3)));
    let unloaded = Event::Unload(Library(2));
    assert!(it.notified.contains(&unloaded), "{:?}", it.notified);
    assert_eq!(kept(&it), [1, 3]);
    assert_eq!(it.begun(), [task(2)]);
    let why = Reject::NotAsked(Library(3));
    let again = Input::Command(Command::Loaded(Library(3)));
    assert_eq!(it.step(again), Err(why));
}

#[test]
fn a_function_whose_library_cannot_be_had_fails_and_the_next_one_runs() {
    let mut it = follower(always());
    it.run(task(1), &UNIT, &[1]);
    it.run(task(2), &UNIT, &[]);
    assert_eq!(it.begun(), []);
    it.command(Command::Missing(Library(1)));
    assert_eq!(it.votes(), [(12, task(1), false)]);
    assert_eq!(it.begun(), [task(2)]);
}

#[test]
fn a_function_that_takes_too_long_is_stopped_and_the_next_one_runs() {
    let mut it = follower(always().with_time(Span::millis(200)));
    it.run(task(1), &UNIT, &[]);
    it.run(task(2), &UNIT, &[]);
    it.pass(Span::millis(199));
    assert_eq!(it.votes(), []);
    it.pass(Span::millis(1));
    assert!(it.notified.contains(&Event::Stop(task(1))));
    assert_eq!(it.votes(), [(12, task(1), false)]);
    assert_eq!(it.begun(), [task(1), task(2)]);
    assert_eq!(it.counters().beyond_limits, 1);
    let late = Command::Returned {
        task: task(1),
        returned: value(1),
    };
    let refused = it.step(Input::Command(late));
    assert_eq!(refused, Err(Reject::NotRunning(task(1))));
}

#[test]
fn a_result_that_is_too_long_is_a_failure() {
    let mut it = follower(always().with_result(4));
    for (number, length) in [(1, 4), (2, 5)] {
        it.run(task(number), &UNIT, &[]);
        it.command(Command::Returned {
            task: task(number),
            returned: value(length),
        });
    }
    assert_eq!(it.votes(), [(12, task(1), true), (12, task(2), false)]);
    assert_eq!(it.counters().beyond_limits, 1);
}

fn vote(attempt: u16, returned: Returned) -> Message {
    Message::Vote {
        task: task(1),
        attempt,
        returned,
    }
}

#[test]
fn a_vote_counts_in_its_attempt_and_is_acknowledged_unless_it_came_too_early() {
    let mut it = follower(always().with_result(4));
    it.run(task(1), &OWN_UNIT, &[]);
    it.end(task(1));
    it.forget();
    // A result that is too long is not stored. A vote for an attempt that is not known yet will be sent
    // again.
    it.receive(ORCHESTRATOR, vote(1, value(5)));
    it.receive(ORCHESTRATOR, vote(2, value(4)));
    assert_eq!(it.sent, []);
    assert_eq!(it.counters().beyond_limits, 1);
    it.receive(
        GATEWAY,
        request(task(1), (2, 0), &OWN_UNIT, &Function::new(b"f")),
    );
    it.forget();
    // A receipt for a former attempt is not needed.
    let counted = |attempt| {
        let task = task(1);
        (12, Message::Counted { task, attempt })
    };
    it.receive(ORCHESTRATOR, vote(1, value(4)));
    assert_eq!(it.sent, [counted(1)]);
    assert_eq!(it.verdicts(), []);
    it.forget();
    it.receive(ORCHESTRATOR, vote(2, value(4)));
    assert_eq!(it.sent[0], counted(2));
    assert_eq!(it.verdicts(), [task(1)]);
}

#[test]
fn votes_are_for_the_orchestrator_alone() {
    let mut it = follower(always());
    it.run(task(1), &UNIT, &[]);
    it.receive(Member::new(13, 0), vote(1, value(4)));
    assert_eq!(it.sent, [], "it may count from its next request on");
}

/// Votes that an orchestrator received before the next attempt do not count in it. They do count if only
/// another orchestrator was named in between.
#[test]
fn votes_stand_for_their_attempt_and_for_all_orchestrators_in_it() {
    for (renewed, verdicts) in [((2, 0), vec![]), ((1, 1), vec![task(1)])] {
        let mut it = follower(always());
        it.run(task(1), &OWN_UNIT, &[]);
        it.receive(ORCHESTRATOR, vote(1, value(4)));
        it.receive(
            GATEWAY,
            request(task(1), renewed, &OWN_UNIT, &Function::new(b"f")),
        );
        it.end(task(1));
        assert_eq!(it.verdicts(), verdicts);
    }
}

#[test]
fn a_vote_that_the_gateway_counts_is_said_until_the_gateway_has_it() {
    let mut it = follower(always());
    let Message::Run(mut run) = request(task(1), (1, 0), &UNIT, &Function::new(b"f")) else {
        panic!("it is a request");
    };
    run.to_gateway = true;
    it.receive(GATEWAY, Message::Run(run));
    it.end(task(1));
    for (from, votes) in [(ORCHESTRATOR, 1), (GATEWAY, 0)] {
        let counted = Message::Counted {
            task: task(1),
            attempt: 1,
        };
        it.receive(from, counted);
        it.forget();
        it.pass(Span::secs(1));
        assert_eq!(it.votes(), vec![(1, task(1), true); votes]);
    }
}

#[test]
fn a_vote_is_said_in_each_period_until_its_orchestrator_has_it() {
    let counted = |from: Member, attempt| {
        let task = task(1);
        (from, Message::Counted { task, attempt })
    };
    let mut it = follower(always());
    it.run(task(1), &UNIT, &[]);
    it.end(task(1));
    // A receipt from another follower, and one for another attempt.
    for (from, message) in [counted(Member::new(13, 0), 1), counted(ORCHESTRATOR, 2)] {
        it.receive(from, message);
        it.forget();
        it.pass(Span::secs(1));
        assert_eq!(it.votes(), [(12, task(1), true)]);
    }
    let (from, message) = counted(ORCHESTRATOR, 1);
    it.receive(from, message);
    it.forget();
    it.pass(Span::secs(1));
    assert_eq!(it.votes(), []);
}

#[test]
fn what_nobody_acknowledges_is_given_up_after_as_many_periods_as_are_set() {
    let mut it = follower(always().with_repeats(2));
    it.run(task(1), &UNIT, &[]);
    it.end(task(1));
    for _ in 0..5 {
        it.pass(Span::secs(1));
    }
    assert_eq!(it.votes().len(), 3, "once, and twice again");
    assert_eq!(it.counters().given_up, 1);
}

#[test]
fn a_task_that_is_over_is_stopped_and_the_next_one_runs() {
    let mut it = follower(always());
    it.run(task(1), &UNIT, &[]);
    it.run(task(2), &UNIT, &[]);
    it.run(task(3), &UNIT, &[1]);
    let over = |number, attempt| {
        let task = task(number);
        Message::Over { task, attempt }
    };
    it.forget();
    it.receive(GATEWAY, over(1, 0));
    assert_eq!(it.notified, [], "this attempt goes on");
    it.receive(GATEWAY, over(1, 1));
    assert_eq!(it.notified[0], Event::Stop(task(1)));
    assert_eq!(it.begun(), [task(2)]);
    it.end(task(2));
    assert_eq!(it.notified.last(), Some(&Event::Load(Library(1))));
    it.run(task(4), &UNIT, &[]);
    it.receive(GATEWAY, over(3, 1));
    assert_eq!(it.begun(), [task(2), task(4)]);
    let tasks = it.votes();
    assert_eq!(tasks, [(12, task(2), true)]);
}

#[test]
fn a_follower_that_was_purged_comes_back_with_a_later_attachment() {
    let mut it = follower(always());
    let purged = |number| Message::Purged { number };
    it.receive(GATEWAY, purged(1));
    assert_eq!(it.keep_alives(), [(1, 2)]);
    it.receive(GATEWAY, purged(1));
    assert_eq!(it.keep_alives().len(), 1, "that was before");
    it.receive(GATEWAY, purged(9));
    assert_eq!(it.keep_alives().last(), Some(&(1, 10)));
    it.forget();
    it.receive(GATEWAY, purged(u32::MAX));
    assert_eq!(it.keep_alives(), [], "there is none later");
    it.receive(GATEWAY, purged(u32::MAX - 1));
    assert_eq!(it.keep_alives(), [(1, u32::MAX)]);
}

#[test]
fn a_follower_tries_each_gateway_once_in_a_period() {
    let mut it = follower(always());
    for from in [1, 2, 3] {
        it.receive(Member::new(from, 0), Message::Elsewhere);
    }
    assert_eq!(it.keep_alives(), [(2, 2), (3, 3)]);
    it.forget();
    it.pass(Span::secs(1));
    assert_eq!(it.keep_alives(), [(1, 4)], "it begins with the first again");
    // It is not at that one.
    it.receive(Member::new(3, 0), Message::Elsewhere);
    assert_eq!(it.keep_alives().len(), 1);
    assert_eq!(it.driver.machine().attached_to(), NodeId(1));
}

#[test]
fn a_follower_is_told_by_gateways_of_its_list_and_with_its_own_id() {
    let mut it = follower(always());
    let stranger = Member::new(4, 0);
    let over = Message::Over {
        task: task(1),
        attempt: 1,
    };
    for message in [
        request(task(1), (1, 0), &UNIT, &Function::new(b"f")),
        over,
        Message::Purged { number: 1 },
        Message::Elsewhere,
    ] {
        let refused = it.step(Input::Message {
            from: stranger,
            message,
        });
        let why = Misbehaviour::NoGateway(stranger);
        assert_eq!(refused, Err(Reject::Misbehaviour(why)));
    }
    let others = request(task(1), (1, 0), &[ORCHESTRATOR], &Function::new(b"f"));
    let refused = it.step(Input::Message {
        from: GATEWAY,
        message: others,
    });
    let why = Misbehaviour::NotElected(GATEWAY);
    assert_eq!(refused, Err(Reject::Misbehaviour(why)));
    assert_eq!((it.sent, it.notified), (vec![], vec![]));
}

#[test]
fn a_follower_is_started_once() {
    let mut it = Alone::new(Follower::new(ME, always(), [NodeId(1)]).unwrap());
    let early = it.step(Input::Command(Command::Unreachable));
    assert_eq!(early, Err(Reject::NotStarted));
    it.command(Command::Start);
    assert_eq!(it.driver.machine().phase(), Some(Phase::Active));
    let again = it.step(Input::Command(Command::Start));
    assert_eq!(again, Err(Reject::Started));
}

#[test]
fn another_duty_cycle_begins_with_the_next_period_and_the_same_one_changes_nothing() {
    let mut it = follower(always());
    it.command(Command::SetDutyCycle(DutyCycle::always()));
    it.pass(Span::secs(1));
    assert_eq!(it.keep_alives(), [(1, 1)]);
    it.forget();
    let other = DutyCycle {
        active_ms: 500,
        busy_ms: 300,
        asleep_ms: 200,
    };
    it.command(Command::SetDutyCycle(other));
    for _ in 0..20 {
        it.pass(Span::millis(100));
    }
    assert_eq!(it.keep_alives(), [(1, 2), (1, 2)]);
    let phases = it.notified.iter().filter_map(|it| match it {
        Event::PhaseChanged(phase) => Some(*phase),
        _ => None,
    });
    let phases: Vec<Phase> = phases.collect();
    assert_eq!(phases, [Phase::Busy, Phase::Asleep, Phase::Active]);
}

/// A request with more than the follower knows continues the task; any other request is a duplicate, or
/// late.
#[test]
fn a_request_renews_a_task_where_it_says_more() {
    let mut it = follower(always());
    let function = Function::new(b"f");
    let reports =
        |attempt, term, electors: &[Member]| request(task(1), (attempt, term), electors, &function);
    it.receive(GATEWAY, reports(1, 1, &UNIT));
    it.end(task(1));
    let third = Member::new(13, 0);
    for (request, voted_to) in [
        (reports(1, 1, &UNIT), None),
        (reports(1, 0, &[third, ME]), None),
        (reports(0, 2, &[third, ME]), None),
        (reports(1, 1, &[third, ME]), Some(13)),
        (reports(1, 1, &[ORCHESTRATOR, ME]), None),
        (reports(1, 2, &UNIT), Some(12)),
        (reports(2, 0, &[third, ORCHESTRATOR, ME]), Some(13)),
    ] {
        it.forget();
        it.receive(GATEWAY, request.clone());
        let votes: Vec<u64> = it.votes().iter().map(|it| it.0).collect();
        assert_eq!(votes, Vec::from_iter(voted_to), "{request:?}");
    }
    assert_eq!(it.begun(), [], "it has run");
}
