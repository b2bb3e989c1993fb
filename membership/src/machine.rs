//! The state, and where each input goes.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::wire::{Room, frame_len};
use selvedge_core::{BoundedQueue, Context, Delta, Input, Machine, Member, NodeId, Untracked};

use crate::config::ceil_ln;
use crate::digest::key;
use crate::feedback::SelfMonitor;
use crate::gossip::{Broadcaster, News};
use crate::hearsay::Hearsay;
use crate::list::{Entry, MemberList, Standing};
use crate::message::{Age, Body, Broadcast, Claim, Key, Message, Metadata, Record};
use crate::probe::{Heard, Probe};
use crate::published::Rules;
use crate::suspicion::Source;
use crate::sync::Rest;
use crate::target::{Turn, weight};
use crate::{
    Command, Config, ConfigError, Counters, Event, MemberView, Misbehaviour, Reject, Timer,
};

/// Where a node stands in the life of its own membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// In no mesh.
    Idle,
    /// Asking seeds to be let in.
    Joining,
    /// In the mesh.
    Joined,
    /// Saying good-bye.
    Leaving,
}

/// One node of Medley-F. See the [crate's page](crate) for what it promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    pub(crate) config: Box<Config>,
    pub(crate) rules: Rules,
    pub(crate) me: Member,
    pub(crate) phase: Phase,
    pub(crate) seeds: Vec<NodeId>,
    /// Whether a whole period went by without an answer to our request to be let in. A node that
    /// then began a mesh still fetches the list of the first that welcomes it.
    pub(crate) waited: bool,
    pub(crate) list: MemberList,
    pub(crate) news: News,
    pub(crate) broadcaster: Broadcaster,
    /// Counts periods, for ages only; stands still where no age matters.
    pub(crate) period: u16,
    pub(crate) probe: Option<Probe>,
    pub(crate) heard: Heard,
    pub(crate) turn: Turn,
    pub(crate) bag_step: u64,
    /// How far our own timeouts are stretched.
    pub(crate) stretch: u8,
    pub(crate) monitor: SelfMonitor,
    /// Whose UNLUCKY reports wait for the end of the period.
    pub(crate) unlucky: BoundedQueue<NodeId>,
    pub(crate) hearsay: Hearsay,
    /// Probes in a row that showed another digest than ours.
    pub(crate) disagreements: u8,
    pub(crate) rest: Rest,
    /// From which key on we still fetch the list that a joiner gets.
    pub(crate) fetch: Option<Key>,
    pub(crate) until_reconnect: u16,
    pub(crate) farewells: u16,
    pub(crate) counters: Untracked<Counters>,
}

impl Membership {
    /// The longest list of seeds that is kept.
    pub(crate) const SEED_LIMIT: usize = 16;

    /// A node that is in no mesh yet; give it [`Command::Join`].
    ///
    /// The incarnation of `me` should be one that this node never had: the one that it stored
    /// last plus one, else [`Incarnation::from_clock`](selvedge_core::Incarnation::from_clock), else
    /// a random number.
    /// Should someone remember a later one, the node takes one later still and says so with
    /// [`Event::Identity`].
    ///
    /// # Errors
    /// When the settings cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        let mut machine = Self {
            rules: Rules::default(),
            me,
            phase: Phase::Idle,
            seeds: Vec::new(),
            waited: false,
            list: MemberList::new(config.member_limit as usize),
            news: News::new(config.gossip_limit.into()),
            broadcaster: Broadcaster::new(config.broadcast_limit.into()),
            period: 0,
            probe: None,
            heard: Heard::default(),
            turn: Turn::default(),
            bag_step: 1,
            stretch: 0,
            monitor: SelfMonitor::default(),
            unlucky: BoundedQueue::new(8),
            hearsay: Hearsay::default(),
            disagreements: 0,
            rest: Rest::default(),
            fetch: None,
            until_reconnect: 0,
            farewells: 0,
            counters: Untracked::default(),
            config: Box::new(config),
        };
        machine.enlist_self(Metadata::default());
        Ok(machine)
    }

    /// A node that follows a rule which does not hold up, for tests and comparison.
    ///
    /// # Errors
    /// When the settings cannot work.
    #[cfg(feature = "check")]
    pub fn published(
        me: Member,
        config: Config,
        rule: crate::Published,
    ) -> Result<Self, ConfigError> {
        let mut machine = Self::new(me, config)?;
        machine.rules = Rules::published(&[rule]);
        Ok(machine)
    }

    /// Who we are. It changes when [`Event::Identity`] says so.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// Where we stand.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// How many members are not declared failed or left, this node included. O(1).
    #[must_use]
    pub const fn live(&self) -> usize {
        self.list.live()
    }

    /// All known members, this node and the remembered dead included, in an order that is the same
    /// on every node. O(1) a member.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.list.all().filter_map(|slot| self.view(slot))
    }

    /// What is known of a node. O(log N).
    #[must_use]
    pub fn member(&self, id: NodeId) -> Option<MemberView<'_>> {
        self.view(self.list.find(id)?)
    }

    /// A node's metadata. O(log N).
    #[must_use]
    pub fn metadata(&self, id: NodeId) -> Option<&[u8]> {
        Some(&self.list.metadata(self.list.find(id)?)?.0)
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn view(&self, slot: usize) -> Option<MemberView<'_>> {
        let metadata = self.list.metadata(slot)?;
        let entry = self.list.entry(slot)?;
        Some(MemberView::new(
            entry,
            &metadata.0,
            self.list.weights(),
            slot,
        ))
    }

    /// Puts this node on its own, empty list.
    pub(crate) fn enlist_self(&mut self, metadata: Metadata) {
        // A list with a limit of at least two has room for its first entry.
        let _first = self.list.insert(self.me, 0, metadata, 0, self.period);
    }

    pub(crate) fn own_slot(&self) -> Option<usize> {
        self.list.find(self.me.id)
    }

    pub(crate) fn default_weight(&self) -> u64 {
        weight(
            self.config.default_distance,
            self.config.unit_distance,
            self.config.exponent,
        )
    }

    /// How often an update is passed on, and how long suspicions last, grow with this:
    /// ceil(ln(N + 1)).
    pub(crate) fn log_live(&self) -> u16 {
        ceil_ln(self.list.live() + 1)
    }

    /// The count of periods, where the dead have an age: where they are forgotten at all.
    pub(crate) fn burial_clock(&self) -> Option<u16> {
        (self.config.tombstone_periods > 0).then_some(self.period)
    }

    pub(crate) fn copies(&self) -> u16 {
        u16::from(self.config.retransmit_factor) * self.log_live()
    }

    pub(crate) fn tell_delta(cx: &mut Context<'_, Self>, delta: Delta) {
        cx.event(Event::Membership(delta));
    }

    /// Sends `body` with as much news piggybacked as the frame holds. What is said about the
    /// receiver comes first, so that it can refute.
    pub(crate) fn tell(&mut self, to: Member, body: Body, cx: &mut Context<'_, Self>) {
        self.tell_listed(self.list.find(to.id), to, body, cx);
    }

    /// The same, to whom stands in `slot` of the list.
    pub(crate) fn tell_listed(
        &mut self,
        slot: Option<usize>,
        to: Member,
        body: Body,
        cx: &mut Context<'_, Self>,
    ) {
        let mut message = Message::bare(body);
        let mut room = self.room(&message);
        if let Some(record) = slot.and_then(|slot| self.claim_to_refute(slot))
            && room.take(record.encoded_len())
        {
            message.records.0.push(record);
        }
        let copies = self.copies();
        let longest = self.config.metadata_limit.into();
        let (list, now) = (&self.list, self.burial_clock());
        let record_of = |id| list.record(list.find(id)?, now);
        self.news
            .load(&mut message, &mut room, copies, longest, record_of);
        self.broadcaster.load(&mut message, &mut room, copies);
        cx.send(to, message);
    }

    /// What is said about a member that it should hear, to refute it.
    fn claim_to_refute(&self, slot: usize) -> Option<Record> {
        match self.list.entry(slot)?.standing {
            Standing::Alive | Standing::Doubted => None,
            Standing::Hearsay => Some(Record {
                claim: Claim::Failed(Metadata::default(), Age::default()),
                ..self.list.record(slot, None)?
            }),
            Standing::Suspect | Standing::Failed | Standing::Left => {
                self.list.record(slot, self.burial_clock())
            }
        }
    }

    /// The room for what may be piggybacked on a message.
    pub(crate) fn room(&self, message: &Message) -> Room {
        // The length of each list may need one byte more than that of an empty list.
        Room::from_sender(self.config.frame_budget, self.me, message.encoded_len() + 2)
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if self.phase == Phase::Idle {
            return Err(Reject::NotJoined);
        }
        self.vet(from, &message)?;
        let Message {
            body,
            records,
            broadcasts,
        } = message;
        if self.phase == Phase::Joining {
            return self.receive_while_joining(from, body, records, cx);
        }
        if matches!(body, Body::Join) {
            self.admit(from, records, cx);
            return Ok(());
        }
        let slot = self.list.find(from.id);
        let (known, has_left) = match slot.and_then(|slot| self.list.entry(slot)) {
            Some(entry) => (Some(entry.member()), entry.standing == Standing::Left),
            None => (None, false),
        };
        // Before anything is sent, for that has our name. Of a sender that is over as well: after
        // lies two nodes may take each other for a former life.
        if let Body::Known { life } = body {
            self.learn_of_heir(life, cx);
        }
        let is_over = known.is_some_and(|known| known.supersedes(from))
            || (has_left && known == Some(from) && !matches!(body, Body::Farewell));
        if is_over {
            self.counters.stale_senders += 1;
            // A former life's frames may come late, or its heir may not know of us yet. Only a
            // question is answered, so that two answers cannot chase each other.
            if let (Some(life), true) = (known, body.is_question()) {
                self.tell(from, Body::Known { life }, cx);
            }
            return Ok(());
        }
        if let Some(slot) = slot.filter(|_| known == Some(from)) {
            self.heard_in(slot, cx);
        }
        let source = if self.is_fetched(&body) {
            Source::Fetched
        } else if matches!(body, Body::Welcome { .. } | Body::Records { .. }) {
            Source::Page
        } else {
            Source::News
        };
        self.merge_all(from, records, source, cx);
        for broadcast in broadcasts.0 {
            self.deliver(broadcast, cx);
        }
        if known.is_none_or(|known| from.supersedes(known)) {
            self.meet(from, &body, cx);
        }
        // Slots do not move while a message is worked on, but those of the dead go to newcomers.
        let is_live = |slot: &usize| {
            let entry = self.list.entry(*slot);
            entry.is_some_and(|entry| entry.standing.is_live() && entry.member().id == from.id)
        };
        let slot = slot.filter(is_live).or_else(|| self.list.find(from.id));
        self.answer(from, slot, body, cx);
        Ok(())
    }

    /// Refuses what no sound peer sends, before anything changes.
    fn vet(&self, from: Member, message: &Message) -> Result<(), Misbehaviour> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OurId(from.id));
        }
        let len = frame_len(from, message);
        let limit = usize::from(self.config.frame_budget);
        if len > limit {
            return Err(Misbehaviour::FrameTooLong { len, limit });
        }
        let limit = usize::from(self.config.metadata_limit);
        for record in &message.records.0 {
            let len = record.metadata_len();
            if len > limit {
                let about = record.member.id;
                return Err(Misbehaviour::MetadataTooLong { about, len, limit });
            }
        }
        let limit = usize::from(self.config.broadcast_len);
        for broadcast in &message.broadcasts.0 {
            if broadcast.payload.len() > limit {
                return Err(Misbehaviour::BroadcastTooLong {
                    origin: broadcast.origin.id,
                    len: broadcast.payload.len(),
                    limit,
                });
            }
        }
        if let Body::Pull { first, last } | Body::Records { first, last, .. } = message.body
            && last < first
        {
            return Err(Misbehaviour::EmptyRange);
        }
        Ok(())
    }

    /// `slot` is where the sender stands on the list.
    fn answer(
        &mut self,
        from: Member,
        slot: Option<usize>,
        body: Body,
        cx: &mut Context<'_, Self>,
    ) {
        match body {
            Body::Ping { digest, origin } => {
                self.monitor.pinged(self.config.active);
                self.tell_listed(slot, from, Body::Ack { origin }, cx);
                self.compare_digests(from, digest, cx);
            }
            // A relay passes the answer on; there is none to pass on to ourselves.
            Body::Ack {
                origin: Some(origin),
            } if origin.id != self.me.id => {
                self.tell(origin, Body::RelayedAck { target: from }, cx);
            }
            Body::Ack { .. } => {}
            Body::PingRequest { target } => self.relay(from, target, cx),
            Body::RelayedAck { target } => self.heard_from(target, cx),
            Body::Unlucky => self.hear_unlucky(from),
            Body::Digests { buckets } if self.may_read(slot) => {
                self.send_differences(from, &buckets, cx);
            }
            // Anybody may ask a node for its own record.
            Body::Pull { first, last } if first == last && first == key(self.me.id) => {
                self.send_page(from, first, last, false, cx);
            }
            Body::Pull { first, last } if self.may_read(slot) => {
                self.send_page(from, first, last, false, cx);
            }
            Body::Digests { .. } | Body::Pull { .. } => {}
            Body::Records { next, .. } if self.is_fetched(&body) => {
                self.fetch_next(from, next, cx);
            }
            Body::Records {
                first,
                last,
                next,
                exchange,
            } => {
                let exchange = exchange && self.may_read(slot);
                self.take_page(from, (first, last), next, exchange, cx);
            }
            Body::Welcome { you, next } => {
                // A list that nobody asked for is not to be believed like one that was fetched.
                if you == self.me && self.fetch.is_none() && self.waited {
                    self.waited = false;
                    self.fetch = next;
                    self.fetch_from(from, cx);
                }
            }
            Body::Known { .. } | Body::Join | Body::Farewell => {}
        }
    }

    fn deliver(&mut self, broadcast: Broadcast, cx: &mut Context<'_, Self>) {
        if broadcast.origin.id == self.me.id {
            return;
        }
        let (is_new, is_full) = self.broadcaster.receive(&broadcast);
        self.counters.broadcasts_dropped += u64::from(is_full);
        if is_new {
            cx.event(Event::Broadcast {
                origin: broadcast.origin,
                payload: broadcast.payload,
            });
        }
    }
}

impl Machine for Membership {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(Timer::Period) => self.end_period(cx),
            Input::Tick(Timer::Probe) => self.ask_relays(cx),
            Input::Tick(Timer::Suspicion(id)) => self.end_suspicion(id, cx),
            Input::Membership(_) => Err(Reject::MembershipInput),
            Input::Command(command) => match command {
                Command::Join { seeds } => self.join(seeds, cx),
                Command::Leave => self.leave(cx),
                Command::SetMetadata(metadata) => self.set_metadata(metadata),
                Command::SetDistance { id, distance } => self.set_distance(id, distance),
                Command::Broadcast(payload) => self.broadcast(payload),
                Command::Configure(config) => self.configure(config, cx),
                Command::Confirm(member) => self.confirm(member, cx),
                Command::Inquire(member) => self.inquire(member, cx),
            },
        }
    }
}

impl Entry {
    pub(crate) const fn status(&self) -> crate::Status {
        match self.standing {
            Standing::Alive | Standing::Doubted | Standing::Hearsay => crate::Status::Alive,
            Standing::Suspect => crate::Status::Suspect,
            Standing::Failed => crate::Status::Failed,
            Standing::Left => crate::Status::Left,
        }
    }
}
