//! Devices that sleep, and wake at an interval.

use selvedge_core::settings::{self, Setting};
use selvedge_core::{NodeId, Span};
use selvedge_groups::GroupId;

use super::Site;
use crate::ConfigError;

/// The longest wake interval: a year.
const LONGEST: Span = Span::secs(365 * 24 * 3_600);

impl Site {
    /// The same site with a device that sleeps, and wakes and reports on its own at least once in this time:
    /// above zero, up to 365 days. `None` for a device that always answers, as each device does at first.
    /// See [`devices`](crate::devices#devices-that-sleep).
    ///
    /// # Errors
    /// The site does not have the device, or the interval is out of its range.
    pub fn with_wake_interval(
        mut self,
        device: NodeId,
        interval: Option<Span>,
    ) -> Result<Self, ConfigError> {
        match interval {
            Some(interval) => self.wake_intervals.insert(device, interval),
            None => self.wake_intervals.remove(&device),
        };
        let (kind, id) = ("device", device.0);
        let known = self.devices.get(&device);
        known.ok_or(ConfigError::Absent { kind, id })?;
        self.check_wake_intervals()?;
        Ok(self)
    }

    /// The longest time between two reports of a device that sleeps; `None` for another device. O(log n).
    #[must_use]
    pub fn wake_interval(&self, device: NodeId) -> Option<Span> {
        self.wake_intervals.get(&device).copied()
    }

    /// The devices of a cluster that sleep, by id.
    pub(crate) fn wake_intervals(&self, group: GroupId) -> impl Iterator<Item = (NodeId, Span)> {
        let devices = self.devices_of_cluster(group).iter();
        devices.filter_map(|it| Some((*it, self.wake_interval(*it)?)))
    }

    /// Checks the ranges, and that the site has the devices.
    pub(super) fn check_wake_intervals(&self) -> Result<(), ConfigError> {
        self.wake_intervals.iter().try_for_each(|(&device, &it)| {
            let range = Setting::time("wake_interval", it, Span(1), LONGEST);
            settings::check(&[range])
                .map_err(|error| ConfigError::WakeInterval { device, error })?;
            let (kind, id) = ("device", device.0);
            let known = self.devices.get(&device);
            known.map(|_| ()).ok_or(ConfigError::Absent { kind, id })
        })
    }
}
