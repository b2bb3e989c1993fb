//! Independent simulated plugs, which lose their power in the middle of routines.
//!
//! `SELVEDGE_HUB_RUNS` is the number of runs, `SELVEDGE_HUB_SEED` the seed.

use core::time::Duration;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use selvedge_hub::device::Device as _;
use selvedge_hub::device::kasa::Kasa;
use serde_json::Value;

use crate::program::Hub;
use crate::support::Dir;

/// The folder with the simulator; without it, the test prints a message and ends.
fn parts() -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(|it| PathBuf::from(it).join("hub/node_modules"));
    let is_there = |it: &PathBuf| it.join("tplink-smarthome-simulator").exists();
    let found = parts.filter(is_there);
    if found.is_none() {
        let required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some();
        let how = "no simulator of plugs: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch.sh";
        assert!(!required, "{how}");
        println!("skipped: {how}");
    }
    found
}

struct Part {
    address: String,
    port: u16,
    parts: PathBuf,
    child: Option<Child>,
}

impl Part {
    fn start(parts: &Path, address: &str, port: u16) -> Self {
        let mut part = Self {
            address: address.into(),
            port,
            parts: parts.into(),
            child: None,
        };
        part.plug_in();
        part
    }

    fn plug_in(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts/plug.js");
        let mut node = Command::new("node");
        node.env("NODE_PATH", &self.parts).arg(script);
        node.arg(&self.address)
            .arg(self.port.to_string())
            .arg("hs100");
        let mut child = node.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line.trim(), "ready");
        self.child = Some(child);
    }

    fn pull_out(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn at(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    fn state(&self) -> String {
        let mut kasa = Kasa::new(self.at(), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(kasa.ask()).unwrap().to_string()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.pull_out();
    }
}

/// The shown state of a plug, and true if it is up.
type Shown = (String, bool);

fn shown(home: &Value) -> Vec<Shown> {
    let devices = home["devices"].as_array().unwrap().iter();
    let shown = devices.map(|it| (it["state"].as_str().unwrap_or("?").into(), it["up"] == true));
    shown.collect()
}

#[test]
fn plugs_that_are_pulled_out_leave_nothing_half_done() {
    let Some(parts) = parts() else { return };
    let number = |name, or| env::var(name).map_or(or, |it| it.parse().unwrap());
    let (runs, seed) = (
        number("SELVEDGE_HUB_RUNS", 4),
        number("SELVEDGE_HUB_SEED", 7),
    );
    println!("seed {seed}, {runs} runs");
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let mut plugs: Vec<_> = (1..4)
        .map(|it| Part::start(&parts, &format!("127.62.1.{it}"), 9_999))
        .collect();
    let dir = Dir::new("parts");
    let step = |name: &str, state: &str, hold: u32| {
        format!(r#"{{"DevID": "{name}", "Action": "{state}", "hold_ms": {hold}}}"#)
    };
    let all = |state: &str, hold| ["a", "b", "c"].map(|it| step(it, state, hold)).join(", ");
    let drivers = ["a", "b", "c"].iter().zip(&plugs);
    let drivers =
        drivers.map(|(name, it)| format!(r#""{name}": {{"kasa": {{"address": "{}"}}}}"#, it.at()));
    let home = format!(
        r#"{{"routines": [{{"RoutineName": "on", "CommandList": [{}]}}, {{"RoutineName": "off", "CommandList": [{}]}}],
            "hub": {{"devices": {{{}}}}}}}"#,
        all("on", 400),
        all("off", 0),
        drivers.collect::<Vec<_>>().join(", ")
    );
    fs::write(dir.path().join("home.json"), home).unwrap();
    let hub = Hub::start(dir.path());
    let wait = |what: &str, so: &mut dyn FnMut(&[Shown]) -> bool| {
        let until = Instant::now() + Duration::from_secs(40);
        loop {
            let shown = shown(&hub.get("/api/home"));
            if so(&shown) {
                return shown;
            }
            assert!(Instant::now() < until, "{what}: {shown:?}");
            thread::sleep(Duration::from_millis(30));
        }
    };
    let (mut done, mut undone) = (0, 0);
    for nth in 0..runs {
        wait("all are up", &mut |it| it.iter().all(|it| it.1));
        let off = hub.run("off");
        hub.wait_for(off, "done");
        let (victim, after) = (rng.next_u32() as usize % 3, rng.next_u32() % 1_600);
        let id = hub.run("on");
        thread::sleep(Duration::from_millis(after.into()));
        plugs[victim].pull_out();
        thread::sleep(Duration::from_millis(4_500));
        plugs[victim].plug_in();
        wait("all are up", &mut |it| it.iter().all(|it| it.1));
        // A plug that is back in time takes its command, and the run goes on.
        wait("it has ended", &mut |_| {
            let run = hub.get(&format!("/api/runs/{id}"));
            run["what"] == "done" || run["what"] == "undone"
        });
        // The view agrees with the plugs.
        wait("all is shown as it is", &mut |it| {
            it.iter()
                .zip(&plugs)
                .all(|(shown, plug)| shown.0 == plug.state())
        });
        let run = hub.get(&format!("/api/runs/{id}"));
        let states: Vec<_> = plugs.iter().map(Part::state).collect();
        let others = states.iter().enumerate().filter(|it| it.0 != victim);
        let mut others = others.map(|it| it.1.as_str());
        let notified = format!("run {nth}: plug {victim} after {after} ms: {states:?}, {run}");
        match run["what"].as_str().unwrap() {
            "done" => {
                done += 1;
                assert!(others.all(|it| it == "on"), "{notified}");
            }
            "undone" => {
                undone += 1;
                assert!(
                    others.all(|it| it == "off") && states[victim] == "off",
                    "{notified}"
                );
                assert!(
                    run["why"].as_str().unwrap().contains(['a', 'b', 'c']),
                    "{notified}"
                );
            }
            _ => panic!("{notified}"),
        }
    }
    println!("{done} done, {undone} undone, none half done");
}
