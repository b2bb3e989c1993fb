//! Tests of a client. The test plays its gateways.

use selvedge_core::NodeId;
use selvedge_pcm::client::Config;
use selvedge_pcm::{Answer, Failure, TaskId, Voters};

use super::*;
use crate::client::{Client, any_id};
use crate::find::Gateways;
use crate::link::{Access, Address, Lost};
use crate::notice::{NotKept, Place};

const INBOX: &str = "selvedge/faas/1/9";
const GATEWAY: Member = Member::new(1, 0);

/// Options with gateways 1 and 2, which do not exist.
fn options() -> Options {
    let nowhere = |id| {
        let (host, port) = ("127.0.0.1".into(), 1);
        (NodeId(id), Address { host, port })
    };
    Options {
        id: NodeId(9),
        gateways: Gateways::new([nowhere(1), nowhere(2)]).unwrap(),
        access: Access::default(),
        config: Config::new(),
    }
}

fn new() -> (Client, Host) {
    let (client, mut host) = Client::new(options()).unwrap();
    let me = host.driver.machine().me();
    assert_eq!((client.me(), me.id), (me, NodeId(9)));
    host.go_to(NodeId(1));
    (client, host)
}

impl Host {
    fn receive(&mut self, message: &Message) {
        let payload = frame::message(GATEWAY, message).unwrap();
        self.on_published(INBOX, &payload);
    }

    fn note(&mut self, notice: &Notice) {
        let payload = frame::notice(GATEWAY, notice).unwrap();
        self.on_published(INBOX, &payload);
    }

    /// Sends an event of the present link.
    fn hear_link(&mut self, event: LinkEvent) {
        self.on_link(self.links, event);
    }

    /// Submits a function, and returns the machine's number of it.
    fn ask(&mut self, token: u64) -> u64 {
        let number = self.driver.machine().next_number();
        self.submit(token, Function::new(b"x"));
        number
    }

    fn task(&self, number: u64) -> TaskId {
        let client = self.driver.machine().me();
        TaskId { client, number }
    }
}

fn notified(client: &Client) -> Option<Notified> {
    client.wait(Span::ZERO)
}

#[test]
fn a_function_that_fits_into_no_frame_is_refused_at_once() {
    let client = Client::start(options()).unwrap();
    client.submit(7, Function::new(&[0; frame::MESSAGE_MAX]));
    let (token, why) = (7, Refusal::TooLong);
    assert_eq!(
        client.wait(Span::secs(60)),
        Some(Notified::Refused { token, why })
    );
}

#[test]
fn a_client_that_says_no_id_has_one_of_few() {
    let id = any_id().unwrap().0;
    assert!((1_000_000..1_065_536).contains(&id), "{id}");
}

#[test]
fn a_client_that_is_dropped_ends() {
    let (client, host) = new();
    drop(client);
    let mut wakes = host.wakes.try_iter();
    assert!(wakes.any(|it| matches!(it, Wake::Close)));
}

#[test]
fn what_cannot_be_said_is_counted() {
    let (_client, mut host) = new();
    host.send(NodeId(1), None);
    host.send(NodeId(1), None);
    assert_eq!((host.counters.sent, host.counters.unsent), (0, 2));
    host.stay = None;
    host.send(NodeId(3), Some(Vec::new()));
    assert_eq!((host.counters.sent, host.counters.unsent), (0, 3));
}

#[test]
fn an_answer_comes_with_the_token_the_voters_and_the_unit() {
    let (client, mut host) = new();
    let (number, other) = (host.ask(7), host.ask(8));
    let electors = [101, 102, 103].map(|id| Member::new(id, 1));
    let unit = |number| Notice::Unit {
        number,
        attempt: 2,
        electors: electors.into_iter().collect(),
    };
    host.note(&unit(number));
    host.note(&unit(77)); // It was not submitted.
    assert_eq!(host.units.len(), 1);
    let voters = [NodeId(101), NodeId(103)];
    let answer = Answer::Failed(Failure::Trapped);
    let answered = |host: &Host, number, voters: &[NodeId]| Message::Answer {
        task: host.task(number),
        answer: answer.clone(),
        voters: voters.iter().copied().collect::<Voters>(),
    };
    for _ in 0..2 {
        host.receive(&answered(&host, number, &voters));
    }
    let with_unit = Notified::Answered {
        token: 7,
        answer: answer.clone(),
        voters: voters.to_vec(),
        unit: Some((2, electors.to_vec())),
    };
    assert_eq!(notified(&client), Some(with_unit));
    assert_eq!(notified(&client), None, "one notification is enough");
    assert!(host.units.is_empty());
    host.receive(&answered(&host, other, &[]));
    let without = Notified::Answered {
        token: 8,
        answer,
        voters: Vec::new(),
        unit: None,
    };
    assert_eq!(notified(&client), Some(without));
}

#[test]
fn a_function_that_a_gateway_refuses_is_told_of_once() {
    let (client, mut host) = new();
    let number = host.ask(7);
    let (task, why) = (host.task(number), Refusal::Full);
    host.receive(&Message::Refused { task, why });
    host.receive(&Message::Refused { task, why });
    assert_eq!(notified(&client), Some(Notified::Refused { token: 7, why }));
    assert_eq!(notified(&client), None);
}

#[test]
fn what_is_cancelled_is_what_the_token_names() {
    let (client, mut host) = new();
    let (first, second) = (host.ask(7), host.ask(8));
    let sent = |host: &Host| host.counters.sent + host.counters.unsent;
    let before = sent(&host);
    host.cancel(99);
    assert_eq!(notified(&client), None, "it was not submitted");
    assert_eq!(sent(&host), before);
    host.cancel(8);
    assert!(sent(&host) > before);
    let waiting: Vec<u64> = host.driver.machine().waiting().collect();
    assert_eq!(waiting, [first, second], "both are answered");
}

#[test]
fn a_module_is_put_six_times_every_second_time_at_the_next_gateway() {
    let (client, mut host) = new();
    host.put(b"module".to_vec());
    let library = shelf::library(b"module");
    let mut at = Vec::new();
    for _ in 0..6 {
        host.look_at_puts();
        host.look_at_puts(); // Nothing is due.
        at.push(host.stay.as_ref().unwrap().gateway.0);
        for it in host.puts.values_mut() {
            assert!(it.due > host.clock.now() + Span::secs(2));
            it.due = Time::ZERO;
        }
    }
    assert_eq!(at, [1, 2, 2, 1, 1, 2]);
    assert_eq!(notified(&client), None);
    host.look_at_puts();
    let why = None;
    assert_eq!(notified(&client), Some(Notified::NotKept { library, why }));
    assert!(host.puts.is_empty());
}

#[test]
fn what_becomes_of_a_module_is_told_once() {
    let (client, mut host) = new();
    let library = shelf::library(b"module");
    let (kept, why) = (Notice::Kept { library, by: 2 }, NotKept::Full);
    let not_kept = Notice::NotKept { library, why };
    for notice in [&kept, &not_kept] {
        host.note(notice);
        assert_eq!(notified(&client), None, "it was not put");
    }
    host.put(b"module".to_vec());
    host.note(&kept);
    host.note(&not_kept);
    assert_eq!(notified(&client), Some(Notified::Kept { library, by: 2 }));
    assert_eq!(notified(&client), None);
    host.put(b"module".to_vec());
    host.note(&not_kept);
    host.note(&kept);
    let why = Some(why);
    assert_eq!(notified(&client), Some(Notified::NotKept { library, why }));
    assert_eq!(notified(&client), None);
}

#[test]
fn what_is_published_is_counted_as_what_it_is() {
    let (_client, mut host) = new();
    let place = Place {
        gateway: NodeId(1),
        address: selvedge_pcm::Bytes::new(),
    };
    host.note(&Notice::Gateways([place].into_iter().collect()));
    assert_eq!((host.counters.received, host.counters.refused), (1, 1));
    host.note(&Notice::Kept {
        library: Library(1),
        by: 1,
    });
    assert_eq!((host.counters.received, host.counters.refused), (2, 1));
    host.receive(&Message::Here); // For gateways.
    assert_eq!((host.counters.received, host.counters.refused), (3, 2));
    host.on_published(INBOX, &[1]);
    assert_eq!(host.counters.malformed, 1);
    let payload = frame::message(GATEWAY, &Message::Here).unwrap();
    for topic in ["selvedge/faas/1/8", "selvedge/faas/1/1/gateways", "recipes"] {
        host.on_published(topic, &payload);
    }
    assert_eq!(
        (host.counters.received, host.counters.foreign_topics),
        (3, 3)
    );
    host.hear_link(LinkEvent::Retained);
    assert_eq!(host.counters.retained, 1);
}

#[test]
fn a_gateway_that_says_anything_ends_the_silence() {
    let (client, mut host) = new();
    let status = "selvedge/faas/1/1/status";
    let message = frame::message(GATEWAY, &Message::Here).unwrap();
    let notice = frame::notice(GATEWAY, &Notice::Get(Library(1))).unwrap();
    for (topic, payload) in [(status, &b""[..]), (INBOX, &message), (INBOX, &notice)] {
        std::thread::sleep(core::time::Duration::from_millis(20));
        host.on_published(INBOX, &[1]);
        let before = client.silence();
        assert!(before >= Span::millis(20), "noise is nothing");
        host.on_published(topic, payload);
        assert!(client.silence() < before);
    }
}

#[test]
fn a_gateway_that_is_lost_is_left_for_the_next_one() {
    let (_client, mut host) = new();
    host.ask(7);
    let down = || LinkEvent::Down(Lost::by(&"it is away"));
    assert_eq!(host.driver.machine().speaks_to(), NodeId(1));
    // An event of a closed link has no effect.
    host.on_link(host.links + 1, down());
    assert_eq!(host.counters.lost_links, 0);
    assert!(host.stay.is_some());
    host.hear_link(LinkEvent::Up { is_kept: false });
    assert!(host.stay.is_some());
    host.hear_link(down());
    assert_eq!(host.counters.lost_links, 1);
    assert_eq!(host.driver.machine().speaks_to(), NodeId(2));
    // A link for putting modules is not the machine's.
    host.go_to(NodeId(1));
    host.hear_link(down());
    assert!(host.stay.is_none());
    assert_eq!(host.driver.machine().speaks_to(), NodeId(2));
}

#[test]
fn a_link_is_kept_for_the_gateway_that_it_leads_to() {
    let (_client, mut host) = new();
    assert_eq!(host.links, 1);
    host.go_to(NodeId(1));
    assert_eq!(host.links, 1);
    host.go_to(NodeId(2));
    assert_eq!(host.links, 2);
    host.go_to(NodeId(3)); // It has no address.
    assert_eq!(host.stay.as_ref().unwrap().gateway, NodeId(2));
}
