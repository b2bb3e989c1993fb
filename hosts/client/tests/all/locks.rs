//! Locks of several names, priorities, and leaders that hand over.

use std::time::Duration;

use selvedge_client::{Agent, Candidate, Kind, LockPlace, Token, Value};

use crate::fake::Fake;
use crate::holds::HELD;

const TTL: Duration = Duration::from_secs(5);

async fn pair() -> (Fake, Agent) {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    (fake, agent)
}

#[tokio::test]
async fn each_kind_of_lock_and_of_place() {
    let (fake, agent) = pair().await;
    let mut streams = Vec::new();
    let mut held = || {
        let events = fake.streams();
        events.send(Ok(HELD.to_owned())).unwrap();
        streams.push(events);
    };
    held();
    agent.lock_shared("l", TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/locks/l?shared=true&ttl=5000ms&wait=10000ms"
    );
    held();
    agent.lock_all(&["b", "a"], TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        r#"POST /v1/locks?ttl=5000ms&wait=10000ms {"names":["b","a"]}"#
    );
    held();
    agent.lock_all_shared(&["b"], TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        r#"POST /v1/locks?shared=true&ttl=5000ms&wait=10000ms {"names":["b"]}"#
    );
    held();
    agent
        .campaign_with_priority("e", 7, "v", TTL)
        .await
        .unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/elections/e?priority=7&ttl=5000ms&wait=10000ms v"
    );
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(agent.push_with_priority("q", 0, "item").await.unwrap(), 8);
    assert_eq!(
        fake.request(),
        "POST /v1/queues/q?priority=0&wait=10000ms item"
    );
}

#[tokio::test]
async fn looks_at_a_lock_and_at_an_election() {
    let (fake, agent) = pair().await;
    fake.answers(200, r#"[{"member":1,"session":"1.0.4","token":{"map":"0a","version":3},"is_shared":true,"has_it":false}]"#);
    let place = LockPlace {
        member: 1,
        session: "1.0.4".to_owned(),
        token: Token {
            map: "0a".to_owned(),
            version: 3,
        },
        is_shared: true,
        has_it: false,
    };
    assert_eq!(agent.lock_places("l").await.unwrap(), [place]);
    assert_eq!(fake.request(), "GET /v1/locks/l?wait=10000ms");
    fake.answers(200, r#"[{"value":"v","priority":7,"session":"1.0.4"}]"#);
    let candidate = Candidate {
        value: Value::from("v"),
        priority: 7,
        session: Some("1.0.4".to_owned()),
    };
    assert_eq!(agent.candidates("e").await.unwrap(), [candidate]);
    assert_eq!(
        fake.request(),
        "GET /v1/elections/e/candidates?wait=10000ms"
    );
}

#[tokio::test]
async fn a_leader_that_hands_over_holds_nothing_unless_no_candidate_waits() {
    let (fake, agent) = pair().await;
    let events = fake.streams();
    events.send(Ok(HELD.to_owned())).unwrap();
    let hold = agent.campaign("e", "v", TTL).await.unwrap();
    fake.request();
    fake.answers(409, r#"{"error":"no candidate waits","kind":"mismatch"}"#);
    let hold = hold.hand_over(None).await.unwrap().expect("the hold");
    assert_eq!(fake.request(), "POST /v1/holds/00ff/hand-over?wait=10000ms");
    assert!(hold.is_held() && !events.is_closed());
    fake.answers(200, "{}");
    let candidate = Candidate {
        value: Value::default(),
        priority: 1,
        session: Some("1.0.4".to_owned()),
    };
    assert!(hold.hand_over(Some(&candidate)).await.unwrap().is_none());
    assert_eq!(
        fake.request(),
        "POST /v1/holds/00ff/hand-over?to=1.0.4&wait=10000ms"
    );
    events.closed().await;

    let events = fake.streams();
    events.send(Ok(HELD.to_owned())).unwrap();
    let hold = agent.campaign("e", "v", TTL).await.unwrap();
    fake.request();
    fake.answers(503, r#"{"error":"ask again","kind":"unavailable"}"#);
    let error = hold.hand_over(None).await.unwrap_err();
    assert_eq!(error.kind(), Some(Kind::Unavailable));
    // It is not certain, so the leader resigns.
    events.closed().await;
}
