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
    r#""session":"s1","ttl_ms":12000,"is_held":true,"alive_for_ms":10500}"#,
    "\n\n"
);
const SECOND: Duration = Duration::from_secs(1);
const TTL: Duration = Duration::from_secs(12);
/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn held() -> (Fake, Sender, Hold) {
    let (fake, events, hold) = held_as(HELD, true).await;
    assert!(hold.is_held());
    (fake, events, hold)
}

/// A hold with this first event, and with answers to requests to extend it or without.
async fn held_as(event: &str, extends: bool) -> (Fake, Sender, Hold) {
    let fake = Fake::start().await;
    if !extends {
        fake.extends(None);
    }
    let agent = Agent::new(&fake.address).unwrap();
    let events = fake.streams();
    events.send(Ok(event.to_owned())).unwrap();
    let hold = agent.lock("l", TTL).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/locks/l?ttl=12000ms&wait=10000ms");
    (fake, events, hold)
}

/// The answer to a request to extend it.
fn extended(is_held: bool, alive_for_ms: u64) -> String {
    let info =
        r#"{"hold":"00ff","kind":"lock","name":"l","token":null,"session":"s1","ttl_ms":12000"#;
    format!(r#"{info},"is_held":{is_held},"alive_for_ms":{alive_for_ms}}}"#)
}

async fn until_held(hold: &Hold) {
    soon(async {
        while !hold.is_held() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn send(events: &Sender, name: &str) {
    let event = format!("event: {name}\ndata: {{}}\n\n");
    events.send(Ok(event)).unwrap();
}

/// In virtual time.
async fn ends_after_its_ttl(hold: &Hold) {
    assert!(timeout(TTL - SECOND, hold.ended()).await.is_err());
    timeout(2 * SECOND, hold.ended()).await.unwrap();
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
    until_held(&hold).await;
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
        // Its agent may answer requests until it sees that the connection is closed.
        ends_after_its_ttl(&hold).await;
        assert!(!hold.is_held());
        tokio::time::resume();
    }
}

#[tokio::test]
async fn a_hold_ends_when_its_agent_is_silent_and_not_while_it_sends_comments() {
    let (_fake, events, hold) = held().await;
    tokio::time::pause();
    for _ in 0..10 {
        assert!(timeout(TTL - SECOND, hold.lapsed()).await.is_err());
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

#[tokio::test]
async fn a_hold_of_a_frozen_agent_lapses_when_its_time_is_over() {
    let (_fake, _events, hold) = held_as(HELD, false).await;
    tokio::time::pause();
    assert!(timeout(9 * SECOND, hold.lapsed()).await.is_err());
    assert!(hold.is_held());
    // 10.5 s, and less than the time to live.
    timeout(2 * SECOND, hold.lapsed()).await.unwrap();
    assert!(!hold.is_held());
}

#[tokio::test]
async fn a_hold_lapses_by_the_clock_without_its_task() {
    let (_fake, _events, hold) = held_as(HELD, false).await;
    tokio::time::pause();
    let clock = tokio::time::advance(11 * SECOND);
    assert!(hold.is_held());
    clock.await;
    assert!(!hold.is_held());
}

#[tokio::test]
async fn an_answer_counts_from_the_moment_of_its_request() {
    let early = HELD.replace("10500", "500");
    let (fake, _events, hold) = held_as(&early, false).await;
    tokio::time::pause();
    timeout(SECOND, hold.lapsed()).await.unwrap();
    sleep(SECOND).await;
    // The answer to the first request, 1.5 s after it. The next requests have no answer.
    fake.extends(Some((200, &extended(true, 10_500))));
    until_held(&hold).await;
    fake.extends(None);
    // 10.5 s after the request, and not after its answer.
    assert!(timeout(8 * SECOND, hold.lapsed()).await.is_err());
    timeout(SECOND + SECOND / 4, hold.lapsed()).await.unwrap();
}

#[tokio::test]
async fn a_hold_that_is_not_certainly_held_begins_as_lapsed() {
    for (event, answer) in [
        // Of an agent that gives no time.
        (HELD.replace(r#","alive_for_ms":10500"#, ""), true),
        (HELD.replace("true", "false"), true),
        (HELD.replace("true", "false"), false),
    ] {
        let (fake, _events, hold) = held_as(&event, false).await;
        assert!(!hold.is_held());
        soon(hold.lapsed()).await;
        fake.extends(Some((200, &extended(answer, 10_500))));
        match answer {
            true => until_held(&hold).await,
            false => assert!(timeout(SECOND / 5, until_held(&hold)).await.is_err()),
        }
    }
}

#[tokio::test]
async fn an_answer_without_the_hold_ends_it_and_another_refusal_does_not() {
    for (status, kind, ends) in [
        (404, "not_found", true),
        (404, "no_path", false),
        (503, "unavailable", false),
    ] {
        let (fake, _events, hold) = held_as(HELD, false).await;
        let refusal = format!(r#"{{"error":"the remedy","kind":"{kind}"}}"#);
        fake.extends(Some((status, &refusal)));
        match ends {
            true => {
                soon(hold.ended()).await;
                soon(hold.lapsed()).await;
            }
            false => assert!(timeout(SECOND / 5, hold.lapsed()).await.is_err()),
        }
        assert_eq!(hold.is_held(), !ends, "{kind}");
    }
}

#[tokio::test]
async fn a_hold_is_extended_each_quarter_of_its_time_to_live() {
    let (fake, events, hold) = held_as(HELD, false).await;
    tokio::time::pause();
    // Requests at 0, 3, 6 and 9 s.
    sleep(10 * SECOND).await;
    let target = "/v1/holds/00ff?wait=3000ms";
    assert_eq!(fake.extended(), [target; 4]);
    // Also when it is alive again, and not more often than each 250 ms.
    fake.extends(Some((200, &extended(true, 10_500))));
    sleep(SECOND / 10).await;
    for _ in 0..100 {
        send(&events, "alive");
        sleep(SECOND / 100).await;
    }
    let requests = fake.extended().len();
    assert!((6..=4 + 5).contains(&requests), "{requests} requests");
    // It ends: no request follows.
    send(&events, "ended");
    soon(hold.ended()).await;
    sleep(SECOND).await;
    let requests = fake.extended().len();
    sleep(TTL).await;
    assert_eq!(fake.extended().len(), requests);
}

#[tokio::test]
async fn an_answer_that_is_older_than_a_lapse_does_not_count() {
    let (fake, events, hold) = held_as(HELD, false).await;
    tokio::time::pause();
    sleep(SECOND).await;
    send(&events, "lapsed");
    timeout(SECOND, hold.lapsed()).await.unwrap();
    assert!(!hold.is_held());
    fake.extends(Some((200, &extended(true, 10_500))));
    // Until the next request.
    assert!(timeout(SECOND, until_held(&hold)).await.is_err());
    timeout(TTL, until_held(&hold)).await.unwrap();
}

#[tokio::test]
async fn the_first_time_counts_from_the_request_for_the_hold_or_from_the_next_one() {
    for extends in [false, true] {
        let fake = Fake::start().await;
        match extends {
            true => fake.extends(Some((200, &extended(true, 10_500)))),
            false => fake.extends(None),
        }
        let agent = Agent::new(&fake.address).unwrap();
        let events = fake.streams();
        let lock = agent.lock("l", TTL);
        let late = async {
            // It waits for longer than the time of the event.
            sleep(Duration::from_millis(700)).await;
            events.send(Ok(HELD.replace("10500", "400"))).unwrap();
        };
        let (hold, ()) = tokio::join!(lock, late);
        assert_eq!(hold.unwrap().is_held(), extends);
    }
}
