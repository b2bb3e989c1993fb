//! Devices, and the tasks of leaders' hosts.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Time};
use selvedge_routine::State;

use crate::devices::{Event, Ticket};

#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) value: State,
    pub(super) is_up: bool,
}

/// A task of a host.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// The seat, and its life.
    pub(super) at: usize,
    pub(super) me: Member,
    pub(super) given: Time,
    /// True if the leader gave it in time.
    pub(super) is_in_time: bool,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Ping(NodeId),
    Act(Ticket, State),
}

/// The number of tasks that wait; the oldest ones are forgotten.
const TASKS: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Home {
    pub(super) devices: BTreeMap<NodeId, Device>,
    pub(super) tasks: Vec<Task>,
    /// For each command, the number of times that a host got it, and that its device did it, or
    /// failed.
    pub(super) given: BTreeMap<Ticket, u64>,
    pub(super) done: BTreeMap<Ticket, u64>,
    pub(super) failed: BTreeMap<Ticket, u64>,
}

impl Home {
    pub(super) fn new(devices: impl Iterator<Item = NodeId>) -> Self {
        let value: State = "off".into();
        let like = |id| {
            let value = value.clone();
            (id, Device { value, is_up: true })
        };
        Self {
            devices: devices.map(like).collect(),
            ..Self::default()
        }
    }

    pub(super) fn on_event(
        &mut self,
        (at, me): (usize, Member),
        given: Time,
        event: &Event,
        is_in_time: bool,
    ) {
        let what = match event {
            Event::Ping { device } => What::Ping(*device),
            Event::Act { ticket, value } => {
                *self.given.entry(*ticket).or_default() += 1;
                What::Act(*ticket, value.clone())
            }
            Event::Status { .. } | Event::Full { .. } => return,
        };
        if self.tasks.len() >= TASKS {
            self.tasks.remove(0);
        }
        self.tasks.push(Task {
            at,
            me,
            given,
            is_in_time,
            what,
        });
    }

    /// The device does a command, if it runs.
    pub(super) fn act(&mut self, ticket: Ticket, value: &State, succeeds: bool) -> bool {
        let device = self.devices.get_mut(&ticket.device);
        let Some(device) = device.filter(|it| it.is_up) else {
            return false;
        };
        if succeeds {
            device.value.clone_from(value);
            *self.done.entry(ticket).or_default() += 1;
        } else {
            *self.failed.entry(ticket).or_default() += 1;
        }
        true
    }

    pub(super) fn heal(&mut self) {
        for device in self.devices.values_mut() {
            device.is_up = true;
        }
    }
}
