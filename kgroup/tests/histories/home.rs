//! Devices: they answer late, wrongly, or not at all, and act late.

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, NodeId, Span, Time};
use selvedge_kgroup::devices::{Event, Ticket};
use selvedge_kgroup::{Command, Outcome};
use selvedge_routine::State;

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) value: State,
    pub(crate) is_up: bool,
    /// Percent of its answers that are lost, late, and wrong.
    pub(crate) mute: u64,
    pub(crate) slow: u64,
    pub(crate) fails: u64,
}

#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) all: BTreeMap<NodeId, Device>,
    /// How often each command came to its device, and how often it did it.
    pub(crate) given: BTreeMap<Ticket, u64>,
    pub(crate) done: BTreeMap<Ticket, u64>,
    pub(crate) failed: BTreeMap<Ticket, u64>,
}

impl Devices {
    pub(crate) fn on_event(
        &mut self,
        _now: Time,
        event: &Event,
        rng: &mut ChaCha8Rng,
    ) -> Option<(Span, Command)> {
        match event {
            Event::Ping { device } => {
                let device_ = self.all.get(device)?;
                let answers = device_.is_up && rng.below(100) >= device_.mute;
                let after = delay(device_, rng);
                let value = Some(device_.value.clone());
                let device = *device;
                answers.then_some((after, Command::Reported { device, value }))
            }
            Event::Act { ticket, value } => {
                *self.given.entry(*ticket).or_default() += 1;
                let device = self.all.get_mut(&ticket.device)?;
                if !device.is_up {
                    return None;
                }
                let outcome = if rng.below(100) < device.fails {
                    *self.failed.entry(*ticket).or_default() += 1;
                    Outcome::Failed
                } else {
                    device.value.clone_from(value);
                    *self.done.entry(*ticket).or_default() += 1;
                    Outcome::Done
                };
                let says = rng.below(100) >= device.mute;
                let after = delay(device, rng);
                let ticket = *ticket;
                says.then_some((after, Command::Acted { ticket, outcome }))
            }
            _ => None,
        }
    }

    pub(crate) fn heal(&mut self) {
        for device in self.all.values_mut() {
            device.is_up = true;
            (device.mute, device.slow, device.fails) = (0, 0, 0);
        }
    }
}

fn delay(device: &Device, rng: &mut ChaCha8Rng) -> Span {
    let most = if rng.below(100) < device.slow {
        Span::secs(4)
    } else {
        Span::millis(50)
    };
    Span(rng.below(most.0))
}
