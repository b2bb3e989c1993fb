//! A lock that nodes take in turn.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::store::Key;

pub use super::line::Token;
use super::line::{Place, first, is_in_line};
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
        let place = self.take().await?;
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
        let place = self.take().await?;
        let is_first = self.is_free(Some(&place)).await?;
        Ok(is_first.then_some(Guard(place)))
    }

    async fn take(&self) -> Result<Place, Error> {
        Place::take_all(self.map, &self.prefixes, &[], self.ttl).await
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
    #[must_use]
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
