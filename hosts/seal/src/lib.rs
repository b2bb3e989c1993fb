//! Sealed datagrams: only a node that holds a key of the mesh can write or read them.
//!
//! Pure: bytes go in, bytes come out. A [`Sealer`] belongs to one node's life, an [`Opener`] to one
//! socket.
//!
//! ```
//! use selvedge_core::{NodeId, Time};
//! use selvedge_seal::{Epoch, Keyring, Opener, Sealer};
//!
//! let keyring = Keyring::parse(&format!("{}\n", "17".repeat(32)))?;
//! let mut sealer = Sealer::new(&keyring, "greenhouse", NodeId(7), Epoch(1));
//! let mut opener = Opener::new(keyring, "greenhouse".to_owned(), 100);
//!
//! let (mut datagram, mut frame) = (Vec::new(), Vec::new());
//! sealer.seal(1, b"good day", &mut datagram)?;
//! assert_eq!(opener.open(1, &datagram, Time::ZERO, &mut frame)?, NodeId(7));
//! assert_eq!(frame, b"good day");
//! assert!(opener.open(1, &datagram, Time::ZERO, &mut frame).is_err(), "a replay");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Promises
//!
//! | promise | assumptions and means |
//! |---|---|
//! | a node that holds no key reads nothing, and nothing that it wrote is opened | AES-256-GCM; the tag covers protocol, group, sender, epoch and counter |
//! | no nonce is used twice with one key | each (key, group, sender, epoch) has a key of its own by HKDF-SHA256, and the nonce is a counter under it. An epoch is the time of a start to the microsecond and 12 random bits, so two nodes with one id do not share it |
//! | a datagram is opened at most once | as long as the opener lives: a window of 1,024 counters for each sender (RFC 6479), which moves only after the tag was verified, and epochs that never go back, among the present ones and among the ones that contradict the opener's clock |
//! | memory is bounded | by the number of senders, and only a node that holds a key is a sender |
//! | keys are changed without a gap | the first key of a ring seals, all open: put the new key last everywhere ([`add_key`]), then first everywhere ([`use_key`]), then remove the old key ([`remove_key`]); [`Sealer::rotate`] and [`Opener::rotate`] take the ring while they run |
//!
//! An opener that starts has no memory: until it receives a sender's present epoch, it opens recorded
//! datagrams of an earlier one. The protocols treat these as old: membership recognises earlier lives by
//! their incarnations, and old news by their revisions.
//!
//! If a node's clock ran backwards between two starts, openers that remember the later epoch refuse the node
//! ([`Unopened::OldEpoch`]) until its clock has passed that epoch and it takes a new one, as the UDP host
//! does, or until they restart. A node that stores its epoch takes a later one at each start, unless the
//! stored one is of a wrong time ([`Epoch::at`]), and is not refused. If the later epoch contradicts the opener's clock by more than
//! [`Opener::TOLERANCE`], the node is not refused. An epoch contradicts the clock when it is ahead of it, or
//! when an earlier start was still received after it. Such starts are kept apart from present ones, and
//! datagrams of both are opened, until the sender restarts at a right time. So a clock that once was wrong
//! mutes no node, also when an attacker without a key replays datagrams of that time; each recording is
//! opened once at most.
//!
//! A holder of a key can send as any sender, and mute it at an opener with an epoch between the sender's
//! start and now, until that sender restarts.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod key;
mod key_file;
mod opener;
mod rate;
mod sealer;
mod window;

use aes_gcm::{Aes256Gcm, KeyInit};
use hkdf::Hkdf;
use selvedge_core::NodeId;
use selvedge_core::wire::{SEALED, varint_len};
use sha2::Sha256;
use zeroize::Zeroizing;

pub use key::{Key, KeyError, KeyName, Keyring, NotAName};
pub use key_file::{
    KeyFileError, Readers, add_key, create_key_file, read_group_key_file, read_key_file,
    remove_key, use_key,
};
pub use opener::{Opener, Unopened};
pub use rate::RateLimit;
pub use sealer::{Exhausted, Sealer};

/// The longest head: first byte, protocol, key, sender, epoch and counter. Sender and counter have a variable
/// length, because most are small.
const HEAD_MAX_LEN: usize = 1 + 1 + 1 + 10 + 8 + 10;
const TAG_LEN: usize = 16;

/// The largest number of bytes that sealing adds to a frame; 29 bytes where ids and counters are small.
pub const OVERHEAD: usize = HEAD_MAX_LEN + TAG_LEN;

/// The beginning of 2026, in microseconds since 1970. A clock that shows an earlier time was not set.
pub const CLOCK_IS_SET: u64 = 1_767_225_600_000_000;
/// A former start was at a wrong time if it is ahead of a clock that was set by more: ten years, in microseconds. A
/// clock that starts at the time when its system was built is behind by less.
const FAR_AHEAD: u64 = 10 * 365 * 86_400_000_000;

/// The number of bytes that sealing adds to a frame of this sender after it has sent `sent` datagrams.
#[must_use]
pub const fn overhead(sender: NodeId, sent: u64) -> usize {
    3 + varint_len(sender.0) + 8 + varint_len(sent) + TAG_LEN
}

/// The settings with which a host seals its datagrams and opens others.
#[derive(Clone, Debug)]
pub struct Seal {
    /// The keys.
    pub keyring: Keyring,
    /// The mesh: a datagram of one group does not open in another, even with the same keys.
    pub group: String,
    /// The limit for each sender; `None` is without limit.
    pub rate: Option<RateLimit>,
}

impl Seal {
    /// Settings with these keys for the mesh of this name, without a limit for senders.
    #[must_use]
    pub fn new(keyring: Keyring, group: impl Into<String>) -> Self {
        Self {
            keyring,
            group: group.into(),
            rate: None,
        }
    }

    /// Refuses datagrams of a sender beyond this rate.
    #[must_use]
    pub fn with_rate(self, rate: RateLimit) -> Self {
        Self {
            rate: Some(rate),
            ..self
        }
    }
}

/// A start of a node: later starts have larger epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch of a start this number of microseconds after 1970 began, with 12 random bits, so that two
    /// starts at one moment differ. Enough until the year 2112.
    #[must_use]
    pub const fn new(since_1970: u64, random: u64) -> Self {
        Self(since_1970 << 12 | random & 0xFFF)
    }

    /// The epoch of a start now.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn now() -> Result<Self, getrandom::Error> {
        Self::at(since_1970(), None)
    }

    /// The epoch of a start this number of microseconds after 1970 began, later than that of a former start of
    /// the same node, if one is given: where the clock is behind the former start, up to 1.05 s after it. For a
    /// node that stores its epoch.
    ///
    /// It is not later where the former start was at a wrong time: the clock shows 2026 or later, and the former
    /// start is ahead of it by more than ten years. Openers with the right time keep such a start apart, and accept
    /// this one. Nor is it later after the last epoch of all, in the year 2112.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn at(since_1970: u64, former: Option<Self>) -> Result<Self, getrandom::Error> {
        let random = getrandom::u64()?;
        let now = Self::new(since_1970, random);
        let is_wrong = |former: Self| {
            let latest = since_1970.saturating_add(FAR_AHEAD);
            since_1970 >= CLOCK_IS_SET && former.0 >> 12 > latest
        };
        let later = former
            .filter(|it| *it >= now && !is_wrong(*it))
            .and_then(|it| it.next(random));
        Ok(later.unwrap_or(now))
    }

    /// A later epoch, by 32 random bits: two copies of a node's state must not give one epoch to two starts. `None`
    /// at the end of all epochs, in the year 2112.
    fn next(self, random: u64) -> Option<Self> {
        let least = (self.0 | 0xFFF).checked_add(1)?;
        least.checked_add(random & 0xFFFF_FFFF).map(Self)
    }
}

/// The microseconds since 1970, by the system's clock: for [`Opener::set_clock`].
#[must_use]
pub fn since_1970() -> u64 {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX)
}

/// The part of a datagram that is not encrypted, and that the tag covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: u8,
    key: u8,
    sender: NodeId,
    epoch: Epoch,
    counter: u64,
}

impl Head {
    /// Appends it to `bytes`.
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend([SEALED, self.kind, self.key]);
        put_varint(bytes, self.sender.0);
        bytes.extend(self.epoch.0.to_be_bytes());
        put_varint(bytes, self.counter);
    }

    /// Reads it, and returns the rest.
    fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[first, kind, key], rest) = bytes.split_first_chunk::<3>()?;
        let (sender, rest) = take_varint(rest)?;
        let (epoch, rest) = rest.split_first_chunk::<8>()?;
        let (counter, rest) = take_varint(rest)?;
        let head = Self {
            kind,
            key,
            sender: NodeId(sender),
            epoch: Epoch(u64::from_be_bytes(*epoch)),
            counter,
        };
        (first == SEALED).then_some((head, rest))
    }

    /// The counter, in the last bytes of the nonce.
    fn nonce(self) -> [u8; 12] {
        let mut nonce = [0; 12];
        let counter = self.counter.to_be_bytes();
        for (place, byte) in nonce.iter_mut().skip(4).zip(counter) {
            *place = byte;
        }
        nonce
    }
}

/// Writes a number in LEB128, as postcard does.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7F {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads a number, and returns the rest. `None` if the number is cut short or larger than 64 bits. A number
/// can be written in several ways; this does no harm, because the tag covers the bytes.
fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (nth, &byte) in bytes.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7F);
        let shift = 7 * nth as u32;
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some((number, bytes.get(nth + 1..)?));
        }
    }
    None
}

/// The cipher of one sender's epoch, under a key of its own.
fn cipher(key: &Key, group: &str, sender: NodeId, epoch: Epoch) -> Aes256Gcm {
    let derive = Hkdf::<Sha256>::new(Some(b"selvedge sealed datagrams 1"), key.bytes());
    let mut derived = Zeroizing::new([0; 32]);
    // Everything of fixed length first, so that no group can imitate another pair.
    let (sender, epoch) = (sender.0.to_be_bytes(), epoch.0.to_be_bytes());
    let info: [&[u8]; 3] = [&sender, &epoch, group.as_bytes()];
    // 32 bytes are within the limit of HKDF. If they were not, all ciphers would share a wrong key.
    let _derived = derive.expand_multi_info(&info, derived.as_mut()).is_ok();
    Aes256Gcm::new((&*derived).into())
}

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
