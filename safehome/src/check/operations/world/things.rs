//! The devices, and their reports to the hub.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, Incarnation, Member, NodeId, Span};

use super::super::oracle::Link;
use super::{Flying, HUB, World};
use crate::{Command, Outcome, RoutineId, Urgency};

impl World<'_> {
    /// Does the device's command, or refuses it, and reports the outcome; or answers.
    pub(super) fn land(&mut self, nth: usize, outcome: Outcome) -> Result<(), String> {
        let Some(thing) = self.things.get(nth).filter(|it| it.is_up) else {
            return Ok(());
        };
        if thing.late.is_some() && self.bytes.pick(2) == 0 {
            return self.acts_late(nth);
        }
        let flight = thing.flight.filter(|it| !it.is_over);
        if thing.asked.is_some() && (flight.is_none() || self.bytes.pick(2) == 0) {
            return self.answer(nth);
        }
        let Some(flight) = flight else {
            return Ok(());
        };
        let outcome = if flight.is_done {
            Outcome::Done
        } else {
            outcome
        };
        if outcome == Outcome::Done {
            self.takes_effect(nth)?;
        }
        if let Some(thing) = self.things.get_mut(nth) {
            (thing.flight, thing.asked) = (None, None);
        }
        let device = NodeId(nth as u64);
        let token = flight.token;
        let command = Command::Acted {
            device,
            token,
            outcome,
        };
        self.command(command)
    }

    /// Reports the device's state, or that the device cannot be asked. By then its command is over.
    pub(super) fn answer(&mut self, nth: usize) -> Result<(), String> {
        if self.settings.acts_unseen() {
            // The host waits, in place of the hub.
            self.nothing_acts_late(nth)?;
        }
        self.resolve(nth)?;
        let device = NodeId(nth as u64);
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let Some(token) = thing.asked.take() else {
            return Ok(());
        };
        let state = thing.state;
        if !self.settings.answers {
            let outcome = Outcome::Unknown;
            self.summary.unknown += 1;
            return self.command(Command::Acted {
                device,
                token,
                outcome,
            });
        }
        let hub = self.hub()?;
        let flight = hub.devices.get(&device).and_then(|it| it.flight.as_ref());
        let is_found = flight.is_some_and(|it| it.value == state);
        let whose = flight.and_then(|it| it.routine);
        let step = whose.and_then(|id| Some((id, hub.runs.get(&id)?.at)));
        if is_found {
            self.found.extend(step);
            self.summary.found += 1;
        } else {
            self.summary.not_found += 1;
        }
        self.command(Command::Answered {
            device,
            token,
            state,
        })
    }

    /// Does the device's command, if there is one, and reports its state. The outcome of the
    /// command is reported later, or never.
    pub(super) fn says_its_state(&mut self, nth: usize) -> Result<(), String> {
        if self.things.get(nth).is_none_or(|it| !it.is_up) {
            return Ok(());
        }
        self.takes_effect(nth)?;
        let Some(thing) = self.things.get(nth) else {
            return Ok(());
        };
        let (device, state) = (NodeId(nth as u64), thing.state);
        self.summary.echoes += u64::from(thing.flight.is_some_and(|it| it.is_done));
        self.observed(device, state)
    }

    /// Reports a device's state, and reports it again to a host that was down.
    fn observed(&mut self, device: NodeId, state: u8) -> Result<(), String> {
        let calm = core::mem::replace(&mut self.is_calm, true);
        let notified = self.command(Command::Observed { device, state });
        self.is_calm = calm;
        notified
    }

    /// Decides whether the device's command is done; no outcome is reported.
    pub(super) fn goes_over(&mut self, nth: usize) -> Result<(), String> {
        if self.bytes.pick(2) == 0 {
            self.takes_effect(nth)?;
        } else {
            self.may_act_late(nth);
        }
        if let Some(flight) = self.things.get_mut(nth).and_then(|it| it.flight.as_mut()) {
            flight.is_over = true;
        }
        Ok(())
    }

    pub(super) fn resolve(&mut self, nth: usize) -> Result<(), String> {
        let flight = self.things.get(nth).and_then(|it| it.flight);
        if flight.is_some_and(|it| !it.is_over) {
            if self.bytes.pick(2) == 0 {
                self.takes_effect(nth)?;
            } else {
                self.may_act_late(nth);
            }
        }
        if let Some(thing) = self.things.get_mut(nth) {
            thing.flight = None;
        }
        Ok(())
    }

    /// Lets the device's command remain somewhere until later.
    fn may_act_late(&mut self, nth: usize) {
        let may_be = self.settings.lateness > Span::ZERO && self.bytes.pick(2) == 0;
        let Some(thing) = self.things.get_mut(nth).filter(|_| may_be) else {
            return;
        };
        if let Some(flight) = thing.flight.filter(|it| !it.is_over && !it.is_done) {
            thing.late = Some(flight);
        }
    }

    /// Lets a command without an outcome act.
    fn acts_late(&mut self, nth: usize) -> Result<(), String> {
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let Some(late) = thing.late.take() else {
            return Ok(());
        };
        thing.state = late.value;
        self.summary.late += 1;
        if self.settings.acts_unseen() {
            // A weak hub knows as little of it as of a manual change.
            self.by_hand.insert(nth);
        }
        self.count_effect(nth, late.whose)
    }

    /// Ends the time in which earlier commands act.
    pub(super) fn nothing_acts_late(&mut self, nth: usize) -> Result<(), String> {
        if self.bytes.pick(2) == 0 {
            self.acts_late(nth)?;
        }
        if self.bytes.pick(2) == 0 {
            self.takes_effect(nth)?;
        }
        if let Some(thing) = self.things.get_mut(nth) {
            thing.late = None;
            if let Some(flight) = &mut thing.flight {
                flight.is_over = true;
            }
        }
        Ok(())
    }

    pub(super) fn takes_effect(&mut self, nth: usize) -> Result<(), String> {
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let waits = |it: &&mut Flying| !it.is_over && !it.is_done;
        let Some(flight) = thing.flight.as_mut().filter(waits) else {
            return Ok(());
        };
        flight.is_done = true;
        thing.state = flight.value;
        let whose = flight.whose;
        self.count_effect(nth, whose)
    }

    fn count_effect(&mut self, nth: usize, whose: Option<(RoutineId, u16)>) -> Result<(), String> {
        let Some(whose) = whose else {
            return Ok(());
        };
        let often = self.effects.entry(whose).or_default();
        *often += 1;
        if *often > 1 && !self.by_hand.contains(&nth) {
            return Err(format!(
                "command {} of {:?} was done twice",
                whose.1, whose.0
            ));
        }
        Ok(())
    }

    /// Lets a device fail, come back, or restart before a report of its failure.
    pub(super) fn flip(&mut self, nth: usize) -> Result<(), String> {
        let kind = self.bytes.take();
        if self.witness.chains.iter().map(Vec::len).sum::<usize>() >= self.settings.links
            && !self.is_calm
        {
            return Ok(());
        }
        self.goes_over(nth)?;
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        let unnoticed = thing.is_up && kind % 4 == 2;
        thing.is_up = unnoticed || !thing.is_up;
        if unnoticed || thing.is_up && kind % 4 == 1 {
            thing.life += 1;
        }
        self.report_status(nth)
    }

    /// Reports the membership service's knowledge of a device.
    pub(super) fn report_status(&mut self, nth: usize) -> Result<(), String> {
        let Some(thing) = self.things.get(nth) else {
            return Ok(());
        };
        let member = Member::new(nth as u64, thing.life);
        let delta = if thing.is_up {
            Delta::Joined(member)
        } else {
            Delta::Failed(member)
        };
        self.learn(delta)
    }

    /// The hub's knowledge of a device: whether it is up, and its incarnation.
    pub(super) fn believed(&self, id: NodeId) -> (bool, Option<Incarnation>) {
        let device = self
            .mesh
            .machine(HUB)
            .and_then(|it| it.hub().devices.get(&id));
        device.map_or((false, None), |it| (it.is_up, it.life))
    }

    /// Records the hub's new knowledge of a device after a step.
    pub(super) fn learned(&mut self, id: NodeId, before: (bool, Option<Incarnation>)) {
        let after = self.believed(id);
        let links: &[Link] = match (before.0, after.0) {
            (true, false) => &[Link::Failed],
            (false, true) => &[Link::Restarted],
            (true, true) if before.1.is_some() && before.1 != after.1 => {
                &[Link::Failed, Link::Restarted]
            }
            (true, true) | (false, false) => &[],
        };
        self.summary.failures += links.len() as u64;
        let nth = usize::try_from(id.0).unwrap_or(usize::MAX);
        if let Some(chain) = self.witness.chains.get_mut(nth) {
            chain.extend_from_slice(links);
        }
    }

    /// Changes a device by hand, and reports that. The new state may be the one that a command in
    /// flight asks for, and the device refuses the command.
    pub(super) fn change(&mut self, nth: usize) -> Result<(), String> {
        let kind = self.bytes.take();
        let may_refuse = kind & 8 == 8 && !self.settings.is_obedient && !self.settings.restarts;
        let known = self.witness.chains.iter().map(Vec::len).sum::<usize>();
        let Some(thing) = self.things.get_mut(nth) else {
            return Ok(());
        };
        // A command in flight counts as later than an observation, so none has been done yet.
        let is_done = thing.flight.is_some_and(|it| it.is_done);
        if !thing.is_up || is_done || known >= self.settings.links {
            return Ok(());
        }
        let refused = thing.flight.filter(|it| may_refuse && !it.is_over);
        let state = refused.map_or(100 + kind % 8, |it| it.value);
        thing.state = state;
        self.by_hand.insert(nth);
        self.summary.by_hand += 1;
        if let Some(chain) = self.witness.chains.get_mut(nth) {
            chain.push(Link::Set(state));
        }
        if self.settings.terms && kind & 16 == 16 {
            let (device, urgency) = (NodeId(nth as u64), Urgency(kind >> 6));
            let calm = core::mem::replace(&mut self.is_calm, true);
            let notified = self.command(Command::ChangedByHand {
                device,
                state,
                urgency,
            });
            self.is_calm = calm;
            notified?;
        } else {
            self.observed(NodeId(nth as u64), state)?;
        }
        if refused.is_some() {
            self.land(nth, Outcome::Refused)?;
        }
        Ok(())
    }
}
