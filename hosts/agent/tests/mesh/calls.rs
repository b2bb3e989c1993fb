//! Maps and recipes that hold nothing.

use selvedge_client::{Kind, MapEvent, Step, Transaction};

use super::{LONG, Mesh, TTL, soon, until};

#[tokio::test]
async fn a_map_is_one_for_programs_of_all_agents() {
    let mesh = Mesh::start(3).await;
    let (here, there) = (mesh.client(0).map("doors"), mesh.client(1).map("doors"));
    let first = soon(here.put("floor/1", "open")).await.unwrap();
    let found = soon(there.get("floor/1")).await.unwrap();
    assert_eq!(found, Some((b"open".to_vec(), first)));
    let second = soon(there.compare_and_set("floor/1", first, "shut"))
        .await
        .unwrap();
    assert!(second > first);
    let late = soon(here.compare_and_set("floor/1", first, "open")).await;
    assert_eq!(late.unwrap_err().kind(), Some(Kind::Mismatch));
    let again = soon(here.compare_and_set("floor/1", 0, "open")).await;
    assert_eq!(again.unwrap_err().kind(), Some(Kind::Mismatch));
    // No text.
    soon(here.put("floor/2", &[0xff, 0][..])).await.unwrap();
    let all = soon(there.list_all("floor/")).await.unwrap();
    let values: Vec<&[u8]> = all.entries.iter().map(|it| &it.value.0[..]).collect();
    assert_eq!(values, [&b"shut"[..], &[0xff, 0][..]]);
    let swap = Transaction::new()
        .when("floor/1", second)
        .then(Step::put("floor/1", "moved"))
        .then(Step::remove("floor/2"));
    soon(here.transact(&swap)).await.unwrap();
    let failed = soon(here.transact(&swap)).await.unwrap_err();
    assert_eq!(failed.kind(), Some(Kind::Mismatch));
    let all = soon(there.list_all("")).await.unwrap();
    assert_eq!(all.entries.len(), 1);
    soon(here.delete("floor/1", None)).await.unwrap();
    assert_eq!(soon(there.get("floor/1")).await.unwrap(), None);
}

#[tokio::test]
async fn a_watch_reports_changes_since_a_version_and_an_entry_with_a_time_to_live_goes() {
    let mesh = Mesh::start(3).await;
    let (here, there) = (mesh.client(0).map("doors"), mesh.client(1).map("doors"));
    let version = soon(here.put("a", "1")).await.unwrap();
    let mut all = soon(there.watch("", None)).await.unwrap();
    let mut later = soon(there.watch("", Some(version))).await.unwrap();
    let MapEvent::Changed { changes, .. } = soon(all.next()).await.unwrap() else {
        panic!("the present entries");
    };
    assert_eq!(changes[0].key, "a");
    soon(here.put_for("b", "2", TTL)).await.unwrap();
    for removed in [false, true] {
        let MapEvent::Changed { changes, .. } = soon(later.next()).await.unwrap() else {
            panic!("a change");
        };
        assert_eq!(
            (changes[0].key.as_str(), changes[0].entry.is_none()),
            ("b", removed)
        );
    }
}

#[tokio::test]
async fn queues_and_counters_are_shared() {
    let mesh = Mesh::start(3).await;
    let (here, there) = (mesh.client(0), mesh.client(1));
    for item in ["1", "2"] {
        soon(here.push("jobs", item)).await.unwrap();
    }
    assert_eq!(soon(there.pop("jobs")).await.unwrap(), b"1");
    assert_eq!(soon(here.pop("jobs")).await.unwrap(), b"2");
    let waits = async { soon(there.pop("jobs")).await.unwrap() };
    let pushes = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        soon(here.push("jobs", "3")).await.unwrap();
    };
    assert_eq!(tokio::join!(waits, pushes).0, b"3");
    let (a, b) = tokio::join!(here.add("visits", 2), there.add("visits", 3));
    assert_eq!(a.unwrap().max(b.unwrap()), 5);
    assert_eq!(soon(there.count("visits")).await.unwrap(), 5);
}

#[tokio::test]
async fn a_service_is_listed_while_its_program_is_here() {
    let mesh = Mesh::start(3).await;
    let (here, there) = (mesh.client(0), mesh.client(1));
    let mut seen = soon(there.follow("web")).await.unwrap();
    let one = soon(here.register("web", None, "192.0.2.1:80", LONG)).await;
    let one = one.unwrap();
    let two = soon(here.register("web", Some(9), "192.0.2.9:80", LONG)).await;
    let _two = two.unwrap();
    until(async || there.resolve("web").await.unwrap().len() == 2).await;
    one.release().await.unwrap();
    loop {
        let listed = soon(seen.next()).await.unwrap();
        if listed.len() == 1 && listed[0].instance == 9 {
            break;
        }
    }
}
