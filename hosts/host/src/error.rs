//! Why a host does not start, and why it ended.

use std::io;
use std::net::SocketAddr;

use selvedge_core::NodeId;
#[cfg(feature = "store")]
use selvedge_store::StoreError;
use thiserror::Error;

/// Why a host did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}: choose a free port and an address of this host")]
    Listen {
        /// The address in [`Setup::new`](crate::Setup::new).
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// No datagram from this socket reaches the peer.
    #[error(
        "node {id} has the address {address}, which cannot be reached from {listen}: give the address and port of one host, of the same IP version"
    )]
    Peer {
        /// The peer.
        id: NodeId,
        /// Its address.
        address: SocketAddr,
        /// The address at which this host listens.
        listen: SocketAddr,
    },
    /// The frame budget is too small for a frame, or larger than a datagram.
    #[error("a frame budget of {budget} bytes: set one from {least} to {most}")]
    Budget {
        /// The budget in [`Setup::frame_budget`](crate::Setup::frame_budget).
        budget: usize,
        /// The smallest budget; larger where datagrams are sealed.
        least: usize,
        /// The largest budget.
        most: usize,
    },
    /// A heartbeat without a pause takes the whole processor.
    #[error("a heartbeat with a period of 0: set one above zero, for instance 100 ms")]
    Heartbeat,
    /// The system gives no random numbers.
    #[error(
        "the system gives no random numbers ({0}): wait until it does, or give Setup::random_seed"
    )]
    Entropy(getrandom::Error),
    /// There is no thread or runtime for the host.
    #[error("cannot start a thread for the host ({0}): check how many files this process may open")]
    Thread(io::Error),
    /// The first base cannot be stored.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a running host ended without a request.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A fact cannot be stored. No effect after it was carried out.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Store(std::sync::Arc<StoreError>),
    /// The host's task was aborted, or the machine or a closure of the setup panicked.
    #[error("the host was aborted or panicked: look for a panic in the log, and start it again")]
    Aborted,
}
