//! Processes over real brokers: tasks, kills, modules, and input that is wrong.
//!
//! `SELVEDGE_FAAS_SECONDS` is for how long tasks come while processes are killed: 20 by default.
//! `SELVEDGE_MOSQUITTO` names the program of a mosquitto that is not in the path; where
//! `SELVEDGE_MOSQUITTO_REQUIRED` is set, a missing one is a failure.

#![allow(
    clippy::disallowed_methods,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a test of processes, which take time, and fails where it cannot start them"
)]

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use rumqttc::{Client, Event, Incoming, MqttOptions, QoS};

const PROGRAM: &str = env!("CARGO_BIN_EXE_selvedge-faas");
/// What a module begins with.
const WASM: &[u8] = b"\0asm\x01\0\0\0";
const PATIENCE: Duration = Duration::from_secs(60);

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = env::temp_dir().join(format!("selvedge-faas-{name}-{}", process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn spawn(arguments: &str) -> Node {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).arg("--is-child");
    say_password(&mut command, arguments);
    Node(command.stdin(Stdio::null()).spawn().unwrap())
}

fn spawn_client(arguments: &str) -> Node {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).stdin(Stdio::null());
    Node(command.spawn().unwrap())
}

fn run(arguments: &str) -> Output {
    let mut command = Command::new(PROGRAM);
    say_password(&mut command, arguments);
    command.args(arguments.split(' ')).output().unwrap()
}

fn say_password(command: &mut Command, arguments: &str) {
    if arguments.contains("--user") {
        command.env("SELVEDGE_FAAS_PASSWORD", "sesame");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A broker that listens.
fn wait_for(address: &str) {
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens at {address}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What `top` shows, once it shows this.
fn wait_until_shown(what: &str, address: &str, access: &str) -> String {
    let begun = Instant::now();
    loop {
        let shown = text(&run(&format!("top --once --gateway {address}{access}")).stdout);
        if shown.contains(what) {
            return shown;
        }
        assert!(begun.elapsed() < PATIENCE, "no {what:?} in {shown}");
    }
}

fn seconds() -> u64 {
    let seconds = env::var("SELVEDGE_FAAS_SECONDS").ok();
    seconds.map_or(20, |it| it.parse().unwrap())
}

/// Runs the demo, in which all comes right, and returns what it prints.
fn demo(seconds: u64, more: &[&str]) -> String {
    let mut command = Command::new(PROGRAM);
    let seconds = seconds.to_string();
    command.args(["demo", "--seconds", &seconds]).args(more);
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(
        out.contains("each task has exactly one answer, the right one"),
        "{out}"
    );
    println!("{out}");
    out
}

#[test]
fn each_task_has_one_answer_while_gateways_and_followers_are_killed() {
    demo(seconds(), &[]);
}

#[test]
fn nothing_is_lost_at_the_moment_at_which_a_follower_falls_asleep() {
    let calm = "--calm --every 30 --active 40 --asleep 40";
    let calm: Vec<&str> = calm.split(' ').collect();
    let out = demo(10, &calm);
    let row = out.lines().find(|it| it.starts_with("the right value"));
    let slowest = row.and_then(|it| it.split_whitespace().last()).unwrap();
    // Who loses a request is waited for as long as a function may run, which is 5 s.
    assert!(slowest.parse::<u64>().unwrap() < 5_000, "{out}");
}

#[test]
fn each_task_has_one_answer_where_mosquitto_has_the_mailboxes() {
    let named = env::var("SELVEDGE_MOSQUITTO");
    let program = named.unwrap_or_else(|_| "mosquitto".into());
    let is_there = Command::new(&program).arg("-h").output().is_ok();
    if !is_there {
        let required = env::var_os("SELVEDGE_MOSQUITTO_REQUIRED").is_some();
        assert!(!required, "no {program}: apt-get install mosquitto");
        println!("skipped: no {program}; apt-get install mosquitto, or set SELVEDGE_MOSQUITTO");
        return;
    }
    demo(seconds(), &["--mosquitto", &program]);
}

#[test]
fn a_module_reaches_the_followers_and_all_is_there_after_a_kill() {
    let dir = Dir::new("module");
    let at = "127.61.2.1:18831";
    let access = " --user node";
    let data = dir.0.join("data");
    let data = data.display();
    let gateway = format!("gateway --id 1 --listen {at} --data {data}{access}");
    let begun = spawn(&format!("{gateway} --first"));
    wait_for(at);
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            spawn(&format!(
                "follower --executor hash --id {id} --gateway 1={at} --active 500ms --asleep 200ms{access}"
            ))
        })
        .collect();
    wait_until_shown("3 followers in 1 units", at, access);
    let file = dir.0.join("function.wasm");
    fs::write(&file, [WASM, &[0, 0xa0, 0x8d, 6, 0], &[7; 99_999]].concat()).unwrap();
    let file = file.display();
    let first = run(&format!(
        "submit {file} --code with-module --gateway {at}{access}"
    ));
    let err = text(&first.stderr);
    assert!(first.status.success(), "{err}");
    assert!(
        err.contains("the module is on the disks of 1 gateways"),
        "{err}"
    );
    assert!(err.contains("attempt 1, at followers 10"), "{err}");
    let plain = run(&format!("submit --code with-module --gateway {at}{access}"));
    assert!(plain.status.success());
    assert_ne!(first.stdout, plain.stdout, "the module counts");

    drop(begun); // Killed.
    let _again = spawn(&gateway);
    wait_for(at);
    wait_until_shown("1 modules", at, access);
    let second = run(&format!(
        "submit {file} --code with-module --gateway {at}{access}"
    ));
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_eq!(first.stdout, second.stdout);

    let text_file = dir.0.join("text.wasm");
    fs::write(&text_file, "a text").unwrap();
    let text_file = text_file.display();
    let wrong = run(&format!("submit {text_file} --gateway {at}{access}"));
    assert_eq!(wrong.status.code(), Some(6), "{}", text(&wrong.stderr));
    let failed = run(&format!("submit --code=fail --gateway {at}{access}"));
    assert_eq!(
        failed.status.code(),
        Some(0),
        "it is no `fail ` with a blank"
    );
    // Nobody comes in without the password.
    let stranger = run(&format!("submit --code x --gateway {at}"));
    assert_eq!(
        stranger.status.code(),
        Some(1),
        "{}",
        text(&stranger.stdout)
    );
}

#[test]
fn a_task_that_was_accepted_is_done_though_all_that_know_it_are_killed() {
    let dir = Dir::new("accepted");
    let ats = ["127.61.5.1:18831", "127.61.5.2:18831", "127.61.5.3:18831"];
    let gateway = |id: usize| {
        let peers = (1..=3).filter(|it| *it != id);
        let peers: Vec<String> = peers
            .map(|it| format!(" --peer {it}={}", ats[it - 1]))
            .collect();
        let (at, peers) = (ats[id - 1], peers.concat());
        let data = dir.0.join(id.to_string());
        format!(
            "gateway --id {id} --listen {at} --data {}{peers}",
            data.display()
        )
    };
    let gateways: Vec<Node> = (1..=3)
        .map(|id| spawn(&format!("{} --first", gateway(id))))
        .collect();
    ats.iter().for_each(|it| wait_for(it));
    let client = spawn_client(&format!("submit --code lasting --gateway 1={}", ats[0]));
    wait_until_shown("1 tasks open", ats[1], "");
    // No follower was there yet: nothing has run.
    drop((client, gateways));
    let _gateways: Vec<Node> = (1..=3).map(|id| spawn(&gateway(id))).collect();
    ats.iter().for_each(|it| wait_for(it));
    wait_until_shown("0 followers in 0 units, 1 tasks open", ats[0], "");
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            let at = ats[id % 3];
            let gateway = id % 3 + 1;
            spawn(&format!(
                "follower --executor hash --id {id} --gateway {gateway}={at} --active 500ms --asleep 0s"
            ))
        })
        .collect();
    wait_until_shown("3 followers in 1 units, 0 tasks open", ats[2], "");
    let shown = text(&run(&format!("top --once --counters --gateway {}", ats[0])).stdout);
    assert!(shown.contains(" ended 1 "), "{shown}");
}

/// A gateway and three followers that are awake half a second of 0.7 s.
fn small(dir: &Dir, at: &str, more: &str) -> Vec<Node> {
    let data = dir.0.display();
    let gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let followers = (101..104).map(|id| {
        spawn(&format!(
            "follower --id {id} --gateway 1={at} --active 500ms --asleep 200ms{more}"
        ))
    });
    [gateway].into_iter().chain(followers).collect()
}

#[test]
fn webassembly_is_called_and_what_cannot_be_called_is_not_sent() {
    let (dir, at) = (Dir::new("wasm"), "127.61.6.1:18831");
    let _nodes = small(&dir, at, "");
    wait_until_shown("3 followers in 1 units", at, "");
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/functions");
    let gcd = format!("submit {functions}/gcd.wasm --gateway {at} --call");
    let answered = run(&format!("{gcd} gcd --arg 84i64 --arg 36i64"));
    assert_eq!(
        text(&answered.stdout),
        "12i64\n",
        "{}",
        text(&answered.stderr)
    );
    for wrong in [
        "lcm --arg 84i64 --arg 36i64",
        "gcd --arg 84i64",
        "gcd --arg x",
    ] {
        let refused = run(&format!("{gcd} {wrong}"));
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    }
    let voters = |err: &str| {
        let line = err
            .lines()
            .find_map(|it| it.strip_prefix("voted for it: followers "));
        let known = ["101", "102", "103"];
        let all: Vec<&str> = line.unwrap_or_default().split(", ").collect();
        assert!(all.iter().all(|it| known.contains(it)), "{err}");
        assert!((2..=3).contains(&all.len()), "{err}");
    };
    voters(&text(&answered.stderr));
    // A code that is no call fails at all followers alike.
    let failed = run(&format!("submit --code nonsense --gateway {at}"));
    let err = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{err}");
    assert!(err.contains("it calls no function"), "{err}");
    voters(&err);
}

#[test]
fn a_follower_that_is_killed_fetches_no_module_again_unless_it_is_damaged() {
    let (dir, at) = (Dir::new("state"), "127.61.10.1:18831");
    let _nodes = small(&dir, at, "");
    wait_until_shown("3 followers in 1 units", at, "");
    let (state, log) = (dir.0.join("state"), dir.0.join("log"));
    let follower = || {
        let mut command = Command::new(PROGRAM);
        let state = state.display();
        let arguments = format!(
            "follower --id 104 --gateway 1={at} --active 500ms --asleep 200ms --state {state} --verbose"
        );
        command.args(arguments.split(' ')).arg("--is-child");
        let log = fs::File::options().create(true).append(true).open(&log);
        command.stdin(Stdio::null()).stderr(log.unwrap());
        Node(command.spawn().unwrap())
    };
    // How often it says this, once it has run one more function.
    let mut argument = 0;
    let mut counts = |life: u32| {
        let begun = Instant::now();
        wait_until_shown("4 followers in 1 units", at, "");
        loop {
            argument += 12;
            let module = concat!(env!("CARGO_MANIFEST_DIR"), "/functions/gcd.wasm");
            let call = format!("--call gcd --arg {argument}i64 --arg 18i64");
            let answered = run(&format!("submit {module} --gateway {at} {call}"));
            assert!(answered.status.success(), "{}", text(&answered.stderr));
            let said = fs::read_to_string(&log).unwrap();
            let count = |what: &str| said.matches(what).count() as u32;
            let (got, read) = (count("got module"), count("has module"));
            if got + read == life {
                return (got, read, count("has found 1 modules damaged"));
            }
            assert!(begun.elapsed() < PATIENCE, "{said}");
        }
    };
    let first = follower();
    assert_eq!(counts(1), (1, 0, 0));
    drop(first); // As `kill -9` does.
    let second = follower();
    assert_eq!(counts(2), (1, 1, 0));
    drop(second);
    let mut files = fs::read_dir(&state).unwrap();
    let file = files.next().unwrap().unwrap().path();
    fs::write(file, "damaged").unwrap();
    let third = follower();
    assert_eq!(counts(3), (2, 1, 1));
    drop(third);
    let _fourth = follower();
    assert_eq!(counts(4), (2, 2, 1));
}

/// Something that `functions/fetch.sh` has fetched, or a line that says so.
fn part(name: &str) -> Option<String> {
    let parts = env::var_os("SELVEDGE_PARTS").map(PathBuf::from);
    let found = parts.map(|it| it.join("faas").join(name));
    let found = found.filter(|it| it.exists());
    if found.is_none() {
        let is_required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some_and(|it| it == "1");
        assert!(!is_required, "{name} is required: run functions/fetch.sh");
        println!("skipped, for {name} is not in SELVEDGE_PARTS: run functions/fetch.sh");
    }
    Some(found?.display().to_string())
}

#[test]
fn modules_of_others_run_at_followers_that_give_them_16_mib() {
    let Some((fft, net)) = part("kissfft.wasm").zip(part("rnnoise.wasm")) else {
        return;
    };
    let (dir, at) = (Dir::new("roomy"), "127.61.9.1:18831");
    let _nodes = small(&dir, at, " --memory 20971520");
    wait_until_shown("3 followers in 1 units", at, "");
    // 1 and i: their sum, and their difference.
    let pair = "hex:0000803f00000000000000000000803f";
    let files = "--stub a.a --stub a.b --stub a.d --stub a.e";
    let submit = format!("submit {fft} --gateway {at} --call fft --arg {pair}");
    let transformed = run(&format!("{submit} {files}"));
    assert_eq!(
        text(&transformed.stdout),
        "hex:0000803f0000803f0000803f000080bf\n",
        "{}",
        text(&transformed.stderr)
    );
    let refused = run(&submit);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("stub `a."));
    // Silence is no voice.
    let silence = "00".repeat(480);
    let heard = run(&format!(
        "submit {net} --gateway {at} --call voice --arg hex:{silence} --arg 3 --stub a.a"
    ));
    assert_eq!(text(&heard.stdout), "0.0f32\n", "{}", text(&heard.stderr));
}

#[test]
fn a_function_may_take_longer_than_a_period_and_not_longer_than_its_time() {
    let (dir, at) = (Dir::new("long"), "127.61.7.1:18831");
    let _nodes = small(&dir, at, " --executor hash --time 7s");
    wait_until_shown("3 followers in 1 units", at, "");
    let submit = |code: &str| {
        let mut command = Command::new(PROGRAM);
        command.args(["submit", "--gateway", at, "--code", code]);
        command.output().unwrap()
    };
    // Longer than the broker waits for a sign of life, too.
    let begun = Instant::now();
    let long = submit("wait 6000 x");
    assert!(long.status.success(), "{}", text(&long.stderr));
    assert!(
        text(&long.stderr).contains("attempt 1,"),
        "{}",
        text(&long.stderr)
    );
    assert!(begun.elapsed() >= Duration::from_secs(6));
    let longer = submit("wait 600000 x");
    let err = text(&longer.stderr);
    assert_eq!(longer.status.code(), Some(3), "{err}");
    assert!(err.contains("it took too long"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_cancels_a_task() {
    use rustix::process::{Pid, Signal, kill_process};

    let (dir, at) = (Dir::new("cancel"), "127.61.8.1:18831");
    let data = dir.0.display();
    let _gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let mut client = spawn_client(&format!("submit --code x --gateway 1={at}"));
    wait_until_shown("1 tasks open", at, "");
    kill_process(Pid::from_child(&client.0), Signal::INT).unwrap();
    assert_eq!(client.0.wait().unwrap().code(), Some(130));
    wait_until_shown("0 tasks open", at, "");
}

#[test]
fn input_that_is_wrong_is_counted_and_nothing_else_happens() {
    let dir = Dir::new("wrong");
    let (host, at) = ("127.61.3.1", "127.61.3.1:18831");
    let data = dir.0.display();
    let _gateway = spawn(&format!(
        "gateway --id 1 --listen {at} --data {data} --first"
    ));
    wait_for(at);
    let _followers: Vec<Node> = (101..104)
        .map(|id| {
            spawn(&format!(
                "follower --executor hash --id {id} --gateway 1={at} --active 1s --asleep 0s"
            ))
        })
        .collect();
    wait_until_shown("3 followers in 1 units", at, "");

    let mut options = MqttOptions::new("a-stranger", host, 18_831);
    options.set_max_packet_size(1 << 21, 1 << 21);
    let (client, mut connection) = Client::new(options, 100);
    let long = vec![1; 3_000];
    let wrong: [(&str, &[u8]); 8] = [
        ("selvedge/faas/1/1", b""),
        ("selvedge/faas/1/1", &[9, 9, 9, 9]),
        ("selvedge/faas/1/1", &[1, 77, 0]),
        ("selvedge/faas/1/1", &[1, 9, 1, 0, 0xff, 0xff]),
        ("selvedge/faas/1/1", &[&[1, 9], long.as_slice()].concat()),
        ("selvedge/faas/1/1/relay/101", &[1, 9, 5, 0, 2]),
        // In the name of the gateway itself, and of nobody.
        ("selvedge/faas/1/1", &[1, 9, 1, 0, 2]),
        ("selvedge/faas/1/101", &[1, 9, 5, 0, 2]),
    ];
    for (topic, payload) in wrong {
        client
            .publish(topic, QoS::AtLeastOnce, false, payload)
            .unwrap();
    }
    let mut left = wrong.len();
    for event in connection.iter() {
        if let Event::Incoming(Incoming::PubAck(_)) = event.unwrap() {
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    let answered = run(&format!("submit --code still-here --gateway {at}"));
    assert!(answered.status.success(), "{}", text(&answered.stderr));
    let shown = text(&run(&format!("top --once --counters --gateway {at}")).stdout);
    for counted in [
        "malformed 2",
        "versions 1",
        "kinds 1",
        "long 1",
        "not_relayed 1",
    ] {
        assert!(shown.contains(counted), "no {counted:?} in {shown}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_local_mesh_runs_functions_and_nothing_of_it_stays_when_it_ends() {
    use rustix::process::{Pid, Signal, kill_process};

    let at = "127.0.0.1:28831";
    let dir = Dir::new("local");
    let start = || {
        let mut command = Command::new(PROGRAM);
        command.args(["local", "--port", "28831", "--active", "200"]);
        command.env("TMPDIR", &dir.0).stdin(Stdio::null());
        Node(command.spawn().unwrap())
    };
    // Also while it comes up.
    let mut early = start();
    while fs::read_dir(&dir.0).unwrap().next().is_none() {
        thread::sleep(Duration::from_millis(1));
    }
    kill_process(Pid::from_child(&early.0), Signal::TERM).unwrap();
    assert_eq!(early.0.wait().unwrap().code(), Some(0));
    assert!(fs::read_dir(&dir.0).unwrap().next().is_none());

    let mut local = start();
    wait_for(at);
    wait_until_shown("5 followers in 1 units", at, "");
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/functions");
    let gcd = format!("submit {functions}/gcd.wasm --gateway {at} --call gcd");
    let answered = run(&format!("{gcd} --arg 84i64 --arg 36i64"));
    assert_eq!(text(&answered.stdout), "12i64\n");
    assert!(fs::read_dir(&dir.0).unwrap().next().is_some());
    kill_process(Pid::from_child(&local.0), Signal::INT).unwrap();
    assert_eq!(local.0.wait().unwrap().code(), Some(0));
    assert!(fs::read_dir(&dir.0).unwrap().next().is_none());
    assert!(TcpStream::connect(at).is_err(), "the gateways are gone");
}

/// What a measurement prints, all of whose tasks were answered right.
fn measure(arguments: &str) -> String {
    let output = run(&format!("measure {arguments}"));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    out
}

/// The cells of the rows that begin so.
fn rows(table: &str, begin: &str) -> Vec<Vec<String>> {
    let rows = table.lines().filter(|it| it.starts_with(begin));
    let cells = rows.map(|it| it.split('|').map(|it| it.trim().to_owned()).collect());
    cells.collect()
}

#[test]
fn measurements_print_a_row_for_each_case() {
    let short = "--units 3,5 --tasks 2 --at-once 1 --active 200 --length 100 --seed 1";
    let duty = measure(&format!("duty --shares 50,100 {short}"));
    for (share, unit) in [("50%", "3"), ("50%", "5"), ("100%", "3"), ("100%", "5")] {
        let found = rows(&duty, &format!("| {share} |"));
        let row = found.iter().find(|it| it[3] == unit).unwrap();
        let [median, p99] = [4, 5].map(|it| row[it].parse::<u64>().unwrap());
        assert!(100 <= median && median <= p99, "{duty}");
        // The gateway takes 2.6 W, and three nodes as much.
        let energy: f64 = row[7].parse().unwrap();
        assert!(energy > 0.1 * 2.592_3, "{duty}");
        assert_eq!(row[10], "0", "{duty}");
        // One that never sleeps is awake all the time, but for when it begins.
        let awake: u32 = row[8].strip_suffix('%').unwrap().parse().unwrap();
        let least = if share == "100%" { 90 } else { 1 };
        assert!((least..=100).contains(&awake), "{duty}");
    }
    assert_eq!(rows(&duty, "| units of 5, from 50% to 100% |").len(), 1);
    let crowd = measure("crowd --gateways 1 --followers 4 --asleep 500 --seconds 2 --seed 1");
    assert!(crowd.contains("| 10 / 0 / 0 / 0 |"), "{crowd}");
    let memory = &rows(&crowd, "| a follower: PSS")[0][2];
    assert!(
        memory.ends_with(" MiB") && !memory.starts_with("0.00"),
        "{crowd}"
    );
    let rate = measure("rate --units 1 --first 5 --most 5 --limit 60000 --seconds 1 --halves 0");
    let rate = rows(&rate, "| 5 |");
    assert_eq!((rate.len(), rate[0][7].as_str()), (1, "yes"), "{rate:?}");
}
