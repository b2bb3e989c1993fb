//! Programs that run while something is held.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::fake::{Fake, Sender};
use crate::{command, command_by, run};

const HELD: &str = concat!(
    "event: held\n",
    r#"data: {"hold":"00ff","kind":"lock","name":"l","token":{"map":"0a","version":3},"#,
    r#""session":"s1","ttl_ms":10000,"is_held":true,"alive_for_ms":8750}"#,
    "\n\n"
);
const ENDLESS: &str = "while :; do sleep 0.1; done";
const TRAPS: &str =
    "trap 'exit 8' INT; trap 'exit 9' TERM; trap 'exit 10' HUP; trap 'exit 11' QUIT; ";
/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn held(fake: &Fake) -> Sender {
    let events = fake.streams();
    events.send(Ok(HELD.to_owned())).unwrap();
    events
}

fn send(events: &Sender, name: &str) {
    events
        .send(Ok(format!("event: {name}\ndata: {{}}\n\n")))
        .unwrap();
}

/// A lock that is held while a shell runs a script, which prints its number when its traps are set.
struct Running {
    lock: Child,
    output: BufReader<ChildStdout>,
    script: String,
    events: Sender,
}

impl Running {
    async fn start(fake: &Fake, traps: &str, script: &str) -> Self {
        let program = [env!("CARGO_BIN_EXE_selvedge-agent")];
        Self::start_by(&program, fake, traps, script).await
    }

    /// The same, where another program starts the lock.
    async fn start_by(program: &[&str], fake: &Fake, traps: &str, script: &str) -> Self {
        let events = held(fake);
        let script = format!("{traps}echo $$; {script}");
        let arguments = ["lock", "l", "--", "sh", "-c", &script];
        let mut lock = command_by(program, fake, &arguments).spawn().unwrap();
        let mut output = BufReader::new(lock.stdout.take().unwrap());
        let mut script = String::new();
        timeout(PATIENCE, output.read_line(&mut script))
            .await
            .unwrap()
            .unwrap();
        Self {
            lock,
            output,
            script: script.trim().to_owned(),
            events,
        }
    }

    /// Its status, when it and its script have ended.
    async fn status(mut self) -> i32 {
        let status = timeout(PATIENCE, self.lock.wait()).await.unwrap().unwrap();
        assert!(!signal(&self.script, "0").await, "the script runs");
        status.code().unwrap()
    }
}

/// Sends a signal; false if there is no process.
async fn signal(process: &str, name: &str) -> bool {
    let output = Command::new("kill")
        .args([&format!("-{name}"), process])
        .output();
    output.await.unwrap().status.success()
}

#[tokio::test]
async fn the_status_of_the_program_is_passed_on_and_the_lock_released() {
    let fake = Fake::start().await;
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let events = held(&fake);
        fake.answers(200, "{}");
        let script = format!("echo $SELVEDGE_FENCING_TOKEN$SELVEDGE_TOKEN; {script}");
        let (code, text, error) = run(&fake, &["lock", "l", "--", "sh", "-c", &script]).await;
        assert_eq!((code, &*text, &*error), (status, "0a:3\n", ""));
        assert_eq!(
            fake.request(),
            "POST /v1/locks/l?ttl=10000ms&wait=3600000ms"
        );
        assert_eq!(fake.request(), "DELETE /v1/holds/00ff?wait=3600000ms");
        timeout(PATIENCE, events.closed()).await.unwrap();
    }
}

#[tokio::test]
async fn the_program_ends_when_the_hold_lapses_or_ends() {
    for event in ["lapsed", "ended"] {
        let fake = Fake::start().await;
        let mut running = Running::start(&fake, "", "exec sleep 600").await;
        send(&running.events, event);
        let mut error = String::new();
        let mut errors = running.lock.stderr.take().unwrap();
        errors.read_to_string(&mut error).await.unwrap();
        assert!(error.contains("lock \"l\" may have been lost"), "{error}");
        assert_eq!(running.status().await, 75);
    }
}

#[tokio::test]
async fn a_program_that_ignores_sigterm_is_killed() {
    let fake = Fake::start().await;
    let mut running = Running::start(&fake, "trap 'echo asked' TERM; ", ENDLESS).await;
    send(&running.events, "ended");
    let mut line = String::new();
    timeout(PATIENCE, running.output.read_line(&mut line))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(line, "asked\n");
    assert_eq!(running.status().await, 75);
}

#[tokio::test]
async fn the_program_ends_when_the_agent_dies() {
    let fake = Fake::start().await;
    let running = Running::start(&fake, "", "exec sleep 600").await;
    running
        .events
        .send(Err(io::Error::other("the agent dies")))
        .unwrap();
    assert_eq!(running.status().await, 75);
}

#[tokio::test]
async fn the_program_ends_when_the_agent_is_silent() {
    let fake = Fake::start().await;
    fake.extends(None);
    let running = Running::start(&fake, "", "exec sleep 600").await;
    assert!(!running.events.is_closed());
    assert_eq!(running.status().await, 75);
    assert!(!fake.extended().is_empty());
}

#[tokio::test]
async fn signals_are_passed_on() {
    for (name, status) in [("INT", 8), ("TERM", 9), ("HUP", 10), ("QUIT", 11)] {
        let fake = Fake::start().await;
        // Not those that the environment of the tests ignores.
        let program = [
            "env",
            "--default-signal",
            env!("CARGO_BIN_EXE_selvedge-agent"),
        ];
        let running = Running::start_by(&program, &fake, TRAPS, ENDLESS).await;
        fake.answers(200, "{}");
        let lock = running.lock.id().unwrap().to_string();
        assert!(signal(&lock, name).await);
        assert_eq!(running.status().await, status);
    }
}

#[tokio::test]
async fn a_signal_that_is_ignored_is_not_passed_on() {
    let fake = Fake::start().await;
    let program = ["nohup", env!("CARGO_BIN_EXE_selvedge-agent")];
    let running = Running::start_by(&program, &fake, TRAPS, ENDLESS).await;
    fake.answers(200, "{}");
    let lock = running.lock.id().unwrap().to_string();
    for name in ["HUP", "TERM"] {
        assert!(signal(&lock, name).await);
    }
    assert_eq!(running.status().await, 9);
}

#[tokio::test]
async fn a_wait_is_over_or_without_limit() {
    let fake = Fake::start().await;
    let over = r#"{"error":"the lock is taken: wait longer","kind":"timeout"}"#;
    fake.answers(408, over);
    let (status, _, error) = run(&fake, &["lock", "l", "--wait", "0s", "--", "true"]).await;
    assert_eq!(
        (status, &*error),
        (124, "selvedge-agent: the lock is taken: wait longer\n")
    );
    assert_eq!(fake.request(), "POST /v1/locks/l?ttl=10000ms&wait=0ms");

    fake.answers(408, over);
    let _events = held(&fake);
    fake.answers(200, "{}");
    let (status, _, error) = run(&fake, &["elect", "e", "--value", "v", "--", "true"]).await;
    assert_eq!((status, &*error), (0, ""));
    for _ in 0..2 {
        assert_eq!(
            fake.request(),
            "POST /v1/elections/e?ttl=10000ms&wait=3600000ms v"
        );
    }
}

#[tokio::test]
async fn a_program_that_is_none_releases_the_hold() {
    let fake = Fake::start().await;
    let events = held(&fake);
    let (status, _, error) = run(
        &fake,
        &[
            "semaphore",
            "s",
            "--permits",
            "2",
            "--ttl",
            "1m",
            "--",
            "/no/such/program",
        ],
    )
    .await;
    assert!(
        status == 1 && error.contains("/no/such/program"),
        "{status} {error}"
    );
    assert_eq!(
        fake.request(),
        "POST /v1/semaphores/s?permits=2&ttl=60000ms&wait=3600000ms"
    );
    timeout(PATIENCE, events.closed()).await.unwrap();
}

#[tokio::test]
async fn a_registration_without_a_program_lasts_until_a_signal() {
    let fake = Fake::start().await;
    let _events = held(&fake);
    fake.answers(200, "{}");
    let mut register = command(&fake, &["register", "r", "a:1", "--instance", "4"])
        .spawn()
        .unwrap();
    let mut output = BufReader::new(register.stdout.take().unwrap());
    let mut line = String::new();
    timeout(PATIENCE, output.read_line(&mut line))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(line, "registered\n");
    assert!(signal(&register.id().unwrap().to_string(), "TERM").await);
    assert_eq!(register.wait().await.unwrap().code(), Some(0));
    assert_eq!(
        fake.request(),
        "POST /v1/services/r?instance=4&ttl=10000ms&wait=10000ms a:1"
    );
    assert_eq!(fake.request(), "DELETE /v1/holds/00ff?wait=10000ms");

    let events = held(&fake);
    send(&events, "ended");
    let (status, text, _) = run(&fake, &["register", "r", "a:1"]).await;
    assert_eq!((status, &*text), (75, "registered\n"));
}

#[tokio::test]
async fn locks_of_several_names_and_shared_ones_and_priorities() {
    let fake = Fake::start().await;
    let times = "ttl=10000ms&wait=3600000ms";
    for (arguments, request) in [
        (
            &["lock", "--shared", "l", "--", "true"][..],
            format!("POST /v1/locks/l?shared=true&{times}"),
        ),
        (
            &["lock", "b", "a", "--", "true"],
            format!(r#"POST /v1/locks?{times} {{"names":["b","a"]}}"#),
        ),
        (
            &["lock", "b", "a", "--shared", "--", "true"],
            format!(r#"POST /v1/locks?shared=true&{times} {{"names":["b","a"]}}"#),
        ),
        (
            &["elect", "e", "--priority", "7", "--", "true"],
            format!("POST /v1/elections/e?priority=7&{times}"),
        ),
    ] {
        let _events = held(&fake);
        fake.answers(200, "{}");
        let (status, _, error) = run(&fake, arguments).await;
        assert_eq!((status, &*error), (0, ""), "{arguments:?}");
        assert_eq!(fake.request(), request);
        fake.request();
    }
    fake.answers(200, r#"{"version":8}"#);
    let push = ["queue", "push", "q", "item", "--priority", "0"];
    let (status, text, _) = run(&fake, &push).await;
    assert_eq!((status, &*text), (0, "8\n"));
    assert_eq!(
        fake.request(),
        "POST /v1/queues/q?priority=0&wait=10000ms item"
    );
    let (status, ..) = run(&fake, &["lock", "--", "true"]).await;
    assert_eq!(status, 2);
}
