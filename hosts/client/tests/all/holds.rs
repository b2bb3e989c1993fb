//! Holds: they lapse, revive and end.

use std::io;
use std::time::Duration;

use selvedge_client::{Agent, Error, Hold, Kind};
use tokio::time::{sleep, timeout};

use crate::fake::{Fake, Sender};

pub(crate) const HELD: &str = concat!(
    r#"event: held"#,
    "\n",
    r#"data: {"hold":"00ff","kind":"lock","name":"l","token":{"map":"0a","version":3},"#,
    r#""session":"s1","ttl_ms":12000,"is_held":true}"#,
    "\n\n"
);
const TTL: Duration = Duration::from_secs(12);
/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn held() -> (Fake, Sender, Hold) {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    let events = fake.streams();
    events.send(Ok(HELD.to_owned())).unwrap();
    let hold = agent.lock("l", TTL).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/locks/l?ttl=12000ms&wait=10000ms");
    assert!(hold.is_held());
    (fake, events, hold)
}

fn send(events: &Sender, name: &str) {
    let event = format!("event: {name}\ndata: {{}}\n\n");
    events.send(Ok(event)).unwrap();
}

/// In virtual time.
async fn ends_after_its_ttl(hold: &Hold) {
    let second = Duration::from_secs(1);
    assert!(timeout(TTL - second, hold.ended()).await.is_err());
    timeout(2 * second, hold.ended()).await.unwrap();
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("in time")
}

#[tokio::test]
async fn a_hold_lapses_revives_and_ends() {
    let (_fake, events, hold) = held().await;
    assert_eq!(hold.token().unwrap().to_string(), "0a:3");
    assert_eq!(hold.session(), Some("s1"));
    send(&events, "lapsed");
    soon(hold.lapsed()).await;
    assert!(!hold.is_held());
    send(&events, "alive");
    soon(async {
        while !hold.is_held() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    send(&events, "ended");
    soon(hold.ended()).await;
    soon(hold.lapsed()).await;
    assert!(!hold.is_held());
    // The client closes the connection.
    soon(events.closed()).await;
}

#[tokio::test]
async fn a_hold_that_is_dropped_closes_its_connection() {
    let (_fake, events, hold) = held().await;
    drop(hold);
    soon(events.closed()).await;
}

#[tokio::test]
async fn a_wait_for_a_hold_that_is_dropped_closes_its_connection() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    let events = fake.streams();
    let waiting = timeout(Duration::from_millis(50), agent.lock("l", TTL)).await;
    assert!(waiting.is_err());
    soon(events.closed()).await;
}

#[tokio::test]
async fn a_release_waits_for_the_agent() {
    let (fake, events, hold) = held().await;
    fake.answers(200, "{}");
    hold.release().await.unwrap();
    assert_eq!(fake.request(), "DELETE /v1/holds/00ff?wait=10000ms");
    soon(events.closed()).await;

    // Also after one attempt to get it.
    let agent = Agent::new(&fake.address).unwrap();
    fake.streams().send(Ok(HELD.to_owned())).unwrap();
    let attempt = agent.with_wait(Duration::ZERO).lock("l", TTL).await;
    fake.request();
    fake.answers(200, "{}");
    attempt.unwrap().release().await.unwrap();
    assert_eq!(fake.request(), "DELETE /v1/holds/00ff?wait=10000ms");

    let (fake, events, hold) = held().await;
    fake.answers(404, r#"{"error":"no hold","kind":"not_found"}"#);
    let error = hold.release().await.unwrap_err();
    assert_eq!(error.kind(), Some(Kind::NotFound));
    soon(events.closed()).await;
}

#[tokio::test]
async fn a_hold_lapses_when_its_connection_breaks_and_ends_its_time_to_live_later() {
    for is_orderly in [true, false] {
        let (_fake, events, hold) = held().await;
        if !is_orderly {
            let broken = io::Error::other("the agent dies");
            events.send(Err(broken)).unwrap();
        }
        drop(events);
        soon(hold.lapsed()).await;
        tokio::time::pause();
        ends_after_its_ttl(&hold).await;
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_hold_ends_when_its_agent_is_silent_and_not_while_it_sends_comments() {
    let (_fake, events, hold) = held().await;
    tokio::time::pause();
    for _ in 0..10 {
        assert!(
            timeout(TTL - Duration::from_secs(1), hold.lapsed())
                .await
                .is_err()
        );
        events.send(Ok(":\n\n".to_owned())).unwrap();
        // The bytes arrive.
        sleep(Duration::from_millis(50)).await;
    }
    ends_after_its_ttl(&hold).await;
}

#[tokio::test]
async fn a_stream_that_is_too_long_breaks_a_hold() {
    let (_fake, events, hold) = held().await;
    for _ in 0..=Agent::LONGEST >> 16 {
        events.send(Ok("x".repeat(1 << 16))).unwrap();
    }
    // At once: the agent releases it then.
    tokio::select! {
        () = events.closed() => {}
        () = hold.ended() => panic!("the connection is open"),
    }
    soon(hold.lapsed()).await;
}

#[tokio::test]
async fn an_agent_that_dies_before_a_hold_is_held_is_lost() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    drop(fake.streams());
    let error = agent.lock("l", TTL).await.unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error:?}");
}
