//! The reasons why an agent does not start, or ends.

use std::io;
use std::path::PathBuf;

use selvedge_http::{NoChance, ServerError, TokenError};
use selvedge_udp::HostError;
use selvedge_udp::seal::KeyFileError;
use selvedge_udp::selvedge::kgroup::ConfigError;
use thiserror::Error;

/// The reason why an agent does not start, or ends.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A setting is missing.
    #[error("{0} is not given: give --{0}, SELVEDGE_{upper}, or {0} in the file", upper = .0.to_uppercase().replace('-', "_"))]
    Missing(&'static str),
    /// A node would send in the clear without being asked to.
    #[error(
        "no key: give --key FILE (`selvedge key FILE` makes the file), or --plain to send in the clear"
    )]
    NoKey,
    /// The node stores nothing without being asked to.
    #[error("no folder for the state: give --state DIR, or --forgets to store nothing")]
    NoState,
    /// The file of the settings is wrong.
    #[error("{}: {why}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The token is wrong.
    #[error("{}: {why}", path.display())]
    Token {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        why: TokenError,
    },
    /// The founders do not suffice.
    #[error("the founders cannot hold maps: {0}")]
    Founders(#[from] ConfigError),
    /// The keys cannot be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A name does not resolve.
    #[error("cannot find {name}: {source}: check the name, or give an address like 192.0.2.1:7001")]
    Resolve {
        /// The name.
        name: String,
        /// The cause.
        source: io::Error,
    },
    /// The node does not start.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The API is not served.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The system gives no random numbers.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The unix socket is not served.
    #[error("cannot serve {}: {source}: choose another path for --socket", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The asynchronous runtime did not start.
    #[error("cannot start the runtime: {0}: check the limit on open files")]
    Runtime(io::Error),
    /// Signals cannot be waited for.
    #[error("cannot wait for signals: {0}: run the command in another environment")]
    Signal(io::Error),
    /// The node has stopped by itself.
    #[error("the node has stopped by itself: see its last lines for the reason")]
    Stopped,
    /// The node did not leave.
    #[error(transparent)]
    Node(#[from] selvedge_udp::Error),
}
