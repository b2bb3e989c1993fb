//! Addresses of a node and its seeds, and which of them cannot work.

use std::net::{IpAddr, SocketAddr};

use selvedge_core::{Span, Time};

use crate::address::{self, same};
use crate::announcement::Announcement;
use crate::error::HostError;
use crate::seeds::Seed;
use crate::setup::Setup;
use crate::tags::Tags;
use crate::transport::Datagrams;

/// The shortest time between two searches.
const LOOK_EVERY: Span = Span::secs(1);

/// The addresses of the node itself.
///
/// A node that listens at all addresses of its host and has none to advertise learns one from its
/// peers: a member reaches the node at the address from which the node answers it, unless a NAT is
/// between them.
#[derive(Debug)]
pub(crate) struct Own {
    local: SocketAddr,
    announced: Announcement,
    /// `None` where the addresses are configured.
    search: Option<Search>,
}

/// The state of a node's search for its own addresses.
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    last: Option<Time>,
    /// True if it was reported that the node found no address.
    is_in_vain: bool,
}

impl Own {
    /// The addresses of a node that listens at `local`. It announces `advertised`; without these,
    /// `local`; if `local` is unspecified, the addresses that it finds.
    pub(crate) fn new(local: SocketAddr, advertised: &[SocketAddr], tags: Tags) -> Self {
        let local = address::canonical(local);
        let is_notified = !advertised.is_empty() || address::reachable(local);
        let advertised = advertised.iter().map(|&it| address::canonical(it));
        let mut addresses: Vec<_> = advertised.collect();
        if addresses.is_empty() && is_notified {
            addresses.push(local);
        }
        let search = (!is_notified).then(Search::default);
        Self {
            local,
            announced: Announcement { addresses, tags },
            search,
        }
    }

    /// The announced addresses and tags.
    pub(crate) const fn announced(&self) -> &Announcement {
        &self.announced
    }

    /// Replaces the tags.
    pub(crate) fn set_tags(&mut self, tags: Tags) {
        self.announced.tags = tags;
    }

    /// The interface to the link of this node, where it has a link-local address.
    pub(crate) fn link(&self) -> Option<u32> {
        let mut all = core::iter::once(&self.local).chain(&self.announced.addresses);
        all.find_map(|&it| address::scope(it))
    }

    /// Returns true if the node listens at `address` or announces it.
    pub(crate) fn names(&self, address: SocketAddr) -> bool {
        same(address, self.local) || self.announced.addresses.iter().any(|&it| same(it, address))
    }

    /// Returns true if `address` is this node's. It may ask the operating system.
    pub(crate) fn is(&self, address: SocketAddr, socket: &dyn Datagrams) -> bool {
        self.names(address)
            || (self.local.ip().is_unspecified()
                && address.port() == self.local.port()
                && (address.ip().is_loopback() || is_of_host(address, socket)))
    }

    /// Searches for the address from which this node sends to `peer`, a member. Returns true if the
    /// announced addresses changed, and once if the list stays empty. They have to fit into `room` bytes
    /// of metadata, beside the tags.
    pub(crate) fn look(
        &mut self,
        peer: SocketAddr,
        socket: &dyn Datagrams,
        now: Time,
        room: usize,
    ) -> bool {
        let Some(search) = self.search else {
            return false;
        };
        if search.last.is_some_and(|last| now.since(last) < LOOK_EVERY) {
            return false;
        }
        let found = socket.source(peer).map(address::canonical);
        // A host of the Internet cannot answer a private address: a NAT is between the two.
        let found = found.filter(|&it| {
            address::reachable(it) && (!is_private(it.ip()) || is_private(peer.ip()))
        });
        let is_news = found.is_some_and(|it| self.take(it, socket, room));
        let is_in_vain = self.announced.addresses.is_empty();
        self.search = Some(Search {
            last: Some(now),
            is_in_vain,
        });
        is_news || (is_in_vain && !search.is_in_vain)
    }

    /// Announces this address as well, if it fits. Other hosts reach no address of loopback, so such
    /// an address gives way to any other.
    fn take(&mut self, found: SocketAddr, socket: &dyn Datagrams, room: usize) -> bool {
        let is_loopback = |it: &SocketAddr| it.ip().is_loopback();
        let known = &self.announced.addresses;
        if known.iter().any(|&it| same(it, found))
            || (is_loopback(&found) && known.iter().any(|it| !is_loopback(it)))
        {
            return false;
        }
        let mut announced = self.announced.clone();
        // The host may have moved to another network.
        let addresses = &mut announced.addresses;
        addresses.retain(|it| is_of_host(*it, socket) && is_loopback(it) == is_loopback(&found));
        addresses.push(found);
        if addresses.len() > address::LIMIT || announced.encode().len() > room {
            announced.addresses.pop();
        }
        let is_news = announced != self.announced;
        self.announced = announced;
        is_news
    }
}

/// Returns true if hosts elsewhere on the Internet cannot send to this address.
const fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            // 100.64.0.0/10 is between a customer and its provider.
            let is_shared = matches!(ip.octets(), [100, 64..=127, ..]);
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || is_shared
        }
        IpAddr::V6(ip) => ip.is_unique_local() || ip.is_loopback() || ip.is_unicast_link_local(),
    }
}

/// Returns true if the host has this address: datagrams to an own address are sent from it.
fn is_of_host(address: SocketAddr, socket: &dyn Datagrams) -> bool {
    let source = socket.source(address).map(address::canonical);
    source.is_some_and(|source| source.ip() == address.ip())
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

/// The seeds that are not this node, with the addresses that it can send to. A named seed is kept
/// without an address: the name may have others later.
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
        if seed.addresses().is_empty() && seed.is_named() {
            others.push(seed);
            continue;
        }
        seed.retain(|address| socket.reaches(address));
        if seed.addresses().is_empty() {
            let listen = socket.local();
            return Err(HostError::Family { name, listen });
        }
        seed.retain(|address| !own.is(address, socket));
        seed.is_itself = seed.addresses().is_empty();
        if !seed.addresses().is_empty() || seed.is_named() {
            others.push(seed);
        }
    }
    Ok(others)
}
