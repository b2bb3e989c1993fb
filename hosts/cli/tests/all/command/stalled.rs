//! `selvedge node` with an output that is not read.

use std::io::{BufRead, BufReader, PipeReader, Read, Write, pipe};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::pipe::fcntl_setpipe_size;
use selvedge_core::shared::Limits;
use selvedge_core::{Delta, Incarnation, NodeId, Span};
use selvedge_membership::{Command as Ask, Config, Event};
use selvedge_udp::{Events, Handle, Host, NodeEvent, Setup};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::command::running::{Folder, Running, SELVEDGE};

const PATIENCE: Duration = Duration::from_secs(60);
/// The node whose output is not read.
const ID: NodeId = NodeId(7);
/// Several times the capacity of pipe and queue.
const LINES: usize = 2_000;

/// A node whose output goes into a pipe of one page. It is killed when dropped.
struct Unread {
    child: Child,
    output: BufReader<PipeReader>,
}

impl Unread {
    /// Starts a node, reads its address, and nothing after that.
    fn start() -> (Self, SocketAddr) {
        let (reader, writer) = pipe().unwrap();
        fcntl_setpipe_size(&writer, 4_096).unwrap();
        let child = Command::new(SELVEDGE)
            .args(["node", "--plain", "--json", "--period", "100", "--id", "7"])
            .args(["--listen", "127.0.0.1:0"])
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::with_capacity(1, reader);
        let mut node = Self { child, output };
        let line = node.read("listens");
        let reported = line["text"].as_str().unwrap();
        let address = reported.split_whitespace().last().unwrap().parse().unwrap();
        (node, address)
    }

    /// Reads up to a line of this event.
    fn read(&mut self, event: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended");
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["event"] == event {
                return line;
            }
        }
    }

    /// Presses Ctrl-C, and returns the standard error until the end.
    fn interrupt(&mut self) -> String {
        interrupt(&mut self.child)
    }

    /// The same, with the standard output meanwhile.
    fn interrupt_and_read(&mut self) -> (String, Vec<Value>) {
        let Self { child, output } = self;
        std::thread::scope(|scope| {
            let rest = scope.spawn(|| {
                let lines = output.lines().map_while(Result::ok);
                lines
                    .map(|line| serde_json::from_str(&line).unwrap())
                    .collect()
            });
            (interrupt(child), rest.join().unwrap())
        })
    }
}

fn interrupt(child: &mut Child) -> String {
    let id = child.id().to_string();
    let kill = Command::new("kill").args(["-INT", &id]).status();
    assert!(kill.unwrap().success());
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut complaint = String::new();
    let stderr = child.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut complaint).unwrap();
    assert!(status.success(), "{complaint}");
    complaint
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Other nodes, which cause many lines of output.
struct Others {
    nodes: Vec<(Handle, Events)>,
}

impl Others {
    async fn join(address: SocketAddr) -> Self {
        let mut nodes = Vec::new();
        let config = Config::default()
            .with_period(Span::millis(100))
            .with_jitter(Span::millis(10))
            .with_probe_timeout(Span::millis(30));
        for id in 1..=4 {
            let setup = Setup::new(NodeId(id), "127.0.0.1:0".parse().unwrap())
                .life(Incarnation(0))
                .seeds([address])
                .membership(config.clone())
                .random_seed(id)
                .limits(Limits {
                    events: NonZeroUsize::new(1 << 16).unwrap(),
                    ..Limits::default()
                });
            let node = Host::start(setup).await.unwrap();
            let events = node.events();
            nodes.push((node, events));
        }
        let mut others = Self { nodes };
        let begun = Instant::now();
        while others.live() < others.nodes.len() + 1 {
            assert!(begun.elapsed() < PATIENCE, "they do not meet");
            sleep(Duration::from_millis(20)).await;
        }
        for (node, events) in &mut others.nodes {
            *events = node.events();
        }
        others
    }

    /// The length of the shortest list, without members that are declared failed.
    fn live(&self) -> usize {
        let live = |(node, _): &(Handle, Events)| {
            let members = node.members();
            members.iter().filter(|it| it.status.is_live()).count()
        };
        self.nodes.iter().map(live).min().unwrap()
    }

    /// Makes the node write this number of lines.
    async fn chatter(&self, lines: usize) {
        let begun = Instant::now();
        let mut notified = 0;
        while notified < lines {
            assert!(begun.elapsed() < PATIENCE, "{notified} of {lines} lines");
            for (node, _) in &self.nodes {
                while node.command(Ask::Broadcast([].into())).await.is_ok() {
                    notified += 1;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn failures(&mut self) -> usize {
        let mut failures = 0;
        for (_, events) in &mut self.nodes {
            while let Some(observed) = events.try_recv().unwrap() {
                failures += usize::from(matches!(
                    observed.event,
                    NodeEvent::Membership(Event::Changed(Delta::Failed(member)))
                        if member.id == ID
                ));
            }
        }
        failures
    }
}

fn on_runtime<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(test)
}

/// The nodes of a demo continue while its story is not read.
#[test]
fn a_demo_that_nobody_reads_ends_and_judges_itself() {
    let (unread, mut writer) = pipe().unwrap();
    fcntl_setpipe_size(&writer, 4_096).unwrap();
    // It is full from the beginning.
    writer.write_all(&[b'.'; 4_096]).unwrap();
    let folder = Folder::new("demo-unread");
    let page = folder.path("page.html");
    let mut child = Command::new(SELVEDGE)
        .args(["demo", "--nodes", "8", "--seed", "5", "--period", "60"])
        .args(["--json", "--out", &page])
        .stdout(Stdio::piped())
        .stderr(writer)
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, table) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut table = String::new();
        output.read_to_string(&mut table).unwrap();
        sender.send(table).unwrap();
    });
    let table = table.recv_timeout(PATIENCE);
    child.kill().ok();
    child.wait().unwrap();
    drop(unread);
    let table: Vec<Value> = serde_json::from_str(&table.unwrap()).unwrap();
    for always in ["ballot", "fencing", "overlap", "tokens", "frame", "faulty"] {
        let row = table.iter().find(|row| row["id"] == always).unwrap();
        assert_eq!(row["held"], true, "{row:#}");
    }
}

/// The number of missing lines, from the last words on the standard error.
fn missing_notified(complaint: &str) -> u64 {
    let words = complaint.split_whitespace();
    let mut numbers = words.filter_map(|word| word.parse().ok());
    numbers
        .next_back()
        .unwrap_or_else(|| panic!("{complaint:?}"))
}

#[test]
fn a_node_that_nobody_reads_is_not_declared_failed_and_says_what_is_missing() {
    let (mut node, address) = Unread::start();
    on_runtime(async {
        let mut others = Others::join(address).await;
        others.chatter(LINES).await;
        assert_eq!((others.failures(), others.live()), (0, 5));
        // The reader continues.
        let gap = tokio::task::spawn_blocking(move || {
            let gap = node.read("dropped");
            node.read("traffic");
            let (complaint, rest) = node.interrupt_and_read();
            let mut gaps = rest.into_iter().filter(|line| line["event"] == "dropped");
            let gap = gaps.next_back().unwrap_or(gap);
            assert_eq!(
                missing_notified(&complaint),
                gap["dropped_in_all"].as_u64().unwrap()
            );
            gap
        });
        let gap = gap.await.unwrap();
        assert!(gap["dropped"].as_u64() > Some(0));
        assert!(
            gap["text"]
                .as_str()
                .unwrap()
                .contains("the reader was too slow"),
            "{gap}"
        );
        assert_eq!(others.failures(), 0);
    });
}

#[test]
fn a_node_that_nobody_reads_ends_when_it_is_asked_to() {
    let (mut node, address) = Unread::start();
    on_runtime(async {
        let mut others = Others::join(address).await;
        others.chatter(LINES).await;
        let complaint = tokio::task::spawn_blocking(move || node.interrupt());
        let complaint = complaint.await.unwrap();
        assert!(missing_notified(&complaint) > 500, "{complaint}");
        assert_eq!(others.failures(), 0);
    });
}

/// A process that was suspended reports its traffic once, and not once for each second of the
/// suspension.
#[test]
fn a_node_that_slept_says_what_it_sent_once() {
    let folder = Folder::new("slept");
    let key = folder.key("mesh.key");
    let mut node = Running::start(
        SELVEDGE,
        &["node", "--json", "--key", &key, "--listen", "127.0.0.1:0"],
    );
    node.wait_for("\"traffic\"");
    node.signal("STOP");
    let asleep = Duration::from_secs(4);
    std::thread::sleep(asleep);
    node.signal("CONT");
    // Reports that were in the pipe, one late report, and reports of the time awake.
    let awake = Duration::from_millis(2_500);
    std::thread::sleep(awake);
    let mut reports = Vec::new();
    for line in node.said_by_now() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["event"] == "traffic" {
            reports.push(line["at_us"].as_u64().unwrap());
        }
    }
    assert!(reports.len() >= 2, "{reports:?}");
    let quick = reports.windows(2).filter(|it| it[1] - it[0] < 100_000);
    assert!(quick.count() < 2, "{reports:?}");
}
