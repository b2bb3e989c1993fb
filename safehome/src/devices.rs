//! The devices, by id.

use alloc::vec::Vec;

use selvedge_core::{Full, NodeId};

use crate::lineage::Device;

/// A sorted map with a limit, made for consecutive ids, as a [`Catalogue`](crate::Catalogue) gives
/// them: these are found in O(1), any others in O(log n). Insertion and removal move the devices
/// behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Devices<V> {
    devices: Vec<(NodeId, Device<V>)>,
    limit: usize,
}

impl<V> Devices<V> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            devices: Vec::new(),
            limit,
        }
    }

    /// Adds a device that is not known.
    ///
    /// # Errors
    /// [`Full`] when the limit is reached; nothing changed.
    pub(crate) fn insert(&mut self, id: NodeId, device: Device<V>) -> Result<(), Full> {
        if self.devices.len() >= self.limit {
            return Err(Full { limit: self.limit });
        }
        let at = match self.devices.last() {
            Some(last) if last.0 >= id => self.devices.partition_point(|it| it.0 < id),
            Some(_) | None => self.devices.len(),
        };
        self.devices.insert(at, (id, device));
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        if let Some(at) = self.position(id) {
            self.devices.remove(at);
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: &NodeId) -> Option<&Device<V>> {
        self.devices.get(self.position(*id)?).map(|it| &it.1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: &NodeId) -> Option<&mut Device<V>> {
        let at = self.position(*id)?;
        self.devices.get_mut(at).map(|it| &mut it.1)
    }

    /// The device with this id, and its number.
    pub(crate) fn find(&self, id: NodeId) -> Option<(usize, &Device<V>)> {
        let at = self.position(id)?;
        Some((at, self.at(at)?))
    }

    /// The device with this number.
    pub(crate) fn at(&self, number: usize) -> Option<&Device<V>> {
        self.devices.get(number).map(|it| &it.1)
    }

    #[inline]
    pub(crate) fn contains(&self, id: &NodeId) -> bool {
        self.position(*id).is_some()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&NodeId, &Device<V>)> {
        self.devices.iter().map(|(id, device)| (id, device))
    }

    pub(crate) fn iter_mut(
        &mut self,
    ) -> impl DoubleEndedIterator<Item = (&NodeId, &mut Device<V>)> {
        self.devices.iter_mut().map(|(id, device)| (&*id, device))
    }

    #[inline]
    fn position(&self, id: NodeId) -> Option<usize> {
        let first = self.devices.first()?.0;
        let guess = usize::try_from(id.0.checked_sub(first.0)?).unwrap_or(usize::MAX);
        if self.devices.get(guess).is_some_and(|it| it.0 == id) {
            return Some(guess);
        }
        self.devices.binary_search_by_key(&id, |it| it.0).ok()
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
                let notified = model.iter().map(|(&id, &state)| (id, Some(state)));
                assert!(all.eq(notified), "seed {seed}");
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
