//! Serves a router behind its guard.

#[cfg(test)]
mod tests;

use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::net::TcpListener;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::accept;
use crate::guard::{self, Access, Refused, Token};
use crate::page::Page;
use crate::patience::Patience;

/// The most connections at a time; others wait.
const CONNECTIONS: usize = 64;
/// The longest time until the head of a request has arrived.
const HEAD: Duration = Duration::from_secs(10);
/// The longest time for which a client of a page may send and read nothing.
pub const IDLE: Duration = Duration::from_secs(30);
/// The most bytes in the head of a request.
const HEAD_MAX: usize = 16 * 1024;

/// The reason why a server does not open.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// All clients could read it.
    #[error(
        "the page at {0} could be read by all: choose a loopback address, as in 127.0.0.1:8080, or a token"
    )]
    Open(SocketAddr),
    /// It does not listen.
    #[error("cannot serve the page at {listen}: {source}: choose another address")]
    Listen {
        /// The address that it should have.
        listen: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A thread does not start.
    #[error("cannot start a thread for the page: {0}: see how many this process may have")]
    Thread(#[source] io::Error),
}

/// An address at which a page is served, and its readers' secret.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    listens: SocketAddr,
    token: Option<Token>,
}

impl Server {
    /// Listens there. Connections wait until it is [open](Self::open).
    ///
    /// # Errors
    /// If there is no token and the address is no loopback address, or it cannot listen there.
    pub fn new(listen: SocketAddr, token: Option<Token>) -> Result<Self, ServerError> {
        if token.is_none() && !listen.ip().is_loopback() {
            return Err(ServerError::Open(listen));
        }
        let failed = |source| ServerError::Listen { listen, source };
        let listener = accept::bind(listen).map_err(failed)?;
        let listens = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            listens,
            token,
        })
    }

    /// The address, with the actual port if the given one was 0.
    #[must_use]
    pub const fn listens(&self) -> SocketAddr {
        self.listens
    }

    /// The socket, for a server that is opened in another way.
    #[must_use]
    pub fn into_listener(self) -> TcpListener {
        self.listener
    }

    /// Serves this router on a thread of this name until the process ends.
    ///
    /// # Errors
    /// When the thread does not start.
    pub fn open(self, name: &str, router: Router, page: &Page) -> Result<(), ServerError> {
        let router = guarded(router, self.token, page);
        let converse = move |stream| converse(stream, router.clone(), IDLE);
        accept::start(name, self.listener, CONNECTIONS, converse).map_err(ServerError::Thread)
    }
}

/// A router behind its guard: for a server, and for tests without one.
pub fn guarded(router: Router, access: impl Into<Access>, page: &Page) -> Router {
    guarded_with(router, access, page, Refused::into_response)
}

/// The same, for a server that writes the guard's refusals in a form of its own.
pub fn guarded_with(
    router: Router,
    access: impl Into<Access>,
    page: &Page,
    write: fn(Refused) -> Response,
) -> Router {
    let state = Guard {
        access: access.into(),
        page: page.clone(),
        write,
    };
    router.layer(middleware::from_fn_with_state(state, guard))
}

#[derive(Clone)]
struct Guard {
    access: Access,
    page: Page,
    write: fn(Refused) -> Response,
}

/// Refuses requests that may not be answered, and marks all answers.
async fn guard(State(state): State<Guard>, request: Request, next: Next) -> Response {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let refused = guard::refusal(&state.access, method, uri, headers);
    let mut response = match refused {
        Some(refused) => refused.response(state.write),
        None => next.run(request).await,
    };
    state.page.mark(response.headers_mut());
    response
}

/// Serves a connection until it ends, or its client has sent and read nothing for this time.
pub async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    router: Router,
    idle: Duration,
) {
    converse_as((), stream, router, idle).await;
}

/// Does as [`converse`]. Each request has `client` among its extensions.
pub async fn converse_as<C: Clone + Send + Sync + 'static>(
    client: C,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    router: Router,
    idle: Duration,
) {
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(client.clone());
        service.call(request)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(Patience::new(stream, idle)), service);
    // A broken connection is the client's concern.
    connection.await.ok();
}
