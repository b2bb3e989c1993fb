//! An agent that gives prepared answers, and records requests.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use futures_util::stream::poll_fn;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The events of a stream; without them it ends.
pub(crate) type Sender = mpsc::UnboundedSender<io::Result<String>>;

pub(crate) struct Fake {
    pub(crate) address: String,
    shared: Arc<Mutex<Shared>>,
    _serves: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    answers: VecDeque<Response>,
    requests: VecDeque<String>,
}

impl Fake {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (shared, router) = router();
        let mut serves = JoinSet::new();
        serves.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            shared,
            _serves: serves,
        }
    }

    /// At a socket of this path.
    pub(crate) fn at(path: &str) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (shared, router) = router();
        let mut serves = JoinSet::new();
        serves.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address: format!("unix:{path}"),
            shared,
            _serves: serves,
        }
    }

    /// Answers the next request.
    pub(crate) fn answers(&self, status: u16, body: impl Into<Body>) {
        self.answers_with(status, "selvedge-version", "7", body.into());
    }

    /// Answers the next request with a stream of events.
    pub(crate) fn streams(&self) -> Sender {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let events = Body::from_stream(poll_fn(move |cx| receiver.poll_recv(cx)));
        self.answers_with(200, "content-type", "text/event-stream", events);
        sender
    }

    fn answers_with(&self, status: u16, header: &str, value: &str, body: Body) {
        let answer = Response::builder().status(status).header(header, value);
        let answer = answer.body(body).unwrap();
        self.shared.lock().unwrap().answers.push_back(answer);
    }

    /// The oldest request that was not returned before: its method, target and body.
    pub(crate) fn request(&self) -> String {
        let request = self.shared.lock().unwrap().requests.pop_front();
        request.expect("a request")
    }
}

fn router() -> (Arc<Mutex<Shared>>, Router) {
    let shared = Arc::<Mutex<Shared>>::default();
    let router = Router::new().fallback(answer).with_state(shared.clone());
    (shared, router)
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let mut line = format!("{} {}", head.method, head.uri);
    for part in [
        head.headers
            .get("authorization")
            .map_or(&b""[..], |it| it.as_bytes()),
        &body,
    ] {
        if !part.is_empty() {
            line = format!("{line} {}", String::from_utf8_lossy(part));
        }
    }
    let mut shared = shared.lock().unwrap();
    shared.requests.push_back(line);
    shared.answers.pop_front().expect("a prepared answer")
}
