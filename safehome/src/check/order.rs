//! The property that the last one wins.

use alloc::collections::BTreeSet;

use selvedge_core::NodeId;

use crate::{Placed, Routine, RoutineId};

/// Returns true if routines that set the same devices and ask for no state are reported in the
/// order of their submission, if some device did commands of both: a skipped command has no effect
/// that needs an order.
pub(super) fn is_in_order(
    notified: &[Placed<u8>],
    routine: impl Fn(RoutineId) -> Option<Routine<u8>>,
    is_skipped: impl Fn(RoutineId, u16) -> bool,
) -> bool {
    let sets = |id: RoutineId| -> Option<BTreeSet<NodeId>> {
        let routine = routine(id)?;
        let mut steps = routine.steps.iter();
        let asks_nothing = steps.all(|it| it.condition.is_none());
        asks_nothing.then(|| routine.steps.iter().map(|it| it.device).collect())
    };
    let commanded = |id: RoutineId| -> BTreeSet<NodeId> {
        let steps = routine(id).into_iter().flat_map(|it| it.steps).zip(0..);
        let done = steps.filter(|(_, nth)| !is_skipped(id, *nth));
        done.map(|(step, _)| step.device).collect()
    };
    let are_alike = |first, second| sets(first).is_some() && sets(first) == sets(second);
    let share = |first, second| !commanded(first).is_disjoint(&commanded(second));
    let ids = || {
        notified.iter().filter_map(|it| match it {
            Placed::Routine(id) => Some(*id),
            Placed::Failed(_) | Placed::Restarted(_) | Placed::Set { .. } => None,
        })
    };
    ids().zip(1..).all(|(first, behind)| {
        let mut later = ids().skip(behind);
        !later.any(|second| second < first && are_alike(first, second) && share(first, second))
    })
}
