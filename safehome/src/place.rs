//! The owner of a device, and the routines after it.

use selvedge_core::{NodeId, Span, Time};

use crate::lineage::Entry;
use crate::{Hub, RoutineId, Value};

/// The place of a routine in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// The routine.
    pub routine: RoutineId,
    /// The progress of the routine on this device.
    pub stage: PlaceStage,
    /// The planned start: by timeouts and holds, and by estimates, which may be wrong.
    pub start: Time,
    /// The planned duration, likewise.
    pub length: Span,
}

/// The progress of the owner of a [place](Place).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaceStage {
    /// It is planned, and may change.
    Planned,
    /// It has begun: its place is fixed.
    Begun,
    /// It is over, and may still be undone.
    Over,
}

impl<V: Value> Hub<V> {
    /// The places on a device that are planned, have begun or may still be undone, in their order: the paper's
    /// lineage table, section 4.2, for one device. A device that is unknown has none.
    pub fn lineage(&self, device: NodeId) -> impl Iterator<Item = Place> + '_ {
        let device = self.devices.get(&device);
        device
            .into_iter()
            .flat_map(|it| &it.lineage)
            .filter_map(place)
    }
}

fn place<V>(entry: &Entry<V>) -> Option<Place> {
    Some(Place {
        routine: entry.routine()?,
        stage: match (entry.released, entry.touched) {
            (true, _) => PlaceStage::Over,
            (false, true) => PlaceStage::Begun,
            (false, false) => PlaceStage::Planned,
        },
        start: entry.start,
        length: entry.length,
    })
}
