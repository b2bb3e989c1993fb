//! An agent that gives prepared answers, and records requests.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::Response;
use futures_util::stream::poll_fn;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// A hold that is extended: held for longer than any test takes.
const EXTENDED: &str = concat!(
    r#"{"hold":"00ff","kind":"lock","name":"l","token":null,"session":"s1","#,
    r#""ttl_ms":86400000,"is_held":true,"alive_for_ms":75600000}"#
);

/// The events of a stream; without them it ends.
pub(crate) type Sender = mpsc::UnboundedSender<io::Result<String>>;

pub(crate) struct Fake {
    pub(crate) address: String,
    shared: Arc<Mutex<Shared>>,
    _serves: JoinSet<()>,
}

struct Shared {
    answers: VecDeque<Response>,
    requests: VecDeque<String>,
    /// The answer to each request to extend a hold; without one, none comes.
    extends: watch::Sender<Option<(u16, String)>>,
    extended: Vec<String>,
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

    /// Answers each request to extend a hold, from now on and also open ones; `None`: no answer comes.
    pub(crate) fn extends(&self, answer: Option<(u16, &str)>) {
        let answer = answer.map(|(status, body)| (status, body.to_owned()));
        self.shared.lock().unwrap().extends.send_replace(answer);
    }

    /// The targets of the requests to extend a hold.
    pub(crate) fn extended(&self) -> Vec<String> {
        self.shared.lock().unwrap().extended.clone()
    }

    /// The oldest other request that was not returned before: its method, target and body.
    pub(crate) fn request(&self) -> String {
        let request = self.shared.lock().unwrap().requests.pop_front();
        request.expect("a request")
    }
}

fn router() -> (Arc<Mutex<Shared>>, Router) {
    let held = (200, EXTENDED.to_owned());
    let shared = Arc::new(Mutex::new(Shared {
        answers: VecDeque::new(),
        requests: VecDeque::new(),
        extends: watch::Sender::new(Some(held)),
        extended: Vec::new(),
    }));
    let router = Router::new().fallback(answer).with_state(shared.clone());
    (shared, router)
}

/// Answers a request to extend a hold.
async fn extend(shared: &Mutex<Shared>, target: String) -> Response {
    let mut answers = {
        let mut shared = shared.lock().unwrap();
        shared.extended.push(target);
        shared.extends.subscribe()
    };
    let answer = answers.wait_for(Option::is_some).await.unwrap().clone();
    let (status, body) = answer.unwrap();
    let answer = Response::builder().status(status);
    answer.body(Body::from(body)).unwrap()
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    if head.method == Method::PUT && head.uri.path().starts_with("/v1/holds/") {
        return extend(&shared, head.uri.to_string()).await;
    }
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
