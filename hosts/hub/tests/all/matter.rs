//! A light of Matter, by the bridge of `parts/matter.js`, that loses its power or stands still.
//!
//! Matter finds devices by multicast, so this program runs once more, in a network of its own.

use core::time::Duration;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::Hub;
use crate::support::Dir;

/// The time for which a command may act behind the bridge, and some more.
const LATENESS: Duration = Duration::from_millis(4_500);
/// Set in the network of its own.
const INSIDE: &str = "SELVEDGE_MATTER_INSIDE";
/// The commands for a network interface at which this machine receives its own multicast messages.
const NETWORK: &str = r#"ip link set lo up &&
ip link add matter type veth peer name other &&
ip link set other addrgenmode none up &&
ip link set matter addrgenmode none up &&
ip address add fe80::1/64 dev matter nodad &&
exec "$0" "$@""#;

/// The folder with matter.js; without it, the test prints a message and ends.
fn parts() -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(|it| PathBuf::from(it).join("hub/node_modules"));
    let is_there = |it: &PathBuf| it.join("@matter/main").exists();
    let found = parts.filter(is_there);
    if found.is_none() {
        skip("no matter.js: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch.sh");
    }
    found
}

fn skip(how: &str) {
    let required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some();
    assert!(!required, "{how}");
    println!("skipped: {how}");
}

/// A program in a network of its own, which ends with this one.
fn in_its_own_network(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--pid", "--fork"]);
    command.args(["--kill-child", "sh", "-c", NETWORK]);
    command.arg(program);
    command
}

/// A process of Node.js, and its lines of output.
struct Node {
    child: Child,
    reported: Arc<Mutex<Vec<String>>>,
}

impl Node {
    /// Starts a process, and waits until it is ready.
    fn start(parts: &Path, script: &str, arguments: &[&str]) -> Self {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts");
        let mut node = Command::new("node");
        node.env("NODE_PATH", parts).arg(scripts.join(script));
        node.args(arguments).stdout(Stdio::piped());
        let mut child = node.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let reported = Arc::<Mutex<Vec<_>>>::default();
        let node = Self {
            child,
            reported: Arc::clone(&reported),
        };
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                reported.lock().unwrap().push(line);
            }
        });
        until(&format!("{script} is ready"), || {
            node.reported
                .lock()
                .unwrap()
                .iter()
                .any(|it| it.starts_with("ready"))
        });
        node
    }

    fn reported(&self) -> Vec<String> {
        self.reported.lock().unwrap().clone()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits for a condition; returns the time that this took.
fn until(what: &str, mut so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not so: {what}");
        thread::sleep(Duration::from_millis(20));
    }
    begun.elapsed()
}

fn light(parts: &Path, dir: &Path) -> Node {
    let remembers = dir.join("light");
    Node::start(
        parts,
        "matter-device.js",
        &[remembers.to_str().unwrap(), "5540"],
    )
}

/// The state of a light, by its own output.
fn is(light: &Node) -> String {
    let reported = light.reported();
    let mut states = reported.iter().filter(|it| *it == "on" || *it == "off");
    states.next_back().unwrap().clone()
}

fn was_notified(light: &Node, state: &str) -> bool {
    let notified = format!("told {state}");
    light.reported().contains(&notified)
}

/// A fault of the light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Its power is cut.
    Cut,
    /// It stands still, and receives the messages from meanwhile when it continues.
    Still,
}

/// Lets `light` fail in the middle of `evening`, after this number of milliseconds; then it is back.
fn fail(hub: &Hub, light: Node, fault: Fault, after: u64, again: impl Fn() -> Node) -> Node {
    let shown = |nth: usize| hub.get("/api/home")["devices"][nth].clone();
    let is_off = || {
        let shown = shown(1);
        shown["state"] == "off" && shown["up"] == true
    };
    let id = hub.run("evening");
    thread::sleep(Duration::from_millis(after));
    let was = is(&light);
    let light = match fault {
        Fault::Cut => {
            drop(light);
            None
        }
        Fault::Still => {
            light.signal(Signal::STOP);
            light
                .reported
                .lock()
                .unwrap()
                .retain(|it| !it.starts_with("told"));
            Some(light)
        }
    };
    let begun = Instant::now();
    let down = until("it is shown as not there", || shown(1)["up"] == false);
    let run = hub.wait_for(id, "undone");
    let undone = begun.elapsed();
    assert!(run["why"].as_str().unwrap().contains("light"), "{run}");
    until("the lamp is off again", || shown(0)["state"] == "off");
    let light = light.map_or_else(again, |light| {
        light.signal(Signal::CONT);
        light
    });
    let back = until("it is shown as off", || is_off() && is(&light) == "off");
    thread::sleep(LATENESS);
    assert!(is_off() && is(&light) == "off", "{fault:?} {was}");
    assert!(!was_notified(&light, "on"), "late: {:?}", light.reported());
    assert!(was_notified(&light, "off"), "{fault:?} {was}");
    println!(
        "{fault:?} after {after} ms, as {was}: shown after {down:?}, undone after {undone:?}, off {back:?} after it is back"
    );
    light
}

fn inside(parts: &Path) {
    let dir = Dir::new("matter");
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("homes/matter.json");
    fs::copy(home, dir.path().join("home.json")).unwrap();
    let hub = Hub::start(dir.path());
    let again = || light(parts, dir.path());
    let mut light = again();
    let reported = light.reported();
    let code = reported.iter().find_map(|it| it.strip_prefix("ready "));
    let keys = dir.path().join("bridge");
    let arguments = [
        "mqtt://127.0.0.1:1883",
        keys.to_str().unwrap(),
        &format!("light={}", code.unwrap()),
    ];
    let begun = Instant::now();
    let _bridge = Node::start(parts, "matter.js", &arguments);
    println!("commissioned after {:?}", begun.elapsed());
    until("it is there", || {
        hub.get("/api/home")["devices"][1]["up"] == true
    });
    for (routine, state) in [("evening", "on"), ("dark", "off")] {
        let id = hub.run(routine);
        let took = until("it is switched", || is(&light) == state);
        println!("{state} {took:?} after the press of {routine}");
        hub.wait_for(id, "done");
        assert_eq!(is(&light), state);
    }
    // Before its command, in its hold, and with its command on the way.
    for (fault, after) in [(Fault::Cut, 100), (Fault::Cut, 2_000), (Fault::Still, 100)] {
        light = fail(&hub, light, fault, after, again);
    }
}

#[test]
fn a_light_that_fails_in_a_routine_is_off_afterwards_and_no_late_command_wins() {
    let Some(parts) = parts() else { return };
    if env::var_os(INSIDE).is_some() {
        return inside(&parts);
    }
    let had = in_its_own_network("true").output();
    if !had.is_ok_and(|it| it.status.success()) {
        return skip("no network of its own: it takes unshare, ip, and leave to make namespaces");
    }
    let mut command = in_its_own_network(env::current_exe().unwrap());
    let name = "matter::a_light_that_fails_in_a_routine_is_off_afterwards_and_no_late_command_wins";
    command
        .env(INSIDE, "1")
        .args(["--exact", name, "--nocapture"]);
    let output = command.output().unwrap();
    let reported =
        [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    println!("{}", reported.concat());
    assert!(output.status.success(), "see above");
}
