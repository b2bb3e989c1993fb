//! The slots of listed nodes, in order of hashed id.

use alloc::vec::Vec;

use crate::message::Key;

/// Slots in order of the keys that belong to them: some 9 bytes each.
///
/// Hashed ids are spread evenly, so a table of the places where keys with the same first bits begin
/// leaves about [`SHARE`] of them to search, for any number of members. A peer that chooses ids
/// against this node makes it a binary search. Keys with equal first halves are distinguished by
/// the slots' full keys, which every call gets through `key_of`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    places: Vec<Place>,
    /// The place where the keys begin that have this number as their first [`bits`](Self::bits).
    starts: Vec<u32>,
    bits: u32,
}

/// The largest number of places with the same first bits if the keys are spread evenly: as many as
/// a cache line holds.
const SHARE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The first half of the key.
    prefix: u32,
    slot: u32,
}

const fn prefix(key: Key) -> u32 {
    (key.0 >> 32) as u32
}

impl Index {
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    /// The slot of a key. O(log N).
    pub(crate) fn find(&self, key: Key, key_of: impl Fn(usize) -> Key) -> Option<usize> {
        let slot = self.nth(self.place(key, &key_of))?;
        (key_of(slot) == key).then_some(slot)
    }

    /// Inserts a key that is not in the index. Moves 8 bytes for each member behind it.
    pub(crate) fn insert(&mut self, key: Key, slot: usize, key_of: impl Fn(usize) -> Key) {
        let at = self.place(key, &key_of);
        let prefix = prefix(key);
        let slot = slot as u32;
        self.places.insert(at, Place { prefix, slot });
        if self.places.len() > SHARE << self.bits {
            self.bits += 1;
            self.find_starts();
        } else {
            for start in self.starts_behind(prefix) {
                *start += 1;
            }
        }
    }

    /// Removes a key, if it is in the index. Moves 8 bytes for each member behind it.
    pub(crate) fn remove(&mut self, key: Key, key_of: impl Fn(usize) -> Key) {
        let at = self.place(key, &key_of);
        if self.nth(at).is_some_and(|slot| key_of(slot) == key) {
            self.places.remove(at);
            for start in self.starts_behind(prefix(key)) {
                *start -= 1;
            }
        }
    }

    /// All slots with keys at or after `first`, in order.
    pub(crate) fn starting_at(
        &self,
        first: Key,
        key_of: impl Fn(usize) -> Key,
    ) -> impl Iterator<Item = usize> + '_ {
        let at = self.place(first, &key_of);
        self.places.iter().skip(at).map(|place| place.slot as usize)
    }

    /// All slots in order of their keys.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.places.iter().map(|place| place.slot as usize)
    }

    pub(crate) fn nth(&self, nth: usize) -> Option<usize> {
        self.places.get(nth).map(|place| place.slot as usize)
    }

    /// The number of keys before this one.
    fn place(&self, key: Key, key_of: &impl Fn(usize) -> Key) -> usize {
        let wanted = prefix(key);
        let start = |number: usize| self.starts.get(number).map(|&start| start as usize);
        let number = self.number(wanted);
        let low = start(number).unwrap_or_default();
        let high = start(number + 1).unwrap_or(self.places.len());
        let among = self.places.get(low..high).unwrap_or_default();
        low + among.partition_point(|place| {
            place.prefix < wanted || (place.prefix == wanted && key_of(place.slot as usize) < key)
        })
    }

    /// The first bits of a key, as a number.
    const fn number(&self, prefix: u32) -> usize {
        (prefix as u64 >> (u32::BITS - self.bits)) as usize
    }

    /// The places where keys begin that have greater first bits than this one.
    fn starts_behind(&mut self, prefix: u32) -> impl Iterator<Item = &mut u32> {
        let number = self.number(prefix);
        self.starts.iter_mut().skip(number + 1)
    }

    fn find_starts(&mut self) {
        let mut starts = Vec::with_capacity(1 << self.bits);
        for (at, place) in self.places.iter().enumerate() {
            let number = self.number(place.prefix);
            if starts.len() <= number {
                starts.resize(number + 1, at as u32);
            }
        }
        starts.resize(1 << self.bits, self.places.len() as u32);
        self.starts = starts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Keys with few first and second halves: evenly spread ones, and chosen ones.
        #[test]
        fn behaves_like_a_sorted_map(
            steps in proptest::collection::vec((0_u8..3, 0_u64..40, 0_u64..3, any::<bool>()), 0..400),
        ) {
            let mut index = Index::default();
            let mut map = BTreeMap::new();
            let mut keys = Vec::new();
            for (what, first, second, spread) in steps {
                let insert = what > 0;
                let first = if spread { first.wrapping_mul(0x0666_6666) } else { first };
                let key = Key(first << 32 | second);
                let key_of = |slot: usize| keys.get(slot).copied().unwrap_or(Key(0));
                prop_assert_eq!(index.find(key, key_of), map.get(&key).copied());
                if insert && !map.contains_key(&key) {
                    let slot = keys.len();
                    index.insert(key, slot, key_of);
                    map.insert(key, slot);
                    keys.push(key);
                } else if !insert {
                    index.remove(key, key_of);
                    map.remove(&key);
                }
                let key_of = |slot: usize| keys.get(slot).copied().unwrap_or(Key(0));
                prop_assert!(index.slots().eq(map.values().copied()));
                prop_assert!(index.starting_at(key, key_of).eq(map.range(key..).map(|it| *it.1)));
            }
        }
    }
}
