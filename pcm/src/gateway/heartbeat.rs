//! Failure detection between gateways, without a membership service (PCM, section 4.2).
//!
//! The resource manager sends heartbeats that name the failed gateways, and the others answer. So it
//! watches all of them, and each of them watches it. A gateway that sends nothing for too long counts as
//! failed until a message of it arrives. The replica handles that as a report of a membership service,
//! which may be wrong.

use alloc::vec::Vec;

use selvedge_core::{Context, Delta, Input, Member, NodeId, Span};
use selvedge_replica::Command;

use super::Gateway;
use super::event::{Event, Reject, Timer};
use crate::{Message, Tables};

/// The number of heartbeats in a row that name this gateway as failed although it has answered, or of
/// timeouts without a heartbeat, after which it counts as unable to reach a manager.
const MISSED_MOST: u8 = 3;

impl Gateway {
    /// Changes the watched gateways, because this gateway has started, or another one manages.
    pub(super) fn watch_gateways(&mut self, cx: &mut Context<'_, Self>) {
        if !self.hears_others() {
            return;
        }
        let others: Vec<NodeId> = self.others().map(|it| it.id).collect();
        if self.manages {
            cx.disarm(Timer::Manager);
            for id in others {
                cx.arm(Timer::Timeout(id), self.config.timeout);
            }
            self.on_heartbeat_tick(cx);
        } else {
            cx.disarm(Timer::Heartbeat);
            for id in others {
                cx.disarm(Timer::Timeout(id));
            }
            cx.arm(Timer::Manager, self.config.timeout);
        }
    }

    /// Sends the resource manager's heartbeats, also to failed gateways: they may have come back.
    pub(super) fn on_heartbeat_tick(&mut self, cx: &mut Context<'_, Self>) {
        if !self.manages {
            return;
        }
        cx.arm(Timer::Heartbeat, self.config.heartbeat);
        if !self.has_quorum() {
            // Without a quorum it must not keep the others from electing another manager.
            return self.ask_those_gone(cx);
        }
        let configuration = self.replica.machine().configuration();
        for other in self.others() {
            // Also names the receiver if it is no voter any more: it may not know that, and becomes
            // unavailable when it is named.
            let off = configuration.voter(other.id).is_none();
            let off = off.then_some(other.id);
            let off = off.filter(|it| !self.ended.contains(it));
            let ended = self.ended.iter().copied().chain(off).collect();
            cx.send(other, Message::Heartbeat { ended });
        }
    }

    /// True if the gateways that are present could decide.
    pub(super) fn has_quorum(&self) -> bool {
        let replica = self.replica.machine();
        replica.could_decide(|id| !self.ended.contains(&id))
    }

    /// The tables, if requests of followers and clients can be decided here. Otherwise they are sent on to
    /// other gateways.
    pub(super) fn available(&self) -> Option<&Tables> {
        let is_missed = !self.manages && self.missed >= MISSED_MOST;
        let is_cut_off = self.is_stalled || !self.has_quorum() || is_missed;
        self.tables().filter(|_| !is_cut_off)
    }

    /// Notifies the host, once, that followers and clients are sent on from now on, or are served again.
    pub(super) fn tell_whether_available(&mut self, cx: &mut Context<'_, Self>) {
        let is_available = self.available().is_some();
        if is_available == self.is_available {
            return;
        }
        self.is_available = is_available;
        cx.event(match is_available {
            true => Event::Available,
            false => Event::Unavailable,
        });
    }

    /// Handles a heartbeat of the resource manager, which names the failed gateways.
    pub(super) fn on_heartbeat(
        &mut self,
        from: Member,
        ended: &[NodeId],
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.on_here(from, cx)?;
        let known = self.gateways.get(&from.id);
        if known.is_some_and(|it| it.supersedes(from)) {
            return Ok(()); // A former life sent it.
        }
        cx.send(from, Message::Here);
        self.missed = match ended.contains(&self.me.id) {
            true => self.missed.saturating_add(1),
            false => 0,
        };
        // A manager that does not know that it was deposed must not hide the silence of its successor.
        let leader = self.replica.machine().leader();
        let is_led = leader.is_none_or(|it| it.0 == from.id);
        if self.manages {
            self.ask_whether_it_leads(cx);
        }
        if !is_led || self.manages || !self.hears_others() {
            return Ok(());
        }
        cx.arm(Timer::Manager, self.config.timeout);
        let has_ended = |it: &Member| ended.contains(&it.id);
        // The manager watches the gateways of the configuration; others may never have run in the known life.
        let configuration = self.replica.machine().configuration();
        let is_notified = |it: &Member| has_ended(it) || configuration.voter(it.id).is_some();
        // None, as a rule: nothing is allocated then.
        let changed: Vec<Member> = self
            .others()
            .filter(|it| it.id != from.id && is_notified(it))
            .filter(|it| has_ended(it) != self.ended.contains(&it.id))
            .collect();
        for other in changed {
            let delta = match has_ended(&other) {
                true => Delta::Failed(other),
                false => Delta::Refuted(other),
            };
            self.learn(delta, cx);
        }
        Ok(())
    }

    /// Another gateway manages, too, so one of the two was deposed and does not know it. A read finds out: other
    /// gateways refuse it, or no answer arrives, and then this gateway becomes unavailable.
    fn ask_whether_it_leads(&mut self, cx: &mut Context<'_, Self>) {
        if self.replica.machine().waiting() == 0 {
            let read = Input::Command(Command::Read(0));
            // Only a gateway without tables is refused, and that one does not manage.
            let _refused = self.step(read, cx);
        }
    }

    /// Handles a report of a gateway that it is up.
    pub(super) fn on_here(
        &mut self,
        from: Member,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if !self.gateways.contains_key(&from.id) {
            return Err(Reject::UnknownGateway(from));
        }
        self.note_here(from, cx);
        Ok(())
    }

    /// Notes that a gateway is up, because a message came from it.
    pub(super) fn note_here(&mut self, from: Member, cx: &mut Context<'_, Self>) {
        let known = self.gateways.get(&from.id).copied();
        let Some(known) = known.filter(|it| self.hears_others() && !it.supersedes(from)) else {
            return;
        };
        if from.supersedes(known) {
            self.learn(Delta::Joined(from), cx);
        } else if self.ended.contains(&from.id) {
            self.learn(Delta::Refuted(from), cx);
        }
        if self.manages {
            cx.arm(Timer::Timeout(from.id), self.config.timeout);
        }
    }

    /// Handles the timeout of a gateway that this manager watches.
    pub(super) fn on_timeout_tick(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        let known = self.gateways.get(&id).copied();
        if let Some(known) = known.filter(|_| self.manages) {
            self.learn(Delta::Failed(known), cx);
        }
    }

    /// Handles the timeout of the resource manager.
    pub(super) fn on_manager_tick(&mut self, cx: &mut Context<'_, Self>) {
        cx.arm(Timer::Manager, self.config.timeout);
        self.missed = self.missed.saturating_add(1);
        let leader = self.replica.machine().leader().map(|it| it.0);
        let known = leader.and_then(|it| self.gateways.get(&it).copied());
        match known.filter(|it| it.id != self.me.id && !self.ended.contains(&it.id)) {
            Some(known) => self.learn(Delta::Failed(known), cx),
            None => self.look_for_manager(cx),
        }
        if !self.manages {
            self.say_here(cx);
        }
        if !self.has_quorum() {
            self.ask_those_gone(cx);
        }
    }

    /// Asks the gateways that count as failed which configuration they have. They may have continued without
    /// this gateway, under a manager that is unknown here, so its messages are refused. The replica counts
    /// each of them as live for a moment and sends it a message; a later configuration is the answer.
    fn ask_those_gone(&mut self, cx: &mut Context<'_, Self>) {
        let ended = self.others().filter(|it| self.ended.contains(&it.id));
        let ended: Vec<Member> = ended.collect();
        for other in ended {
            for delta in [Delta::Refuted(other), Delta::Failed(other)] {
                let learned = self.step(Input::Membership(delta), cx);
                debug_assert_eq!(learned, Ok(()), "a replica refuses its own end alone");
            }
        }
    }

    /// Reports to all gateways that this one is up. Without a manager no heartbeat asks for it, and the others
    /// would not learn that a gateway that counts as failed has restarted.
    fn say_here(&self, cx: &mut Context<'_, Self>) {
        for other in self.others() {
            cx.send(other, Message::Here);
        }
    }

    fn hears_others(&self) -> bool {
        self.is_started && self.config.heartbeat > Span::ZERO
    }

    fn others(&self) -> impl Iterator<Item = Member> + '_ {
        let all = self.gateways.values().copied();
        all.filter(|it| it.id != self.me.id)
    }
}
