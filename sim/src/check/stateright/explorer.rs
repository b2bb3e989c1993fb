//! Stateright's Explorer: a web page in which a model is walked by hand.

use core::net::SocketAddr;
use std::net::TcpListener;
use std::{io, thread};

use selvedge_core::Machine;
use stateright::Model as _;
use thiserror::Error;

use super::super::{Limits, Model, Observer};
use super::{Reached, Step};

/// The reason why the Explorer does not run.
#[derive(Debug, Error)]
pub enum ExploreError {
    /// The server cannot listen at the address.
    #[error(
        "cannot listen at {address}: {source}: choose another address, or port 0 for a free one"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The server ended.
    #[error("the Explorer ended: start it again")]
    Ended,
}

/// Serves stateright's Explorer over `model` at `address`, for as long as the process lives. With
/// port 0 it takes a free one. `ready` is called with the address just before it is served.
///
/// The page shows steps and states in the words of a [`Trace`](super::super::Trace). States are
/// explored as they are looked at.
///
/// # Errors
/// When the server cannot listen at `address`. Otherwise it returns only if its server ends.
pub fn explore<M, O>(
    model: Model<M, O>,
    limits: &Limits,
    address: SocketAddr,
    ready: &mut dyn FnMut(SocketAddr),
) -> Result<(), ExploreError>
where
    M: Machine + 'static,
    O: Observer<M> + 'static,
    Model<M, O>: Send + Sync,
    Reached<M, O>: Send + Sync,
    Step<M, O>: Send + Sync,
{
    let listen = || TcpListener::bind(address)?.local_addr();
    // Stateright binds by itself, panics when it cannot, and does not report its port.
    let bound = listen().map_err(|source| ExploreError::Listen { address, source })?;
    ready(bound);
    let model = model.for_stateright(limits);
    let server = thread::spawn(move || {
        model.checker().serve(bound);
    });
    server.join().map_err(|_| ExploreError::Ended)
}
