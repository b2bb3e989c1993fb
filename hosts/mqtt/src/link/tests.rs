//! Tests of a link to a broker that sends exactly the bytes of the test.

#![allow(
    clippy::disallowed_methods,
    reason = "a broker that a link waits for has a clock of its own"
)]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use rumqttc::{ConnectReturnCode, ConnectionError, StateError};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const CONNECT: u8 = 0x10;
const PUBLISH: u8 = 0x32;
const SUBSCRIBE: u8 = 0x82;
const DISCONNECT: u8 = 0xe0;
const WELCOME: &[u8] = &[0x20, 2, 0, 0];
const WELCOME_BACK: &[u8] = &[0x20, 2, 1, 0];

const DIALECT: Dialect = Dialect {
    packet_max: 4_096,
    incoming_max: 16_384,
    takes_retained: |topic| topic.ends_with("/gateways"),
    credentials: "--user",
    certificates: "--tls-ca",
};

/// A broker that sends exactly the bytes of the test.
struct Broker(TcpListener);

impl Broker {
    fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    fn setup(&self, session: Session, stays: bool) -> Setup {
        let address = self.0.local_addr().unwrap().to_string();
        Setup {
            name: "node".into(),
            address: address.parse().unwrap(),
            access: Access::default(),
            session,
            filters: vec!["inbox".into()],
            asides: Vec::new(),
            will: None,
            stays,
            dialect: DIALECT,
        }
    }

    /// Accepts a connection; the flag is true if the node wants a clean session.
    fn accept(&self) -> (Peer, bool) {
        let (stream, _) = self.0.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut peer = Peer(stream);
        let (kind, packet) = peer.read();
        // Behind the name and the version of the protocol.
        let is_clean = packet[7] & 2 != 0;
        assert_eq!(kind, CONNECT);
        (peer, is_clean)
    }
}

struct Peer(TcpStream);

impl Peer {
    fn read(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).unwrap();
        assert!(head[1] < 128, "it is short");
        let mut packet = vec![0; head[1].into()];
        self.0.read_exact(&mut packet).unwrap();
        (head[0], packet)
    }

    fn say(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// The next packet, which must be of this kind.
    fn receives(&mut self, kind: u8) -> Vec<u8> {
        let (found, packet) = self.read();
        assert_eq!(found, kind);
        packet
    }
}

fn open(setup: Setup) -> (Link, Receiver<LinkEvent>) {
    let (notify, notified) = mpsc::channel();
    let link = Link::open(setup, move |it| notify.send(it).is_ok());
    (link.unwrap(), notified)
}

fn next(notified: &Receiver<LinkEvent>) -> LinkEvent {
    notified.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn a_broker_that_hands_on_nothing_is_named_and_left() {
    let broker = Broker::new();
    let (_link, notified) = open(broker.setup(Session::Clean, false));
    let (mut peer, is_clean) = broker.accept();
    assert!(is_clean);
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    peer.say(&[0x90, 3, 0, 1, 0x80]); // A refusal of packet 1.
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    let lost = Lost::unread(&broker.setup(Session::Clean, false));
    assert!(lost.why.contains("a subscription to inbox:"));
    assert_eq!(next(&notified), LinkEvent::Down(lost));
}

#[test]
fn a_link_that_stays_comes_up_again_and_another_one_does_not() {
    for stays in [true, false] {
        let broker = Broker::new();
        let (link, notified) = open(broker.setup(Session::Kept, stays));
        let (mut peer, is_clean) = broker.accept();
        assert!(!is_clean);
        peer.say(WELCOME_BACK);
        peer.receives(SUBSCRIBE);
        peer.say(&[0x90, 3, 0, 1, 1]);
        assert_eq!(next(&notified), LinkEvent::Up { is_kept: true });
        let topic = "outbox";
        for (is_reported, kind) in [
            (link.publish(&topic, vec![5]), PUBLISH),
            (link.retain(&topic, vec![5]), PUBLISH | 1),
            (link.publish_once(&topic, vec![5]), PUBLISH & !2),
        ] {
            assert_eq!(is_reported, Ok(()));
            assert!(peer.receives(kind).ends_with(&[5]));
        }
        drop(peer);
        let LinkEvent::Down(lost) = next(&notified) else {
            panic!("it is lost");
        };
        assert!(!lost.is_refused, "{lost}");
        if !stays {
            let more = notified.recv_timeout(PATIENCE);
            assert_eq!(more, Err(mpsc::RecvTimeoutError::Disconnected));
            assert_eq!(link.publish(&topic, vec![5]), Err(PublishError::NoBroker));
            continue;
        }
        let (mut peer, _) = broker.accept();
        peer.say(WELCOME);
        assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
        peer.receives(SUBSCRIBE);
    }
}

#[test]
fn a_mailbox_is_emptied_by_a_clean_session_in_its_place() {
    let broker = Broker::new();
    let (_link, notified) = open(broker.setup(Session::Emptied, false));
    let (mut peer, is_clean) = broker.accept();
    assert!(is_clean);
    peer.say(WELCOME);
    peer.receives(DISCONNECT);
    let (mut peer, is_clean) = broker.accept();
    assert!(!is_clean);
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
}

#[test]
fn a_link_that_is_dropped_says_so_and_tells_nothing_more() {
    let broker = Broker::new();
    let (link, notified) = open(broker.setup(Session::Kept, true));
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    drop(link);
    peer.receives(DISCONNECT);
    let more = notified.recv_timeout(PATIENCE);
    assert_eq!(more, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_link_whose_broker_says_nothing_is_closed_in_a_moment() {
    let broker = Broker::new();
    let (link, notified) = open(broker.setup(Session::Kept, true));
    let (_peer, _) = broker.accept();
    drop(link);
    // Less than a connection may take to come up.
    let more = notified.recv_timeout(Duration::from_millis(1_500));
    assert_eq!(more, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_packet_that_is_too_long_ends_a_link_before_it_has_come() {
    let broker = Broker::new();
    let (_link, notified) = open(broker.setup(Session::Clean, false));
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    let len = DIALECT.incoming_max + HANDED_ON + 1;
    peer.say(&head(len));
    let LinkEvent::Down(lost) = notified.recv_timeout(KEEP_ALIVE / 2).unwrap() else {
        panic!("it is lost");
    };
    let why = format!("a message of {len} bytes, the limit is 16384");
    assert!(!lost.is_refused && lost.why.contains(&why), "{lost}");
}

/// The header of a published message with this number of bytes after it.
fn head(len: usize) -> [u8; 4] {
    let of = |shift: usize| (len >> shift & 0x7f) as u8;
    [0x30, of(0) | 0x80, of(7) | 0x80, of(14)]
}

#[test]
fn what_comes_may_be_longer_than_what_is_said_and_what_is_too_long_is_refused() {
    let broker = Broker::new();
    let (link, notified) = open(broker.setup(Session::Clean, true));
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    // The longest packet that is taken.
    let payload = vec![7; DIALECT.incoming_max + HANDED_ON - 7];
    let parts = [&head(payload.len() + 7)[..], &[0, 5], b"inbox", &payload];
    peer.say(&parts.concat());
    let topic = "inbox".into();
    let is_retained = false;
    let reported = LinkEvent::Published {
        topic,
        payload,
        is_retained,
    };
    assert_eq!(next(&notified), reported);
    for (qos, header) in [(QoS::AtLeastOnce, 7), (QoS::AtMostOnce, 5)] {
        let most = DIALECT.packet_max;
        let fits = most - header - "outbox".len();
        let say = |bytes| link.say(&"outbox", vec![7; bytes], qos, false);
        let bytes = most + 1;
        assert_eq!(say(fits + 1), Err(PublishError::TooLong { bytes, most }));
        assert_eq!(say(fits), Ok(()));
        let mut packet = vec![0; most];
        peer.0.read_exact(&mut packet).unwrap();
        assert_eq!(packet.last(), Some(&7));
    }
    assert_eq!(say_of(&link), Ok(()), "it is still there");
    peer.receives(PUBLISH & !2);
}

fn say_of(link: &Link) -> Result<(), PublishError> {
    link.publish_once(&"outbox", vec![5])
}

#[test]
fn nothing_that_a_broker_retains_is_taken_but_what_the_program_wants() {
    let notified = |topic: &str, retain| {
        let mut it = Publish::new(topic, QoS::AtLeastOnce, [5]);
        it.retain = retain;
        published(it, DIALECT.takes_retained)
    };
    let taken = |topic: &str, is_retained| LinkEvent::Published {
        topic: topic.into(),
        payload: vec![5],
        is_retained,
    };
    let (inbox, gateways) = ("selvedge/faas/1/7", "selvedge/faas/1/7/gateways");
    assert_eq!(notified(inbox, true), LinkEvent::Retained);
    assert_eq!(notified("recipes", true), LinkEvent::Retained);
    assert_eq!(notified(inbox, false), taken(inbox, false));
    assert_eq!(notified(gateways, true), taken(gateways, true));
}

#[test]
fn a_broker_that_does_not_want_a_node_has_refused_it() {
    let code = ConnectReturnCode::BadUserNamePassword;
    let refused = Lost::of(&ConnectionError::ConnectionRefused(code), false, &DIALECT);
    assert!(refused.is_refused && refused.why.contains("see --user"));
    let state = || ConnectionError::MqttState(StateError::AwaitPingResp);
    let at_once = Lost::of(&state(), false, &DIALECT);
    assert!(at_once.is_refused && at_once.why.contains("--tls-ca"));
    let later = Lost::of(&state(), true, &DIALECT);
    assert!(!later.is_refused && !later.why.contains("--tls-ca"));
    assert!(!Lost::of(&ConnectionError::NetworkTimeout, false, &DIALECT).is_refused);
}

#[test]
fn a_broker_that_is_away_is_told_of_once_and_tried_less_and_less_often() {
    let broker = Broker::new();
    let (link, notified) = open(broker.setup(Session::Clean, true));
    broker.0.set_nonblocking(true).unwrap();
    // It is there, and drops each connection.
    let drops_for = |time| {
        let (begun, mut came) = (Instant::now(), 0);
        while begun.elapsed() < time {
            came += u32::from(broker.0.accept().is_ok());
            thread::sleep(Duration::from_millis(5));
        }
        came
    };
    // After 0.2 s, 0.4 s, 0.8 s and 1.6 s.
    let came = drops_for(Duration::from_secs(3));
    assert!((2..=5).contains(&came), "{came}");
    let LinkEvent::Down(first) = next(&notified) else {
        panic!("it is lost");
    };
    assert_eq!(notified.try_recv(), Err(mpsc::TryRecvError::Empty));
    broker.0.set_nonblocking(false).unwrap();
    // Another reason is news.
    let (mut peer, _) = broker.accept();
    peer.say(&[0x20, 2, 0, 5]);
    let LinkEvent::Down(second) = next(&notified) else {
        panic!("it is refused");
    };
    assert!(second.why.contains("NotAuthorized"), "{second}");
    assert_ne!(first, second);
    // So is each loss after it was up.
    for _ in 0..2 {
        let (mut peer, _) = broker.accept();
        peer.say(WELCOME);
        assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
        drop(peer);
        assert!(matches!(next(&notified), LinkEvent::Down(_)));
    }
    // A link that is closed while it waits ends at once.
    drop(link);
    let more = notified.recv_timeout(RETRY_MAX / 4);
    assert_eq!(more, Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn what_is_outdated_soon_does_not_wait_for_what_a_broker_does_not_acknowledge() {
    let broker = Broker::new();
    let (link, notified) = open(broker.setup(Session::Clean, true));
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    peer.receives(SUBSCRIBE);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    // The largest number that may wait. The broker takes all, answers pings, and acknowledges nothing.
    let begun = Instant::now();
    let mut reported = 0;
    while reported < QUEUE {
        match link.retain(&"status", vec![1]) {
            Ok(()) => reported += 1,
            Err(why) => assert_eq!(why, PublishError::NoRoom),
        }
        assert!(begun.elapsed() < PATIENCE);
    }
    let mut numbers = Vec::new();
    let mut receive = |peer: &mut Peer| loop {
        assert!(begun.elapsed() < PATIENCE);
        let (kind, packet) = peer.read();
        match kind {
            0xc0 => peer.say(&[0xd0, 0]),
            0x33 => numbers.push([packet[8], packet[9]]),
            it => return it,
        }
    };
    while link.publish_once(&"command", vec![5]).is_err() {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert_eq!(receive(&mut peer), PUBLISH & !2);
    assert_eq!(numbers.len(), QUEUE);
    assert_eq!(link.publish(&"status", vec![1]), Err(PublishError::NoRoom));
    // Each acknowledgement makes room.
    for [high, low] in &numbers[..2] {
        peer.say(&[0x40, 2, *high, *low]);
    }
    for _ in 0..2 {
        while link.publish(&"status", vec![1]).is_err() {
            assert!(begun.elapsed() < PATIENCE);
        }
        peer.receives(PUBLISH);
    }
    assert_eq!(link.publish(&"status", vec![1]), Err(PublishError::NoRoom));
    // Messages under way on a lost connection take no room on the next one.
    drop(peer);
    assert!(matches!(next(&notified), LinkEvent::Down(_)));
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    assert_eq!(link.publish(&"status", vec![1]), Ok(()));
}

#[test]
fn what_is_no_topic_is_named_and_takes_no_room() {
    let broker = Broker::new();
    let (link, _notified) = open(broker.setup(Session::Clean, true));
    for topic in ["lamp#1", "a/+/b", ""] {
        assert_eq!(link.retain(&topic, vec![1]), Err(PublishError::NoTopic));
    }
}

#[test]
fn what_a_link_can_do_without_is_asked_for_last_and_may_be_refused() {
    let broker = Broker::new();
    let mut setup = broker.setup(Session::Clean, false);
    setup.asides = vec!["one".into(), "other".into()];
    let (_link, notified) = open(setup);
    let (mut peer, _) = broker.accept();
    peer.say(WELCOME);
    let mut numbers = Vec::new();
    for (filter, qos) in [("inbox", 1), ("one", 0), ("other", 0)] {
        let packet = peer.receives(SUBSCRIBE);
        assert_eq!(&packet[4..packet.len() - 1], filter.as_bytes());
        assert_eq!(packet.last(), Some(&qos));
        numbers.push(packet[1]);
    }
    assert_eq!(next(&notified), LinkEvent::Up { is_kept: false });
    for (number, code) in numbers.iter().zip([1, 0x80, 0]) {
        peer.say(&[0x90, 3, 0, *number, code]);
    }
    let parts = [&[0x30, 8][..], &[0, 5], b"inbox", &[5]];
    peer.say(&parts.concat());
    let LinkEvent::Published { payload, .. } = next(&notified) else {
        panic!("it is still there");
    };
    assert_eq!(payload, [5]);
    // A subscription that is not optional must not be refused.
    peer.say(&[0x90, 3, 0, numbers[0], 0x80]);
    assert!(matches!(next(&notified), LinkEvent::Down(it) if it.is_refused));
}
