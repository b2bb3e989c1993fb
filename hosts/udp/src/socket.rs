//! A node's socket: for one family of addresses, or for both.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use socket2::{Domain, SockRef, Type};
use tokio::net::UdpSocket;

use crate::address::canonical;

/// A socket that speaks of addresses of IPv4 as such, also where it is one of IPv6 that hears both.
#[derive(Debug)]
pub(crate) struct Socket {
    udp: UdpSocket,
    local: SocketAddr,
    /// Whether it is of IPv6 and hears IPv4 as well.
    is_dual: bool,
}

impl Socket {
    /// Listens at `address`; at `[::]` to IPv4 as well, whatever the system's default is.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        Self::from_std(socket.into())
    }

    /// Takes a socket that is bound already.
    pub(crate) fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let is_any = local.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
        let is_dual = is_any && !SockRef::from(&socket).only_v6()?;
        Ok(Self {
            udp: UdpSocket::from_std(socket)?,
            local,
            is_dual,
        })
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether it can send to `address`, by its family.
    pub(crate) fn speaks(&self, address: SocketAddr) -> bool {
        self.is_dual || canonical(self.local).is_ipv4() == canonical(address).is_ipv4()
    }

    pub(crate) async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, source) = self.udp.recv_from(buffer).await?;
        Ok((len, canonical(source)))
    }

    pub(crate) fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, source) = self.udp.try_recv_from(buffer)?;
        Ok((len, canonical(source)))
    }

    pub(crate) async fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.local.is_ipv6() => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), to.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => to,
        };
        self.udp.send_to(datagram, to).await
    }
}
