//! A queue of values, from any nodes to any nodes.

use selvedge_groups::store::{Expected, Stored, Transaction};

use super::line::{first, is_in_line};
use super::outcome::why;
use crate::{Error, Map, PrefixNews};

/// A queue of this name in a map. Its items stay where no one takes them, and survive the nodes that pushed them.
///
/// ```no_run
/// use selvedge_udp::recipes::queue::Queue;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let jobs = Queue::new(node.map("jobs"), "print");
/// jobs.push(b"page 1").await?;
/// println!("{:?}", jobs.pop().await?);
/// # Ok(())
/// # }
/// ```
///
/// An entry of the map for each item.
#[derive(Clone, Debug)]
pub struct Queue<'a> {
    pub(super) map: Map<'a>,
    pub(super) prefix: String,
    /// Returns true if an entry of this prefix and this name is an item.
    pub(super) is_item: fn(&str, &str) -> bool,
}

impl<'a> Queue<'a> {
    /// The queue of this name.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str) -> Self {
        Self {
            map,
            prefix: format!("queue/{name}/"),
            is_item: is_in_line,
        }
    }

    /// Appends an item, and returns its number: later ones have greater numbers.
    ///
    /// # Errors
    /// [`Reject::MapFull`](crate::Reject::MapFull) when the map has no room; as [`Map::put`]: the item may have been appended.
    pub async fn push(&self, value: &[u8]) -> Result<u64, Error> {
        self.append(&self.prefix, value).await
    }

    pub(super) async fn append(&self, prefix: &str, value: &[u8]) -> Result<u64, Error> {
        let append = Transaction::new().append(prefix, value);
        let stored = self.map.transact(append).await?;
        let Stored::Done { version } = stored else {
            return Err(why(stored));
        };
        Ok(version)
    }

    /// Takes the oldest item; `None` if there is none.
    ///
    /// # Errors
    /// As [`Map::put`]: the item may have been taken, and is lost then.
    pub async fn try_pop(&self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let Some((key, item)) = first(self.map, &self.prefix, self.is_item).await? else {
                return Ok(None);
            };
            let take = Transaction::new()
                .when(&*key, Expected::Version(item.version))
                .remove(&*key);
            let stored = self.map.transact(take).await?;
            if let Stored::Done { .. } = stored {
                return Ok(Some(item.value.to_vec()));
            }
            // Else another node took it.
            if !matches!(stored, Stored::Mismatch { .. }) {
                return Err(why(stored));
            }
        }
    }

    /// Waits for an item, and takes the oldest. Among several nodes that wait, any one gets it. A dropped future may
    /// have taken an item, which is lost then.
    ///
    /// # Errors
    /// As [`try_pop`](Self::try_pop).
    pub async fn pop(&self) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(item) = self.try_pop().await? {
                return Ok(item);
            }
            self.ready().await?;
        }
    }

    /// Waits until there is an item, which another node may take first. A dropped future has taken none.
    ///
    /// # Errors
    /// As [`PrefixWatch::next`](crate::PrefixWatch::next).
    pub async fn ready(&self) -> Result<(), Error> {
        let mut news = self.map.watch_prefix(&*self.prefix, 0).await?;
        loop {
            let PrefixNews::Changed { changes, .. } = news.next().await? else {
                continue;
            };
            let mut added = changes.iter().filter(|it| it.entry.is_some());
            if added.any(|it| (self.is_item)(&self.prefix, &it.key)) {
                return Ok(());
            }
        }
    }
}
