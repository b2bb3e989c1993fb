//! Tests of the parts that a page does not see: addresses, tokens, origins, and limits of connections and
//! time.

use core::time::Duration;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use axum::Router;
use axum::routing::{get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{Instant, sleep};

use super::{CONNECTIONS, IDLE, Server, ServerError, converse, guarded};
use crate::guard::{Access, Token, TokenError};
use crate::page::Page;
use crate::patience::Patience;

const TOKEN: &str = "a-token_that.is~long";

#[test]
fn tokens_can_stand_in_an_address() {
    assert!(TOKEN.parse::<Token>().is_ok());
    assert_eq!("short".parse::<Token>(), Err(TokenError::Length(5)));
    assert_eq!(
        "x".repeat(129).parse::<Token>(),
        Err(TokenError::Length(129))
    );
    for text in [
        "with a blank inside",
        "with&and&and&and",
        "percent%percent%",
    ] {
        assert_eq!(text.parse::<Token>(), Err(TokenError::Character), "{text}");
    }
    let token: Token = TOKEN.parse().unwrap();
    assert!(!format!("{token:?}").contains("long"));
}

#[test]
fn beyond_loopback_no_door_opens_without_a_token() {
    let listen: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = Server::new(listen, None);
    assert!(
        matches!(refused, Err(ServerError::Open(it)) if it == listen),
        "{refused:?}"
    );
    assert!(Server::new(listen, TOKEN.parse().ok()).is_ok());
}

/// The answer to a request, as it is on the wire.
async fn ask(router: &Router, request: &str) -> String {
    let (mut here, there) = duplex(1 << 16);
    let serving = tokio::spawn(converse(there, router.clone(), IDLE));
    here.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    here.read_to_string(&mut answer).await.unwrap();
    serving.await.unwrap();
    answer
}

#[tokio::test]
async fn the_page_of_another_site_changes_nothing() {
    let router = Router::new().route("/do", post(|| async { "done" }).get(|| async { "seen" }));
    let page = Page::new("").unwrap();
    let open = guarded(router.clone(), None, &page);
    let closed = guarded(router, TOKEN.parse().ok(), &page);
    let key = format!("authorization: Bearer {TOKEN}\r\n");
    for (method, host, origin, status) in [
        ("POST", "127.0.0.1:80", "", 200),
        ("POST", "127.0.0.1:80", "http://127.0.0.1:80", 200),
        ("POST", "localhost:80", "https://localhost:80", 200),
        ("POST", "127.0.0.1:80", "http://127.0.0.1:81", 403),
        ("POST", "127.0.0.1:80", "http://elsewhere.example", 403),
        ("POST", "127.0.0.1:80", "null", 403),
        ("POST", "127.0.0.1:80", "127.0.0.1:80", 403),
        ("GET", "127.0.0.1:80", "http://elsewhere.example", 200),
    ] {
        let origin = match origin {
            "" => String::new(),
            origin => format!("origin: {origin}\r\n"),
        };
        for (router, key) in [(&open, ""), (&closed, key.as_str())] {
            let request = format!(
                "{method} /do HTTP/1.1\r\nhost: {host}\r\n{origin}{key}content-length: 0\r\n\
                 connection: close\r\n\r\n"
            );
            let answer = ask(router, &request).await;
            let head = format!("HTTP/1.1 {status} ");
            assert!(answer.starts_with(&head), "{request}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_token_is_told_in_the_address_or_by_a_scheme_in_any_case() {
    let router = Router::new().route("/", get(|| async { "seen" }));
    let router = guarded(router, TOKEN.parse().ok(), &Page::new("").unwrap());
    for (path, header, status) in [
        (format!("/?token={TOKEN}"), String::new(), 200),
        ("/".into(), format!("Bearer {TOKEN}"), 200),
        ("/".into(), format!("bearer  {TOKEN}"), 200),
        ("/".into(), format!("Bearer {TOKEN}x"), 401),
        ("/".into(), format!("Basic {TOKEN}"), 401),
        ("/".into(), "Bearer".into(), 401),
        (format!("/?token={TOKEN}"), "Basic eDp5".into(), 200),
        ("/".into(), String::new(), 401),
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: hub\r\nauthorization: {header}\r\nconnection: close\r\n\r\n"
        );
        let answer = ask(&router, &request).await;
        let head = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&head), "{request}: {answer}");
    }
}

#[tokio::test]
async fn a_token_of_readers_changes_nothing() {
    const READERS: &str = "readers-0123456789";
    let router = Router::new().route("/", post(|| async { "done" }).get(|| async { "seen" }));
    let access = Access {
        token: TOKEN.parse().ok(),
        readers: READERS.parse().ok(),
    };
    let router = guarded(router, access, &Page::new("").unwrap());
    for (method, token, status) in [
        ("GET", READERS, 200),
        ("POST", READERS, 403),
        ("GET", TOKEN, 200),
        ("POST", TOKEN, 200),
        ("GET", "another-0123456789", 401),
    ] {
        let request = format!(
            "{method} / HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer {token}\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
        let answer = ask(&router, &request).await;
        let head = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&head), "{request}: {answer}");
    }
}

/// A connection to a page that listens, on which something is asked.
fn client(at: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(at).unwrap();
    ask_again(&mut client);
    client
}

fn ask_again(client: &mut TcpStream) {
    let request = "GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.write_all(request.as_bytes()).unwrap();
}

fn is_answered(client: &mut TcpStream) -> bool {
    let is_late = |it: &io::Error| matches!(it.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    let mut answer = Vec::new();
    while !answer.ends_with(br#"{"version":1}"#) {
        let mut byte = [0];
        match client.read(&mut byte) {
            Ok(1) => answer.push(byte[0]),
            Err(why) if is_late(&why) && answer.is_empty() => return false,
            other => panic!("{other:?}"),
        }
    }
    true
}

#[test]
fn there_is_a_bound_to_connections_and_one_that_ends_makes_room() {
    let server = Server::new("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let at = server.listens();
    let router = Router::new().route("/status", get(|| async { r#"{"version":1}"# }));
    server
        .open("server", router, &Page::new("").unwrap())
        .unwrap();
    let mut clients: Vec<TcpStream> = (0..CONNECTIONS).map(|_| client(at)).collect();
    assert_eq!(clients.len(), 64);
    assert!(clients.iter_mut().all(is_answered));
    let mut waits = client(at);
    // Later requests on open connections are answered, and the waiting connection is not.
    clients.iter_mut().for_each(ask_again);
    assert!(clients.iter_mut().all(is_answered));
    let brief = Duration::from_millis(100);
    waits.set_read_timeout(Some(brief)).unwrap();
    assert!(!is_answered(&mut waits));
    drop(clients.pop());
    waits.set_read_timeout(None).unwrap();
    assert!(is_answered(&mut waits));
}

/// Time is virtual, so it ends at the set time, up to the precision of timers.
fn assert_took(begun: Instant, seconds: u64) {
    let (took, due) = (begun.elapsed(), Duration::from_secs(seconds));
    let late = Duration::from_millis(10);
    assert!((due..due + late).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_on_which_nothing_moves_ends_and_one_on_which_something_does_goes_on() {
    let (mut here, there) = duplex(1 << 10);
    let mut there = Patience::new(there, IDLE);
    for _ in 0..3 {
        sleep(Duration::from_millis(29_900)).await;
        here.write_all(b"a").await.unwrap();
        assert_eq!(there.read_u8().await.unwrap(), b'a');
        sleep(Duration::from_millis(29_900)).await;
        there.write_all(b"b").await.unwrap();
    }
    let begun = Instant::now();
    let ended = there.read_u8().await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::TimedOut);
    assert_took(begun, 30);
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_request_ends_soon_however_long_one_may_be_idle() {
    let long = Duration::from_secs(3_600);
    let router = Router::new().route("/status", get(|| async { "fine" }));
    for request in ["", "GET /status HTTP/1.1\r\nhost: localhost\r\n\r\n"] {
        let (mut here, there) = duplex(1 << 10);
        tokio::spawn(converse(there, router.clone(), long));
        let begun = Instant::now();
        here.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        here.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.is_empty(), request.is_empty());
        assert_took(begun, 10);
    }
}
