//! The hub as a process that is killed, and its answers about runs.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use serde::Deserialize;

use crate::http::request;
use crate::plug::now;

/// The hub's answer about a run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Milliseconds since 1970.
    pub(crate) started: Option<u64>,
    pub(crate) ended: Option<u64>,
    pub(crate) what: String,
    pub(crate) notes: Vec<String>,
    pub(crate) place: Option<u64>,
}

impl Run {
    pub(crate) fn is_over(&self) -> bool {
        self.what == "undone" || self.what == "done" && self.place.is_some()
    }

    /// Returns true if a device still has to be restored.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_over() || self.notes.iter().any(|it| it.contains("is brought back"))
    }

    /// The reason why this command was skipped, if it was.
    pub(crate) fn skipped(&self, step: usize) -> Option<&str> {
        let start = format!("command {}: ", step + 1);
        self.notes.iter().find_map(|it| it.strip_prefix(&start))
    }
}

#[derive(Deserialize)]
pub(crate) struct View {
    pub(crate) devices: Vec<Shown>,
    runs: Vec<Run>,
}

/// The hub's answer about a device.
#[derive(Debug, Deserialize)]
pub(crate) struct Shown {
    pub(crate) name: String,
    pub(crate) state: Option<String>,
    pub(crate) up: bool,
}

/// The times at which a routine was requested and answered.
#[derive(Clone, Copy)]
pub(crate) struct Press {
    pub(crate) asked: u64,
    pub(crate) answered: u64,
}

/// All answers to clients.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The requests that were answered with 202.
    pub(crate) presses: BTreeMap<u64, Press>,
    /// Runs with an unknown end.
    pub(crate) open: BTreeSet<u64>,
    pub(crate) over: BTreeMap<u64, Run>,
    /// The number of requests without an answer, because the hub was killed.
    pub(crate) unanswered: u32,
    pub(crate) refused: u32,
}

/// The hub's address, for all clients.
pub(crate) struct Client {
    pub(crate) address: String,
    pub(crate) ledger: Mutex<Ledger>,
}

impl Client {
    fn get<T: for<'a> Deserialize<'a>>(&self, path: &str) -> Option<T> {
        let (status, body) = request(&self.address, "GET", path, "", "");
        (status == 200).then(|| serde_json::from_str(&body).unwrap())
    }

    pub(crate) fn view(&self) -> Option<View> {
        self.get("/api/home")
    }

    /// A run, while the hub keeps it.
    pub(crate) fn show(&self, id: u64) -> Option<Run> {
        self.get(&format!("/api/runs/{id}"))
    }

    pub(crate) fn press(&self, name: &str) {
        #[derive(Deserialize)]
        struct Notified {
            id: u64,
        }
        let asked = now();
        let path = format!("/api/routines/{name}/run");
        let (status, body) = request(&self.address, "POST", &path, "", "");
        let answered = now();
        let mut ledger = self.ledger.lock().unwrap();
        match status {
            202 => {
                let notified: Notified = serde_json::from_str(&body).unwrap();
                ledger
                    .presses
                    .insert(notified.id, Press { asked, answered });
                if !ledger.over.contains_key(&notified.id) {
                    ledger.open.insert(notified.id);
                }
            }
            0 => ledger.unanswered += 1,
            _ => ledger.refused += 1,
        }
    }

    /// Looks for runs that have ended. The hub keeps the latest 1,000, so this must be in time.
    pub(crate) fn look(&self) {
        let Some(view) = self.view() else {
            return;
        };
        let mut open = {
            let mut ledger = self.ledger.lock().unwrap();
            for run in view.runs.iter().map(|it| it.id) {
                // Some are not known from an answer, which was lost with the hub.
                if !ledger.over.contains_key(&run) {
                    ledger.open.insert(run);
                }
            }
            ledger.open.clone()
        };
        for run in view.runs.iter().filter(|it| !it.is_over()) {
            open.remove(&run.id);
        }
        for id in open {
            if let Some(run) = self.show(id).filter(Run::is_over) {
                let mut ledger = self.ledger.lock().unwrap();
                ledger.open.remove(&id);
                ledger.over.insert(id, run);
            }
        }
    }
}

/// The process.
pub(crate) struct Hub {
    program: PathBuf,
    dir: PathBuf,
    address: String,
    child: Option<Child>,
}

impl Hub {
    pub(crate) fn start(program: &Path, dir: &Path, address: &str) -> Self {
        let mut hub = Self {
            program: program.into(),
            dir: dir.into(),
            address: address.into(),
            child: None,
        };
        hub.begin();
        hub
    }

    /// Starts it on its folder, and waits until it answers. Returns the time that this took.
    pub(crate) fn begin(&mut self) -> Duration {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("hub.log"));
        let start = Instant::now();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(&self.program)
            .arg(self.dir.join("home.json"))
            .arg("--state")
            .arg(self.dir.join("state"))
            .args(["--http", &self.address])
            .stdin(Stdio::null())
            .stderr(log.unwrap())
            .spawn();
        self.child = Some(child.unwrap());
        while request(&self.address, "GET", "/api/home", "", "").0 != 200 {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "the hub does not start: {}",
                self.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
        start.elapsed()
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// The output of the hub.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("hub.log")).unwrap_or_default()
    }

    /// Its memory, and its share of it: RSS and PSS in kB.
    pub(crate) fn memory(&self) -> Option<(u64, u64)> {
        let id = self.child.as_ref()?.id();
        let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
        let value = |key: &str| {
            let line = text.lines().find_map(|it| it.strip_prefix(key))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some((value("Rss:")?, value("Pss:")?))
    }

    /// The size of its database in kB.
    pub(crate) fn disk(&self) -> u64 {
        let found = fs::metadata(self.dir.join("state/hub.redb"));
        found.map_or(0, |it| it.len() / 1_024)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.kill();
    }
}
