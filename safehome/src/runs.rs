//! The routines, by id.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::RoutineId;
use crate::run::Run;

/// A sorted map made for ids that grow and leave few gaps, as the hub gives them: a routine is
/// searched only between its position if all gaps are before it, and its position if all are behind
/// it. That takes O(log g), with g the number of unused ids between the first and the last one, and
/// at most O(log n). Insertion and removal move a few bytes for each item behind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Runs<V>(Vec<(RoutineId, Box<Run<V>>)>);

impl<V> Runs<V> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a routine, or replaces the one with its id.
    pub(crate) fn insert(&mut self, id: RoutineId, run: Run<V>) {
        match self.position(id) {
            Ok(at) => {
                if let Some((_, place)) = self.0.get_mut(at) {
                    **place = run;
                }
            }
            Err(at) => self.0.insert(at, (id, Box::new(run))),
        }
    }

    pub(crate) fn remove(&mut self, id: &RoutineId) -> Option<Box<Run<V>>> {
        let at = self.position(*id).ok()?;
        Some(self.0.remove(at).1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: &RoutineId) -> Option<&mut Run<V>> {
        let at = self.position(*id).ok()?;
        self.0.get_mut(at).map(|it| &mut *it.1)
    }

    #[inline]
    pub(crate) fn get(&self, id: &RoutineId) -> Option<&Run<V>> {
        let at = self.position(*id).ok()?;
        self.0.get(at).map(|it| &*it.1)
    }

    /// The number of a routine among all.
    pub(crate) fn number(&self, id: RoutineId) -> Option<usize> {
        self.position(id).ok()
    }

    /// The routine with this number.
    pub(crate) fn at(&self, number: usize) -> Option<(RoutineId, &Run<V>)> {
        self.0.get(number).map(|it| (it.0, &*it.1))
    }

    pub(crate) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&RoutineId, &Run<V>)> {
        self.0.iter().map(|(id, run)| (id, &**run))
    }

    #[cfg(any(test, feature = "check"))]
    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &RoutineId> {
        self.0.iter().map(|it| &it.0)
    }

    pub(crate) fn values(&self) -> impl DoubleEndedIterator<Item = &Run<V>> {
        self.0.iter().map(|it| &*it.1)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Run<V>> {
        self.0.iter_mut().map(|it| &mut *it.1)
    }

    /// The routines with ids below this one.
    pub(crate) fn before(&self, id: RoutineId) -> impl Iterator<Item = (&RoutineId, &Run<V>)> {
        self.iter().take_while(move |it| *it.0 < id)
    }

    /// The position of the routine with this id, or the position at which to insert it.
    #[inline]
    fn position(&self, id: RoutineId) -> Result<usize, usize> {
        let (Some((first, _)), Some((last, _))) = (self.0.first(), self.0.last()) else {
            return Err(0);
        };
        // Ids are unique: there are at most as many items behind it as there are ids,
        let behind = usize::try_from(last.0.saturating_sub(id.0)).unwrap_or(usize::MAX);
        let least = (self.0.len() - 1).saturating_sub(behind);
        if self.0.get(least).is_some_and(|it| it.0 == id) {
            return Ok(least);
        }
        // and at most as many before it.
        let before = usize::try_from(id.0.saturating_sub(first.0)).unwrap_or(usize::MAX);
        let most = before.saturating_add(1).min(self.0.len());
        let between = self.0.get(least..most).unwrap_or_default();
        let found = between.binary_search_by_key(&id, |it| it.0);
        found.map(|at| least + at).map_err(|at| least + at)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use chacha20::ChaCha8Rng;
    use chacha20::rand_core::SeedableRng;
    use selvedge_core::Choose;

    use super::*;

    fn run(at: u16) -> Run<u8> {
        let mut run = Run::committed(crate::run::Needed::new(), Vec::new());
        run.at = at;
        run
    }

    /// Ids that grow and leave gaps, and any others.
    #[test]
    fn runs_are_a_sorted_map() {
        for seed in 0..200 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (mut runs, mut model) = (Runs::new(), BTreeMap::new());
            let (mut last, step) = (rng.below(4), 1 + rng.below(3));
            for at in 0..80_u16 {
                let id = match rng.below(4) {
                    0 => RoutineId(rng.below(last + 4)),
                    _ => RoutineId(last),
                };
                let some = model.keys().nth(rng.below(1 + model.len() as u64) as usize);
                match some.copied().filter(|_| rng.below(2) == 0) {
                    Some(some) => {
                        let ended = runs.remove(&some).map(|it| it.at);
                        assert_eq!(ended, model.remove(&some), "seed {seed}");
                    }
                    None => {
                        runs.insert(id, run(at));
                        model.insert(id, at);
                        last += rng.below(step + 1);
                    }
                }
                let all: Vec<(RoutineId, u16)> = model.iter().map(|it| (*it.0, *it.1)).collect();
                assert!(
                    runs.iter().map(|it| (*it.0, it.1.at)).eq(all.clone()),
                    "seed {seed}"
                );
                assert!(runs.keys().eq(model.keys()), "seed {seed}");
                assert!(runs.values().map(|it| it.at).eq(all.iter().map(|it| it.1)));
                assert!(
                    runs.values_mut()
                        .map(|it| it.at)
                        .eq(all.iter().map(|it| it.1))
                );
                assert_eq!((runs.len(), runs.is_empty()), (all.len(), all.is_empty()));
                for id in (0..last + 6).map(RoutineId) {
                    let found = runs.get(&id).map(|it| it.at);
                    assert_eq!(found, model.get(&id).copied(), "seed {seed}, {id}");
                    assert_eq!(runs.get_mut(&id).map(|it| it.at), found);
                    let before = all.iter().filter(|it| it.0 < id).copied();
                    let ours = runs.before(id).map(|it| (*it.0, it.1.at));
                    assert!(ours.eq(before), "seed {seed}, {id}");
                }
            }
        }
    }
}
