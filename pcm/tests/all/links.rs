//! What nodes do when their hosts tell that a link, or what a mailbox held, is gone.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Driver, Effect, Input, Machine, Member, NodeId, Span, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::{
    Answer, DutyCycle, Function, Limits, Message, Returned, Run, TaskId, Voters, gateway,
};

use super::peers::{APP, HUB, hub, keep_alive, submit};

const fn task(number: u64) -> TaskId {
    TaskId {
        client: APP,
        number,
    }
}

/// A node, and what it sends to whom.
struct Linked<M: Machine> {
    driver: Driver<M>,
    now: Time,
    sent: Vec<(u64, M::Message)>,
    told: Vec<M::Event>,
}

impl<M: Machine> Linked<M> {
    fn new(machine: M) -> Self {
        Self {
            driver: Driver::new(machine),
            now: Time::ZERO,
            sent: Vec::new(),
            told: Vec::new(),
        }
    }

    fn take(&mut self, effect: Effect<M>) {
        match effect {
            Effect::Send { to, message } => self.sent.push((to.id.0, message)),
            Effect::Multicast { .. } => panic!("nothing is multicast"),
            Effect::Event(event) => self.told.push(event),
        }
    }

    fn step(&mut self, input: Input<M>) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut effects = Vec::new();
        let taken = self
            .driver
            .step(self.now, &mut rng, input, |it| effects.push(it));
        taken.unwrap();
        effects.into_iter().for_each(|it| self.take(it));
    }

    fn pass(&mut self, span: Span) {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        self.now = self.now + span;
        let mut effects = Vec::new();
        self.driver
            .expire(self.now, &mut rng, |it| effects.push(it));
        effects.into_iter().for_each(|it| self.take(it));
    }

    fn hear(&mut self, from: Member, message: M::Message) {
        self.step(Input::Message { from, message });
    }

    fn taken(&mut self) -> Vec<(u64, M::Message)> {
        core::mem::take(&mut self.sent)
    }
}

fn follower(repeats: u8) -> Linked<Follower> {
    let config = follower::Config::new(DutyCycle::always()).with_repeats(repeats);
    let made = Follower::new(Member::new(11, 0), config, [HUB.id, NodeId(2)]);
    let mut follower = Linked::new(made.unwrap());
    follower.step(Input::Command(follower::Command::Start));
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

fn returned(number: u64) -> Input<Follower> {
    let returned = follower::Command::Returned {
        task: task(number),
        returned: Returned::Value(b"v".iter().copied().collect()),
    };
    Input::Command(returned)
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
    // A vote that is counted, one that is not, a verdict, and an own vote that waits for others.
    for (number, electors) in [
        (1, [12, 11, 13]),
        (2, [12, 11, 13]),
        (3, [11, 12, 13]),
        (4, [11, 12, 13]),
    ] {
        follower.hear(HUB, run(number, &electors));
        follower.step(returned(number));
    }
    follower.hear(Member::new(12, 0), vote(3));
    let (task, attempt) = (task(1), 1);
    follower.hear(Member::new(12, 0), Message::Counted { task, attempt });
    follower.taken();
    follower.told.clear();
    follower.step(Input::Command(follower::Command::Emptied));
    // A later attachment: with it the gateway sends what the mailbox held.
    let expected = [
        (HUB.id.0, keep_alive(2)),
        (12, vote(2)),
        (HUB.id.0, verdict(3)),
        (HUB.id.0, vote(4)),
    ];
    assert_eq!(follower.taken(), expected);
    assert_eq!(follower.told, [follower::Event::Fetch(HUB.id)]);
    assert_eq!(follower.driver.machine().attached_to(), HUB.id);
}

#[test]
fn what_was_lost_does_not_count_as_said() {
    let mut follower = follower(1);
    follower.hear(HUB, run(1, &[12, 11, 13]));
    follower.step(returned(1));
    for _ in 0..9 {
        follower.taken();
        follower.step(Input::Command(follower::Command::Emptied));
        assert!(
            follower.sent.contains(&(12, vote(1))),
            "{:?}",
            follower.sent
        );
    }
    for is_said in [true, false] {
        follower.taken();
        follower.pass(Span::secs(1));
        assert_eq!(follower.sent.contains(&(12, vote(1))), is_said);
    }
    assert_eq!(follower.driver.machine().counters().given_up, 1);
}

/// A gateway hands out the tasks of a follower again that attaches itself anew.
#[test]
fn a_gateway_sends_again_what_an_emptied_mailbox_held() {
    let mut hub = hub(gateway::Config::new(), Limits::new());
    let sensor = Member::new(11, 0);
    hub.hear(sensor, keep_alive(1));
    hub.pass(Span::secs(2));
    hub.hear(APP, submit(1, Function::new(b"f")));
    hub.sent.clear();
    hub.hear(sensor, keep_alive(1));
    assert_eq!(hub.sent, [], "nothing is new");
    hub.hear(sensor, keep_alive(2));
    assert!(
        matches!(&*hub.sent, [Message::Run(run)] if run.task == task(1)),
        "{:?}",
        hub.sent
    );
}

fn client(gateways: &[u64], config: client::Config) -> Linked<Client> {
    let gateways = gateways.iter().copied().map(NodeId);
    Linked::new(Client::new(APP, config, gateways).unwrap())
}

fn submits(code: &[u8]) -> Input<Client> {
    Input::Command(client::Command::Submit(Function::new(code)))
}

const UNREACHABLE: Input<Client> = Input::Command(client::Command::Unreachable);

#[test]
fn a_client_whose_gateway_cannot_be_reached_asks_the_next_at_once() {
    let mut client = client(&[1, 2, 3], client::Config::new());
    client.step(submits(b"f"));
    client.step(submits(b"g"));
    client.step(Input::Command(client::Command::Cancel(2)));
    client.taken();
    client.step(UNREACHABLE);
    // As the same tasks: what the first gateway has passed on is run once.
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
    client.hear(Member::new(2, 0), answered);
    client.step(UNREACHABLE);
    assert_eq!(client.taken(), [(3, Message::Cancel { number: 2 })]);
}

#[test]
fn a_client_that_reaches_no_gateway_asks_each_once_until_requests_are_due() {
    let resend = client::Config::new().resend;
    let mut client = client(&[1, 2, 3], client::Config::new());
    client.step(submits(b"f"));
    for turn in 0..4 {
        // As if each request found its link down.
        for _ in 0..50 {
            client.step(UNREACHABLE);
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
    client.step(UNREACHABLE);
    assert_eq!(client.taken(), []);
    client.pass(Span::secs(60));
    assert_eq!(client.taken(), []);
    client.step(submits(b"f"));
    assert_eq!(client.taken(), [(2, submit(1, Function::new(b"f")))]);
    client.step(UNREACHABLE);
    assert_eq!(client.taken(), [(1, submit(1, Function::new(b"f")))]);
}

#[test]
fn a_client_takes_no_more_voters_than_a_unit_has() {
    let mut client = client(&[1], client::Config::new());
    client.step(submits(b"f"));
    let answer = |voters| Message::Answer {
        task: task(1),
        answer: Answer::Cancelled,
        voters: (0..voters).map(NodeId).collect(),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let (from, most) = (HUB, u64::from(Limits::UNIT_MOST));
    let message = answer(most + 1);
    let input = Input::Message { from, message };
    let refused = client.driver.step(client.now, &mut rng, input, |_| {});
    assert_eq!(refused, Err(client::Reject::TooMany(HUB, 18)));
    client.hear(HUB, answer(most));
    assert_eq!(client.told.len(), 1);
}
