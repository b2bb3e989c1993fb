//! Whether the last one wins.

use alloc::collections::BTreeSet;

use selvedge_core::NodeId;

use crate::{Placed, Routine, RoutineId};

/// Whether those that set the same devices and ask for no state are told in the order of their
/// submission.
pub(super) fn is_in_order(
    told: &[Placed<u8>],
    routine: impl Fn(RoutineId) -> Option<Routine<u8>>,
) -> bool {
    let sets = |id: RoutineId| -> Option<BTreeSet<NodeId>> {
        let routine = routine(id)?;
        let mut steps = routine.steps.iter();
        let asks_nothing = steps.all(|it| it.condition.is_none());
        asks_nothing.then(|| routine.steps.iter().map(|it| it.device).collect())
    };
    let ids = || {
        told.iter().filter_map(|it| match it {
            Placed::Routine(id) => Some(*id),
            Placed::Failed(_) | Placed::Restarted(_) | Placed::Set { .. } => None,
        })
    };
    ids().zip(1..).all(|(first, behind)| {
        let mut later = ids().skip(behind);
        !later.any(|second| second < first && sets(first).is_some() && sets(first) == sets(second))
    })
}
