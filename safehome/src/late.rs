//! Commands that act after their outcomes were reported as unknown (erratum H22).
//!
//! A command may be in a queue while its device is offline, and the sender gives up long before.
//! Until the device's lateness is over, its state cannot be known, and a late command could
//! overtake its own rollback. So no command is sent to the device, and its reports do not count.

use selvedge_core::{Context, NodeId, Span};

use crate::lineage::{Flight, Late};
use crate::work::Task;
use crate::{Event, Hub, LONGEST_LATENESS, Outcome, Reject, Timer, Value};

impl<V: Value> Hub<V> {
    pub(crate) fn set_lateness(&mut self, id: NodeId, lateness: Span) -> Result<(), Reject> {
        let known = self.devices.get_mut(&id);
        let device = known.ok_or(Reject::UnknownDevice(id))?;
        if lateness > LONGEST_LATENESS {
            let device = id;
            return Err(Reject::Lateness { device, lateness });
        }
        device.lateness = lateness;
        Ok(())
    }

    /// The outcome of this command is unknown.
    pub(crate) fn may_act_late(
        &mut self,
        id: NodeId,
        flight: &Flight<V>,
        cx: &mut Context<'_, Self>,
    ) {
        let is_over = self.is_weak() || self.rules.unknown_is_over();
        let Some(device) = self.devices.get_mut(&id).filter(|_| !is_over) else {
            // No command acts late under these rules.
            return;
        };
        let span = device.lateness;
        if span > Span::ZERO {
            *device.since = cx.now();
            device.late = Some(Late {
                token: flight.token,
                value: flight.value.clone(),
                span,
            });
            cx.arm(Timer::Late(id), span);
        }
    }

    /// Returns true if this is the outcome of a command that was taken to be unknown; then it is
    /// handled.
    pub(crate) fn on_late_outcome(
        &mut self,
        id: NodeId,
        token: u64,
        outcome: Outcome,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let Some(device) = self.devices.get_mut(&id) else {
            // `check_token` refuses it.
            return false;
        };
        let is_certain = outcome != Outcome::Unknown;
        let is_its = |late: &mut Late<V>| is_certain && late.token == token;
        let Some(late) = device.late.take_if(is_its) else {
            // It is no late outcome.
            return false;
        };
        if outcome == Outcome::Done {
            device.actual = Some(late.value);
            // The device obeys.
            (device.is_stuck, device.attempts) = (false, 0);
        }
        cx.disarm(Timer::Late(id));
        self.work.enqueue(Task::Device(id));
        true
    }

    /// No command acts late any more.
    pub(crate) fn on_late_over(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let timeout = self.timeout(id);
        let Some(device) = self.devices.get_mut(&id) else {
            // A stray tick.
            return;
        };
        device.late = None;
        if let Some(flight) = &device.flight {
            cx.event(Event::Ask {
                device: id,
                token: flight.token,
            });
            cx.arm(Timer::Timeout(id), timeout);
        }
        self.work.enqueue(Task::Device(id));
    }
}
