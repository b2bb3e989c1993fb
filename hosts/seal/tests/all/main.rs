//! All tests as one program.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

mod clocks;
mod datagrams;
mod keys;

use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Keyring, Opener, Sealer, Unopened};

pub(crate) const KIND: u8 = 1;
pub(crate) const GROUP: &str = "mesh";
pub(crate) const NOW: Time = Time(1_000_000);

pub(crate) fn ring(keys: &[u8]) -> Keyring {
    let lines = keys
        .iter()
        .map(|key| format!("{key:02x}").repeat(32) + "\n");
    Keyring::parse(&lines.collect::<String>()).unwrap()
}

pub(crate) fn sealer(id: u64, epoch: u64) -> Sealer {
    Sealer::new(&ring(&[1]), GROUP, NodeId(id), Epoch(epoch))
}

pub(crate) fn opener() -> Opener {
    Opener::new(ring(&[1]), GROUP.to_owned(), 100)
}

pub(crate) fn seal(sealer: &mut Sealer, frame: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    sealer.seal(KIND, frame, &mut datagram).unwrap();
    datagram
}

pub(crate) fn open(opener: &mut Opener, datagram: &[u8]) -> Result<NodeId, Unopened> {
    opener.open(KIND, datagram, NOW, &mut Vec::new())
}
