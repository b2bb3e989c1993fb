//! A network in memory: nothing is lost, nothing is late, and no time passes.

use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use selvedge_udp::{Datagrams, Transport};

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
}

/// An address of this network, that is none of this machine.
pub(crate) fn at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

impl Network {
    pub(crate) fn open(&self, local: SocketAddr) -> Socket {
        let former = self.lock().insert(local, Inbox::default());
        assert!(former.is_none(), "{local} is taken");
        let network = self.clone();
        Socket { network, local }
    }

    /// A datagram, or an error, comes to this address.
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

impl Drop for Socket {
    fn drop(&mut self) {
        self.network.lock().remove(&self.local);
    }
}

impl Socket {
    /// What has come, oldest first.
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
        self.local
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        address.is_ipv4() == self.local.is_ipv4()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
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
        self.send(datagram, to);
        Poll::Ready(Ok(datagram.len()))
    }
}
