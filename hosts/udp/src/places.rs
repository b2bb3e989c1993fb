//! Where a node is, and where those are that it asks: which addresses cannot work.

use std::net::SocketAddr;

use crate::address;
use crate::error::HostError;
use crate::seeds::Seed;
use crate::setup::Setup;
use crate::transport::Datagrams;

/// The addresses of the node itself.
#[derive(Debug)]
pub(crate) struct Own {
    local: SocketAddr,
    announced: Vec<SocketAddr>,
}

impl Own {
    pub(crate) fn new(local: SocketAddr, announced: &[SocketAddr]) -> Self {
        Self {
            local: address::canonical(local),
            announced: announced.iter().map(|&it| address::canonical(it)).collect(),
        }
    }

    pub(crate) fn is(&self, address: SocketAddr) -> bool {
        address == self.local || self.announced.contains(&address)
    }
}

/// Refuses addresses that cannot be listened at, or that other nodes cannot send to.
pub(crate) fn check(setup: &Setup) -> Result<(), HostError> {
    let listen = setup.listen;
    if address::names_many(listen.ip()) {
        return Err(HostError::ListenToMany { address: listen });
    }
    let count = setup.advertise.len();
    if count > address::LIMIT {
        return Err(HostError::TooManyAddresses { count });
    }
    let mut advertised = setup.advertise.iter().copied();
    match advertised.find(|&address| !address::reachable(address)) {
        Some(address) => Err(HostError::Advertise { address }),
        None => Ok(()),
    }
}

/// The seeds that are not this node, with the addresses that it can send to.
pub(crate) fn others(
    seeds: Vec<Seed>,
    socket: &dyn Datagrams,
    own: &Own,
) -> Result<Vec<Seed>, HostError> {
    let mut others = Vec::new();
    for mut seed in seeds {
        let name = seed.name().to_owned();
        let many = seed.addresses().iter().copied();
        if let Some(address) = many.into_iter().find(|&it| !address::reachable(it)) {
            return Err(HostError::Seed { name, address });
        }
        seed.retain(|address| socket.reaches(address));
        if seed.addresses().is_empty() {
            let listen = socket.local();
            return Err(HostError::Family { name, listen });
        }
        seed.retain(|address| !own.is(address));
        if !seed.addresses().is_empty() {
            others.push(seed);
        }
    }
    Ok(others)
}
