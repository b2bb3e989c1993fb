//! Both engines on one scenario, and the Explorer.

use core::time::Duration;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;

use selvedge_lab::checks::{FEW, LISTS};

use super::running::{complaint, lab};

/// A small scenario of the laboratory's own machine.
const SMALL: &str = "ricart-agrawala/3 nodes, 1 visit";

#[test]
fn a_scenario_by_its_name_is_searched_by_both_engines() {
    let output = lab(&["check", SMALL, "--engine", "both"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let notified = String::from_utf8(output.stdout).unwrap();
    assert!(notified.contains("stateright agrees"), "{notified}");
    assert!(notified.contains("2858 states"), "{notified}");
    // This scenario has no published rules.
    assert!(!notified.contains("our rules"), "{notified}");
    // And published rules that break, in JSON.
    let name = "ricart-agrawala/symmetric ignorance";
    let output = lab(&["check", name, "--engine", "both", "--json"]);
    assert!(output.status.success(), "{}", complaint(&output));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows[0]["outcome"], "breaks");
    assert_eq!(rows[0]["second_agrees"], true);
}

/// The second of four has more states than the others together.
#[test]
fn scenarios_that_run_at_one_time_are_told_in_order_and_the_largest_is_left_to_one_engine() {
    let ask = ["check", "ricart-agrawala", "--json", "--threads", "3"];
    let output = lab(&[&ask[..], &["--engine", "both-where-few"]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let list = LISTS
        .iter()
        .find(|it| it.name == "ricart-agrawala")
        .unwrap();
    let scenarios = (list.scenarios)();
    let mut notified: Vec<&str> = rows.iter().filter_map(|it| it["name"].as_str()).collect();
    notified.dedup();
    let quick = scenarios.iter().filter(|it| !it.is_deep());
    let names: Vec<&str> = quick.map(|it| it.name()).collect();
    assert_eq!(notified, names);
    for row in rows {
        let agrees = row["states"].as_u64().unwrap() <= FEW as u64;
        let expected = agrees.then_some(true);
        assert_eq!(row["second_agrees"].as_bool(), expected, "{row}");
    }
}

/// The fourth of these takes minutes in a build for tests.
#[test]
fn a_reader_that_goes_ends_all_searches() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge-lab"))
        .args(["check", "ricart-agrawala", "--deep", "--threads", "6"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with(SMALL), "{line}");
    drop(out);
    let mut is_over = false;
    for _ in 0..1_500 {
        is_over = child.try_wait().unwrap().is_some();
        if is_over {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    if !is_over {
        child.kill().unwrap();
    }
    assert!(is_over, "it goes on");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let notified = complaint(&output);
    assert!(notified.contains("cannot write"), "{notified}");
}

#[test]
fn the_help_says_how_many_states_are_few() {
    let output = lab(&["check", "--help"]);
    let notified = String::from_utf8(output.stdout).unwrap().replace(',', "");
    assert!(
        notified.contains(&format!("no more than {FEW} states")),
        "{notified}"
    );
}

#[test]
fn names_of_scenarios_begin_with_that_of_their_list() {
    for list in LISTS {
        let prefix = format!("{}/", list.name);
        for scenario in (list.scenarios)() {
            let name = scenario.name();
            assert!(name.starts_with(&prefix), "{name:?} in {:?}", list.name);
        }
    }
}

#[test]
fn the_explorer_wants_one_scenario() {
    let output = lab(&["check", "ricart-agrawala", "--explore"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains(SMALL), "{}", complaint(&output));
    let output = lab(&["check", "no such scenario", "--explore"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = lab(&["check", SMALL, "--explore", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        complaint(&output).contains(&address),
        "{}",
        complaint(&output)
    );
}

/// A running Explorer, which would run for ever.
struct Explorer(Child);

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait()).is_ok();
    }
}

fn fetch(address: &str, path: &str) -> String {
    // The address is printed before the server listens.
    let connect = || TcpStream::connect(address).ok();
    let mut attempts = (0..200).map(|_| {
        std::thread::sleep(core::time::Duration::from_millis(50));
        connect()
    });
    let mut stream = attempts.find_map(|it| it).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_explorer_shows_steps_in_the_words_of_traces() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge-lab"));
    command.args(["check", SMALL, "--explore", "127.0.0.1:0"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut explorer = Explorer(child);
    let mut line = String::new();
    let stdout = explorer.0.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let address = line.trim().rsplit_once("http://").unwrap().1;
    let address = address.strip_suffix('/').unwrap();

    let page = fetch(address, "/");
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("app.js"),
        "{page}"
    );
    let first = fetch(address, "/.states");
    assert!(first.contains("n1#0 = RicartAgrawala"), "{first}");
    let steps = fetch(address, "/.states/0");
    assert!(steps.contains("is asked to"), "{steps}");
    assert!(steps.contains("-> sends"), "{steps}");
}
