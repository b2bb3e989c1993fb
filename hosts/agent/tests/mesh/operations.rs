//! The work of operators: the log, settings that are read again, other leaders, and programs that take too much.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use selvedge_client::{Agent, Kind, PartOutcome, Reloaded};
use tokio::time::timeout;

use super::audit::audited;
use super::{LONG, Mesh, curl, soon, until};

/// The time to live of a hold that the test waits for.
pub(crate) const BRIEF: Duration = Duration::from_millis(1_500);
pub(crate) const ALONE: [&str; 4] = ["--founders", "1", "--failures", "0"];

/// A mesh of one agent with these arguments.
pub(crate) async fn alone(mesh: &mut Mesh, more: &[&str]) {
    mesh.add(1, &[&ALONE[..], more].concat()).await;
    mesh.meet(1).await;
}

pub(crate) fn path(mesh: &Mesh, name: &str) -> (PathBuf, String) {
    let path = mesh.dir.join(name);
    let text = path.display().to_string();
    (path, text)
}

/// An agent whose output the test does not read.
pub(crate) struct Spawned(std::process::Child);

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) fn spawn(mesh: &mut Mesh, more: &[&str], stdout: Option<(fs::File, String)>) -> Spawned {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-agent"));
    command
        .args(["run", "--plain", "--forgets", "--id", "1"])
        .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
        .args(ALONE)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .env_remove("JOURNAL_STREAM")
        .current_dir(&mesh.dir);
    if let Some((file, journal)) = stdout {
        command.stdout(file).env("JOURNAL_STREAM", journal);
    }
    Spawned(command.spawn().unwrap())
}

/// The address of the API, once it is in the log.
pub(crate) async fn address(log: &Path) -> String {
    let found = || {
        let text = fs::read_to_string(log).ok()?;
        let line = text
            .lines()
            .find(|it| it.contains("its API is at"))?
            .to_owned();
        Some(line.split_once("API is at ")?.1.to_owned())
    };
    until(async || found().is_some()).await;
    found().unwrap()
}

#[tokio::test]
async fn lines_for_the_journal_have_levels_and_those_of_a_file_times() {
    let mut mesh = Mesh::start(0).await;
    let (journal, _) = path(&mesh, "journal");
    let file = fs::File::create(&journal).unwrap();
    let it = file.metadata().unwrap();
    let name = format!("{}:{}", it.dev(), it.ino());
    let agent = spawn(&mut mesh, &[], Some((file, name)));
    address(&journal).await;
    until(async || {
        fs::read_to_string(&journal)
            .unwrap()
            .contains("<5>in the mesh as ")
    })
    .await;
    assert!(
        fs::read_to_string(&journal)
            .unwrap()
            .starts_with("<6>node 1 listens at ")
    );
    drop(agent);

    // Without the journal, the lines are as they were.
    let (plain, _) = path(&mesh, "plain");
    let file = fs::File::create(&plain).unwrap();
    let agent = spawn(&mut mesh, &[], Some((file, "0:0".to_owned())));
    address(&plain).await;
    assert!(
        fs::read_to_string(&plain)
            .unwrap()
            .starts_with("node 1 listens at ")
    );
    drop(agent);

    let (log, log_name) = path(&mesh, "log");
    let agent = spawn(&mut mesh, &["--log", &log_name, "--audit", "log"], None);
    let client = Agent::new(&address(&log).await).unwrap();
    soon(client.send("alarm", "fire")).await.unwrap();
    let audit = "Z notice audit {\"time\":";
    until(async || fs::read_to_string(&log).unwrap().contains(audit)).await;
    let text = fs::read_to_string(&log).unwrap();
    let is_dated = |it: &str| it.starts_with("20") && it.contains("Z ");
    assert!(text.lines().all(is_dated), "{text}");
    drop(agent);
}

fn part(reloaded: &Reloaded, name: &str) -> Option<PartOutcome> {
    let part = reloaded.parts.iter().find(|it| it.part == name);
    part.map(|it| it.outcome)
}

#[tokio::test]
async fn a_reload_reports_each_part_and_opens_files_anew() {
    use PartOutcome::{Applied, Failed, Unchanged};
    let mut mesh = Mesh::start(0).await;
    let (config, config_name) = path(&mesh, "agent.toml");
    let (audit, audit_name) = path(&mesh, "audit");
    let text = format!("audit = {audit_name:?}\n[tags]\nfloor = ");
    fs::write(&config, format!("{text}\"1\"\n")).unwrap();
    alone(&mut mesh, &["--config", &config_name]).await;
    let client = mesh.client(0);
    let reloaded = soon(client.reload()).await.unwrap();
    assert_eq!(part(&reloaded, "keys"), Some(Unchanged));
    assert_eq!(part(&reloaded, "tags"), Some(Unchanged));
    assert_eq!(part(&reloaded, "audit"), Some(Applied));
    assert_eq!(part(&reloaded, "log"), None);
    assert!(reloaded.at_next_start.is_empty());

    // The file was rotated; the former one has what came before.
    until(async || audited(&audit).len() == 1).await;
    let before = mesh.dir.join("audit.1");
    fs::rename(&audit, &before).unwrap();
    fs::write(&config, format!("period = 300\n{text}\"2\"\n")).unwrap();
    let url = format!("http://{}", mesh.agents[0].http);
    let reload = |more: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_selvedge-agent"))
            .args(["reload", "--agent", &url])
            .args(more)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code().unwrap(), text)
    };
    let (status, printed) = reload(&[]);
    let expected = concat!(
        "this node sends in the clear, as before\n",
        "the tags are those in the settings\n",
        "the file of the audit was opened anew\n",
    );
    // The flag stands above the file.
    assert_eq!((status, &*printed), (0, expected));
    let members = client.members().await.unwrap();
    assert_eq!(members[0].tags["floor"], "2");
    until(async || audited(&audit).len() == 1).await;
    assert_eq!(audited(&before).len(), 1);

    fs::write(
        &config,
        format!("distances = \"uniform\"\nkey = \"/none\"\n{text}\"2\"\n"),
    )
    .unwrap();
    let (status, printed) = reload(&["--json"]);
    let reloaded: Reloaded = serde_json::from_str(&printed).unwrap();
    assert_eq!((status, part(&reloaded, "keys")), (1, Some(Failed)));
    assert_eq!(reloaded.at_next_start, ["distances"]);
    fs::write(&config, "no_such_setting = 1\n").unwrap();
    let reloaded = soon(client.reload()).await.unwrap();
    assert_eq!(part(&reloaded, "settings"), Some(Failed));
    assert_eq!(part(&reloaded, "tags"), None);
    assert_eq!(part(&reloaded, "audit"), Some(Applied));
}

#[tokio::test]
async fn another_candidate_leads_when_an_operator_hands_over() {
    let mesh = Mesh::start(1).await;
    let client = mesh.client(0);
    let url = format!("http://{}", mesh.agents[0].http);
    let hand_over = |to: &str| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_selvedge-agent"));
        let command = command
            .args(["hand-over", "heating", "--agent", &url, "--to", to])
            .kill_on_drop(true);
        let status = command.status();
        async { soon(status).await.unwrap().code().unwrap() }
    };
    let nowhere = soon(client.hand_over_election("heating", None)).await;
    assert_eq!(nowhere.unwrap_err().kind(), Some(Kind::Mismatch));
    let one = soon(client.campaign("heating", "one", LONG)).await.unwrap();
    assert_eq!(hand_over("7").await, 3);
    assert!(one.is_held());
    let (two, three) = (client.clone(), client.clone());
    let mut two = Box::pin(two.campaign("heating", "two", LONG));
    let mut three = Box::pin(three.campaign_with_priority("heating", 200, "three", BRIEF));
    let waiting = async {
        loop {
            let candidates = client.candidates("heating").await.unwrap();
            if let [_, last] = &candidates[..] {
                return last.session.clone().unwrap();
            }
        }
    };
    let last = tokio::select! {
        last = soon(waiting) => last,
        _ = &mut two => panic!("one leads"),
        _ = &mut three => panic!("one leads"),
    };
    // The program lets go as soon as it learns of it, and the first candidate is passed over.
    let lets_go = async {
        soon(one.lapsed()).await;
        let token = one.token().unwrap().version;
        drop(one);
        token
    };
    let handed = async { tokio::join!(hand_over(&last), lets_go, soon(&mut three)) };
    let (status, token, three) = tokio::select! {
        handed = handed => handed,
        _ = &mut two => panic!("three is to lead"),
    };
    let three = three.unwrap();
    assert_eq!(status, 0);
    assert!(three.token().unwrap().version > token);

    // A program that goes on is waited for, as long as it is certain to lead.
    let asked = tokio::time::Instant::now();
    let (status, two) = tokio::join!(hand_over("1"), soon(two));
    assert_eq!(status, 0);
    assert!(asked.elapsed() > BRIEF / 3, "{:?}", asked.elapsed());
    soon(three.ended()).await;
    assert!(two.unwrap().is_held());
}

#[tokio::test]
async fn a_leader_is_handed_over_at_its_own_agent() {
    let mesh = Mesh::start(3).await;
    let leads = soon(mesh.client(1).campaign("heating", "one", LONG))
        .await
        .unwrap();
    let client = mesh.client(2).clone();
    let waits = tokio::spawn(async move { client.campaign("heating", "two", LONG).await });
    until(async || mesh.client(0).candidates("heating").await.unwrap().len() == 1).await;
    let (status, why) = mesh.curl(0, &["-X", "POST"], "/v1/elections/heating/hand-over");
    assert!(
        status == 404 && why.contains("the member 2"),
        "{status} {why}"
    );
    assert!(leads.is_held());
    // The program does not let go, and the operator waits no longer: it leads on.
    let path = "/v1/elections/heating/hand-over?wait=300ms";
    let (url, post) = (
        format!("http://{}{path}", mesh.agents[1].http),
        ["-X", "POST"],
    );
    let asks = tokio::task::spawn_blocking(move || curl(&post, &url).0);
    soon(leads.lapsed()).await;
    assert_eq!(asks.await.unwrap(), 408);
    // Long before it would be certain no longer.
    let revives = until(async || leads.is_held());
    timeout(LONG / 3, revives).await.unwrap();
    // A later request takes the place of a former one.
    let client = mesh.client(1).clone();
    let former = tokio::spawn(async move { client.hand_over_election("heating", None).await });
    soon(leads.lapsed()).await;
    let lets_go = async {
        let overtaken = soon(former).await.unwrap().unwrap_err();
        assert_eq!(overtaken.kind(), Some(Kind::Unavailable), "{overtaken}");
        drop(leads);
    };
    let handed = soon(mesh.client(1).hand_over_election("heating", None));
    tokio::join!(handed, lets_go).0.unwrap();
    assert!(soon(waits).await.unwrap().unwrap().is_held());
}

/// Each connection of this process is one of the same peer.
#[tokio::test]
async fn a_program_does_not_take_all_connections_of_the_socket() {
    let mut mesh = Mesh::start(0).await;
    let (_, socket) = path(&mesh, "agent.sock");
    mesh.add(1, &[&ALONE[..], &["--socket", &socket]].concat())
        .await;
    let all: Vec<_> = (0..512)
        .map(|_| UnixStream::connect(&socket).unwrap())
        .collect();
    let mut more = UnixStream::connect(&socket).unwrap();
    more.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(more.read(&mut [0]).unwrap(), 0, "it is closed");
    let (status, _) = curl(&["--unix-socket", &socket], "http://localhost/v1/info");
    assert_eq!(status, 200);
    let (_, metrics) = mesh.curl(0, &[], "/metrics");
    assert!(
        metrics.contains("selvedge_connections_refused_total 1\n"),
        "{metrics}"
    );
    drop(all);
    let unix = Agent::new(&format!("unix:{socket}")).unwrap();
    until(async || unix.info().await.is_ok()).await;
}
