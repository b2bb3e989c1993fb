//! The network between the nodes of a demo.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use selvedge_core::NodeId;

use super::plan::LOSS;
use selvedge_udp::faults::Faults;

/// A network for a demo.
pub trait Ground: core::fmt::Debug {
    /// The name of the place, as in "16 nodes start on 127.0.0.1".
    fn name(&self) -> String;

    /// The faults of the nodes' transports, if the network itself has none.
    fn faults(&self) -> Faults;

    /// A socket for a node, at the address of its former life if it had one.
    ///
    /// # Errors
    /// If the system provides no socket.
    fn socket(&mut self, node: NodeId, former: Option<SocketAddr>) -> io::Result<UdpSocket>;

    /// Cuts exactly these nodes off from the others; an empty list heals. Returns false if the
    /// network cannot do it, and the nodes' transports have to.
    fn cut_off(&mut self, nodes: &[u64]) -> bool;
}

/// Ports of this machine; the nodes' transports lose packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loopback;

impl Ground for Loopback {
    fn name(&self) -> String {
        Ipv4Addr::LOCALHOST.to_string()
    }

    fn faults(&self) -> Faults {
        Faults::none().with_loss(LOSS)
    }

    fn socket(&mut self, _: NodeId, former: Option<SocketAddr>) -> io::Result<UdpSocket> {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        UdpSocket::bind(former.unwrap_or(anywhere))
    }

    fn cut_off(&mut self, _: &[u64]) -> bool {
        false
    }
}
