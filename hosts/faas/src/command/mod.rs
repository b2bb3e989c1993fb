//! The subcommands.

mod awake;
pub(crate) mod demo;
pub(crate) mod follower;
pub(crate) mod gateway;
mod gcd;
mod interrupts;
pub(crate) mod local;
pub(crate) mod measure;
pub(crate) mod submit;
pub(crate) mod top;
mod world;

use std::env::VarError;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, io};

use clap::Args;
use selvedge_core::NodeId;
use selvedge_faas::Access;
use selvedge_faas::find::{self, FindError, Gateways, Named};
#[cfg(feature = "tls")]
use selvedge_faas::tls::{Identity, Trust};
use thiserror::Error;

/// A failure that ended a command early. Its one line names the cause and the remedy.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Gateway(#[from] selvedge_faas::gateway::GatewayError),
    #[error(transparent)]
    Follower(#[from] selvedge_faas::follower::FollowerError),
    #[error(transparent)]
    Client(#[from] selvedge_faas::client::ClientError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Chance(#[from] selvedge_faas::NoChance),
    #[error("cannot read {}: {source}: check the name", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot wait for Ctrl-C: {0}: run the command in another environment")]
    Signal(io::Error),
    #[error("cannot write to the standard output: {0}: run the command with an open one")]
    Output(io::Error),
    #[error(
        "cannot start a process of this demo or measurement: {0}: check the limit on processes"
    )]
    Process(io::Error),
    #[error("cannot create a directory for data: {0}: set TMPDIR to one that can be written")]
    Directory(io::Error),
    #[error(transparent)]
    Limits(#[from] selvedge_core::settings::OutOfRange),
    #[error("followers cannot run the module {}: {why}", path.display())]
    Module {
        path: PathBuf,
        why: selvedge_faas::ModuleError,
    },
    #[error(transparent)]
    Call(#[from] selvedge_faas::CallError),
    #[error("the module and the call do not match: {0}")]
    Mismatch(#[from] selvedge_faas::CallMismatch),
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] selvedge_faas::tls::TlsError),
    #[error(transparent)]
    Users(#[from] selvedge_faas::users::UsersError),
    #[error(
        "no gateway has answered for {0} s: check that they run and that --gateway has their addresses, or \
         wait longer with --timeout"
    )]
    Silent(u32),
    #[error("the gateways do not keep the module: their standard errors have the reason")]
    NotKept,
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Usage(&'static str),
}

impl Failure {
    /// The exit status: 2 for a wrong call, as for wrong flags, 1 for a later failure.
    pub(crate) fn status(&self) -> ExitCode {
        match self {
            Self::Usage(_)
            | Self::Users(_)
            | Self::Limits(_)
            | Self::Module { .. }
            | Self::Call(_)
            | Self::Mismatch(_)
            | Self::Find(FindError::None) => ExitCode::from(2),
            #[cfg(feature = "tls")]
            Self::Tls(_) => ExitCode::from(2),
            Self::Gateway(_)
            | Self::Follower(_)
            | Self::Client(_)
            | Self::Find(_)
            | Self::Chance(_)
            | Self::Read { .. }
            | Self::Signal(_)
            | Self::Output(_)
            | Self::Process(_)
            | Self::Silent(_)
            | Self::NotKept
            | Self::Interrupted
            | Self::Directory(_) => ExitCode::FAILURE,
        }
    }
}

/// The name, the password and the certificates for connections to brokers.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessArgs {
    /// User name at all brokers, including the broker inside a gateway
    #[arg(long, env = "SELVEDGE_FAAS_USER")]
    pub(crate) user: Option<String>,
    /// Connect to brokers by TLS, and trust certificates signed by one in this file (PEM)
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", env = "SELVEDGE_FAAS_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// Certificate of this node, with the chain of its signers (PEM): the broker inside a gateway
    /// presents it, and so does this node to a broker that asks for a certificate
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of that certificate (PEM)
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl AccessArgs {
    /// Reads the password from the environment, because all processes can read a command line.
    pub(crate) fn access(&self) -> Result<Access, Failure> {
        #[cfg(feature = "tls")]
        let tls = match &self.tls_ca {
            Some(ca) => Some(Trust::open(ca, self.identity()?.as_ref())?),
            None => None,
        };
        Ok(Access {
            user: self.user.clone(),
            password: self.password()?,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// The password for `--user`. A user without a password would leave a broker open that its
    /// operator believes closed.
    fn password(&self) -> Result<String, Failure> {
        let reported = match env::var("SELVEDGE_FAAS_PASSWORD") {
            Ok(password) => password,
            Err(VarError::NotPresent) => String::new(),
            Err(VarError::NotUnicode(_)) => {
                let why = "SELVEDGE_FAAS_PASSWORD is not UTF-8: choose a password that is";
                return Err(Failure::Usage(why));
            }
        };
        let why = match self.user.as_deref() {
            Some("") => "--user has no name: give one, or leave it out",
            Some(_) if reported.is_empty() => {
                "--user has no password: set SELVEDGE_FAAS_PASSWORD in the environment"
            }
            None if !reported.is_empty() => {
                "SELVEDGE_FAAS_PASSWORD is set without --user: give --user NAME, or unset it"
            }
            _ => return Ok(reported),
        };
        Err(Failure::Usage(why))
    }

    /// Checks that all brokers of a gateway have TLS, or none.
    #[cfg(feature = "tls")]
    pub(crate) fn check(&self, has_broker: bool, has_peers: bool) -> Result<(), Failure> {
        let why = match (&self.tls_ca, &self.tls_cert) {
            (Some(_), None) if has_broker => {
                "with --tls-ca the broker inside needs TLS, too: give --tls-cert and --tls-key"
            }
            (None, Some(_)) if has_peers => {
                "with --tls-cert the brokers of other gateways need TLS, too: give --tls-ca"
            }
            _ => return Ok(()),
        };
        Err(Failure::Usage(why))
    }

    #[cfg(feature = "tls")]
    pub(crate) fn identity(&self) -> Result<Option<Identity>, Failure> {
        let pair = self.tls_cert.as_ref().zip(self.tls_key.as_ref());
        Ok(pair.map(|it| Identity::open(it.0, it.1)).transpose()?)
    }
}

/// The gateways to connect to.
#[derive(Clone, Debug, Args)]
pub(crate) struct FindArgs {
    /// Broker of a gateway, the preferred one first: HOST:PORT, or ID=HOST:PORT. Ids that are not
    /// given are asked for
    #[arg(long = "gateway", required = true, value_name = "[ID=]HOST:PORT")]
    pub(crate) gateways: Vec<Named>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

impl FindArgs {
    pub(crate) fn find(&self, me: NodeId) -> Result<Gateways, Failure> {
        Ok(find::find(&self.gateways, &self.access.access()?, me)?)
    }
}

/// The flag for a process that another one started.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ChildArgs {
    /// End together with the process that started this one (Linux)
    #[arg(long, hide = true)]
    is_child: bool,
}

impl ChildArgs {
    pub(crate) fn obey(self) {
        #[cfg(target_os = "linux")]
        if self.is_child {
            use rustix::process::{Signal, set_parent_process_death_signal};
            // Where it fails, the parent's handle ends the process.
            let _set = set_parent_process_death_signal(Some(Signal::KILL));
        }
    }
}
