//! A leader's part in commands.
//!
//! While one leader alone had a command, the answer of its host settles the command. After a takeover the
//! host of a former leader may carry it out late, so the device is held; the module
//! [`devices`](super) has the argument. The present leader counts the time of the hold by its own
//! clock and proposes the sum, and the next leader continues from there.
//!
//! A command is decided by the cluster's group, for the claim that holds the lock, before the leader gives it.
//! The paper gives it without a decision, so a leader that was cut off gives commands for a routine that is
//! over. Here its decision comes before the release in the group's order, or never. That costs a round among
//! the members near the device.

use selvedge_core::{NodeId, Span};

use super::act::{Act, Ticket};
use super::event::{Event, Timer};
use super::machine::{DeviceLeader, Out};
use super::probe::Given;
use super::state::Devices;
use super::update::Update;
use crate::Outcome;
use crate::effect::Effect;

/// The first interval of a hold is this part of [`Config::resend`](super::Config::resend). A leader that is
/// replaced sooner decides nothing else either.
const PARTS: u64 = 8;

impl DeviceLeader {
    /// The host reports the outcome of a command. A report about a command that is not under way
    /// changes nothing.
    pub fn acted(&mut self, ticket: Ticket, outcome: Outcome, out: &mut Out) {
        let Ticket { device, number } = ticket;
        let Some(probe) = self.probe(device) else {
            return;
        };
        if outcome == Outcome::Done {
            probe.on_done();
        }
        let given = probe.given.as_mut();
        let Some(given) = given.filter(|it| it.number == number) else {
            return;
        };
        given.outcome.get_or_insert(outcome);
        say_outcome(device, *given, out);
    }

    /// A turn of a command was decided.
    pub(super) fn on_turn(&mut self, state: &Devices, device: NodeId, number: u64, out: &mut Out) {
        let Some(act) = unsettled(state, device, number) else {
            return; // It has ended since: the state may be later.
        };
        let given = self.probe(device).and_then(|it| it.given);
        let given = given.filter(|it| it.number == number);
        if act.by != self.me {
            return self.on_found(device, act, out);
        }
        // A command that this leader found when it began is handled after the leader has taken it over.
        let is_known = given.is_some_and(|it| it.turn == Some(act.turn) || act.turn == 0);
        if !is_known {
            self.see_to(device, act, given.and_then(|it| it.outcome), out);
        }
    }

    /// A command that another leader may have given, or this node when it led before.
    ///
    /// The command may have ended, for the state may be behind. So this leader handles it only after
    /// the group has decided that it does.
    pub(super) fn on_found(&mut self, device: NodeId, act: &Act, out: &mut Out) {
        if act.is_settled {
            return;
        }
        let given = self.probe(device).and_then(|it| it.given);
        let outcome = given.filter(|it| it.number == act.number);
        let given = Given {
            number: act.number,
            turn: None,
            outcome: outcome.and_then(|it| it.outcome),
            before: Span::ZERO,
            held: Span::ZERO,
            next: Span::ZERO,
        };
        self.wait(device, given, self.config.resend, out);
        if !self.gives_on_wake(device, act) {
            self.take_over(device, act, out);
        }
    }

    pub(super) fn take_over(&self, device: NodeId, act: &Act, out: &mut Out) {
        out.push(Effect::Propose(Update::TakeOver {
            device,
            number: act.number,
            after: act.turn,
            by: self.me,
        }));
    }

    /// Starts the turn of this leader.
    fn see_to(&mut self, device: NodeId, act: &Act, outcome: Option<Outcome>, out: &mut Out) {
        if act.is_under_way() && act.is_given_in_turn() {
            out.push(Effect::Event(Event::Act {
                ticket: Ticket {
                    device,
                    number: act.number,
                },
                value: act.value.clone(),
            }));
        }
        let given = Given {
            number: act.number,
            turn: Some(act.turn),
            outcome,
            before: act.waited,
            held: Span::ZERO,
            next: Span::ZERO,
        };
        if act.turn == 0 {
            return self.wait(device, given, self.config.act_timeout, out);
        }
        if act.is_under_way() {
            say_outcome(device, given, out);
        }
        let first = Span((self.config.resend.0 / PARTS).max(1));
        self.wait(device, given, first.min(self.left_of(given)), out);
    }

    /// The rest of the hold. A former leader may have learned late of its turn, and its host may be late as
    /// well.
    fn left_of(&self, given: Given) -> Span {
        let most = self.config.act_timeout.0.saturating_mul(2);
        let waited = given.before.0.saturating_add(given.held.0);
        Span(most.saturating_sub(waited).max(1))
    }

    fn wait(&mut self, device: NodeId, given: Given, after: Span, out: &mut Out) {
        if let Some(probe) = self.probe(device) {
            probe.given = Some(Given {
                next: after,
                ..given
            });
        }
        let timer = Timer::Act(device);
        out.push(Effect::Arm { timer, after });
    }

    /// Stops the timer of a command that is settled.
    pub(super) fn on_ended(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let is_open = state.act(device).is_some_and(|it| !it.is_settled);
        let Some(probe) = self.probe(device) else {
            return;
        };
        if !is_open && probe.given.take().is_some() {
            out.push(Effect::Disarm(Timer::Act(device)));
        }
    }

    pub(super) fn on_act_overdue(&mut self, state: &Devices, device: NodeId, out: &mut Out) {
        let Some(act) = state.act(device).filter(|it| !it.is_settled) else {
            return; // A stray tick.
        };
        let given = self.probe(device).and_then(|it| it.given);
        let given = given.filter(|it| it.number == act.number && it.turn == Some(act.turn));
        let Some(mut given) = given else {
            return self.on_found(device, act, out); // What was proposed was lost.
        };
        if act.turn == 0 {
            given.outcome.get_or_insert(Outcome::Unknown);
            say_outcome(device, given, out);
            return self.wait(device, given, self.config.act_timeout, out);
        }
        self.on_held(device, act, given, out);
    }

    /// Proposes the time for which the device was held.
    fn on_held(&mut self, device: NodeId, act: &Act, mut given: Given, out: &mut Out) {
        let (number, turn) = (act.number, act.turn);
        given.held = Span(given.held.0.saturating_add(given.next.0));
        if act.is_under_way() {
            say_outcome(device, given, out);
        }
        let waited = Span(given.before.0.saturating_add(given.held.0));
        if waited >= self.config.act_timeout * 2 {
            out.push(Effect::Propose(Update::Settled {
                device,
                number,
                turn,
            }));
            return self.wait(device, given, self.config.resend, out);
        }
        out.push(Effect::Propose(Update::Waited {
            device,
            number,
            turn,
            waited,
        }));
        self.wait(device, given, given.held.min(self.left_of(given)), out);
    }
}

/// Proposes the outcome that the host of this leader reported, if the turn is its own.
fn say_outcome(device: NodeId, given: Given, out: &mut Out) {
    if let (Some(turn), Some(outcome)) = (given.turn, given.outcome) {
        out.push(Effect::Propose(Update::Acted {
            device,
            number: given.number,
            turn,
            outcome,
        }));
    }
}

/// The command of this number, if it is not settled.
fn unsettled(state: &Devices, device: NodeId, number: u64) -> Option<&Act> {
    let act = state.act(device);
    act.filter(|it| it.number == number && !it.is_settled)
}
