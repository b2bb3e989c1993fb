//! Runs of the command, with its output.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::spawn;
use std::time::Duration;

use tokio::time::Instant;

/// Far longer than anything takes, for machines with other work.
const PATIENCE: Duration = Duration::from_secs(60);

/// The command's path.
pub(crate) const SELVEDGE: &str = env!("CARGO_BIN_EXE_selvedge");

/// Runs the command to its end.
pub(crate) fn selvedge(arguments: &[&str]) -> Output {
    Command::new(SELVEDGE).args(arguments).output().unwrap()
}

/// The standard error of a finished command.
pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A running program. It is killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    reported: Vec<String>,
}

impl Running {
    pub(crate) fn start(program: impl AsRef<Path>, arguments: &[&str]) -> Self {
        let mut child = Command::new(program.as_ref())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            lines,
            reported: Vec::new(),
        }
    }

    /// Waits for a line that contains `part`.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        self.wait_for_line(part, |_| true)
    }

    /// Waits for a line that contains `part` and for which `is_so` is true.
    pub(crate) fn wait_for_line(&mut self, part: &str, is_so: impl Fn(&str) -> bool) -> String {
        let is_it = |line: &&String| line.contains(part) && is_so(line);
        if let Some(line) = self.reported.iter().find(is_it) {
            return line.clone();
        }
        // Some programs write lines for ever.
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no {part:?} in {:#?}", self.reported));
            self.reported.push(line.clone());
            if is_it(&&line) {
                return line;
            }
        }
    }

    /// All lines written until now.
    pub(crate) fn said_by_now(&mut self) -> &[String] {
        self.reported.extend(self.lines.try_iter());
        &self.reported
    }

    /// Forgets all lines written until now: only later ones are waited for.
    pub(crate) fn forget(&mut self) {
        self.said_by_now();
        self.reported.clear();
    }

    /// Sends a signal by its name, as in `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let (signal, id) = (format!("-{name}"), self.child.id().to_string());
        let sent = Command::new("kill").args([signal, id]).status().unwrap();
        assert!(sent.success());
    }

    /// Presses Ctrl-C and waits for the end.
    pub(crate) fn interrupt(mut self) -> ExitStatus {
        self.leave()
    }

    /// Presses Ctrl-C and waits for the end; the output can still be read.
    pub(crate) fn leave(&mut self) -> ExitStatus {
        self.signal("INT");
        self.child.wait().unwrap()
    }

    /// Kills it, and waits until its port is free.
    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder of one test's own, removed on drop.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A key file, made by the command.
    pub(crate) fn key(&self, name: &str) -> String {
        let path = self.path(name);
        assert!(selvedge(&["key", &path]).status.success());
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ended = std::fs::remove_dir_all(&self.0).is_ok();
    }
}
