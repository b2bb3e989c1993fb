//! A node of the UDP host at a network that sends anything at all.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::task::{Context, Poll, Waker};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge::Election;
use selvedge_core::{Incarnation, NodeId, Span};
use selvedge_membership::Config;
use selvedge_seal::{Epoch, Keyring, Seal, Sealer};
use selvedge_udp::discovery::Announcement;
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::transport::{Datagrams, Transport};
use selvedge_udp::{Host, Setup, Tags, address};
use tokio::runtime::Builder;
use tokio::task::yield_now;

use crate::group_facts::{LAST_DEVICE, coordination};

/// The limits of members in the list, and of bytes in a datagram.
const MEMBERS: u32 = 8;
pub(crate) const BUDGET: u16 = 1_400;
/// The bit of the first byte that makes the node take part in k-groups.
pub(crate) const WITH_GROUPS: u8 = 128;
/// The address of sender 254.
pub(crate) const ME: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254)), 7_002);

/// The socket of a node, and its inbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Socket(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    inbox: VecDeque<(Vec<u8>, SocketAddr)>,
    reader: Option<Waker>,
    sent: u64,
}

impl Socket {
    pub(crate) fn sent(&self) -> u64 {
        self.lock().sent
    }

    /// Waits until the node has taken all datagrams, and has carried out the effects of the last.
    pub(crate) async fn settle(&self) {
        // A host that has panicked has dropped its socket.
        while Arc::strong_count(&self.0) > 1 && !self.lock().inbox.is_empty() {
            yield_now().await;
        }
        for _ in 0..8 {
            yield_now().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, datagram: Vec<u8>, source: SocketAddr) {
        let mut inner = self.lock();
        inner.inbox.push_back((datagram, source));
        if let Some(reader) = inner.reader.take() {
            reader.wake();
        }
    }
}

impl Transport for Socket {
    fn bind(self: Box<Self>, _: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        Ok(self)
    }
}

impl Datagrams for Socket {
    fn local(&self) -> SocketAddr {
        ME
    }

    fn reaches(&self, address: SocketAddr) -> bool {
        address.is_ipv4()
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        let received = self.try_recv(buffer);
        if received.is_err() {
            self.lock().reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(received)
    }

    fn try_recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (datagram, source) = self
            .lock()
            .inbox
            .pop_front()
            .ok_or(io::ErrorKind::WouldBlock)?;
        let len = datagram.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(&datagram) {
            *to = *from;
        }
        Ok((len, source))
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        datagram: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        assert!(datagram.len() <= BUDGET.into(), "{} bytes", datagram.len());
        assert!(self.reaches(to) && to != ME, "it sends to {to}");
        self.lock().sent += 1;
        Poll::Ready(Ok(datagram.len()))
    }
}

/// Gives a node the datagrams in `data`: a byte for the sender, two for the length, and the
/// datagram. With an odd first byte the mesh is sealed, and most datagrams are sealed by their
/// sender. With a first byte from 128 the node takes part in k-groups, of which it founds some.
///
/// Each datagram is counted, the node lists a bounded number of members at addresses to which it
/// can send, keeps to its settings when it sends, and answers its application. And `data` as the
/// metadata of a member gives addresses and tags that return, or nothing.
///
/// # Panics
/// When one of these does not hold.
pub fn datagrams(data: &[u8]) {
    metadata(data);
    run(data);
}

fn run(data: &[u8]) -> Option<TrafficReport> {
    let runtime = Builder::new_current_thread().enable_time().build().ok()?;
    runtime.block_on(deliver(data))
}

fn metadata(data: &[u8]) {
    // The second form has tags behind no address.
    for bytes in [data, &[&[255, 0], data].concat()] {
        let Some(announced) = Announcement::decode(bytes) else {
            continue;
        };
        let addresses = &announced.addresses;
        assert!(addresses.len() <= address::LIMIT);
        assert!(addresses.iter().all(|it| address::reachable(*it)));
        let tags: Tags = announced.tags.iter().collect();
        assert_eq!(tags, announced.tags);
        assert_eq!(Announcement::decode(&announced.encode()), Some(announced));
    }
}

async fn deliver(data: &[u8]) -> Option<TrafficReport> {
    let (mode, mut rest) = data.split_first()?;
    let (is_sealed, has_groups) = (mode % 2 == 1, mode & WITH_GROUPS != 0);
    let keyring = Keyring::parse(&"07".repeat(32)).ok().filter(|_| is_sealed);
    let socket = Socket::default();
    let mut config = Config::default();
    (config.member_limit, config.tombstone_limit) = (MEMBERS, 4);
    config.frame_budget = BUDGET;
    let mut setup = Setup::new(NodeId(1), ME)
        .life(Incarnation(0))
        .random_seed(7)
        .transport(socket.clone())
        .membership(config)
        .locks(4)
        .election(Election::paced(Span::secs(1), 2, 1));
    if has_groups {
        setup = setup.coordination(coordination()?, Span::ZERO).stateless();
    }
    let mut sealers = Vec::new();
    if let (Some(keyring), Ok(epoch)) = (keyring, Epoch::now()) {
        setup = setup.seal(Seal::new(keyring.clone(), "mesh"));
        let sealer = |id| Sealer::new(&keyring, "mesh", NodeId(id), epoch);
        sealers = (0..8).map(sealer).collect();
    }
    let started = Host::start(setup).await;
    assert!(started.is_ok(), "it starts: {:?}", started.err());
    let node = started.ok()?;
    let mut put = 0;
    while let Some((&[sender, high, low], behind)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        let (bytes, next) = behind.split_at(len);
        rest = next;
        let source = SocketAddr::from(([192, 0, 2, sender], 7_000 + u16::from(sender % 4)));
        let mut datagram = bytes.to_vec();
        // The others come from a stranger.
        if let Some(sealer) = sealers.get_mut(usize::from(sender))
            && let Some(kind) = bytes.get(1)
        {
            datagram.clear();
            let sealed = sealer.seal(*kind, bytes, &mut datagram);
            assert!(sealed.is_ok(), "it seals few");
        }
        socket.put(datagram, source);
        put += 1;
    }
    socket.settle().await;
    let (report, members) = (node.traffic().report(), node.members());
    assert_eq!(report.received, put, "each is counted");
    assert_eq!(report.sent, socket.sent());
    assert!(members.len() <= MEMBERS as usize + 1, "{}", members.len());
    for address in members.iter().filter_map(|it| it.address) {
        assert!(address::reachable(address), "{address}");
    }
    assert_eq!(
        node.set_max_lives(2).await.is_ok(),
        node.set_max_lives(3).await.is_ok()
    );
    for device in (1_000..=LAST_DEVICE).map(NodeId) {
        let reported = node.reported(device, Some("on".into())).await;
        assert!(reported.is_err() || has_groups, "a cluster without groups");
    }
    node.kill().await;
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seed, seeds};

    /// Datagrams that no machine takes test little.
    #[test]
    fn machines_take_most_of_the_seeds() {
        for (mode, come, least) in [(0, 150, 5), (WITH_GROUPS, 80, 20)] {
            let is_of_mode =
                |it: &Seed| it.bytes.first().is_some_and(|it| it & WITH_GROUPS == mode);
            let seeds = seeds().filter(|it| it.target == "datagrams" && is_of_mode(it));
            let all = seeds.filter_map(|it| run(&it.bytes)).reduce(|a, b| a + b);
            let all = all.unwrap_or_default();
            let dropped = all.malformed + all.wrong_kind + all.wrong_key + all.wrong_sender;
            assert!(all.received > come && dropped < all.received / 4, "{all:?}");
            // A node that measures sent more; no program has it measure.
            assert!(all.sent > least, "{all:?}");
        }
    }
}
