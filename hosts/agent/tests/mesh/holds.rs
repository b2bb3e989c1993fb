//! Holds: locks, elections, permits, barriers and sessions, and their ends.

use std::process::Stdio;
use std::time::Duration;

use selvedge_client::{Agent, Hold, Kind};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::{LONG, Mesh, PATIENCE, TTL, soon, until};

fn version(hold: &Hold) -> u64 {
    hold.token().unwrap().version
}

#[tokio::test]
async fn a_lock_passes_from_program_to_program_with_greater_tokens() {
    let mesh = Mesh::start(3).await;
    let first = soon(mesh.client(0).lock("door", LONG)).await.unwrap();
    let hasty = mesh.client(1).clone().with_wait(Duration::ZERO);
    let taken = soon(hasty.lock("door", LONG)).await.unwrap_err();
    assert_eq!(taken.kind(), Some(Kind::Timeout));
    let waits = soon(mesh.client(1).lock("door", LONG));
    let releases = async {
        sleep(Duration::from_millis(300)).await;
        assert!(first.is_held());
        let before = version(&first);
        // A dropped hold closes its connection.
        drop(first);
        before
    };
    let (second, before) = tokio::join!(waits, releases);
    let second = second.unwrap();
    assert!(version(&second) > before);
    second.release().await.unwrap();
    let third = soon(mesh.client(2).lock("door", LONG)).await.unwrap();
    assert!(version(&third) > before);
}

#[tokio::test]
async fn a_program_that_is_killed_holds_its_lock_no_longer() {
    let mesh = Mesh::start(3).await;
    let address = format!("http://{}", mesh.agents[0].http);
    let mut program = Command::new(env!("CARGO_BIN_EXE_selvedge-agent"))
        .args(["lock", "door", "--ttl", "30s", "--agent", &address, "--"])
        .args(["sleep", "60"])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let entries = "/v1/maps/locks/entries?prefix=lock/door/";
    until(async || mesh.curl(1, &[], entries).1.contains("lock/door/0")).await;
    program.kill().await.unwrap();
    // Long before its time to live is over.
    let taken = timeout(Duration::from_secs(15), mesh.client(1).lock("door", LONG)).await;
    assert!(taken.unwrap().unwrap().is_held());
}

#[tokio::test]
async fn the_holds_of_an_agent_that_is_killed_end_after_their_time_to_live() {
    let mut mesh = Mesh::start(3).await;
    let lost = soon(mesh.client(2).lock("door", TTL)).await.unwrap();
    mesh.kill(2).await;
    soon(lost.lapsed()).await;
    let taken = soon(mesh.client(0).lock("door", LONG)).await.unwrap();
    assert!(version(&taken) > version(&lost));
    soon(lost.ended()).await;
}

#[tokio::test]
async fn a_hold_by_requests_lives_as_long_as_they_come() {
    let mesh = Mesh::start(3).await;
    let (status, hold) = mesh.curl(0, &["-X", "POST"], "/v1/locks/door?ttl=2s");
    assert_eq!(status, 200, "{hold}");
    let hold: serde_json::Value = serde_json::from_str(&hold).unwrap();
    let path = format!("/v1/holds/{}", hold["hold"].as_str().unwrap());
    for _ in 0..6 {
        sleep(Duration::from_millis(700)).await;
        let (status, shown) = mesh.curl(0, &["-X", "PUT"], &path);
        assert_eq!(status, 200, "{shown}");
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(
            (&shown["is_held"], &shown["token"]),
            (&true.into(), &hold["token"])
        );
        assert!(shown["alive_for_ms"].as_u64().unwrap() <= 2_000);
    }
    // A look extends nothing, and reports the rest of its time.
    sleep(Duration::from_millis(1_500)).await;
    let (_, shown) = mesh.curl(0, &[], &path);
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert!(shown["alive_for_ms"].as_u64().unwrap() <= 500, "{shown}");
    let taken = soon(mesh.client(1).lock("door", LONG)).await.unwrap();
    assert!(version(&taken) > hold["token"]["version"].as_u64().unwrap());
    assert_eq!(mesh.curl(0, &["-X", "PUT"], &path).0, 404);
}

#[tokio::test]
async fn an_election_has_one_leader_and_all_see_it() {
    let mesh = Mesh::start(3).await;
    let mut seen = soon(mesh.client(2).observe("heating")).await.unwrap();
    assert_eq!(soon(seen.next()).await.unwrap(), None);
    let one = soon(mesh.client(0).campaign("heating", "one", LONG)).await;
    let one = one.unwrap();
    let elected = soon(mesh.client(1).elected("heating")).await.unwrap();
    let elected = elected.unwrap();
    assert_eq!(
        (&elected.value.0[..], Some(&elected.token)),
        (&b"one"[..], one.token())
    );
    let two = soon(mesh.client(1).campaign("heating", "two", LONG));
    let resigns = async {
        sleep(Duration::from_millis(300)).await;
        one.release().await.unwrap();
    };
    let _two = tokio::join!(two, resigns).0.unwrap();
    loop {
        let leader = soon(seen.next()).await.unwrap();
        if leader.is_some_and(|it| it.value.0 == b"two") {
            break;
        }
    }
}

#[tokio::test]
async fn a_semaphore_has_so_many_permits_and_a_barrier_opens_for_so_many() {
    let mesh = Mesh::start(3).await;
    let permits = |at: usize| mesh.client(at).permit("disks", 2, LONG);
    let (one, two) = (soon(permits(0)).await.unwrap(), soon(permits(1)).await);
    let hasty: Agent = mesh.client(2).clone().with_wait(Duration::from_millis(500));
    let third = soon(hasty.permit("disks", 2, LONG)).await.unwrap_err();
    assert_eq!(third.kind(), Some(Kind::Timeout));
    drop(one);
    assert!(soon(permits(2)).await.unwrap().is_held());
    drop(two);
    let alone = soon(hasty.arrive("round", 2, LONG)).await.unwrap_err();
    assert_eq!(alone.kind(), Some(Kind::Timeout));
    let arrives = |at: usize| mesh.client(at).arrive("round", 2, LONG);
    let (a, b) = tokio::join!(timeout(PATIENCE, arrives(0)), timeout(PATIENCE, arrives(1)));
    let (a, b) = (a.unwrap().unwrap(), b.unwrap().unwrap());
    let (a, b) = tokio::join!(soon(a.release()), soon(b.release()));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
}

#[tokio::test]
async fn entries_of_a_session_go_with_it() {
    let mesh = Mesh::start(3).await;
    let doors = mesh.client(0).map("doors");
    let session = soon(doors.session(LONG)).await.unwrap();
    let id = session.session().unwrap().to_owned();
    soon(doors.put_in_session("front", "open", &id))
        .await
        .unwrap();
    session.release().await.unwrap();
    let there = mesh.client(1).map("doors");
    until(async || there.get("front").await.unwrap().is_none()).await;
    let late = soon(doors.put_in_session("front", "open", &id)).await;
    assert_eq!(late.unwrap_err().kind(), Some(Kind::SessionOver));
}

/// The time that an agent has reported as certain passes before it leaves.
#[tokio::test]
async fn a_lock_is_passed_on_by_an_agent_that_leaves_when_it_is_certain_no_longer() {
    let mesh = Mesh::start(3).await;
    let by_connection = soon(mesh.client(0).lock("window", LONG)).await.unwrap();
    let (_, hold) = mesh.curl(0, &["-X", "POST"], "/v1/locks/door?ttl=5s");
    let hold: serde_json::Value = serde_json::from_str(&hold).unwrap();
    let certain = Duration::from_millis(hold["alive_for_ms"].as_u64().unwrap());
    assert!(
        hold["is_held"] == true && certain > Duration::from_secs(2),
        "{hold}"
    );
    let asked = tokio::time::Instant::now();
    let leaves = soon(mesh.client(0).leave());
    let taken = async {
        let taken = soon(mesh.client(1).lock("door", LONG)).await.unwrap();
        (asked.elapsed(), taken)
    };
    let lapses = async {
        soon(by_connection.lapsed()).await;
        drop(by_connection);
    };
    let (left, (after, _taken), ()) = tokio::join!(leaves, taken, lapses);
    left.unwrap();
    // Some of that time had passed by then.
    assert!(
        after + Duration::from_secs(1) > certain,
        "{after:?} of {certain:?}"
    );
}

/// A program that waited gets no hold of an agent that leaves.
#[tokio::test]
async fn an_agent_with_a_program_that_waits_leaves() {
    let mut mesh = Mesh::start(3).await;
    let first = soon(mesh.client(0).lock("door", LONG)).await.unwrap();
    let waits = soon(mesh.client(0).lock("door", LONG));
    let leaves = async {
        sleep(Duration::from_millis(500)).await;
        let leaves = soon(mesh.client(0).leave());
        let releases = async {
            soon(first.lapsed()).await;
            drop(first);
        };
        tokio::join!(leaves, releases).0.unwrap();
    };
    assert!(tokio::join!(waits, leaves).0.is_err());
    assert!(soon(mesh.agents[0].process.wait()).await.unwrap().success());
}
