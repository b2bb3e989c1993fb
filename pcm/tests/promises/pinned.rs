//! Stories that random histories found, by hand: followers and clients.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Machine, Member, NodeId, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Event, Follower, Phase};
use selvedge_pcm::{Assignment, DutyCycle, Failure, Function, Message, Returned, Run, TaskId};

mod few;

const GATEWAY: Member = Member::new(1, 0);

fn step<M: Machine>(at: &mut Driver<M>, now: Time, input: Input<M>) -> Vec<Effect<M>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut effects = Vec::new();
    at.step_into(now, &mut rng, input, &mut effects).unwrap();
    effects
}

fn expire<M: Machine>(at: &mut Driver<M>, now: Time) -> Vec<Effect<M>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut effects = Vec::new();
    at.expire_into(now, &mut rng, &mut effects);
    effects
}

fn sent<M: Machine<Message = Message>>(effects: &[Effect<M>]) -> Vec<(u64, Message)> {
    let sent = effects.iter().filter_map(|it| match it {
        Effect::Send { to, message } => Some((to.id.0, message.clone())),
        _ => None,
    });
    sent.collect()
}

fn ms(millis: u64) -> Time {
    Time(millis * 1_000)
}

fn task(number: u64) -> TaskId {
    TaskId {
        client: Member::new(31, 0),
        number,
    }
}

fn follower(id: u64, duty: DutyCycle) -> Driver<Follower> {
    let config = follower::Config::new(duty);
    let me = Member::new(id, 0);
    let mut it = Driver::new(Follower::new(me, config, [GATEWAY.id]).unwrap());
    step(&mut it, ms(0), Input::Command(follower::Command::Start));
    it
}

fn run(number: u64, term: u16, electors: &[u64]) -> Input<Follower> {
    let assignment = Assignment {
        attempt: 1,
        term,
        electors: electors.iter().map(|id| Member::new(*id, 0)).collect(),
    };
    let run = Run::new(task(number), &assignment, &Function::new(b"f"), false);
    Input::Message {
        from: GATEWAY,
        message: Message::Run(Box::new(run)),
    }
}

fn vote(number: u64, from: u64) -> Input<Follower> {
    Input::Message {
        from: Member::new(from, 0),
        message: Message::Vote {
            task: task(number),
            attempt: 1,
            returned: Returned::Failed(Failure::Trapped),
        },
    }
}

fn returned(number: u64) -> Input<Follower> {
    Input::Command(follower::Command::Returned {
        task: task(number),
        returned: Returned::Failed(Failure::Trapped),
    })
}

const BRIEF: DutyCycle = DutyCycle {
    active_ms: 1_000,
    busy_ms: 0,
    asleep_ms: 4_000,
};

/// The active phase goes on for one function. The end of another task does not end it.
#[test]
fn a_function_that_runs_keeps_its_follower_awake() {
    let mut it = follower(11, BRIEF);
    step(&mut it, ms(10), run(1, 0, &[11, 12, 13]));
    step(&mut it, ms(20), run(2, 0, &[11, 12, 13]));
    expire(&mut it, ms(1_000));
    let over = Message::Over {
        task: task(2),
        attempt: 1,
    };
    let over = Input::Message {
        from: GATEWAY,
        message: over,
    };
    step(&mut it, ms(1_100), over);
    assert_eq!(it.machine().phase(), Some(Phase::Active));
    let effects = step(&mut it, ms(1_200), returned(1));
    assert!(effects.contains(&Effect::Event(Event::PhaseChanged(Phase::Asleep))));
}

/// It is purged after 3.5 of its periods without a keep-alive, and its functions may take longer.
#[test]
fn a_follower_says_that_it_is_here_while_it_runs_a_function() {
    let mut it = follower(11, DutyCycle::always());
    step(&mut it, ms(10), run(1, 0, &[11, 12, 13]));
    for second in 1..5 {
        let effects = expire(&mut it, ms(second * 1_000));
        let is_here = |it: &(u64, Message)| matches!(it.1, Message::KeepAlive { .. });
        assert!(sent(&effects).iter().any(is_here), "second {second}");
    }
    let effects = step(&mut it, ms(4_500), returned(1));
    assert_eq!(it.machine().phase(), Some(Phase::Active));
    assert!(!effects.is_empty());
}

/// A follower receives a vote before the request that names it as the orchestrator: the vote is sent again
/// (erratum Q6).
#[test]
fn a_vote_that_is_not_counted_is_not_acknowledged() {
    let mut it = follower(11, DutyCycle::always());
    step(&mut it, ms(10), run(1, 0, &[12, 11, 13]));
    // 13 knows that 12 was purged, and 11 does not.
    let effects = step(&mut it, ms(20), vote(1, 13));
    assert_eq!(sent(&effects), []);
    step(&mut it, ms(30), run(1, 1, &[11, 13]));
    let effects = step(&mut it, ms(40), vote(1, 13));
    let counted = Message::Counted {
        task: task(1),
        attempt: 1,
    };
    assert_eq!(sent(&effects), [(13, counted)]);
}

/// A late vote for a former attempt is acknowledged, and is no reason for the follower to send its own vote
/// again.
#[test]
fn a_vote_on_a_former_attempt_is_acknowledged_and_no_more() {
    let mut it = follower(11, DutyCycle::always());
    let electors = [12, 11].map(|id| Member::new(id, 0));
    let assignment = Assignment {
        attempt: 2,
        term: 0,
        electors: electors.into_iter().collect(),
    };
    let run = Run::new(task(1), &assignment, &Function::new(b"f"), false);
    let message = Message::Run(Box::new(run));
    let from = GATEWAY;
    step(&mut it, ms(10), Input::Message { from, message });
    assert_eq!(sent(&step(&mut it, ms(20), returned(1))).len(), 1, "a vote");
    let counted = Message::Counted {
        task: task(1),
        attempt: 1,
    };
    let effects = step(&mut it, ms(30), vote(1, 13));
    assert_eq!(sent(&effects), [(13, counted)]);
}

/// The notice that a task is over may be lost. An orchestrator that waits for votes asks for it, or it would
/// hold the task for good.
#[test]
fn an_orchestrator_whose_task_is_over_hears_of_it() {
    let mut it = follower(11, DutyCycle::always());
    step(&mut it, ms(10), run(1, 0, &[11, 12, 13, 14, 15]));
    step(&mut it, ms(20), returned(1));
    let effects = expire(&mut it, ms(1_000));
    let asks = |it: &(u64, Message)| it.0 == 1 && matches!(it.1, Message::Vote { .. });
    assert!(sent(&effects).iter().any(asks), "{effects:?}");
}

fn client(gateways: &[u64], repeats: u8) -> Driver<Client> {
    let config = client::Config::new().with_repeats(repeats);
    let gateways = gateways.iter().map(|it| NodeId(*it));
    Driver::new(Client::new(Member::new(31, 0), config, gateways).unwrap())
}

fn submit() -> Input<Client> {
    Input::Command(client::Command::Submit(Function::new(b"f")))
}

/// Only one gateway of four is a voter; the others send the client on.
#[test]
fn a_client_that_is_sent_on_asks_each_gateway() {
    let mut it = client(&[1, 2, 3, 4], 1);
    let mut asked = Vec::new();
    let mut effects = step(&mut it, ms(0), submit());
    for turn in 1..5 {
        for (to, _) in sent(&effects) {
            asked.push(to);
            let from = Member::new(to, 0);
            let message = Message::Elsewhere;
            step(
                &mut it,
                ms(turn * 2_000 - 1_000),
                Input::Message { from, message },
            );
        }
        effects = expire(&mut it, ms(turn * 2_000));
    }
    assert_eq!(asked, [1, 2, 3, 4]);
}
