//! The hub's state as something that can be stored, and back.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span, Time};
use thiserror::Error;

use crate::config::Visibility;
use crate::failure::KEPT;
use crate::lineage::{Device, Entry, Owner};
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::schedule::stays_first;
use crate::{Config, ConfigError, Hub, LONGEST_LATENESS, RoutineId, Step, Value};

/// The layout of [`Saved`]; another one is not read.
const VERSION: u16 = 2;

/// Routines and commands are numbered from 1 on; nobody gets as far as this.
const LAST_NUMBER: u64 = 1 << 63;

/// The whole state of a hub: what is unfinished, what is on its way, what is to be undone.
///
/// With the feature `serde` it can be stored in any format; the version comes first in it. It holds
/// no timers and no times: those belong to a clock that is gone. Settings are not in it either, but
/// for the visibility model, which cannot change while routines are unfinished.
///
/// # What a host does
/// 1. After each step it stores [`Hub::save`] and waits until that is safe; then it carries out the
///    step's events. A tick without events need not be stored; a command without events must be,
///    for what was [observed](crate::Command::Observed) may not be told a second time.
/// 2. When it starts again it calls [`Hub::restore`], sends
///    [`Command::Resume`](crate::Command::Resume) before anything else, and then tells the hub which
///    devices are up and which are not, as its membership service sees it now.
/// 3. It answers each [`Event::Ask`](crate::Event::Ask).
///
/// | the host stops | what becomes of it |
/// |---|---|
/// | before the step is stored | the step has not happened, and nobody has seen anything of it. An outcome that it reported is asked for. A routine that it submitted was not [accepted](crate::Event::Accepted): its user submits it again |
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
    version: u16,
    visibility: Visibility,
    last: RoutineId,
    token: u64,
    devices: Vec<(NodeId, Device<V>)>,
    runs: Vec<(RoutineId, Run<V>)>,
}

/// Why a stored state was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum RestoreError {
    /// Stored by another version of this crate.
    #[error("the state has layout {found} and {VERSION} is read: use the version that stored it")]
    Version {
        /// Its layout.
        found: u16,
    },
    /// The settings cannot work.
    #[error("the settings were not taken: {0}")]
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
        /// How many there are.
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
    /// The last routine or command has a number that no hub gets to.
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
pub enum Flaw {
    /// Ids come in order, once each, and are those that were given.
    #[error("it stands where another one belongs")]
    Misplaced,
    /// A routine that nobody knows, or that is not on its way, has a place.
    #[error("a routine has a place that it cannot have")]
    Stranger,
    /// A routine has two places on one device.
    #[error("a routine has two places")]
    TwoPlaces,
    /// Who released the device comes first, then who uses it, then who waits (invariants 2 and 3).
    #[error("released, used and planned places are mixed")]
    Mixed,
    /// Two changes by hand, one after the other: the second one makes the first one void.
    #[error("two changes by hand stand side by side")]
    Hands,
    /// What is said of a place contradicts itself.
    #[error("a place contradicts itself")]
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
    /// One of its commands has a timeout of 0.
    #[error("one of its commands has a timeout of 0")]
    NoTime,
    /// It needs a device that nobody knows.
    #[error("it needs a device that is unknown")]
    UnknownDevice,
    /// It needs a device, and would never get it.
    #[error("it has no place on a device that it needs")]
    NoPlace,
    /// It is at a point to which it cannot come.
    #[error("it is where it cannot be")]
    Stage,
    /// A command that may still act and is not from before, or on a device that does something else
    /// or whose state is known.
    #[error("a command that may still act does not agree with its device")]
    Late,
    /// The visibility model does not let it run beside others.
    #[error("it runs beside another one")]
    Beside,
}

impl<V: Value> Hub<V> {
    /// The state, to be stored. Takes time and memory in proportion to it.
    #[must_use]
    pub fn save(&self) -> Saved<V> {
        let timeless = |device: &Device<V>| {
            let mut device = device.clone();
            for entry in &mut device.lineage {
                entry.start = Time::ZERO;
            }
            device
        };
        // What follows from the routine is not stored.
        let bare = |run: &Run<V>| Run {
            devices: Vec::new(),
            sets: Vec::new(),
            ..run.clone()
        };
        let devices = self.devices.iter();
        let runs = self.runs.iter();
        Saved {
            version: VERSION,
            visibility: self.config.visibility,
            last: self.last,
            token: self.token,
            devices: devices.map(|(&id, it)| (id, timeless(it))).collect(),
            runs: runs.map(|(&id, it)| (id, bare(it))).collect(),
        }
    }

    /// A hub with a stored state. Send it [`Command::Resume`](crate::Command::Resume) first.
    ///
    /// Other settings than before will do, but for the visibility model while routines are
    /// unfinished or a rollback is on its way. A weak hub restores nothing: rollbacks that are pending
    /// rest as long as it is one. What is counted begins at zero. Takes O(p l), with p the places that routines have
    /// on devices and l the most on one device.
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
        let (found, limit) = (saved.runs.len(), config.routine_limit);
        if found > limit as usize {
            return Err(RestoreError::TooManyRoutines { found, limit });
        }
        let mut hub = Self::unchecked(config, rules);
        (hub.last, hub.token) = (saved.last, saved.token);
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
            run.find_devices();
            if run.stage == Stage::Waiting {
                let stays_first = stays_first(&hub.config, hub.rules, &run);
                hub.waiting.join(routine, &run.devices, stays_first);
            }
            hub.runs.insert(routine, run);
        }
        hub.audit()?;
        Ok(hub)
    }

    /// Whether a hub can have come into this state: what holds after each step.
    ///
    /// # Errors
    /// The first thing that is wrong.
    #[cfg(feature = "check")]
    pub fn check(&self) -> Result<(), RestoreError> {
        self.audit()
    }

    fn audit(&self) -> Result<(), RestoreError> {
        for number in [self.last.0, self.token] {
            if number >= LAST_NUMBER {
                return Err(RestoreError::Number(number));
            }
        }
        for (&routine, run) in &self.runs {
            let sound = self.sound_run(routine, run);
            sound.map_err(|flaw| RestoreError::Routine { routine, flaw })?;
        }
        for (&device, it) in self.devices.iter() {
            let sound = self.sound_device(device, it);
            sound.map_err(|flaw| RestoreError::Device { device, flaw })?;
        }
        let flights = self.devices.iter().filter_map(|(&device, it)| {
            let flight = it.flight.as_ref()?;
            Some((flight.token, device))
        });
        let mut flights: Vec<(u64, NodeId)> = flights.collect();
        flights.sort_unstable();
        for pair in flights.windows(2) {
            if let &[(first, _), (second, device)] = pair
                && first == second
            {
                let flaw = Flaw::Command;
                return Err(RestoreError::Device { device, flaw });
            }
        }
        let is_strict = matches!(
            self.config.visibility,
            Visibility::GlobalStrict | Visibility::StrongGlobalStrict
        );
        let mut active = self.runs.iter().filter(|(_, run)| run.is_active()).skip(1);
        if let (true, Some((&routine, _))) = (is_strict, active.next()) {
            let flaw = Flaw::Beside;
            return Err(RestoreError::Routine { routine, flaw });
        }
        self.acyclic()
    }

    fn sound_run(&self, id: RoutineId, run: &Run<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        must(id.0 > 0 && id <= self.last, Flaw::Misplaced)?;
        must(!run.routine.steps.is_empty(), Flaw::Step)?;
        let in_no_time = |it: &Step<V>| it.timeout == Some(Span::ZERO);
        must(!run.routine.steps.iter().any(in_no_time), Flaw::NoTime)?;
        let is_known = |it: &NodeId| self.devices.contains(it);
        must(run.devices.iter().all(is_known), Flaw::UnknownDevice)?;
        let is_over = usize::from(run.at) == run.routine.steps.len();
        must(is_over || run.step().is_some(), Flaw::Step)?;
        must(is_over == (run.stage == Stage::Committed), Flaw::Stage)?;
        let is_asked = run.step().is_some_and(|it| it.condition.is_some());
        must(!run.tested || is_asked, Flaw::Stage)?;
        let mut places = run.devices.iter();
        match run.stage {
            Stage::Waiting => {
                let is_new = run.at == 0 && !run.tested && run.busy.is_none();
                must(is_new && !self.is_weak(), Flaw::Stage)?;
                return Ok(());
            }
            Stage::Committed => {
                // Nobody would take it out.
                let is_left = places.any(|at| self.place_of(id, *at).is_some());
                return must(is_left && run.busy.is_none(), Flaw::Stage);
            }
            Stage::Placed => must(run.busy.is_none(), Flaw::Stage)?,
            Stage::Running => {}
            // It is undone as soon as nothing is on its way.
            Stage::Aborting(_) => must(run.busy.is_some(), Flaw::Stage)?,
        }
        if let Some(at) = run.busy {
            must(run.step().is_some_and(|it| it.device == at), Flaw::Command)?;
            let device = self.devices.get(&at).ok_or(Flaw::UnknownDevice)?;
            let ours = device.flight.as_ref().and_then(|it| it.routine);
            let is_held = device.held == Some(id) && run.stage == Stage::Running;
            must(ours == Some(id) || is_held, Flaw::Command)?;
        }
        let lacks = |at: &NodeId| {
            let is_next = run.step().is_some_and(|step| step.device == *at);
            let is_needed = if self.is_weak() {
                is_next
            } else {
                run.still_needs(*at)
            };
            is_needed && self.place_of(id, *at).is_none()
        };
        must(!places.any(lacks), Flaw::NoPlace)
    }

    fn sound_device(&self, id: NodeId, device: &Device<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        // All that have touched it come before all that have not; of routines, those that released
        // it come first, and one uses it.
        let entries = || device.lineage.iter();
        must(entries().map(|it| !it.touched).is_sorted(), Flaw::Mixed)?;
        let routines = || entries().filter(|it| it.routine().is_some());
        must(routines().map(|it| !it.released).is_sorted(), Flaw::Mixed)?;
        let uses = |it: &&Entry<V>| it.touched && !it.released;
        must(routines().filter(uses).count() <= 1, Flaw::Mixed)?;
        let is_event = |it: &&Entry<V>| matches!(it.owner, Owner::Failed | Owner::Restarted);
        must(entries().filter(is_event).count() <= KEPT, Flaw::Failures)?;
        let is_hand = |it: &Entry<V>| it.owner == Owner::Hand;
        let mut pairs = entries().zip(entries().skip(1));
        let is_joined = !pairs.any(|(first, second)| is_hand(first) && is_hand(second));
        must(is_joined, Flaw::Hands)?;
        let is_partitioned = self.config.visibility == Visibility::PartitionedStrict;
        let waits = routines().filter(|it| !it.released).count();
        must(!is_partitioned || waits <= 1, Flaw::Beside)?;
        let mut owners: Vec<RoutineId> = entries().filter_map(Entry::routine).collect();
        owners.sort_unstable();
        must(
            !owners.windows(2).any(|it| it.first() == it.last()),
            Flaw::TwoPlaces,
        )?;
        for entry in &device.lineage {
            self.sound_entry(id, entry)?;
        }
        let is_in_use = |routine| {
            let entry = device.entry(routine);
            device.head() == Some(routine) && entry.is_some_and(|it| it.touched)
        };
        if let Some(late) = &device.late {
            let is_given = late.token > 0 && late.token <= self.token;
            let is_timed = late.span > Span::ZERO && late.span <= LONGEST_LATENESS;
            must(is_given && is_timed, Flaw::Late)?;
            let rests = device.flight.is_none() && device.held.is_none();
            must(rests && device.actual.is_none(), Flaw::Late)?;
        }
        must(device.lateness <= LONGEST_LATENESS, Flaw::Late)?;
        if let Some(flight) = &device.flight {
            must(
                flight.token > 0 && flight.token <= self.token,
                Flaw::Command,
            )?;
            must(device.held.is_none(), Flaw::Command)?;
            match flight.routine {
                None => must(!self.is_weak(), Flaw::Command)?,
                Some(routine) => {
                    let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
                    let is_its = run.step().is_some_and(|it| it.value == flight.value);
                    must(is_its && run.busy == Some(id), Flaw::Command)?;
                    must(is_in_use(routine), Flaw::Command)?;
                }
            }
        }
        if let Some(routine) = device.held {
            let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
            let is_long = run.step().is_some_and(|it| it.hold > Span::ZERO);
            must(is_long && run.busy == Some(id), Flaw::Command)?;
            must(is_in_use(routine), Flaw::Command)?;
        }
        Ok(())
    }

    fn sound_entry(&self, at: NodeId, entry: &Entry<V>) -> Result<(), Flaw> {
        let must = |holds: bool, flaw| if holds { Ok(()) } else { Err(flaw) };
        let is_plain = entry.undo.is_none() && !entry.doubtful && !entry.leased && !entry.revoked;
        let has_happened = entry.touched && entry.released && is_plain;
        let routine = match entry.owner {
            Owner::Hand => return must(has_happened && entry.wrote.is_some(), Flaw::Place),
            Owner::Failed | Owner::Restarted => {
                return must(has_happened && entry.wrote.is_none(), Flaw::Place);
            }
            Owner::Routine(routine) => routine,
        };
        let run = self.runs.get(&routine).ok_or(Flaw::Stranger)?;
        must(run.devices.contains(&at), Flaw::Stranger)?;
        must(run.stage != Stage::Waiting, Flaw::Stranger)?;
        must(entry.touched || entry.wrote.is_none(), Flaw::Place)?;
        let has_written = entry.wrote.is_some() || entry.doubtful;
        must(has_written || entry.undo.is_none(), Flaw::Place)?;
        must(entry.touched || !entry.doubtful, Flaw::Place)?;
        must(entry.touched || !entry.released, Flaw::Place)?;
        must(entry.leased || !entry.revoked, Flaw::Place)?;
        let is_eventual = self.config.visibility == Visibility::Eventual;
        let may_lease = is_eventual && entry.length > Span::ZERO;
        must(may_lease || !entry.leased, Flaw::Place)?;
        if run.stage == Stage::Committed {
            return must(entry.released, Flaw::Place);
        }
        if self.is_weak() {
            let is_next = run.step().is_some_and(|step| step.device == at);
            return must(is_next && !entry.released, Flaw::Place);
        }
        let may_release = is_eventual && !run.still_needs(at);
        must(!entry.released || may_release, Flaw::Place)?;
        must(entry.touched || run.still_needs(at), Flaw::Place)
    }

    /// Invariant 4, over all routines: none comes before itself, by way of any others.
    fn acyclic(&self) -> Result<(), RestoreError> {
        let mut waits: BTreeMap<RoutineId, usize> = self.runs.keys().map(|&id| (id, 0)).collect();
        let mut behind: BTreeMap<RoutineId, Vec<RoutineId>> = BTreeMap::new();
        for (_, device) in self.devices.iter() {
            let owners = || device.lineage.iter().filter_map(Entry::routine);
            for (first, second) in owners().zip(owners().skip(1)) {
                behind.entry(first).or_default().push(second);
                if let Some(waits) = waits.get_mut(&second) {
                    *waits += 1;
                }
            }
        }
        let is_first = |(_, waits): &(&RoutineId, &usize)| **waits == 0;
        let mut next: Vec<RoutineId> = waits.iter().filter(is_first).map(|it| *it.0).collect();
        while let Some(routine) = next.pop() {
            waits.remove(&routine);
            for after in behind.remove(&routine).unwrap_or_default() {
                if let Some(waits) = waits.get_mut(&after) {
                    *waits -= 1;
                    if *waits == 0 {
                        next.push(after);
                    }
                }
            }
        }
        match waits.keys().next() {
            None => Ok(()),
            Some(&routine) => Err(RestoreError::Order(routine)),
        }
    }
}
