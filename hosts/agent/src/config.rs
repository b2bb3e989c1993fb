//! The settings of an agent: flags and environment, and a TOML file with the same names.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use selvedge_udp::MAX_NODE_ID;
use selvedge_udp::seal::{KeyFileError, Keyring, read_group_key_file, read_key_file};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The settings. Flags and variables of the environment stand above the file.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Id of this node, which no other node of the mesh has: the same at each start
    #[arg(long, env = "SELVEDGE_ID", value_parser = clap::value_parser!(u64).range(..=MAX_NODE_ID.0))]
    pub id: Option<u64>,
    /// Address and UDP port of this host to listen at, as 192.0.2.7:7001
    #[arg(long, value_name = "ADDR", env = "SELVEDGE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Running nodes to join through, as ADDRESS:PORT or NAME:PORT. The first node needs none
    #[arg(long, value_name = "ADDR", num_args = 1.., env = "SELVEDGE_JOIN", value_delimiter = ',')]
    #[serde(default)]
    pub join: Vec<String>,
    /// Addresses at which other nodes reach this one, if it is behind a NAT or a port mapping
    #[arg(long, value_name = "ADDR", num_args = 1.., env = "SELVEDGE_ADVERTISE", value_delimiter = ',')]
    #[serde(default)]
    pub advertise: Vec<SocketAddr>,
    /// File with the keys of the mesh, from `selvedge key`
    #[arg(long, value_name = "FILE", env = "SELVEDGE_KEY")]
    pub key: Option<PathBuf>,
    /// Accept a key file that its group may read (mode 0440 or 0640)
    #[arg(long)]
    #[serde(default)]
    pub group_reads_key: bool,
    /// Send in the clear, and accept datagrams from anyone
    #[arg(long)]
    #[serde(default)]
    pub plain: bool,
    /// Name of the mesh: meshes with equal keys and different names stay apart
    #[arg(long, env = "SELVEDGE_GROUP")]
    pub group: Option<String>,
    /// Folder for what this node promises to others, one for each node. Without it, the node has to
    /// start with --forgets
    #[arg(long, value_name = "DIR", env = "SELVEDGE_STATE")]
    pub state: Option<PathBuf>,
    /// Store nothing: of all nodes that hold a map no more than --failures may restart at once
    #[arg(long)]
    #[serde(default)]
    pub forgets: bool,
    /// Ids of the nodes with which the mesh begins, the same at all nodes: at least one more than
    /// twice the failures. Other nodes are added when they join
    #[arg(long, value_name = "ID", num_args = 1.., env = "SELVEDGE_FOUNDERS", value_delimiter = ',')]
    #[serde(default)]
    pub founders: Vec<u64>,
    /// Number of nodes that may fail at once while each map goes on, the same at all nodes. Default 1
    #[arg(long, value_name = "NODES", env = "SELVEDGE_FAILURES")]
    pub failures: Option<u8>,
    /// Tag of this node, which all other nodes have in their lists; repeat it for several
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    #[serde(skip)]
    pub tag: Vec<(String, String)>,
    /// The tags in the file.
    #[arg(skip)]
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// Protocol period in milliseconds, equal at all nodes of a mesh. Default 1000
    #[arg(long, value_name = "MS", env = "SELVEDGE_PERIOD", value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub period: Option<u64>,
    /// Nodes to probe: near ones more often, by the round trips that this node measures, or all alike. Default
    /// measured
    #[arg(long, value_name = "BY", env = "SELVEDGE_DISTANCES")]
    pub distances: Option<Distances>,
    /// Address of the API: a loopback address, or any with a token. Default 127.0.0.1:7780, or none where there
    /// is a --socket
    #[arg(long, value_name = "ADDR", env = "SELVEDGE_HTTP")]
    pub http: Option<SocketAddr>,
    /// File with the token that requests over TCP give: 16 to 128 letters, digits and -._~
    #[arg(long, value_name = "FILE", env = "SELVEDGE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the token that requests over TCP may give to read alone
    #[arg(long, value_name = "FILE", env = "SELVEDGE_READERS_TOKEN_FILE")]
    pub readers_token_file: Option<PathBuf>,
    /// Unix socket of the API, for the user of the agent alone (mode 0600)
    #[arg(long, value_name = "PATH", env = "SELVEDGE_SOCKET")]
    pub socket: Option<PathBuf>,
    /// Place of the log: stdout, stderr, journal (the standard error with levels, as systemd reads it) or a FILE,
    /// which SIGHUP opens anew. Default stdout; in a service whose output goes to the journal, with levels
    #[arg(long, value_name = "TO", env = "SELVEDGE_LOG")]
    pub log: Option<LogTo>,
    /// Place of the audit, a line for each change and each refused client: off, log, or a FILE, which SIGHUP opens
    /// anew. Default off
    #[arg(long, value_name = "TO", env = "SELVEDGE_AUDIT")]
    pub audit: Option<AuditTo>,
}

/// The place of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum LogTo {
    /// The standard output.
    #[default]
    Stdout,
    /// The standard error.
    Stderr,
    /// The standard error, each line behind its level, as systemd reads it.
    Journal,
    /// A file, to which lines are appended.
    File(PathBuf),
}

/// The place of the audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum AuditTo {
    /// None. Programs make changes by the hundreds a second: a line for each is for hosts that ask for it.
    #[default]
    Off,
    /// The log.
    Log,
    /// A file, to which lines are appended.
    File(PathBuf),
}

impl From<String> for LogTo {
    fn from(text: String) -> Self {
        match &*text {
            "stdout" => Self::Stdout,
            "stderr" => Self::Stderr,
            "journal" => Self::Journal,
            _ => Self::File(text.into()),
        }
    }
}

impl From<LogTo> for String {
    fn from(to: LogTo) -> Self {
        match to {
            LogTo::Stdout => "stdout".into(),
            LogTo::Stderr => "stderr".into(),
            LogTo::Journal => "journal".into(),
            LogTo::File(path) => path.display().to_string(),
        }
    }
}

impl From<String> for AuditTo {
    fn from(text: String) -> Self {
        match &*text {
            "off" => Self::Off,
            "log" => Self::Log,
            _ => Self::File(text.into()),
        }
    }
}

impl From<AuditTo> for String {
    fn from(to: AuditTo) -> Self {
        match to {
            AuditTo::Off => "off".into(),
            AuditTo::Log => "log".into(),
            AuditTo::File(path) => path.display().to_string(),
        }
    }
}

/// The distances by which nodes are chosen for probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Distances {
    /// The round trips of the node's own probes.
    #[default]
    Measured,
    /// All nodes alike.
    Uniform,
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or a name or a value in it is wrong.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::File {
            path: path.to_owned(),
            why,
        };
        let text = fs::read_to_string(path).map_err(|it| wrong(it.to_string()))?;
        Self::parse(&text).map_err(wrong)
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// The place and the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|it| it.to_string())
    }

    /// The keys as their file has them now.
    ///
    /// # Errors
    /// When the file cannot be read, others may read it, or it has no keys.
    pub fn keys(&self, path: &Path) -> Result<Keyring, KeyFileError> {
        match self.group_reads_key {
            true => read_group_key_file(path),
            false => read_key_file(path),
        }
    }

    /// The names of the settings that differ from others.
    pub(crate) fn differing(&self, other: &Self) -> Vec<String> {
        let fields = |it: &Self| serde_json::to_value(it).unwrap_or_default();
        let (own, other) = (fields(self), fields(other));
        let own = own.as_object().into_iter().flatten();
        let differs = own.filter(|(name, it)| other.get(name) != Some(it));
        differs.map(|(name, _)| name.clone()).collect()
    }

    /// These settings, and for what they leave open those of a file.
    #[must_use]
    pub fn over(self, file: Self) -> Self {
        let either = |own: Vec<String>, other| if own.is_empty() { other } else { own };
        let own_tags = self.tag.into_iter();
        Self {
            id: self.id.or(file.id),
            listen: self.listen.or(file.listen),
            join: either(self.join, file.join),
            advertise: if self.advertise.is_empty() {
                file.advertise
            } else {
                self.advertise
            },
            key: self.key.or(file.key),
            group_reads_key: self.group_reads_key || file.group_reads_key,
            plain: self.plain || file.plain,
            group: self.group.or(file.group),
            state: self.state.or(file.state),
            forgets: self.forgets || file.forgets,
            founders: if self.founders.is_empty() {
                file.founders
            } else {
                self.founders
            },
            failures: self.failures.or(file.failures),
            tag: Vec::new(),
            tags: file.tags.into_iter().chain(own_tags).collect(),
            period: self.period.or(file.period),
            distances: self.distances.or(file.distances),
            http: self.http.or(file.http),
            token_file: self.token_file.or(file.token_file),
            readers_token_file: self.readers_token_file.or(file.readers_token_file),
            socket: self.socket.or(file.socket),
            log: self.log.or(file.log),
            audit: self.audit.or(file.audit),
        }
    }
}

/// Reads a tag. Its value may be empty, and may have further signs `=`.
fn tag(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("give a tag as NAME=VALUE"),
    }
}
