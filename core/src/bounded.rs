//! Collections with a limit, for data that comes from peers.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use thiserror::Error;

/// The error of a collection that is at its limit: the new entry was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "the limit of {limit} entries is reached: raise it in the config, or remove an entry first"
)]
pub struct Full {
    /// The limit, in entries.
    pub limit: usize,
}

/// A sorted map with a limit. Look-up takes O(log n); insertion moves the entries behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedMap<K, V> {
    entries: Vec<(K, V)>,
    limit: usize,
}

impl<K: Ord, V> BoundedMap<K, V> {
    /// An empty map of at most `limit` entries.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            entries: Vec::new(),
            limit,
        }
    }

    /// Inserts `value` at `key` and returns the former value.
    ///
    /// # Errors
    /// [`Full`] when `key` is new and the limit is reached; nothing changed.
    pub fn insert(&mut self, key: K, value: V) -> Result<Option<V>, Full> {
        match self.position(&key) {
            Ok(at) => Ok(self
                .entries
                .get_mut(at)
                .map(|(_, old)| core::mem::replace(old, value))),
            Err(_) if self.entries.len() >= self.limit => Err(Full { limit: self.limit }),
            Err(at) => {
                self.entries.insert(at, (key, value));
                Ok(None)
            }
        }
    }

    /// Removes the entry at `key` and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.position(key).ok()?;
        Some(self.entries.remove(at).1)
    }

    /// Removes the entries for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, &mut V) -> bool) {
        self.entries.retain_mut(|(key, value)| keep(key, value));
    }

    /// The value at `key`.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        let at = self.position(key).ok()?;
        self.entries.get(at).map(|(_, value)| value)
    }

    /// The value at `key`, mutable.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.position(key).ok()?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// Returns true if the map has an entry at `key`.
    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.position(key).is_ok()
    }

    /// All entries by key.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The entry at this place of [`iter`](Self::iter), from 0. O(1).
    #[must_use]
    pub fn nth(&self, place: usize) -> Option<(&K, &V)> {
        self.entries.get(place).map(|(key, value)| (key, value))
    }

    /// The number of entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The largest number of entries.
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    fn position(&self, key: &K) -> Result<usize, usize> {
        // With one comparison in the code; `binary_search` has two.
        let at = self.entries.partition_point(|(other, _)| other < key);
        match self.entries.get(at) {
            Some((other, _)) if other == key => Ok(at),
            _ => Err(at),
        }
    }
}

/// A first-in, first-out queue with a limit. Every operation takes O(1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BoundedQueue<T> {
    items: VecDeque<T>,
    limit: usize,
}

impl<T> BoundedQueue<T> {
    /// An empty queue of at most `limit` items.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            limit,
        }
    }

    /// Appends `item`.
    ///
    /// # Errors
    /// [`Full`] when the limit is reached; nothing changed.
    pub fn push(&mut self, item: T) -> Result<(), Full> {
        if self.items.len() >= self.limit {
            return Err(Full { limit: self.limit });
        }
        self.items.push_back(item);
        Ok(())
    }

    /// Appends `item`, and drops the oldest item when the queue is full. Returns the dropped item:
    /// the oldest one, or `item` itself when the limit is 0.
    pub fn push_over(&mut self, item: T) -> Option<T> {
        if self.limit == 0 {
            return Some(item);
        }
        let oldest = if self.items.len() >= self.limit {
            self.items.pop_front()
        } else {
            None
        };
        self.items.push_back(item);
        oldest
    }

    /// Removes the oldest item and returns it.
    pub fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// Removes the items for which `keep` returns false.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }

    /// The items, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.items.iter()
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns true if the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_map_refuses_new_keys_and_still_replaces() {
        let mut map = BoundedMap::new(2);
        assert_eq!(map.insert(2, 'b'), Ok(None));
        assert_eq!(map.insert(1, 'a'), Ok(None));
        assert_eq!(map.insert(3, 'c'), Err(Full { limit: 2 }));
        assert_eq!(map.insert(2, 'B'), Ok(Some('b')));
        assert_eq!(map.remove(&1), Some('a'));
        assert_eq!(map.insert(3, 'c'), Ok(None));
        assert!(map.iter().eq([(&2, &'B'), (&3, &'c')]));
    }

    proptest! {
        #[test]
        fn a_map_is_a_sorted_map_that_refuses_what_is_too_much(
            limit in 0..6_usize,
            operations in proptest::collection::vec((0..4_u8, 0..9_u8, any::<u8>()), 0..60),
        ) {
            let (mut map, mut model) = (BoundedMap::new(limit), BTreeMap::new());
            for (operation, key, value) in operations {
                match operation {
                    0 | 1 if model.len() < limit || model.contains_key(&key) => {
                        prop_assert_eq!(map.insert(key, value), Ok(model.insert(key, value)));
                    }
                    0 | 1 => prop_assert_eq!(map.insert(key, value), Err(Full { limit })),
                    2 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => {
                        map.retain(|_, kept| *kept > value);
                        model.retain(|_, kept| *kept > value);
                    }
                }
                prop_assert!(map.iter().eq(&model));
                prop_assert_eq!(map.nth(key.into()), model.iter().nth(key.into()));
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.contains(&key), model.contains_key(&key));
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
            }
        }
    }

    #[test]
    fn a_full_queue_refuses_or_gives_up_the_oldest() {
        let mut queue = BoundedQueue::new(2);
        assert_eq!((queue.push(1), queue.push(2)), (Ok(()), Ok(())));
        assert_eq!(queue.push(3), Err(Full { limit: 2 }));
        assert_eq!(queue.push_over(3), Some(1));
        assert_eq!(
            (queue.pop(), queue.pop(), queue.pop()),
            (Some(2), Some(3), None)
        );
        assert_eq!(BoundedQueue::new(0).push_over(4), Some(4));
    }
}
