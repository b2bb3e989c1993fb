//! The hub's state in a form that can be stored, and its restoration.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use thiserror::Error;

use crate::config::Visibility;
use crate::lineage::{Device, Entry};
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::{Config, ConfigError, Hub, RoutineId, Value};

/// The layout of [`Saved`]; no other layout is read.
pub(crate) const VERSION: u16 = 6;

/// The whole state of a hub: unfinished routines, commands in flight, rollbacks that are due. A
/// host may store it once, and after each step only the changes
/// ([`Difference`](crate::Difference)).
///
/// With the feature `serde` it can be stored in any format; the version is its first field. It
/// holds no timers and no times, because those belong to a clock that does not survive a restart.
/// It does not hold the settings either, except the visibility model, which cannot change while
/// routines are unfinished.
///
/// # Duties of the host
///
/// [`DurableHub`](crate::DurableHub) is the hub with the data to store as the first event of each
/// step, for hosts that delay effects with a [`Barrier`](selvedge_core::durable::Barrier). A host
/// without it does this itself:
///
/// 1. After each step it stores [`Hub::save`], or [`Hub::difference`], and waits until that is
///    safe; then it carries out the step's events. A tick without events need not be stored; a
///    command without events must be, because an [observation](crate::Command::Observed) may not be
///    reported a second time.
/// 2. When it starts again it calls [`Hub::restore`], sends
///    [`Command::Resume`](crate::Command::Resume) before anything else, and then reports to the hub
///    which devices are up and which are down, as its membership service sees them now.
/// 3. It answers each [`Event::Ask`](crate::Event::Ask).
///
/// | the host stops | consequence |
/// |---|---|
/// | before the step is stored | the step has not happened, and nothing of it was visible outside. The hub asks for the outcome that was reported in it. A routine that was submitted in it was not [accepted](crate::Event::Accepted): its user submits it again |
/// | after that, before its events are carried out | the hub asks for commands that were not issued, finds that they were not done, and issues them |
/// | while they are carried out, or later | the hub asks for commands that were done, finds that they were, and does not issue them again |
///
/// An event that only informs is delivered once or not at all. A host that must deliver all of them
/// stores these events with the state, in one write, and delivers them again after a restart; they
/// name their routine or device, so a receiver can recognize a duplicate. `Issue`
/// and `Ask` are never carried out again: `Resume` does the necessary work.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Saved<V> {
    pub(crate) version: u16,
    pub(crate) visibility: Visibility,
    /// The number of steps of the hub, over all restarts.
    pub(crate) number: u64,
    pub(crate) last: RoutineId,
    pub(crate) token: u64,
    /// By id.
    pub(crate) devices: Vec<(NodeId, Device<V>)>,
    /// By id.
    pub(crate) runs: Vec<(RoutineId, Run<V>)>,
}

/// The reason why a stored state, or a difference, was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
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
    /// Routines or rollbacks are unfinished under another visibility model.
    #[error(
        "routines or rollbacks are unfinished under {saved:?} and the settings ask for {asked:?}: let them finish first"
    )]
    Visibility {
        /// The model of the stored state.
        saved: Visibility,
        /// The model of the settings.
        asked: Visibility,
    },
    /// The state has more devices than the settings allow.
    #[error("the state has {found} devices and device_limit is {limit}: raise it")]
    TooManyDevices {
        /// The number in the state.
        found: usize,
        /// The limit of the settings.
        limit: u32,
    },
    /// The state has more routines than the settings allow.
    #[error("the state has {found} routines and routine_limit is {limit}: raise it")]
    TooManyRoutines {
        /// The number in the state. Committed routines that can be joined count as one, unless
        /// there are too many unfinished ones alone.
        found: usize,
        /// The limit of the settings.
        limit: u32,
    },
    /// A routine has more commands than the settings allow.
    #[error("routine {routine} has {found} commands and step_limit is {limit}: raise it")]
    TooLong {
        /// The routine.
        routine: RoutineId,
        /// The number of its commands.
        found: usize,
        /// The limit of the settings.
        limit: u16,
    },
    /// The last routine, command or step has a number that no hub reaches.
    #[error(
        "number {0} is above every number that a hub reaches: the state is damaged, take an older one"
    )]
    Number(u64),
    /// No hub leaves a device in this state.
    #[error("device {device}: {flaw}; the state is damaged, take an older one")]
    Device {
        /// The device.
        device: NodeId,
        /// The defect.
        flaw: Flaw,
    },
    /// No hub leaves a routine in this state.
    #[error("routine {routine}: {flaw}; the state is damaged, take an older one")]
    Routine {
        /// The routine.
        routine: RoutineId,
        /// The defect.
        flaw: Flaw,
    },
    /// Routines come before each other in a cycle.
    #[error("routine {0} comes before itself: the state is damaged, take an older one")]
    Order(RoutineId),
    /// A difference was stored by another version of this crate.
    #[error(
        "the difference has layout {found} and {VERSION} is read: use the version that stored it"
    )]
    DifferenceVersion {
        /// Its layout.
        found: u16,
    },
    /// Differences before this one are missing. The state to which it was applied is dropped.
    #[error(
        "the difference changes the state after step {found}, and this is the state after step {expected}: apply all differences that were stored since the base, in order"
    )]
    Gap {
        /// The number of the state: its steps from the beginning.
        expected: u64,
        /// The number of the state that the difference changes.
        found: u64,
    },
    /// A difference changes a part of a list that does not exist, or goes back.
    #[error(
        "the difference belongs to another state: apply it to the base for which it was computed"
    )]
    OtherBase,
}

/// A defect of a device or a routine in a stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Flaw {
    /// Ids are unsorted or duplicated, or were never given.
    #[error("it is out of order")]
    Misplaced,
    /// A routine that is unknown, or does not use the device, has a place on it.
    #[error("a routine has a place that it cannot have")]
    Stranger,
    /// A routine has two places on one device.
    #[error("a routine has two places")]
    TwoPlaces,
    /// Places are in the wrong order: routines that released the device must be first, then the one
    /// that uses it, then the waiting ones (invariants 2 and 3).
    #[error("released, used and planned places are mixed")]
    Mixed,
    /// Two manual changes, one directly after the other: the second one makes the first one void.
    #[error("two changes by hand follow each other")]
    Hands,
    /// The fields of a place are inconsistent.
    #[error("a place is inconsistent")]
    Place,
    /// There are more failures and restarts than a hub keeps.
    #[error("it has too many failures")]
    Failures,
    /// A command in flight, or a long one, is unknown to its routine.
    #[error("its command and its routine do not agree")]
    Command,
    /// A routine has no commands, or is beyond its last one.
    #[error("it has no commands, or is beyond its last one")]
    Step,
    /// The key of its runs is too long.
    #[error("its key is too long")]
    Key,
    /// A command of the routine has a timeout of 0.
    #[error("one of its commands has a timeout of 0")]
    NoTime,
    /// It needs a device that the hub does not know.
    #[error("it needs a device that is unknown")]
    UnknownDevice,
    /// It needs a device for which it has no place, and would never get it.
    #[error("it has no place on a device that it needs")]
    NoPlace,
    /// It is at a stage that it cannot reach.
    #[error("it is in an impossible position")]
    Stage,
    /// A command that may still act has an invalid number or time, or is on a device that does
    /// another command or has a known state.
    #[error("a command that may still act does not agree with its device")]
    Late,
    /// A committed routine lists other routines for which it cannot stand.
    #[error("it represents routines that cannot be merged")]
    Joined,
    /// The visibility model does not let it run at the same time as others.
    #[error("it runs at the same time as another routine")]
    Beside,
}

impl<V: Value> Hub<V> {
    /// The state to store. Takes time and memory in proportion to it.
    #[must_use]
    pub fn save(&self) -> Saved<V> {
        let timeless = |device: &Device<V>| Device {
            lineage: device.lineage.iter().map(Entry::timeless).collect(),
            ..device.without_lineage()
        };
        // Fields that follow from the routine are not stored.
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
    /// The settings may differ from before, except the visibility model while routines are
    /// unfinished or a rollback is in flight. Routines that waited for a place under `JustInTime`
    /// get one in the order of their submission if that is no longer the scheduler. Committed
    /// routines that can be one are joined if only that leaves no more than `routine_limit`. A weak
    /// hub restores no device: pending rollbacks rest as long as the hub is weak. Counters begin at
    /// zero. Takes O(p l), with p the number of places that routines have on devices and l the most
    /// on one device.
    ///
    /// # Errors
    /// When the settings cannot work or do not fit the state, or no hub can reach the state.
    pub fn restore(config: Config, saved: Saved<V>) -> Result<Self, Damage> {
        Self::restored(config, Rules::default(), saved)
    }

    /// A hub with a stored state that follows these rules.
    pub(crate) fn restored(config: Config, rules: Rules, saved: Saved<V>) -> Result<Self, Damage> {
        config.check()?;
        let found = saved.version;
        if found != VERSION {
            return Err(Damage::Version { found });
        }
        let (saved_as, asked) = (saved.visibility, config.visibility);
        let is_busy = saved.devices.iter().any(|(_, it)| it.flight.is_some());
        if saved_as != asked && (is_busy || !saved.runs.is_empty()) {
            let saved = saved_as;
            return Err(Damage::Visibility { saved, asked });
        }
        let (found, limit) = (saved.devices.len(), config.device_limit);
        if found > limit as usize {
            return Err(Damage::TooManyDevices { found, limit });
        }
        let mut hub = Self::unchecked(config, rules);
        (hub.last, hub.token) = (saved.last, saved.token);
        *hub.number = saved.number;
        let mut before = None;
        for (device, it) in saved.devices {
            let flaw = Flaw::Misplaced;
            let misplaced = Damage::Device { device, flaw };
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
                return Err(Damage::Routine { routine, flaw });
            }
            before = routine;
            let (found, limit) = (run.routine.steps.len(), hub.config.step_limit);
            if found > limit.into() {
                return Err(Damage::TooLong {
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
        // Committed routines that can be one count as one, even before they are joined.
        let limit = config.routine_limit;
        let few = hub.leave_at_most(limit as usize);
        few.map_err(|found| Damage::TooManyRoutines { found, limit })?;
        hub.rank_all();
        Ok(hub)
    }

    /// The devices on which each committed routine has a place, by id.
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
