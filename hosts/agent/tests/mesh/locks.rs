//! Locks that are shared or have several names, and elections and queues with priorities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use selvedge_client::{Agent, Hold, Kind, LockPlace};
use tokio::time::sleep;

use super::{LONG, Mesh, curl, soon, until};

fn version(hold: &Hold) -> u64 {
    hold.token().unwrap().version
}

/// The agent at this place, for one attempt.
fn hasty(mesh: &Mesh, at: usize) -> Agent {
    mesh.client(at).clone().with_wait(Duration::ZERO)
}

/// Waits until this number of entries is in the line of a lock.
async fn places(mesh: &Mesh, name: &str, count: usize) -> Vec<LockPlace> {
    let look = async || soon(mesh.client(2).lock_places(name)).await.unwrap();
    until(async || look().await.len() == count).await;
    look().await
}

#[tokio::test]
async fn some_share_a_lock_and_one_that_has_it_alone_is_passed_by_none_of_them() {
    let mesh = Mesh::start(3).await;
    let shares = |at: usize| soon(mesh.client(at).lock_shared("plan", LONG));
    let (one, two) = (shares(0).await.unwrap(), shares(1).await.unwrap());
    assert!(one.is_held() && two.is_held());
    assert_eq!(two.info().kind, "shared_lock");
    let refused = soon(hasty(&mesh, 2).lock("plan", LONG)).await.unwrap_err();
    assert_eq!(refused.kind(), Some(Kind::Timeout));
    let third = soon(hasty(&mesh, 2).lock_shared("plan", LONG)).await;
    drop(third.unwrap());
    places(&mesh, "plan", 2).await;
    let writes = soon(mesh.client(0).lock("plan", LONG));
    let others = async {
        let line = places(&mesh, "plan", 3).await;
        let line: Vec<_> = line.iter().map(|it| (it.is_shared, it.has_it)).collect();
        assert_eq!(line, [(true, true), (true, true), (false, false)]);
        // One that waits is passed by no one.
        let late = soon(hasty(&mesh, 1).lock_shared("plan", LONG)).await;
        assert_eq!(late.unwrap_err().kind(), Some(Kind::Timeout));
        let before = version(&one).max(version(&two));
        drop(one);
        places(&mesh, "plan", 2).await;
        assert!(two.is_held());
        drop(two);
        before
    };
    let (writer, before) = tokio::join!(writes, others);
    let writer = writer.unwrap();
    assert!(version(&writer) > before);
    let is_released = AtomicBool::new(false);
    let reads = async {
        let reader = soon(mesh.client(1).lock_shared("plan", LONG)).await;
        assert!(is_released.load(Ordering::SeqCst));
        reader.unwrap()
    };
    let releases = async {
        places(&mesh, "plan", 2).await;
        sleep(Duration::from_millis(300)).await;
        assert!(writer.is_held());
        let before = version(&writer);
        is_released.store(true, Ordering::SeqCst);
        soon(writer.release()).await.unwrap();
        before
    };
    let (reader, before) = tokio::join!(reads, releases);
    assert!(version(&reader) > before);
}

#[tokio::test]
async fn a_lock_of_several_names_excludes_each_of_them() {
    let mesh = Mesh::start(3).await;
    let both = soon(mesh.client(0).lock_all(&["inner", "outer"], LONG)).await;
    let both = both.unwrap();
    assert_eq!(both.info().name, "inner, outer");
    for name in ["inner", "outer"] {
        let alone = soon(hasty(&mesh, 1).lock(name, LONG)).await.unwrap_err();
        assert_eq!(alone.kind(), Some(Kind::Timeout));
        let shared = soon(hasty(&mesh, 1).lock_shared(name, LONG)).await;
        assert_eq!(shared.unwrap_err().kind(), Some(Kind::Timeout));
    }
    let free = soon(hasty(&mesh, 1).lock("garage", LONG)).await.unwrap();
    let next = soon(mesh.client(2).lock_all(&["outer", "garage", "inner"], LONG));
    let releases = async {
        // It has the place behind them in each line.
        assert!(!places(&mesh, "outer", 2).await[1].has_it);
        assert!(!places(&mesh, "garage", 2).await[1].has_it);
        assert!(places(&mesh, "inner", 2).await[0].has_it);
        drop(free);
        let before = version(&both);
        soon(both.release()).await.unwrap();
        before
    };
    let (next, before) = tokio::join!(next, releases);
    let next = next.unwrap();
    assert!(next.is_held() && version(&next) > before);
    let (status, answer) = mesh.curl(0, &["-d", r#"{"names":[]}"#], "/v1/locks");
    assert!(status == 400 && answer.contains("bad_request"), "{answer}");
    soon(next.release()).await.unwrap();
    let shared = soon(mesh.client(0).lock_all_shared(&["inner", "outer"], LONG)).await;
    let other = soon(hasty(&mesh, 1).lock_shared("outer", LONG)).await;
    assert!(shared.unwrap().is_held() && other.unwrap().is_held());
}

#[tokio::test]
async fn the_smallest_priority_leads_next_or_the_candidate_that_the_leader_hands_over_to() {
    let mesh = Mesh::start(3).await;
    let election = "heating";
    let (one, two, three) = (mesh.client(0), mesh.client(1), mesh.client(2));
    let first = soon(one.campaign(election, "first", LONG)).await.unwrap();
    let waits = soon(two.campaign_with_priority(election, 5, "next", LONG));
    let last = soon(three.campaign_with_priority(election, 200, "last", LONG));
    let leads = async {
        let waiting = async || soon(three.candidates(election)).await.unwrap();
        until(async || waiting().await.len() == 2).await;
        let candidates = waiting().await;
        let seen: Vec<_> = candidates
            .iter()
            .map(|it| (it.priority, &it.value.0[..]))
            .collect();
        assert_eq!(seen, [(5, &b"next"[..]), (200, b"last")]);
        // The priority of one that waits changes nothing for the leader.
        assert!(first.is_held());
        let before = version(&first);
        let handed = soon(first.hand_over(Some(&candidates[1]))).await.unwrap();
        assert!(handed.is_none());
        (before, candidates)
    };
    let after = async {
        let (last, (before, candidates)) = tokio::join!(last, leads);
        let last = last.unwrap();
        assert!(version(&last) > before);
        let elected = soon(one.elected(election)).await.unwrap().unwrap();
        assert_eq!(
            (&elected.value.0[..], Some(&elected.token)),
            (&b"last"[..], last.token())
        );
        // It waits no more: the leader leads on.
        let last = soon(last.hand_over(Some(&candidates[1]))).await.unwrap();
        let last = last.expect("still the leader");
        until(async || last.is_held()).await;
        // To the first one.
        let before = version(&last);
        assert!(soon(last.hand_over(None)).await.unwrap().is_none());
        before
    };
    let (next, before) = tokio::join!(waits, after);
    let next = next.unwrap();
    assert!(next.is_held() && version(&next) > before);
    let alone = soon(next.hand_over(None)).await.unwrap();
    assert!(alone.is_some());
    let lock = soon(one.lock("door", LONG)).await.unwrap();
    let refused = soon(lock.hand_over(None)).await.unwrap_err();
    assert_eq!(refused.kind(), Some(Kind::BadRequest));
}

#[tokio::test]
async fn items_of_a_queue_come_by_priority_and_then_by_age() {
    let mesh = Mesh::start(3).await;
    let (here, there) = (mesh.client(0), mesh.client(1));
    soon(here.push("jobs", "2")).await.unwrap();
    soon(here.push_with_priority("jobs", 500, "4"))
        .await
        .unwrap();
    soon(there.push("jobs", "3")).await.unwrap();
    soon(there.push_with_priority("jobs", 1, "1"))
        .await
        .unwrap();
    for item in ["1", "2", "3", "4"] {
        assert_eq!(soon(there.pop("jobs")).await.unwrap(), item.as_bytes());
    }
}

#[tokio::test]
async fn metrics_have_the_times_of_changes_and_of_waits() {
    let mesh = Mesh::start(1).await;
    soon(mesh.client(0).map("m").put("a", "1")).await.unwrap();
    let held = soon(mesh.client(0).lock("door", LONG)).await.unwrap();
    let hasty = mesh.client(0).clone().with_wait(Duration::from_millis(700));
    // It does not count.
    assert!(soon(hasty.lock("door", LONG)).await.is_err());
    let waits = soon(mesh.client(0).lock("door", LONG));
    let releases = async {
        sleep(Duration::from_millis(600)).await;
        drop(held);
    };
    drop(tokio::join!(waits, releases).0.unwrap());
    let (status, text) = mesh.curl(0, &[], "/metrics");
    assert_eq!(status, 200);
    let number = |name: &str| -> f64 {
        let line = text.lines().find_map(|it| it.strip_prefix(name));
        let line = line.unwrap_or_else(|| panic!("{name} in {text}"));
        line.trim().parse().unwrap()
    };
    assert!(number("selvedge_change_seconds_count ") >= 1.0);
    assert!(number(r#"selvedge_change_seconds_bucket{le="+Inf"} "#) >= 1.0);
    assert_eq!(number(r#"selvedge_wait_seconds_count{kind="lock"} "#), 2.0);
    let sum = number(r#"selvedge_wait_seconds_sum{kind="lock"} "#);
    assert!(sum >= 0.5, "{text}");
    let long = number(r#"selvedge_wait_seconds_bucket{le="0.5",kind="lock"} "#);
    assert!(long <= 1.0, "{text}");
    for line in text.lines().filter(|it| !it.starts_with('#')) {
        let (name, number) = line.rsplit_once(' ').unwrap();
        assert!(
            name.starts_with("selvedge_") && number.parse::<f64>().is_ok(),
            "{line}"
        );
    }
}

/// All other members have stopped, so no one can list the candidates.
#[tokio::test]
async fn a_hold_is_shown_while_a_hand_over_has_no_answer() {
    let mut mesh = Mesh::start(3).await;
    mesh.meet(3).await;
    let (_, hold) = mesh.curl(0, &["-X", "POST"], "/v1/elections/heating?ttl=60s");
    let hold: serde_json::Value = serde_json::from_str(&hold).unwrap();
    let hold = hold["hold"].as_str().unwrap().to_owned();
    mesh.kill(1).await;
    mesh.kill(2).await;
    let at = format!("http://{}/v1/holds/{hold}", mesh.agents[0].http);
    let hands_over = format!("{at}/hand-over?wait=50s");
    let hands_over = tokio::task::spawn_blocking(move || curl(&["-X", "POST"], &hands_over));
    sleep(Duration::from_millis(500)).await;
    let show = tokio::task::spawn_blocking(move || curl(&["-m", "20"], &at));
    let (status, shown) = show.await.unwrap();
    assert_eq!(status, 200, "{shown}");
    assert_eq!(hands_over.await.unwrap().0, 503);
}
