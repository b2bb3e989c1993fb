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

/// What ended a command early. One line says what went wrong, and the mend.
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
    #[error("cannot wait for Ctrl-C: {0}: run it in another environment")]
    Signal(io::Error),
    #[error("cannot write to the standard output: {0}: run it with an open one")]
    Output(io::Error),
    #[error("cannot start a process of this demo or measurement: {0}: see how many there may be")]
    Process(io::Error),
    #[error("the directory of its data: {0}: set TMPDIR to one that can be written")]
    Directory(io::Error),
    #[error(transparent)]
    Limits(#[from] selvedge_core::settings::OutOfRange),
    #[error("{} is no module that followers run: {why}", path.display())]
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
        "no gateway has answered for {0} s: see whether they run, and whether --gateway says where; or wait \
         longer with --timeout"
    )]
    Silent(u32),
    #[error("the gateways do not keep the module: see on their standard errors why not")]
    NotKept,
    #[error("it was asked to end")]
    Interrupted,
    #[error("{0}")]
    Usage(&'static str),
}

impl Failure {
    /// The exit status: 2 for a wrong call, as for wrong flags, 1 for what went wrong later.
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

/// With which name and password to go to brokers.
#[derive(Clone, Debug, Args)]
pub(crate) struct AccessArgs {
    /// The name that all brokers ask for, and the one inside of a gateway, too
    #[arg(long, env = "SELVEDGE_FAAS_USER")]
    pub(crate) user: Option<String>,
    /// Go to brokers by TLS, and believe those with a certificate that one in this file vouches for (PEM)
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", env = "SELVEDGE_FAAS_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// The certificate of this node, with those that vouch for it (PEM): what the broker inside of a gateway
    /// shows, and what brokers are shown that ask for one
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl AccessArgs {
    /// The password is in no command line, where all processes can read it.
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

    /// One without the other would leave a broker open that its user holds for closed.
    fn password(&self) -> Result<String, Failure> {
        let said = match env::var("SELVEDGE_FAAS_PASSWORD") {
            Ok(password) => password,
            Err(VarError::NotPresent) => String::new(),
            Err(VarError::NotUnicode(_)) => {
                let why = "SELVEDGE_FAAS_PASSWORD is no UTF-8: choose a password that is";
                return Err(Failure::Usage(why));
            }
        };
        let why = match self.user.as_deref() {
            Some("") => "--user has no name: say one, or leave it out",
            Some(_) if said.is_empty() => {
                "--user has no password: say it in the environment, as SELVEDGE_FAAS_PASSWORD"
            }
            None if !said.is_empty() => {
                "SELVEDGE_FAAS_PASSWORD is the password of nobody: say --user NAME, or unset it"
            }
            _ => return Ok(said),
        };
        Err(Failure::Usage(why))
    }

    /// Whether all brokers of a gateway have TLS, or none.
    #[cfg(feature = "tls")]
    pub(crate) fn check(&self, has_broker: bool, has_peers: bool) -> Result<(), Failure> {
        let why = match (&self.tls_ca, &self.tls_cert) {
            (Some(_), None) if has_broker => {
                "with --tls-ca others come to the broker inside by TLS, too: say --tls-cert and --tls-key"
            }
            (None, Some(_)) if has_peers => {
                "with --tls-cert the brokers of other gateways have TLS, too: say --tls-ca"
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

/// How to find gateways.
#[derive(Clone, Debug, Args)]
pub(crate) struct FindArgs {
    /// The broker of a gateway, the first one first: HOST:PORT, or ID=HOST:PORT. The gateways that are
    /// not named are asked for
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

/// What a process that another one started adds.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ChildArgs {
    /// End when the process ends that started this one (Linux)
    #[arg(long, hide = true)]
    is_child: bool,
}

impl ChildArgs {
    pub(crate) fn obey(self) {
        #[cfg(target_os = "linux")]
        if self.is_child {
            use rustix::process::{Signal, set_parent_process_death_signal};
            // A process that cannot is ended by its handle.
            let _set = set_parent_process_death_signal(Some(Signal::KILL));
        }
    }
}
