//! The devices of the building. Each answers pings with its state, and does commands.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_core::{NodeId, Span, Time};
use selvedge_kgroup::devices::Ticket;
use selvedge_routine::State;
use tokio::time::sleep;

use super::course::Arrival;
use super::site::{DEVICES, Which};
use selvedge_udp::Clock;

/// The time that a device takes for a command.
const WORK: Span = Span::millis(5);

/// All devices, with one record of the commands that reached them.
#[derive(Debug)]
pub(super) struct Rooms {
    clock: Clock,
    devices: Mutex<Devices>,
}

#[derive(Debug)]
struct Devices {
    /// The state of each, and the highest number of a command that reached it.
    states: BTreeMap<NodeId, (State, u64)>,
    arrivals: Vec<Arrival>,
}

impl Rooms {
    pub(super) fn new(clock: Clock) -> Self {
        let states = DEVICES.map(|(device, _, word)| (device, (word.into(), 0)));
        let devices = Devices {
            states: states.into(),
            arrivals: Vec::new(),
        };
        Self {
            clock,
            devices: Mutex::new(devices),
        }
    }

    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The state of a device.
    pub(super) fn look(&self, device: NodeId) -> Option<State> {
        self.devices().states.get(&device).map(|it| it.0.clone())
    }

    /// Changes the state of a device by hand.
    pub(super) fn touch(&self, device: NodeId, word: &str) {
        if let Some(known) = self.devices().states.get_mut(&device) {
            known.0 = word.into();
        }
    }

    /// Delivers a command to its device. Returns true if the device exists.
    ///
    /// The host of a failed leader may deliver a command late; a device remembers the highest
    /// number and ignores it and lower ones.
    pub(super) async fn act(&self, ticket: Ticket, value: State) -> bool {
        {
            let at = self.now();
            let Ticket { device, number } = ticket;
            let mut devices = self.devices();
            let Some(known) = devices.states.get_mut(&device) else {
                return false;
            };
            let is_done = number > known.1;
            let command = Which::command(device, &value);
            if is_done {
                *known = (value, number);
            }
            devices
                .arrivals
                .extend(command.map(|(routine, step)| Arrival {
                    at,
                    device,
                    number,
                    routine,
                    step,
                    is_done,
                }));
        }
        sleep(WORK.into()).await;
        true
    }

    /// Commands that reached the devices, in the order of arrival.
    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        self.devices().arrivals.clone()
    }

    fn devices(&self) -> MutexGuard<'_, Devices> {
        // Nothing panics while the lock is held.
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
