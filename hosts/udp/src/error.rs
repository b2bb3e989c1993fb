//! Errors that prevent a node from starting.

use std::io;
use std::net::SocketAddr;

use selvedge::{ConfigError, Reject};
use selvedge_core::NodeId;
use selvedge_store::StoreError;
use thiserror::Error;

use crate::address;
use crate::directory::MAX_NODE_ID;
use crate::tags::TagsTooLong;

/// An error that prevents a node from starting.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The socket cannot listen at the address.
    #[error("cannot listen at {address}: {source}: choose a free port and an address of this host")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The address is a multicast or broadcast address.
    #[error(
        "cannot listen at {address}, which is a multicast or broadcast address: listen at an address of this host, or at 0.0.0.0 or [::] for all of them"
    )]
    ListenToMany {
        /// The requested address.
        address: SocketAddr,
    },
    /// The id is reserved for seeds.
    #[error("the id {id} is reserved: give one up to {MAX_NODE_ID}")]
    Id {
        /// The requested id.
        id: NodeId,
    },
    /// Other nodes cannot send to that address.
    #[error(
        "other nodes cannot send to {address}: advertise the address and port at which others reach this host"
    )]
    Advertise {
        /// The requested address.
        address: SocketAddr,
    },
    /// There are too many addresses to announce.
    #[error(
        "{count} addresses to advertise, but at most {} are allowed: leave some out",
        address::LIMIT
    )]
    TooManyAddresses {
        /// The number of addresses.
        count: usize,
    },
    /// The tags are too long.
    #[error(transparent)]
    Tags(#[from] TagsTooLong),
    /// No single host answers there.
    #[error(
        "no single node answers at {address} ({name}): give the address and port of one node that runs"
    )]
    Seed {
        /// The seed's name.
        name: String,
        /// The address that was found.
        address: SocketAddr,
    },
    /// The socket cannot send there.
    #[error(
        "{name} has no address of the same IP version as {listen}: listen at one that has, or at [::] for both"
    )]
    Family {
        /// The seed's name.
        name: String,
        /// The address at which the node listens.
        listen: SocketAddr,
    },
    /// The settings cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting of locks was given to a node that takes no part in locks.
    #[error(
        "{setting} is a setting of locks, and this node takes no part in locks: give Setup::locks, or leave out Setup::{setting}"
    )]
    NoLocks {
        /// The setting.
        setting: &'static str,
    },
    /// K-groups need a place for the node's promises.
    #[error(
        "k-groups need a folder for what this node promises, and none was given: give Setup::state, or \
         Setup::stateless for a node that forgets"
    )]
    NoState,
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
    #[error("cannot start a thread for the node ({0}): check the limits on threads and open files")]
    Thread(io::Error),
}
