//! Real nodes that keep sessions of maps alive, and watch prefixes.

use std::time::Duration;

use selvedge::frame;
use selvedge_core::shared::Limits;
use selvedge_core::{Incarnation, Member, Span, Time};
use selvedge_groups::store::{Entry, Expected, Owner, Stored, TTL_MAX, TTL_MIN, Transaction};
use selvedge_kgroup::Event;
use selvedge_membership::{Body, Claim, Message, Metadata, Record};
use selvedge_udp::{Error, Map, NodeEvent, PrefixNews, PrefixWatch, Reject, Session, Watch};
use tokio::time::{sleep, timeout};

use crate::bench::{Node, PATIENCE, until};
use crate::groups::start;

async fn soon<T>(wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap()
}

async fn begins(map: Map<'_>, ttl: Span) -> Session {
    soon(map.session(ttl)).await.unwrap()
}

/// Puts an entry for this session.
async fn owned(map: Map<'_>, key: &str, session: &Session) {
    let put = Transaction::new().put_owned(key, b"here", session.id());
    let stored = soon(map.transact(put)).await.unwrap();
    assert!(matches!(stored, Stored::Done { .. }), "{stored:?}");
}

async fn next(watch: &mut Watch) -> Option<Entry> {
    soon(watch.next()).await.unwrap()
}

/// The place of the node that leads the group of this map.
async fn leader(nodes: &mut [Node], map: &str) -> usize {
    let group = nodes[0].map(map).group();
    let mut leads = vec![false; nodes.len()];
    let found = async {
        loop {
            for (node, leads) in nodes.iter_mut().zip(&mut leads) {
                for event in node.passed() {
                    match event {
                        NodeEvent::Groups(Event::Leading { group: it }) if it == group => {
                            *leads = true;
                        }
                        NodeEvent::Groups(Event::Deposed { group: it }) if it == group => {
                            *leads = false;
                        }
                        _ => {}
                    }
                }
            }
            if let Some(at) = leads.iter().position(|it| *it) {
                return at;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    soon(found).await
}

/// Waits until the session has certainly lived for that long from now on.
async fn lives_on(node: &Node, session: &Session, span: Span) {
    let end = node.clock().now() + span;
    until(|| session.until() > end).await;
}

#[tokio::test]
async fn an_entry_of_a_node_that_is_killed_is_removed() {
    let nodes = start(3, |setup| setup).await;
    let session = begins(nodes[2].map("who"), TTL_MIN).await;
    owned(nodes[2].map("who"), "3", &session).await;
    let mut seen = nodes[0].map("who").watch("3").await.unwrap();
    assert_eq!(next(&mut seen).await.unwrap().session, Some(session.id()));
    // It lasts as long as its node runs.
    lives_on(&nodes[2], &session, Span(3 * TTL_MIN.0)).await;
    assert!(session.is_alive());
    let present = nodes[0].map("who").get("3").await.unwrap();
    assert!(present.is_some());
    nodes[2].kill().await;
    assert_eq!(next(&mut seen).await, None);
    // A node that has stopped does not know.
    soon(session.lapsed()).await;
    assert_eq!(soon(session.ended()).await, Err(Error::Closed));
}

/// Each of three nodes leaves, with a session of a day; one of them leads the map's group.
#[tokio::test]
async fn an_entry_of_a_node_that_leaves_is_removed_at_once() {
    for leaves in 0..3 {
        let nodes = start(3, |setup| setup).await;
        let map = nodes[leaves].map("who");
        let session = begins(map, TTL_MAX).await;
        owned(map, "it", &session).await;
        let mut seen = nodes[(leaves + 1) % 3]
            .map("who")
            .watch("it")
            .await
            .unwrap();
        assert!(next(&mut seen).await.is_some());
        soon(nodes[leaves].leave()).await.unwrap();
        assert_eq!(next(&mut seen).await, None);
        assert!(!session.is_alive());
    }
}

#[tokio::test]
async fn no_owner_takes_a_session_for_alive_that_another_one_ends() {
    let nodes = start(3, |setup| setup).await;
    let map = nodes[0].map("who");
    let one = begins(map, TTL_MAX).await;
    let two = soon(map.resume(one.id())).await.unwrap();
    assert!(one.is_alive() && two.is_alive());
    drop(one);
    assert!(!two.is_alive(), "before the group has decided it");
    soon(two.ended()).await.unwrap();
}

#[tokio::test]
async fn watches_that_are_dropped_before_they_begin_take_no_room() {
    let nodes = start(3, |setup| setup).await;
    let map = nodes[0].map("who");
    soon(map.put("a/1", b"here")).await.unwrap();
    for _ in 0..400 {
        let watch = timeout(Duration::ZERO, map.watch_prefix("a/", 0)).await;
        drop(watch);
    }
    let mut watch = soon(map.watch_prefix("a/", 0)).await.unwrap();
    let news = soon(watch.next()).await.unwrap();
    assert!(matches!(news, PrefixNews::Changed { changes, .. } if changes.len() == 1));
}

#[tokio::test]
async fn a_session_outlives_the_leader_of_its_group() {
    let mut nodes = start(3, |setup| setup).await;
    let asker = nodes[0].clone();
    asker.map("who").put("first", b"").await.unwrap();
    let led = leader(&mut nodes, "who").await;
    let other = (led + 1) % 3;
    let ttl = Span::secs(4);
    let session = begins(nodes[other].map("who"), ttl).await;
    owned(nodes[other].map("who"), "it", &session).await;
    nodes[led].kill().await;
    lives_on(&nodes[other], &session, Span(2 * ttl.0)).await;
    let third = &nodes[(led + 2) % 3];
    let kept = soon(third.map("who").get("it")).await.unwrap();
    assert_eq!(kept.unwrap().session, Some(session.id()));
    // A lapse is no end; an end is certain, and takes the entry with it.
    soon(session.end()).await.unwrap();
    assert_eq!(soon(third.map("who").get("it")).await, Ok(None));
}

/// Another node remembers a later life of this one, which takes a life after that.
async fn takes_another_life(node: &Node, by: &Node) {
    let former = node.state().me;
    let later = Incarnation(former.incarnation.0 + 5);
    let record = Record {
        member: Member::new(former.id.0, later.0),
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    };
    let mut message = Message::bare(Body::Unlucky);
    message.records.push(record);
    let mut bytes = Vec::new();
    frame::encode(by.state().me, &message, 1_000, &mut bytes).unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&bytes, node.address()).unwrap();
    until(|| node.state().me.incarnation.newer_than(former.incarnation)).await;
}

#[tokio::test]
async fn sessions_and_watches_outlive_a_new_life_of_their_node() {
    let nodes = start(3, |setup| setup).await;
    let (here, there) = (nodes[2].map("who"), nodes[0].map("who"));
    let session = begins(here, Span::secs(4)).await;
    owned(here, "it", &session).await;
    let mut seen = here.watch_prefix("", 0).await.unwrap();
    let (mut known, _) = changes(&mut seen).await;
    takes_another_life(&nodes[2], &nodes[0]).await;
    there.put("more", b"").await.unwrap();
    lives_on(&nodes[2], &session, Span::secs(8)).await;
    assert!(there.get("it").await.unwrap().is_some());
    // Nothing is missing, and nothing comes twice.
    while known.last().map(String::as_str) != Some("more") {
        known.extend(changes(&mut seen).await.0);
    }
    assert_eq!(known, ["it", "more"]);
    drop(session);
    assert_eq!(changes(&mut seen).await.0, ["it"]);
}

/// The names of the next changes, and the version.
async fn changes(watch: &mut PrefixWatch) -> (Vec<String>, u64) {
    match soon(watch.next()).await.unwrap() {
        PrefixNews::Changed { version, changes } => {
            (changes.into_iter().map(|it| it.key).collect(), version)
        }
        PrefixNews::Compacted => panic!("no change was forgotten"),
    }
}

/// Of as many watches as the node may have, all are dropped, and make room for others.
#[tokio::test]
async fn the_watch_of_a_prefix_that_is_dropped_makes_room() {
    let nodes = start(3, |setup| {
        let maps = selvedge_groups::store::StoreConfig::new().with_pending(2);
        let config = selvedge_kgroup::Config::new().with_maps(maps);
        let coordination = crate::groups::coordination().with_config(config);
        setup.coordination(coordination, Span::secs(3_600))
    })
    .await;
    let doors = nodes[0].map("doors");
    for _ in 0..3 {
        let one = doors.watch_prefix("a", 0).await.unwrap();
        let two = doors.watch_prefix("a", 0).await.unwrap();
        assert!(doors.watch_prefix("a", 0).await.is_err(), "the limit is 2");
        drop((one, two));
    }
    // Sessions, too: dropped ones end, one after another.
    let begins = async || loop {
        match doors.session(TTL_MAX).await {
            Ok(session) => return session,
            Err(_full) => sleep(Duration::from_millis(20)).await,
        }
    };
    for _ in 0..3 {
        let (one, two) = (soon(begins()).await, soon(begins()).await);
        assert!(soon(doors.session(TTL_MAX)).await.is_err());
        drop((one, two));
    }
}

/// Limits under which a reader that waits for a few changes misses events.
pub(crate) fn few_events() -> Limits {
    let events = core::num::NonZeroUsize::new(8).unwrap();
    Limits {
        events,
        ..Limits::default()
    }
}

/// Many entries take many frames. A reader that is too slow for the node's events gets all the same each change.
#[tokio::test]
async fn the_watch_of_a_prefix_misses_nothing_and_outlives_a_lag() {
    let nodes = start(3, |setup| setup.limits(few_events())).await;
    let (writer, reader) = (nodes[0].map("doors"), nodes[1].map("doors"));
    let name = |nth: u16| format!("floor/{nth:02}");
    let value = [7; 300];
    for nth in 0..20 {
        soon(writer.put(name(nth), &value)).await.unwrap();
        soon(writer.put("elsewhere", &value)).await.unwrap();
    }
    let listed = soon(reader.list_all("floor/")).await.unwrap();
    let names: Vec<&str> = listed.entries.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, (0..20).map(name).collect::<Vec<_>>());
    let page = soon(reader.list("floor/", Some("floor/17"))).await.unwrap();
    assert_eq!(page.entries[0].0, "floor/18");
    let mut all = reader.watch_prefix("floor/", 0).await.unwrap();
    let mut later = reader.watch_prefix("floor/", listed.version).await.unwrap();
    let (names, version) = changes(&mut all).await;
    assert_eq!(names, (0..20).map(name).collect::<Vec<_>>());
    assert_eq!(all.since(), version);
    // More events than a reader may be behind.
    let mut back = reader.watch("back").await.unwrap();
    for nth in 0..20_u8 {
        soon(writer.put("back", &[nth])).await.unwrap();
        soon(back.next()).await.unwrap();
        let key = name(u16::from(nth));
        let changed = match nth % 2 {
            0 => soon(writer.remove(key)).await,
            _ => soon(writer.put(key, b"new")).await,
        };
        assert!(matches!(changed, Ok(Stored::Done { .. })));
    }
    for watch in [&mut all, &mut later] {
        let mut seen = Vec::new();
        while seen.len() < 20 {
            match soon(watch.next()).await.unwrap() {
                PrefixNews::Changed { changes, .. } => seen.extend(changes),
                PrefixNews::Compacted => panic!("no change was forgotten"),
            }
        }
        let names: Vec<&str> = seen.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(names, (0..20).map(name).collect::<Vec<_>>());
        for (nth, change) in seen.iter().enumerate() {
            let is_removed = nth % 2 == 0;
            assert_eq!(change.entry.is_none(), is_removed, "{change:?}");
        }
    }
}

/// Removes more entries than a map remembers.
pub(crate) async fn remove_many(doors: Map<'_>) {
    // Each of them is another entry: one that is removed again and again is remembered once.
    for nth in 0..=selvedge_groups::store::REMOVED_MAX + 1 {
        let name = format!("gone/{nth}");
        let swap = Transaction::new().put(name, b"");
        let swap = match nth {
            0 => swap,
            _ => swap.remove(format!("gone/{}", nth - 1)),
        };
        soon(doors.transact(swap)).await.unwrap();
    }
}

/// More entries are removed than a map remembers: the watch reports that, and begins again.
#[tokio::test]
async fn the_watch_of_a_prefix_that_is_too_late_begins_again() {
    let nodes = start(3, |setup| setup).await;
    let doors = nodes[0].map("doors");
    soon(doors.put("floor/kept", b"")).await.unwrap();
    remove_many(doors).await;
    let mut late = nodes[1]
        .map("doors")
        .watch_prefix("floor/", 1)
        .await
        .unwrap();
    assert_eq!(soon(late.next()).await, Ok(PrefixNews::Compacted));
    assert_eq!(changes(&mut late).await.0, ["floor/kept"]);
}

#[tokio::test]
async fn a_transaction_is_done_as_a_whole_or_not_at_all() {
    let nodes = start(3, |setup| setup).await;
    let doors = nodes[1].map("doors");
    let first = || {
        Transaction::new()
            .when("front", Expected::Absent)
            .put("front", b"shut")
            .append("log/", b"made")
    };
    let made = soon(doors.transact(first())).await;
    assert_eq!(made, Ok(Stored::Done { version: 1 }));
    let again = soon(doors.transact(first())).await;
    assert_eq!(again, Ok(Stored::Mismatch { found: Some(1) }));
    let other = first().otherwise_put("back", b"shut");
    let otherwise = soon(doors.transact(other)).await;
    assert_eq!(otherwise, Ok(Stored::Otherwise { version: 2 }));
    let all = soon(nodes[2].map("doors").list_all("")).await.unwrap();
    let names: Vec<&str> = all.entries.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, ["back", "front", "log/0000000000000001"]);
}

#[tokio::test]
async fn another_node_goes_on_with_a_session() {
    let nodes = start(3, |setup| setup).await;
    let session = begins(nodes[0].map("who"), Span::secs(2)).await;
    owned(nodes[0].map("who"), "it", &session).await;
    let resumed = soon(nodes[1].map("who").resume(session.id()))
        .await
        .unwrap();
    assert_eq!(session.detach(), resumed.id());
    nodes[0].kill().await;
    lives_on(&nodes[1], &resumed, Span::secs(6)).await;
    assert!(soon(nodes[2].map("who").get("it")).await.unwrap().is_some());
    // An end anywhere is an end everywhere.
    let third = soon(nodes[2].map("who").resume(resumed.id()))
        .await
        .unwrap();
    let id = third.id();
    drop(third);
    assert_eq!(soon(resumed.ended()).await, Ok(()));
    assert!(!resumed.is_alive());
    let over = soon(nodes[2].map("who").resume(id)).await.unwrap_err();
    assert_eq!(over, Error::Rejected(Reject::SessionOver(id)));
    assert_eq!(soon(nodes[1].map("who").get("it")).await, Ok(None));
}

/// The caller gives up before the answer. Its session is dropped with the answer.
#[tokio::test]
async fn a_session_that_nobody_waits_for_ends() {
    let nodes = start(3, |setup| setup).await;
    let who = nodes[0].map("who");
    let asked = timeout(Duration::ZERO, who.session(TTL_MAX)).await;
    assert!(asked.is_err(), "it takes a round trip");
    // Its name is that of the first change of this node.
    let id = selvedge_groups::store::SessionId {
        by: nodes[0].state().me,
        number: 1,
    };
    soon(who.put("later", b"")).await.unwrap();
    until_over(&nodes[1], id).await;
}

async fn until_over(node: &Node, id: selvedge_groups::store::SessionId) {
    let over = Error::Rejected(Reject::SessionOver(id));
    let ends = async {
        loop {
            match node.map("who").resume(id).await {
                Ok(session) => {
                    let _same = session.detach();
                }
                Err(why) => return assert_eq!(why, over),
            }
        }
    };
    soon(ends).await;
}

#[tokio::test]
async fn a_session_begins_with_its_entries_or_not_at_all() {
    let nodes = start(3, |setup| setup).await;
    let doors = nodes[0].map("doors");
    let claim = || {
        Transaction::new()
            .when("front", Expected::Absent)
            .put_owned("front", b"1", Owner::Begun)
    };
    let begun = soon(doors.session_with(TTL_MAX, claim())).await.unwrap();
    let entry = soon(doors.get("front")).await.unwrap().unwrap();
    assert_eq!(entry.session, Some(begun.session.id()));
    assert_eq!((entry.version, begun.is_otherwise), (begun.version, false));

    let found = Some(begun.version);
    let refused = soon(doors.session_with(TTL_MAX, claim())).await;
    let mismatch = Error::Rejected(Reject::Mismatch { found });
    assert_eq!(refused.unwrap_err(), mismatch);

    let other = claim().otherwise_put("waits", b"2");
    let other = soon(doors.session_with(TTL_MAX, other)).await.unwrap();
    assert!(other.is_otherwise && other.version > begun.version);
    let over = other.session.id();
    soon(other.session.end()).await.unwrap();
    let late = Transaction::new().put_owned("late", b"", over);
    let refused = soon(doors.session_with(TTL_MAX, late)).await;
    assert_eq!(refused.unwrap_err(), Error::Rejected(Reject::NoSession));

    drop(begun);
    let mut seen = doors.watch("front").await.unwrap();
    while next(&mut seen).await.is_some() {}
}

#[tokio::test]
async fn an_entry_with_a_time_to_live_is_removed() {
    let nodes = start(3, |setup| setup).await;
    let who = nodes[0].map("who");
    let mut seen = nodes[1].map("who").watch("brief").await.unwrap();
    assert_eq!(next(&mut seen).await, None);
    soon(who.put_for("brief", b"x", TTL_MIN)).await.unwrap();
    assert_eq!(next(&mut seen).await.unwrap().value.to_vec(), b"x");
    assert_eq!(next(&mut seen).await, None);
}

/// No leader answers: the session may have ended, which is no end yet.
#[tokio::test]
async fn a_session_without_a_quorum_lapses() {
    let nodes = start(3, |setup| setup).await;
    let session = begins(nodes[0].map("who"), TTL_MIN).await;
    assert!(session.is_alive() && session.until() > Time::ZERO);
    nodes[1].kill().await;
    nodes[2].kill().await;
    soon(session.lapsed()).await;
    assert!(!session.is_alive());
    let ended = timeout(Duration::from_millis(300), session.ended()).await;
    assert!(ended.is_err(), "nobody has decided it");
}
