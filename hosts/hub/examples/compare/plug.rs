//! Plugs of a simulator, one process each: killing the process is unplugging it.

use core::time::Duration;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use selvedge_hub::device::kasa::{decode, encode, state_in};

/// The port of all plugs of this kind.
const PORT: u16 = 9_999;

/// A command that ends with the thread which started it.
pub(crate) fn tied(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL"])
        .arg(program.as_ref())
        .stdin(Stdio::null());
    command
}

pub(crate) struct Plug {
    pub(crate) address: String,
    modules: PathBuf,
    child: Option<Child>,
    seen: Sender<Instant>,
    /// The time of each command.
    pub(crate) commands: Receiver<Instant>,
}

impl Plug {
    /// A plug that is off.
    pub(crate) fn start(modules: &Path, address: String) -> Self {
        let (seen, commands) = channel();
        let mut plug = Self {
            address,
            modules: modules.into(),
            child: None,
            seen,
            commands,
        };
        plug.plug_in();
        plug
    }

    /// It comes back as off.
    pub(crate) fn plug_in(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("parts/plug.js");
        let mut node = tied("node");
        node.env("NODE_PATH", &self.modules).arg(script);
        node.args([&self.address, &PORT.to_string(), "hs100"]);
        let mut child = node.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.child = Some(child);
        let ready = lines.next().expect("a plug that starts").unwrap();
        assert_eq!(ready, "ready", "{}", self.address);
        let seen = self.seen.clone();
        thread::spawn(move || {
            lines
                .map_while(Result::ok)
                .try_for_each(|_| seen.send(Instant::now()))
        });
    }

    pub(crate) fn pull_out(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// True if it reports that it is on; `None` if it has no power.
    pub(crate) fn is_on(&self) -> Option<bool> {
        self.child.as_ref()?;
        let answer = self.ask(r#"{"system":{"get_sysinfo":{}}}"#);
        Some(state_in(&answer.unwrap(), None).unwrap())
    }

    fn ask(&self, text: &str) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect((self.address.as_str(), PORT))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(&encode(text))?;
        let mut len = [0; 4];
        stream.read_exact(&mut len)?;
        let mut body = vec![0; u32::from_be_bytes(len) as usize];
        stream.read_exact(&mut body)?;
        Ok(decode(&body))
    }
}

impl Drop for Plug {
    fn drop(&mut self) {
        self.pull_out();
    }
}
