//! Reading sealed datagrams.

use std::collections::BTreeMap;

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::AeadInOut;
use selvedge_core::{NodeId, Span, Time};
use thiserror::Error;

use super::rate::Bucket;
use super::window::{Place, Window};
use super::{Epoch, Head, Keyring, RateLimit, TAG_LEN, cipher};

/// The reason why a datagram was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unopened {
    /// It is not sealed, is of another protocol, or is cut short.
    #[error("not a sealed datagram of this protocol: check that all nodes have a key")]
    NotSealed,
    /// No key of this opener opens it: it was sealed with another key or group, or is damaged.
    #[error("no key opens the datagram: check that all nodes have the same key file and group")]
    WrongKey,
    /// Its sender has restarted since: two nodes have one id, a clock ran backwards, or the datagram is a
    /// replay.
    #[error("node {0} has restarted since: give every node its own id, and set its clock")]
    OldEpoch(NodeId),
    /// It was opened before.
    #[error("replay: a datagram of node {0} was opened before")]
    Replayed(NodeId),
    /// It comes so late that the opener cannot know whether it was opened before.
    #[error("a datagram of node {0} is too old: more than 1,000 later ones arrived first")]
    TooLate(NodeId),
    /// Its sender exceeds the rate limit.
    #[error("node {0} sends more than the limit allows")]
    TooMany(NodeId),
}

/// The opener of the datagrams that arrive at one socket.
pub struct Opener {
    keyring: Keyring,
    group: String,
    limit: usize,
    rate: Option<RateLimit>,
    sessions: BTreeMap<(NodeId, Start), Session>,
    clock: Option<Clock>,
    forgotten: u64,
}

/// The kind of a start of a sender. The opener's clock decides it when the start is first received, so that a
/// start at a wrong time does not mute a start at the right time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Start {
    Present,
    /// The epoch contradicts our clock: it is ahead of it, or an earlier start was received after it; each by
    /// more than [`Opener::TOLERANCE`]. A clock is or was wrong, or the datagram is a replay from a time when
    /// a clock was wrong.
    Apart,
}

/// The microseconds since 1970 at some time.
#[derive(Clone, Copy, Debug)]
struct Clock {
    at: Time,
    since_1970: u64,
}

impl Clock {
    /// The microseconds since 1970 at `time`, which may be before the clock was set.
    const fn at(self, time: Time) -> u64 {
        let later = self.since_1970.saturating_add(time.since(self.at).0);
        later.saturating_sub(self.at.since(time).0)
    }
}

/// The knowledge of a sender that holds a key.
struct Session {
    epoch: Epoch,
    /// The key that opened the latest datagram, by its mark; `None` after a rotation.
    cipher: Option<(u8, Aes256Gcm)>,
    window: Window,
    /// The time at which this epoch was first received, and true if its start was at most
    /// [`Opener::TOLERANCE`] ago then. A recording does not count as such a start for long.
    since: Time,
    is_recent: bool,
    received: Time,
    bucket: Option<Bucket>,
}

impl core::fmt::Debug for Opener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Opener")
            .field("keyring", &self.keyring)
            .field("group", &self.group)
            .field("senders", &self.sessions.len())
            .finish_non_exhaustive()
    }
}

impl Opener {
    /// The lead over our clock with which an epoch still counts as present: clocks differ by a little.
    pub const TOLERANCE: Span = Span::secs(60);

    /// An opener for this group, with all keys of the ring. It remembers up to `limit` senders, at
    /// least 1, at some 1,300 bytes each.
    #[must_use]
    pub const fn new(keyring: Keyring, group: String, limit: usize) -> Self {
        Self {
            keyring,
            group,
            limit,
            rate: None,
            sessions: BTreeMap::new(),
            clock: None,
            forgotten: 0,
        }
    }

    /// Sets the number of microseconds since 1970 at `now`. Call it again whenever the system's clock may
    /// have been set. Without a clock the latest epoch of a sender counts, at any time.
    pub const fn set_clock(&mut self, now: Time, since_1970: u64) {
        self.clock = Some(Clock {
            at: now,
            since_1970,
        });
    }

    /// Limits each sender from now on, or removes the limit.
    pub fn set_rate(&mut self, rate: Option<RateLimit>) {
        self.rate = rate;
        for session in self.sessions.values_mut() {
            session.bucket = None;
        }
    }

    /// Opens with the keys of another ring from now on. Senders and their windows stay.
    pub fn rotate(&mut self, keyring: Keyring) {
        self.keyring = keyring;
        for session in self.sessions.values_mut() {
            session.cipher = None;
        }
    }

    /// The latest present start of a sender, as far as it is remembered; else the start that contradicts our
    /// clock.
    #[must_use]
    pub fn epoch(&self, sender: NodeId) -> Option<Epoch> {
        let starts = [Start::Present, Start::Apart];
        let mut sessions = starts
            .iter()
            .map(|&start| self.sessions.get(&(sender, start)));
        sessions.find_map(|it| it.map(|session| session.epoch))
    }

    /// The number of remembered senders. A sender counts twice if datagrams of a present epoch and of an
    /// epoch that contradicts our clock were received.
    #[must_use]
    pub fn senders(&self) -> usize {
        self.sessions.len()
    }

    /// The number of senders that were forgotten to make room for others.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Replaces the content of `frame` by the frame in `datagram`, and returns its sender. `now` is for rate
    /// limits and for choosing the sender to forget.
    ///
    /// # Errors
    /// When it is not opened; `frame` is empty then. Nothing else changed, except that a datagram
    /// above the rate counts as seen.
    pub fn open(
        &mut self,
        kind: u8,
        datagram: &[u8],
        now: Time,
        frame: &mut Vec<u8>,
    ) -> Result<NodeId, Unopened> {
        frame.clear();
        let (head, sealed) = Head::read(datagram)
            .filter(|(head, _)| head.kind == kind)
            .ok_or(Unopened::NotSealed)?;
        let (clear, _) = datagram.split_at(datagram.len() - sealed.len());
        let (secret, tag) = sealed
            .split_last_chunk::<TAG_LEN>()
            .ok_or(Unopened::NotSealed)?;
        let sender = head.sender;
        let start = self.start_of(head, now)?;
        let is_recent = self.is_recent(head.epoch, now);
        let mut session = self.sessions.get_mut(&(sender, start));
        // The cheap checks come first, and change nothing.
        if let Some(session) = &session {
            if head.epoch < session.epoch {
                return Err(Unopened::OldEpoch(sender));
            }
            if head.epoch == session.epoch {
                match session.window.place(head.counter) {
                    Place::New => {}
                    Place::Replayed => return Err(Unopened::Replayed(sender)),
                    Place::TooOld => return Err(Unopened::TooLate(sender)),
                }
            }
        }
        let mut verify = |cipher: &Aes256Gcm| {
            frame.clear();
            frame.extend(secret);
            let nonce = head.nonce().into();
            let opened = cipher.decrypt_inout_detached(
                &nonce,
                clear,
                frame.as_mut_slice().into(),
                tag.into(),
            );
            opened.is_ok()
        };
        let known = session
            .as_deref()
            .filter(|session| session.epoch == head.epoch)
            .and_then(|session| session.cipher.as_ref())
            .is_some_and(|(mark, cipher)| *mark == head.key && verify(cipher));
        let fresh = if known {
            None
        } else {
            let ciphers = self
                .keyring
                .marked(head.key)
                .map(|key| cipher(key, &self.group, sender, head.epoch));
            let mut opening = ciphers.filter(|cipher| verify(cipher));
            let found = opening.next();
            drop(opening);
            if found.is_none() {
                frame.clear();
                return Err(Unopened::WrongKey);
            }
            found
        };
        // From here on it is proved that the sender holds a key.
        if let Some(cipher) = fresh {
            let former = session.as_deref();
            let same_epoch = former.filter(|former| former.epoch == head.epoch);
            let renewed = Session {
                epoch: head.epoch,
                cipher: Some((head.key, cipher)),
                window: same_epoch.map_or_else(Window::new, |former| former.window.clone()),
                since: same_epoch.map_or(now, |former| former.since),
                is_recent: same_epoch.map_or(is_recent, |former| former.is_recent),
                received: now,
                bucket: former.and_then(|former| former.bucket),
            };
            if session.is_none() {
                self.make_room();
            }
            self.sessions.insert((sender, start), renewed);
            session = self.sessions.get_mut(&(sender, start));
        }
        if let Some(session) = session {
            session.received = now;
            session.window.note(head.counter);
            if let Some(limit) = self.rate {
                let bucket = session.bucket.get_or_insert(Bucket::full(limit, now));
                if !bucket.take(limit, now) {
                    frame.clear();
                    return Err(Unopened::TooMany(sender));
                }
            }
        }
        Ok(sender)
    }

    /// The kind of the start that a datagram belongs to. A start that was kept apart stays apart when our
    /// clock has reached it. It ends when the sender has restarted since, at a right time. Until then both
    /// are received: an attacker without a key cannot choose which of two contradicting starts is mute.
    fn start_of(&self, head: Head, now: Time) -> Result<Start, Unopened> {
        let present = self.sessions.get(&(head.sender, Start::Present));
        let apart = self.sessions.get(&(head.sender, Start::Apart));
        if let Some(apart) = apart.filter(|it| it.epoch == head.epoch) {
            let is_over = present.is_some_and(|it| it.is_recent && it.since > apart.since);
            return if is_over {
                Err(Unopened::OldEpoch(head.sender))
            } else {
                Ok(Start::Apart)
            };
        }
        let contradicts = self.is_ahead(head.epoch, now)
            || present
                .is_some_and(|it| head.epoch > it.epoch && self.is_before(head.epoch, it.received));
        Ok(if contradicts {
            Start::Apart
        } else {
            Start::Present
        })
    }

    fn is_ahead(&self, epoch: Epoch, now: Time) -> bool {
        self.clock.is_some_and(|clock| {
            let latest = clock.at(now).saturating_add(Self::TOLERANCE.0);
            epoch > Epoch::new(latest, u64::MAX)
        })
    }

    /// Returns true if a start was more than [`Self::TOLERANCE`] before `time`.
    fn is_before(&self, epoch: Epoch, time: Time) -> bool {
        self.clock.is_some_and(|clock| {
            let earliest = clock.at(time).saturating_sub(Self::TOLERANCE.0);
            epoch < Epoch::new(earliest, 0)
        })
    }

    /// Returns true if a start was at most [`Self::TOLERANCE`] ago.
    fn is_recent(&self, epoch: Epoch, now: Time) -> bool {
        self.clock.is_some() && !self.is_ahead(epoch, now) && !self.is_before(epoch, now)
    }

    /// Forgets the sender with the oldest latest datagram, if there are too many. O(senders), when a new
    /// sender has proved itself.
    fn make_room(&mut self) {
        if self.sessions.len() < self.limit {
            return;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, it)| it.received);
        if let Some(sender) = oldest.map(|(&sender, _)| sender) {
            self.sessions.remove(&sender);
            self.forgotten += 1;
        }
    }
}
