//! Transports of datagrams: a socket, or another medium.

mod udp;

use core::fmt;
use core::task::{Context, Poll};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub use udp::Udp;

/// Opens the socket of a node.
///
/// [`Udp`] is the default. A transport of an application carries datagrams over something else: a
/// host needs no more than unreliable, unordered datagrams of at most its frame budget, between
/// addresses that are written as [`SocketAddr`]. Faults on purpose are a transport around another
/// one, as `selvedge_udp::faults` has it.
pub trait Transport: fmt::Debug + Send {
    /// Opens the socket. Called once, at the start, on the runtime that the host
    /// runs on.
    ///
    /// # Errors
    /// When the address cannot be listened at.
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>>;
}

/// An open socket for datagrams. One task owns it.
pub trait Datagrams: fmt::Debug + Send {
    /// The address that it listens at, with the port that the system chose.
    fn local(&self) -> SocketAddr;

    /// Returns true if it can send to `address`: a socket for IPv4 cannot send to IPv6.
    fn reaches(&self, address: SocketAddr) -> bool;

    /// The address of this node from which datagrams to `address` would go, with the port that it
    /// listens at. A node that listens at all addresses announces it to the others. `None`, as by
    /// default, where the socket does not know it. It must be cheap: a node calls it up to once a
    /// second. It sends no datagram.
    fn source(&self, _address: SocketAddr) -> Option<SocketAddr> {
        None
    }

    /// The next datagram: its length, and the address of its sender. It is written to `buffer`, and
    /// cut short where that is too small. Without a datagram, the task of `cx` is woken when one
    /// arrives.
    ///
    /// # Errors
    /// Those of the system, for instance that an earlier datagram had no receiver. The node counts
    /// them and goes on, and pauses for a millisecond after each where many come in a row.
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>>;

    /// A datagram that has arrived already.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) without one, and those of
    /// [`poll_recv`](Self::poll_recv).
    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)>;

    /// Sends a datagram and returns its number of bytes. Without room, the task of `cx` is woken
    /// when there is some.
    ///
    /// # Errors
    /// The system's errors. The node counts them and continues.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>>;
}

/// Returns true if `address` is one host and port, so that others can send to it.
#[must_use]
pub fn reachable(address: SocketAddr) -> bool {
    address.port() != 0 && !address.ip().is_unspecified() && !names_many(address.ip())
}

/// Returns true for an address of many hosts: a multicast group, or the broadcast address.
#[must_use]
pub fn names_many(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_multicast() || ip == Ipv4Addr::BROADCAST,
        IpAddr::V6(ip) => ip.is_multicast(),
    }
}

/// The IPv4 address for an IPv6 address that maps it (`::ffff:192.0.2.1`), as sockets of both
/// families show them; any other address unchanged.
#[must_use]
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match (address, address.ip().to_canonical()) {
        (SocketAddr::V6(_), ip @ IpAddr::V4(_)) => SocketAddr::new(ip, address.port()),
        // The address with its scope.
        _ => address,
    }
}

impl Transport for Box<dyn Transport> {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        (*self).bind(listen)
    }
}
