//! The subcommands. Each runs to its end and returns true if all its checks held.

pub(crate) mod demo;
pub(crate) mod home;
pub(crate) mod hosts;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod node;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use selvedge_seal::KeyFileError;
use selvedge_udp::HostError;
use thiserror::Error;

/// A failure that ended a command early. Its one line names the thing asked, the cause, and the
/// remedy.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A node did not start.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The key file cannot be used.
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// A node would send in the clear without `--plain`.
    #[error(
        "no key: give --key FILE (`selvedge key FILE` makes the file), or --plain to send in the clear"
    )]
    NoKey,
    /// A flag means nothing to a node that sends in the clear.
    #[error(
        "{flag} does nothing with --plain, whose datagrams carry no group and no proof of their \
         sender: give --key FILE, or leave {flag} out and give each mesh a port of its own"
    )]
    NeedsKey { flag: &'static str },
    /// The tag by which nodes compare their settings of locks was given by hand.
    #[error("--locks sets the tag locks: leave out --tag locks=.., or give it another name")]
    TagOfLocks,
    /// A node refused a command.
    #[error(transparent)]
    Node(#[from] selvedge_udp::Error),
    /// A node stopped by itself.
    #[error("the node has stopped by itself, which is a defect: start it again")]
    Stopped,
    /// The ledger has no sockets.
    #[error("cannot open sockets on this machine: {0}: check the limit on open files")]
    Sockets(io::Error),
    /// The asynchronous runtime did not start.
    #[error("cannot start the runtime: {0}: check the limit on open files")]
    Runtime(io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}: choose another place with --out", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The standard output is closed.
    #[error("cannot write to the standard output: {0}: run the command with an open one")]
    Output(io::Error),
    /// A name does not resolve.
    #[error("cannot find {name}: {source}: check the name, or give an address like 192.0.2.1:7001")]
    Resolve { name: String, source: io::Error },
    /// A file cannot be read.
    #[error("cannot read {}: {source}: check the name", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file with routines is wrong.
    #[error("{}: {why}", path.display())]
    RoutineFile {
        path: PathBuf,
        why: Box<selvedge_routine::file::FileError>,
    },
    /// No device has that name.
    #[error("the home has no device {0:?}: give a DevID that the routines use")]
    NoDevice(String),
    #[error("the home has no routine {0:?}: give a name from the file")]
    NoRoutine(String),
    /// The hub refused a routine or a setting.
    #[error("the hub refuses: {why}")]
    Hub { why: String },
    /// The laboratory did not start.
    #[error(
        "cannot run selvedge-lab, which does this: {0}: build it beside this command \
         (`cargo build --release -p selvedge-lab`)"
    )]
    NoLab(io::Error),
    /// The host of functions did not start.
    #[error(
        "cannot run selvedge-{host}, which does this: {source}: build it (`cargo build --release \
         --manifest-path hosts/{host}/Cargo.toml`), and put it beside this command"
    )]
    NoHost {
        host: &'static str,
        source: io::Error,
    },
    /// Signals cannot be waited for.
    #[error("cannot wait for Ctrl-C: {0}: run the command in another environment")]
    Signal(io::Error),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}: give --seed (demo, home) or --id (node)")]
    Entropy(getrandom::Error),
}

impl Failure {
    /// The exit status: 2 for a wrong call, as for wrong flags, 1 for a later failure.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            Self::NoDevice(_)
            | Self::NoRoutine(_)
            | Self::NoKey
            | Self::NeedsKey { .. }
            | Self::TagOfLocks => ExitCode::from(2),
            Self::Host(_)
            | Self::KeyFile(_)
            | Self::Node(_)
            | Self::Stopped
            | Self::Sockets(_)
            | Self::Runtime(_)
            | Self::Write { .. }
            | Self::Read { .. }
            | Self::RoutineFile { .. }
            | Self::Hub { .. }
            | Self::Output(_)
            | Self::NoHost { .. }
            | Self::NoLab(_)
            | Self::Resolve { .. }
            | Self::Signal(_)
            | Self::Entropy(_) => ExitCode::FAILURE,
        }
    }
}

/// A runtime on this thread: the protocol needs no more.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)
}

/// The given seed, or a random one that is short enough to be typed again.
pub(crate) fn seed(given: Option<u64>) -> Result<u64, Failure> {
    given.map_or_else(|| Ok(entropy()? % 10_000), Ok)
}

/// A random number from the system.
pub(crate) fn entropy() -> Result<u64, Failure> {
    getrandom::u64().map_err(Failure::Entropy)
}
