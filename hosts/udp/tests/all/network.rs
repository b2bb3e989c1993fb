//! A network in memory: nothing is lost, nothing is late, and no time passes.

use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use selvedge_udp::transport::{Datagrams, Transport};

/// The sockets of all addresses. Cloned into the transport of each node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    inboxes: Arc<Mutex<BTreeMap<SocketAddr, Inbox>>>,
}

#[derive(Debug, Default)]
struct Inbox {
    waiting: VecDeque<io::Result<(Vec<u8>, SocketAddr)>>,
    reader: Option<Waker>,
}

/// A socket of this network. It reaches the addresses of its own family.
#[derive(Debug)]
pub(crate) struct Socket {
    network: Network,
    local: SocketAddr,
    quirk: Quirk,
}

/// A property of an odd socket.
#[derive(Clone, Debug)]
pub(crate) enum Quirk {
    None,
    /// It wakes no reader, as on a machine that is busy elsewhere.
    Busy,
    /// All fails.
    Down,
    /// Sends fail for as long as the switch is on.
    Mute(Arc<AtomicBool>),
    /// It is at all addresses of its host, and sends to others from the returned one.
    Anywhere(Source),
}

pub(crate) type Source = fn(SocketAddr) -> Option<SocketAddr>;

/// A transport to this network with an odd socket.
#[derive(Debug)]
pub(crate) struct Odd(Network, Quirk);

/// An address of this network, which is not an address of this machine.
pub(crate) fn at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

impl Network {
    pub(crate) fn open(&self, local: SocketAddr) -> Socket {
        let former = self.lock().insert(local, Inbox::default());
        assert!(former.is_none(), "{local} is taken");
        Socket {
            network: self.clone(),
            local,
            quirk: Quirk::None,
        }
    }

    pub(crate) fn odd(&self, quirk: Quirk) -> Odd {
        Odd(self.clone(), quirk)
    }

    /// Delivers a datagram, or an error, to this address.
    pub(crate) fn put(&self, to: SocketAddr, what: io::Result<(&[u8], SocketAddr)>) {
        if let Some(inbox) = self.lock().get_mut(&to) {
            let what = what.map(|(datagram, source)| (datagram.to_vec(), source));
            inbox.waiting.push_back(what);
            if let Some(reader) = inbox.reader.take() {
                reader.wake();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Inbox>> {
        self.inboxes.lock().unwrap()
    }
}

impl Transport for Network {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        Ok(Box::new(self.open(listen)))
    }
}

impl Transport for Odd {
    fn bind(self: Box<Self>, listen: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        let mut socket = self.0.open(listen);
        socket.quirk = self.1;
        Ok(Box::new(socket))
    }
}

fn down() -> io::Error {
    io::Error::other("the interface is down")
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.network.lock().remove(&self.local);
    }
}

impl Socket {
    /// The received datagrams, oldest first.
    pub(crate) fn heard(&mut self) -> Vec<(Vec<u8>, SocketAddr)> {
        let mut all = self.network.lock();
        let waiting = all.get_mut(&self.local).unwrap().waiting.drain(..);
        waiting.map(Result::unwrap).collect()
    }

    pub(crate) fn send(&self, datagram: &[u8], to: SocketAddr) {
        self.network.put(to, Ok((datagram, self.local)));
    }
}

impl Datagrams for Socket {
    fn local(&self) -> SocketAddr {
        match self.quirk {
            Quirk::Anywhere(_) => (Ipv4Addr::UNSPECIFIED, self.local.port()).into(),
            _ => self.local,
        }
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        address.is_ipv4() == self.local.is_ipv4()
    }

    fn source(&self, address: SocketAddr) -> Option<SocketAddr> {
        let Quirk::Anywhere(source) = self.quirk else {
            return None;
        };
        let mut source = source(address)?;
        source.set_port(self.local.port());
        Some(source)
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        if matches!(self.quirk, Quirk::Busy) {
            return Poll::Pending;
        }
        match self.try_recv(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut all = self.network.lock();
                all.get_mut(&self.local).unwrap().reader = Some(cx.waker().clone());
                Poll::Pending
            }
            received => Poll::Ready(received),
        }
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        if matches!(self.quirk, Quirk::Down) {
            return Err(down());
        }
        let mut all = self.network.lock();
        let inbox = all.get_mut(&self.local).unwrap();
        let next = inbox.waiting.pop_front();
        let (datagram, source) = next.ok_or(io::ErrorKind::WouldBlock)??;
        let len = datagram.len().min(buffer.len());
        buffer[..len].copy_from_slice(&datagram[..len]);
        Ok((len, source))
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        let fails = match &self.quirk {
            Quirk::Down => true,
            Quirk::Mute(switch) => switch.load(Ordering::Relaxed),
            Quirk::None | Quirk::Busy | Quirk::Anywhere(_) => false,
        };
        if fails {
            return Poll::Ready(Err(down()));
        }
        self.send(datagram, to);
        Poll::Ready(Ok(datagram.len()))
    }
}
