//! Errors by kind, agents that die, and answers of any bytes.

use std::time::Duration;

use selvedge_client::{Agent, Error, Kind};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::fake::Fake;

/// An agent that answers each request with these bytes, and closes the connection.
async fn raw(answer: &'static [u8]) -> Agent {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            while !request.windows(4).any(|it| it == b"\r\n\r\n") {
                assert!(stream.read(&mut request).await.unwrap() > 0);
            }
            // A client may close the connection early.
            stream.write_all(answer).await.ok();
        }
    });
    Agent::new(&address).unwrap()
}

#[tokio::test]
async fn each_refusal_has_its_kind() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    for (status, name, kind) in [
        (400, "bad_request", Kind::BadRequest),
        (401, "unauthorized", Kind::Unauthorized),
        (403, "forbidden", Kind::Forbidden),
        (404, "not_found", Kind::NotFound),
        (404, "no_path", Kind::NoPath),
        (408, "timeout", Kind::Timeout),
        (409, "mismatch", Kind::Mismatch),
        (410, "session_over", Kind::SessionOver),
        (413, "too_large", Kind::TooLarge),
        (507, "full", Kind::Full),
        (503, "unavailable", Kind::Unavailable),
        (418, "of a later version", Kind::Other),
    ] {
        for is_hold in [false, true] {
            fake.answers(
                status,
                format!(r#"{{"error":"the remedy","kind":"{name}"}}"#),
            );
            let error = match is_hold {
                false => agent.info().await.unwrap_err(),
                true => agent.lock("l", Duration::from_secs(5)).await.unwrap_err(),
            };
            assert_eq!(error.kind(), Some(kind));
            assert_eq!(error.to_string(), "the remedy");
        }
    }
}

#[tokio::test]
async fn a_refusal_in_plain_text_has_the_kind_of_its_status() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    for (status, kind) in [
        (401, Kind::Unauthorized),
        (403, Kind::Forbidden),
        (413, Kind::TooLarge),
        (414, Kind::TooLarge),
    ] {
        fake.answers(status, format!("give the token\n{}", "x".repeat(1 << 20)));
        let error = agent.info().await.unwrap_err();
        assert_eq!(error.kind(), Some(kind));
        let text = error.to_string();
        assert!(
            text.starts_with("give the token\nx") && text.len() < 400,
            "{text}"
        );
    }
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_api_is_a_misbehaviour() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    for (status, body) in [
        (200, "{\"id\":"),
        (200, "[]"),
        (200, ""),
        (500, ""),
        (404, "<html>"),
        (302, "{\"error\":1}"),
    ] {
        fake.answers(status, body);
        let error = agent.info().await.unwrap_err();
        assert!(
            matches!(error, Error::Misbehaviour(_)),
            "{error:?} for {body:?}"
        );
    }
    // No stream of events, and a hold that does not begin as one.
    fake.answers(200, "{}");
    let error = agent.monitor().await.unwrap_err();
    assert!(matches!(error, Error::Misbehaviour(_)), "{error:?}");
    for event in ["event: alive\ndata: {}\n\n", "event: held\ndata: {}\n\n"] {
        fake.streams().send(Ok(event.to_owned())).unwrap();
        let error = agent.lock("l", Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(error, Error::Misbehaviour(_)), "{error:?}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_http_are_a_misbehaviour() {
    for answer in [
        &b"\x00\x01\x02\x03\n\n"[..],
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 999999 ?\r\n\r\n",
    ] {
        let error = raw(answer).await.info().await.unwrap_err();
        assert!(matches!(error, Error::Misbehaviour(_)), "{error:?}");
    }
}

#[tokio::test]
async fn an_agent_that_dies_in_the_middle_is_lost() {
    for answer in [
        &b""[..],
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n",
    ] {
        let error = raw(answer).await.info().await.unwrap_err();
        assert!(matches!(error, Error::Lost(_)), "{error:?}");
    }
    let events = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: leader\ndata: null\n\nevent: lea";
    let mut monitor = raw(events).await.monitor().await.unwrap();
    monitor.next().await.unwrap();
    let error = monitor.next().await.unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
    let error = monitor.next().await.unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
}

#[tokio::test]
async fn an_address_without_an_agent_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for address in [&*free, "unix:/no/such/socket"] {
        let error = Agent::new(address).unwrap().info().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().contains(address), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    fake.answers(200, vec![b'x'; Agent::LONGEST]);
    assert_eq!(agent.pop("q").await.unwrap().len(), Agent::LONGEST);
    // The second answer is a refusal.
    for status in [200, 400] {
        fake.answers(status, vec![b'x'; Agent::LONGEST + 1]);
        let error = agent.pop("q").await.unwrap_err();
        assert!(matches!(error, Error::TooLong(Agent::LONGEST)), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let agent = Agent::new(&address)
        .unwrap()
        .with_wait(Duration::from_secs(3));
    let error = agent.info().await.unwrap_err();
    assert!(
        matches!(error, Error::Silent(limit) if limit == Duration::from_secs(3) + Agent::GRACE),
        "{error:?}"
    );
}

#[test]
fn an_address_or_a_token_that_cannot_be_is_refused() {
    for address in [
        "",
        "localhost:7780",
        "https://localhost:7780",
        "http://localhost",
        "http://:7780",
        "http://localhost:99999",
        "http://localhost:7780/v1",
        "http://a@b:7780",
        "http://a b:7780",
        "unix:",
    ] {
        let error = Agent::new(address).unwrap_err();
        assert!(matches!(error, Error::Address(_)), "{address} {error:?}");
    }
    for address in [
        "http://localhost:7780",
        "http://[::1]:7780/",
        "unix:agent.sock",
    ] {
        assert!(Agent::new(address).is_ok(), "{address}");
    }
    let agent = Agent::new("unix:agent.sock").unwrap();
    assert!(matches!(agent.with_token("a\nb"), Err(Error::Token)));
}
