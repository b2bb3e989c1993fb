//! The dispatch of inputs.

use selvedge_core::wire::{List, Room};
use selvedge_core::{Context, Delta, Effect, Input, Machine, Span};
use selvedge_replica as replica;
use selvedge_replica::Replica;

use crate::GroupId;
use crate::find_leader::confirms;
use crate::message::{FIXED_LEN, encoded_len};
use crate::part::Part;
use crate::propose::SiteError;
use crate::state::{Carried, Peer, Posted};
use crate::{Begins, Command, Event, Fact, Groups, Item, Message, Reject, Timer};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Takes one step of a group's replica.
    pub(crate) fn step(
        &mut self,
        group: GroupId,
        input: Input<Replica<S>>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let part = self.parts.get_mut(&group).ok_or(Reject::NoMember(group))?;
        let mut outbox = self.outbox.0.0.take().unwrap_or_default();
        let taken = part.replica.handle(input, &mut cx.inner(&mut outbox));
        if taken.is_err() {
            outbox.clear();
        }
        for (timer, after) in outbox.drain_timers() {
            let timer = Timer::Replica(group, timer);
            match after {
                Some(after) => cx.arm(timer, after),
                None => cx.disarm(timer),
            }
        }
        let was_stored = part.is_stored;
        let goes_ahead = self.has_begun && self.posted.0.is_empty() && !self.has_fact.0;
        let mut confirmed = None;
        for effect in outbox.drain_effects() {
            match effect {
                Effect::Send { to, message } => {
                    self.posted.0.push((to, Item::Replica { group, message }));
                }
                Effect::Multicast { .. } => debug_assert!(false, "a replica sends to members"),
                Effect::Event(replica::Event::Fact(fact)) if was_stored => {
                    // A replica sends first what need not wait for its fact: other members store a
                    // leader's entries while the leader does. Items that others posted in this step
                    // may depend on facts that are still to come; and behind an earlier fact nothing
                    // is won, so items share frames.
                    if goes_ahead && !core::mem::replace(&mut self.has_fact.0, true) {
                        self.send_posted(cx);
                    }
                    self.has_fact.0 = true;
                    cx.event(Event::Fact(Fact::Replica { group, fact }));
                }
                Effect::Event(replica::Event::Fact(_)) => self.begin_to_store(group, cx),
                Effect::Event(event) => match confirms(&event) {
                    Some(is_confirmed) => confirmed = Some(is_confirmed),
                    None => cx.event(Event::Replica { group, event }),
                },
            }
        }
        self.outbox.0.0 = Some(outbox);
        taken?;
        self.look_after(group, cx);
        if let Some(is_confirmed) = confirmed {
            self.on_answer(group, is_confirmed, cx);
        }
        Ok(())
    }

    /// Emits the first fact of a part, its base. It holds all facts of this step; messages come
    /// behind.
    pub(crate) fn begin_to_store(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        if let Some(part) = self.parts.get_mut(&group)
            && !core::mem::replace(&mut part.is_stored, true)
        {
            let stored = part.replica.stored();
            cx.event(Event::Fact(self.base_of(group, stored)));
        }
    }

    /// Acts on the present situation of a group.
    pub(crate) fn look_after(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left in this step.
        };
        if part.replica.is_over() {
            return self.leave(group, cx);
        }
        let is_in = part.is_named() && part.replica.state().is_some();
        if is_in && !part.is_entered {
            part.is_entered = true;
            cx.event(Event::Entered(group));
        }
        self.look_for_leader(group, cx);
        self.look_for_change(group, cx);
        if group == GroupId::REGISTRY && S::HAS_REGISTRY {
            self.look_after_registry(cx);
        }
    }

    /// Stands for leader after a while, where no leader is known: an idle replica elects no leader.
    pub(crate) fn look_for_leader(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get(&group) else {
            return; // It was left in this step.
        };
        let leader = part.replica.leader().map(|it| it.0);
        let is_missing = part.replica.votes() && leader.is_none_or(|it| self.has_ended(it));
        if is_missing == part.waits {
            return;
        }
        let members = part.replica.configuration().members();
        let here = members.filter(|it| !self.has_ended(it.member.id));
        let before = here.take_while(|it| it.member.id != self.me.id).count();
        if let Some(part) = self.parts.get_mut(&group) {
            part.waits = is_missing;
        }
        match is_missing {
            // The first member waits as well: another member may lead, and its messages be late.
            true => {
                let patience = self.config.patience;
                cx.arm(
                    Timer::Lead(group),
                    patience * before as u64 + Span(patience.0 / 8),
                );
            }
            false => cx.disarm(Timer::Lead(group)),
        }
        if !is_missing && let Some(part) = self.parts.get_mut(&group) {
            part.stood = 0;
        }
    }

    fn on_lead_tick(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        part.waits = false;
        if !part.replica.votes() {
            return;
        }
        part.stood = if part.stood < STOOD_MAX {
            part.stood + 1
        } else {
            STOOD_MAX / 2 + 1
        };
        let is_time = part.stood.is_power_of_two();
        if part.replica.leader().is_some() {
            // A message of the leader arrived after the report that it failed. A late message would
            // be believed for ever where no application asks.
            if is_time {
                self.confirm(group, cx);
            }
            return self.look_for_leader(group, cx);
        }
        // The group may have gone on without this member.
        let is_lost = is_time && part.stood > 1;
        // A replica that seeks a leader waits longer after each ballot that failed. A ballot more would
        // outbid one whose promises are under way.
        let stands = part.replica.seeks_leader();
        let stand = Input::Command(replica::Command::Campaign);
        // A member that stands already, or cannot, waits again.
        if stands || self.step(group, stand, cx).is_err() {
            self.look_for_leader(group, cx);
        }
        if is_lost {
            self.find_leader(group);
        }
    }

    pub(crate) fn disarm(&self, group: GroupId, part: &Part<S>, cx: &mut Context<'_, Self>) {
        for timer in REPLICA_TIMERS {
            cx.disarm(Timer::Replica(group, timer));
        }
        if part.waits {
            cx.disarm(Timer::Lead(group));
        }
        if part.changes {
            cx.disarm(Timer::Change(group));
        }
    }

    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let member = delta.member();
        let has_ended = match delta {
            Delta::Suspected(_) => return Ok(()),
            Delta::Joined(_) | Delta::Refuted(_) => false,
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => true,
        };
        if member.id == self.me.id {
            return match delta {
                Delta::Left(_) | Delta::Confirmed(_) if member == self.me => Err(Reject::Replica(
                    replica::Reject::OwnEnd(selvedge_core::roster::OwnEnd(delta)),
                )),
                Delta::Joined(_)
                | Delta::Suspected(_)
                | Delta::Refuted(_)
                | Delta::Failed(_)
                | Delta::Left(_)
                | Delta::Confirmed(_) => Ok(()),
            };
        }
        let at = self.plan.place(member.id);
        let Some(peer) = at.and_then(|at| self.peers.get_mut(at)) else {
            return Ok(()); // It is in no group.
        };
        if peer.is_some_and(|it| it.incarnation.newer_than(member.incarnation)) {
            return Ok(()); // Of a life that has ended.
        }
        let incarnation = member.incarnation;
        *peer = Some(Peer::next(*peer, incarnation, has_ended));
        if !has_ended {
            self.report_spared(member);
            self.wake_registry(&[member.id]);
        }
        if !has_ended && S::HAS_REGISTRY {
            if !self.has_site() {
                self.posted.0.push((member, Item::WantSite { at: 0 }));
                self.arm_site(cx);
            } else if self.generation() > 0 {
                self.announce_site(member);
            }
        }
        let groups: alloc::vec::Vec<GroupId> = self.parts.keys().copied().collect();
        for group in groups {
            let taken = self.step(group, Input::Membership(delta), cx);
            debug_assert!(taken.is_ok(), "a replica takes all reports of other nodes");
        }
        Ok(())
    }

    fn command(
        &mut self,
        command: Command<S::Update, P>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        match command {
            Command::SetEpoch(epoch) => {
                self.on_epoch(epoch, cx);
                Ok(())
            }
            Command::Propose { group, update } => {
                let propose = Input::Command(replica::Command::Propose(update));
                let proposed = self.step(group, propose, cx);
                if let Err(Reject::Replica(replica::Reject::TooLong { .. })) = proposed {
                    self.counters.0.too_long += 1;
                }
                proposed
            }
            Command::Read { group, read } => {
                self.step(group, Input::Command(replica::Command::Read(read)), cx)
            }
            Command::Ask { group, payload } => {
                self.ask(group, payload, cx);
                Ok(())
            }
            Command::Answer { to, group, payload } => {
                self.notify(to, group, payload, cx);
                Ok(())
            }
            Command::ChangeSite { site, generation } => self.change_site(site, generation, cx),
            Command::BeginAnew(group) => {
                if !self.has_site() {
                    return Err(SiteError::Unknown.into());
                }
                if !S::HAS_REGISTRY {
                    return Err(SiteError::NoRegistry.into());
                }
                if group == GroupId::REGISTRY || !S::exists(&self.site, group) {
                    return Err(SiteError::NoGroup(group).into());
                }
                self.begin_anew(group, cx)
            }
            Command::SetSpared(is_spared) => {
                self.set_spared(is_spared);
                Ok(())
            }
        }
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Replica(group, timer) => {
                // A stray one, of a group that was left.
                let _stray = self.step(group, Input::Tick(timer), cx).is_err();
            }
            Timer::Lead(group) => self.on_lead_tick(group, cx),
            Timer::Change(group) => self.on_change_tick(group, cx),
            Timer::Site => self.on_site_tick(cx),
            Timer::Registry => self.on_registry_tick(cx),
            Timer::Ending => self.on_ending_tick(cx),
        }
    }

    /// Begins this life, at its first input.
    fn begin(&mut self, cx: &mut Context<'_, Self>) {
        self.has_begun = true;
        if self.since == self.me.incarnation && self.has_site() {
            // The site comes first: who finds the next fact has it.
            if let Some(site) = self.site_fact() {
                cx.event(Event::Fact(site));
            }
            let began = self.began();
            began.into_iter().for_each(|it| cx.event(Event::Fact(it)));
        }
        if !self.has_site() {
            self.arm_site(cx);
        }
        let groups: alloc::vec::Vec<GroupId> = self.parts.keys().copied().collect();
        for group in groups {
            // It lost power when it had stored the site, and had not left its former groups.
            if S::HAS_REGISTRY && !S::exists(&self.site, group) {
                self.leave(group, cx);
                continue;
            }
            self.look_after(group, cx);
        }
    }

    /// Takes a step, and sends only what goes ahead of its facts. A machine that has groups as a part, and takes several
    /// of their steps in one of its own, calls [`flush`](Self::flush) once, behind them.
    ///
    /// # Errors
    /// As [`handle`](Machine::handle).
    pub fn take(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx)?,
            Input::Membership(delta) => self.learn(delta, cx)?,
            Input::Command(command) => self.command(command, cx)?,
            Input::Tick(timer) => self.on_tick(timer, cx),
        }
        if !self.has_begun {
            self.begin(cx);
        }
        Ok(())
    }

    /// Ends a step: sends the posted items. Items to one node share frames, up to the frame budget.
    /// O(n log n).
    pub fn flush(&mut self, cx: &mut Context<'_, Self>) {
        self.send_posted(cx);
        self.has_fact.0 = false;
    }

    fn send_posted(&mut self, cx: &mut Context<'_, Self>) {
        let plan = self.adoption.origin.unwrap_or_default();
        let generation = self.generation();
        let budget = self.plan.frame_budget();
        let mut posted = core::mem::take(&mut self.posted.0);
        if !self.has_site() {
            // Others would refuse all else.
            posted.retain(|it| matches!(it.1, Item::WantSite { .. }));
        }
        posted.sort_by_key(|it| it.0); // Stable: to one node in the order of the step.
        let mut rest = posted.drain(..).peekable();
        while let Some((to, first)) = rest.next() {
            let mut room = Room::from_sender(budget, self.me, FIXED_LEN);
            if !room.take(encoded_len(&first)) {
                self.counters.0.too_long += 1;
                continue;
            }
            let mut items: List<Item<S::Update, P>, 1> = List::new();
            items.push(first);
            let mut fits = |it: &Posted<S, P>| it.0 == to && room.take(encoded_len(&it.1));
            while let Some((_, item)) = rest.next_if(&mut fits) {
                items.push(item);
            }
            cx.send(
                to,
                Message {
                    plan,
                    generation,
                    items,
                },
            );
        }
        drop(rest);
        self.posted.0 = posted; // Its room is used again.
    }
}

/// A member that waits in vain looks for its group at the second time, the fourth, and so on up to
/// this one; then at each time that is half as long after the last.
const STOOD_MAX: u8 = 64;

const REPLICA_TIMERS: [replica::Timer; 9] = [
    replica::Timer::Resend,
    replica::Timer::Commit,
    replica::Timer::Campaign,
    replica::Timer::Pending,
    replica::Timer::Watch,
    replica::Timer::Fetch,
    replica::Timer::Lease,
    replica::Timer::Tied,
    replica::Timer::Invite,
];

impl<S: Begins, P: Carried> Machine for Groups<S, P> {
    type Message = Message<S::Update, P>;
    type Timer = Timer;
    type Command = Command<S::Update, P>;
    type Event = Event<S, P>;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        self.take(input, cx)?;
        self.flush(cx);
        Ok(())
    }
}
