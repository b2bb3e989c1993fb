//! Whether places agree with one order of all routines.

use alloc::vec::Vec;

use crate::lineage::Entry;
use crate::schedule::Place;
use crate::{Hub, RoutineId, Value};

impl<V: Value> Hub<V> {
    /// Whether no routine would come both before and after a new one with these places, by way of
    /// any others (erratum H1: looking at direct neighbours alone is not enough).
    ///
    /// Those that are committed count as long as somebody before them is unfinished (errata H2,
    /// H3). Takes O(e log e), with e the entries of those that come after.
    pub(crate) fn is_serial(&self, places: &[Place]) -> bool {
        let mut before = Vec::with_capacity(places.len());
        let mut stack = Vec::with_capacity(places.len());
        for place in places {
            let Some(device) = self.devices.get(&place.device) else {
                continue;
            };
            let (left, right) = device
                .lineage
                .split_at_checked(place.at)
                .unwrap_or((&device.lineage, &[]));
            if self.rules.direct_order() {
                before.extend(left.iter().filter_map(Entry::routine));
                stack.extend(right.iter().filter_map(Entry::routine));
                continue;
            }
            before.extend(left.iter().rev().find_map(Entry::routine));
            stack.extend(right.iter().find_map(Entry::routine));
        }
        if self.rules.direct_order() {
            return !stack.iter().any(|it| before.contains(it));
        }
        if before.is_empty() || stack.is_empty() {
            return true;
        }
        before.sort_unstable();
        let mut seen: Vec<RoutineId> = Vec::new();
        while let Some(routine) = stack.pop() {
            let Err(at) = seen.binary_search(&routine) else {
                continue;
            };
            if before.binary_search(&routine).is_ok() {
                return false;
            }
            seen.insert(at, routine);
            let Some(run) = self.runs.get(&routine) else {
                continue;
            };
            for device in &run.devices {
                let Some(device) = self.devices.get(device) else {
                    continue;
                };
                if let Some(place) = device.position(routine) {
                    let behind = device.lineage.get(place + 1..).unwrap_or_default();
                    stack.extend(behind.iter().find_map(Entry::routine));
                }
            }
        }
        true
    }
}
