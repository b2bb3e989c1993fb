//! Nodes as processes of their own: this test program again, with the arguments in its environment.

use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;
use std::io::{self, BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Far longer than any step takes, for machines with other work.
const PATIENCE: Duration = Duration::from_secs(60);
const ARGUMENTS: &str = "SELVEDGE_REPLICATED_MAP";

/// The program itself, where a test started it.
#[test]
fn node() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else {
        return;
    };
    // The harness leaves the cursor behind the test's name.
    writeln!(io::stdout()).unwrap();
    let Err(error) = crate::run(arguments.split_whitespace().map(str::to_owned));
    writeln!(io::stdout(), "ended: {error}").unwrap();
}

/// A running node. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<Receiver<String>>,
    /// The lines that the watch of `count` has printed: value and revision.
    pub(crate) changes: Vec<(u64, u64)>,
}

impl Running {
    pub(crate) fn start(arguments: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["tests::running::node", "--exact", "--nocapture"])
            .env(ARGUMENTS, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        let (sender, output) = channel();
        thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return; // And the pipe is closed.
                }
            }
        });
        let (output, changes) = (Some(output), Vec::new());
        Self {
            child,
            input,
            output,
            changes,
        }
    }

    /// Types a line and waits for its answer.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.say(line);
        self.wait_for(&format!("{line}: "))
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for a line that begins so, and returns the rest of it.
    pub(crate) fn wait_for(&mut self, start: &str) -> String {
        let mut reported = Vec::new();
        loop {
            let line = self.output.as_ref().unwrap().recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no {start:?} in {reported:#?}"));
            if let Some(change) = line.strip_prefix("changed count: ") {
                self.changes.push(parse(change));
            }
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
            reported.push(line);
        }
    }

    /// Ends its input.
    pub(crate) fn say_no_more(&mut self) {
        self.input = None;
    }

    /// Reads its output no more.
    pub(crate) fn hear_no_more(&mut self) {
        self.output = None;
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let (signal, id) = (format!("-{name}"), self.child.id().to_string());
        let sent = Command::new("kill").args([signal, id]).status().unwrap();
        assert!(sent.success());
    }

    /// Sends `kill -9`, and waits for the end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `VALUE revision REVISION`.
pub(crate) fn parse(slot: &str) -> (u64, u64) {
    let (value, revision) = slot
        .split_once(" revision ")
        .unwrap_or_else(|| panic!("{slot:?}"));
    (value.parse().unwrap(), revision.parse().unwrap())
}

/// A folder for one test, removed when it is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("selvedge-replicated-map-{name}-{}", std::process::id());
        // Data that a killed process wrote is there without a disk, too. In memory it is faster.
        let places = ["/dev/shm".into(), std::env::temp_dir()].map(|it: PathBuf| it.join(&name));
        let is_made = |it: &PathBuf| std::fs::create_dir(it).is_ok();
        let path = places.into_iter().find(is_made).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The nodes 1 to n with their addresses and directories.
pub(crate) struct Group {
    pub(crate) folder: Folder,
    addresses: Vec<String>,
    /// By id, less 1.
    nodes: Vec<Option<Running>>,
}

impl Group {
    pub(crate) fn start(name: &str, count: usize) -> Self {
        // On Linux each group has a loopback address of its own: nothing else takes the port of a
        // node that is down.
        static GROUPS: AtomicU8 = AtomicU8::new(64);
        let ([.., high, low], nth) = (std::process::id().to_be_bytes(), &GROUPS);
        let own = format!("127.{}.{high}.{low}:0", nth.fetch_add(1, Ordering::Relaxed));
        let any = if cfg!(target_os = "linux") {
            &own
        } else {
            "127.0.0.1:0"
        };
        let sockets: Vec<UdpSocket> = (0..count).map(|_| UdpSocket::bind(any).unwrap()).collect();
        let address = |it: &UdpSocket| it.local_addr().unwrap().to_string();
        let addresses = sockets.iter().map(address).collect();
        let (folder, nodes) = (Folder::new(name), (0..count).map(|_| None).collect());
        drop(sockets);
        let mut group = Self {
            folder,
            addresses,
            nodes,
        };
        for id in group.ids() {
            group.restart(id, "--first");
        }
        group
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = usize> + use<> {
        1..=self.addresses.len()
    }

    pub(crate) fn directory(&self, id: usize) -> PathBuf {
        self.folder.0.join(id.to_string())
    }

    pub(crate) fn restart(&mut self, id: usize, flag: &str) {
        let (listen, data) = (&self.addresses[id - 1], self.directory(id));
        let mut arguments = format!(
            "--id {id} --listen {listen} --data {} {flag}",
            data.display()
        );
        for (other, address) in self.ids().zip(&self.addresses).filter(|it| it.0 != id) {
            arguments += &format!(" --peer {other}={address}");
        }
        self.nodes[id - 1] = Some(Running::start(&arguments));
    }

    pub(crate) fn kill(&mut self, id: usize) {
        self.nodes[id - 1].take().unwrap().kill();
    }

    pub(crate) fn node(&mut self, id: usize) -> &mut Running {
        self.nodes[id - 1].as_mut().unwrap()
    }

    /// The ids of the running nodes.
    pub(crate) fn running(&self) -> Vec<usize> {
        let is_up = |id: &usize| self.nodes[id - 1].is_some();
        self.ids().filter(is_up).collect()
    }

    /// The leader, as a running node reports it.
    pub(crate) fn leader(&mut self) -> usize {
        loop {
            for id in self.running() {
                let status = self.node(id).ask("status");
                let leader = status.split("leader ").nth(1).unwrap();
                if let Ok(leader) = leader.split(',').next().unwrap().parse::<usize>() {
                    return leader;
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
