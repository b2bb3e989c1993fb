//! The state of a hub, and its queries.

use alloc::collections::BTreeSet;
#[cfg(feature = "check")]
use alloc::vec::Vec;

use selvedge_core::{NodeId, Untracked};

#[cfg(feature = "check")]
use crate::Timer;
use crate::devices::Devices;
use crate::join::Tally;
use crate::lineage::Device;
use crate::published::Rules;
use crate::run::{Run, Stage};
use crate::runs::Runs;
use crate::schedule::{Ranks, Waiting};
use crate::work::Work;
use crate::{Config, ConfigError, Counters, RoutineId, Value};

/// The state machine of a hub: it accepts routines and decides which command goes to which device
/// and when.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hub<V> {
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) devices: Devices<V>,
    /// The unfinished routines, and the committed ones with an unfinished one before them.
    pub(crate) runs: Runs<V>,
    /// The number of the last routine that was accepted.
    pub(crate) last: RoutineId,
    /// The last number that was given to a command.
    pub(crate) token: u64,
    /// The number of its state: the steps that it has taken, including the ones before it was
    /// restored.
    pub(crate) number: Untracked<u64>,
    pub(crate) waiting: Untracked<Waiting>,
    pub(crate) ranks: Untracked<Ranks>,
    pub(crate) tally: Untracked<Tally>,
    /// The routines that are held back: derived from their stages.
    pub(crate) held: Untracked<BTreeSet<RoutineId>>,
    /// The tasks of the current step.
    pub(crate) work: Untracked<Work>,
    pub(crate) counters: Untracked<Counters>,
}

impl<V: Value> Hub<V> {
    /// A hub without devices; the application adds them.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(config, Rules::default()))
    }

    /// A hub that follows these published rules in place of this crate's.
    ///
    /// # Errors
    /// The first setting that cannot work.
    #[cfg(feature = "check")]
    pub fn published(config: Config, rules: &[crate::Published]) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(config, Rules::published(rules)))
    }

    pub(crate) fn unchecked(config: Config, rules: Rules) -> Self {
        Self {
            config,
            rules,
            devices: Devices::new(config.device_limit as usize),
            runs: Runs::new(),
            last: RoutineId(0),
            token: 0,
            number: Untracked::default(),
            waiting: Untracked::default(),
            ranks: Untracked::default(),
            tally: Untracked::default(),
            held: Untracked::default(),
            work: Untracked::default(),
            counters: Untracked::default(),
        }
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The state that a device is in, as far as is known.
    #[must_use]
    pub fn state(&self, device: NodeId) -> Option<&V> {
        self.devices.get(&device)?.actual.as_ref()
    }

    /// Returns true if a device is up, as far as is known.
    #[must_use]
    pub fn is_up(&self, device: NodeId) -> bool {
        self.devices.get(&device).is_some_and(|it| it.is_up)
    }

    /// The number of the command in flight to a device. After a restart, a command that was in
    /// flight still is, until the device has been asked.
    #[must_use]
    pub fn in_flight(&self, device: NodeId) -> Option<u64> {
        Some(self.devices.get(&device)?.flight.as_ref()?.token)
    }

    /// Returns true if no command is in flight and no routine waits for a live device: all routines
    /// are finished and all rollbacks done, except the rollbacks of devices that are down or
    /// [stuck](crate::Event::Stuck).
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let is_at_rest = |it: &Device<V>| {
            let is_tried_again = it.is_up && it.rests && it.needs_rollback();
            it.flight.is_none() && it.late.is_none() && !is_tried_again
        };
        self.runs.is_empty() && self.devices.iter().all(|(_, it)| is_at_rest(it))
    }

    /// The routines that are not finished, with the number of the next command.
    pub fn unfinished(&self) -> impl Iterator<Item = (RoutineId, u16)> + '_ {
        let open = |(_, run): &(&RoutineId, &Run<V>)| run.stage != Stage::Committed;
        self.runs.iter().filter(open).map(|(&id, run)| (id, run.at))
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// The timers that may be armed.
    #[cfg(feature = "check")]
    pub(crate) fn timers(&self) -> Vec<Timer> {
        let kinds = [
            Timer::Timeout,
            Timer::Hold,
            Timer::Retry,
            Timer::Lease,
            Timer::Late,
        ];
        let devices = self.devices.iter().map(|(&id, _)| id);
        let timers = devices.flat_map(|id| kinds.map(|kind| kind(id)));
        let waiting = self.runs.keys().map(|&id| Timer::Patience(id));
        timers.chain(waiting).collect()
    }
}
