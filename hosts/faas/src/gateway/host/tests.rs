//! Tests of a gateway with published messages. Its broker accepts connections, and sends nothing.

use std::net::TcpListener;
use std::thread::sleep;
use std::time::{Duration, Instant};

use selvedge_pcm::{Answer, DutyCycle, Failure, Function, Libraries, Refusal, Returned, Voters};

use super::super::tests::options;
use super::*;
use crate::scratch::Dir;

const FOLLOWER: Member = Member::new(101, 1);
const OTHER: Member = Member::new(102, 1);
const CLIENT: Member = Member::new(9, 1);
const INBOX: &str = "selvedge/faas/1/1";

struct Alone {
    host: Host,
    _dir: Dir,
    _broker: TcpListener,
}

impl Alone {
    fn new(name: &str) -> Self {
        let broker = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = broker.local_addr().unwrap().to_string().parse().unwrap();
        let dir = Dir::new(name);
        let options = options(&dir, Broker::At(address));
        let host = Host::start(options).unwrap();
        let (_dir, _broker) = (dir, broker);
        Self {
            host,
            _dir,
            _broker,
        }
    }

    /// A gateway that decides, and has these followers.
    fn with(name: &str, followers: &[Member]) -> Self {
        let mut alone = Self::new(name);
        alone.host.step(Input::Command(Command::Start)).unwrap();
        for it in followers {
            alone.receive(*it, &keep_alive());
        }
        let id = |it: &Member| it.id;
        let ids: Vec<NodeId> = followers.iter().map(id).collect();
        alone.wait_until(|tables| ids.iter().all(|it| tables.follower(*it).is_some()));
        alone
    }

    #[allow(clippy::disallowed_methods, reason = "a test waits")]
    fn wait_until(&mut self, is_so: impl Fn(&selvedge_pcm::Tables) -> bool) {
        let begun = Instant::now();
        while !self.host.driver.machine().tables().is_some_and(&is_so) {
            assert!(begun.elapsed() < Duration::from_secs(60));
            self.host.expire();
            self.host.store().unwrap();
            sleep(Duration::from_millis(5));
        }
    }

    fn publish(&mut self, topic: &str, payload: &[u8]) -> Counters {
        let before = self.host.counters;
        self.host.on_published(topic, payload).unwrap();
        let after = self.host.counters;
        Counters {
            received: after.received - before.received,
            refused: after.refused - before.refused,
            foreign_topics: after.foreign_topics - before.foreign_topics,
            malformed: after.malformed - before.malformed,
            relayed: after.relayed - before.relayed,
            not_relayed: after.not_relayed - before.not_relayed,
            ..Counters::default()
        }
    }

    fn receive(&mut self, from: Member, message: &Message) -> Counters {
        self.publish(INBOX, &frame::message(from, message).unwrap())
    }

    fn note(&mut self, from: Member, notice: &Notice) -> Counters {
        self.publish(INBOX, &frame::notice(from, notice).unwrap())
    }
}

fn keep_alive() -> Message {
    Message::KeepAlive {
        number: 1,
        duty: DutyCycle::always(),
        libraries: Libraries::new(),
    }
}

fn task() -> TaskId {
    let (client, number) = (CLIENT, 1);
    TaskId { client, number }
}

fn vote() -> Message {
    Message::Vote {
        task: task(),
        attempt: 1,
        returned: Returned::Failed(Failure::Trapped),
    }
}

#[test]
fn what_is_published_is_counted_as_what_it_is() {
    let mut alone = Alone::new("counted");
    let foreign = Counters {
        foreign_topics: 1,
        ..Counters::default()
    };
    let payload = frame::message(FOLLOWER, &keep_alive()).unwrap();
    for topic in [
        "selvedge/faas/1/2",
        "selvedge/faas/1/2/relay/101",
        "selvedge/faas/1/1/status",
        "recipes",
    ] {
        assert_eq!(alone.publish(topic, &payload), foreign, "{topic}");
    }
    let malformed = Counters {
        malformed: 1,
        ..Counters::default()
    };
    assert_eq!(alone.publish(INBOX, &[1]), malformed);
    let relay = "selvedge/faas/1/1/relay/101";
    assert_eq!(alone.publish(relay, &[1]), malformed);
    let received = Counters {
        received: 1,
        ..Counters::default()
    };
    assert_eq!(alone.note(FOLLOWER, &Notice::Get(Library(5))), received);
    let refused = Counters {
        received: 1,
        refused: 1,
        ..Counters::default()
    };
    // A message that is not for gateways.
    assert_eq!(alone.receive(FOLLOWER, &Message::Elsewhere), refused);
    assert_eq!(alone.note(FOLLOWER, &Notice::NoModule(Library(5))), refused);
    alone.host.on_own(LinkEvent::Retained).unwrap();
    assert_eq!(alone.host.counters.retained, 1);
}

#[test]
fn a_gateway_says_whether_it_is_available_and_how_often_it_wrote() {
    let mut alone = Alone::with("says", &[FOLLOWER]);
    alone.host.store().unwrap();
    let writes = alone.host.counters.writes;
    assert!(writes > 0 && alone.host.counters.write_us > 0);
    for (event, is_available) in [(Event::Unavailable, false), (Event::Available, true)] {
        alone.host.on_event(&event);
        assert_eq!(alone.host.is_available, is_available);
    }
    for number in 1..3 {
        alone.host.on_event(&Event::Ended(task()));
        alone.host.send(CLIENT.id, None);
        let counters = alone.host.counters;
        assert_eq!((counters.ended, counters.unsent), (number, number));
    }
}

#[test]
fn modules_are_kept_when_all_that_came_is_stored() {
    let mut alone = Alone::new("later");
    let put = Notice::Put {
        module: b"\0asm\x01\0\0\0".iter().copied().collect(),
        spreads: true,
    };
    assert_eq!(alone.note(CLIENT, &put).refused, 0);
    assert_eq!(alone.host.storage.modules(), 0);
    alone.host.look_at_puts().unwrap();
    assert_eq!(alone.host.storage.modules(), 1);
    for _ in 0..64 {
        assert_eq!(alone.note(CLIENT, &put).refused, 0);
    }
    assert_eq!(
        alone.note(CLIENT, &put).refused,
        1,
        "the client puts it again"
    );
}

#[test]
fn a_module_that_an_open_task_needs_stays() {
    let mut alone = Alone::with("open", &[]);
    let module = |fill: u8| [b"\0asm\x01\0\0\0\0\x02\0", &[fill][..]].concat();
    let library = |fill| crate::shelf::library(&module(fill));
    let put = |alone: &mut Alone, fill| {
        let (module, spreads) = (module(fill).into_iter().collect(), true);
        alone
            .host
            .on_notice(CLIENT, Notice::Put { module, spreads })
    };
    put(&mut alone, 0).unwrap();
    let mut function = Function::new(b"x");
    function.libraries = [library(0)].into_iter().collect();
    let number = 1;
    let submit = Message::Submit { number, function };
    alone.receive(CLIENT, &submit);
    alone.wait_until(|tables| tables.open_task(task()).is_some());
    for fill in 1..4 {
        put(&mut alone, fill).unwrap();
    }
    let storage = &mut alone.host.storage;
    assert!(storage.module(library(0)).unwrap().is_some());
    assert!(storage.module(library(1)).unwrap().is_none());
}

#[test]
fn followers_speak_to_followers_and_nobody_else_does() {
    let mut alone = Alone::with("relay", &[FOLLOWER]);
    let relay = |alone: &mut Alone, to: u64, payload: Vec<u8>| {
        let counted = alone.publish(&format!("{INBOX}/relay/{to}"), &payload);
        assert_eq!(counted.relayed + counted.not_relayed, 1);
        counted.relayed
    };
    let framed = |message: &Message| frame::message(OTHER, message).unwrap();
    let counted = Message::Counted {
        task: task(),
        attempt: 1,
    };
    assert_eq!(relay(&mut alone, 101, framed(&vote())), 1);
    assert_eq!(relay(&mut alone, 101, framed(&counted)), 1);
    assert_eq!(relay(&mut alone, 102, framed(&vote())), 0, "it is unknown");
    assert_eq!(relay(&mut alone, 101, framed(&keep_alive())), 0);
    let notice = frame::notice(OTHER, &Notice::NoModule(Library(5))).unwrap();
    assert_eq!(relay(&mut alone, 101, notice), 0);
}

#[test]
fn which_unit_had_a_task_is_told_once_and_forgotten_with_the_task() {
    let followers = [101, 102, 103].map(|it| Member::new(it, 1));
    let mut alone = Alone::with("unit", &followers);
    let submit = Message::Submit {
        number: 1,
        function: Function::new(b"x"),
    };
    let sent = |alone: &mut Alone, message: Message| {
        let to = CLIENT;
        let counters = &alone.host.counters;
        let before = counters.sent + counters.unsent;
        alone.host.carry_out(Effect::Send { to, message });
        let counters = &alone.host.counters;
        counters.sent + counters.unsent - before
    };
    let asks = |alone: &mut Alone| {
        alone.receive(CLIENT, &submit);
        alone.wait_until(|tables| tables.assignment(task()).is_some());
        let tables = alone.host.driver.machine().tables().unwrap();
        alone.host.diary.follow(tables);
    };
    let answer = || Message::Answer {
        task: task(),
        answer: Answer::NoMajority,
        voters: Voters::default(),
    };
    asks(&mut alone);
    assert_eq!(sent(&mut alone, answer()), 2, "the unit, and the answer");
    assert_eq!(sent(&mut alone, answer()), 1);
    for over in [
        Message::Refused {
            task: task(),
            why: Refusal::Full,
        },
        Message::Elsewhere,
    ] {
        asks(&mut alone);
        assert_eq!(sent(&mut alone, over), 1);
        assert_eq!(alone.host.diary.on_answered(task()), None);
    }
}

#[test]
fn a_broker_that_refuses_is_named_once() {
    let mut alone = Alone::new("refused");
    let lost = |why: &str, is_refused| {
        let why = why.into();
        LinkEvent::Down(Lost { why, is_refused })
    };
    for of in [1, 2].map(NodeId) {
        let mut reported = |why, is_refused| {
            let event = lost(why, is_refused);
            let wake = match of == alone.host.options.id {
                true => Wake::Own(event),
                false => Wake::Peer(of, event),
            };
            alone.host.on_wake(wake).unwrap();
            alone.host.refused.get(&of).cloned()
        };
        assert_eq!(reported("it is away", false), None);
        assert_eq!(reported("no", true).as_deref(), Some("no"));
        assert_eq!(reported("it is away", false).as_deref(), Some("no"));
        assert_eq!(reported("never", true).as_deref(), Some("never"));
    }
    assert_eq!(alone.host.counters.lost_links, 8);
}

#[test]
fn a_gateway_ends_that_its_own_broker_has_left_for_ten_seconds() {
    let mut alone = Alone::new("left");
    let at = alone.host.options.broker.clone();
    let listen = "127.0.0.1:1".parse().unwrap();
    let inside = Broker::Embedded { listen };
    alone.host.clock = Clock::started(Duration::from_secs(60));
    let mut goes_on = |broker: &Broker, seconds| {
        alone.host.options.broker = broker.clone();
        let now = alone.host.clock.now();
        alone.host.alone = Some(Time(now.0 - Span::secs(seconds).0));
        alone.host.next_status = now;
        match alone.host.look_at_time() {
            Ok(()) => true,
            Err(GatewayError::Stopped) => false,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(goes_on(&inside, 8));
    assert!(!goes_on(&inside, 11));
    assert!(goes_on(&at, 11), "that one may come back");
}

#[test]
fn a_gateway_says_once_a_second_how_it_is() {
    let mut alone = Alone::new("status");
    alone.host.look_at_time().unwrap();
    let next = alone.host.next_status;
    assert!(next > alone.host.clock.now());
    alone.host.look_at_time().unwrap();
    assert_eq!(alone.host.next_status, next);
}

#[test]
fn since_when_its_broker_is_away_is_remembered() {
    let mut alone = Alone::new("away");
    let up = || LinkEvent::Up { is_kept: false };
    let down = || LinkEvent::Down(Lost::by(&"it is away"));
    alone.host.on_own(up()).unwrap();
    assert_eq!(alone.host.alone, None);
    alone.host.on_own(down()).unwrap();
    let since = alone.host.alone;
    assert!(since.is_some());
    sleep(Duration::from_millis(2));
    alone.host.on_own(down()).unwrap();
    assert_eq!(alone.host.alone, since);
}
