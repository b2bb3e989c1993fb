//! The front of the broker inside: it adds TLS, and turns kept sessions off.
//!
//! The broker has TLS of its own, and greets one client after the other: a client that connects and sends
//! nothing keeps all others out. And it keeps messages of any quality of service for a client that is away,
//! if that client has asked for a kept session.

use core::net::SocketAddr;
use core::time::Duration;
use std::io;

use selvedge_http::accept;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, split};
use tokio::net::TcpStream;
use tokio::time::timeout;
#[cfg(feature = "tls")]
use tokio_rustls::TlsAcceptor;

/// The largest number of connections at a time; others wait.
const CONNECTIONS: usize = 4_096;
/// The time that a client has for its greeting, or for closing.
const GREETING: Duration = Duration::from_secs(5);
/// The first packet of a client.
const CONNECT: u8 = 0x10;
/// The longest name of a protocol: the name of MQTT 3.1.
const NAME_MAX: usize = 6;
/// The flag of a session that is not kept.
pub(crate) const CLEAN: u8 = 2;

/// The handling of new connections.
#[derive(Clone)]
pub(crate) struct Front {
    /// The address of the broker.
    pub(crate) inside: SocketAddr,
    /// The certificate for clients; without it, connections are not encrypted.
    #[cfg(feature = "tls")]
    pub(crate) acceptor: Option<TlsAcceptor>,
    /// True if the broker keeps a session for a client that wants it.
    pub(crate) keeps_sessions: bool,
}

impl Front {
    /// Listens here until the process ends, and hands connections on.
    ///
    /// # Errors
    /// If it cannot listen.
    pub(crate) fn open(self, listen: SocketAddr) -> io::Result<()> {
        let listener = accept::bind(listen)?;
        accept::start("front", listener, CONNECTIONS, move |stream| {
            let front = self.clone();
            async move {
                // An error of a connection concerns its client alone.
                front.take(stream).await.ok();
            }
        })
    }

    async fn take(self, stream: TcpStream) -> io::Result<()> {
        // Each packet waits for an answer.
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(acceptor) = &self.acceptor {
            let outer = timeout(GREETING, acceptor.accept(stream)).await??;
            return self.hand_on(outer).await;
        }
        self.hand_on(stream).await
    }

    /// Passes bytes in both directions until either side ends.
    async fn hand_on(self, outer: impl AsyncRead + AsyncWrite) -> io::Result<()> {
        let (mut from_client, mut to_client) = split(outer);
        let greeting = match self.keeps_sessions {
            true => Vec::new(),
            false => timeout(GREETING, begin_again(&mut from_client)).await??,
        };
        let mut inner = TcpStream::connect(self.inside).await?;
        inner.set_nodelay(true)?;
        inner.write_all(&greeting).await?;
        let (mut from_broker, mut to_broker) = split(inner);
        let ended = tokio::select! {
            ended = copy(&mut from_client, &mut to_broker) => ended,
            ended = copy(&mut from_broker, &mut to_client) => ended,
        };
        timeout(GREETING, to_client.shutdown()).await??;
        ended.map(drop)
    }
}

/// The beginning of a client's first packet, with the flag of a clean session set.
pub(crate) async fn begin_again(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut begin = vec![from.read_u8().await?];
    // The length has up to four bytes.
    while begin.len() < 5 {
        let byte = from.read_u8().await?;
        begin.push(byte);
        if byte & 0x80 == 0 {
            break;
        }
    }
    let len = from.read_u16().await?;
    let is_wrong = begin.first() != Some(&CONNECT) || usize::from(len) > NAME_MAX;
    if is_wrong {
        return Err(io::ErrorKind::InvalidData.into());
    }
    begin.extend(len.to_be_bytes());
    // The name and the version of the protocol.
    for _ in 0..=len {
        begin.push(from.read_u8().await?);
    }
    begin.push(from.read_u8().await? | CLEAN);
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(mut packet: &[u8]) -> io::Result<(Vec<u8>, usize)> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let begin = runtime.unwrap().block_on(begin_again(&mut packet))?;
        Ok((begin, packet.len()))
    }

    #[test]
    fn a_client_that_wants_a_session_begins_anew() {
        // Flags: a name, a password and a session that is kept.
        let packet = b"\x10\x8e\x01\0\x04MQTT\x04\xc0\0\x3c\0\x02me";
        let (begin, left) = begun(packet).unwrap();
        assert_eq!(begin, b"\x10\x8e\x01\0\x04MQTT\x04\xc2");
        assert_eq!(left, 6, "the rest is handed on as it is");
        let (begin, _) = begun(b"\x10\x10\0\x06MQIsdp\x03\x02\0\x3c").unwrap();
        assert_eq!(begin, b"\x10\x10\0\x06MQIsdp\x03\x02");
    }

    #[test]
    fn what_is_no_greeting_is_not_handed_on() {
        for packet in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"\x10\x10\xff\xffMQTT\x04\x02",
            b"\x10\xff\xff\xff\xff\xff\x04MQTT",
            b"\x10\x10\0\x04MQ",
            b"",
        ] {
            assert!(begun(packet).is_err(), "{packet:?}");
        }
    }
}
