//! A connection to an ESPHome device, past its greeting.

use std::io;

use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::wire::{Authenticated, Codec, Entity, Hello, Packet, Relay, SetLight, WireError, kind};

/// The number of other entities that an error names, and the number of letters of each.
const NAMED: usize = 20;
const LETTERS: usize = 64;

#[derive(Debug)]
pub(super) struct Session<S = TcpStream> {
    stream: S,
    codec: Codec,
    came: Vec<u8>,
    /// The bytes that are not written yet.
    out: Vec<u8>,
    key: u32,
    is_light: bool,
}

/// A name as one word, as ESPHome forms it.
fn word(name: &str) -> String {
    let one = |it: char| match it {
        ' ' => '_',
        it if it.is_ascii_alphanumeric() || it == '-' || it == '_' => it.to_ascii_lowercase(),
        _ => '_',
    };
    name.chars().map(one).collect()
}

fn ended() -> WireError {
    io::Error::from(io::ErrorKind::UnexpectedEof).into()
}

impl Session {
    /// Connects and finds the entity; returns its state, too.
    pub(super) async fn open(
        address: &str,
        key: Option<&[u8; 32]>,
        entity: &str,
    ) -> Result<(Self, bool), WireError> {
        let stream = TcpStream::connect(address).await?;
        // Each message waits for its answer.
        stream.set_nodelay(true)?;
        // Bytes that the device has not received when this is given up, or the process is killed, are not
        // sent.
        stream.set_zero_linger()?;
        let mut it = Self::begin(stream, key, entity).await?;
        let is_on = it.ask().await?;
        Ok((it, is_on))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    pub(super) async fn begin(
        stream: S,
        key: Option<&[u8; 32]>,
        entity: &str,
    ) -> Result<Self, WireError> {
        let (codec, out) = Codec::new(key)?;
        let mut it = Self {
            stream,
            codec,
            came: Vec::new(),
            out,
            key: 0,
            is_light: false,
        };
        it.flush().await?;
        while !it.codec.is_ready() {
            // The first message that it returns comes after the greeting.
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
        // Older devices expect an empty password, and newer ones ignore it.
        it.say(kind::AUTHENTICATE, &()).await?;
        it.say(kind::LIST, &()).await?;
        it.find(entity).await?;
        Ok(it)
    }

    /// Finds the entity in the device's list.
    async fn find(&mut self, entity: &str) -> Result<(), WireError> {
        let mut found = None;
        let (mut others, mut more) = (Vec::new(), 0_usize);
        loop {
            let (of, body) = self.receive().await?;
            match of {
                kind::SWITCH | kind::LIGHT => {
                    let it = Entity::decode(&*body)?;
                    let names = [it.object.as_str(), &it.name, &word(&it.name)];
                    match names.contains(&entity) {
                        true => found = Some((it.key, of == kind::LIGHT)),
                        false if others.len() < NAMED => {
                            others.push(it.name.chars().take(LETTERS).collect::<String>());
                        }
                        false => more += 1,
                    }
                }
                kind::LISTED => break,
                _ => {}
            }
        }
        let found = found.ok_or_else(|| {
            let mut all = format!("{others:?}");
            if more > 0 {
                all += &format!(" and {more} more");
            }
            WireError::NoEntity(entity.into(), all)
        });
        (self.key, self.is_light) = found?;
        Ok(())
    }

    /// Appends a message to the bytes to be written.
    fn put(&mut self, kind: u16, message: &impl prost::Message) -> Result<(), WireError> {
        self.out.extend(self.codec.encode(kind, message)?);
        Ok(())
    }

    /// Writes the waiting bytes. The future may be dropped at any point: the rest is written later.
    async fn flush(&mut self) -> Result<(), WireError> {
        while !self.out.is_empty() {
            match self.stream.write(&self.out).await? {
                0 => return Err(ended()),
                written => drop(self.out.drain(..written)),
            }
        }
        Ok(())
    }

    async fn say(&mut self, kind: u16, message: &impl prost::Message) -> Result<(), WireError> {
        self.put(kind, message)?;
        self.flush().await
    }

    /// Reads more bytes. The future may be dropped at any point.
    async fn read(&mut self) -> Result<(), WireError> {
        match self.stream.read_buf(&mut self.came).await? {
            0 => Err(ended()),
            _ => Ok(()),
        }
    }

    /// The next message; answers messages that only maintain the connection. The future may be dropped at any
    /// point.
    async fn receive(&mut self) -> Result<Packet, WireError> {
        loop {
            self.flush().await?;
            let Some((of, body)) = self.codec.decode(&mut self.came)? else {
                self.read().await?;
                continue;
            };
            match of {
                kind::PING => self.put(kind::PONG, &())?,
                kind::DISCONNECT => {
                    self.say(kind::DISCONNECTED, &()).await?;
                    return Err(ended());
                }
                kind::AUTHENTICATED if Authenticated::decode(&*body)?.is_wrong => {
                    return Err(WireError::Password);
                }
                _ => return Ok((of, body)),
            }
        }
    }

    /// The next state of the entity that the device reports. The future may be dropped at any point.
    pub(super) async fn state(&mut self) -> Result<bool, WireError> {
        let of_it = match self.is_light {
            true => kind::LIGHT_STATE,
            false => kind::SWITCH_STATE,
        };
        loop {
            let (of, body) = self.receive().await?;
            if of != of_it {
                continue;
            }
            let it = Relay::decode(&*body)?;
            if it.key == self.key {
                return Ok(it.is_on);
            }
        }
    }

    /// The state after all messages that were sent to the device. A device handles one message after the
    /// other: states that it reports before it answers the ping may be older.
    pub(super) async fn ask(&mut self) -> Result<bool, WireError> {
        self.put(kind::PING, &())?;
        self.say(kind::STATES, &()).await?;
        while self.receive().await?.0 != kind::PONG {}
        self.state().await
    }

    pub(super) async fn set(&mut self, is_on: bool) -> Result<(), WireError> {
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

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use tokio::io::{DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    const PING: [u8; 3] = [0, 0, kind::PING as u8];
    const PONG: [u8; 3] = [0, 0, kind::PONG as u8];

    fn session(stream: DuplexStream) -> Session<DuplexStream> {
        Session {
            stream,
            codec: Codec::Clear,
            came: Vec::new(),
            out: Vec::new(),
            key: 7,
            is_light: false,
        }
    }

    #[test]
    fn a_name_is_one_word_of_letters_and_digits() {
        assert_eq!(word("Living-Room Lamp_2"), "living-room_lamp_2");
        assert_eq!(word("K\u{fc}che (l./r.)"), "k_che__l__r__");
    }

    #[tokio::test]
    async fn a_device_that_wants_to_end_is_told_that_it_may_and_is_gone() {
        let (ours, mut theirs) = duplex(64);
        let mut session = session(ours);
        theirs
            .write_all(&[0, 0, kind::DISCONNECT as u8])
            .await
            .unwrap();
        let moment = Duration::from_millis(300);
        let received = timeout(moment, session.receive()).await;
        assert!(
            matches!(received, Ok(Err(WireError::Connection(_)))),
            "{received:?}"
        );
        let mut answer = [0; 3];
        timeout(moment, theirs.read_exact(&mut answer))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer, [0, 0, kind::DISCONNECTED as u8]);
    }

    #[tokio::test]
    async fn that_a_password_is_wanted_is_told() {
        let (ours, mut theirs) = duplex(64);
        let mut session = session(ours);
        let wrong = [0, 2, kind::AUTHENTICATED as u8, 8, 1];
        theirs.write_all(&wrong).await.unwrap();
        let received = timeout(Duration::from_millis(300), session.receive()).await;
        assert!(
            matches!(received, Ok(Err(WireError::Password))),
            "{received:?}"
        );
    }

    #[tokio::test]
    async fn all_states_that_come_before_the_answer_to_a_ping_are_passed_over() {
        let (ours, mut theirs) = duplex(256);
        let mut session = session(ours);
        let state = |is_on| {
            let mut codec = Codec::Clear;
            codec
                .encode(kind::SWITCH_STATE, &Relay { key: 7, is_on })
                .unwrap()
        };
        for of in [state(true), state(true), PONG.into(), state(false)] {
            theirs.write_all(&of).await.unwrap();
        }
        let asked = timeout(Duration::from_millis(300), session.ask()).await;
        assert!(matches!(asked, Ok(Ok(false))), "{asked:?}");
    }

    #[tokio::test]
    async fn an_answer_that_is_half_written_when_nobody_listens_any_more_is_written_in_whole() {
        // It takes two bytes at a time.
        let (ours, theirs) = duplex(2);
        let mut session = session(ours);
        let (mut reads, mut writes) = tokio::io::split(theirs);
        tokio::spawn(async move { writes.write_all(&[PING, PING].concat()).await });
        let moment = Duration::from_millis(300);
        // The caller turns to another task before the answer is written.
        assert!(timeout(moment, session.receive()).await.is_err());
        let mut answers = [0; 6];
        let received = timeout(moment, session.receive());
        let read = timeout(moment, reads.read_exact(&mut answers));
        let (received, read) = tokio::join!(received, read);
        assert!(received.is_err() && read.is_ok());
        assert_eq!(answers, [PONG, PONG].concat()[..]);
    }
}
