//! An election among candidates with priorities, whose leader may hand over.

use std::collections::BTreeMap;

use selvedge_core::Span;
use selvedge_groups::store::{
    Entry, Expected, Key, Owner, SessionId, Stored, Transaction, appended,
};

pub use super::line::Token;
use super::line::{rank, ranked};
use super::outcome::{done, over};
use crate::{Error, Map, PrefixNews, Reject, Session, Watch};

/// An election of this name in a map. When there is no leader, the candidate of the smallest priority leads, the one
/// that waits longest among equal ones. A candidate that comes later waits, whatever its priority. Otherwise as an
/// [`Election`](super::election::Election).
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::priority_election::PriorityElection;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let election = PriorityElection::new(node.map("elections"), "heating", Span::secs(10));
/// // Nodes on mains power give 1, nodes on batteries 2.
/// let leads = election.campaign(1, b"192.0.2.7:80").await?;
/// // Before an update of this node:
/// if let Some(next) = election.candidates().await?.first() {
///     let still_leads = leads.hand_over(next).await?;
///     println!("{}", still_leads.is_none());
/// }
/// # Ok(())
/// # }
/// ```
///
/// One entry of the map is the leader's, which its session owns. Its version, that of the change that made it lead,
/// is the token: an older candidate may lead later, so the version of its candidacy would not rise. An entry for each
/// candidate that waits, a session for each, and one entry more that stays.
#[derive(Clone, Debug)]
pub struct PriorityElection<'a> {
    map: Map<'a>,
    prefix: Key,
    ttl: Span,
}

/// A candidate that waits for its turn. See [`PriorityElection::candidates`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    key: Key,
    entry: Entry,
    priority: u32,
}

/// Leads until it is dropped or hands over, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Leadership<'a> {
    election: PriorityElection<'a>,
    session: Session,
    token: Token,
}

impl<'a> PriorityElection<'a> {
    /// The election of this name. A leader whose node fails leads for this time to live, from a second to
    /// a day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, ttl: Span) -> Self {
        let prefix = format!("priority-election/{name}/");
        Self { map, prefix, ttl }
    }

    /// Becomes a candidate with this priority and value, and waits until it leads: in its turn, or because the leader
    /// hands over to it. A dropped future is no candidate any more.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn campaign(&self, priority: u32, value: &[u8]) -> Result<Leadership<'a>, Error> {
        let prefix = ranked(&self.prefix, priority);
        // Without a leader and candidates it leads at once.
        let all = self.map.list(&*self.prefix, None).await?;
        let mut is_free = all.is_last;
        let mut entered = Expected::Absent;
        for (key, entry) in &all.entries {
            if *key == self.entered() {
                entered = Expected::Version(entry.version);
            }
            is_free &= *key != self.place() && rank(&self.prefix, key).is_none();
        }
        if is_free {
            let claim = Transaction::new()
                .when(self.place(), Expected::Absent)
                .when(self.entered(), entered)
                .put_owned(self.place(), value, Owner::Begun);
            match self.map.session_with(self.ttl, claim).await {
                Ok(begun) => return Ok(self.leads(begun.version, begun.session)),
                Err(Error::Rejected(Reject::Mismatch { .. })) => {} // Another one was faster.
                Err(error) => return Err(error),
            }
        }
        let enter = Transaction::new()
            .append_owned(&*prefix, value, Owner::Begun)
            .put(self.entered(), &[]);
        let begun = self.map.session_with(self.ttl, enter).await?;
        let (session, since) = (begun.session, begun.version);
        let me = appended(&prefix, since);
        let mut watch = self.map.watch_prefix(&*self.prefix, 0).await?;
        let mut seen = BTreeMap::new();
        loop {
            let news = tokio::select! {
                news = watch.next() => news?,
                ended = session.ended() => {
                    ended?;
                    return Err(over(&session));
                }
            };
            let now = update(&mut seen, news);
            // A leader of the map's group that was followed by another one may not have this candidate yet.
            if now < since {
                continue;
            }
            let leader = seen.get(&self.place());
            if let Some(mine) = leader.filter(|it| it.session == Some(session.id())) {
                return Ok(self.leads(mine.version, session));
            }
            if !seen.contains_key(&me) {
                return Err(over(&session));
            }
            let first = seen.keys().find(|it| rank(&self.prefix, it).is_some());
            if leader.is_some() || first != Some(&me) {
                continue;
            }
            let stored = self.map.transact(self.claim(&seen, &me, value, &session));
            let stored = stored.await?;
            // Else there is a leader or another candidate meanwhile, which the watch reports.
            if !matches!(stored, Stored::Mismatch { .. }) {
                return Ok(self.leads(done(stored, &session)?, session));
            }
        }
    }

    /// The candidates that wait now, in the order in which they lead.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn candidates(&self) -> Result<Vec<Candidate>, Error> {
        let all = self.map.list_all(&*self.prefix).await?;
        let waiting = all.entries.into_iter().filter_map(|(key, entry)| {
            let priority = rank(&self.prefix, &key)?;
            Some(Candidate {
                key,
                entry,
                priority,
            })
        });
        Ok(waiting.collect())
    }

    /// Observes the leader, on any node: the entry's [`value`](Entry::value) is that of the campaign, and its
    /// [`version`](Entry::version) that in the token. Leaders between two reports may be skipped.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn observe(&self) -> Result<Watch, Error> {
        self.map.watch(self.place()).await
    }

    /// The first candidate takes the free place, if no one has entered since it looked, who may come before it.
    fn claim(
        &self,
        seen: &BTreeMap<Key, Entry>,
        me: &str,
        value: &[u8],
        session: &Session,
    ) -> Transaction {
        let entered = seen.get(&self.entered());
        let entered = entered.map_or(Expected::Absent, |it| Expected::Version(it.version));
        Transaction::new()
            .when(self.place(), Expected::Absent)
            .when(self.entered(), entered)
            .put_owned(self.place(), value, session.id())
            .remove(me)
    }

    fn leads(&self, version: u64, session: Session) -> Leadership<'a> {
        let map = self.map.group();
        Leadership {
            election: self.clone(),
            session,
            token: Token { map, version },
        }
    }

    /// The entry of the leader.
    fn place(&self) -> Key {
        format!("{}leader", self.prefix)
    }

    /// The entry that each new candidate changes.
    fn entered(&self) -> Key {
        format!("{}entered", self.prefix)
    }
}

impl Candidate {
    /// Its priority.
    #[must_use]
    pub const fn priority(&self) -> u32 {
        self.priority
    }

    /// Its session, which has the member that campaigns.
    #[must_use]
    pub const fn session(&self) -> Option<SessionId> {
        self.entry.session
    }

    /// The value of its campaign.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.entry.value
    }
}

impl Leadership<'_> {
    /// Its fencing token, which is greater than those of all former leaders.
    #[must_use]
    pub const fn token(&self) -> Token {
        self.token
    }

    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns true if it certainly leads now, see [`Session::is_alive`].
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.session.is_alive()
    }

    /// Waits until another candidate may lead.
    pub async fn lapsed(&self) {
        self.session.lapsed().await;
    }

    /// Hands over to this candidate, which leads from then on, before all others. Where it waits no longer, or in
    /// another election, nothing has changed, and the leadership is returned. A dropped future resigns, or has handed over.
    ///
    /// # Errors
    /// As [`Map::put`]: the candidate leads, or this one has resigned.
    pub async fn hand_over(self, to: &Candidate) -> Result<Option<Self>, Error> {
        let PriorityElection { map, prefix, .. } = &self.election;
        let next = to.entry.session;
        let Some(next) = next.filter(|_| rank(prefix, &to.key).is_some()) else {
            return Ok(Some(self));
        };
        let place = self.election.place();
        let change = Transaction::new()
            .when(&*place, Expected::Version(self.token.version))
            .when(&*to.key, Expected::Version(to.entry.version))
            .put_owned(place, to.value(), next)
            .remove(&*to.key);
        let stored = map.transact(change).await?;
        if let Stored::Mismatch { .. } | Stored::NoSession = stored {
            return Ok(Some(self));
        }
        done(stored, &self.session)?;
        Ok(None)
    }

    /// Leads no longer, and returns when the next candidate may. A drop resigns, too.
    ///
    /// # Errors
    /// As [`Session::end`].
    pub async fn resign(self) -> Result<(), Error> {
        self.session.end().await
    }
}

/// Makes a change of the entries that were seen, and returns the version up to which they are all.
fn update(seen: &mut BTreeMap<Key, Entry>, news: PrefixNews) -> u64 {
    let PrefixNews::Changed { changes, version } = news else {
        seen.clear();
        return 0;
    };
    for change in changes {
        match change.entry {
            Some(entry) => seen.insert(change.key, entry),
            None => seen.remove(&change.key),
        };
    }
    version
}
