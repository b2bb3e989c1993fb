//! Events: lines that are cut anywhere, of any form and length.

use selvedge_client::{Agent, Error, MeshEvent};

use crate::fake::Fake;

#[tokio::test]
async fn lines_that_are_cut_anywhere_are_put_together() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    let text = concat!(
        ": a comment\n\n",
        "event: missed\r\ndata: {\"missed\":1}\r\n\r\n",
        "id: 3\nevent:missed\nretry\ndata:{\"missed\":\ndata: 2}\n\n",
        // An event without data is none.
        "event: leader\n\n",
        "event: missed\ndata: {\"missed\":3}\n\n",
    );
    for length in 1..text.len() {
        let events = fake.streams();
        let mut monitor = agent.monitor().await.unwrap();
        for part in text.as_bytes().chunks(length) {
            let part = String::from_utf8(part.to_vec()).unwrap();
            events.send(Ok(part)).unwrap();
            tokio::task::yield_now().await;
        }
        drop(events);
        for number in 1..=3 {
            let event = monitor.next().await.unwrap();
            assert_eq!(event, MeshEvent::Missed(number), "cut into {length} bytes");
        }
    }
}

#[tokio::test]
async fn a_dropped_wait_for_an_event_loses_none() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    let events = fake.streams();
    let mut monitor = agent.monitor().await.unwrap();
    for part in ["event: missed\nda", "ta: {\"missed\":", "1}\n", "\n"] {
        let early =
            tokio::time::timeout(core::time::Duration::from_millis(20), monitor.next()).await;
        assert!(early.is_err());
        events.send(Ok(part.to_owned())).unwrap();
    }
    assert_eq!(monitor.next().await.unwrap(), MeshEvent::Missed(1));
}

#[tokio::test]
async fn an_event_that_is_too_long_is_refused() {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    for line in ["x", "data: x\n"] {
        let events = fake.streams();
        let mut monitor = agent.monitor().await.unwrap();
        let part = line.repeat((64 << 10) / line.len());
        for _ in 0..=10 * (Agent::LONGEST >> 16) {
            // Until the client has closed the connection.
            if events.send(Ok(part.clone())).is_err() {
                break;
            }
        }
        // Not without end: then it is lost.
        drop(events);
        let error = monitor.next().await.unwrap_err();
        assert!(matches!(error, Error::TooLong(_)), "{error:?}");
    }
}
