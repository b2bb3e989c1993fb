//! An election among candidates with values, which all nodes can observe.

use std::collections::BTreeMap;

use selvedge_core::Span;
use selvedge_groups::store::{Entry, Key};

pub use super::line::Token;
use super::line::{Place, is_in_line};
use crate::{Error, Map, PrefixNews, PrefixWatch, Session};

/// An election of this name in a map. The candidate that waits longest leads. Unlike the leader of the mesh
/// ([`Handle::leader`](crate::Handle::leader)) it is decided by the map's group, so a part of a mesh that was cut and
/// has no quorum of it elects none.
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::election::Election;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let election = Election::new(node.map("elections"), "heating", Span::secs(10));
/// let leads = election.campaign(b"192.0.2.7:80").await?;
/// while leads.is_leader() {
///     // One step as the leader, with leads.token().
/// }
/// # Ok(())
/// # }
/// ```
///
/// An entry of the map for each candidate, and a session for each.
#[derive(Clone, Debug)]
pub struct Election<'a> {
    map: Map<'a>,
    prefix: String,
    ttl: Span,
}

/// Leads until it is dropped, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Leadership(Place);

/// Follows who leads. See [`Election::observe`].
#[derive(Debug)]
pub struct Observer<'a> {
    map: Map<'a>,
    prefix: String,
    /// `None` where the candidates are to be listed again.
    watch: Option<PrefixWatch>,
    candidates: BTreeMap<Key, Entry>,
    /// The entry of the leader at the last report.
    reported: Option<Option<Key>>,
}

impl<'a> Election<'a> {
    /// The election of this name. A leader whose node fails leads for this time to live, from a second to
    /// a day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, ttl: Span) -> Self {
        let prefix = format!("election/{name}/");
        Self { map, prefix, ttl }
    }

    /// Becomes a candidate with this value, and waits until it leads. A dropped future is no candidate any more.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn campaign(&self, value: &[u8]) -> Result<Leadership, Error> {
        let place = Place::take(self.map, &self.prefix, value, self.ttl).await?;
        place.comes(self.map, &self.prefix, 1).await?;
        Ok(Leadership(place))
    }

    /// Observes who leads, on any node.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn observe(&self) -> Result<Observer<'a>, Error> {
        let mut observer = Observer {
            map: self.map,
            prefix: self.prefix.clone(),
            watch: None,
            candidates: BTreeMap::new(),
            reported: None,
        };
        observer.follow().await?;
        Ok(observer)
    }
}

impl Leadership {
    /// Its fencing token, which is greater than those of all former leaders.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.0.token
    }

    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.0.session
    }

    /// Returns true if it certainly leads now, see [`Session::is_alive`](crate::Session::is_alive).
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.session.is_alive()
    }

    /// Waits until another candidate may lead.
    pub async fn lapsed(&self) {
        self.0.session.lapsed().await;
    }

    /// Leads no longer, and returns when the next candidate may. A drop resigns, too.
    ///
    /// # Errors
    /// As [`Session::end`](crate::Session::end).
    pub async fn resign(self) -> Result<(), Error> {
        self.0.session.end().await
    }
}

impl Observer<'_> {
    /// Waits until another candidate leads, or none (`None`); the first call returns the present one. Leaders between
    /// two reports may be skipped. Its [`value`](Entry::value) is that of the campaign, and
    /// [`created`](Entry::created) the version in its token.
    ///
    /// # Errors
    /// As [`PrefixWatch::next`].
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let leader = self.candidates.iter().next();
            let key = leader.map(|it| it.0.clone());
            let entry = leader.map(|it| it.1.clone());
            if self.reported.as_ref() != Some(&key) {
                self.reported = Some(key);
                return Ok(entry);
            }
            self.follow().await?;
        }
    }

    async fn follow(&mut self) -> Result<(), Error> {
        let Some(watch) = &mut self.watch else {
            let all = self.map.list_all(&*self.prefix).await?;
            let watch = self.map.watch_prefix(&*self.prefix, all.version);
            self.watch = Some(watch.await?);
            let entries = all.entries.into_iter();
            let entries = entries.filter(|it| is_in_line(&self.prefix, &it.0));
            self.candidates = entries.collect();
            return Ok(());
        };
        let changes = match watch.next().await? {
            PrefixNews::Changed { changes, .. } => changes,
            PrefixNews::Compacted => {
                self.watch = None;
                return Ok(());
            }
        };
        for change in changes {
            match change.entry {
                Some(entry) if is_in_line(&self.prefix, &change.key) => {
                    self.candidates.insert(change.key, entry);
                }
                Some(_) | None => {
                    self.candidates.remove(&change.key);
                }
            }
        }
        Ok(())
    }
}
