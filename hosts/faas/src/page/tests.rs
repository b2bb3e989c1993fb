//! Tests of requests, without a gateway: the tests set the view.

use core::time::Duration;

use axum::Router;
use selvedge_http::{IDLE, Json, LISTENERS, converse, guarded};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{page, router};

const TOKEN: &str = "a-token_that.is~long";

struct Service {
    notify: watch::Sender<Json>,
    router: Router,
}

impl Service {
    fn new(token: Option<&str>) -> Self {
        let (notify, notified) = watch::channel(r#"{"version":1}"#.into());
        let token = token.map(|it| it.parse().unwrap());
        let page = page().unwrap();
        let router = guarded(router(notified, page.clone()), token, &page);
        Self { notify, router }
    }

    /// A connection whose client accepts `room` bytes before it reads.
    fn connect(&self, room: usize) -> (DuplexStream, JoinHandle<()>) {
        let (here, there) = duplex(room);
        (
            here,
            tokio::spawn(converse(there, self.router.clone(), IDLE)),
        )
    }

    /// The answer to a request, as it is on the wire.
    async fn ask(&self, request: &[u8]) -> String {
        let (mut here, serving) = self.connect(1 << 20);
        here.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        here.read_to_end(&mut answer).await.unwrap();
        serving.await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    async fn get(&self, path: &str, headers: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
        self.ask(request.as_bytes()).await
    }
}

/// Reads until the text ends with `end`.
async fn read_until(stream: &mut DuplexStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(text).unwrap()
}

const LOCAL: &str = "host: 127.0.0.1:8080\r\n";
const LISTEN: &[u8] = b"GET /api/events HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn the_page_and_what_is_known_are_served() {
    let service = Service::new(None);
    let page = service.get("/", LOCAL).await;
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("content-type: text/html; charset=utf-8\r\n"));
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    let nonce = head.split_once("script-src 'nonce-").unwrap().1;
    let nonce = nonce.split_once('\'').unwrap().0;
    assert_eq!(nonce.len(), 32);
    assert_eq!(body.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!body.contains("NONCE"));
    // It loads nothing, and makes no markup of the data.
    for foreign in [
        "http:",
        "https:",
        "@import",
        "innerHTML",
        "insertAdjacentHTML",
        "document.write",
    ] {
        assert!(!body.contains(foreign), "{foreign}");
    }
    let status = service.get("/api/status", "").await;
    assert!(
        status.contains("content-type: application/json\r\n"),
        "{status}"
    );
    assert!(status.ends_with("\r\n\r\n{\"version\":1}"), "{status}");
    for header in [
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
    ] {
        assert!(status.contains(header), "{status}");
    }
}

#[tokio::test]
async fn requests_that_are_wrong_are_told_what_is_wrong() {
    let service = Service::new(None);
    let long = format!("/{}", "x".repeat(4_096));
    for (request, status, text) in [
        ("GET /nothing".into(), 404, "there are /, /api/status"),
        ("GET /api/status/".into(), 404, "there are /, /api/status"),
        (
            "GET /../../etc/passwd".into(),
            404,
            "there are /, /api/status",
        ),
        ("POST /".into(), 405, "ask with GET"),
        ("DELETE /api/events".into(), 405, "ask with GET"),
        (format!("GET {long}"), 414, "has 4097 bytes, 4096 are read"),
    ] {
        let whole = format!("{request} HTTP/1.1\r\n{LOCAL}connection: close\r\n\r\n");
        let answer = service.ask(whole.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
        assert!(answer.contains(text), "{request}: {answer}");
        assert_eq!(
            answer.contains("allow: GET, HEAD"),
            status == 405,
            "{answer}"
        );
    }
    let endless = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101));
    for (request, status) in [("nonsense\r\n\r\n", 400), (&endless, 431), (&many, 431)] {
        let (mut here, serving) = service.connect(1 << 20);
        here.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        here.read_to_string(&mut answer).await.unwrap();
        serving.await.unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn without_a_token_a_name_that_leads_here_is_refused() {
    let service = Service::new(None);
    for (host, status) in [
        ("127.0.0.1:8080", 200),
        ("127.9.9.9", 200),
        ("localhost:8080", 200),
        ("LOCALHOST", 200),
        ("[::1]:8080", 200),
        ("attacker.example:8080", 403),
        ("127.0.0.1.attacker.example", 403),
        ("192.168.1.7:8080", 403),
        ("localhost:x", 403),
        ("", 403),
    ] {
        let answer = service
            .get("/api/status", &format!("host: {host}\r\n"))
            .await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{host}: {answer}"
        );
    }
}

#[tokio::test]
async fn with_a_token_nothing_is_told_without_it() {
    let service = Service::new(Some(TOKEN));
    let right = format!("authorization: Bearer {TOKEN}\r\n");
    let wrong = format!("authorization: Bearer {TOKEN}x\r\n");
    let basic = format!("authorization: Basic {TOKEN}\r\n");
    for path in ["/", "/api/status", "/nothing"] {
        let found = if path == "/nothing" { 404 } else { 200 };
        let with = |token: &str| format!("{path}?a=b&token={token}");
        for (path, headers, status) in [
            (path.into(), "", 401),
            (path.into(), wrong.as_str(), 401),
            (path.into(), basic.as_str(), 401),
            (path.into(), right.as_str(), found),
            (with(TOKEN), "", found),
            (with(""), "", 401),
            (with("a-token_that.is~lonh"), "", 401),
            // The header takes precedence.
            (with(TOKEN), wrong.as_str(), 401),
        ] {
            let answer = service
                .get(&path, &format!("host: gateway.example\r\n{headers}"))
                .await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status} ")),
                "{path}: {answer}"
            );
            assert_eq!(answer.contains("www-authenticate: Bearer"), status == 401);
        }
    }
}

#[tokio::test]
async fn a_listener_is_told_what_is_known_now_and_what_comes() {
    let service = Service::new(None);
    let (mut here, _serving) = service.connect(1 << 20);
    here.write_all(LISTEN).await.unwrap();
    let first = read_until(&mut here, "\n\n").await;
    assert!(first.contains("content-type: text/event-stream"), "{first}");
    assert!(
        first.ends_with("retry: 2000\ndata: {\"version\":1}\n\n"),
        "{first}"
    );
    service.notify.send_replace(r#"{"version":2}"#.into());
    let second = read_until(&mut here, "\n\n").await;
    assert!(
        second.ends_with("\r\ndata: {\"version\":2}\n\n"),
        "{second}"
    );
}

#[tokio::test]
async fn there_is_a_bound_to_listeners_and_one_that_goes_makes_room() {
    let service = Service::new(None);
    let mut listeners = Vec::new();
    for _ in 0..LISTENERS {
        let (mut here, serving) = service.connect(1 << 20);
        here.write_all(LISTEN).await.unwrap();
        read_until(&mut here, "\n\n").await;
        listeners.push((here, serving));
    }
    let refused = service.ask(LISTEN).await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("16 listen already"), "{refused}");
    let (here, serving) = listeners.pop().unwrap();
    drop(here);
    serving.await.unwrap();
    let (mut here, _serving) = service.connect(1 << 20);
    here.write_all(LISTEN).await.unwrap();
    let first = read_until(&mut here, "\n\n").await;
    assert!(first.starts_with("HTTP/1.1 200 "), "{first}");
}

/// Time is virtual, so a wait ends when it is due, up to the granularity of timers.
fn assert_took(begun: Instant, seconds: u64) {
    let (took, due) = (begun.elapsed(), Duration::from_secs(seconds));
    let late = Duration::from_millis(10);
    assert!((due..due + late).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_takes_nothing_is_closed() {
    let service = Service::new(None);
    // Less than the first event.
    let (mut here, serving) = service.connect(128);
    here.write_all(LISTEN).await.unwrap();
    let begun = Instant::now();
    serving.await.unwrap();
    assert_took(begun, 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_or_too_slowly_is_closed() {
    let service = Service::new(None);
    let (_here, serving) = service.connect(1 << 10);
    let begun = Instant::now();
    serving.await.unwrap();
    assert_took(begun, 10);
    // Nor after an answer.
    let (mut here, serving) = service.connect(1 << 10);
    let request = format!("GET /api/status HTTP/1.1\r\n{LOCAL}\r\n");
    sleep(Duration::from_secs(9)).await;
    here.write_all(request.as_bytes()).await.unwrap();
    read_until(&mut here, "}").await;
    let begun = Instant::now();
    serving.await.unwrap();
    assert_took(begun, 10);
    // One byte of a head each second.
    let (mut here, serving) = service.connect(1 << 10);
    let begun = Instant::now();
    tokio::spawn(async move {
        while here.write_all(b"G").await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    serving.await.unwrap();
    assert_took(begun, 10);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_told_nothing_for_long_hears_that_the_gateway_is_there() {
    let service = Service::new(None);
    let (mut here, serving) = service.connect(1 << 20);
    here.write_all(LISTEN).await.unwrap();
    read_until(&mut here, "}\n\n").await;
    let begun = Instant::now();
    for nth in 1..5 {
        read_until(&mut here, ":\n\n").await;
        assert_took(begun, 15 * nth);
    }
    service.notify.send_replace("{}".into());
    read_until(&mut here, "data: {}\n\n").await;
    assert!(!serving.is_finished());
}
