//! The audit: its lines, and their loss.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use selvedge_client::{Agent, Step, Transaction};
use serde_json::{Value, json};

use super::operations::{ALONE, BRIEF, address, alone, path, spawn};
use super::{LONG, Mesh, curl, soon, until};

/// The lines of an audit, without their times and without the caller.
pub(crate) fn audited(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    // The last line may be written just now.
    let whole = text.rsplit_once('\n').unwrap_or_default().0;
    let lines = whole.lines().map(|it| {
        let mut line: Value = serde_json::from_str(it).unwrap();
        let fields = line.as_object_mut().unwrap();
        assert!(
            fields
                .remove("time")
                .unwrap()
                .as_str()
                .unwrap()
                .ends_with('Z')
        );
        for caller in ["uid", "pid", "address", "role", "signal"] {
            fields.remove(caller);
        }
        line
    });
    lines.collect()
}

#[tokio::test]
async fn each_change_is_in_the_audit_without_values() {
    const SECRET: &str = "s3cret-value";
    let mut mesh = Mesh::start(0).await;
    let (audit, name) = path(&mesh, "audit");
    alone(&mut mesh, &["--audit", &name]).await;
    let client = mesh.client(0);
    // One map for all: to begin a map takes a while.
    let map = client.map("locks");
    soon(map.put("a/b c", SECRET)).await.unwrap();
    soon(map.get("a/b c")).await.unwrap();
    let change = Transaction::new()
        .then(Step::put("c", SECRET))
        .then(Step::remove("a/b c"));
    soon(map.transact(&change)).await.unwrap();
    let (status, _) = mesh.curl(0, &["-X", "POST"], "/v1/locks/gate?ttl=1s");
    assert_eq!(status, 200);
    drop(soon(client.lock("yard", LONG)).await.unwrap());
    let both = soon(client.lock_all(&["tape", "robot"], LONG))
        .await
        .unwrap();
    let hold = both.info().hold.clone();
    both.release().await.unwrap();
    // A client that goes while it waits.
    let held = soon(client.lock("door", LONG)).await.unwrap();
    let waits = client.clone();
    let waits = tokio::spawn(async move { waits.lock("door", LONG).await });
    until(async || client.lock_places("door").await.unwrap().len() == 2).await;
    waits.abort();
    assert_eq!(mesh.curl(0, &["-X", "DELETE"], "/v1/holds/17").0, 404);
    let line = |call: &str, on: Value, status: u16, outcome: &str| json!({"call": call, "on": on, "status": status, "outcome": outcome});
    let end = |kind: &str, name: &str, outcome: &str| {
        let on = json!({"kind": kind, "name": name});
        json!({"call": "end", "on": on, "outcome": outcome})
    };
    let name = |name: &str| json!({"name": name});
    let names = json!({"names": ["tape", "robot"]});
    let entry = json!({"map": "locks", "key": "a/b c"});
    let keys = json!({"map": "locks", "keys": ["c", "a/b c"]});
    let held_before = json!({"kind": "lock", "name": "tape, robot"});
    let lock = "POST /v1/locks/{name}";
    let expected = [
        line("PUT /v1/maps/{map}/entries/{*key}", entry, 200, "done"),
        line("POST /v1/maps/{map}/transaction", keys, 200, "done"),
        line(lock, name("gate"), 200, "done"),
        // Its time to live is over.
        end("lock", "gate", "expired"),
        line(lock, name("yard"), 200, "done"),
        end("lock", "yard", "disconnected"),
        line("POST /v1/locks", names, 200, "done"),
        end("lock", "tape, robot", "released"),
        line("DELETE /v1/holds/{hold}", held_before, 200, "done"),
        line(lock, name("door"), 200, "done"),
        json!({"call": lock, "on": name("door"), "outcome": "unanswered"}),
        line("DELETE /v1/holds/{hold}", json!({}), 404, "not_found"),
    ];
    until(async || audited(&audit).len() == expected.len()).await;
    // The ends of holds come at any time.
    let sorted = |lines: &[Value]| {
        let mut lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&audited(&audit)), sorted(&expected));
    let text = fs::read_to_string(&audit).unwrap();
    assert!(!text.contains(SECRET) && !text.contains(&hold), "{text}");
    assert_eq!(fs::metadata(&audit).unwrap().mode() & 0o007, 0);
    drop(held);
}

#[tokio::test]
async fn the_audit_names_the_client_and_each_one_that_is_refused() {
    const ALL: &str = "all-0123456789abcdef";
    const READERS: &str = "readers-0123456789abcdef";
    let mut mesh = Mesh::start(0).await;
    let (audit, name) = path(&mesh, "audit");
    let (_, socket) = path(&mesh, "agent.sock");
    let token = |name: &str, token: &str| {
        let (file, text) = path(&mesh, name);
        fs::write(&file, token).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        text
    };
    let (all, readers) = (token("all", ALL), token("readers", READERS));
    let tokens = ["--token-file", &all, "--readers-token-file", &readers];
    let more = ["--audit", &name, "--socket", &socket];
    let running = mesh.run(1, &[&ALONE[..], &tokens, &more].concat()).await;
    let url = format!("http://{}", running.http);
    mesh.agents.push(running);
    let unix = Agent::new(&format!("unix:{socket}")).unwrap();
    soon(unix.map("m").put("a", "1")).await.unwrap();
    let entry = format!("{url}/v1/maps/m/entries/a");
    let bearer = |token: &str| format!("authorization: Bearer {token}");
    assert_eq!(curl(&["-X", "PUT", "-H", &bearer(ALL)], &entry).0, 200);
    assert_eq!(curl(&["-H", &bearer(READERS)], &entry).0, 200);
    assert_eq!(curl(&["-X", "PUT", "-H", &bearer(READERS)], &entry).0, 403);
    assert_eq!(
        curl(&["-H", &bearer("wrong-0123456789abcdef")], &entry).0,
        401
    );
    let none = format!("{url}/v1/no/such?token=x");
    assert_eq!(curl(&[], &none).0, 401);
    assert_eq!(curl(&["-X", "BREW"], &entry).0, 401);
    let id = mesh.agents[0].process.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-HUP", &id]).status().unwrap();
    assert!(sent.success());
    until(async || audited(&audit).len() == 7).await;
    let text = fs::read_to_string(&audit).unwrap();
    let mut found = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let by = match (
            &line["uid"],
            &line["pid"],
            &line["address"],
            &line["signal"],
        ) {
            (uid, pid, Value::Null, Value::Null) => {
                assert_eq!(uid, fs::metadata(&audit).unwrap().uid());
                assert_eq!(pid, std::process::id());
                "unix"
            }
            (_, _, Value::String(address), _) => {
                assert!(address.starts_with("127.0.0.1:"), "{address}");
                "tcp"
            }
            (_, _, _, signal) => signal.as_str().unwrap().to_owned().leak(),
        };
        let text = |it: &Value| it.as_str().unwrap_or("-").to_owned();
        found.push(format!(
            "{by} {} {} {}",
            text(&line["role"]),
            text(&line["call"]),
            text(&line["outcome"])
        ));
    }
    let entry = "/v1/maps/{map}/entries/{*key}";
    assert_eq!(
        found,
        [
            format!("unix open PUT {entry} done"),
            format!("tcp full PUT {entry} done"),
            format!("tcp reader PUT {entry} forbidden"),
            format!("tcp none GET {entry} unauthorized"),
            "tcp none GET (no such path) unauthorized".to_owned(),
            format!("tcp none (other) {entry} unauthorized"),
            "SIGHUP - reload done".to_owned(),
        ]
    );
    let parts = json!({"applied": ["audit"], "failed": []});
    assert_eq!(audited(&audit).last().unwrap()["on"], parts);
    for secret in [ALL, READERS, "wrong", "token"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

/// The device takes no byte.
#[tokio::test]
async fn lost_lines_of_the_audit_are_counted_and_in_the_log_once() {
    let mut mesh = Mesh::start(0).await;
    let (log, log_name) = path(&mesh, "log");
    let agent = spawn(
        &mut mesh,
        &["--log", &log_name, "--audit", "/dev/full"],
        None,
    );
    let client = Agent::new(&address(&log).await).unwrap();
    for _ in 0..3 {
        soon(client.send("alarm", "fire")).await.unwrap();
    }
    let url = address(&log).await;
    until(async || {
        let (_, metrics) = curl(&[], &format!("{url}/metrics"));
        metrics.contains("selvedge_audit_lines_total{outcome=\"lost\"} 3")
            && metrics.contains("selvedge_audit_lines_total{outcome=\"written\"} 0")
    })
    .await;
    // The log has its own thread.
    until(async || fs::read_to_string(&log).unwrap().contains("are lost")).await;
    let text = fs::read_to_string(&log).unwrap();
    let lost = text.lines().filter(|it| it.contains("are lost"));
    assert_eq!(lost.count(), 1, "{text}");
    assert!(
        text.contains("Z error lines of the audit are lost: /dev/full: "),
        "{text}"
    );
    drop(agent);
}

/// The last lines are written before the process ends.
#[tokio::test]
async fn the_end_of_an_agent_and_of_its_holds_is_in_the_audit() {
    let mut mesh = Mesh::start(0).await;
    let (audit, name) = path(&mesh, "audit");
    alone(&mut mesh, &["--audit", &name]).await;
    let held = soon(mesh.client(0).lock("door", BRIEF)).await.unwrap();
    let id = mesh.agents[0].process.id().unwrap().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(sent.success());
    soon(mesh.agents[0].process.wait()).await.unwrap();
    let lines = audited(&audit);
    let calls: Vec<_> = lines
        .iter()
        .map(|it| it["call"].as_str().unwrap())
        .collect();
    assert_eq!(calls, ["POST /v1/locks/{name}", "leave", "end"]);
    assert_eq!(lines[2]["outcome"], "agent_leaves");
    drop(held);
}
