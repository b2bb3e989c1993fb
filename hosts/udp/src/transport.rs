//! Transports of datagrams: a real socket, or a socket with faults around it.

use core::fmt;
use core::task::{Context, Poll};
use std::io;
use std::net::SocketAddr;

/// Opens the socket of a node.
///
/// [`Udp`](crate::Udp) is the default. [`Faulty`](crate::Faulty) puts loss, delay and partitions
/// around another transport. A transport of an application carries datagrams over something else:
/// the node needs no more than unreliable, unordered datagrams of at most its frame budget, between
/// addresses that are written as [`SocketAddr`].
pub trait Transport: fmt::Debug + Send {
    /// Opens the socket. Called once, by [`Host::start`](crate::Host::start), on the runtime that
    /// the node runs on.
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

impl Transport for Box<dyn Transport> {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        (*self).bind(listen)
    }
}
