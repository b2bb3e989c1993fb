//! Switches and lights of ESPHome devices that run in threads of the tests.

use core::time::Duration;
use std::io::{ErrorKind, Read as _};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_hub::device::esphome::Esphome;
use selvedge_hub::device::esphome::wire::{Codec, LONGEST, WireError};
use selvedge_hub::device::{Device as _, Received};
use selvedge_routine::State;
use selvedge_safehome::Outcome;

use crate::board::{Board, KEY, Kind, Mood};

fn within(limit: Duration) -> Instant {
    Instant::now() + limit
}

fn on() -> State {
    State::from("on")
}

#[test]
fn what_is_no_frame_or_too_long_is_refused_before_all_of_it_is_there() {
    let decode = |key: Option<&[u8; 32]>, bytes: &[u8]| {
        let mut codec = Codec::new(key).unwrap().0;
        codec.decode(&mut bytes.to_vec())
    };
    let clear = |len: usize| {
        [
            0,
            len as u8 | 0x80,
            (len >> 7) as u8 | 0x80,
            (len >> 14) as u8,
            1,
        ]
    };
    let noise = |len: usize| [1, (len >> 8) as u8, len as u8, 0];
    assert!(matches!(decode(None, &clear(LONGEST)), Ok(None)));
    assert!(matches!(decode(Some(&KEY), &noise(LONGEST)), Ok(None)));
    for len in [LONGEST + 1, LONGEST + 2] {
        for refused in [decode(None, &clear(len)), decode(Some(&KEY), &noise(len))] {
            assert!(matches!(refused, Err(WireError::TooLong(it)) if it == len));
        }
    }
    // A number that does not end.
    for len in 0..8 {
        let bytes = [&[0][..], &vec![0x80; len]].concat();
        let decoded = decode(None, &bytes);
        let is_waited_for = matches!(decoded, Ok(None));
        let is_refused = matches!(decoded, Err(WireError::TooLong(_)));
        assert_eq!((is_waited_for, is_refused), (len < 5, len >= 5), "{len}");
    }
    for key in [None, Some(&KEY)] {
        let refused = decode(key, &[7, 0, 0]);
        assert!(matches!(refused, Err(WireError::NoFrame(7))), "{refused:?}");
    }
    assert!(matches!(decode(None, &[1]), Err(WireError::NeedsKey)));
    for bytes in [&[0][..], &[0, 1, 1]] {
        let refused = decode(Some(&KEY), bytes);
        assert!(matches!(refused, Err(WireError::NeedsNoKey)), "{refused:?}");
    }
}

/// The runtime stands still, as it does with its host, while the device answers.
#[test]
fn a_host_that_slept_while_a_device_answered_sends_nothing() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let board = Board::start(false);
    let mut device = board.device(None);
    let outcome = runtime.block_on(async {
        assert_eq!(device.ask().await, Some("off".into()));
        let state = on();
        let set = device.set(&state, within(Duration::from_millis(300)));
        let sleeper = async { thread::sleep(Duration::from_millis(500)) };
        tokio::join!(set, sleeper).0
    });
    assert_eq!(outcome, Outcome::Refused);
    thread::sleep(Duration::from_millis(100));
    assert_eq!(board.commands(), 0);
    assert!(!board.is_on());
}

#[tokio::test]
async fn a_switch_is_set_and_asked_in_the_clear_and_by_noise() {
    for has_key in [false, true] {
        let board = Board::start(has_key);
        let mut device = board.device(has_key.then_some(KEY));
        assert_eq!(device.ask().await, Some("off".into()));
        for state in [on(), on(), "off".into()] {
            let outcome = device.set(&state, within(Duration::from_secs(5))).await;
            assert_eq!(outcome, Outcome::Done);
            assert_eq!(board.is_on(), state == on());
        }
        assert_eq!(board.commands(), 3);
        let dim = State::from("dim");
        let outcome = device.set(&dim, within(Duration::from_secs(1))).await;
        assert_eq!(outcome, Outcome::Refused);
        assert!(device.lateness() > Span::ZERO);
    }
}

#[tokio::test]
async fn a_key_that_is_wrong_or_missing_gives_no_answer_and_nothing_is_sent() {
    for (has_key, key) in [(true, None), (true, Some([8; 32])), (false, Some(KEY))] {
        let board = Board::start(has_key);
        let mut device = board.device(key);
        let asked = tokio::time::timeout(Duration::from_secs(1), device.ask()).await;
        assert!(asked.is_err() || asked == Ok(None), "{has_key} {key:?}");
        let outcome = device.set(&on(), within(Duration::from_millis(900))).await;
        assert_eq!(outcome, Outcome::Refused);
        assert_eq!(board.commands(), 0);
    }
    let board = Board::start(false);
    let mut device = Esphome::new(board.at.to_string(), "heater".into(), None);
    assert_eq!(device.ask().await, None, "it has no such switch");
    let why = device.trouble().unwrap();
    assert!(
        why.ends_with(r#"name one of ["Other 1", "Water Pump"]"#),
        "{why}"
    );
    let kind = Kind {
        others: 2_000,
        ..Kind::default()
    };
    let board = Board::of(kind);
    let mut device = Esphome::new(board.at.to_string(), "heater".into(), None);
    assert_eq!(device.ask().await, None);
    let why = device.trouble().unwrap();
    assert!(why.ends_with(r#""Other 20"] and 1981 more"#), "{why}");
}

#[tokio::test]
async fn what_is_not_proven_is_unknown_and_a_change_is_proof() {
    let board = Board::start(true);
    let mut device = board.device(Some(KEY));
    assert_eq!(device.ask().await, Some("off".into()));
    board.set_mood(Mood::Passes);
    let outcome = device.set(&on(), within(Duration::from_secs(2))).await;
    assert_eq!(outcome, Outcome::Unknown);
    board.set_mood(Mood::Switches);
    let outcome = device.set(&on(), within(Duration::from_secs(4))).await;
    assert_eq!(outcome, Outcome::Done, "it was off, and is on");
    let outcome = device.set(&on(), within(Duration::from_secs(2))).await;
    assert_eq!(outcome, Outcome::Unknown, "it was on before");
    board.set_mood(Mood::Hangs);
    let outcome = device
        .set(&"off".into(), within(Duration::from_secs(2)))
        .await;
    assert_eq!(outcome, Outcome::Unknown);
    board.set_mood(Mood::Dead);
    let sent = board.commands();
    let outcome = device.set(&on(), within(Duration::from_secs(1))).await;
    assert_eq!(outcome, Outcome::Refused);
    assert_eq!(board.commands(), sent);
}

/// Until the command is sent, a failed attempt can be repeated.
#[tokio::test]
async fn a_device_that_comes_while_there_is_time_does_the_command() {
    let board = Board::start(false);
    board.set_mood(Mood::Dead);
    let mut device = board.device(None);
    let state = on();
    let set = device.set(&state, within(Duration::from_secs(5)));
    let comes = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        board.set_mood(Mood::Obeys);
    };
    assert_eq!(tokio::join!(set, comes).0, Outcome::Done);
    assert_eq!(board.commands(), 1);
    assert!(board.is_on());
}

#[tokio::test]
async fn what_another_client_does_is_heard_and_an_end_is_connected_again() {
    let board = Board::start(true);
    let mut device = board.device(Some(KEY));
    assert_eq!(device.ask().await, Some("off".into()));
    let mut other = board.device(Some(KEY));
    let outcome = other.set(&on(), within(Duration::from_secs(3))).await;
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(device.ask().await, Some(on()));
    board.set_mood(Mood::Dead);
    let asked = tokio::time::timeout(Duration::from_secs(2), device.ask()).await;
    assert_eq!(asked, Ok(None));
    board.set_mood(Mood::Obeys);
    assert_eq!(device.ask().await, Some(on()), "it is connected again");
}

#[tokio::test]
async fn what_it_says_by_itself_is_heard_and_so_is_its_end() {
    let board = Board::start(false);
    let mut device = board.device(None);
    assert_eq!(device.ask().await, Some("off".into()));
    board.push();
    let received = tokio::time::timeout(Duration::from_secs(5), device.receive()).await;
    assert_eq!(received, Ok(Received::State(on())));
    board.set_mood(Mood::Dead);
    let received = tokio::time::timeout(Duration::from_secs(5), device.receive()).await;
    assert_eq!(received, Ok(Received::Ended));
}

/// A single look is shorter than the time until the device is connected.
#[tokio::test]
async fn a_slow_device_is_connected_over_several_looks_and_heard_when_it_is() {
    let takes = Duration::from_millis(2_500);
    let kind = Kind {
        has_key: true,
        takes,
        ..Kind::default()
    };
    let board = Board::of(kind);
    let mut device = board.device(Some(KEY));
    let begun = Instant::now();
    let second = Duration::from_secs(1);
    let mut found = Err(());
    while found.is_err() && begun.elapsed() < Duration::from_secs(8) {
        let looked = tokio::time::timeout(second, device.look()).await;
        if let Ok(looked) = looked {
            found = Ok(looked);
        }
    }
    assert_eq!(found, Ok(Some("off".into())), "{:?}", begun.elapsed());
    assert_eq!(board.came(), 1);
    assert!(begun.elapsed() > takes);
    let outcome = device.set(&on(), within(Duration::from_secs(5))).await;
    assert_eq!(outcome, Outcome::Done);

    // Without a look.
    let mut device = board.device(Some(KEY));
    let looked = tokio::time::timeout(second, device.look()).await;
    assert!(looked.is_err());
    let received = tokio::time::timeout(Duration::from_secs(8), device.receive()).await;
    assert_eq!(received, Ok(Received::State(on())));
    assert_eq!(board.came(), 2);
}

/// On a clock that runs ahead when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_device_that_is_never_ready_is_given_up_and_gone_to_again() {
    let kind = Kind {
        takes: Duration::from_secs(3_600),
        ..Kind::default()
    };
    let board = Board::of(kind);
    let mut device = board.device(None);
    for (looks, came) in [(9, 1), (4, 2)] {
        for _ in 0..looks {
            let looked = tokio::time::timeout(Duration::from_secs(1), device.look()).await;
            assert!(looked.is_err() || looked == Ok(None));
            // It runs on a clock of its own.
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(board.came(), came, "{looks}");
    }
}

#[tokio::test]
async fn a_light_is_set_and_asked_and_heard() {
    let kind = Kind {
        is_light: true,
        others: 3,
        ..Kind::default()
    };
    let board = Board::of(kind);
    let mut device = board.device(None);
    assert_eq!(device.ask().await, Some("off".into()));
    for state in [on(), "off".into(), on(), "off".into()] {
        let outcome = device.set(&state, within(Duration::from_secs(5))).await;
        assert_eq!(outcome, Outcome::Done);
        assert_eq!(board.is_on(), state == on());
        assert_eq!(device.ask().await, Some(state));
    }
    assert_eq!(board.commands(), 4);
    board.push();
    // Its report after each command is still to come.
    let until_on = async { while device.receive().await != Received::State(on()) {} };
    let received = tokio::time::timeout(Duration::from_secs(5), until_on).await;
    assert_eq!(received, Ok(()));
    board.set_mood(Mood::Passes);
    let outcome = device
        .set(&"off".into(), within(Duration::from_secs(2)))
        .await;
    assert_eq!(outcome, Outcome::Unknown);
}

#[tokio::test]
async fn a_state_that_was_on_its_way_when_a_command_was_sent_is_no_proof() {
    for is_light in [false, true] {
        let kind = Kind {
            is_light,
            ..Kind::default()
        };
        let board = Board::of(kind);
        let mut device = board.device(None);
        assert_eq!(device.ask().await, Some("off".into()));
        board.set_mood(Mood::Echoes);
        let outcome = device.set(&on(), within(Duration::from_secs(2))).await;
        assert_eq!(outcome, Outcome::Unknown);
        assert_eq!(board.commands(), 1);
        board.set_mood(Mood::Obeys);
        let outcome = device.set(&on(), within(Duration::from_secs(2))).await;
        assert_eq!(outcome, Outcome::Done);
    }
}

/// Bytes that the kernel has not sent yet when a connection is given up would be sent later.
#[tokio::test]
async fn a_connection_that_is_given_up_leaves_nothing_that_is_still_to_be_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let ended = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reported = Vec::new();
        let ended = stream.read_to_end(&mut reported);
        (reported.is_empty(), ended.map_err(|it| it.kind()))
    });
    let mut device = Esphome::new(at, "heater".into(), None);
    let asked = tokio::time::timeout(Duration::from_millis(300), device.ask());
    assert!(asked.await.is_err(), "it says nothing");
    drop(device);
    assert_eq!(
        ended.join().unwrap(),
        (false, Err(ErrorKind::ConnectionReset))
    );
}
