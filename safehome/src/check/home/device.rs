//! What devices do: commands, answers, and nothing.

use selvedge_core::{Context, Input, NodeId, Span};

use super::{Home, Tick};
use crate::{Command, Outcome, Reject, Timer};

impl Home {
    /// The device says in which state it is. Whether its command was done is decided by then.
    pub(super) fn answers(&mut self, id: u64, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        let Some(token) = thing.asked.take() else {
            return Ok(());
        };
        if let Some((_, value)) = thing.flight.take()
            && cx.below(2) == 1
        {
            thing.state = value;
        }
        let (device, state) = (NodeId(id), thing.state);
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        let answer = Command::Answered {
            device,
            token,
            state,
        };
        self.tell(Input::Command(answer), cx)
    }

    /// The device's command has this outcome, and it is told.
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
        cx.disarm(Tick::Answers(id));
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        if outcome == Outcome::Done {
            thing.state = value;
        }
        let device = NodeId(id);
        let command = Command::Outcome {
            device,
            token,
            outcome,
        };
        match self.tell(Input::Command(command), cx) {
            // The hub no longer waits for it: so do published rules.
            Err(Reject::UnknownToken { .. }) => Ok(()),
            other => other,
        }
    }

    /// Nobody knows what became of the command.
    pub(super) fn times_out(
        &mut self,
        device: NodeId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let (id, faults) = (device.0, self.faults);
        let Some(thing) = self.thing(id) else {
            return Ok(());
        };
        if !thing.is_down && faults == 0 {
            // A live device answers in time.
            cx.arm(Tick::Hub(Timer::Timeout(device)), Span::secs(5));
            return Ok(());
        }
        let is_fault = !thing.is_down;
        let flight = thing.flight.take();
        thing.asked = None;
        if let Some((_, value)) = flight
            && cx.below(2) == 1
        {
            thing.state = value;
        }
        if is_fault {
            self.faults -= 1;
        }
        cx.disarm(Tick::Answers(id));
        cx.disarm(Tick::Does(id));
        cx.disarm(Tick::Refuses(id));
        self.tell(Input::Tick(Timer::Timeout(device)), cx)
    }
}
