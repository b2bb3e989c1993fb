//! Why a node does not start.

use std::io;
use std::net::SocketAddr;

use selvedge::{ConfigError, Reject};
use selvedge_core::NodeId;
use selvedge_store::StoreError;
use thiserror::Error;

use crate::address;
use crate::directory::MAX_NODE_ID;

/// Why a node did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}: choose a free port and an address of this host")]
    Listen {
        /// What was asked.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// That is an address of many.
    #[error(
        "cannot listen at {address}, which is a multicast or broadcast address: listen at an address of this host, or at 0.0.0.0 or [::] for all of them"
    )]
    ListenToMany {
        /// What was asked.
        address: SocketAddr,
    },
    /// The id is among those that stand in for seeds.
    #[error("the id {id} is reserved: give one up to {MAX_NODE_ID}")]
    Id {
        /// What was asked.
        id: NodeId,
    },
    /// Others cannot send to that address.
    #[error(
        "other nodes cannot send to {address}: advertise the address and port at which others reach this host"
    )]
    Advertise {
        /// What was asked.
        address: SocketAddr,
    },
    /// Too many addresses are to be announced.
    #[error(
        "{count} addresses to advertise, but at most {} are allowed: leave some out",
        address::LIMIT
    )]
    TooManyAddresses {
        /// How many there are.
        count: usize,
    },
    /// No single host answers there.
    #[error(
        "no single node answers at {address} ({name}): give the address and port of one node that runs"
    )]
    Seed {
        /// What the seed was called.
        name: String,
        /// Where it was found.
        address: SocketAddr,
    },
    /// The socket cannot send there.
    #[error(
        "{name} has no address of the same IP version as {listen}: listen at one that has, or at [::] for both"
    )]
    Family {
        /// What the seed was called.
        name: String,
        /// Where the node listens.
        listen: SocketAddr,
    },
    /// The settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stored facts cannot be used, or a first start cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine refused to begin.
    #[error(transparent)]
    Refused(#[from] Reject),
    /// The system gives no random numbers.
    #[error(
        "the system gives no random numbers ({0}): wait until it does, or give Setup::random_seed and Setup::life"
    )]
    Entropy(getrandom::Error),
    /// No thread or runtime for the node.
    #[error(
        "cannot start a thread for the node ({0}): see whether this process may open more files"
    )]
    Thread(io::Error),
}
