//! Tests of agents in a mesh: real processes on loopback addresses.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic, and watch the program from outside"
)]

mod audit;
mod calls;
mod holds;
mod locks;
mod members;
mod operations;
mod refusals;
mod scripts;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process};

use selvedge_client::Agent;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

/// The longest time for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time to live of holds that a failure ends.
const TTL: Duration = Duration::from_secs(3);
/// The time to live of other holds.
const LONG: Duration = Duration::from_secs(30);

/// Agents, which end with it.
struct Mesh {
    dir: PathBuf,
    founders: String,
    agents: Vec<Running>,
}

/// A running agent.
struct Running {
    process: Child,
    listen: SocketAddr,
    http: SocketAddr,
    client: Agent,
}

impl Drop for Mesh {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

impl Mesh {
    /// A mesh of this number of founders.
    async fn start(count: u64) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let dir = env::temp_dir().join(format!("selvedge-agents-{}-{nth}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        let founders: Vec<String> = (1..=count).map(|it| it.to_string()).collect();
        let mut mesh = Self {
            dir,
            founders: founders.join(","),
            agents: Vec::new(),
        };
        for id in 1..=count {
            mesh.add(id, &[]).await;
        }
        mesh.meet(count as usize).await;
        mesh
    }

    /// Starts an agent with more arguments.
    async fn add(&mut self, id: u64, more: &[&str]) {
        let running = self.run(id, more).await;
        self.agents.push(running);
    }

    /// Starts an agent; a founder that was here before has its address again.
    async fn run(&self, id: u64, more: &[&str]) -> Running {
        let listen = self.agents.get(id as usize - 1).map(|it| it.listen);
        let listen = listen.unwrap_or_else(|| "127.0.0.1:0".parse().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-agent"));
        for name in env::vars()
            .map(|it| it.0)
            .filter(|it| it.starts_with("SELVEDGE_"))
        {
            command.env_remove(name);
        }
        // A test gives others.
        let founders = match more.contains(&"--founders") {
            true => "",
            false => &*self.founders,
        };
        let failures = if founders.contains(',') { "1" } else { "0" };
        command
            .args(["run", "--plain", "--period", "200"])
            .args(["--id", &id.to_string()])
            .args(["--listen", &listen.to_string()])
            .args(["--http", "127.0.0.1:0"])
            .args([
                "--state".as_ref(),
                self.dir.join(id.to_string()).as_os_str(),
            ])
            .args(more);
        if !founders.is_empty() {
            command.args(["--founders", founders, "--failures", failures]);
        }
        if let Some(seed) = self.agents.iter().find(|it| it.listen != listen) {
            command.args(["--join", &seed.listen.to_string()]);
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        // Its first line has its addresses.
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = soon(lines.next_line()).await.unwrap().unwrap();
        let [_, listen, http] = line.split(" at ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let listen = listen.split(',').next().unwrap().parse().unwrap();
        let http = http.split(' ').next().unwrap();
        let http = http.strip_prefix("http://").unwrap().parse().unwrap();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let client = Agent::new(&format!("http://{http}")).unwrap();
        Running {
            process,
            listen,
            http,
            client: client.with_wait(PATIENCE),
        }
    }

    /// Waits until all agents list this number of live members.
    async fn meet(&self, count: usize) {
        use selvedge_client::Status;
        for agent in &self.agents {
            until(async || {
                let members = agent.client.members().await.unwrap_or_default();
                let alive = members.iter().filter(|it| it.status == Status::Alive);
                alive.count() == count
            })
            .await;
        }
    }

    fn client(&self, at: usize) -> &Agent {
        &self.agents[at].client
    }

    /// Kills an agent without a warning.
    async fn kill(&mut self, at: usize) {
        self.agents[at].process.kill().await.unwrap();
    }

    /// The status and the body of a request, by a separate program.
    fn curl(&self, at: usize, arguments: &[&str], path: &str) -> (u16, String) {
        let url = format!("http://{}{path}", self.agents[at].http);
        curl(arguments, &url)
    }
}

fn curl(arguments: &[&str], url: &str) -> (u16, String) {
    let output = process::Command::new("curl")
        .args(["-s", "-m", "60", "-w", "\n%{http_code}"])
        .args(arguments)
        .arg(url)
        .output()
        .expect("curl");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), body.to_owned())
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let waits = async {
        while !is_so().await {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, waits).await.expect("in time");
}

async fn soon<T>(it: impl Future<Output = T>) -> T {
    timeout(PATIENCE, it).await.expect("in time")
}
