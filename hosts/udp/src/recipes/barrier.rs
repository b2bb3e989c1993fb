//! A barrier for a number of nodes.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::store::{Expected, Stored, Transaction};

use super::line::{Place, is_in_line};
use super::outcome::{over, why};
use crate::{Error, Map, PrefixNews, Session};

/// A barrier of this name in a map, for one use: give each round another name.
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::barrier::Barrier;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let start = Barrier::new(node.map("rounds"), "7", 3, Span::secs(10));
/// let inside = start.enter().await?;
/// // Three nodes are here. All of them leave together.
/// inside.leave().await
/// # }
/// ```
///
/// An entry of the map for each that has arrived, and a session for each; one entry more that stays.
#[derive(Clone, Debug)]
pub struct Barrier<'a> {
    map: Map<'a>,
    prefix: String,
    number: usize,
    ttl: Span,
}

/// Is behind a barrier until it is dropped, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Inside<'a> {
    barrier: Barrier<'a>,
    place: Place,
}

impl<'a> Barrier<'a> {
    /// The barrier of this name for this number of arrivals, which all nodes give alike. One whose node fails counts
    /// for this time to live, from a second to a day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, number: usize, ttl: Span) -> Self {
        Self {
            map,
            prefix: format!("barrier/{name}/"),
            number,
            ttl,
        }
    }

    /// Arrives, and waits until the number has arrived. A dropped future has not arrived.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn enter(&self) -> Result<Inside<'a>, Error> {
        let place = Place::take(self.map, &self.prefix, &[], self.ttl).await?;
        let arrived = self.wait(place.token.version, |arrived, is_open| {
            is_open || arrived >= self.number
        });
        tokio::select! {
            arrived = arrived => arrived?,
            ended = place.session.ended() => {
                ended?;
                return Err(over(&place.session));
            }
        }
        // Who comes later, or sees that others have left already, passes by this.
        let opened = Transaction::new()
            .when(self.open(), Expected::Absent)
            .put(self.open(), &[]);
        let stored = self.map.transact(opened).await?;
        if !matches!(stored, Stored::Done { .. } | Stored::Mismatch { .. }) {
            return Err(why(stored));
        }
        let barrier = self.clone();
        Ok(Inside { barrier, place })
    }

    /// The entry of an open barrier.
    fn open(&self) -> String {
        format!("{}open", self.prefix)
    }

    /// Waits for a number of arrivals that are here, and an open barrier, at one version of the map from `since` on.
    async fn wait(&self, since: u64, is_so: impl Fn(usize, bool) -> bool) -> Result<(), Error> {
        let mut news = self.map.watch_prefix(&*self.prefix, 0).await?;
        let mut names = BTreeSet::new();
        loop {
            match news.next().await? {
                PrefixNews::Compacted => names.clear(),
                PrefixNews::Changed { changes, version } => {
                    for change in changes {
                        match change.entry {
                            Some(_) => names.insert(change.key),
                            None => names.remove(&change.key),
                        };
                    }
                    // A leader that was followed by another one may not have the own entry yet.
                    if version < since {
                        continue;
                    }
                    let arrived = names.iter().filter(|it| is_in_line(&self.prefix, it));
                    if is_so(arrived.count(), names.contains(&self.open())) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

impl Inside<'_> {
    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.place.session
    }

    /// Leaves, and waits until all have left.
    ///
    /// # Errors
    /// As [`Session::end`](crate::Session::end).
    pub async fn leave(self) -> Result<(), Error> {
        let since = self.place.token.version;
        self.place.session.end().await?;
        self.barrier.wait(since, |inside, _| inside == 0).await
    }
}
