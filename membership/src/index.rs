//! Where listed nodes are found: their slots, in order of hashed id.

use alloc::vec::Vec;

use crate::message::Key;

/// Slots in order of the keys that belong to them: 8 bytes each.
///
/// Hashed ids are spread evenly, so a key's place can be guessed, and a search touches two or three
/// cache lines however many members there are. Whoever chooses ids against us makes it a binary
/// search. Keys whose first halves are equal are told apart by the slots' full keys, which every
/// call gets to ask for as `key_of`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index(Vec<Place>);

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
        self.0.len()
    }

    /// The slot of a key. O(log N).
    pub(crate) fn find(&self, key: Key, key_of: impl Fn(usize) -> Key) -> Option<usize> {
        let slot = self.nth(self.place(key, &key_of))?;
        (key_of(slot) == key).then_some(slot)
    }

    /// Lets a key in that is not there yet. Moves 8 bytes a member behind it.
    pub(crate) fn insert(&mut self, key: Key, slot: usize, key_of: impl Fn(usize) -> Key) {
        let at = self.place(key, &key_of);
        let prefix = prefix(key);
        let slot = slot as u32;
        self.0.insert(at, Place { prefix, slot });
    }

    /// Takes a key out, if it is there. Moves 8 bytes a member behind it.
    pub(crate) fn remove(&mut self, key: Key, key_of: impl Fn(usize) -> Key) {
        let at = self.place(key, &key_of);
        if self.nth(at).is_some_and(|slot| key_of(slot) == key) {
            self.0.remove(at);
        }
    }

    /// All slots whose keys are at or after `first`, in order.
    pub(crate) fn starting_at(
        &self,
        first: Key,
        key_of: impl Fn(usize) -> Key,
    ) -> impl Iterator<Item = usize> + '_ {
        let at = self.place(first, &key_of);
        self.0.iter().skip(at).map(|place| place.slot as usize)
    }

    /// All slots in order of their keys.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().map(|place| place.slot as usize)
    }

    pub(crate) fn nth(&self, nth: usize) -> Option<usize> {
        self.0.get(nth).map(|place| place.slot as usize)
    }

    /// How many keys are before this one.
    fn place(&self, key: Key, key_of: &impl Fn(usize) -> Key) -> usize {
        let len = self.len();
        let wanted = prefix(key);
        let is_before = |at: usize| {
            self.0.get(at).is_some_and(|place| {
                place.prefix < wanted
                    || (place.prefix == wanted && key_of(place.slot as usize) < key)
            })
        };
        // From the ends a place is guessed to within some sqrt(N), from there to within a few.
        let share = |distance: u32| ((u64::from(distance) * len as u64) >> 32) as usize;
        let rough = share(wanted);
        let guess = match self.0.get(rough) {
            Some(found) if found.prefix < wanted => (rough + share(wanted - found.prefix)).min(len),
            Some(found) => rough.saturating_sub(share(found.prefix - wanted)),
            None => rough,
        };
        // A range that holds it, in steps that double; then that range is halved.
        let mut step = 2;
        let (mut low, mut high) = if is_before(guess) {
            let mut low = guess;
            while is_before(low + step) {
                low += step;
                step *= 2;
            }
            (low + 1, (low + step).min(len))
        } else {
            let mut high = guess;
            while high >= step && !is_before(high - step) {
                high -= step;
                step *= 2;
            }
            (high.saturating_sub(step), high)
        };
        while low < high {
            let middle = usize::midpoint(low, high);
            if is_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        /// Keys with few first and second halves: evenly spread ones, and ones that were chosen.
        #[test]
        fn behaves_like_a_sorted_map(
            steps in proptest::collection::vec((any::<bool>(), 0_u64..40, 0_u64..3, any::<bool>()), 0..200),
        ) {
            let mut index = Index::default();
            let mut map = BTreeMap::new();
            let mut keys = Vec::new();
            for (insert, first, second, spread) in steps {
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
