//! A plug of the Kasa family in a process of its own, and the events at all plugs.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;
use std::{env, thread};

use rustix::process::{Signal, set_parent_process_death_signal};
use selvedge_hub::device::kasa::{decode, encode, state_in};

/// The argument with which this program is a plug.
pub(crate) const ROLE: &str = "plug";
/// The time that a plug takes to answer a command.
const TAKES: Duration = Duration::from_millis(20);
const QUESTION: &str = r#"{"system":{"get_sysinfo":{}}}"#;

/// Microseconds since 1970, on the clock that all processes have in common.
pub(crate) fn now() -> u64 {
    u64::try_from(UNIX_EPOCH.elapsed().unwrap().as_micros()).unwrap()
}

/// Runs a plug that is off, and prints each command: its number, the time, and the state.
pub(crate) fn be(number: &str, address: &str) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let listener = TcpListener::bind(address)?;
    println!("{number} {} ready", now());
    let mut is_on = false;
    for stream in listener.incoming() {
        // A client that has left, or a hub that was killed, is no reason to end.
        serve(stream?, number, &mut is_on).ok();
    }
    Ok(())
}

fn serve(mut stream: TcpStream, number: &str, is_on: &mut bool) -> io::Result<()> {
    let text = String::from_utf8_lossy(&read_frame(&mut stream)?).into_owned();
    let answer = if text == QUESTION {
        let state = u8::from(*is_on);
        format!(r#"{{"system":{{"get_sysinfo":{{"relay_state":{state}}}}}}}"#)
    } else {
        *is_on = text.contains(r#""state":1"#);
        // One call, so that no other output comes between.
        let line = format!("{number} {} {}\n", now(), if *is_on { "on" } else { "off" });
        io::stdout().write_all(line.as_bytes())?;
        thread::sleep(TAKES);
        r#"{"system":{"set_relay_state":{"err_code":0}}}"#.into()
    };
    stream.write_all(&encode(&answer))
}

fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let mut body = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut body)?;
    Ok(decode(&body))
}

/// An event at a plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mark {
    /// It was commanded to be on or off, and is.
    Set(bool),
    /// It lost its power, and is off when it is back.
    Lost,
}

/// The events at each plug, with their times.
pub(crate) type Log = Arc<Mutex<BTreeMap<usize, Vec<(u64, Mark)>>>>;

/// All plugs.
pub(crate) struct Plugs {
    addresses: Vec<String>,
    children: Vec<Option<Child>>,
    lines: PipeWriter,
    pub(crate) log: Log,
}

impl Plugs {
    pub(crate) fn start(addresses: Vec<String>) -> Self {
        let (from, lines) = io::pipe().unwrap();
        let log = Log::default();
        let written = Arc::clone(&log);
        thread::spawn(move || write_down(from, &written));
        let mut plugs = Self {
            children: addresses.iter().map(|_| None).collect(),
            addresses,
            lines,
            log,
        };
        for nth in 0..plugs.addresses.len() {
            plugs.plug_in(nth);
        }
        plugs
    }

    /// The calling thread must live as long as the plug.
    pub(crate) fn plug_in(&mut self, nth: usize) {
        let child = Command::new(env::current_exe().unwrap())
            .args([ROLE, &nth.to_string(), &self.addresses[nth]])
            .stdin(Stdio::null())
            .stdout(self.lines.try_clone().unwrap())
            .spawn();
        self.children[nth] = Some(child.unwrap());
    }

    pub(crate) fn pull_out(&mut self, nth: usize) {
        if let Some(mut child) = self.children[nth].take() {
            child.kill().unwrap();
            child.wait().unwrap();
            let mut log = self.log.lock().unwrap();
            log.entry(nth).or_default().push((now(), Mark::Lost));
        }
    }

    pub(crate) fn has_power(&self, nth: usize) -> bool {
        self.children[nth].is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// True if it reports that it is on.
    pub(crate) fn is_on(&self, nth: usize) -> Option<bool> {
        let ask = || {
            let mut stream = TcpStream::connect(&self.addresses[nth])?;
            stream.write_all(&encode(QUESTION))?;
            read_frame(&mut stream)
        };
        state_in(&ask().ok()?, None).ok()
    }
}

impl Drop for Plugs {
    fn drop(&mut self) {
        for mut child in self.children.drain(..).flatten() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn write_down(from: PipeReader, log: &Log) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let mut words = line.split(' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (nth, at) = (usize::try_from(number()).unwrap(), number());
        let mark = match words.next().unwrap() {
            "on" => Mark::Set(true),
            "off" => Mark::Set(false),
            _ => continue,
        };
        let mut log = log.lock().unwrap();
        log.entry(nth).or_default().push((at, mark));
    }
}
