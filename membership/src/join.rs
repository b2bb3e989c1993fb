//! Coming and going: joining through seeds, leaving, and finding back when everyone was lost.

use alloc::vec::Vec;

use selvedge_core::{Context, Incarnation, Member, NodeId};

use crate::hearsay::{beyond, is_beyond_us};
use crate::list::Standing;
use crate::message::{Body, Key, Message, Records};
use crate::suspicion::Source;
use crate::{Event, Membership, Phase, Reject, Timer};

impl Membership {
    /// Joins the mesh through `seeds`, or begins one where there are none.
    ///
    /// # Errors
    /// [`Reject::AlreadyJoined`].
    pub fn join(
        &mut self,
        mut seeds: Vec<NodeId>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if self.phase != Phase::Idle {
            return Err(Reject::AlreadyJoined);
        }
        seeds.retain(|&seed| seed != self.me.id);
        seeds.truncate(Self::SEED_LIMIT);
        self.seeds = seeds;
        self.waited = false;
        if self.seeds.is_empty() {
            self.enter_mesh(cx);
        } else {
            self.phase = Phase::Joining;
            self.ask_seeds(cx);
        }
        self.arm_period(cx);
        Ok(())
    }

    /// Asks all seeds to be let in.
    pub(crate) fn ask_seeds(&mut self, cx: &mut Context<'_, Self>) {
        for nth in 0..self.seeds.len() {
            if let Some(&id) = self.seeds.get(nth) {
                let incarnation = Incarnation::default();
                self.ask_to_join(Member { id, incarnation }, cx);
            }
        }
    }

    fn ask_to_join(&self, seed: Member, cx: &mut Context<'_, Self>) {
        let mut message = Message::bare(Body::Join);
        message.records = self.own_record();
        cx.send(seed, message);
    }

    fn own_record(&self) -> Records {
        Records(
            self.own_slot()
                .and_then(|slot| self.list.record(slot, self.burial_clock()))
                .into_iter()
                .collect(),
        )
    }

    fn enter_mesh(&mut self, cx: &mut Context<'_, Self>) {
        self.phase = Phase::Joined;
        self.until_reconnect = self.config.reconnect_every;
        self.add_news(self.me.id);
        cx.event(Event::Identity(self.me));
    }

    /// While joining, only a welcome counts, or the word that our number is taken.
    pub(crate) fn receive_while_joining(
        &mut self,
        from: Member,
        body: Body,
        records: Records,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        match body {
            Body::Welcome { you, next } if you == self.me => {
                self.waited = false;
                self.enter_mesh(cx);
                self.merge_all(from, records, Source::Fetched, cx);
                self.fetch = next;
                self.fetch_from(from, cx);
                Ok(())
            }
            Body::Known { life } if life.id == self.me.id => {
                if !self.me.incarnation.newer_than(life.incarnation) {
                    self.take_identity(beyond(self.me.incarnation, life.incarnation), cx);
                    self.ask_to_join(from, cx);
                }
                Ok(())
            }
            // A member of the mesh probes us, perhaps as its seed: it can let us in as well.
            Body::Ping { .. } | Body::PingRequest { .. } => {
                self.ask_to_join(from, cx);
                Ok(())
            }
            // Two nodes that are each other's seeds would wait for ever: who was not answered for a
            // whole period and is asked itself begins a mesh. Should there be another one, the
            // seeds are probed for ever, and meshes that meet grow together.
            Body::Join if self.waited => {
                self.enter_mesh(cx);
                self.admit(from, records, cx);
                Ok(())
            }
            Body::Welcome { .. }
            | Body::Known { .. }
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

    /// Someone wants to join. A life that we do not know of is let in; one that is on record
    /// already may be another life under the same number, so it is asked to take a later one.
    pub(crate) fn admit(&mut self, from: Member, records: Records, cx: &mut Context<'_, Self>) {
        if self.phase != Phase::Joined {
            return;
        }
        let known = self
            .list
            .find(from.id)
            .and_then(|slot| self.list.entry(slot))
            .map(crate::list::Entry::member);
        if let Some(life) = known
            && !from.supersedes(life)
            && !self.rules.former_life_is_welcome()
        {
            cx.send(from, Message::bare(Body::Known { life }));
            return;
        }
        for record in records.0 {
            if record.member == from {
                self.merge(from, record, Source::News, cx);
            }
        }
        let is_in = self
            .list
            .find(from.id)
            .and_then(|slot| self.list.entry(slot))
            .is_some_and(|entry| entry.member() == from);
        if is_in {
            self.send_welcome(from, cx);
        }
    }

    /// Someone knows a later life of our node than we are.
    pub(crate) fn learn_of_heir(&mut self, life: Member, cx: &mut Context<'_, Self>) {
        let is_ours = life.id == self.me.id;
        let is_beyond_us = is_beyond_us(life.incarnation.0, self.me.incarnation.0);
        if self.phase == Phase::Joined && is_ours && is_beyond_us {
            self.give_way(life.incarnation, cx);
        }
    }

    /// Says good-bye for [`farewell_periods`](crate::Config::farewell_periods), then stops; the
    /// event [`Event::Left`] tells when.
    ///
    /// # Errors
    /// [`Reject::NotJoined`].
    pub fn leave(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.phase {
            Phase::Idle | Phase::Leaving => Err(Reject::NotJoined),
            Phase::Joining => {
                self.stop(cx);
                Ok(())
            }
            Phase::Joined => {
                self.phase = Phase::Leaving;
                self.farewells = self.config.farewell_periods;
                if let Some(slot) = self.own_slot()
                    && let Some(revision) = self.list.entry(slot).map(|own| own.revision)
                {
                    self.list
                        .set_standing(slot, Standing::Left, revision, self.period);
                }
                self.probe = None;
                cx.disarm(Timer::Probe);
                self.fetch = None;
                self.add_news(self.me.id);
                self.say_farewell(cx);
                Ok(())
            }
        }
    }

    /// Tells some members that we leave. Says whether that was the last time.
    pub(crate) fn say_farewell(&mut self, cx: &mut Context<'_, Self>) -> bool {
        if self.farewells == 0 || self.list.live() == 0 {
            self.stop(cx);
            return true;
        }
        self.farewells -= 1;
        let count = self.config.relays.saturating_add(1).min(16);
        self.draw_relays(count, None, cx, |machine, member, cx| {
            let mut message = Message::bare(Body::Farewell);
            message.records = machine.own_record();
            cx.send(member, message);
        });
        false
    }

    /// Forgets the mesh. The next join is a new life.
    fn stop(&mut self, cx: &mut Context<'_, Self>) {
        for slot in self.list.all() {
            if let Some(entry) = self.list.entry(slot)
                && entry.standing.is_timed()
            {
                cx.disarm(Timer::Suspicion(entry.member().id));
            }
        }
        cx.disarm(Timer::Period);
        cx.disarm(Timer::Probe);
        let metadata = self
            .own_slot()
            .and_then(|slot| self.list.metadata(slot))
            .cloned()
            .unwrap_or_default();
        self.phase = Phase::Idle;
        self.me.incarnation = self.me.incarnation.next();
        self.list = crate::list::MemberList::new(self.config.member_limit as usize);
        self.enlist_self(metadata);
        self.news.clear();
        self.broadcaster.clear();
        self.turn.clear();
        self.probe = None;
        self.heard = crate::probe::Heard::default();
        self.fetch = None;
        self.stretch = 0;
        self.disagreements = 0;
        self.rest = crate::sync::Rest::default();
        self.monitor = crate::feedback::SelfMonitor::default();
        self.unlucky.retain(|_| false);
        cx.event(Event::Left);
    }

    /// Now and then, for ever, a seed or a dead member is probed: so a lone node and a healed
    /// partition find each other again. Whoever is alive answers and refutes.
    pub(crate) fn reconnect(&mut self, cx: &mut Context<'_, Self>) {
        if self.config.reconnect_every == 0 {
            return;
        }
        self.until_reconnect = self.until_reconnect.saturating_sub(1);
        if self.until_reconnect > 0 && self.list.live() > 1 {
            return;
        }
        self.until_reconnect = self.config.reconnect_every;
        let choices = self.seeds.len() + self.list.tombstones().failed_len();
        let chosen = cx.below(choices as u64) as usize;
        let whom = match self.seeds.get(chosen) {
            Some(&id) => {
                let slot = self.list.find(id);
                match slot.and_then(|slot| self.list.entry(slot)) {
                    Some(entry) if entry.standing.is_live() => None,
                    Some(entry) => Some(entry.member()),
                    None => Some(Member {
                        id,
                        incarnation: Incarnation::default(),
                    }),
                }
            }
            None => self.list.failed(chosen - self.seeds.len()),
        };
        if let Some(member) = whom {
            self.counters.reconnects += 1;
            self.ping(member, cx);
        }
    }

    fn send_welcome(&mut self, joiner: Member, cx: &mut Context<'_, Self>) {
        let page = |next| Body::Welcome { you: joiner, next };
        self.send_list(joiner, (Key(0), Key(u64::MAX)), page, cx);
    }

    /// A page that was asked for a period ago did not come: ask anyone for it. Pages are cut by
    /// hashed id, so it does not matter who answers.
    pub(crate) fn fetch_again(&mut self, cx: &mut Context<'_, Self>) {
        if self.fetch.is_some() {
            self.draw_relays(1, None, cx, |machine, member, cx| {
                machine.fetch_from(member, cx);
            });
        }
    }

    pub(crate) fn fetch_from(&self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(first) = self.fetch {
            let last = Key(u64::MAX);
            cx.send(member, Message::bare(Body::Pull { first, last }));
        }
    }

    /// Whether this page is the next one of the list that we fetch.
    pub(crate) fn is_fetched(&self, body: &Body) -> bool {
        if let Body::Records { first, last, .. } = body {
            *last == Key(u64::MAX) && self.fetch == Some(*first)
        } else {
            false
        }
    }

    /// Goes on to the next page of the list that we fetch.
    pub(crate) fn fetch_next(
        &mut self,
        from: Member,
        next: Option<Key>,
        cx: &mut Context<'_, Self>,
    ) {
        self.fetch = next.filter(|&next| self.fetch.is_some_and(|first| next > first));
        self.fetch_from(from, cx);
    }
}
