//! Writing sealed datagrams.

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::AeadInOut;
use selvedge_core::NodeId;
use thiserror::Error;

use super::{Epoch, Head, Keyring, OVERHEAD, cipher};

/// The error after 2^64 datagrams: all counters of an epoch are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("this node has sealed all datagrams of its epoch: start it again")]
pub struct Exhausted;

/// The sealer of the datagrams of one node in one of its lives.
pub struct Sealer {
    cipher: Aes256Gcm,
    mark: u8,
    group: String,
    sender: NodeId,
    epoch: Epoch,
    counter: u64,
}

impl core::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sealer")
            .field("sender", &self.sender)
            .field("epoch", &self.epoch)
            .field("counter", &self.counter)
            .finish_non_exhaustive()
    }
}

impl Sealer {
    /// A sealer with the ring's first key, for a group, as `sender`. An epoch must not be used twice.
    #[must_use]
    pub fn new(keyring: &Keyring, group: &str, sender: NodeId, epoch: Epoch) -> Self {
        let (mark, cipher) = Self::first(keyring, group, sender, epoch);
        Self {
            cipher,
            mark,
            group: group.to_owned(),
            sender,
            epoch,
            counter: 0,
        }
    }

    /// Seals with the first key of another ring from now on; the counter continues.
    pub fn rotate(&mut self, keyring: &Keyring) {
        let (mark, cipher) = Self::first(keyring, &self.group, self.sender, self.epoch);
        self.mark = mark;
        self.cipher = cipher;
    }

    fn first(keyring: &Keyring, group: &str, sender: NodeId, epoch: Epoch) -> (u8, Aes256Gcm) {
        let (mark, key) = keyring.first();
        (*mark, cipher(key, group, sender, epoch))
    }

    /// Replaces the content of `datagram` by the sealed `frame`: at most [`OVERHEAD`] bytes longer.
    ///
    /// # Errors
    /// When all counters are used; `datagram` is empty then.
    pub fn seal(
        &mut self,
        kind: u8,
        frame: &[u8],
        datagram: &mut Vec<u8>,
    ) -> Result<(), Exhausted> {
        datagram.clear();
        let head = Head {
            kind,
            key: self.mark,
            sender: self.sender,
            epoch: self.epoch,
            counter: self.counter,
        };
        // The last counter is not used, so that it never has to wrap.
        self.counter = self.counter.checked_add(1).ok_or(Exhausted)?;
        datagram.reserve(frame.len() + OVERHEAD);
        head.write(datagram);
        let len = datagram.len();
        datagram.extend(frame);
        let (clear, secret) = datagram.split_at_mut(len);
        let nonce = head.nonce().into();
        let sealed = self
            .cipher
            .encrypt_inout_detached(&nonce, clear, secret.into());
        match sealed {
            Ok(tag) => datagram.extend(tag),
            // Frames are far below the cipher's 64 GB.
            Err(_) => datagram.clear(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn no_counter_is_used_twice() {
        let keyring = Keyring::of(Key::random().unwrap());
        let mut sealer = Sealer::new(&keyring, "", NodeId(1), Epoch(1));
        sealer.counter = u64::MAX - 1;
        let mut datagram = Vec::new();
        assert_eq!(sealer.seal(1, b"last", &mut datagram), Ok(()));
        for _ in 0..3 {
            assert_eq!(sealer.seal(1, b"none", &mut datagram), Err(Exhausted));
            assert!(datagram.is_empty());
        }
    }
}
