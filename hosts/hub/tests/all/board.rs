//! An ESPHome device with a switch or a light, which runs in a thread of the test.

use core::time::Duration;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use prost::Message as _;
use selvedge_hub::device::esphome::Esphome;
use selvedge_hub::device::esphome::wire::{Entity, Relay, SetLight, kind};

pub(crate) const KEY: [u8; 32] = [7; 32];
pub(crate) const RELAY: u32 = 0x1234_5678;

/// The reaction to the next command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Obeys,
    /// It ignores the command, and reports its state.
    Passes,
    /// It switches, and ends the connection.
    Switches,
    /// It neither switches nor answers.
    Hangs,
    /// It reports the commanded state, which was on its way when the command came; it ignores the command,
    /// and reports its state.
    Echoes,
    /// It ends each connection.
    Dead,
}

/// The kind of a board.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kind {
    pub(crate) has_key: bool,
    /// It has a light, and no switch.
    pub(crate) is_light: bool,
    /// The time until its first answer.
    pub(crate) takes: Duration,
    /// The number of its other entities.
    pub(crate) others: u32,
}

pub(crate) struct Board {
    pub(crate) at: SocketAddr,
    pub(crate) state: Arc<Shared>,
}

/// The state that all its connections share.
#[derive(Default)]
pub(crate) struct Shared {
    kind: Kind,
    pub(crate) is_on: AtomicBool,
    mood: Mutex<Option<Mood>>,
    pub(crate) commands: AtomicU32,
    /// The number of connections.
    pub(crate) came: AtomicU32,
    /// True if a person switches it by hand, once.
    pub(crate) pushes: AtomicBool,
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

    /// Reports that the client's first byte is wrong, as firmware does.
    fn reject(&mut self, has_key: bool) -> std::io::Result<()> {
        match has_key {
            true => self.say_frame(b"\x01Bad indicator byte")?,
            false => self.stream.write_all(b"\0\x13Bad indicator byte")?,
        }
        self.stream.shutdown(Shutdown::Write)?;
        let moment = Some(Duration::from_secs(1));
        self.stream.set_read_timeout(moment)?;
        self.stream.read_to_end(&mut Vec::new()).map(drop)
    }

    /// Returns true if bytes have arrived or the other side has left, within a moment.
    fn is_received(&self) -> std::io::Result<bool> {
        self.stream
            .set_read_timeout(Some(Duration::from_millis(20)))?;
        let is_received = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_read_timeout(None)?;
        Ok(is_received)
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

    fn receive(&mut self) -> std::io::Result<(u16, Vec<u8>)> {
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
    pub(crate) fn start(has_key: bool) -> Self {
        let others = 1;
        Self::of(Kind {
            has_key,
            others,
            ..Kind::default()
        })
    }

    pub(crate) fn of(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let board = Self {
            at: listener.local_addr().unwrap(),
            state: Arc::new(Shared {
                kind,
                ..Shared::default()
            }),
        };
        let state = Arc::clone(&board.state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut side = Side {
                    stream: stream.unwrap(),
                    noise: None,
                };
                state.came.fetch_add(1, Ordering::SeqCst);
                let state = Arc::clone(&state);
                // It ends with its connection.
                thread::spawn(move || {
                    if state.mood() == Mood::Dead {
                        return;
                    }
                    let greeted = if kind.has_key { side.greet() } else { Ok(()) };
                    let served = greeted.and_then(|()| state.serve(&mut side));
                    if served.is_err_and(|it| it.kind() == ErrorKind::InvalidData) {
                        side.reject(kind.has_key).ok();
                    }
                });
            }
        });
        board
    }

    pub(crate) fn device(&self, key: Option<[u8; 32]>) -> Esphome {
        Esphome::new(self.at.to_string(), "water_pump".into(), key)
    }

    pub(crate) fn set_mood(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = Some(mood);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.state.is_on.load(Ordering::SeqCst)
    }

    pub(crate) fn commands(&self) -> u32 {
        self.state.commands.load(Ordering::SeqCst)
    }

    pub(crate) fn came(&self) -> u32 {
        self.state.came.load(Ordering::SeqCst)
    }

    /// A person switches it on by hand.
    pub(crate) fn push(&self) {
        self.state.pushes.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn mood(&self) -> Mood {
        self.mood.lock().unwrap().unwrap_or(Mood::Obeys)
    }

    fn say_state(&self, side: &mut Side, is_on: bool) -> std::io::Result<()> {
        let of = match self.kind.is_light {
            true => kind::LIGHT_STATE,
            false => kind::SWITCH_STATE,
        };
        side.say(of, &Relay { key: RELAY, is_on })
    }

    fn list(&self, side: &mut Side) -> std::io::Result<()> {
        let entity = |key, name: String| Entity {
            object: String::new(),
            key,
            name,
        };
        for nth in 1..=self.kind.others {
            side.say(kind::SWITCH, &entity(nth, format!("Other {nth}")))?;
        }
        let of = match self.kind.is_light {
            true => kind::LIGHT,
            false => kind::SWITCH,
        };
        side.say(of, &entity(RELAY, "Water Pump".into()))?;
        side.say(kind::LISTED, &())
    }

    /// Carries out a command. Returns true if it continues.
    fn obey(&self, side: &mut Side, is_on: bool) -> std::io::Result<bool> {
        self.commands.fetch_add(1, Ordering::SeqCst);
        match self.mood() {
            Mood::Obeys => self.is_on.store(is_on, Ordering::SeqCst),
            Mood::Switches => {
                self.is_on.store(is_on, Ordering::SeqCst);
                return Ok(false);
            }
            Mood::Hangs => {
                thread::sleep(Duration::from_secs(3));
                return Ok(false);
            }
            Mood::Echoes => self.say_state(side, is_on)?,
            Mood::Passes | Mood::Dead => {}
        }
        Ok(true)
    }

    fn serve(&self, side: &mut Side) -> std::io::Result<()> {
        let mut says_states = false;
        loop {
            while says_states && !side.is_received()? {
                if self.mood() == Mood::Dead {
                    return Ok(());
                }
                if self.pushes.swap(false, Ordering::SeqCst) {
                    self.is_on.store(true, Ordering::SeqCst);
                    self.say_state(side, true)?;
                }
            }
            let (of, body) = side.receive()?;
            if self.mood() == Mood::Dead {
                return Ok(());
            }
            match of {
                kind::HELLO => {
                    thread::sleep(self.kind.takes);
                    side.say(2, &())?;
                    side.say(kind::PING, &())?;
                    continue;
                }
                kind::PING => {
                    side.say(kind::PONG, &())?;
                    continue;
                }
                kind::AUTHENTICATE => side.say(kind::AUTHENTICATED, &())?,
                kind::LIST => self.list(side)?,
                kind::STATES => {
                    says_states = true;
                    // Other entities are on.
                    let (key, is_on) = (1, true);
                    side.say(kind::SWITCH_STATE, &Relay { key, is_on })?;
                    side.say(kind::LIGHT_STATE, &Relay { key, is_on })?;
                }
                kind::SET_SWITCH if !self.kind.is_light => {
                    let notified = Relay::decode(&*body).unwrap();
                    assert_eq!(notified.key, RELAY);
                    if !self.obey(side, notified.is_on)? {
                        return Ok(());
                    }
                }
                kind::SET_LIGHT if self.kind.is_light => {
                    let notified = SetLight::decode(&*body).unwrap();
                    assert!(notified.key == RELAY && notified.has_state);
                    if !self.obey(side, notified.is_on)? {
                        return Ok(());
                    }
                }
                _ => continue,
            }
            if says_states {
                self.say_state(side, self.is_on.load(Ordering::SeqCst))?;
            }
        }
    }
}
