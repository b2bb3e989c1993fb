//! The plan of a run.

use selvedge_core::{NodeId, Span, Time};
use selvedge_routine::State;
use selvedge_routine::file::Home;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_safehome::Config;

/// The plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Devices, routines and triggers.
    pub home: Home,
    /// The arrivals of routines.
    pub arrivals: Vec<(Time, usize)>,
    /// The outages of devices. A device is down during any of its outages.
    pub outages: Vec<Outage>,
    /// Changes of devices' states by hand: a sensor detects something, a button is pressed. A
    /// device that is down stays as it is.
    pub hands: Vec<(Time, NodeId, State)>,
    /// The hub's settings.
    pub config: Config,
    /// The time of the local clock at the start. With it the triggers of the home run.
    pub clock: Option<TimeOfDay>,
    /// The time until which triggers run.
    pub length: Span,
}

/// An outage of a device. The device's state survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The device.
    pub device: NodeId,
    /// The beginning.
    pub from: Time,
    /// The end.
    pub until: Time,
}

impl Outage {
    /// Merges outages of one device that overlap or follow each other at once. Otherwise the device
    /// would be up after the first outage, though another one continues.
    pub(super) fn merged(outages: &[Self]) -> Vec<Self> {
        let mut sorted = outages.to_vec();
        sorted.sort_by_key(|it| (it.device, it.from));
        let mut merged: Vec<Self> = Vec::new();
        for outage in sorted {
            match merged.last_mut() {
                Some(last) if last.device == outage.device && outage.from <= last.until => {
                    last.until = last.until.max(outage.until);
                }
                _ => merged.push(outage),
            }
        }
        merged
    }
}
