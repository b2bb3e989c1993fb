//! What is to happen.

use selvedge_core::{NodeId, Span, Time};
use selvedge_routine::State;
use selvedge_routine::file::Home;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_safehome::Config;

/// What is to happen.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Devices, routines and triggers.
    pub home: Home,
    /// Which routines arrive when.
    pub arrivals: Vec<(Time, usize)>,
    /// Which devices are down when. A device is down as long as any outage says so.
    pub outages: Vec<Outage>,
    /// Which devices come into which states by hand when: a sensor sees something, a button is pressed. A device
    /// that is down stays as it is.
    pub hands: Vec<(Time, NodeId, State)>,
    /// The hub's settings.
    pub config: Config,
    /// What the local clock shows at the start. With it the triggers of the home run.
    pub clock: Option<TimeOfDay>,
    /// Until when triggers run.
    pub length: Span,
}

/// A device is down for a while. Its state survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Which device.
    pub device: NodeId,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl Outage {
    /// Merges outages of one device that overlap or follow each other at once. Otherwise the device
    /// would be back at the end of the first outage, though another one says that it is down.
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
