//! Requests that are refused, tokens, and the description of the API.

use std::fs;

use selvedge_client::Agent;

use super::{Mesh, curl, soon};

const DESCRIPTION: &str = include_str!("../../src/api/openapi.json");

#[tokio::test]
async fn wrong_requests_have_typed_answers() {
    let mesh = Mesh::start(1).await;
    let long = "x".repeat(70_000);
    let key = format!("/v1/maps/m/entries/{}", "k".repeat(300));
    for (method, path, body, status, kind) in [
        ("GET", "/v1/nothing", "", 404, "no_path"),
        ("GET", "/v1/maps/m/entries/absent", "", 404, "not_found"),
        ("PUT", "/v1/maps/m/entries", "", 400, "bad_request"),
        (
            "PUT",
            "/v1/maps/m/entries/a?vesion=1",
            "",
            400,
            "bad_request",
        ),
        (
            "PUT",
            "/v1/maps/m/entries/a?version=x",
            "",
            400,
            "bad_request",
        ),
        (
            "PUT",
            "/v1/maps/m/entries/a?session=1.2",
            "",
            400,
            "bad_request",
        ),
        (
            "PUT",
            "/v1/maps/m/entries/a?session=1.2.3",
            "",
            410,
            "session_over",
        ),
        (
            "PUT",
            "/v1/maps/m/entries/a?ttl=1s&version=0",
            "",
            400,
            "bad_request",
        ),
        (
            "PUT",
            "/v1/maps/m/entries/a?ttl=1ms",
            "",
            400,
            "bad_request",
        ),
        ("PUT", "/v1/maps/m/entries/a?version=9", "", 409, "mismatch"),
        ("PUT", &key, "", 400, "bad_request"),
        (
            "PUT",
            "/v1/maps/m/entries/b",
            &"x".repeat(5_000),
            413,
            "too_large",
        ),
        ("POST", "/v1/elections/e?wait=0s", "", 400, "bad_request"),
        ("PUT", "/v1/maps/m/entries/a", &long, 413, "too_large"),
        ("POST", "/v1/maps/m/transaction", "", 400, "bad_request"),
        (
            "POST",
            "/v1/maps/m/transaction",
            r#"{"then":[{"put":{"key":"a","vale":"b"}}]}"#,
            400,
            "bad_request",
        ),
        (
            "POST",
            "/v1/maps/m/transaction",
            r#"{"then":[{"put":{"key":"a","value_base64":"?"}}]}"#,
            400,
            "bad_request",
        ),
        (
            "POST",
            "/v1/maps/m/transaction",
            r#"{"then":[{"put":{"key":"a","value":"b","value_base64":"Yg=="}}]}"#,
            400,
            "bad_request",
        ),
        ("POST", "/v1/locks/l?ttl=5", "", 400, "bad_request"),
        ("POST", "/v1/locks/l?ttl=2days", "", 400, "bad_request"),
        ("POST", "/v1/semaphores/s", "", 400, "bad_request"),
        ("POST", "/v1/counters/c?add=many", "", 400, "bad_request"),
        ("DELETE", "/v1/queues/q?wait=0s", "", 408, "timeout"),
        ("PUT", "/v1/holds/0123456789abcdef", "", 404, "not_found"),
        ("DELETE", "/v1/holds/x", "", 404, "not_found"),
        ("PUT", "/v1/tags", r#"{"a":1}"#, 400, "bad_request"),
        (
            "PUT",
            "/v1/tags",
            &format!(r#"{{"a":"{}"}}"#, "x".repeat(600)),
            413,
            "too_large",
        ),
        (
            "POST",
            &format!("/v1/messages/{}", "n".repeat(300)),
            "",
            413,
            "too_large",
        ),
        (
            "POST",
            &format!("/v1/queries/{}", "n".repeat(300)),
            "",
            413,
            "too_large",
        ),
        ("POST", "/v1/queries/n?wait=0s", "", 400, "bad_request"),
        ("POST", "/v1/answers/9.0.1", "", 404, "not_found"),
        ("POST", "/v1/answers/9.0", "", 400, "bad_request"),
        (
            "POST",
            "/v1/answers/9.0.1",
            &"x".repeat(600),
            413,
            "too_large",
        ),
        ("POST", "/v1/members/9/confirm", "", 404, "not_found"),
        ("POST", "/v1/members/x/confirm", "", 400, "bad_request"),
        ("GET", "/v1/maps/m/entries/%ff", "", 400, "bad_request"),
        (
            "GET",
            &format!("/v1/maps/m/entries?prefix={}", "p".repeat(4_100)),
            "",
            414,
            "too_large",
        ),
        ("POST", "/v1/nodes/1/remove", "", 409, "mismatch"),
    ] {
        let data = mesh.dir.join("body");
        fs::write(&data, body).unwrap();
        let data = format!("@{}", data.display());
        let mut arguments = vec!["-X", method];
        if method != "GET" {
            arguments.extend(["--data-binary", &data]);
        }
        let (found, answer) = mesh.curl(0, &arguments, path);
        let path = path.get(..60).unwrap_or(path);
        assert_eq!(found, status, "{method} {path}: {answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["kind"], kind, "{method} {path}: {answer}");
        assert!(answer["error"].as_str().is_some_and(|it| it.len() > 10));
    }
}

#[tokio::test]
async fn each_described_path_is_there() {
    let mesh = Mesh::start(1).await;
    let description: serde_json::Value = serde_json::from_str(DESCRIPTION).unwrap();
    let (_, served) = mesh.curl(0, &[], "/v1/openapi.json");
    assert!(serde_json::from_str::<serde_json::Value>(&served).unwrap() == description);
    let mut tried = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path
            .replace("{id}", "77")
            .replace("{hold}", "0123456789abcdef");
        let path = path.replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            // It ends the process.
            if path == "/v1/leave" {
                continue;
            }
            let method = method.to_uppercase();
            let (status, answer) = mesh.curl(
                0,
                &["-X", &method, "-m", "2"],
                &format!("{path}?wait=100ms"),
            );
            let is_there = !answer.contains("nothing at this path") && ![0, 405].contains(&status);
            assert!(is_there, "{method} {path}: {status} {answer}");
            assert!(!answer.contains("other methods"), "{method} {path}");
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
    assert_eq!(mesh.curl(0, &[], "/v1/info").0, 200);
}

#[tokio::test]
async fn tokens_and_the_socket_let_programs_in() {
    const ALL: &str = "all-0123456789abcdef";
    const READERS: &str = "readers-0123456789abcdef";
    let mut mesh = Mesh::start(1).await;
    let (all, readers) = (mesh.dir.join("all"), mesh.dir.join("readers"));
    let socket = mesh.dir.join("agent.sock");
    for (path, token) in [(&all, ALL), (&readers, READERS)] {
        fs::write(path, token).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(path, mode).unwrap();
    }
    let text = format!(
        "token-file = {all:?}\nreaders-token-file = {readers:?}\nsocket = {socket:?}\n[tags]\nfloor = \"1\"\n"
    );
    let file = mesh.dir.join("agent.toml");
    fs::write(&file, text).unwrap();
    mesh.kill(0).await;
    let client = |token: &str, at: usize, mesh: &Mesh| {
        let agent = Agent::new(&format!("http://{}", mesh.agents[at].http)).unwrap();
        agent.with_token(token).unwrap()
    };
    let unix = Agent::new(&format!("unix:{}", socket.display())).unwrap();
    let file = file.display().to_string();
    mesh.agents[0] = mesh.run(1, &["--config", &file]).await;
    soon(unix.map("m").put("a", "1")).await.unwrap();
    assert_eq!(unix.members().await.unwrap()[0].tags["floor"], "1");
    let mode = fs::metadata(&socket).unwrap();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777,
        0o600
    );
    let readers = client(READERS, 0, &mesh);
    assert!(soon(readers.map("m").get("a")).await.unwrap().is_some());
    assert!(soon(readers.map("m").put("a", "2")).await.is_err());
    let all = client(ALL, 0, &mesh);
    soon(all.map("m").put("a", "3")).await.unwrap();
    let url = format!("http://{}/v1/info", mesh.agents[0].http);
    let change = format!("authorization: Bearer {READERS}");
    for (arguments, status, kind) in [
        (&["-i"][..], 401, "unauthorized"),
        (&["-i", "-X", "POST", "-H", &change], 403, "forbidden"),
    ] {
        let (found, answer) = curl(arguments, &url);
        assert_eq!(found, status, "{answer}");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let asks_for_a_token = head.contains("www-authenticate: Bearer");
        assert_eq!(asks_for_a_token, status == 401, "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["kind"], kind);
    }
}
