//! The program, and its answers.

use core::time::Duration;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub(crate) struct Hub {
    child: Child,
    pub(crate) address: String,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Hub {
    pub(crate) fn start(dir: &Path) -> Self {
        // Its later output is not read: it runs all the same.
        Self::with(dir, &[]).0
    }

    /// Starts it at the address of a hub that has ended.
    pub(crate) fn start_at(address: &str, dir: &Path) -> Self {
        Self::spawn(dir, address, &[]).0
    }

    /// Starts it with more arguments; returns its later output, too.
    pub(crate) fn with(dir: &Path, arguments: &[&str]) -> (Self, BufReader<ChildStderr>) {
        Self::spawn(dir, "127.0.0.1:0", arguments)
    }

    fn spawn(dir: &Path, address: &str, arguments: &[&str]) -> (Self, BufReader<ChildStderr>) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_selvedge-hub"))
            .arg(dir.join("home.json"))
            .arg("--state")
            .arg(dir.join("state"))
            .args(["--http", address])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut reported = Vec::new();
        let address = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line).unwrap() == 0 {
                panic!("it ended: {reported:?}");
            }
            if let Some((_, address)) = line.rsplit_once("the page is at http://") {
                break address.trim().to_string();
            }
            reported.push(line);
        };
        (Self { child, address }, stderr)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn terminate(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, header: &str) -> (u16, String) {
        ask(&self.address, method, path, header)
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, body) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("{body}"))
    }

    pub(crate) fn run(&self, name: &str) -> u64 {
        let (status, body) = self.ask("POST", &format!("/api/routines/{name}/run"), "");
        assert_eq!(status, 202, "{body}");
        let notified: Value = serde_json::from_str(&body).unwrap();
        notified["id"].as_u64().unwrap()
    }

    pub(crate) fn wait_for(&self, id: u64, what: &str) -> Value {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let run = self.get(&format!("/api/runs/{id}"));
            if run["what"] == what {
                return run;
            }
            assert!(Instant::now() < until, "{run}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// The status and the body of the answer to a request at this address.
pub(crate) fn ask(address: &str, method: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n{header}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    (status, body.to_string())
}
