//! All devices, by id.

use alloc::vec::Vec;

use selvedge_core::{Full, NodeId};

use crate::lineage::Device;

/// A sorted map with a limit, made for ids that are given in a row, as a
/// [`Catalogue`](crate::Catalogue) does: those are found at once, any others in O(log n). Insertion
/// and removal move the devices behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Devices<V> {
    ids: Vec<NodeId>,
    /// Each where its id is.
    devices: Vec<Device<V>>,
    limit: usize,
}

impl<V> Devices<V> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            ids: Vec::new(),
            devices: Vec::new(),
            limit,
        }
    }

    /// Adds a device that is not known.
    ///
    /// # Errors
    /// [`Full`] when the limit is reached; nothing changed.
    pub(crate) fn insert(&mut self, id: NodeId, device: Device<V>) -> Result<(), Full> {
        if self.ids.len() >= self.limit {
            return Err(Full { limit: self.limit });
        }
        let at = self.ids.partition_point(|&it| it < id);
        self.ids.insert(at, id);
        self.devices.insert(at, device);
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        if let Some(at) = self.position(id) {
            self.ids.remove(at);
            self.devices.remove(at);
        }
    }

    pub(crate) fn get(&self, id: &NodeId) -> Option<&Device<V>> {
        self.devices.get(self.position(*id)?)
    }

    pub(crate) fn get_mut(&mut self, id: &NodeId) -> Option<&mut Device<V>> {
        let at = self.position(*id)?;
        self.devices.get_mut(at)
    }

    /// The device with this id, and its number.
    pub(crate) fn find(&self, id: NodeId) -> Option<(usize, &Device<V>)> {
        let at = self.position(id)?;
        Some((at, self.devices.get(at)?))
    }

    /// The device with this number.
    pub(crate) fn at(&self, number: usize) -> Option<&Device<V>> {
        self.devices.get(number)
    }

    pub(crate) fn contains(&self, id: &NodeId) -> bool {
        self.position(*id).is_some()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&NodeId, &Device<V>)> {
        self.ids.iter().zip(&self.devices)
    }

    pub(crate) fn iter_mut(
        &mut self,
    ) -> impl DoubleEndedIterator<Item = (&NodeId, &mut Device<V>)> {
        self.ids.iter().zip(&mut self.devices)
    }

    #[inline]
    fn position(&self, id: NodeId) -> Option<usize> {
        let first = self.ids.first()?;
        let guess = usize::try_from(id.0.checked_sub(first.0)?).unwrap_or(usize::MAX);
        if self.ids.get(guess) == Some(&id) {
            return Some(guess);
        }
        self.ids.binary_search(&id).ok()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use chacha20::ChaCha8Rng;
    use chacha20::rand_core::SeedableRng;
    use selvedge_core::Choose;

    use super::*;

    #[test]
    fn devices_are_a_sorted_map_with_a_limit() {
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let limit = rng.below(9) as usize;
            let (mut devices, mut model) = (Devices::new(limit), BTreeMap::new());
            for state in 0..60_u64 {
                let id = NodeId(5 + rng.below(12));
                if rng.below(3) > 0 && !model.contains_key(&id) {
                    let taken = devices.insert(id, Device::new(Some(state)));
                    assert_eq!(taken.is_ok(), model.len() < limit, "seed {seed}");
                    if taken.is_ok() {
                        model.insert(id, state);
                    }
                } else {
                    devices.remove(id);
                    model.remove(&id);
                }
                let all = devices.iter().map(|(&id, it)| (id, it.actual));
                let told = model.iter().map(|(&id, &state)| (id, Some(state)));
                assert!(all.eq(told), "seed {seed}");
                for id in (0..20).map(NodeId) {
                    let found = devices.get(&id).and_then(|it| it.actual);
                    assert_eq!(found, model.get(&id).copied(), "seed {seed}, {id}");
                    let at = model.keys().position(|&it| it == id);
                    assert_eq!(devices.position(id), at, "seed {seed}, {id}");
                    assert_eq!(devices.contains(&id), at.is_some());
                    let state = devices.get_mut(&id).and_then(|it| it.actual);
                    assert_eq!(state, found, "seed {seed}, {id}");
                }
            }
        }
    }
}
