//! UDP sockets: for one family of addresses, or for both.

use core::task::{Context, Poll, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, SockRef, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

use super::{Datagrams, Transport, canonical};

/// UDP: binds a socket of the system, or uses a bound one.
#[derive(Debug, Default)]
pub struct Udp {
    bound: Option<std::net::UdpSocket>,
}

impl Udp {
    /// Binds a socket at the address at which the node listens. At `[::]` it receives IPv4 as well,
    /// regardless of the system's default.
    #[must_use]
    pub const fn new() -> Self {
        Self { bound: None }
    }

    /// Uses a socket that is bound already, for instance one that a service manager passed on. The
    /// address at which the node should listen is ignored then.
    #[must_use]
    pub const fn bound(socket: std::net::UdpSocket) -> Self {
        Self {
            bound: Some(socket),
        }
    }
}

impl Transport for Udp {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        let socket = match self.bound {
            Some(socket) => socket,
            None => bind(listen)?,
        };
        Ok(Box::new(Socket::new(socket)?))
    }
}

fn bind(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A socket that shows IPv4 addresses as such, also if it is an IPv6 socket that receives both.
#[derive(Debug)]
struct Socket {
    udp: UdpSocket,
    local: SocketAddr,
    /// True if it is an IPv6 socket that receives IPv4 as well.
    is_dual: bool,
}

impl Socket {
    fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
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
}

impl Datagrams for Socket {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        self.is_dual || canonical(self.local).is_ipv4() == canonical(address).is_ipv4()
    }

    /// A socket that is connected shows which address the system chooses; that sends nothing.
    fn source(&self, address: SocketAddr) -> Option<SocketAddr> {
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let probe = std::net::UdpSocket::bind((any, 0)).ok()?;
        probe.connect(address).ok()?;
        let mut source = probe.local_addr().ok()?;
        source.set_port(self.local.port());
        Some(source)
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let mut buffer = ReadBuf::new(buffer);
        let source = ready!(self.udp.poll_recv_from(cx, &mut buffer))?;
        Poll::Ready(Ok((buffer.filled().len(), canonical(source))))
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (len, source) = self.udp.try_recv_from(buffer)?;
        Ok((len, canonical(source)))
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.local.is_ipv6() => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), to.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => to,
        };
        self.udp.poll_send_to(cx, datagram, to)
    }
}
