//! The devices: commands, answers, and silence.

use selvedge_core::{Context, Input, NodeId, Span};

use super::{Home, Thing, Tick};
use crate::{Command, Outcome, Reject, Timer};

/// Disarms the ticks of a device without a command in flight or a question of the hub.
pub(super) fn is_over(id: u64, cx: &mut Context<'_, Home>) {
    for tick in [Tick::Answers, Tick::Does, Tick::Refuses, Tick::Reports] {
        cx.disarm(tick(id));
    }
}

impl Thing {
    /// Receives a command, to be done if the device is up.
    pub(super) fn is_sent(
        &mut self,
        id: u64,
        command: (u64, u8),
        may_echo: bool,
        may_refuse: bool,
        cx: &mut Context<'_, Home>,
    ) {
        self.flight = Some(command);
        self.is_done = false;
        if self.is_down {
            return;
        }
        cx.arm(Tick::Does(id), Span::ZERO);
        if may_echo {
            cx.arm(Tick::Reports(id), Span::ZERO);
        }
        if may_refuse {
            cx.arm(Tick::Refuses(id), Span::ZERO);
        }
    }

    /// Receives a question, to be answered when the device is up.
    pub(super) fn is_asked(&mut self, id: u64, token: u64, cx: &mut Context<'_, Home>) {
        self.asked = Some(token);
        if !self.is_down {
            cx.arm(Tick::Answers(id), Span::ZERO);
        }
    }

    /// Decides whether its command is done or not; or lets it act late, if that is possible.
    fn is_decided(&mut self, id: u64, may_be_late: bool, cx: &mut Context<'_, Home>) {
        let is_done = core::mem::take(&mut self.is_done);
        let Some((_, value)) = self.flight.take().filter(|_| !is_done) else {
            return;
        };
        match cx.below(2 + u64::from(may_be_late)) {
            0 => {}
            1 => self.state = value,
            _ => {
                self.late = Some(value);
                cx.arm(Tick::Acts(id), Span::ZERO);
            }
        }
    }
}

impl Home {
    /// Reports the device's state. By then it is decided whether its command was done.
    pub(super) fn answers(&mut self, id: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let lates = self.lates;
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some(token) = thing.asked.take() else {
            return Ok(());
        };
        thing.is_decided(id, lates, cx);
        let (device, state) = (NodeId(id), thing.state);
        is_over(id, cx);
        let answer = Command::Answered {
            device,
            token,
            state,
        };
        self.notify(Input::Command(answer), cx)
    }

    /// Reports this outcome of the device's command.
    pub(super) fn lands(
        &mut self,
        id: u64,
        outcome: Outcome,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some((token, value)) = thing.flight.take() else {
            return Ok(());
        };
        thing.asked = None;
        is_over(id, cx);
        thing.is_done = false;
        if outcome == Outcome::Done {
            thing.state = value;
        }
        let device = NodeId(id);
        let command = Command::Acted {
            device,
            token,
            outcome,
        };
        match self.notify(Input::Command(command), cx) {
            // The hub no longer waits for it: this happens under published rules.
            Err(Reject::UnknownToken { .. }) => Ok(()),
            other => other,
        }
    }

    /// Does the device's command and reports its state.
    pub(super) fn reports(&mut self, id: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some((_, value)) = thing.flight else {
            return Ok(());
        };
        (thing.state, thing.is_done) = (value, true);
        cx.disarm(Tick::Refuses(id));
        let (device, state) = (NodeId(id), value);
        let report = Command::Observed { device, state };
        self.notify(Input::Command(report), cx)
    }

    /// Ends the time in which earlier commands act.
    pub(super) fn is_over_late(
        &mut self,
        device: NodeId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let id = device.0;
        if let Some(thing) = self.thing(id) {
            thing.late = None;
            thing.is_decided(id, false, cx);
        }
        cx.disarm(Tick::Acts(id));
        is_over(id, cx);
        self.notify(Input::Tick(Timer::Late(device)), cx)
    }

    /// Makes the outcome of the command unknown.
    pub(super) fn times_out(
        &mut self,
        device: NodeId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let (id, faults, lates) = (device.0, self.faults, self.lates);
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        if !thing.is_down && faults == 0 {
            // A live device answers in time.
            cx.arm(Tick::Hub(Timer::Timeout(device)), Span::secs(5));
            return Ok(());
        }
        let is_fault = !thing.is_down;
        thing.is_decided(id, lates, cx);
        thing.asked = None;
        if is_fault {
            self.faults -= 1;
        }
        is_over(id, cx);
        self.notify(Input::Tick(Timer::Timeout(device)), cx)
    }
}
