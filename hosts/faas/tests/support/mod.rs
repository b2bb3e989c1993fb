//! Processes, and the directory of their data: for all test programs that start some.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_selvedge-faas");
/// The longest wait for an expected event.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A process. It is killed when this is dropped.
pub(crate) struct Node(pub(crate) Child);

impl Drop for Node {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A directory that is removed on drop.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let dir = env::temp_dir().join(format!("selvedge-faas-{name}-{}", process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// Writes a file, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.file(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

pub(crate) fn command(arguments: &str, password: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split(' ')).stdin(Stdio::null());
    command.env("SELVEDGE_FAAS_PASSWORD", password);
    command
}

pub(crate) fn spawn(arguments: &str) -> Node {
    spawn_with(arguments, "")
}

pub(crate) fn spawn_with(arguments: &str, password: &str) -> Node {
    Node(
        command(arguments, password)
            .arg("--is-child")
            .spawn()
            .unwrap(),
    )
}

pub(crate) fn run(arguments: &str, password: &str) -> Output {
    command(arguments, password).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until a process listens there.
pub(crate) fn wait_for(address: &str) {
    wait_until(&format!("a process listens at {address}"), || {
        TcpStream::connect(address).is_ok()
    });
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within a minute: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// The output of `top`, once it contains `what`.
pub(crate) fn wait_until_shown(what: &str, flags: &str, password: &str) -> String {
    let begun = Instant::now();
    loop {
        let top = run(&format!("top --once {flags}"), password);
        let shown = text(&top.stdout);
        if shown.contains(what) {
            return shown;
        }
        let why = text(&top.stderr);
        assert!(begun.elapsed() < PATIENCE, "no {what:?} in {shown}{why}");
    }
}
