//! Nodes whose hosts report that a link, or the content of a mailbox, was lost.

use selvedge_core::{Input, Member, NodeId, Span};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::{
    Answer, DutyCycle, Function, Limits, Message, Returned, Run, TaskId, Voters, gateway,
};

use super::alone::{APP, Alone, HUB, hub, keep_alive, submit};

const fn task(number: u64) -> TaskId {
    TaskId {
        client: APP,
        number,
    }
}

fn follower(repeats: u8) -> Alone<Follower> {
    let config = follower::Config::new(DutyCycle::always()).with_repeats(repeats);
    let made = Follower::new(Member::new(11, 0), config, [HUB.id, NodeId(2)]);
    let mut follower = Alone::new(made.unwrap());
    follower.command(follower::Command::Start);
    follower
}

fn run(number: u64, electors: &[u64]) -> Message {
    Message::Run(Box::new(Run {
        task: task(number),
        attempt: 1,
        term: 0,
        electors: electors.iter().map(|id| Member::new(*id, 0)).collect(),
        to_gateway: false,
        function: Function::new(b"f"),
    }))
}

fn returned(number: u64) -> follower::Command {
    follower::Command::Returned {
        task: task(number),
        returned: Returned::Value(b"v".iter().copied().collect()),
    }
}

fn vote(number: u64) -> Message {
    Message::Vote {
        task: task(number),
        attempt: 1,
        returned: Returned::Value(b"v".iter().copied().collect()),
    }
}

fn verdict(number: u64) -> Message {
    Message::Verdict {
        task: task(number),
        attempt: 1,
        term: 0,
        answer: Answer::Value(b"v".iter().copied().collect()),
        voters: [11, 12].map(NodeId).into_iter().collect(),
    }
}

#[test]
fn a_follower_whose_mailboxes_were_emptied_says_at_once_what_may_be_lost() {
    let mut follower = follower(16);
    // A vote that is acknowledged, one that is not, a verdict, and an own vote that waits for others.
    for (number, electors) in [
        (1, [12, 11, 13]),
        (2, [12, 11, 13]),
        (3, [11, 12, 13]),
        (4, [11, 12, 13]),
    ] {
        follower.receive(HUB, run(number, &electors));
        follower.command(returned(number));
    }
    follower.receive(Member::new(12, 0), vote(3));
    let (task, attempt) = (task(1), 1);
    follower.receive(Member::new(12, 0), Message::Counted { task, attempt });
    follower.taken();
    follower.notified.clear();
    follower.command(follower::Command::Emptied);
    // A later attachment, which makes the gateway send the content of the mailbox again.
    let expected = [
        (HUB.id.0, keep_alive(2)),
        (12, vote(2)),
        (HUB.id.0, verdict(3)),
        (HUB.id.0, vote(4)),
    ];
    assert_eq!(follower.taken(), expected);
    assert_eq!(follower.notified, [follower::Event::Fetch(HUB.id)]);
    assert_eq!(follower.driver.machine().attached_to(), HUB.id);
}

#[test]
fn what_was_lost_does_not_count_as_said() {
    let mut follower = follower(1);
    follower.receive(HUB, run(1, &[12, 11, 13]));
    follower.command(returned(1));
    for _ in 0..9 {
        follower.taken();
        follower.command(follower::Command::Emptied);
        assert!(
            follower.sent.contains(&(12, vote(1))),
            "{:?}",
            follower.sent
        );
    }
    for is_reported in [true, false] {
        follower.taken();
        follower.pass(Span::secs(1));
        assert_eq!(follower.sent.contains(&(12, vote(1))), is_reported);
    }
    assert_eq!(follower.driver.machine().counters().given_up, 1);
}

/// A gateway hands out the tasks of a follower again when the follower attaches again.
#[test]
fn a_gateway_sends_again_what_an_emptied_mailbox_held() {
    let mut hub = hub(&[HUB], gateway::Config::new(), Limits::new());
    let sensor = Member::new(11, 0);
    hub.receive(sensor, keep_alive(1));
    hub.pass(Span::secs(2));
    hub.receive(APP, submit(1, Function::new(b"f")));
    hub.sent.clear();
    hub.receive(sensor, keep_alive(1));
    assert_eq!(hub.sent, [], "nothing is new");
    hub.receive(sensor, keep_alive(2));
    assert!(
        matches!(&*hub.sent, [(11, Message::Run(run))] if run.task == task(1)),
        "{:?}",
        hub.sent
    );
}

fn client(gateways: &[u64], config: client::Config) -> Alone<Client> {
    let gateways = gateways.iter().copied().map(NodeId);
    Alone::new(Client::new(APP, config, gateways).unwrap())
}

fn submits(code: &[u8]) -> client::Command {
    client::Command::Submit(Function::new(code))
}

const UNREACHABLE: client::Command = client::Command::Unreachable;

#[test]
fn a_client_whose_gateway_cannot_be_reached_asks_the_next_at_once() {
    let mut client = client(&[1, 2, 3], client::Config::new());
    client.command(submits(b"f"));
    client.command(submits(b"g"));
    client.command(client::Command::Cancel(2));
    client.taken();
    client.command(UNREACHABLE);
    // As the same tasks: a task that the first gateway has passed on runs once.
    let again = [
        (2, submit(1, Function::new(b"f"))),
        (2, Message::Cancel { number: 2 }),
    ];
    assert_eq!(client.taken(), again);
    let answered = Message::Answer {
        task: task(1),
        answer: Answer::Cancelled,
        voters: Voters::new(),
    };
    client.receive(Member::new(2, 0), answered);
    client.command(UNREACHABLE);
    assert_eq!(client.taken(), [(3, Message::Cancel { number: 2 })]);
}

#[test]
fn a_client_that_reaches_no_gateway_asks_each_once_until_requests_are_due() {
    let resend = client::Config::new().resend;
    let mut client = client(&[1, 2, 3], client::Config::new());
    client.command(submits(b"f"));
    for turn in 0..4 {
        // As if each request found its link down.
        for _ in 0..50 {
            client.command(UNREACHABLE);
        }
        let asked: Vec<u64> = client.taken().iter().map(|it| it.0).collect();
        assert_eq!(asked.len(), 3, "turn {turn}: {asked:?}");
        assert!(
            (1..=3).all(|it| asked.contains(&it)),
            "turn {turn}: {asked:?}"
        );
        client.pass(resend);
    }
}

#[test]
fn a_client_without_tasks_goes_on_and_says_nothing() {
    let mut client = client(&[1, 2], client::Config::new());
    client.command(UNREACHABLE);
    assert_eq!(client.taken(), []);
    client.pass(Span::secs(60));
    assert_eq!(client.taken(), []);
    client.command(submits(b"f"));
    assert_eq!(client.taken(), [(2, submit(1, Function::new(b"f")))]);
    client.command(UNREACHABLE);
    assert_eq!(client.taken(), [(1, submit(1, Function::new(b"f")))]);
}

#[test]
fn a_client_takes_no_more_voters_than_a_unit_has() {
    let mut client = client(&[1], client::Config::new());
    client.command(submits(b"f"));
    let answer = |voters| Message::Answer {
        task: task(1),
        answer: Answer::Cancelled,
        voters: (0..voters).map(NodeId).collect(),
    };
    let (from, most) = (HUB, u64::from(Limits::UNIT_MOST));
    let message = answer(most + 1);
    let refused = client.step(Input::Message { from, message });
    assert_eq!(refused, Err(client::Reject::TooMany(HUB, 18)));
    client.receive(HUB, answer(most));
    assert_eq!(client.notified.len(), 1);
}
