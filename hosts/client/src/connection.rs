//! A connection for one request, and the bytes of its answer.

use std::fmt::{self, Debug};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::HeaderMap;
use hyper::rt::{Read, Write};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::{Agent, Error};

/// The longest head of an answer, in bytes.
const HEAD: usize = 1 << 16;

/// The address of an agent.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A name or an address, with a port.
    Tcp(String),
    /// The path of a socket.
    Unix(String),
}

/// An answer after its head has arrived. The connection is closed when it is dropped.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// The task that moves the bytes, aborted on drop.
    _connection: JoinSet<()>,
}

impl Place {
    pub(crate) fn parse(address: &str) -> Result<Self, Error> {
        let wrong = || Error::Address(address.to_owned());
        if let Some(path) = address.strip_prefix("unix:") {
            let is_path = !path.is_empty();
            return is_path
                .then(|| Self::Unix(path.to_owned()))
                .ok_or_else(wrong);
        }
        let rest = address.strip_prefix("http://").ok_or_else(wrong)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        let is_host = !host.is_empty() && !host.contains(['/', '@', '?', '#']);
        if !is_host
            || port.parse::<u16>().is_err()
            || authority.parse::<hyper::http::uri::Authority>().is_err()
        {
            return Err(wrong());
        }
        Ok(Self::Tcp(authority.to_owned()))
    }

    /// The value of the header `host`.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Tcp(authority) => authority,
            Self::Unix(_) => "localhost",
        }
    }

    /// Sends a request, and waits for the head of its answer.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        let unreachable = |source| Error::Unreachable {
            address: self.to_string(),
            source,
        };
        match self {
            Self::Tcp(authority) => {
                let stream = TcpStream::connect(authority).await.map_err(unreachable)?;
                converse(TokioIo::new(stream), request).await
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).await.map_err(unreachable)?;
                converse(TokioIo::new(stream), request).await
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(authority) => write!(f, "http://{authority}"),
            Self::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

async fn converse(
    stream: impl Read + Write + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, Error> {
    let mut builder = http1::Builder::new();
    let shaken = builder.max_buf_size(HEAD).handshake(stream).await;
    let (mut sender, connection) = shaken.map_err(Error::lost)?;
    let mut moves = JoinSet::new();
    moves.spawn(async move {
        // The answer has the same error.
        connection.await.ok();
    });
    let answer = sender.send_request(request).await.map_err(of_hyper)?;
    let (head, body) = answer.into_parts();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body,
        _connection: moves,
    })
}

/// Bytes that are invalid in HTTP are a misbehaviour, and all else is a connection that ended.
fn of_hyper(error: hyper::Error) -> Error {
    match error.is_parse() {
        true => Error::Misbehaviour(format!("the answer is invalid HTTP ({error})")),
        false => Error::lost(error),
    }
}

impl Answer {
    /// The next bytes; `None` at the end.
    pub(crate) async fn bytes(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                // Else a trailer.
                Some(frame) => {
                    if let Ok(data) = frame.map_err(of_hyper)?.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All bytes.
    pub(crate) async fn collect(mut self) -> Result<Vec<u8>, Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.bytes().await? {
            if all.len() + bytes.len() > Agent::LONGEST {
                return Err(Error::TooLong(Agent::LONGEST));
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }
}

impl Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
