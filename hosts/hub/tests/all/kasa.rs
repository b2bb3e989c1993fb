//! Kasa plugs: the frames, and a plug that stops in the middle.

use core::time::Duration;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_hub::device::Device as _;
use selvedge_hub::device::kasa::{Kasa, decode, encode, state_in};
use selvedge_routine::State;
use selvedge_safehome::Outcome;

use crate::plug::{Mood, Plug};

/// A question for a plug's description, as others have recorded it.
const QUESTION: [u8; 33] = [
    0, 0, 0, 29, 208, 242, 129, 248, 139, 255, 154, 247, 213, 239, 148, 182, 209, 180, 192, 159,
    236, 149, 230, 143, 225, 135, 232, 202, 240, 139, 246, 139, 246,
];

#[test]
fn a_frame_is_as_others_have_recorded_it() {
    let text = r#"{"system":{"get_sysinfo":{}}}"#;
    assert_eq!(encode(text), QUESTION);
    assert_eq!(decode(&QUESTION[4..]), text.as_bytes());
}

#[test]
fn what_is_no_answer_is_refused() {
    let plug = br#"{"system":{"get_sysinfo":{"relay_state":1,"alias":"x"}}}"#;
    assert!(state_in(plug, None).unwrap());
    let strip =
        br#"{"system":{"get_sysinfo":{"children":[{"id":"00","state":0},{"id":"01","state":1}]}}}"#;
    assert!(state_in(strip, None).unwrap());
    assert!(!state_in(strip, Some(0)).unwrap());
    assert!(state_in(strip, Some(1)).unwrap());
    for state in [0, 1] {
        let strip = format!(
            r#"{{"system":{{"get_sysinfo":{{"children":[{{"id":"00","state":{state}}},{{"id":"01","state":{state}}}]}}}}}}"#
        );
        assert_eq!(state_in(strip.as_bytes(), None).unwrap(), state == 1);
    }
    let why = state_in(strip, Some(2)).unwrap_err().to_string();
    assert!(why.contains("no outlet 2"), "{why}");
    for wrong in [
        &b""[..],
        b"{}",
        b"[]",
        br#"{"system":{"get_sysinfo":7}}"#,
        br#"{"system":{"get_sysinfo":{}}}"#,
        br#"{"system":{"get_sysinfo":{"err_code":-1}}}"#,
        br#"{"system":{"get_sysinfo":{"light_state":{"on_off":1}}}}"#,
        b"\xff\xfe",
    ] {
        assert!(state_in(wrong, None).is_err());
    }
}

fn within(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

#[tokio::test]
async fn what_a_plug_proves_is_what_is_said() {
    let plug = Plug::start();
    let mut kasa = Kasa::new(plug.address.to_string(), None);
    let (on, off): (State, State) = ("on".into(), "off".into());
    assert_eq!(kasa.ask().await, Some(off.clone()));
    for (mood, state, outcome) in [
        (Mood::Obeys, &on, Outcome::Done),
        (Mood::Refuses, &off, Outcome::Refused),
        (Mood::Switches, &off, Outcome::Done),
        (Mood::Claims, &on, Outcome::Done),
        (Mood::Hangs, &off, Outcome::Done),
        (Mood::Obeys, &on, Outcome::Done),
        (Mood::Swallows, &off, Outcome::Unknown),
        // The state is the same as before, which proves nothing.
        (Mood::Swallows, &on, Outcome::Unknown),
        // Nor does a state without a known earlier one.
        (Mood::Switches, &off, Outcome::Unknown),
        (Mood::Obeys, &on, Outcome::Done),
    ] {
        *plug.mood.lock().unwrap() = mood;
        let before = plug.commands.load(Ordering::SeqCst);
        assert_eq!(kasa.set(state, within(700)).await, outcome);
        // Nothing is sent twice.
        assert_eq!(plug.commands.load(Ordering::SeqCst), before + 1);
    }
    assert_eq!(kasa.ask().await, Some(on));
    assert_eq!(
        kasa.set(&State::from(3), within(700)).await,
        Outcome::Refused
    );
}

#[tokio::test]
async fn a_plug_that_is_not_there_was_not_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut kasa = Kasa::new(address.to_string(), None);
    assert_eq!(kasa.trouble(), None);
    assert_eq!(kasa.ask().await, None);
    let why = kasa.trouble().unwrap();
    assert!(why.contains("see whether it has power"), "{why}");
    let until = within(900);
    assert_eq!(kasa.set(&"on".into(), until).await, Outcome::Refused);
    assert!(Instant::now() < until);
    // Until the command is sent, a failed attempt can be repeated.
    let state = State::from("on");
    let set = kasa.set(&state, within(3_000));
    let comes = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Plug::at(address)
    };
    let (outcome, plug) = tokio::join!(set, comes);
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(plug.commands.load(Ordering::SeqCst), 1);
    assert_eq!(kasa.ask().await, Some(state));
    assert_eq!(kasa.trouble(), None);
    assert!(kasa.lateness() > Span::ZERO);
}

/// An id with quotes in it would make another command.
#[tokio::test]
async fn an_outlet_whose_id_is_no_id_is_told_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (notify, notified) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut len = [0; 4];
            if stream.read_exact(&mut len).is_err() {
                continue; // It was connected, and received nothing.
            }
            let mut body = vec![0; u32::from_be_bytes(len) as usize];
            stream.read_exact(&mut body).unwrap();
            notify
                .send(String::from_utf8(decode(&body)).unwrap())
                .unwrap();
            let answer =
                r#"{"system":{"get_sysinfo":{"children":[{"id":"00\"],\"a\":[\"","state":0}]}}}"#;
            stream.write_all(&encode(answer)).unwrap();
        }
    });
    let mut outlet = Kasa::new(address.to_string(), Some(0));
    assert_eq!(outlet.ask().await, Some("off".into()));
    let outcome = outlet.set(&"on".into(), within(600)).await;
    assert_eq!(outcome, Outcome::Refused);
    let notified: Vec<_> = notified.try_iter().collect();
    assert!(
        notified.iter().all(|it| it.contains("get_sysinfo")),
        "{notified:?}"
    );
}

#[tokio::test]
async fn an_outlet_is_named_in_full_and_a_short_time_is_time() {
    let plug = Plug::start();
    let mut outlet = Kasa::new(plug.address.to_string(), Some(1));
    assert_eq!(outlet.set(&"on".into(), within(200)).await, Outcome::Done);
    let notified = plug.notified.lock().unwrap().clone();
    assert!(
        notified.contains(r#""context":{"child_ids":["800601"]}"#),
        "{notified}"
    );
    assert_eq!(outlet.ask().await, Some("on".into()));
    let mut none = Kasa::new(plug.address.to_string(), Some(2));
    assert_eq!(none.set(&"on".into(), within(300)).await, Outcome::Refused);
}

/// The runtime stands still, as it does with its host, while the plug accepts the connection.
#[test]
fn a_host_that_slept_while_a_plug_accepted_sends_nothing() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let plug = Plug::start();
    let mut kasa = Kasa::new(plug.address.to_string(), None);
    let outcome = runtime.block_on(async {
        let state = State::from("on");
        let set = kasa.set(&state, within(300));
        let sleeper = async { thread::sleep(Duration::from_millis(500)) };
        tokio::join!(set, sleeper).0
    });
    assert_eq!(outcome, Outcome::Refused);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(plug.commands.load(Ordering::SeqCst), 0);
    assert!(!plug.is_on.load(Ordering::SeqCst));
}

/// Bytes that the kernel has not sent yet when a command is given up would be sent later.
#[tokio::test]
async fn a_command_that_is_given_up_leaves_nothing_that_is_still_to_be_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (notify, notified) = channel();
    thread::spawn(move || {
        for (stream, is_answered) in listener.incoming().zip([false, true]) {
            let mut stream = stream.unwrap();
            let mut len = [0; 4];
            stream.read_exact(&mut len).unwrap();
            let mut body = vec![0; u32::from_be_bytes(len) as usize];
            stream.read_exact(&mut body).unwrap();
            if is_answered {
                let answer = r#"{"system":{"set_relay_state":{"err_code":0}}}"#;
                stream.write_all(&encode(answer)).unwrap();
            }
            notify
                .send(stream.read(&mut len).map_err(|it| it.kind()))
                .unwrap();
        }
    });
    let mut kasa = Kasa::new(address.to_string(), None);
    let state = State::from("on");
    assert_eq!(kasa.set(&state, within(300)).await, Outcome::Unknown);
    assert_eq!(notified.recv().unwrap(), Err(ErrorKind::ConnectionReset));
    assert_eq!(kasa.set(&state, within(900)).await, Outcome::Done);
    assert_eq!(notified.recv().unwrap(), Ok(0), "it is closed in order");
}

#[tokio::test]
async fn a_plug_that_does_not_answer_in_time_is_said_to_be_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut kasa = Kasa::new(listener.local_addr().unwrap().to_string(), None);
    let asked = tokio::time::timeout(Duration::from_millis(200), kasa.ask());
    assert!(asked.await.is_err());
    let why = kasa.trouble().unwrap();
    assert!(why.contains("does not answer in time"), "{why}");
}
