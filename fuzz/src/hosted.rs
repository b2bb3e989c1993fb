//! A machine in the host for any machine, at a network that sends anything at all.

use alloc::collections::BTreeMap;
use core::net::SocketAddr;
use core::time::Duration;

use selvedge_core::wire::{self, bytes_len};
use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId, Span};
use selvedge_host::{Host, Setup, Traffic};
use selvedge_seal::{Epoch, Keyring, Seal, Sealer};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;
use tokio::time::advance;

use crate::datagrams::{BUDGET, ME, Socket};

/// The bits of the first byte.
pub(crate) const SEALED: u8 = 1;
pub(crate) const HEARTBEAT: u8 = 2;
pub(crate) const LEARNS: u8 = 4;
/// A sender that lets time pass instead: its length is a number of milliseconds.
pub(crate) const TIME: u8 = 255;
/// The nodes that the host has listed.
const LISTED: [u8; 2] = [2, 3];
/// The number of other nodes that it learns.
const LEARNED: usize = 2;

/// Sends each note back, and keeps the books.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Echo {
    notes: BTreeMap<NodeId, u64>,
    /// The lives that joined, and whether they have failed.
    present: BTreeMap<NodeId, (Member, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Note(pub(crate) Vec<u8>);

impl wire::Message for Note {
    const KIND: u8 = 200;

    fn encoded_len(&self) -> usize {
        bytes_len(self.0.len())
    }
}

impl Machine for Echo {
    type Message = Note;
    type Timer = ();
    type Command = ();
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Message { message, .. } if message.0.is_empty() => return Err(()),
            Input::Message { from, message } => {
                *self.notes.entry(from.id).or_default() += 1;
                cx.send(from, message);
                cx.event(());
            }
            Input::Command(()) => cx.arm((), Span::millis(500)),
            Input::Tick(()) => cx.multicast(Note(vec![1])),
            Input::Membership(delta) => self.learn(delta),
        }
        Ok(())
    }
}

impl Echo {
    /// Changes come in the order of the contract, and only of listed nodes.
    fn learn(&mut self, delta: Delta) {
        let member = delta.member();
        let known = self.present.get(&member.id).copied();
        let (is_right, now) = match delta {
            Delta::Joined(_) => (known.is_none(), Some((member, false))),
            Delta::Failed(_) => (known == Some((member, false)), Some((member, true))),
            Delta::Refuted(_) => (known == Some((member, true)), Some((member, false))),
            Delta::Confirmed(_) => (known.is_some_and(|it| it.0 == member), None),
            Delta::Suspected(_) | Delta::Left(_) => (false, None),
        };
        let is_listed = LISTED.iter().any(|&id| member.id == NodeId(id.into()));
        assert!(is_right && is_listed, "{delta:?} where {known:?} is known");
        match now {
            Some(now) => self.present.insert(member.id, now),
            None => self.present.remove(&member.id),
        };
    }
}

/// The address of a sender.
fn address(sender: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, sender], 7_000 + u16::from(sender % 4)))
}

/// Gives a hosted machine the datagrams in `data`: a byte for the sender, two for the length, and the
/// datagram. Bits of the first byte seal most datagrams, and switch on heartbeats and learned addresses.
///
/// Each datagram has one outcome, which is counted; only nodes that may send are delivered, and each life
/// joins and fails in order; the host keeps its frame budget, sends nothing to itself, and answers its
/// application.
///
/// # Panics
/// When one of these does not hold.
pub fn hosted(data: &[u8]) {
    run(data);
}

fn run(data: &[u8]) -> Option<(Traffic, u64)> {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().ok()?;
    runtime.block_on(deliver(data))
}

async fn deliver(data: &[u8]) -> Option<(Traffic, u64)> {
    let (mode, mut rest) = data.split_first()?;
    let has = |bit| mode & bit != 0;
    let socket = Socket::default();
    let mut setup = Setup::new(Member::new(1, 0), ME)
        .transport(socket.clone())
        .peers(LISTED.map(|id| (NodeId(id.into()), address(id))))
        .frame_budget(BUDGET.into())
        .random_seed(7);
    if has(HEARTBEAT) {
        setup = setup.heartbeat(Span::secs(1));
    }
    if has(LEARNS) {
        setup = setup.learn_addresses(LEARNED);
    }
    let mut sealers = Vec::new();
    let keyring = Keyring::parse(&"07".repeat(32)).ok();
    if let (Some(keyring), Ok(epoch), true) = (keyring, Epoch::now(), has(SEALED)) {
        setup = setup.seal(Seal::new(keyring.clone(), "mesh"));
        let sealer = |id| Sealer::new(&keyring, "mesh", NodeId(id), epoch);
        sealers = (0..8).map(sealer).collect();
    }
    let started = Host::start(Echo::default(), setup).await;
    assert!(started.is_ok(), "it starts: {:?}", started.err());
    let node = started.ok()?;
    assert!(node.submit(()).await.is_ok());
    let mut put = 0;
    while let Some((&[sender, high, low], behind)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_be_bytes([high, low])).min(behind.len());
        if sender == TIME {
            rest = behind;
            socket.settle().await;
            advance(Duration::from_millis(
                u16::from_be_bytes([high, low]).into(),
            ))
            .await;
            continue;
        }
        let (bytes, next) = behind.split_at(len);
        rest = next;
        let mut datagram = bytes.to_vec();
        // The others come from a stranger.
        if let Some(sealer) = sealers.get_mut(usize::from(sender))
            && let Some(kind) = bytes.get(1)
        {
            datagram.clear();
            let sealed = sealer.seal(*kind, bytes, &mut datagram);
            assert!(sealed.is_ok(), "it seals few");
        }
        socket.put(datagram, address(sender));
        put += 1;
    }
    socket.settle().await;
    let echo = node.read(Echo::clone).await;
    assert!(echo.is_ok(), "it answers");
    let (echo, counted) = (echo.ok()?, node.traffic());
    let taken: u64 = echo.notes.values().sum();
    let outcomes = taken + dropped(&counted) + counted.refused;
    assert!(counted.received == put && outcomes <= put, "{counted:?}");
    assert!(outcomes == put || has(HEARTBEAT), "{counted:?}");
    assert_eq!(counted.sent, socket.sent());
    let is_listed = |id: &NodeId| LISTED.iter().any(|&it| *id == NodeId(it.into()));
    let others = echo.notes.keys().filter(|id| !is_listed(id)).count();
    let limit = if has(LEARNS) { LEARNED } else { 0 };
    assert!(
        others <= limit && !echo.notes.contains_key(&NodeId(1)),
        "{echo:?}"
    );
    assert!(has(HEARTBEAT) || echo.present.is_empty(), "{echo:?}");
    assert!(node.submit(()).await.is_ok() && node.stop().await.is_ok());
    Some((counted, taken))
}

/// The number of datagrams that were dropped before the machine saw them.
fn dropped(counted: &Traffic) -> u64 {
    let sealing = counted.unsealed + counted.sealed + counted.wrong_key;
    let repeated = counted.old_epoch + counted.replayed + counted.above_rate;
    let frames = counted.oversize + counted.wrong_version + counted.wrong_kind + counted.malformed;
    sealing + repeated + frames + counted.wrong_sender + counted.unknown_sender
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    /// Datagrams that the machine does not take test little.
    #[test]
    fn the_machine_takes_many_notes_of_the_seeds() {
        let seeds = seeds().filter(|it| it.target == "hosted");
        let (mut all, mut taken) = (Traffic::default(), 0);
        for (counted, notes) in seeds.filter_map(|it| run(&it.bytes)) {
            (all, taken) = (all + counted, taken + notes);
        }
        assert!(taken > 50 && all.sent > taken, "{taken}: {all:?}");
        // A listed node's heartbeats are of a wrong kind in half of the modes.
        assert!(dropped(&all) < all.received * 2 / 3, "{all:?}");
    }
}
