//! Devices: their failures and restarts, the hub's detection, and the times of commands.

use selvedge_core::{Choose, Delta, Input, Member, NodeId, Span, Time};
use selvedge_routine::State;
use selvedge_safehome::{Command, Outcome, Reject};

use super::{Due, Stage, Watch};
use crate::trace::Happened;

/// The interval at which the hub pings a device, and the time that it waits for the answer (section
/// 6).
const PING: Span = Span::secs(1);
const PING_TIMEOUT: Span = Span::millis(100);
/// The shortest time that a device takes for a command; the longest is this plus a random part.
const FASTEST: Span = Span::millis(30);
const SLOWER: u64 = 70_000;

/// The actual state of a device.
#[derive(Clone, Debug)]
pub(super) struct Thing {
    pub(super) state: Option<State>,
    pub(super) is_up: bool,
    pub(super) life: u32,
    pub(super) noticed: bool,
    /// The command in progress.
    pub(super) flight: Option<(u64, State)>,
}

impl<C: Choose, W: Watch> Stage<'_, C, W> {
    /// Fails, and the hub's next ping gets no answer.
    pub(super) fn fails(&mut self, device: NodeId) {
        self.note(device, Happened::Failed);
        if let Some(thing) = self.things.get_mut(&device) {
            thing.is_up = false;
            thing.flight = None;
        }
        self.after(self.next_ping() + PING_TIMEOUT, Due::NoticeFailed(device));
    }

    /// Restarts, and answers the hub's next ping.
    pub(super) fn restarts(&mut self, device: NodeId) {
        self.note(device, Happened::Restarted);
        if let Some(thing) = self.things.get_mut(&device) {
            thing.is_up = true;
            thing.life += 1;
        }
        self.after(self.next_ping(), Due::NoticeRestarted(device));
    }

    fn next_ping(&self) -> Time {
        Time((self.now.0 / PING.0 + 1) * PING.0)
    }

    pub(super) fn notice_failed(&mut self, device: NodeId) -> Result<(), Reject> {
        let Some(thing) = self.things.get_mut(&device) else {
            return Ok(());
        };
        if !thing.is_up && !thing.noticed {
            thing.noticed = true;
            let member = Member::new(device.0, thing.life);
            self.note(device, Happened::FailureNoticed);
            self.input(Input::Membership(Delta::Failed(member)))?;
        }
        Ok(())
    }

    pub(super) fn notice_restarted(&mut self, device: NodeId) -> Result<(), Reject> {
        let Some(thing) = self.things.get_mut(&device) else {
            return Ok(());
        };
        if thing.is_up {
            thing.noticed = false;
            let member = Member::new(device.0, thing.life);
            self.note(device, Happened::RestartNoticed);
            self.input(Input::Membership(Delta::Joined(member)))?;
        }
        Ok(())
    }

    /// Sets the device by hand, and it reports the new state.
    pub(super) fn by_hand(&mut self, device: NodeId, state: State) -> Result<(), Reject> {
        let name = self.plan.home.catalogue.shown(device);
        let Some(thing) = self.things.get_mut(&device).filter(|it| it.is_up) else {
            let what = format!("{name} is down, and is not set by hand");
            self.watch.say(self.now, &what);
            return Ok(());
        };
        thing.state = Some(state.clone());
        self.watch
            .say(self.now, &format!("{name} is {state} by hand"));
        self.observed.push_back((device, state.clone()));
        self.input(Input::Command(Command::Observed { device, state }))
    }

    /// Sends the device a command, which it does soon if it is up.
    pub(super) fn notified(&mut self, device: NodeId, token: u64, state: State) {
        if let Some(thing) = self.things.get_mut(&device)
            && thing.is_up
        {
            thing.flight = Some((token, state));
            let after = FASTEST + Span(self.choices.below(SLOWER));
            self.after(self.now + after, Due::Lands(device, token));
        }
    }

    /// Completes the command of a device.
    pub(super) fn land(&mut self, device: NodeId, token: u64) -> Result<(), Reject> {
        let Some(thing) = self.things.get_mut(&device) else {
            return Ok(());
        };
        // A command from before its failure is forgotten.
        let Some((_, state)) = thing.flight.take_if(|it| it.0 == token) else {
            return Ok(());
        };
        thing.state = Some(state.clone());
        self.observed.push_back((device, state));
        self.landed(device);
        let outcome = Outcome::Done;
        self.input(Input::Command(Command::Acted {
            device,
            token,
            outcome,
        }))
    }
}
