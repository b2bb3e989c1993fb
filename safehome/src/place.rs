//! Who has a device, and who comes next.

use selvedge_core::{NodeId, Span, Time};

use crate::lineage::Entry;
use crate::{Hub, RoutineId, Value};

/// The place of a routine in the order of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Place {
    /// Whose it is.
    pub routine: RoutineId,
    /// How far it has come.
    pub stage: PlaceStage,
    /// From when, as is planned: by timeouts and holds, and by estimates, which may be wrong.
    pub start: Time,
    /// For how long, likewise.
    pub length: Span,
}

/// How far the owner of a [place](Place) has come.
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
