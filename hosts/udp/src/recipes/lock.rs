//! A lock that nodes take in turn.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::store::{Entry, Key, SessionId};

pub use super::line::Token;
use super::line::{Place, READER, excludes, first, is_in_line, version_of};
use crate::{Error, Map, Session};

/// A lock of this name in a map. Unlike [`Handle::lock`](crate::Handle::lock), which all nodes of the mesh grant,
/// it is decided by the map's group, and a holder that fails is passed over after its time to live.
///
/// ```no_run
/// use std::time::Duration;
///
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::lock::Lock;
/// use tokio::time::timeout;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let lock = Lock::new(node.map("locks"), "printer", Span::secs(10));
/// // A dropped future gives its place up.
/// if let Ok(guard) = timeout(Duration::from_secs(60), lock.acquire()).await {
///     let guard = guard?;
///     tokio::select! {
///         () = print(guard.token()) => guard.release().await?,
///         () = guard.lapsed() => println!("another node may have the lock"),
///     }
/// }
/// # Ok(())
/// # }
/// # async fn print(_: selvedge_udp::recipes::lock::Token) {}
/// ```
///
/// An entry of the map for each holder and each that waits, and a session for each; of a lock of several names an
/// entry for each name.
#[derive(Clone, Debug)]
pub struct Lock<'a> {
    map: Map<'a>,
    /// One for each name.
    prefixes: BTreeSet<Key>,
    ttl: Span,
}

/// A holder of a lock, or one that waits for it. See [`Lock::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LockPlace {
    /// Its session, which has the member that asked.
    pub session: SessionId,
    /// Its fencing token.
    pub token: Token,
    /// True if it shares the lock with others that share it.
    pub is_shared: bool,
    /// True if no one before it excludes it: it has this name. One that asks for several names may wait for
    /// another one.
    pub has_it: bool,
}

/// Holds a lock until it is dropped, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Guard(pub(super) Place);

impl<'a> Lock<'a> {
    /// The lock of this name. A holder whose node fails has it for this time to live, from a second to a
    /// day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, ttl: Span) -> Self {
        Self::all(map, &[name], ttl)
    }

    /// The lock of several names, whose holder has all of them, or none. It excludes locks of each of these names, and
    /// is first in the line of each when it is held.
    ///
    /// The names need no order, and those who ask for them in this way never wait for each other in a circle: one
    /// change takes the places in all lines, so who is before another one in one line is before it in each line that
    /// both wait in, and the oldest waits for none. A holder that asks for a further name by another lock waits
    /// outside of that order, and may wait for ever: ask for all names at once. The names of one lock have to fit into
    /// a frame together; no name excludes no one.
    ///
    /// ```no_run
    /// use selvedge_udp::Span;
    /// use selvedge_udp::recipes::lock::Lock;
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let both = Lock::all(node.map("doors"), &["inner", "outer"], Span::secs(10));
    /// let guard = both.acquire().await?;
    /// // No other node moves one of the doors now.
    /// # guard.release().await
    /// # }
    /// ```
    #[must_use]
    pub fn all(map: Map<'a>, names: &[&str], ttl: Span) -> Self {
        let prefixes = names.iter().map(|name| format!("lock/{name}/"));
        let prefixes = prefixes.collect();
        Self { map, prefixes, ttl }
    }

    /// Waits for its turn: the one that asked first gets it first. A dropped future waits no longer.
    ///
    /// # Errors
    /// When the session ended in the meantime ([`Reject::SessionOver`](crate::Reject::SessionOver)), or the map
    /// has no room; as [`Map::session`].
    pub async fn acquire(&self) -> Result<Guard, Error> {
        let place = self.take(&[]).await?;
        // Who is the first of a line stays so.
        for prefix in &self.prefixes {
            place.comes(self.map, prefix, 1).await?;
        }
        Ok(Guard(place))
    }

    /// Takes the lock if no one holds it or waits for it; else returns `None`.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Option<Guard>, Error> {
        if !self.is_free(None).await? {
            return Ok(None);
        }
        let place = self.take(&[]).await?;
        let is_first = self.is_free(Some(&place)).await?;
        Ok(is_first.then_some(Guard(place)))
    }

    /// Waits until all that asked before to have the lock alone have left, and shares it with others that share it. One
    /// that waits to have it alone is passed by no one that shares. A resource refuses a holder that shares with a
    /// smaller token than any of those that had the lock alone, as for [`RwLock`](super::rw_lock::RwLock).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn acquire_shared(&self) -> Result<Guard, Error> {
        let place = self.take(READER).await?;
        for prefix in &self.prefixes {
            let comes = place.comes_after(self.map, prefix, 1, excludes);
            comes.await?;
        }
        Ok(Guard(place))
    }

    /// Shares the lock if no one has it alone or waits to; else returns `None`.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub async fn try_acquire_shared(&self) -> Result<Option<Guard>, Error> {
        if self.is_excluded(u64::MAX).await? {
            return Ok(None);
        }
        let place = self.take(READER).await?;
        let is_excluded = self.is_excluded(place.token.version).await?;
        Ok((!is_excluded).then_some(Guard(place)))
    }

    /// The holders and those that wait, in the order of their requests; of a lock of several names those of each, name
    /// after name.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn places(&self) -> Result<Vec<LockPlace>, Error> {
        let map = self.map.group();
        let mut places = Vec::new();
        for prefix in &self.prefixes {
            let (mut is_first, mut is_free) = (true, true);
            for (version, entry) in self.line(prefix).await? {
                let is_shared = !excludes(&entry);
                let has_it = if is_shared { is_free } else { is_first };
                (is_first, is_free) = (false, is_free && is_shared);
                let Some(session) = entry.session else {
                    continue;
                };
                let token = Token { map, version };
                places.push(LockPlace {
                    session,
                    token,
                    is_shared,
                    has_it,
                });
            }
        }
        Ok(places)
    }

    async fn take(&self, value: &[u8]) -> Result<Place, Error> {
        Place::take_all(self.map, &self.prefixes, value, self.ttl).await
    }

    /// The entries of a line with their versions, the oldest first.
    async fn line(&self, prefix: &str) -> Result<Vec<(u64, Entry)>, Error> {
        let all = self.map.list_all(prefix).await?;
        let entries = all.entries.into_iter();
        let entries = entries.filter_map(|(key, entry)| Some((version_of(prefix, &key)?, entry)));
        Ok(entries.collect())
    }

    /// Returns true if there is an entry before this version that excludes one that shares.
    async fn is_excluded(&self, version: u64) -> Result<bool, Error> {
        for prefix in &self.prefixes {
            let line = self.line(prefix).await?;
            if line.iter().any(|it| it.0 < version && excludes(&it.1)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if there is no one in each line, or this one is the first.
    async fn is_free(&self, place: Option<&Place>) -> Result<bool, Error> {
        for prefix in &self.prefixes {
            let first = first(self.map, prefix, is_in_line).await?;
            if first.map(|it| it.0) != place.map(|it| it.key(prefix)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Guard {
    /// Its fencing token, which is greater than those of all former holders: one token, of each name.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.0.token
    }

    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.0.session
    }

    /// Returns true if it certainly has the lock now, see [`Session::is_alive`](crate::Session::is_alive).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.session.is_alive()
    }

    /// Waits until another node may have the lock.
    pub async fn lapsed(&self) {
        self.0.session.lapsed().await;
    }

    /// Releases the lock, and returns when the next one may have it. A drop releases it, too.
    ///
    /// # Errors
    /// As [`Session::end`](crate::Session::end).
    pub async fn release(self) -> Result<(), Error> {
        self.0.session.end().await
    }
}
