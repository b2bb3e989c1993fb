//! The state of a group: a cluster of devices, a routine, a map of the application, or the registry.

use alloc::boxed::Box;

use selvedge_groups::registry::{Registration, Registry};
use selvedge_groups::store::{self, Store};
use selvedge_replica::State;
use serde::{Deserialize, Serialize};

use crate::Site;
use crate::devices::{self, Devices, Verdict};
use crate::routines::{self, RoutineState};

/// The state of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum GroupState {
    /// A cluster of devices.
    Devices(Devices),
    /// A routine.
    Routine(Box<RoutineState>),
    /// A map of the application.
    Map(Store),
    /// The site of a later generation, and the first members of groups.
    Registry(Box<Registry>),
}

/// A change of a group's state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Update {
    /// A cluster.
    Devices(devices::Update),
    /// A routine.
    Routine(routines::Update),
    /// A map.
    Map(store::Change),
    /// The registry.
    Registry(Registration),
}

/// The outcome of an update.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decided {
    /// The outcome in a cluster.
    Devices(Verdict),
    /// The outcome in a routine.
    Routine(routines::Decided),
    /// The outcome in a map.
    Map(store::Decided),
    /// The registry has taken a change, or it was too late.
    Registered,
    /// The group holds a state of another kind: nothing changed. A node that lies proposed it.
    Misplaced,
}

impl State for GroupState {
    type Update = Update;
    type Outcome = Decided;

    fn apply(&mut self, update: &Update) -> Decided {
        match (self, update) {
            (Self::Devices(devices), Update::Devices(update)) => {
                Decided::Devices(devices.apply(update))
            }
            (Self::Routine(routine), Update::Routine(update)) => {
                Decided::Routine(routine.apply(update))
            }
            (Self::Map(map), Update::Map(change)) => Decided::Map(map.apply(change)),
            (Self::Registry(registry), Update::Registry(registration)) => {
                register(registry, registration);
                Decided::Registered
            }
            (Self::Devices(_) | Self::Routine(_) | Self::Map(_) | Self::Registry(_), _) => {
                Decided::Misplaced
            }
        }
    }
}

/// Makes a change, and commits no bytes that are no site: nodes could not take it.
fn register(registry: &mut Registry, registration: &Registration) {
    if let (Registration::Commit { generation, .. }, Some(site)) =
        (registration, registry.committed(registration))
        && !Site::decode(site).is_ok_and(|it| it.generation() == *generation)
    {
        return;
    }
    registry.apply(registration);
}
