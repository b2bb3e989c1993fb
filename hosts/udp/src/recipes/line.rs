//! A line of entries that wait: the base of locks, elections and semaphores.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::GroupId;
use selvedge_groups::store::{Entry, Key, Owner, Transaction, appended};

use super::outcome::over;
use crate::{Error, Map, PrefixNews, Session};

/// The value of an entry that shares its place with others of this value.
pub(super) const READER: &[u8] = b"r";

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

/// A place in one or several lines: an entry in each, which its session owns. The entries before it are older.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) token: Token,
}

/// Returns true if this is the name of an entry that was appended to a prefix: longer names belong to longer prefixes.
pub(super) fn is_in_line(prefix: &str, key: &str) -> bool {
    let digits = key.strip_prefix(prefix).unwrap_or_default();
    key.len() == appended(prefix, 0).len() && digits.bytes().all(|it| it.is_ascii_hexdigit())
}

/// The prefix to which entries of a priority are appended: names sort by priority, then by age.
pub(super) fn ranked(prefix: &str, priority: u32) -> Key {
    format!("{prefix}{priority:08x}")
}

/// The priority in the name of an entry that was appended to such a prefix.
pub(super) fn rank(prefix: &str, key: &str) -> Option<u32> {
    let digits = key.strip_prefix(prefix)?.get(..8)?;
    let priority = u32::from_str_radix(digits, 16).ok()?;
    is_in_line(&ranked(prefix, priority), key).then_some(priority)
}

/// Returns true if this entry excludes shared holders. Unknown bytes exclude them, too.
pub(super) fn excludes(entry: &Entry) -> bool {
    entry.value[..] != *READER
}

/// The version of the change that appended this entry to a prefix.
pub(super) fn version_of(prefix: &str, key: &str) -> Option<u64> {
    let digits = key
        .strip_prefix(prefix)
        .filter(|_| is_in_line(prefix, key))?;
    u64::from_str_radix(digits, 16).ok()
}

impl Place {
    /// Takes the last place.
    pub(super) async fn take(
        map: Map<'_>,
        prefix: &str,
        value: &[u8],
        ttl: Span,
    ) -> Result<Self, Error> {
        Self::take_all(map, &[prefix.to_owned()].into(), value, ttl).await
    }

    /// Takes the last place of each of these lines, by one change.
    pub(super) async fn take_all(
        map: Map<'_>,
        prefixes: &BTreeSet<Key>,
        value: &[u8],
        ttl: Span,
    ) -> Result<Self, Error> {
        let mut append = Transaction::new();
        for prefix in prefixes {
            append = append.append_owned(&**prefix, value, Owner::Begun);
        }
        let begun = map.session_with(ttl, append).await?;
        let (map, version) = (map.group(), begun.version);
        let token = Token { map, version };
        let session = begun.session;
        Ok(Self { session, token })
    }

    /// The name of its entry in a line.
    pub(super) fn key(&self, prefix: &str) -> Key {
        appended(prefix, self.token.version)
    }

    /// Waits until fewer than this number are before it.
    pub(super) async fn comes(&self, map: Map<'_>, prefix: &str, room: usize) -> Result<(), Error> {
        self.comes_after(map, prefix, room, |_| true).await
    }

    /// Waits until fewer than this number of entries that count are before it. A watch from the first entry on:
    /// names sort by age, so entries before this one are removed and none is added.
    pub(super) async fn comes_after(
        &self,
        map: Map<'_>,
        prefix: &str,
        room: usize,
        counts: fn(&Entry) -> bool,
    ) -> Result<(), Error> {
        let key = self.key(prefix);
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
                    let changes = changes.into_iter().filter(|it| it.key <= key);
                    for change in changes.filter(|it| is_in_line(prefix, &it.key)) {
                        if change.key == key {
                            is_listed = change.entry.is_some();
                        } else if change.entry.as_ref().is_some_and(counts) {
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

/// The first entry of a prefix, by name, that is one of the line.
pub(super) async fn first(
    map: Map<'_>,
    prefix: &str,
    is_in_line: fn(&str, &str) -> bool,
) -> Result<Option<(Key, Entry)>, Error> {
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
