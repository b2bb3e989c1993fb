//! Nodes and the messages of others: one at a time, without a network.

use selvedge_core::{Delta, Input, Member, NodeId, Span};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway, Reject};
use selvedge_pcm::{
    Answer, DutyCycle, Failure, Function, Library, Limits, Message, Refusal, Returned, Run, TaskId,
    Update, Voters,
};
use selvedge_replica::{Body, Configuration, Entry, Proposal, QuorumRule, Voter};

use super::alone::{APP, Alone, HUB, hub, keep_alive, submit};
use super::wire::LONGEST_CODE;

#[test]
fn an_answer_to_a_former_life_of_a_client_is_none_to_this_one() {
    let me = Member::new(APP.id.0, 1);
    let mut client = Alone::new(Client::new(me, client::Config::new(), [HUB.id]).unwrap());
    let submits = client::Command::Submit(Function::new(b"new"));
    client.command(submits);
    let task = |life| TaskId {
        client: Member::new(APP.id.0, life),
        number: 1,
    };
    let voters = || -> Voters { [NodeId(11), NodeId(12)].into_iter().collect() };
    let answer = |life| Message::Answer {
        task: task(life),
        answer: Answer::Failed(Failure::Trapped),
        voters: voters(),
    };
    let why = Refusal::Full;
    client.receive(HUB, answer(0));
    client.receive(HUB, Message::Refused { task: task(0), why });
    assert_eq!(
        client.notified,
        [],
        "the former life counted its tasks alike"
    );
    client.receive(HUB, answer(1));
    let answered = client::Event::Answered {
        number: 1,
        answer: Answer::Failed(Failure::Trapped),
        voters: voters(),
    };
    assert_eq!(client.notified, [answered]);
}

#[test]
fn a_gateway_takes_tables_from_gateways_alone() {
    let mut hub = hub(&[HUB], gateway::Config::new(), Limits::new());
    let task = TaskId {
        client: APP,
        number: 1,
    };
    let proposal = |update| Proposal {
        by: Member::new(11, 0),
        number: 1,
        first: 1,
        since: 0,
        update,
    };
    let learned = [Entry::Update(proposal(Update::Cancel(task)))];
    let bodies = [
        Body::Propose {
            proposals: [proposal(Update::Cancel(task))].into_iter().collect(),
        },
        Body::Learn {
            after: hub.driver.machine().replica().version(),
            entries: learned.into_iter().collect(),
        },
    ];
    for body in bodies {
        let message = selvedge_replica::Message {
            configuration: 1,
            body,
        };
        let from = Member::new(11, 0);
        let message = Message::Tables(message.into());
        let refused = hub.step(Input::Message { from, message });
        let why = Reject::UnknownGateway(from);
        assert_eq!(refused, Err(why));
    }
    let tables = hub.driver.machine().tables().unwrap();
    assert_eq!(tables.answer(task), None);
}

#[test]
fn a_follower_that_finds_no_room_costs_no_update() {
    let mut hub = hub(
        &[HUB],
        gateway::Config::new(),
        Limits::new().with_followers(1),
    );
    hub.receive(Member::new(11, 0), keep_alive(1));
    let version = hub.driver.machine().replica().version();
    for number in 1..4 {
        hub.receive(Member::new(12, 0), keep_alive(number));
    }
    let gateway = hub.driver.machine();
    assert_eq!(gateway.replica().version(), version);
    assert_eq!(gateway.counters().no_room, 3);
}

#[test]
fn a_task_that_finds_no_room_costs_no_update() {
    let mut hub = hub(&[HUB], gateway::Config::new(), Limits::new().with_open(1));
    hub.receive(APP, submit(1, Function::new(b"f")));
    hub.sent.clear();
    let version = hub.driver.machine().replica().version();
    for _ in 0..3 {
        hub.receive(APP, submit(2, Function::new(b"g")));
    }
    let client = APP;
    let task = |number| TaskId { client, number };
    let refused = Message::Refused {
        task: task(2),
        why: Refusal::Full,
    };
    assert_eq!(hub.sent, vec![(APP.id.0, refused); 3]);
    let gateway = hub.driver.machine();
    assert_eq!(gateway.replica().version(), version);
    assert_eq!(gateway.counters().no_room, 3);
}

/// It submitted before, and the update that proposes its task is not decided.
#[test]
fn a_task_that_was_proposed_is_not_refused_because_others_came_before_it() {
    let gateways = [HUB, Member::new(2, 0)];
    let first = Configuration::of(gateways);
    let limits = Limits::new().with_open(1);
    let machine = Gateway::new(HUB, gateway::Config::new(), first, limits).unwrap();
    let mut hub = Alone::new(machine);
    hub.command(gateway::Command::Start);
    hub.receive(APP, submit(1, Function::new(b"f")));
    let other = TaskId {
        client: Member::new(22, 0),
        number: 1,
    };
    let entries = [Entry::Update(Proposal {
        by: gateways[1],
        number: 1,
        first: 1,
        since: 0,
        update: Update::Submit {
            task: other,
            function: Function::new(b"g"),
        },
    })];
    let body = Body::Learn {
        after: hub.driver.machine().replica().version(),
        entries: entries.into_iter().collect(),
    };
    let message = selvedge_replica::Message {
        configuration: 1,
        body,
    };
    hub.receive(gateways[1], Message::Tables(message.into()));
    let tables = hub.driver.machine().tables().unwrap();
    assert_eq!(tables.open().count(), 1);
    hub.sent.clear();
    hub.receive(APP, submit(1, Function::new(b"f")));
    assert_eq!(hub.sent, []);
    // A later task is not refused either: only the manager knows whether there is room.
    hub.receive(APP, submit(2, Function::new(b"h")));
    assert_eq!(hub.sent, []);
}

#[test]
fn a_function_that_has_no_room_in_a_request_is_refused() {
    let mut hub = hub(&[HUB], gateway::Config::new(), Limits::new());
    let function = |code| Function {
        libraries: (0..4).map(|it| Library(u64::MAX - it)).collect(),
        ..Function::new(&vec![0; code])
    };
    hub.receive(APP, submit(1, function(LONGEST_CODE)));
    let tables = hub.driver.machine().tables().unwrap();
    assert_eq!(tables.open().count(), 1);
    hub.sent.clear();
    hub.receive(APP, submit(2, function(LONGEST_CODE + 1)));
    let refused = Message::Refused {
        task: TaskId {
            client: APP,
            number: 2,
        },
        why: Refusal::TooLong,
    };
    assert_eq!(hub.sent, [(APP.id.0, refused)]);
}

/// An answer, or a vote, that does not fit would be proposed in vain, and its task given to one unit after
/// another.
#[test]
fn the_longest_result_fits_into_a_frame_between_gateways() {
    let me = Member::new(u64::MAX, 0);
    let new = |result, counts_votes| {
        let limits = Limits::new()
            .with_result(result)
            .with_counts_votes(counts_votes);
        Gateway::new(me, gateway::Config::new(), Configuration::of([me]), limits)
    };
    for counts_votes in [false, true] {
        let refused = new(2_000, counts_votes).unwrap_err();
        let Reject::NoRoomForResult { room, budget, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(budget, 1_400);
        assert_eq!(
            refused.to_string(),
            format!(
                "a result may have 2000 bytes, and a frame of 1400 has room for {room}: lower \
                 `Limits::result`, or raise `frame_budget`"
            ),
        );
        let most = room as u16;
        assert!(new(most + 1, counts_votes).is_err());
        let mut hub = Alone::new(new(most, counts_votes).unwrap());
        hub.command(gateway::Command::Start);
        // The longest ids: even so a vote, or an answer, is decided.
        let elector = Member::new(u64::MAX - 1, u32::MAX);
        let client = Member::new(u64::MAX - 2, u32::MAX);
        hub.receive(elector, keep_alive(1));
        hub.pass(Span::secs(1));
        let number = u64::MAX;
        hub.receive(client, submit(number, Function::new(b"f")));
        let task = TaskId { client, number };
        let value: selvedge_pcm::Bytes = vec![7; room].into_iter().collect();
        let attempt = 1;
        hub.receive(
            elector,
            match counts_votes {
                true => Message::Vote {
                    task,
                    attempt,
                    returned: Returned::Value(value.clone()),
                },
                false => Message::Verdict {
                    task,
                    attempt,
                    term: 0,
                    answer: Answer::Value(value.clone()),
                    voters: [elector.id].into_iter().collect(),
                },
            },
        );
        let tables = hub.driver.machine().tables().unwrap();
        assert!(tables.answer(task) == Some(&Answer::Value(value)));
        let smaller = Configuration {
            frame_budget: 1_000,
            ..Configuration::of([me])
        };
        let smaller = gateway::Command::Configure(smaller);
        let refused = hub.step(Input::Command(smaller));
        assert!(matches!(refused, Err(Reject::NoRoomForResult { .. })));
    }
}

/// The hub, before it has received anything from the others.
fn one_of(first: Configuration, config: gateway::Config) -> Alone<Gateway> {
    let machine = Gateway::new(HUB, config, first, Limits::new()).unwrap();
    let mut hub = Alone::new(machine);
    hub.command(gateway::Command::Start);
    hub
}

fn three() -> Configuration {
    Configuration::of([HUB, Member::new(2, 0), Member::new(3, 0)])
}

/// More than half are here in both.
#[test]
fn a_gateway_that_reaches_no_quorum_of_its_configuration_sends_followers_on() {
    let all = Configuration {
        quorum: QuorumRule::AtLeast(3),
        ..three()
    };
    let also = Configuration {
        also: vec![Voter::new(Member::new(4, 0))],
        ..three()
    };
    for (first, ended) in [(all, 3), (also, 4)] {
        let mut hub = one_of(first, gateway::Config::new());
        let ended = Member::new(ended, 0);
        hub.learn(Delta::Failed(ended));
        hub.sent.clear();
        hub.receive(Member::new(11, 0), keep_alive(1));
        assert_eq!(hub.sent, [(11, Message::Elsewhere)]);
        hub.learn(Delta::Refuted(ended));
        hub.sent.clear();
        hub.receive(Member::new(11, 0), keep_alive(2));
        assert!(
            !hub.sent.contains(&(11, Message::Elsewhere)),
            "{:?}",
            hub.sent
        );
    }
}

/// The availability events of its host since the last call, and true if it sends followers on.
fn sends_on(hub: &mut Alone<Gateway>) -> (Vec<gateway::Event>, bool) {
    use gateway::Event::{Available, Unavailable};
    let notified = core::mem::take(&mut hub.notified);
    let notified = notified.into_iter();
    let notified = notified.filter(|it| matches!(it, Available | Unavailable));
    let notified = notified.collect();
    hub.sent.clear();
    hub.receive(Member::new(12, 0), keep_alive(1));
    (notified, hub.sent.contains(&(12, Message::Elsewhere)))
}

#[test]
fn the_host_hears_once_that_followers_are_sent_on_whatever_the_reason() {
    use gateway::Event::{Available, Unavailable};
    let others = [Member::new(2, 0), Member::new(3, 0)];
    let here = (vec![], false);
    // Heartbeats of the manager list it as failed.
    let mut hub = one_of(three(), gateway::Config::new());
    assert_eq!(sends_on(&mut hub), here);
    let beat = |ended: &[u64]| Message::Heartbeat {
        ended: ended.iter().map(|it| NodeId(*it)).collect(),
    };
    hub.receive(others[0], beat(&[1]));
    hub.receive(others[0], beat(&[1]));
    assert_eq!(sends_on(&mut hub), here);
    for notified in [vec![Unavailable], vec![]] {
        hub.receive(others[0], beat(&[1]));
        assert_eq!(sends_on(&mut hub), (notified, true));
    }
    hub.receive(others[0], beat(&[]));
    assert_eq!(sends_on(&mut hub), (vec![Available], false));
    // It receives messages of no quorum.
    let mut hub = one_of(three(), gateway::Config::new());
    hub.learn(Delta::Failed(others[0]));
    assert_eq!(sends_on(&mut hub), here);
    hub.learn(Delta::Failed(others[1]));
    assert_eq!(sends_on(&mut hub), (vec![Unavailable], true));
    hub.learn(Delta::Refuted(others[0]));
    assert_eq!(sends_on(&mut hub), (vec![Available], false));
    // All are here, as far as it knows, and no gateway answers.
    let mut hub = one_of(three(), gateway::Config::new().with_heartbeat(Span::ZERO));
    assert_eq!(sends_on(&mut hub), here);
    for _ in 0..60 {
        hub.pass(Span::secs(1));
    }
    assert_eq!(sends_on(&mut hub), (vec![Unavailable], true));
    // It holds no tables.
    let others = others.map(|it| it.id);
    let machine = Gateway::newcomer(HUB, gateway::Config::new(), others).unwrap();
    let mut hub = Alone::new(machine);
    hub.command(gateway::Command::Start);
    assert_eq!(sends_on(&mut hub), (vec![Unavailable], true));
}

/// A gateway that lies names new followers again and again, and more than a unit has.
#[test]
fn an_orchestrator_keeps_no_more_votes_than_of_two_units() {
    let me = Member::new(11, 0);
    let config = follower::Config::new(DutyCycle::always());
    let mut follower = Alone::new(Follower::new(me, config, [HUB.id]).unwrap());
    follower.command(follower::Command::Start);
    let task = TaskId {
        client: APP,
        number: 1,
    };
    let run = |term, others: std::ops::Range<u64>| {
        let others = others.map(|id| Member::new(id, 0));
        Message::Run(Box::new(Run {
            task,
            attempt: 1,
            term,
            electors: [me].into_iter().chain(others).collect(),
            to_gateway: false,
            function: Function::new(b"f"),
        }))
    };
    let refused = follower.step(Input::Message {
        from: HUB,
        message: run(0, 100..117),
    });
    let why = follower::Misbehaviour::TooMany(HUB, 18);
    assert_eq!(refused, Err(follower::Reject::Misbehaviour(why)));
    for term in 0..100 {
        let first = 100 + 7 * u64::from(term);
        follower.receive(HUB, run(term, first..first + 16));
        for id in first..first + 7 {
            let vote = Message::Vote {
                task,
                attempt: 1,
                returned: Returned::Value(id.to_be_bytes().into_iter().collect()),
            };
            follower.receive(Member::new(id, 0), vote);
        }
    }
    let machine = follower.driver.machine();
    let held = format!("{machine:?}").matches("Value(").count();
    assert!((7..=34).contains(&held), "{held} votes");
}

/// The other manager was deposed and does not know it, because it receives nothing.
#[test]
fn a_manager_that_another_one_holds_for_gone_serves_its_followers() {
    let me = Member::new(HUB.id.0, 1);
    let other = Member::new(2, 0);
    let config = gateway::Config::new();
    let first = Configuration::of([HUB]);
    let former = Gateway::new(HUB, config, first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    let machine = Gateway::restore(me, config, stored, [other.id]).unwrap();
    let mut hub = Alone::new(machine);
    hub.command(gateway::Command::Start);
    hub.receive(Member::new(11, 0), keep_alive(1));
    assert!(hub.driver.machine().manages());
    for _ in 0..9 {
        let ended = [me.id].into_iter().collect();
        hub.receive(other, Message::Heartbeat { ended });
    }
    hub.sent.clear();
    hub.receive(Member::new(12, 0), keep_alive(1));
    assert!(
        !hub.sent.contains(&(12, Message::Elsewhere)),
        "{:?}",
        hub.sent
    );
    let tables = hub.driver.machine().tables().unwrap();
    assert_eq!(tables.followers().count(), 2);
}
