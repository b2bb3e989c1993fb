//! The connections of each peer of the API.

use core::net::{IpAddr, Ipv6Addr};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::audit::By;
use crate::serve::CONNECTIONS;

/// The most connections of one peer. Several processes of one user may take more.
pub(crate) const MOST: usize = CONNECTIONS / 4;

/// The clients that share a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    /// A process of this host, at the unix socket.
    Process(i32),
    /// Another host. One host may have all IPv6 addresses of a network of 64 bits.
    Host(IpAddr),
}

/// The connections of peers. Clones are of the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peers(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Peers without a connection are not here.
    connections: Mutex<BTreeMap<Peer, usize>>,
    refused: AtomicU64,
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    peers: Peers,
    peer: Option<Peer>,
}

impl Peers {
    /// Counts a connection; `None`, and counted as refused, if its peer has the most already.
    pub(crate) fn enter(&self, by: Option<By>) -> Option<Connection> {
        let peer = by.and_then(Peer::of);
        if let Some(peer) = peer {
            let mut connections = self.connections();
            let count = connections.entry(peer).or_default();
            if *count >= MOST {
                self.0.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            *count += 1;
        }
        let peers = self.clone();
        Some(Connection { peers, peer })
    }

    /// The number of connections that were closed because their peer had too many.
    pub(crate) fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<Peer, usize>> {
        let connections = self.0.connections.lock();
        connections.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peer {
    /// `None` where a limit for each would limit all: programs of this host over TCP have one address, and processes of
    /// other containers at the socket have no id here.
    const fn of(by: By) -> Option<Self> {
        match by {
            By::Process { pid: Some(pid), .. } => Some(Self::Process(pid)),
            By::Process { pid: None, .. } | By::Signal { .. } => None,
            By::Address { address } => {
                let ip = address.ip().to_canonical();
                match ip {
                    _ if ip.is_loopback() => None,
                    IpAddr::V4(_) => Some(Self::Host(ip)),
                    IpAddr::V6(ip) => {
                        let network = Ipv6Addr::from_bits(ip.to_bits() & !(u64::MAX as u128));
                        Some(Self::Host(IpAddr::V6(network)))
                    }
                }
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(peer) = self.peer else {
            return;
        };
        let mut connections = self.peers.connections();
        if let Some(count) = connections.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{By, MOST, Peers};

    fn at(address: &str) -> Option<By> {
        let address = format!("{address}:7000").parse().unwrap();
        Some(By::Address { address })
    }

    #[test]
    fn a_peer_has_a_limit_and_leaves_room_for_others() {
        let peers = Peers::default();
        let uid = 1;
        let process = |pid| Some(By::Process { uid, pid });
        for by in [process(Some(7)), at("192.0.2.7"), at("[2001:db8::7]")] {
            let mut all: Vec<_> = (0..MOST).map(|_| peers.enter(by).unwrap()).collect();
            let refused = peers.refused();
            assert!(peers.enter(by).is_none());
            assert_eq!(peers.refused(), refused + 1);
            for other in [process(Some(8)), at("192.0.2.8"), at("[2001:db8:0:1::7]")] {
                assert!(peers.enter(other).is_some());
            }
            all.pop();
            assert!(peers.enter(by).is_some());
        }
        assert!(peers.connections().is_empty());
        // One network of IPv6 is one peer, however many addresses it uses.
        let all: Vec<_> = (0..MOST)
            .map(|nth| peers.enter(at(&format!("[2001:db8::{nth:x}]"))).unwrap())
            .collect();
        assert!(peers.enter(at("[2001:db8::ffff:1]")).is_none());
        drop(all);
        let unlimited = [
            process(None),
            at("127.0.0.1"),
            at("[::ffff:127.0.0.1]"),
            None,
        ];
        let all = unlimited.map(|by| (0..2 * MOST).filter_map(|_| peers.enter(by)).count());
        assert_eq!(all, [2 * MOST; 4]);
    }
}
