//! A device that takes commands and reports its state at topics, at a silent broker.

use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use selvedge_core::Span;
use selvedge_hub::device::mqtt::{
    Availability, Conventions, Ear, Mqtt, Payload, Question, Unlinked,
};
use selvedge_hub::device::{Device as _, Received};
use selvedge_mqtt::access::{Access, Address};
use selvedge_mqtt::link::{Dialect, Link, Session, Setup};
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::time::{Instant, sleep, timeout};

/// A device at a broker that accepts a connection and sends nothing; the receiver of its messages; and the
/// broker.
fn unanswered(question: Option<Question>) -> (Mqtt, Ear, Arc<Link>, TcpListener) {
    let broker = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = Setup {
        name: "test".into(),
        address: Address {
            host: "127.0.0.1".into(),
            port: broker.local_addr().unwrap().port(),
        },
        access: Access {
            user: None,
            password: String::new(),
            tls: None,
        },
        session: Session::Clean,
        filters: Vec::new(),
        asides: Vec::new(),
        will: None,
        stays: true,
        dialect: Dialect {
            packet_max: 1_024,
            incoming_max: 1_024,
            takes_retained: |_| true,
            credentials: "",
            certificates: "",
        },
    };
    let link = Arc::new(Link::open(setup, |_| true).unwrap());
    let (device, ear) = Unlinked::new(Conventions {
        command: "set".into(),
        state: "is".into(),
        payload: Payload::Text("{}".into()),
        question,
        availability: Some(Availability {
            topic: "there".into(),
            there: "online".into(),
            ended: "offline".into(),
        }),
        words: [].into(),
    });
    ear.on_link(true);
    (device.link(Arc::clone(&link)), ear, link, broker)
}

/// The runtime stands still, as it does with its host.
#[test]
fn what_a_host_slept_over_is_not_sent_when_the_device_is_there_again() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let (mut device, ear, _link, _broker) = unanswered(None);
    ear.on_published("there", b"offline", false);
    let outcome = runtime.block_on(async {
        let until = Instant::now() + Duration::from_millis(600);
        let state = State::from("on");
        let set = device.set(&state, until.into_std());
        let sleeper = async {
            sleep(Duration::from_millis(50)).await;
            thread::sleep(Duration::from_millis(800));
            ear.on_published("there", b"online", false);
        };
        tokio::join!(set, sleeper).0
    });
    assert_eq!(outcome, Outcome::Refused);
}

/// Announcements fill the queue from time to time, and it is emptied soon.
#[test]
fn a_command_that_finds_no_room_is_not_refused_at_once() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let (mut device, _ear, link, _broker) = unanswered(None);
    while link.publish_once(&"announcement", vec![1]).is_ok() {}
    runtime.block_on(async {
        let begun = Instant::now();
        let until = begun + Duration::from_millis(600);
        let outcome = device.set(&"on".into(), until.into_std()).await;
        assert_eq!(outcome, Outcome::Refused);
        let waited = begun.elapsed();
        assert!(waited > Duration::from_millis(200), "{waited:?}");
    });
}

const MOMENT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn a_device_that_is_gone_is_asked_nothing() {
    let question = Question {
        topic: "ask".into(),
        payload: Vec::new(),
    };
    let (mut device, ear, _link, _broker) = unanswered(Some(question));
    // It is asked, and does not answer.
    assert!(timeout(MOMENT, device.ask()).await.is_err());
    assert!(timeout(MOMENT, device.look()).await.is_err());
    ear.on_published("there", b"offline", false);
    assert_eq!(timeout(MOMENT, device.ask()).await, Ok(None));
    assert_eq!(timeout(MOMENT, device.look()).await, Ok(None));
    ear.on_published("there", b"online", false);
    assert!(timeout(MOMENT, device.ask()).await.is_err());
    ear.on_link(false);
    assert_eq!(timeout(MOMENT, device.ask()).await, Ok(None));
    assert_eq!(device.trouble(), None, "it is not known why");
}

#[tokio::test]
async fn what_a_broker_retained_is_no_proof_after_a_doubt_nor_after_it_was_lost() {
    let on = State::from("on");
    for is_lost in [false, true] {
        let (mut device, ear, _link, _broker) = unanswered(None);
        ear.on_published("there", b"online", true);
        ear.on_published("is", b"off", true);
        assert_eq!(device.look().await, Some("off".into()), "it is shown");
        assert_eq!(device.ask().await, None, "and proves nothing");
        ear.on_published("is", b"off", false);
        assert_eq!(device.ask().await, Some("off".into()));
        // It does not answer.
        let until = Instant::now() + Duration::from_millis(400);
        let outcome = device.set(&on, until.into_std()).await;
        assert_eq!(outcome, Outcome::Unknown);
        if is_lost {
            ear.on_link(false);
            assert_eq!(device.look().await, None);
            ear.on_link(true);
            ear.on_published("there", b"online", true);
        }
        ear.on_published("is", b"on", true);
        assert_eq!((device.look().await, device.ask().await), (None, None));
        ear.on_published("is", b"on", false);
        let both = (device.look().await, device.ask().await);
        assert_eq!(both, (Some(on.clone()), Some(on.clone())));
    }
}

#[tokio::test]
async fn an_answer_is_what_it_says_after_the_question() {
    let question = Question {
        topic: "ask".into(),
        payload: Vec::new(),
    };
    let (mut device, ear, _link, _broker) = unanswered(Some(question));
    ear.on_published("is", b"off", false);
    let reports = async {
        sleep(MOMENT / 4).await;
        // An empty payload is no state.
        ear.on_published("is", b"", false);
        ear.on_published("is", b"on", false);
    };
    let (asked, ()) = tokio::join!(timeout(MOMENT, device.ask()), reports);
    assert_eq!(asked, Ok(Some("on".into())));
    assert!(timeout(MOMENT, device.ask()).await.is_err());
}

#[tokio::test]
async fn a_command_is_done_when_the_device_says_its_state_afterwards_and_not_before() {
    let on = State::from("on");
    for (reports, outcome) in [
        (&[][..], Outcome::Unknown),
        (&["off"], Outcome::Unknown),
        (&["on"], Outcome::Done),
        (&["off", "on"], Outcome::Done),
    ] {
        let (mut device, ear, _link, _broker) = unanswered(None);
        ear.on_published("is", b"on", false);
        let until = Instant::now() + Duration::from_millis(400);
        let set = device.set(&on, until.into_std());
        let later = async {
            for it in reports {
                sleep(MOMENT / 4).await;
                ear.on_published("is", it.as_bytes(), false);
            }
        };
        assert_eq!(tokio::join!(set, later).0, outcome, "{reports:?}");
        // Until this time has passed, a command with an unknown outcome may act.
        assert!(device.lateness() > Span::ZERO);
        assert_eq!(device.lateness(), Unlinked::lateness());
    }
}

#[tokio::test]
async fn what_a_device_says_is_heard_once_and_so_is_that_it_is_gone() {
    let (mut device, ear, _link, _broker) = unanswered(None);
    ear.on_published("there", b"online", true);
    ear.on_published("is", b"off", true);
    let nothing = timeout(MOMENT, device.receive()).await;
    assert!(nothing.is_err(), "it is retained: {nothing:?}");
    for state in ["on", "on", "off"] {
        ear.on_published("is", state.as_bytes(), false);
        let received = timeout(MOMENT, device.receive()).await;
        assert_eq!(received, Ok(Received::State(state.into())));
        assert!(timeout(MOMENT, device.receive()).await.is_err());
    }
    for _ in 0..2 {
        ear.on_published("there", b"offline", false);
        let received = timeout(MOMENT, device.receive()).await;
        assert_eq!(received, Ok(Received::Ended));
        assert!(timeout(MOMENT, device.receive()).await.is_err());
        ear.on_published("there", b"online", false);
        assert!(timeout(MOMENT, device.receive()).await.is_err());
    }
}

#[tokio::test]
async fn a_device_that_does_not_do_what_it_was_told_is_asked_each_half_second() {
    let question = Question {
        topic: "how-is-it".into(),
        payload: Vec::new(),
    };
    let (mut device, _ear, link, broker) = unanswered(Some(question));
    let received = thread::spawn(move || {
        let mut stream = broker.accept().unwrap().0;
        // The packet that accepts a connection, without a look at the request.
        stream.write_all(&[0x20, 2, 0, 0]).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).ok();
        all
    });
    let until = Instant::now() + Duration::from_millis(1_900);
    let outcome = device.set(&"on".into(), until.into_std()).await;
    assert_eq!(outcome, Outcome::Unknown);
    drop((device, link));
    let received = received.join().unwrap();
    let count = |what: &[u8]| {
        received
            .windows(what.len())
            .filter(|it| *it == what)
            .count()
    };
    assert_eq!(count(b"set"), 1);
    // After half of the time, and each half second from then on, until the time has passed.
    let asked = count(b"how-is-it");
    assert!((1..=3).contains(&asked), "{asked}");
}
