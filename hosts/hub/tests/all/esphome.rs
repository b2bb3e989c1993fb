//! Switches of ESPHome devices: one that speaks in a thread of the test, and real firmware where it is there.

use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, thread};

use prost::Message as _;
use selvedge_core::Span;
use selvedge_hub::device::esphome::Esphome;
use selvedge_hub::device::esphome::wire::{Entity, Relay, kind};
use selvedge_hub::device::{Device as _, Heard};
use selvedge_routine::State;
use selvedge_safehome::Outcome;

use crate::program::Hub;
use crate::support::Dir;

const KEY: [u8; 32] = [7; 32];
const RELAY: u32 = 0x1234_5678;

/// What it does with the next command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Obeys,
    /// Nothing comes of it, and it says what is.
    Passes,
    /// It switches, and ends the connection.
    Switches,
    /// It neither switches nor says anything.
    Hangs,
    /// It ends each connection.
    Dead,
}

struct Board {
    at: SocketAddr,
    is_on: Arc<AtomicBool>,
    mood: Arc<Mutex<Mood>>,
    commands: Arc<AtomicU32>,
    /// Whether it is switched by hand, once.
    pushes: Arc<AtomicBool>,
}

/// The device's side of a connection.
struct Side {
    stream: TcpStream,
    noise: Option<snow::TransportState>,
}

impl Side {
    fn read(&mut self, len: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn frame(&mut self) -> std::io::Result<Vec<u8>> {
        let head = self.read(3)?;
        if head[0] != 1 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        self.read(u16::from_be_bytes([head[1], head[2]]).into())
    }

    fn say_frame(&mut self, body: &[u8]) -> std::io::Result<()> {
        let len = u16::try_from(body.len()).unwrap().to_be_bytes();
        self.stream.write_all(&[&[1], &len[..], body].concat())
    }

    fn greet(&mut self) -> std::io::Result<()> {
        assert!(self.frame()?.is_empty());
        self.say_frame(b"\x01board\0aabbccddeeff\0")?;
        let pattern = "Noise_NNpsk0_25519_ChaChaPoly_SHA256".parse().unwrap();
        let builder = snow::Builder::new(pattern);
        let builder = builder.prologue(b"NoiseAPIInit\0\0").unwrap();
        let mut handshake = builder.psk(0, &KEY).unwrap().build_responder().unwrap();
        let theirs = self.frame()?;
        if handshake.read_message(&theirs[1..], &mut [0; 64]).is_err() {
            return self.say_frame(b"\x01Handshake MAC failure");
        }
        let mut ours = [0; 64];
        let len = handshake.write_message(&[], &mut ours).unwrap();
        self.say_frame(&[&[0], &ours[..len]].concat())?;
        self.noise = Some(handshake.into_transport_mode().unwrap());
        Ok(())
    }

    /// Whether something has come, or the other side has gone, within a moment.
    fn is_heard(&self) -> std::io::Result<bool> {
        self.stream
            .set_read_timeout(Some(Duration::from_millis(20)))?;
        let is_heard = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_read_timeout(None)?;
        Ok(is_heard)
    }

    fn varint(&mut self) -> std::io::Result<usize> {
        let mut number = 0;
        for shift in 0.. {
            let byte = self.read(1)?[0];
            number |= usize::from(byte & 0x7f) << (7 * shift);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(number)
    }

    fn hear(&mut self) -> std::io::Result<(u16, Vec<u8>)> {
        if self.noise.is_none() {
            if self.read(1)?[0] != 0 {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
            let (len, kind) = (self.varint()?, self.varint()?);
            return Ok((kind as u16, self.read(len)?));
        }
        let body = self.frame()?;
        let mut plain = vec![0; body.len()];
        let len = self.noise.as_mut().unwrap().read_message(&body, &mut plain);
        plain.truncate(len.unwrap());
        Ok((
            u16::from_be_bytes([plain[0], plain[1]]),
            plain[4..].to_vec(),
        ))
    }

    fn say(&mut self, kind: u16, message: &impl prost::Message) -> std::io::Result<()> {
        let body = message.encode_to_vec();
        assert!(body.len() < 128, "it is short");
        let Some(noise) = &mut self.noise else {
            let head = [0, body.len() as u8, kind as u8];
            return self.stream.write_all(&[&head, &body[..]].concat());
        };
        let len = (body.len() as u16).to_be_bytes();
        let plain = [&kind.to_be_bytes()[..], &len, &body].concat();
        let mut out = vec![0; plain.len() + 16];
        noise.write_message(&plain, &mut out).unwrap();
        self.say_frame(&out)
    }
}

impl Board {
    fn start(has_key: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let board = Self {
            at: listener.local_addr().unwrap(),
            is_on: Arc::default(),
            mood: Arc::new(Mutex::new(Mood::Obeys)),
            commands: Arc::default(),
            pushes: Arc::default(),
        };
        let (is_on, mood) = (Arc::clone(&board.is_on), Arc::clone(&board.mood));
        let (commands, pushes) = (Arc::clone(&board.commands), Arc::clone(&board.pushes));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut side = Side {
                    stream: stream.unwrap(),
                    noise: None,
                };
                let (is_on, mood) = (Arc::clone(&is_on), Arc::clone(&mood));
                let (commands, pushes) = (Arc::clone(&commands), Arc::clone(&pushes));
                // It ends with its connection.
                thread::spawn(move || {
                    if *mood.lock().unwrap() == Mood::Dead || (has_key && side.greet().is_err()) {
                        return;
                    }
                    serve(&mut side, &is_on, &mood, &commands, &pushes).ok();
                });
            }
        });
        board
    }

    fn device(&self, key: Option<[u8; 32]>) -> Esphome {
        Esphome::new(self.at.to_string(), "water_pump".into(), key)
    }

    fn set_mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }
}

fn serve(
    side: &mut Side,
    is_on: &AtomicBool,
    mood: &Mutex<Mood>,
    commands: &AtomicU32,
    pushes: &AtomicBool,
) -> std::io::Result<()> {
    let mut says_states = false;
    loop {
        while says_states && !side.is_heard()? {
            if *mood.lock().unwrap() == Mood::Dead {
                return Ok(());
            }
            if pushes.swap(false, Ordering::SeqCst) {
                is_on.store(true, Ordering::SeqCst);
                let is_on = true;
                side.say(kind::SWITCH_STATE, &Relay { key: RELAY, is_on })?;
            }
        }
        let (of, body) = side.hear()?;
        let now = *mood.lock().unwrap();
        if now == Mood::Dead {
            return Ok(());
        }
        match of {
            kind::HELLO => {
                side.say(2, &())?;
                side.say(kind::PING, &())?;
            }
            kind::AUTHENTICATE => side.say(kind::AUTHENTICATED, &())?,
            kind::LIST => {
                let other = Entity {
                    object: String::new(),
                    key: 1,
                    name: "Other".into(),
                };
                side.say(kind::SWITCH, &other)?;
                let pump = Entity {
                    object: String::new(),
                    key: RELAY,
                    name: "Water Pump".into(),
                };
                side.say(kind::SWITCH, &pump)?;
                side.say(kind::LISTED, &())?;
            }
            kind::STATES => {
                says_states = true;
                let other = Relay {
                    key: 1,
                    is_on: true,
                };
                side.say(kind::SWITCH_STATE, &other)?;
            }
            kind::SET_SWITCH => {
                commands.fetch_add(1, Ordering::SeqCst);
                let told = Relay::decode(&*body).unwrap();
                assert_eq!(told.key, RELAY);
                match now {
                    Mood::Obeys => is_on.store(told.is_on, Ordering::SeqCst),
                    Mood::Switches => {
                        is_on.store(told.is_on, Ordering::SeqCst);
                        return Ok(());
                    }
                    Mood::Hangs => {
                        thread::sleep(Duration::from_secs(3));
                        return Ok(());
                    }
                    Mood::Passes | Mood::Dead => {}
                }
            }
            _ => continue,
        }
        if says_states {
            let is_on = is_on.load(Ordering::SeqCst);
            side.say(kind::SWITCH_STATE, &Relay { key: RELAY, is_on })?;
        }
    }
}

fn within(limit: Duration) -> Instant {
    Instant::now() + limit
}

fn on() -> State {
    State::from("on")
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
            assert_eq!(board.is_on.load(Ordering::SeqCst), state == on());
        }
        assert_eq!(board.commands.load(Ordering::SeqCst), 3);
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
        assert_eq!(board.commands.load(Ordering::SeqCst), 0);
    }
    let board = Board::start(false);
    let mut device = Esphome::new(board.at.to_string(), "heater".into(), None);
    assert_eq!(device.ask().await, None, "it has no such switch");
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
    let sent = board.commands.load(Ordering::SeqCst);
    let outcome = device.set(&on(), within(Duration::from_secs(1))).await;
    assert_eq!(outcome, Outcome::Refused);
    assert_eq!(board.commands.load(Ordering::SeqCst), sent);
}

#[tokio::test]
async fn what_it_says_by_itself_is_heard_and_so_is_its_end() {
    let board = Board::start(true);
    let mut device = board.device(Some(KEY));
    assert_eq!(device.ask().await, Some("off".into()));
    let mut other = board.device(Some(KEY));
    // Another client switches it; the board says so to those that ask.
    let outcome = other.set(&on(), within(Duration::from_secs(3))).await;
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(device.ask().await, Some(on()));
    board.set_mood(Mood::Dead);
    let asked = tokio::time::timeout(Duration::from_secs(2), device.ask()).await;
    assert_eq!(asked, Ok(None));
    board.set_mood(Mood::Obeys);
    assert_eq!(device.ask().await, Some(on()), "it is connected again");
    // It says so when it ends.
    board.set_mood(Mood::Dead);
    other.ask().await;
    drop(board);
}

#[tokio::test]
async fn a_state_that_it_says_by_itself_is_heard() {
    let board = Board::start(false);
    let mut device = board.device(None);
    assert_eq!(device.ask().await, Some("off".into()));
    board.pushes.store(true, Ordering::SeqCst);
    let heard = tokio::time::timeout(Duration::from_secs(5), device.hear()).await;
    assert_eq!(heard, Ok(Heard::State(on())));
    board.set_mood(Mood::Dead);
    let heard = tokio::time::timeout(Duration::from_secs(5), device.hear()).await;
    assert_eq!(heard, Ok(Heard::Gone));
}

/// Real firmware, by its path.
fn firmware() -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(|it| PathBuf::from(it).join("hub/esphome/relay"));
    let found = parts.filter(|it| it.exists());
    if found.is_none() {
        let how =
            "no ESPHome firmware: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch-esphome.sh";
        println!("skipped: {how}");
    }
    found
}

struct Firmware(Child);

impl Firmware {
    fn start(path: &PathBuf) -> Self {
        let mut command = Command::new(path);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn real_firmware_is_switched_and_a_routine_that_it_fails_is_undone() {
    let Some(path) = firmware() else { return };
    let dir = Dir::new("esphome");
    let home = r#"{"devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "pump"}],
      "routines": [
        {"RoutineName": "on", "CommandList": [
          {"DevID": "lamp", "Action": "on"}, {"DevID": "pump", "Action": "on"}]},
        {"RoutineName": "off", "CommandList": [
          {"DevID": "lamp", "Action": "off"}, {"DevID": "pump", "Action": "off"}]}],
      "hub": {"devices": {"lamp": {"dummy": {}},
        "pump": {"esphome": {"address": "127.0.0.1:6053", "entity": "Relay"}}}}}"#;
    fs::write(dir.path().join("home.json"), home).unwrap();
    let first = Firmware::start(&path);
    let hub = Hub::start(dir.path());
    let wait = |what: &str, state: &str, is_up: bool| {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let home = hub.get("/api/home");
            let pump = &home["devices"][1];
            if pump["state"] == state && pump["up"] == is_up {
                return;
            }
            assert!(Instant::now() < until, "{what}: {home}");
            thread::sleep(Duration::from_millis(30));
        }
    };
    wait("it is there", "off", true);
    for (routine, state) in [("on", "on"), ("on", "on"), ("off", "off")] {
        let id = hub.run(routine);
        hub.wait_for(id, "done");
        wait("it is switched", state, true);
    }
    drop(first);
    let id = hub.run("on");
    hub.wait_for(id, "undone");
    wait("it is gone", "off", false);
    assert_eq!(hub.get("/api/home")["devices"][0]["state"], "off");
    let _second = Firmware::start(&path);
    wait("it is back", "off", true);
    let id = hub.run("on");
    hub.wait_for(id, "done");
}
