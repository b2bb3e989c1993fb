//! The output and the status of commands.

use crate::fake::Fake;
use crate::{command, run};

#[tokio::test]
async fn members_and_info() {
    let fake = Fake::start().await;
    let member = r#"{"id":7,"incarnation":3,"status":"alive","address":"10.0.0.1:7","round_trip_us":1260,"tags":{"a":"1","b":"\u001b[2J"}}"#;
    let members =
        format!(r#"[{member},{{"id":1000,"incarnation":1,"status":"failed","address":null}}]"#);
    fake.answers(200, members.clone());
    let table = concat!(
        "ID    INCARNATION  STATUS  ADDRESS     ROUND TRIP  TAGS\n",
        "7     3            alive   10.0.0.1:7  1.3 ms      a=1 b=\u{fffd}[2J\n",
        "1000  1            failed\n",
    );
    assert_eq!(
        run(&fake, &["members"]).await,
        (0, table.into(), String::new())
    );
    assert_eq!(fake.request(), "GET /v1/members?wait=10000ms");
    fake.answers(200, members);
    let (status, text, _) = run(&fake, &["members", "--json"]).await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((status, lines.len(), lines[0]), (0, 2, member));

    let info = r#"{"id":1,"incarnation":2,"address":null,"version":"0.1","is_in":true,"is_leader":false,"generation":null,"nodes":[1,4]}"#;
    fake.answers(200, info);
    assert_eq!(
        run(&fake, &["info", "--json"]).await,
        (0, format!("{info}\n"), String::new())
    );
    fake.answers(200, info);
    let (status, text, _) = run(&fake, &["info"]).await;
    assert!(
        status == 0 && text.ends_with("nodes of maps  1 4\n"),
        "{text}"
    );
}

#[tokio::test]
async fn streams_end_with_an_error_when_the_agent_does() {
    let fake = Fake::start().await;
    for (arguments, line) in [
        (&["monitor"][..], "message n v\n"),
        (
            &["monitor", "--json"],
            "{\"event\":\"message\",\"data\":{\"name\":\"n\",\"from\":4,\"value\":\"v\"}}\n",
        ),
    ] {
        let events = fake.streams();
        let message = "event: message\ndata: {\"name\":\"n\",\"from\":4,\"value\":\"v\"}\n\n";
        events.send(Ok(message.to_owned())).unwrap();
        drop(events);
        let (status, text, error) = run(&fake, arguments).await;
        assert_eq!((status, &*text), (1, line));
        assert!(
            error.starts_with("selvedge-agent: the agent closed"),
            "{error}"
        );
    }
    let events = fake.streams();
    events
        .send(Ok("event: compacted\ndata: {}\n\n".to_owned()))
        .unwrap();
    drop(events);
    let (_, text, _) = run(&fake, &["map", "watch", "m", "--json"]).await;
    assert_eq!(text, "{\"event\":\"compacted\"}\n");
}

#[tokio::test]
async fn requests_of_the_mesh() {
    let fake = Fake::start().await;
    for (arguments, request) in [
        (&["leave"][..], "POST /v1/leave?wait=10000ms"),
        (&["confirm", "7"], "POST /v1/members/7/confirm?wait=10000ms"),
        (&["nodes", "add", "8"], "POST /v1/nodes/8/add?wait=10000ms"),
        (
            &["nodes", "remove", "7"],
            "POST /v1/nodes/7/remove?wait=10000ms",
        ),
        (&["event", "n", "v"], "POST /v1/messages/n?wait=10000ms v"),
        (
            &["tags", "a=1", "b=x=y"],
            r#"PUT /v1/tags?wait=10000ms {"a":"1","b":"x=y"}"#,
        ),
    ] {
        fake.answers(200, "{}");
        assert_eq!(
            run(&fake, arguments).await,
            (0, String::new(), String::new())
        );
        assert_eq!(fake.request(), request);
    }
}

#[tokio::test]
async fn a_query_prints_the_answer_of_each_member() {
    let fake = Fake::start().await;
    let answers =
        r#"{"asked":[1,2],"answers":[{"from":2,"value":"x"},{"from":1,"value_base64":"/w=="}]}"#;
    for (arguments, output) in [
        (
            &["query", "n", "v"][..],
            "ID  ANSWER\n2   x\n1   (1 bytes)\n",
        ),
        (
            &["query", "n", "v", "--json"],
            "{\"from\":2,\"value\":\"x\"}\n{\"from\":1,\"value_base64\":\"/w==\"}\n",
        ),
    ] {
        fake.answers(200, answers);
        assert_eq!(
            run(&fake, arguments).await,
            (0, output.to_owned(), String::new())
        );
        assert_eq!(fake.request(), "POST /v1/queries/n?wait=2000ms v");
    }
}

/// A program that fails gives no answer, and other questions are not its own.
#[tokio::test]
async fn a_program_answers_each_question_with_its_name() {
    let fake = Fake::start().await;
    let events = fake.streams();
    for (question, name, value) in [
        ("4.1.7", "n", "a"),
        ("4.1.8", "m", "a"),
        ("4.1.9", "n", "no"),
        ("4.1.10", "n", "b"),
        ("4.1.11", "n", "long"),
    ] {
        let question = format!(
            "event: question\ndata: {{\"question\":\"{question}\",\"name\":\"{name}\",\"from\":4,\"left_ms\":9000,\"value\":\"{value}\"}}\n\n"
        );
        events.send(Ok(question)).unwrap();
    }
    fake.answers(200, "{}");
    fake.answers(404, r#"{"error":"it is over","kind":"not_found"}"#);
    fake.answers(413, r#"{"error":"it is long","kind":"too_large"}"#);
    drop(events);
    let script = r#"read -r it; [ "$it" != long ] || exec yes; echo "$it-"; [ "$it" != no ]"#;
    let (status, text, error) = run(&fake, &["answer", "n", "--", "sh", "-c", script]).await;
    assert_eq!((status, &*text), (1, "ready\n"));
    assert_eq!(fake.request(), "GET /v1/monitor?wait=10000ms");
    assert_eq!(fake.request(), "POST /v1/answers/4.1.7?wait=10000ms a-\n");
    assert_eq!(fake.request(), "POST /v1/answers/4.1.10?wait=10000ms b-\n");
    // It writes without an end.
    let long = fake.request();
    let (call, output) = long.split_once(' ').unwrap().1.split_once(' ').unwrap();
    assert_eq!(call, "/v1/answers/4.1.11?wait=10000ms");
    assert_eq!(output.len(), 513);
    let reported = ["it is over", "it is long"].map(|it| format!("selvedge-agent: {it}"));
    assert!(reported.iter().all(|it| error.contains(it)), "{error}");
}

#[tokio::test]
async fn a_program_that_is_slow_skips_questions_that_are_over() {
    let fake = Fake::start().await;
    let events = fake.streams();
    for (question, left, value) in [
        ("1.0.1", 9_000, "slow"),
        ("1.0.2", 300, "b"),
        ("1.0.3", 9_000, "c"),
    ] {
        let data = format!(
            r#"{{"question":"{question}","name":"n","from":1,"left_ms":{left},"value":"{value}"}}"#
        );
        let event = format!("event: question\ndata: {data}\n\n");
        events.send(Ok(event)).unwrap();
    }
    fake.answers(200, "{}");
    fake.answers(200, "{}");
    drop(events);
    let script = r#"read -r it; [ "$it" != slow ] || sleep 1; echo "$it""#;
    run(&fake, &["answer", "n", "--", "sh", "-c", script]).await;
    assert_eq!(fake.request(), "GET /v1/monitor?wait=10000ms");
    assert_eq!(fake.request(), "POST /v1/answers/1.0.1?wait=10000ms slow\n");
    assert_eq!(fake.request(), "POST /v1/answers/1.0.3?wait=10000ms c\n");
}

#[tokio::test]
async fn maps_queues_counters_and_services() {
    let fake = Fake::start().await;
    for (arguments, answer, output) in [
        (&["map", "get", "m", "k"][..], "v\nw", "v\nw"),
        (&["map", "put", "m", "k", "v"], r#"{"version":8}"#, "8\n"),
        (
            &["map", "cas", "m", "k", "0", "v"],
            r#"{"version":8}"#,
            "8\n",
        ),
        (&["map", "del", "m", "k"], r#"{"version":8}"#, "8\n"),
        (&["queue", "push", "q", "v"], r#"{"version":8}"#, "8\n"),
        (&["queue", "pop", "q"], "item", "item"),
        (&["counter", "get", "c"], r#"{"value":4}"#, "4\n"),
        (&["counter", "add", "c", "-3"], r#"{"value":1}"#, "1\n"),
        (
            &["resolve", "r"],
            r#"[{"instance":1,"address":"a:1"}]"#,
            "INSTANCE  ADDRESS\n1         a:1\n",
        ),
        (
            &["resolve", "r", "--json"],
            r#"[{"instance":1,"address":"a:1"}]"#,
            "{\"instance\":1,\"address\":\"a:1\"}\n",
        ),
    ] {
        fake.answers(200, answer);
        assert_eq!(
            run(&fake, arguments).await,
            (0, output.to_owned(), String::new())
        );
    }
    // All parts of a list.
    let entry =
        |key| format!(r#"{{"key":"{key}","value":"v","version":5,"created":4,"session":null}}"#);
    for (key, is_last) in [("a", false), ("b", true)] {
        let entry = entry(key);
        fake.answers(
            200,
            format!(r#"{{"entries":[{entry}],"version":5,"is_last":{is_last}}}"#),
        );
    }
    let (status, text, _) = run(&fake, &["map", "list", "m", "--json"]).await;
    assert_eq!(
        (status, text),
        (0, format!("{}\n{}\n", entry("a"), entry("b")))
    );
}

#[tokio::test]
async fn the_status_names_the_kind_of_an_error() {
    let fake = Fake::start().await;
    for (kind, expected) in [("bad_request", 2), ("timeout", 124), ("full", 1)] {
        fake.answers(400, format!(r#"{{"error":"use\nless","kind":"{kind}"}}"#));
        let (status, text, error) = run(&fake, &["counter", "get", "c"]).await;
        assert_eq!((status, &*text), (expected, ""));
        assert_eq!(error, "selvedge-agent: use\u{fffd}less\n");
    }
    for (arguments, expected) in [
        (&["lock", "l", "--agent", "nowhere", "--", "true"][..], 2),
        (&["lock", "l"], 2),
        (&["tags", "a"], 2),
        (
            &["map", "get", "--token-file", "/no/such/file", "m", "k"],
            1,
        ),
        (&["info", "--agent", "unix:/no/such/socket"], 1),
    ] {
        let (status, _, error) = run(&fake, arguments).await;
        assert_eq!(status, expected, "{error}");
    }
    fake.answers(404, r#"{"error":"none","kind":"not_found"}"#);
    let (status, _, error) = run(&fake, &["map", "get", "m", "k"]).await;
    assert_eq!(
        (status, &*error),
        (
            1,
            "selvedge-agent: there is no entry \"k\": list the entries\n"
        )
    );
    for arguments in [
        &["map", "get", "m", "k"][..],
        &["map", "get", "m", "k", "--version"],
    ] {
        fake.answers(404, r#"{"error":"nothing at this path","kind":"no_path"}"#);
        let (status, text, error) = run(&fake, arguments).await;
        assert_eq!(
            (status, &*text, &*error),
            (1, "", "selvedge-agent: nothing at this path\n")
        );
    }
}

#[tokio::test]
async fn a_unix_socket_and_a_file_with_a_token() {
    let name =
        |end| std::env::temp_dir().join(format!("selvedge-commands-{}.{end}", std::process::id()));
    let (socket, file) = (name("sock"), name("token"));
    let fake = Fake::at(socket.to_str().unwrap());
    std::fs::write(&file, "secret\n").unwrap();
    fake.answers(200, r#"{"value":4}"#);
    let arguments = [
        "counter",
        "get",
        "c",
        "--token-file",
        file.to_str().unwrap(),
    ];
    assert_eq!(run(&fake, &arguments).await.0, 0);
    assert_eq!(
        fake.request(),
        "GET /v1/counters/c?wait=10000ms Bearer secret"
    );
    fake.answers(200, r#"{"value":4}"#);
    let mut command = command(&fake, &["counter", "get", "c"]);
    command.env("SELVEDGE_AGENT_TOKEN_FILE", &file);
    assert!(command.output().await.unwrap().status.success());
    assert_eq!(
        fake.request(),
        "GET /v1/counters/c?wait=10000ms Bearer secret"
    );
    std::fs::remove_file(socket).unwrap();
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn holders_and_candidates() {
    let fake = Fake::start().await;
    let place = |session: &str, shared: bool, has: bool| {
        format!(
            r#"{{"member":7,"session":"{session}","token":{{"map":"0a","version":3}},"is_shared":{shared},"has_it":{has}}}"#
        )
    };
    let line = [
        place("7.0.1", true, true),
        place("7.0.2", false, false),
        place("7.0.3", true, false),
    ];
    fake.answers(200, format!("[{}]", line.join(",")));
    let table = concat!(
        "MEMBER  SESSION  TOKEN  STATE\n",
        "7       7.0.1    0a:3   shares it\n",
        "7       7.0.2    0a:3   waits\n",
        "7       7.0.3    0a:3   waits to share\n",
    );
    let found = run(&fake, &["holders", "door"]).await;
    assert_eq!(found, (0, table.into(), String::new()));
    assert_eq!(fake.request(), "GET /v1/locks/door?wait=10000ms");
    fake.answers(200, format!("[{}]", place("7.0.1", false, true)));
    let (_, text, _) = run(&fake, &["holders", "door", "--json"]).await;
    assert_eq!(text, format!("{}\n", place("7.0.1", false, true)));
    fake.request();

    fake.answers(
        200,
        r#"[{"value":"192.0.2.7:80","priority":5,"session":"7.0.1"}]"#,
    );
    let table = "PRIORITY  SESSION  VALUE\n5         7.0.1    192.0.2.7:80\n";
    let found = run(&fake, &["candidates", "heating"]).await;
    assert_eq!(found, (0, table.into(), String::new()));
    assert_eq!(
        fake.request(),
        "GET /v1/elections/heating/candidates?wait=10000ms"
    );
}

#[tokio::test]
async fn a_reload_that_fails_in_part_has_a_status() {
    let fake = Fake::start().await;
    let answer = |outcome: &str| {
        let part = format!(r#"{{"part":"keys","outcome":"{outcome}","detail":"the keys"}}"#);
        format!(r#"{{"parts":[{part}],"at_next_start":["http","listen"]}}"#)
    };
    let printed = "the keys\nat the next start: http, listen\n";
    for (outcome, status) in [("applied", 0), ("unchanged", 0), ("failed", 1)] {
        fake.answers(200, answer(outcome));
        let found = run(&fake, &["reload"]).await;
        assert_eq!(found, (status, printed.into(), String::new()));
        assert_eq!(fake.request(), "POST /v1/reload?wait=10000ms");
    }
    fake.answers(200, answer("applied"));
    let (_, text, _) = run(&fake, &["reload", "--json"]).await;
    assert_eq!(text, format!("{}\n", answer("applied")));
}

#[tokio::test]
async fn a_leadership_is_handed_over_to_a_member_or_a_session() {
    let fake = Fake::start().await;
    let candidate =
        |session: &str| format!(r#"{{"value":"v","priority":5,"session":"{session}"}}"#);
    let candidates = ["77.0.4", "7.0.1", "7.0.2"].map(candidate).join(",");
    for (to, question) in [
        (&["--wait", "1m", "--to", "7"][..], "to=7.0.1&wait=60000ms"),
        (&["--to", "7.0.2"], "to=7.0.2&wait=10000ms"),
        (&[], "wait=10000ms"),
    ] {
        if to.last() == Some(&"7") {
            fake.answers(200, format!("[{candidates}]"));
        }
        fake.answers(200, "{}");
        let arguments = [&["hand-over", "heating"], to].concat();
        assert_eq!(run(&fake, &arguments).await.0, 0);
        if to.last() == Some(&"7") {
            let request = "GET /v1/elections/heating/candidates?wait=10000ms";
            assert_eq!(fake.request(), request);
        }
        let request = format!("POST /v1/elections/heating/hand-over?{question}");
        assert_eq!(fake.request(), request);
    }
    fake.answers(200, "[]");
    let (status, _, error) = run(&fake, &["hand-over", "heating", "--to", "7"]).await;
    assert_eq!(status, 3);
    assert!(error.contains("no candidate \"7\" waits"), "{error}");
}
