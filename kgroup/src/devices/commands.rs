//! What a leader does about commands.

use selvedge_core::NodeId;

use super::act::{Act, Ticket};
use super::event::{Event, Timer};
use super::leader::{DeviceLeader, Out};
use super::probe::Given;
use super::state::Devices;
use super::update::Update;
use crate::wish::Wish;
use crate::{Delivery, Outcome};

impl DeviceLeader {
    /// The host says what became of a command. Of what is not under way it may say so, too: that
    /// changes nothing.
    pub(crate) fn acted(&mut self, ticket: Ticket, outcome: Outcome, out: &mut Out) {
        let Ticket { device, number } = ticket;
        let given = self.probe(device).and_then(|it| it.given.as_mut());
        let given = given.filter(|it| it.number == number);
        let is_shared = given.as_ref().is_some_and(|it| it.is_shared);
        if let Some(given) = given {
            given.outcome.get_or_insert(outcome);
        }
        if outcome == Outcome::Done
            && let Some(probe) = self.probe(device)
        {
            probe.on_done();
        }
        if !is_shared {
            self.say_outcome(ticket, outcome, out);
        }
    }

    fn say_outcome(&self, ticket: Ticket, outcome: Outcome, out: &mut Out) {
        let Ticket { device, number } = ticket;
        out.push(Wish::Propose(Update::Acted {
            device,
            number,
            outcome,
            by: self.me,
        }));
    }

    /// A device is to do something: it was decided now.
    pub(super) fn on_gives(&mut self, state: &Devices, device: NodeId, number: u64, out: &mut Out) {
        let Some(act) = under_way(state, device, number) else {
            return; // It has ended since: the state may be later.
        };
        let given = self.probe(device).and_then(|it| it.given);
        if given.is_some_and(|it| it.number == number) {
            return; // This leader found it when it began, and may have taken it over.
        }
        if act.by == self.me {
            self.give(device, act, false, out);
        } else {
            self.on_found(device, act, out);
        }
    }

    /// A command that another leader may have given, or this node when it led before.
    ///
    /// What is found may be over: the state may be behind. So another leader's command is given again
    /// only when the group has decided that this leader sees to it.
    pub(super) fn on_found(&mut self, device: NodeId, act: &Act, out: &mut Out) {
        if !act.is_under_way() {
            return;
        }
        self.wait_for(device, act, (false, true), out);
        if act.by != self.me {
            self.take_over(device, act.number, out);
        }
    }

    fn take_over(&self, device: NodeId, number: u64, out: &mut Out) {
        let by = self.me;
        out.push(Wish::Propose(Update::TakeOver { device, number, by }));
    }

    /// A leader, perhaps this one, sees to a command that another one may have given.
    pub(super) fn on_taken_over(
        &mut self,
        state: &Devices,
        device: NodeId,
        number: u64,
        out: &mut Out,
    ) {
        let Some(act) = under_way(state, device, number) else {
            return; // It has ended since.
        };
        if act.by != self.me {
            return self.on_found(device, act, out);
        }
        match act.delivery {
            Delivery::AtLeastOnce => self.give(device, act, true, out),
            Delivery::AtMostOnce => self.wait_for(device, act, (false, true), out),
        }
    }

    fn give(&mut self, device: NodeId, act: &Act, is_shared: bool, out: &mut Out) {
        let number = act.number;
        out.push(Wish::Event(Event::Act {
            ticket: Ticket { device, number },
            value: act.value.clone(),
        }));
        self.wait_for(device, act, (true, is_shared), out);
    }

    fn wait_for(
        &mut self,
        device: NodeId,
        act: &Act,
        (is_given, is_shared): (bool, bool),
        out: &mut Out,
    ) {
        if let Some(probe) = self.probe(device) {
            probe.given = Some(Given {
                number: act.number,
                is_given,
                outcome: None,
                is_shared,
            });
        }
        // Another leader may have learned late that it was to give it, and its host may be late as well.
        let timeouts = if is_shared { 2 } else { 1 };
        let after = self.config.act_timeout * timeouts;
        let timer = Timer::Act(device);
        out.push(Wish::Arm { timer, after });
    }

    /// It is known what became of a command.
    pub(super) fn on_ended(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let is_under_way = state.act(device).is_some_and(Act::is_under_way);
        let Some(probe) = self.probe(device) else {
            return;
        };
        if !is_under_way && probe.given.take().is_some() {
            out.push(Wish::Disarm(Timer::Act(device)));
        }
    }

    pub(super) fn on_act_overdue(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let Some(act) = state.act(device).filter(|it| it.is_under_way()) else {
            return; // A stray tick.
        };
        let number = act.number;
        if act.by != self.me {
            self.arm(Timer::Act(device), out);
            return self.take_over(device, number, out);
        }
        let Some(probe) = self.probe(device) else {
            return;
        };
        let given = probe.given.filter(|it| it.number == number);
        let outcome = given.and_then(|it| it.outcome);
        let is_given = given.is_some_and(|it| it.is_given);
        if !is_given && outcome.is_none() && act.delivery == Delivery::AtLeastOnce {
            return self.give(device, act, false, out);
        }
        let outcome = outcome.unwrap_or(Outcome::Unknown);
        probe.given = Some(Given {
            number,
            is_given: true, // Or it was to be given once.
            outcome: Some(outcome),
            is_shared: false,
        });
        self.say_outcome(Ticket { device, number }, outcome, out);
        self.arm(Timer::Act(device), out);
    }
}

/// The command of this number, if it has not ended.
fn under_way(state: &Devices, device: NodeId, number: u64) -> Option<&Act> {
    let act = state.act(device);
    act.filter(|it| it.number == number && it.is_under_way())
}
