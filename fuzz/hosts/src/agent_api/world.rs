//! An agent without a network, in virtual time.

use core::fmt;
use core::net::SocketAddr;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;

use axum::Router;
use axum::body::Body;
use axum::http;
use futures_util::StreamExt as _;
use selvedge_agent::api::{self, Api};
use selvedge_agent::config::Settings;
use selvedge_agent::growth::Founders;
use selvedge_agent::run;
use selvedge_http::{Access, Page};
use selvedge_udp::Host;
use selvedge_udp::transport::{Datagrams, Transport};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt as _;

use super::input::{READERS, Request, TOKEN};

/// The settings of an agent that holds all maps by itself. Its period is long: its timers are the work of a wait.
const SETTINGS: &str = r#"
    id = 1
    listen = "127.0.0.1:7001"
    plain = true
    forgets = true
    founders = [1]
    failures = 0
    period = 60000
"#;
/// The time for which a stream of events is read.
const READS: Duration = Duration::from_secs(3);
/// The time between two inputs, in which holds with a short time to live end.
const SETTLES: Duration = Duration::from_secs(30);

/// An agent, and the streams that clients have open.
pub(super) struct World {
    runtime: Runtime,
    api: Api,
    /// Without a token, and with two.
    routers: [Router; 2],
    streams: Vec<axum::body::BodyDataStream>,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
    /// The virtual time until its head was here.
    pub(super) took: Duration,
}

impl World {
    pub(super) fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.unwrap_or_else(|it| panic!("no runtime: {it}"));
        let (api, page) = runtime.block_on(agent());
        let access = Access {
            token: TOKEN.parse().ok(),
            readers: READERS.parse().ok(),
        };
        let router = api::router(api.clone(), page.clone());
        let routers = [
            api::guarded(router.clone(), Access::default(), &page),
            api::guarded(router, access, &page),
        ];
        Self {
            runtime,
            api,
            routers,
            streams: Vec::new(),
        }
    }

    /// Returns true if the agent has left the mesh, so that it answers no longer.
    pub(super) fn has_left(&self) -> bool {
        self.api.is_leaving()
    }

    /// The answer to a request; `None` if HTTP has no form for it.
    pub(super) fn ask(&mut self, request: &Request) -> Option<Answer> {
        let http = request.http()?;
        let [open, closed] = &self.routers;
        let router = if request.needs_token { closed } else { open };
        let (answer, stream) = self.runtime.block_on(answer(router.clone(), http));
        self.streams.extend(stream.filter(|_| request.stays_open));
        Some(answer)
    }

    /// Closes all streams, and lets some time pass.
    pub(super) fn settle(&mut self) {
        self.streams.clear();
        self.runtime.block_on(async { sleep(SETTLES).await });
    }
}

async fn agent() -> (Api, Page) {
    let settings = Settings::parse(SETTINGS).unwrap_or_else(|it| panic!("the settings: {it}"));
    let founders = Founders::new(&settings.founders, 0);
    let setup = run::setup(&settings, &founders).await;
    let setup = setup.unwrap_or_else(|it| panic!("the setup: {it}"));
    let node = Host::start(setup.transport(Nowhere).random_seed(7)).await;
    let node = node.unwrap_or_else(|it| panic!("the node: {it}"));
    let page = Page::new("<!doctype html>").unwrap_or_else(|it| panic!("{it}"));
    (Api::new(Box::leak(Box::new(node)), founders), page)
}

/// Reads an answer: all of it, or the beginning of a stream, which may stay open.
async fn answer(
    router: Router,
    request: http::Request<Body>,
) -> (Answer, Option<axum::body::BodyDataStream>) {
    #[allow(clippy::disallowed_methods, reason = "the time is virtual")]
    let asked = Instant::now();
    // A router has no errors.
    let Ok(response) = router.oneshot(request).await;
    let took = asked.elapsed();
    let status = response.status().as_u16();
    let content_type = response.headers().get("content-type");
    let content_type = content_type.and_then(|it| it.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let mut stream = response.into_body().into_data_stream();
    let mut body = Vec::new();
    let read = async {
        while let Some(bytes) = stream.next().await {
            let bytes = bytes.unwrap_or_else(|it| panic!("the answer broke off: {it}"));
            body.extend_from_slice(&bytes);
        }
    };
    let is_open = timeout(READS, read).await.is_err();
    let is_stream = content_type == "text/event-stream";
    assert!(is_stream || !is_open, "an answer without an end");
    let answer = Answer {
        status,
        content_type,
        body,
        took,
    };
    (answer, is_open.then_some(stream))
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().take(300).collect();
        let Self {
            status,
            content_type,
            took,
            ..
        } = self;
        write!(f, "{status} {content_type:?} after {took:?}: {text:?}")
    }
}

/// A network without other nodes: it sends to none, and receives nothing.
#[derive(Debug)]
struct Nowhere;

#[derive(Debug)]
struct Socket(SocketAddr);

impl Transport for Nowhere {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        Ok(Box::new(Socket(listen)))
    }
}

impl Datagrams for Socket {
    fn local(&self) -> SocketAddr {
        self.0
    }

    fn reaches(&self, _: SocketAddr) -> bool {
        true
    }

    fn poll_recv(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        Poll::Pending
    }

    fn try_recv(&mut self, _: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        datagram: &[u8],
        _: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(datagram.len()))
    }
}
