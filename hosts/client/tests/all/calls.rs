//! Each call: its request, and the value of its answer.

use std::collections::BTreeMap;
use std::time::Duration;

use selvedge_client::{
    Agent, Elected, Entry, Info, Instance, Kind, Leader, MapEvent, Member, MeshEvent, PartOutcome,
    Status, Step, Token, Transaction, Value,
};

use crate::fake::Fake;
use crate::holds::HELD;

const TTL: Duration = Duration::from_secs(5);
const MEMBER: &str = r#"{"id":7,"incarnation":3,"status":"suspected","address":null,"round_trip_us":1260,"tags":{"role":"store"},"later":1}"#;
const ENTRY: &str = r#"{"key":"a/b","value_base64":"/w==","version":5,"created":4,"session":null}"#;

fn member() -> Member {
    Member {
        id: 7,
        incarnation: 3,
        status: Status::Suspected,
        address: None,
        round_trip_us: Some(1_260),
        tags: BTreeMap::from([("role".to_owned(), "store".to_owned())]),
    }
}

fn entry() -> Entry {
    Entry {
        key: "a/b".to_owned(),
        value: Value(vec![0xff]),
        version: 5,
        created: 4,
        session: None,
    }
}

async fn pair() -> (Fake, Agent) {
    let fake = Fake::start().await;
    let agent = Agent::new(&fake.address).unwrap();
    (fake, agent)
}

#[tokio::test]
async fn the_mesh() {
    let (fake, agent) = pair().await;
    fake.answers(
        200,
        r#"{"id":1,"incarnation":2,"address":"10.0.0.1:7","version":"0.1","is_in":true,"is_leader":false,"generation":9,"nodes":[1,4]}"#,
    );
    let info = Info {
        id: 1,
        incarnation: 2,
        address: Some("10.0.0.1:7".to_owned()),
        version: "0.1".to_owned(),
        is_in: true,
        is_leader: false,
        generation: Some(9),
        nodes: vec![1, 4],
    };
    assert_eq!(agent.info().await.unwrap(), info);
    assert_eq!(fake.request(), "GET /v1/info?wait=10000ms");
    fake.answers(200, format!("[{MEMBER}]"));
    assert_eq!(agent.members().await.unwrap(), [member()]);
    assert_eq!(fake.request(), "GET /v1/members?wait=10000ms");
    fake.answers(200, "null");
    assert_eq!(agent.leader().await.unwrap(), None);
    assert_eq!(fake.request(), "GET /v1/leader?wait=10000ms");
    fake.answers(200, "{}");
    agent.leave().await.unwrap();
    assert_eq!(fake.request(), "POST /v1/leave?wait=10000ms");
    fake.answers(
        200,
        r#"{"parts":[{"part":"keys","outcome":"applied","detail":"two keys"},{"part":"n","outcome":"of a later version","detail":""}],"at_next_start":["listen"]}"#,
    );
    let reloaded = agent.reload().await.unwrap();
    assert_eq!(fake.request(), "POST /v1/reload?wait=10000ms");
    let outcomes: Vec<_> = reloaded.parts.iter().map(|it| it.outcome).collect();
    assert_eq!(outcomes, [PartOutcome::Applied, PartOutcome::Other]);
    assert_eq!(reloaded.at_next_start, ["listen"]);
    fake.answers(200, "{}");
    agent.confirm(7).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/members/7/confirm?wait=10000ms");
    fake.answers(200, "{}");
    agent.add_node(8).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/nodes/8/add?wait=10000ms");
    fake.answers(200, "{}");
    agent.remove_node(7).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/nodes/7/remove?wait=10000ms");
    fake.answers(200, "{}");
    agent.send("a b", "now").await.unwrap();
    assert_eq!(fake.request(), "POST /v1/messages/a%20b?wait=10000ms now");
    fake.answers(
        200,
        r#"{"asked":[1,4],"answers":[{"from":4,"value":"here"}]}"#,
    );
    let wait = Duration::from_secs(3);
    let answers = agent.query("who", "now", wait).await.unwrap();
    assert_eq!(answers.asked, [1, 4]);
    let answer = &answers.answers[0];
    assert_eq!((answer.from, answer.value.as_text()), (4, Some("here")));
    assert_eq!(fake.request(), "POST /v1/queries/who?wait=3000ms now");
    fake.answers(200, "{}");
    agent.answer("4.1.7", "here").await.unwrap();
    assert_eq!(fake.request(), "POST /v1/answers/4.1.7?wait=10000ms here");
    fake.answers(200, "{}");
    agent.set_tags(&member().tags).await.unwrap();
    assert_eq!(
        fake.request(),
        r#"PUT /v1/tags?wait=10000ms {"role":"store"}"#
    );
}

#[tokio::test]
async fn the_monitor() {
    let (fake, agent) = pair().await;
    let events = fake.streams();
    let mut monitor = agent.monitor().await.unwrap();
    assert_eq!(fake.request(), "GET /v1/monitor?wait=10000ms");
    for event in [
        &format!("event: member\ndata: {MEMBER}\n\n"),
        "event: leader\ndata: {\"id\":1,\"incarnation\":2}\n\n",
        "event: of a later version\ndata: {}\n\n",
        "event: message\ndata: {\"name\":\"n\",\"value\":\"v\",\"from\":4}\n\n",
        "event: missed\ndata: {\"missed\":3}\n\n",
    ] {
        events.send(Ok(event.to_owned())).unwrap();
    }
    assert_eq!(monitor.next().await.unwrap(), MeshEvent::Member(member()));
    let leader = Leader {
        id: 1,
        incarnation: 2,
    };
    assert_eq!(
        monitor.next().await.unwrap(),
        MeshEvent::Leader(Some(leader))
    );
    let (name, from, value) = ("n".to_owned(), 4, Value::from("v"));
    assert_eq!(
        monitor.next().await.unwrap(),
        MeshEvent::Message { name, from, value }
    );
    assert_eq!(monitor.next().await.unwrap(), MeshEvent::Missed(3));
}

#[tokio::test]
async fn the_entries_of_a_map() {
    let (fake, agent) = pair().await;
    let map = agent.map("m");
    fake.answers(200, vec![0xff]);
    assert_eq!(map.get("a/b?").await.unwrap(), Some((vec![0xff], 7)));
    assert_eq!(fake.request(), "GET /v1/maps/m/entries/a/b%3F?wait=10000ms");
    fake.answers(404, r#"{"error":"no entry","kind":"not_found"}"#);
    assert_eq!(map.get("a").await.unwrap(), None);
    fake.request();
    // A path that the agent does not have is not an entry that is absent.
    for (kind, expected) in [
        ("no_path", Kind::NoPath),
        ("of a later version", Kind::Other),
    ] {
        let text = format!(r#"{{"error":"use another agent","kind":"{kind}"}}"#);
        fake.answers(404, text);
        let error = map.get("a").await.unwrap_err();
        assert_eq!(error.kind(), Some(expected));
        assert_eq!(error.to_string(), "use another agent");
        fake.request();
    }
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(map.put("a", "v").await.unwrap(), 8);
    assert_eq!(fake.request(), "PUT /v1/maps/m/entries/a?wait=10000ms v");
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(map.put_in_session("a", "v", "s1").await.unwrap(), 8);
    assert_eq!(
        fake.request(),
        "PUT /v1/maps/m/entries/a?session=s1&wait=10000ms v"
    );
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(map.put_for("a", "v", TTL).await.unwrap(), 8);
    assert_eq!(
        fake.request(),
        "PUT /v1/maps/m/entries/a?ttl=5000ms&wait=10000ms v"
    );
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(map.compare_and_set("a", 0, "v").await.unwrap(), 8);
    assert_eq!(
        fake.request(),
        "PUT /v1/maps/m/entries/a?version=0&wait=10000ms v"
    );
    fake.answers(200, r#"{"version":9}"#);
    assert_eq!(map.delete("a", Some(8)).await.unwrap(), 9);
    assert_eq!(
        fake.request(),
        "DELETE /v1/maps/m/entries/a?version=8&wait=10000ms"
    );
    let listing = format!(r#"{{"entries":[{ENTRY}],"version":5,"is_last":true}}"#);
    fake.answers(200, listing.clone());
    let listed = map.list("a/", Some("a/a")).await.unwrap();
    assert_eq!(
        (listed.entries, listed.version, listed.is_last),
        (vec![entry()], 5, true)
    );
    assert_eq!(
        fake.request(),
        "GET /v1/maps/m/entries?prefix=a%2F&after=a%2Fa&wait=10000ms"
    );
    fake.answers(200, listing);
    assert_eq!(map.list_all("").await.unwrap().entries, [entry()]);
    assert_eq!(
        fake.request(),
        "GET /v1/maps/m/entries?prefix=&all=true&wait=10000ms"
    );
}

#[tokio::test]
async fn transactions_and_watches() {
    let (fake, agent) = pair().await;
    let map = agent.map("m");
    let transaction = Transaction::new()
        .when("a", 3)
        .then(Step::put("a", "v").in_session("s1"))
        .then(Step::remove("b"))
        .otherwise(Step::append("q/", &[0xff][..]));
    fake.answers(200, r#"{"version":8,"otherwise":true}"#);
    let outcome = map.transact(&transaction).await.unwrap();
    assert_eq!((outcome.version, outcome.is_otherwise), (8, true));
    assert_eq!(
        fake.request(),
        concat!(
            r#"POST /v1/maps/m/transaction?wait=10000ms {"when":[{"key":"a","version":3}],"#,
            r#""then":[{"put":{"key":"a","value":"v","session":"s1"}},{"remove":{"key":"b"}}],"#,
            r#""otherwise":[{"append":{"prefix":"q/","value_base64":"/w==","session":null}}]}"#
        )
    );
    fake.answers(200, r#"{"version":8}"#);
    assert!(!map.transact(&transaction).await.unwrap().is_otherwise);
    fake.request();

    let events = fake.streams();
    let mut watch = map.watch("a/", Some(4)).await.unwrap();
    assert_eq!(
        fake.request(),
        "GET /v1/maps/m/watch?prefix=a%2F&since=4&wait=10000ms"
    );
    let changes = format!(
        r#"[{{"key":"a/b","version":5,"entry":{ENTRY}}},{{"key":"a/c","version":5,"entry":null}}]"#
    );
    let changed = format!("event: changed\ndata: {{\"version\":5,\"changes\":{changes}}}\n\n");
    events.send(Ok(changed)).unwrap();
    events
        .send(Ok("event: compacted\ndata: {}\n\n".to_owned()))
        .unwrap();
    match watch.next().await.unwrap() {
        MapEvent::Changed { version, changes } => {
            assert_eq!(version, 5);
            assert_eq!(changes[0].entry, Some(entry()));
            assert_eq!((&*changes[1].key, &changes[1].entry), ("a/c", &None));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(watch.next().await.unwrap(), MapEvent::Compacted);
}

#[tokio::test]
async fn calls_can_be_made_on_any_thread() {
    let (fake, agent) = pair().await;
    let events = fake.streams();
    events.send(Ok(HELD.to_owned())).unwrap();
    fake.answers(200, "{}");
    let task = tokio::spawn(async move {
        let hold = agent.map("m").session(TTL).await.unwrap();
        hold.release().await.unwrap();
        let mut events = agent.follow("r").await.unwrap();
        events.next().await.unwrap()
    });
    fake.streams()
        .send(Ok("event: instances\ndata: []\n\n".to_owned()))
        .unwrap();
    assert_eq!(task.await.unwrap(), []);
}

#[tokio::test]
async fn each_kind_of_hold() {
    let (fake, agent) = pair().await;
    let agent = agent.with_wait(Duration::ZERO);
    let mut streams = Vec::new();
    let mut held = || {
        let events = fake.streams();
        events.send(Ok(HELD.to_owned())).unwrap();
        streams.push(events);
    };
    held();
    agent.map("m").session(TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/maps/m/sessions?ttl=5000ms&wait=0ms"
    );
    held();
    agent.lock("a/b", TTL).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/locks/a%2Fb?ttl=5000ms&wait=0ms");
    held();
    agent.permit("s", 3, TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/semaphores/s?permits=3&ttl=5000ms&wait=0ms"
    );
    held();
    agent.campaign("e", "v", TTL).await.unwrap();
    assert_eq!(fake.request(), "POST /v1/elections/e?ttl=5000ms&wait=0ms v");
    held();
    agent
        .register("r", Some(4), "10.0.0.1:631", TTL)
        .await
        .unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/services/r?instance=4&ttl=5000ms&wait=0ms 10.0.0.1:631"
    );
    held();
    agent.arrive("b", 2, TTL).await.unwrap();
    assert_eq!(
        fake.request(),
        "POST /v1/barriers/b?number=2&ttl=5000ms&wait=0ms"
    );
}

#[tokio::test]
async fn elections_and_services() {
    let (fake, agent) = pair().await;
    let json = r#"{"value":"v","token":{"map":"0a","version":3}}"#;
    let elected = Elected {
        value: Value::from("v"),
        token: Token {
            map: "0a".to_owned(),
            version: 3,
        },
    };
    fake.answers(200, json);
    assert_eq!(agent.elected("e").await.unwrap().as_ref(), Some(&elected));
    assert_eq!(fake.request(), "GET /v1/elections/e?wait=10000ms");
    let events = fake.streams();
    let mut observer = agent.observe("e").await.unwrap();
    events
        .send(Ok("event: leader\ndata: null\n\n".to_owned()))
        .unwrap();
    events
        .send(Ok(format!("event: leader\ndata: {json}\n\n")))
        .unwrap();
    assert_eq!(observer.next().await.unwrap(), None);
    assert_eq!(observer.next().await.unwrap(), Some(elected));
    assert_eq!(fake.request(), "GET /v1/elections/e?wait=10000ms");

    let json = r#"[{"instance":18446744073709551615,"address":"10.0.0.1:631"}]"#;
    let instances = [Instance {
        instance: u64::MAX,
        address: "10.0.0.1:631".to_owned(),
    }];
    fake.answers(200, json);
    assert_eq!(agent.resolve("r").await.unwrap(), instances);
    assert_eq!(fake.request(), "GET /v1/services/r?wait=10000ms");
    let events = fake.streams();
    let mut follower = agent.follow("r").await.unwrap();
    events
        .send(Ok(format!("event: instances\ndata: {json}\n\n")))
        .unwrap();
    assert_eq!(follower.next().await.unwrap(), instances);
    fake.request();
    for (to, query) in [(None, ""), (Some("7.0.1"), "to=7.0.1&")] {
        fake.answers(200, "{}");
        agent.hand_over_election("e", to).await.unwrap();
        let request = format!("POST /v1/elections/e/hand-over?{query}wait=10000ms");
        assert_eq!(fake.request(), request);
    }
}

#[tokio::test]
async fn queues_counters_and_single_holds() {
    let (fake, agent) = pair().await;
    fake.answers(200, r#"{"version":8}"#);
    assert_eq!(agent.push("q", "item").await.unwrap(), 8);
    assert_eq!(fake.request(), "POST /v1/queues/q?wait=10000ms item");
    fake.answers(200, "item");
    assert_eq!(agent.pop("q").await.unwrap(), b"item");
    assert_eq!(fake.request(), "DELETE /v1/queues/q?wait=10000ms");
    fake.answers(200, r#"{"value":-2}"#);
    assert_eq!(agent.count("c").await.unwrap(), -2);
    assert_eq!(fake.request(), "GET /v1/counters/c?wait=10000ms");
    fake.answers(200, r#"{"value":-5}"#);
    assert_eq!(agent.add("c", -3).await.unwrap(), -5);
    assert_eq!(fake.request(), "POST /v1/counters/c?add=-3&wait=10000ms");
    let json = r#"{"hold":"00ff","kind":"lock","name":"l","token":null,"session":"s","ttl_ms":5000,"is_held":true,"alive_for_ms":4000}"#;
    fake.answers(200, json);
    let info = agent.hold("00ff").await.unwrap();
    assert_eq!((info.is_held, info.alive_for_ms), (true, 4000));
    assert_eq!(fake.request(), "GET /v1/holds/00ff?wait=10000ms");
    fake.answers(200, "{}");
    agent.end_hold("00ff").await.unwrap();
    assert_eq!(fake.request(), "DELETE /v1/holds/00ff?wait=10000ms");
}

#[tokio::test]
async fn a_unix_socket_and_a_token() {
    let path = std::env::temp_dir().join(format!("selvedge-client-{}.sock", std::process::id()));
    let fake = Fake::at(path.to_str().unwrap());
    let agent = Agent::new(&fake.address)
        .unwrap()
        .with_token("secret")
        .unwrap();
    fake.answers(200, "null");
    assert_eq!(agent.leader().await.unwrap(), None);
    assert_eq!(fake.request(), "GET /v1/leader?wait=10000ms Bearer secret");
    assert!(!format!("{agent:?}").contains("secret"));
    std::fs::remove_file(path).unwrap();
}
