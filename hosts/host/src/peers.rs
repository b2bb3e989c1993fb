//! The addresses of other nodes.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use selvedge_core::NodeId;

use crate::HostError;
use crate::transport::{Datagrams, canonical, reachable};

/// Addresses in the form in which the socket reports them.
#[derive(Debug)]
pub(crate) struct Peers {
    listed: BTreeMap<NodeId, SocketAddr>,
    learned: BTreeMap<NodeId, SocketAddr>,
    /// The largest number of learned addresses.
    limit: usize,
}

impl Peers {
    /// Passes over `me`, so that all nodes can have one list.
    pub(crate) fn new(
        me: NodeId,
        socket: &dyn Datagrams,
        mut listed: BTreeMap<NodeId, SocketAddr>,
        limit: usize,
    ) -> Result<Self, HostError> {
        listed.remove(&me);
        for (&id, address) in &mut listed {
            *address = canonical(*address);
            if !reachable(*address) || !socket.reaches(*address) {
                let (address, listen) = (*address, socket.local());
                return Err(HostError::Peer {
                    id,
                    address,
                    listen,
                });
            }
        }
        let learned = BTreeMap::new();
        Ok(Self {
            listed,
            learned,
            limit,
        })
    }

    pub(crate) fn address(&self, id: NodeId) -> Option<SocketAddr> {
        self.listed
            .get(&id)
            .or_else(|| self.learned.get(&id))
            .copied()
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.listed.values().chain(self.learned.values()).copied()
    }

    pub(crate) fn is_listed(&self, id: NodeId) -> bool {
        self.listed.contains_key(&id)
    }

    pub(crate) fn listed(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.listed.values().copied()
    }

    /// Returns true if a datagram of `id` from `source` is delivered. A key proves the sender; in
    /// the clear, the address of a listed peer is the only evidence.
    pub(crate) fn accepts(&self, id: NodeId, source: SocketAddr, is_sealed: bool) -> bool {
        match self.listed.get(&id) {
            Some(&listed) => is_sealed || listed == source,
            None => self.learned.contains_key(&id) || self.learned.len() < self.limit,
        }
    }

    /// The machine took a message of `id` from `source`, which was [accepted](Self::accepts).
    pub(crate) fn learn(&mut self, id: NodeId, source: SocketAddr) {
        if !self.listed.contains_key(&id) {
            self.learned.insert(id, source);
        }
    }
}
