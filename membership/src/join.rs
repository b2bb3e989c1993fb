//! Joining through seeds, leaving, and finding the mesh again after the loss of every other member.

use alloc::vec::Vec;

use selvedge_core::{Context, Incarnation, Member, NodeId};

use crate::agreement::Agreement;
use crate::list::{MemberList, Standing};
use crate::merge::Source;
use crate::message::{Body, Key, Message, Records};
use crate::probing::Probing;
use crate::self_monitor::{Reports, SelfMonitor};
use crate::{Event, Membership, Phase, Reject, Timer};

impl Membership {
    /// Joins the mesh through `seeds`, or begins one if there are no seeds.
    ///
    /// # Errors
    /// [`Reject::AlreadyJoined`].
    pub(crate) fn join(
        &mut self,
        seeds: Vec<NodeId>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if self.phase() != Phase::Idle {
            return Err(Reject::AlreadyJoined);
        }
        self.bootstrap.begin(seeds, self.own.id());
        self.presence.begin_joining();
        self.ask_seeds_or_begin(cx);
        self.arm_period(cx);
        Ok(())
    }

    /// Replaces the seeds.
    ///
    /// # Errors
    /// [`Reject::NotJoined`] where the node is idle: the seeds come with the next join.
    pub(crate) fn replace_seeds(
        &mut self,
        seeds: Vec<NodeId>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if self.phase() == Phase::Idle {
            return Err(Reject::NotJoined);
        }
        self.bootstrap.replace_seeds(seeds, self.own.id());
        if self.phase() == Phase::Joining {
            self.ask_seeds_or_begin(cx);
        }
        Ok(())
    }

    fn ask_seeds_or_begin(&mut self, cx: &mut Context<'_, Self>) {
        if self.bootstrap.seeds().is_empty() {
            self.enter_mesh(cx);
        } else {
            self.ask_seeds(cx);
        }
    }

    /// Asks all seeds to be let in.
    pub(crate) fn ask_seeds(&self, cx: &mut Context<'_, Self>) {
        for &id in self.bootstrap.seeds() {
            let incarnation = Incarnation::default();
            self.ask_to_join(Member { id, incarnation }, cx);
        }
    }

    fn ask_to_join(&self, seed: Member, cx: &mut Context<'_, Self>) {
        let mut message = Message::bare(Body::Join);
        message.records = self.own_record();
        cx.send(seed, message);
    }

    fn own_record(&self) -> Records {
        let own = self.own_slot();
        let own = own.and_then(|slot| self.list.record(slot, self.tombstone_clock()));
        own.into_iter().collect()
    }

    fn enter_mesh(&mut self, cx: &mut Context<'_, Self>) {
        self.presence.enter();
        self.bootstrap
            .wait_to_reconnect(self.config.reconnect_every);
        self.announce(self.own.id());
        cx.event(Event::Identified(self.own.member()));
    }

    /// Takes a message while joining: only a welcome counts, or the reply that our number is taken.
    pub(crate) fn receive_while_joining(
        &mut self,
        from: Member,
        body: Body,
        records: Records,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        match body {
            Body::Welcome { you, next } if you == self.own.member() => {
                self.enter_mesh(cx);
                self.merge_all(from, records, Source::Fetched, cx);
                self.bootstrap.on_welcome(next);
                self.fetch_from(from, cx);
                Ok(())
            }
            Body::IdTaken { life } if life.id == self.own.id() => {
                if !self.own.incarnation().newer_than(life.incarnation) {
                    self.own.go_beyond(life.incarnation);
                    self.on_new_incarnation(cx);
                    self.ask_to_join(from, cx);
                }
                Ok(())
            }
            // A member of the mesh probes us, perhaps as its seed: it can let us in as well.
            Body::Ping { .. } | Body::PingRequest { .. } => {
                self.ask_to_join(from, cx);
                Ok(())
            }
            // Two nodes that are each other's seeds would wait for ever: a node that had no answer
            // for a whole period and is asked itself begins a mesh. If there is another mesh, the
            // seeds are probed for ever, and meshes that meet grow together.
            Body::Join if self.bootstrap.is_overdue() => {
                self.enter_mesh(cx);
                self.on_join(from, records, cx);
                Ok(())
            }
            Body::Welcome { .. }
            | Body::IdTaken { .. }
            | Body::Ack { .. }
            | Body::RelayedAck { .. }
            | Body::Unlucky
            | Body::Join
            | Body::Digests { .. }
            | Body::Pull { .. }
            | Body::Records { .. }
            | Body::Farewell => Err(Reject::NotJoined),
        }
    }

    /// Takes the request of a node to join. A life that is not on the list is let in; a life that
    /// is on record already may be another one under the same number, so it is asked to take a
    /// later number.
    pub(crate) fn on_join(&mut self, from: Member, records: Records, cx: &mut Context<'_, Self>) {
        // A node that is leaving lets none in.
        if !self.presence.is_joined() {
            return;
        }
        let listed = |machine: &Self| machine.list.get(from.id).map(|(_, entry)| entry.member());
        if let Some(life) = listed(self)
            && !from.supersedes(life)
            && !self.rules.former_life_is_welcome()
        {
            cx.send(from, Message::bare(Body::IdTaken { life }));
            return;
        }
        for record in records {
            if record.member == from {
                self.merge(from, record, Source::Update, cx);
            }
        }
        if listed(self) == Some(from) {
            self.send_welcome(from, cx);
        }
    }

    /// Says good-bye for [`farewell_periods`](crate::Config::farewell_periods), then stops with the
    /// event [`Event::Left`].
    ///
    /// # Errors
    /// [`Reject::NotJoined`].
    pub(crate) fn leave(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.phase() {
            Phase::Idle | Phase::Leaving => Err(Reject::NotJoined),
            Phase::Joining => {
                self.stop(cx);
                Ok(())
            }
            Phase::Joined => {
                self.presence.begin_leaving(self.config.farewell_periods);
                if let Some((slot, own)) = self.list.get(self.own.id()) {
                    let revision = own.revision();
                    self.list
                        .set_standing(slot, Standing::Left, revision, self.period);
                } else {
                    debug_assert!(false, "this node is on its own list");
                }
                self.probing.end();
                cx.disarm(Timer::Probe);
                self.bootstrap.stop_fetching();
                self.announce(self.own.id());
                self.send_farewell(cx);
                Ok(())
            }
        }
    }

    /// Says good-bye to some members, or stops where that was done often enough. Returns true if it
    /// stopped.
    pub(crate) fn send_farewell(&mut self, cx: &mut Context<'_, Self>) -> bool {
        if self.list.live() == 0 || !self.presence.take_farewell() {
            self.stop(cx);
            return true;
        }
        let count = self.config.relays.saturating_add(1).min(16);
        self.draw_relays((count, 0), None, cx, |machine, member, cx| {
            let mut message = Message::bare(Body::Farewell);
            message.records = machine.own_record();
            cx.send(member, message);
        });
        false
    }

    /// Forgets the mesh. The next join is a new life.
    fn stop(&mut self, cx: &mut Context<'_, Self>) {
        for slot in self.list.all() {
            let Some(entry) = self.list.entry(slot) else {
                debug_assert!(false, "no member has slot {slot}");
                continue;
            };
            if entry.standing().is_timed() {
                cx.disarm(Timer::Suspicion(entry.id()));
            }
        }
        cx.disarm(Timer::Period);
        cx.disarm(Timer::Probe);
        let metadata = self.own_metadata().cloned().unwrap_or_default();
        self.presence.stop();
        self.own.begin_next();
        self.list = MemberList::new(self.config.member_limit as usize);
        self.enlist_self(metadata);
        self.updates.clear();
        self.broadcasting.clear();
        self.round_robin.clear();
        self.probing = Probing::default();
        self.bootstrap.stop_fetching();
        self.agreement = Agreement::default();
        self.forgot = None;
        self.monitor = SelfMonitor::default();
        self.reports = Reports::default();
        cx.event(Event::Left);
    }

    /// Probes a seed or a dead member, periodically and for ever, so that a lone node and a healed
    /// partition find each other again. A member that is alive answers and refutes.
    pub(crate) fn reconnect(&mut self, cx: &mut Context<'_, Self>) {
        let every = self.config.reconnect_every;
        let is_alone = self.list.live() <= 1;
        if every == 0 || !self.bootstrap.is_reconnect_due(every, is_alone) {
            return;
        }
        let seeds = self.bootstrap.seeds();
        let choices = seeds.len() + self.list.tombstones().failed_len();
        let chosen = cx.below(choices as u64) as usize;
        let target = match seeds.get(chosen) {
            Some(&id) => match self.list.get(id) {
                Some((_, entry)) if entry.is_live() => None,
                Some((_, entry)) => Some(entry.member()),
                None => Some(Member {
                    id,
                    incarnation: Incarnation::default(),
                }),
            },
            None => self.list.failed(chosen - seeds.len()),
        };
        if let Some(member) = target {
            self.counters.reconnects += 1;
            self.ping(member, cx);
        }
    }

    fn send_welcome(&mut self, joiner: Member, cx: &mut Context<'_, Self>) {
        let page = |next| Body::Welcome { you: joiner, next };
        self.send_list(joiner, (Key(0), Key(u64::MAX)), page, cx);
    }

    /// Asks any member again for a page that was requested a period ago and did not come. Pages are
    /// cut by hashed id, so it does not matter which member answers.
    pub(crate) fn fetch_again(&mut self, cx: &mut Context<'_, Self>) {
        if self.bootstrap.is_fetching() {
            self.draw_relays((1, 0), None, cx, |machine, member, cx| {
                machine.fetch_from(member, cx);
            });
        }
    }

    pub(crate) fn fetch_from(&self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(first) = self.bootstrap.page() {
            let last = Key(u64::MAX);
            cx.send(member, Message::bare(Body::Pull { first, last }));
        }
    }
}
