//! Switches and lights of ESPHome devices, by their native API on TCP port 6053.
//!
//! The hub stays connected. A device does one message after the other, so what it says after a command when it
//! is asked for its states is its state behind the command: that is proof.

pub mod wire;

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use prost::Message as _;
use selvedge_core::Span;
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout_at};

use self::wire::{Authenticated, Codec, Entity, Hello, Packet, Relay, SetLight, WireError, kind};
use super::{Device, Heard, half_way, relay, shown};

/// How long to wait before a device that does not accept a connection is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How long a command may still act that a device has received and not answered: a guess, which a file may
/// overrule.
const LATENESS: Span = Span::secs(5);

/// How many others are named where an entity is not there.
const NAMED: usize = 20;

/// A switch or a light of an ESPHome device.
pub struct Esphome {
    /// A name or an address, with the port.
    address: String,
    /// The name of the switch or light.
    entity: String,
    key: Option<[u8; 32]>,
    session: Option<Session>,
    /// Whether it was on when it said so last.
    was_on: Option<bool>,
}

impl fmt::Debug for Esphome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its key is nobody's business.
        f.debug_struct("Esphome")
            .field("address", &self.address)
            .field("entity", &self.entity)
            .finish_non_exhaustive()
    }
}

/// A connection to a device, past its greeting.
#[derive(Debug)]
struct Session {
    stream: TcpStream,
    codec: Codec,
    came: Vec<u8>,
    key: u32,
    is_light: bool,
}

/// A name as one word, as ESPHome makes it.
fn word(name: &str) -> String {
    let one = |it: char| match it {
        ' ' => '_',
        it if it.is_ascii_alphanumeric() || it == '-' || it == '_' => it.to_ascii_lowercase(),
        _ => '_',
    };
    name.chars().map(one).collect()
}

impl Session {
    async fn open(address: &str, key: Option<&[u8; 32]>, entity: &str) -> Result<Self, WireError> {
        let mut stream = TcpStream::connect(address).await?;
        // Each message is waited for.
        stream.set_nodelay(true)?;
        let (codec, first) = Codec::new(key)?;
        stream.write_all(&first).await?;
        let mut it = Self {
            stream,
            codec,
            came: Vec::new(),
            key: 0,
            is_light: false,
        };
        while !it.codec.is_ready() {
            // The first message that it takes is behind the greeting.
            if it.codec.decode(&mut it.came)?.is_none() && !it.codec.is_ready() {
                it.read().await?;
            }
        }
        let hello = Hello {
            client: "selvedge-hub".into(),
            major: 1,
            minor: 10,
        };
        it.say(kind::HELLO, &hello).await?;
        // Older devices want to be told that there is no password, and newer ones pass it over.
        it.say(kind::AUTHENTICATE, &()).await?;
        it.say(kind::LIST, &()).await?;
        it.find(entity).await?;
        Ok(it)
    }

    /// Looks for the entity among all that the device has.
    async fn find(&mut self, entity: &str) -> Result<(), WireError> {
        let mut found = None;
        let mut others = Vec::new();
        loop {
            let (of, body) = self.hear().await?;
            match of {
                kind::SWITCH | kind::LIGHT => {
                    let it = Entity::decode(&*body)?;
                    let names = [it.object.as_str(), &it.name, &word(&it.name)];
                    match names.contains(&entity) {
                        true => found = Some((it.key, of == kind::LIGHT)),
                        false if others.len() < NAMED => others.push(it.name),
                        false => {}
                    }
                }
                kind::LISTED => break,
                _ => {}
            }
        }
        let found = found.ok_or_else(|| WireError::NoEntity(entity.into(), format!("{others:?}")));
        (self.key, self.is_light) = found?;
        Ok(())
    }

    async fn say(&mut self, kind: u16, message: &impl prost::Message) -> Result<(), WireError> {
        let frame = self.codec.encode(kind, message)?;
        Ok(self.stream.write_all(&frame).await?)
    }

    /// More of what comes. It may be dropped at any point.
    async fn read(&mut self) -> Result<(), WireError> {
        match self.stream.read_buf(&mut self.came).await? {
            0 => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            _ => Ok(()),
        }
    }

    /// The next message, but for those that keep the connection.
    async fn hear(&mut self) -> Result<Packet, WireError> {
        loop {
            let Some((of, body)) = self.codec.decode(&mut self.came)? else {
                self.read().await?;
                continue;
            };
            match of {
                kind::PING => self.say(kind::PONG, &()).await?,
                kind::DISCONNECT => {
                    self.say(kind::DISCONNECTED, &()).await?;
                    return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
                }
                kind::AUTHENTICATED if Authenticated::decode(&*body)?.is_wrong => {
                    return Err(WireError::Password);
                }
                _ => return Ok((of, body)),
            }
        }
    }

    /// The next state that it says of the entity.
    async fn state(&mut self) -> Result<bool, WireError> {
        let of_it = match self.is_light {
            true => kind::LIGHT_STATE,
            false => kind::SWITCH_STATE,
        };
        loop {
            let (of, body) = self.hear().await?;
            if of != of_it {
                continue;
            }
            let it = Relay::decode(&*body)?;
            if it.key == self.key {
                return Ok(it.is_on);
            }
        }
    }

    /// The state behind all that was said to it.
    async fn ask(&mut self) -> Result<bool, WireError> {
        self.say(kind::STATES, &()).await?;
        self.state().await
    }

    async fn set(&mut self, is_on: bool) -> Result<(), WireError> {
        let key = self.key;
        match self.is_light {
            true => {
                let light = SetLight {
                    key,
                    has_state: true,
                    is_on,
                };
                self.say(kind::SET_LIGHT, &light).await
            }
            false => self.say(kind::SET_SWITCH, &Relay { key, is_on }).await,
        }
    }
}

impl Esphome {
    /// A switch or a light of a device at this address, with its port, and the device's key if it has one.
    #[must_use]
    pub const fn new(address: String, entity: String, key: Option<[u8; 32]>) -> Self {
        Self {
            address,
            entity,
            key,
            session: None,
            was_on: None,
        }
    }

    /// The connection, taken out: who drops this ends it, so that nothing is heard that was said to another
    /// question.
    async fn session(&mut self) -> Result<Session, WireError> {
        match self.session.take() {
            Some(it) => Ok(it),
            None => Session::open(&self.address, self.key.as_ref(), &self.entity).await,
        }
    }

    async fn question(&mut self) -> Result<bool, WireError> {
        let mut session = self.session().await?;
        let is_on = session.ask().await?;
        self.session = Some(session);
        self.was_on = Some(is_on);
        Ok(is_on)
    }
}

impl Device for Esphome {
    fn lateness(&self) -> Span {
        LATENESS
    }

    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    async fn set(&mut self, state: &State, until: Instant) -> Outcome {
        let Some(is_on) = relay(state) else {
            return Outcome::Refused;
        };
        // Until something is sent, it can be tried again.
        let last = half_way(until, 4 * RETRY);
        let mut session = loop {
            // One that was kept may be dead: a question finds out.
            match timeout_at(last.into(), self.question()).await {
                // The host may have slept meanwhile.
                Ok(Ok(_)) if Instant::now() >= until => return Outcome::Refused,
                Ok(Ok(_)) => match self.session.take() {
                    Some(it) => break it,
                    None => return Outcome::Refused,
                },
                Ok(Err(_)) if Instant::now() < last => sleep(RETRY).await,
                Ok(Err(_)) | Err(_) => return Outcome::Refused,
            }
        };
        // What is known from before counts once: this may be dropped at any point from here on.
        let was_other = self.was_on.take() == Some(!is_on);
        let told = async {
            session.set(is_on).await?;
            let mut found = session.ask().await?;
            // A state that it said by itself may have been on its way.
            while found != is_on {
                found = session.state().await?;
            }
            Ok::<_, WireError>(session)
        };
        let half = half_way(until, Duration::MAX);
        if let Ok(Ok(session)) = timeout_at(half.into(), told).await {
            self.session = Some(session);
            self.was_on = Some(is_on);
            return Outcome::Done;
        }
        // It may have switched: it is asked as long as there is time. Only a change is proof, for what it
        // received may act later.
        while was_other && Instant::now() < until {
            if self.question().await.is_ok_and(|it| it == is_on) {
                return Outcome::Done;
            }
            self.was_on = None;
            sleep(RETRY).await;
        }
        Outcome::Unknown
    }

    async fn ask(&mut self) -> Option<State> {
        self.question().await.ok().map(shown)
    }

    async fn hear(&mut self) -> Heard {
        let Some(session) = &mut self.session else {
            // The next look connects.
            return core::future::pending().await;
        };
        match session.state().await {
            Ok(is_on) => {
                self.was_on = Some(is_on);
                Heard::State(shown(is_on))
            }
            Err(_) => {
                self.session = None;
                Heard::Gone
            }
        }
    }
}
