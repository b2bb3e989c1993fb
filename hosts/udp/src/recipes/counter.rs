//! A number that any node adds to.

use selvedge_groups::store::{Expected, Stored};

use super::outcome::why;
use crate::{Error, Map};

/// A counter of this name in a map. It begins at zero.
///
/// ```no_run
/// use selvedge_udp::recipes::counter::Counter;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let visitors = Counter::new(node.map("counts"), "visitors");
/// println!("the {}th one", visitors.add(1).await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Counter<'a> {
    map: Map<'a>,
    key: String,
}

impl<'a> Counter<'a> {
    /// The counter of this name.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str) -> Self {
        let key = format!("counter/{name}");
        Self { map, key }
    }

    /// The present number.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn get(&self) -> Result<i64, Error> {
        Ok(self.read().await?.0)
    }

    /// Adds to it, without overflow, and returns the sum. Tries again for as long as another node comes between.
    ///
    /// # Errors
    /// [`Reject::MapFull`](crate::Reject::MapFull) when the map has no room; as [`Map::put`]: it may have been added.
    pub async fn add(&self, summand: i64) -> Result<i64, Error> {
        loop {
            let (number, expected) = self.read().await?;
            let sum = number.saturating_add(summand);
            let value = sum.to_be_bytes();
            let set = self.map.compare_and_set(&*self.key, expected, Some(&value));
            let stored = set.await?;
            if let Stored::Done { .. } = stored {
                return Ok(sum);
            }
            // Else another node came between.
            if !matches!(stored, Stored::Mismatch { .. }) {
                return Err(why(stored));
            }
        }
    }

    /// The number, and its entry's version.
    async fn read(&self) -> Result<(i64, Expected), Error> {
        let entry = self.map.get(&*self.key).await?;
        let Some(entry) = entry else {
            return Ok((0, Expected::Absent));
        };
        // Other bytes are no number of this recipe.
        let number = entry.value[..].try_into().map_or(0, i64::from_be_bytes);
        Ok((number, Expected::Version(entry.version)))
    }
}
