//! A leader's part in reports of devices, and in the status for routines.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_routine::State;

use super::device::long_word;
use super::event::{Event, Reject, Timer};
use super::machine::{DeviceLeader, Out};
use super::probe::{Probe, Report};
use super::state::Devices;
use crate::Answer;
use crate::effect::Effect;

impl DeviceLeader {
    /// The host reports a device: it answered a ping, or sent its state unasked. `value` is `None`
    /// if the last state stands.
    ///
    /// # Errors
    /// The cluster has no such device, or its state is too long.
    pub fn reported(
        &mut self,
        state: &Devices,
        device: NodeId,
        value: Option<State>,
        out: &mut Out,
    ) -> Result<(), Reject> {
        let probe = self.probe(device).ok_or(Reject::NoDevice(device))?;
        let limits = state.limits();
        if let Some(found) = value.as_ref().and_then(|it| long_word(it, limits)) {
            let limit = limits.word;
            return Err(Reject::LongWord { found, limit });
        }
        probe.is_asked = false;
        probe.silent = 0;
        let report = Report { is_up: true, value };
        self.on_report(state, device, report, out);
        self.on_woke(state, device, out);
        Ok(())
    }

    pub(super) fn ping(&mut self, out: &mut Out) {
        for (device, probe) in &mut self.probes {
            if self.sleepers.contains_key(device) {
                continue;
            }
            probe.is_asked = true;
            out.push(Effect::Event(Event::Ping { device: *device }));
        }
        self.arm(Timer::Unanswered, out);
        self.arm(Timer::Ping, out);
    }

    pub(super) fn on_unanswered(&mut self, state: &Devices, out: &mut Out) {
        let misses = self.config.misses;
        let mut down = Vec::new();
        for (device, probe) in &mut self.probes {
            if core::mem::take(&mut probe.is_asked) {
                probe.silent = probe.silent.saturating_add(1);
                if probe.silent >= misses {
                    down.push(*device);
                }
            }
        }
        for device in down {
            self.on_silent(state, device, out);
        }
    }

    pub(super) fn on_silent(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let report = Report {
            is_up: false,
            value: None,
        };
        self.on_report(state, device, report, out);
    }

    fn on_report(&mut self, state: &Devices, device: NodeId, report: Report, out: &mut Out) {
        let (Some(probe), Some(status)) = (self.probe(device), state.status(device)) else {
            return;
        };
        if let Some(update) = probe.on_report(device, status, report) {
            out.push(Effect::Propose(update));
            self.arm_resend(out);
        }
    }

    pub(super) fn go_on_with_reports(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let (Some(probe), Some(status)) = (self.probe(device), state.status(device)) else {
            return;
        };
        // Reports wait, so Timer::Resend is armed.
        out.extend(probe.on_status(device, status).map(Effect::Propose));
    }

    /// Sends a device's new status to all routines that watch it.
    pub(super) fn on_changed(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        for routine in state.watchers(device) {
            self.show(state, device, routine, out);
        }
    }

    /// Sends a device's status to a routine, until it has seen it.
    pub(super) fn show(
        &mut self,
        state: &Devices,
        device: NodeId,
        routine: GroupId,
        out: &mut Out,
    ) {
        self.report_status(state, device, routine, out);
        if state.rules().notified_once() {
            return;
        }
        if let Some(probe) = self.probe(device) {
            probe.show(routine);
        }
        self.arm_resend(out);
    }

    pub(super) fn on_seen(
        &mut self,
        state: &Devices,
        device: NodeId,
        routine: GroupId,
        version: u64,
    ) {
        let latest = state.status(device).map_or(0, |it| it.version);
        let Some(probe) = self.probe(device) else {
            return;
        };
        match version >= latest {
            true => probe.on_seen(routine),
            false => probe.on_received(routine),
        }
    }

    pub(super) fn resend(&mut self, state: &Devices, out: &mut Out) {
        self.resends = false;
        let most = self.config.resend_most.0 / self.config.resend.0.max(1);
        for (device, probe) in &mut self.probes {
            let device = *device;
            for routine in probe.on_resend(most) {
                // The node that asked last may lead no longer: so the message goes through the
                // group.
                if let Some(status) = state.status(device).cloned() {
                    let answer = Answer::Status {
                        device,
                        routine,
                        status,
                    };
                    out.push(Effect::Inform {
                        group: routine,
                        answer,
                    });
                }
            }
            out.extend(probe.proposed(device).map(Effect::Propose));
        }
        let is_idle = |it: &(NodeId, Probe)| it.1.is_settled();
        if !self.probes.iter().all(is_idle) {
            self.arm_resend(out);
        }
    }

    pub(super) fn report_status(
        &self,
        state: &Devices,
        device: NodeId,
        routine: GroupId,
        out: &mut Out,
    ) {
        if let Some(status) = state.status(device).cloned() {
            let answer = Answer::Status {
                device,
                routine,
                status,
            };
            self.notify(routine, answer, out);
        }
    }

    fn arm_resend(&mut self, out: &mut Out) {
        if !core::mem::replace(&mut self.resends, true) {
            self.arm(Timer::Resend, out);
        }
    }
}
