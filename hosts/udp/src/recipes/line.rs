//! A line of entries that wait: the base of locks, elections and semaphores.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::GroupId;
use selvedge_groups::store::{Entry, Key, Transaction, appended};

use super::outcome::{done, over};
use crate::{Error, Map, PrefixNews, Session};

/// The order of the holders of one prefix: a later one has a greater token, also after the map has
/// [begun anew](crate::Handle::begin_anew). Send it with each request to the protected resource, which refuses a token
/// that is smaller than one it has seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The map's group: tokens of different maps have no order.
    pub map: GroupId,
    /// The version of the map that made the entry of the holder.
    pub version: u64,
}

/// A place in a line: an entry that its session owns. The entries before it are older.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) key: Key,
    pub(super) token: Token,
}

/// Returns true if this is the name of an entry that was appended to a prefix: longer names belong to longer prefixes.
pub(super) fn is_in_line(prefix: &str, key: &str) -> bool {
    let digits = key.strip_prefix(prefix).unwrap_or_default();
    key.len() == appended(prefix, 0).len() && digits.bytes().all(|it| it.is_ascii_hexdigit())
}

impl Place {
    /// Takes the last place.
    pub(super) async fn take(
        map: Map<'_>,
        prefix: &str,
        value: &[u8],
        ttl: Span,
    ) -> Result<Self, Error> {
        let session = map.session(ttl).await?;
        let append = Transaction::new().append_owned(prefix, value, session.id());
        let version = done(map.transact(append).await?, &session)?;
        Ok(Self {
            key: appended(prefix, version),
            token: Token {
                map: map.group(),
                version,
            },
            session,
        })
    }

    /// Waits until fewer than this number are before it. A watch from the first entry on: names sort by
    /// age, so entries before this one are removed and none is added.
    pub(super) async fn comes(&self, map: Map<'_>, prefix: &str, room: usize) -> Result<(), Error> {
        let mut line = map.watch_prefix(prefix, 0).await?;
        let mut before = BTreeSet::new();
        let mut is_listed = false;
        loop {
            let news = tokio::select! {
                news = line.next() => news?,
                ended = self.session.ended() => {
                    ended?;
                    return Err(over(&self.session));
                }
            };
            match news {
                PrefixNews::Changed { changes, version } => {
                    let changes = changes.into_iter().filter(|it| it.key <= self.key);
                    for change in changes.filter(|it| is_in_line(prefix, &it.key)) {
                        let is_here = change.entry.is_some();
                        if change.key == self.key {
                            is_listed = is_here;
                        } else if is_here {
                            before.insert(change.key);
                        } else {
                            before.remove(&change.key);
                        }
                    }
                    // A leader that was followed by another one may not have this place yet.
                    if version < self.token.version {
                        continue;
                    }
                    if !is_listed {
                        return Err(over(&self.session));
                    }
                    if before.len() < room {
                        return Ok(());
                    }
                }
                // All that are here follow.
                PrefixNews::Compacted => {
                    before.clear();
                    is_listed = false;
                }
            }
        }
    }
}

/// The oldest entry of a line.
pub(super) async fn first(map: Map<'_>, prefix: &str) -> Result<Option<(Key, Entry)>, Error> {
    let mut after: Option<Key> = None;
    loop {
        let page = map.list(prefix, after.as_deref()).await?;
        let last = page.entries.last().map(|it| it.0.clone());
        let mut entries = page.entries.into_iter();
        if let Some(found) = entries.find(|it| is_in_line(prefix, &it.0)) {
            return Ok(Some(found));
        }
        if page.is_last || last.is_none() {
            return Ok(None);
        }
        after = last;
    }
}
