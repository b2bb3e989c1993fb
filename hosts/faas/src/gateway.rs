//! The process of a gateway: the machine, its storage on a disk, the mailboxes of its followers at
//! its broker, and links to the brokers of the other gateways.

mod diary;
mod host;
mod modules;
mod puts;
mod status;
mod storage;
#[cfg(test)]
mod tests;

use core::convert::Infallible;
use core::net::SocketAddr;
use std::io;
use std::path::PathBuf;

use selvedge_core::{Member, NodeId};
use selvedge_pcm::Limits;
use selvedge_pcm::gateway::{Config, Reject};
use selvedge_replica::Configuration;
use thiserror::Error;

pub use self::storage::{Memory, Room, StorageError};
use crate::clock::NoChance;
use crate::link::{Access, Address};
use crate::users::Users;

/// The broker of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broker {
    /// Inside its process.
    Embedded {
        /// The address at which it listens.
        listen: SocketAddr,
    },
    /// In a separate process.
    At(Address),
}

/// The settings of a gateway's process.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway.
    pub id: NodeId,
    /// Its broker.
    pub broker: Broker,
    /// The address of its broker for other nodes, if it differs from the one at which it listens.
    pub advertise: Option<Address>,
    /// The other gateways and their brokers.
    pub peers: Vec<(NodeId, Address)>,
    /// Its credentials at all brokers. The broker inside knows the same name.
    pub access: Access,
    /// Further users of the broker inside; without them, only clients with the same name may
    /// connect.
    pub users: Option<Users>,
    /// The certificate of the broker inside; without it, that broker has no TLS.
    #[cfg(feature = "tls")]
    pub identity: Option<crate::tls::Identity>,
    /// The directory of its data.
    pub data: PathBuf,
    /// The state of that directory.
    pub memory: Memory,
    /// The settings of the machine.
    pub config: Config,
    /// The capacity of the tables; all gateways begin with equal limits.
    pub limits: Limits,
    /// The number of modules to keep.
    pub room: Room,
    /// A page for a browser.
    #[cfg(feature = "page")]
    pub page: Option<crate::page::Options>,
    /// True if it logs changes to the standard error.
    pub is_verbose: bool,
}

/// An error that ends a gateway's process.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Its storage fails.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The system gives no random numbers.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// The broker inside does not start.
    #[error("cannot listen at {listen}: {source}: choose another address with --listen")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// This program has no broker.
    #[error("this program was built without a broker: give one with --broker")]
    NoBroker,
    /// The broker inside no longer answers.
    #[error("the broker inside has stopped, which is a defect: start the gateway again")]
    Stopped,
    /// A thread does not start.
    #[error("cannot start a thread: {0}: check the limit on threads")]
    Thread(#[from] io::Error),
    /// The page does not start.
    #[cfg(feature = "page")]
    #[error(transparent)]
    Page(#[from] crate::page::PageError),
    /// The machine does not start.
    #[error(transparent)]
    Machine(#[from] Reject),
}

impl Options {
    fn first(&self) -> Configuration {
        let others = self.peers.iter().map(|it| it.0);
        let mut all: Vec<NodeId> = others.chain([self.id]).collect();
        all.sort_unstable();
        all.dedup();
        Configuration::of(all.into_iter().map(|id| Member::new(id.0, 0)))
    }

    /// The credentials of this process at its broker: the broker inside accepts it in the clear.
    fn own_access(&self) -> Access {
        match self.broker {
            Broker::Embedded { .. } => self.access.in_the_clear(),
            Broker::At(_) => self.access.clone(),
        }
    }

    /// The address of its broker for this process.
    fn own(&self) -> Address {
        match &self.broker {
            Broker::At(address) => address.clone(),
            Broker::Embedded { listen } => Address {
                host: match listen.ip().is_unspecified() {
                    true if listen.is_ipv6() => "::1".into(),
                    true => "127.0.0.1".into(),
                    false => listen.ip().to_string(),
                },
                port: listen.port(),
            },
        }
    }
}

/// Runs a gateway, until the process ends.
///
/// # Errors
/// [`GatewayError`], if it cannot begin, or cannot continue. A later start continues from the
/// stored state.
pub fn run(options: Options) -> Result<Infallible, GatewayError> {
    host::Host::start(options)?.run()
}

/// The address of the broker inside for this process, if it differs from the one for other nodes.
fn start_broker(options: &Options) -> Result<Option<Address>, GatewayError> {
    let Broker::Embedded { listen } = options.broker else {
        return Ok(None);
    };
    #[cfg(feature = "broker")]
    {
        let settings = selvedge_mqtt::broker::Settings {
            listen,
            access: &options.access,
            users: options.users.as_ref(),
            #[cfg(feature = "tls")]
            identity: options.identity.as_ref(),
            packet_max: crate::link::PACKET_MAX,
            // The sessions are the mailboxes.
            keeps_sessions: true,
        };
        selvedge_mqtt::broker::start(settings)
            .map_err(|source| GatewayError::Listen { listen, source })
    }
    #[cfg(not(feature = "broker"))]
    {
        let _unused = (listen, &options.users);
        Err(GatewayError::NoBroker)
    }
}

#[cfg(feature = "page")]
fn start_page(options: &Options, inside: Option<&Address>) -> Result<(), GatewayError> {
    use crate::find::Gateways;

    let Some(page) = &options.page else {
        return Ok(());
    };
    let own = options.advertise.clone();
    let own = [(options.id, own.unwrap_or_else(|| options.own()))];
    // At least one gateway is given.
    if let Ok(gateways) = Gateways::new(own.into_iter().chain(options.peers.iter().cloned())) {
        let here = (
            inside.cloned().unwrap_or_else(|| options.own()),
            options.own_access(),
        );
        crate::page::start(page, gateways, &options.access, options.id, here)?;
    }
    Ok(())
}
