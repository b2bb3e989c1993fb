//! The hub's state as something that can be stored, and back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use thiserror::Error;

use crate::config::Visibility;
use crate::lineage::{Device, Entry};
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::{Config, ConfigError, Hub, RoutineId, Value};

/// The layout of [`Saved`]; another one is not read.
pub(crate) const VERSION: u16 = 6;

/// The whole state of a hub: what is unfinished, what is on its way, what is to be undone. A host
/// may store it once, and after each step what has changed ([`Difference`](crate::Difference)).
///
/// With the feature `serde` it can be stored in any format; the version comes first in it. It holds
/// no timers and no times: those belong to a clock that is gone. Settings are not in it either, but
/// for the visibility model, which cannot change while routines are unfinished.
///
/// # What a host does
///
/// [`DurableHub`](crate::DurableHub) is the hub with what is to be stored as the first event of
/// each step, for hosts that keep effects back by a [`Barrier`](selvedge_core::durable::Barrier).
/// A host that does without does this by itself:
///
/// 1. After each step it stores [`Hub::save`], or [`Hub::difference`], and waits until that is
///    safe; then it carries out the step's events. A tick without events need not be stored; a
///    command without events must be, for what was [observed](crate::Command::Observed) may not be
///    told a second time.
/// 2. When it starts again it calls [`Hub::restore`], sends
///    [`Command::Resume`](crate::Command::Resume) before anything else, and then tells the hub which
///    devices are up and which are not, as its membership service sees it now.
/// 3. It answers each [`Event::Ask`](crate::Event::Ask).
///
/// | the host stops | what becomes of it |
/// |---|---|
/// | before the step is stored | the step has not happened, and nothing of it was seen outside. An outcome that it reported is asked for. A routine that it submitted was not [accepted](crate::Event::Accepted): its user submits it again |
/// | after that, before its events are carried out | commands that were not issued are asked for, not found, and issued |
/// | while they are carried out, or later | commands that were done are asked for, found, and not issued again |
///
/// An event that only tells something is told once or not at all. A host whose users must hear of
/// all stores these events with the state, in one write, and tells them again after a restart; they
/// name their routine or device, so that one that is told twice can be known. `Issue` and `Ask` are
/// never carried out again: `Resume` does what is needed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Saved<V> {
    pub(crate) version: u16,
    pub(crate) visibility: Visibility,
    /// How many steps the hub had taken, over all restarts.
    pub(crate) number: u64,
    pub(crate) last: RoutineId,
    pub(crate) token: u64,
    /// By id.
    pub(crate) devices: Vec<(NodeId, Device<V>)>,
    /// By id.
    pub(crate) runs: Vec<(RoutineId, Run<V>)>,
}

/// Why a stored state was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Stored by another version of this crate.
    #[error(
        "the state has layout {found}, this version reads {VERSION}: use the version that stored it"
    )]
    Version {
        /// Its layout.
        found: u16,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// Routines began under another model.
    #[error(
        "routines or rollbacks are unfinished under {saved:?} and {asked:?} is asked for: let them finish first"
    )]
    Visibility {
        /// The model of the stored state.
        saved: Visibility,
        /// That of the settings.
        asked: Visibility,
    },
    /// Settings allow less than there is.
    #[error("the state has {found} devices and device_limit is {limit}: raise it")]
    TooManyDevices {
        /// How many there are.
        found: usize,
        /// How many there may be.
        limit: u32,
    },
    /// Settings allow less than there is.
    #[error("the state has {found} routines and routine_limit is {limit}: raise it")]
    TooManyRoutines {
        /// How many there are. Committed ones that can be one count as one, unless there are too
        /// many unfinished ones alone.
        found: usize,
        /// How many there may be.
        limit: u32,
    },
    /// Settings allow less than there is.
    #[error("routine {routine} has {found} commands and step_limit is {limit}: raise it")]
    TooLong {
        /// Which one.
        routine: RoutineId,
        /// How many it has.
        found: usize,
        /// How many it may have.
        limit: u16,
    },
    /// The last routine, command or step has a number that no hub gets to.
    #[error("numbers have come to {0}: the state is damaged, take an older one")]
    Number(u64),
    /// No hub has left a device so.
    #[error("device {device}: {flaw}; the state is damaged, take an older one")]
    Device {
        /// Which one.
        device: NodeId,
        /// What is wrong.
        flaw: Flaw,
    },
    /// No hub has left a routine so.
    #[error("routine {routine}: {flaw}; the state is damaged, take an older one")]
    Routine {
        /// Which one.
        routine: RoutineId,
        /// What is wrong.
        flaw: Flaw,
    },
    /// Routines come before each other.
    #[error("routine {0} comes before itself: the state is damaged, take an older one")]
    Order(RoutineId),
}

/// What is wrong with a device or a routine of a stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Ids come in order, once each, and are those that were given.
    #[error("it is out of order")]
    Misplaced,
    /// A routine that is unknown, or that is not on its way, has a place.
    #[error("a routine has a place that it cannot have")]
    Stranger,
    /// A routine has two places on one device.
    #[error("a routine has two places")]
    TwoPlaces,
    /// Routines that released the device come first, then the one that uses it, then those that
    /// wait (invariants 2 and 3).
    #[error("released, used and planned places are mixed")]
    Mixed,
    /// Two changes by hand, one after the other: the second one makes the first one void.
    #[error("two changes by hand follow each other")]
    Hands,
    /// The fields of a place are inconsistent.
    #[error("a place is inconsistent")]
    Place,
    /// More failures and restarts than are kept.
    #[error("it has too many failures")]
    Failures,
    /// A command on its way, or a long one, that its routine knows nothing of.
    #[error("its command and its routine do not agree")]
    Command,
    /// A routine without commands, or one beyond its end.
    #[error("it has no such command")]
    Step,
    /// The key of its runs is too long.
    #[error("its key is too long")]
    Key,
    /// One of its commands has a timeout of 0.
    #[error("one of its commands has a timeout of 0")]
    NoTime,
    /// It needs a device that the hub does not know.
    #[error("it needs a device that is unknown")]
    UnknownDevice,
    /// It needs a device, and would never get it.
    #[error("it has no place on a device that it needs")]
    NoPlace,
    /// It is at a point to which it cannot come.
    #[error("it is in an impossible position")]
    Stage,
    /// A command that may still act and is not from before, or on a device that does something else
    /// or whose state is known.
    #[error("a command that may still act does not agree with its device")]
    Late,
    /// A committed routine does not stand for those for which it says that it does.
    #[error("it represents routines that cannot be merged")]
    Joined,
    /// The visibility model does not let it run beside others.
    #[error("it runs beside another one")]
    Beside,
}

impl<V: Value> Hub<V> {
    /// The state, to be stored. Takes time and memory in proportion to it.
    #[must_use]
    pub fn save(&self) -> Saved<V> {
        let timeless = |device: &Device<V>| Device {
            lineage: device.lineage.iter().map(Entry::timeless).collect(),
            ..device.without_lineage()
        };
        // What follows from the routine is not stored.
        let bare = |run: &Run<V>| Run {
            routine: run.routine.clone(),
            order: run.order.clone(),
            ..run.without_lists()
        };
        let devices = self.devices.iter();
        let runs = self.runs.iter();
        Saved {
            version: VERSION,
            visibility: self.config.visibility,
            number: *self.number,
            last: self.last,
            token: self.token,
            devices: devices.map(|(&id, it)| (id, timeless(it))).collect(),
            runs: runs.map(|(&id, it)| (id, bare(it))).collect(),
        }
    }

    /// A hub with a stored state. Send it [`Command::Resume`](crate::Command::Resume) first.
    ///
    /// Other settings than before will do, but for the visibility model while routines are
    /// unfinished or a rollback is on its way. Those that waited for a place just in time get one
    /// in the order of their submission if that is no longer the scheduler. Committed routines that
    /// can be one are joined if only that leaves no more than `routine_limit`. A weak hub restores
    /// nothing: rollbacks that are pending rest as long as it is one. What is counted begins at
    /// zero. Takes O(p l), with p the places that routines have on devices and l the most on one
    /// device.
    ///
    /// # Errors
    /// When the settings cannot work or do not fit the state, or no hub can have come into it.
    pub fn restore(config: Config, saved: Saved<V>) -> Result<Self, RestoreError> {
        Self::restored(config, Rules::default(), saved)
    }

    /// The same, by these rules.
    pub(crate) fn restored(
        config: Config,
        rules: Rules,
        saved: Saved<V>,
    ) -> Result<Self, RestoreError> {
        config.check()?;
        let found = saved.version;
        if found != VERSION {
            return Err(RestoreError::Version { found });
        }
        let (saved_as, asked) = (saved.visibility, config.visibility);
        let is_busy = saved.devices.iter().any(|(_, it)| it.flight.is_some());
        if saved_as != asked && (is_busy || !saved.runs.is_empty()) {
            let saved = saved_as;
            return Err(RestoreError::Visibility { saved, asked });
        }
        let (found, limit) = (saved.devices.len(), config.device_limit);
        if found > limit as usize {
            return Err(RestoreError::TooManyDevices { found, limit });
        }
        let mut hub = Self::unchecked(config, rules);
        (hub.last, hub.token) = (saved.last, saved.token);
        *hub.number = saved.number;
        let mut before = None;
        for (device, it) in saved.devices {
            let flaw = Flaw::Misplaced;
            let misplaced = RestoreError::Device { device, flaw };
            if before.is_some_and(|before| before >= device) {
                return Err(misplaced);
            }
            before = Some(device);
            hub.devices.insert(device, it).map_err(|_| misplaced)?;
        }
        let mut places = hub.places_of_committed(&saved.runs);
        let mut before = RoutineId(0);
        for (routine, mut run) in saved.runs {
            if before >= routine {
                let flaw = Flaw::Misplaced;
                return Err(RestoreError::Routine { routine, flaw });
            }
            before = routine;
            let (found, limit) = (run.routine.steps.len(), hub.config.step_limit);
            if found > limit.into() {
                return Err(RestoreError::TooLong {
                    routine,
                    found,
                    limit,
                });
            }
            match places.remove(&routine) {
                Some(places) => run.devices = places.into(),
                None => run.find_devices(),
            }
            let stage = run.stage;
            hub.runs.insert(routine, run);
            match stage {
                Stage::Waiting => hub.queue(routine),
                Stage::Queued => {
                    hub.held.insert(routine);
                }
                Stage::Placed | Stage::Running | Stage::Aborting(_) | Stage::Committed => {}
            }
        }
        *hub.tally = hub.count();
        hub.audit()?;
        // Committed ones that can be one count as one, though they were not joined yet.
        let limit = config.routine_limit;
        let few = hub.leave_at_most(limit as usize);
        few.map_err(|found| RestoreError::TooManyRoutines { found, limit })?;
        hub.rank_all();
        Ok(hub)
    }

    /// Where each committed routine has a place, by id.
    fn places_of_committed(
        &self,
        runs: &[(RoutineId, Run<V>)],
    ) -> BTreeMap<RoutineId, Vec<NodeId>> {
        let committed = runs.iter().filter(|it| it.1.stage == Stage::Committed);
        let mut places: BTreeMap<RoutineId, Vec<NodeId>> =
            committed.map(|it| (it.0, Vec::new())).collect();
        for (&at, device) in self.devices.iter() {
            for id in device.lineage.iter().filter_map(Entry::routine) {
                if let Some(places) = places.get_mut(&id) {
                    places.push(at);
                }
            }
        }
        places
    }
}
