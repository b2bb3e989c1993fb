//! The site of a later generation, as nodes take it from each other.
//!
//! Each message names the generation of its sender's site. A node that receives a later one asks the
//! sender for its site, part by part, and takes it when it is whole. Members of the registry have
//! it from its decision. So a node takes only sites that were decided, each a later one than before.
//!
//! A node that begins with a site of generation n > 0 cannot know if the others have it. It founds
//! nothing, and asks the others for theirs first.

use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::{Context, Member, Span};

use crate::inquiry::ASKED;
use crate::registry::{Bytes, SITE_MAX};
use crate::state::{Carried, Peer};
use crate::{Begins, Event, Fact, GroupId, Groups, Item, Plan, Timer};

/// The number of ticks between two questions of a node that no site has named yet.
const ASKS_EVERY: u8 = 8;

/// The bytes of a frame that are not a part of a site: the sender, and numbers.
pub(crate) const AROUND_PART: usize = 72;

/// The site, as it comes from other nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Adoption {
    /// The digest of the plan of generation 0, once it is known.
    pub(crate) origin: Option<u32>,
    /// True if this node has a site that the others have or had: that of generation 0, or a decided
    /// one.
    pub(crate) has_site: bool,
    /// The generation of a site that this node could not decode.
    refused: u32,
    fetch: Option<Fetch>,
    /// True if a site that it had named it.
    was_named: bool,
    /// True after a question of a node that the site does not have: it asks for a later site once.
    asks: bool,
    /// The ticks until it asks again, where no site has named it yet.
    waits: u8,
    /// The number of the plan's node that was asked last.
    turn: usize,
    /// True while [`Timer::Site`] is armed.
    pub(crate) is_armed: bool,
}

/// A site of which some parts have arrived.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fetch {
    from: Member,
    origin: u32,
    generation: u32,
    bytes: Vec<u8>,
    /// The number of times that the next part was asked for in vain.
    asked: u8,
}

impl Adoption {
    pub(crate) fn new(plan: &Plan, has_registry: bool) -> Self {
        let has_site = plan.generation() == 0 || !has_registry;
        Self {
            origin: has_site.then(|| plan.digest()),
            has_site,
            was_named: has_site,
            ..Self::default()
        }
    }

    /// An epoch has begun: a site that could not be decoded is asked for again.
    pub(crate) const fn on_epoch(&mut self) {
        self.refused = 0;
    }

    /// Notes the origin of a stored fact. Returns false if it is another one.
    pub(crate) fn accepts(&mut self, origin: u32) -> bool {
        *self.origin.get_or_insert(origin) == origin
    }

    /// True if a site is on its way, or missing.
    pub(crate) const fn is_open(&self) -> bool {
        !self.has_site || self.fetch.is_some()
    }
}

impl Fetch {
    /// Returns true if this is the plan that its sender named.
    fn is_right(&self, plan: &Plan) -> bool {
        let is_first = plan.generation() == 0;
        plan.generation() == self.generation && (!is_first || plan.digest() == self.origin)
    }
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Handles the news that a node has a site of this generation.
    pub(crate) fn on_generation(
        &mut self,
        from: Member,
        (origin, generation): (u32, u32),
        cx: &mut Context<'_, Self>,
    ) {
        // A node without a site knows no origin. Another building may have sent the first one.
        let is_known = |it: &Fetch| it.generation >= generation && it.origin == origin;
        let is_old = self.has_site() && generation <= self.generation();
        let is_refused = generation > 0 && generation == self.adoption.refused;
        let is_open = self.adoption.fetch.as_ref().is_some_and(is_known);
        // Nodes of another building may be on the same network.
        let is_stranger = self.plan.place(from.id).is_none();
        if !S::HAS_REGISTRY || is_old || is_refused || is_open || is_stranger && !self.has_site() {
            return;
        }
        self.adoption.fetch = Some(Fetch {
            from,
            origin,
            generation,
            bytes: Vec::new(),
            asked: 0,
        });
        self.want_part();
        self.arm_site(cx);
    }

    /// Asks for the next part.
    fn want_part(&mut self) {
        if let Some(fetch) = &self.adoption.fetch {
            let at = u32::try_from(fetch.bytes.len()).unwrap_or(u32::MAX);
            self.posted.0.push((fetch.from, Item::WantSite { at }));
        }
    }

    /// Sends a part of this node's site. Any node may ask, also one that no plan names yet.
    pub(crate) fn on_want_site(&mut self, from: Member, at: u32) {
        if !self.has_site() {
            return;
        }
        let site = S::encode(&self.site);
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let room = usize::from(self.plan.frame_budget()).saturating_sub(AROUND_PART);
        let part = site.iter().skip(at).take(room.max(1)).copied();
        let bytes: Bytes = part.collect();
        if !bytes.is_empty() {
            self.post_site(from, site.len(), at, bytes);
        }
    }

    fn post_site(&mut self, to: Member, length: usize, at: usize, bytes: Bytes) {
        let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        let (length, at) = (number(length), number(at));
        let item = Item::Site { length, at, bytes };
        self.posted.0.push((to, item));
    }

    /// Notifies a node that this node has a later site: the message names the generation.
    pub(crate) fn announce_site(&mut self, to: Member) {
        self.post_site(to, 0, 0, Bytes::new());
    }

    /// Notifies all nodes that are here.
    pub(crate) fn announce_site_to_all(&mut self) {
        for node in self.others_here() {
            self.announce_site(node);
        }
    }

    /// Handles a part of a site.
    pub(crate) fn on_site(
        &mut self,
        (from, generation): (Member, u32),
        (length, at, bytes): (u32, u32, &Bytes),
        cx: &mut Context<'_, Self>,
    ) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(fetch) = &mut self.adoption.fetch else {
            return;
        };
        let is_next = usize::try_from(at) == Ok(fetch.bytes.len());
        let is_of_it = from == fetch.from && generation == fetch.generation;
        if !is_of_it || bytes.is_empty() || !is_next {
            return; // Late, or the news alone.
        }
        fetch.asked = 0;
        fetch.bytes.extend_from_slice(bytes);
        if length > SITE_MAX || fetch.bytes.len() > length {
            self.counters.0.refused += 1;
            self.adoption.fetch = None;
        } else if fetch.bytes.len() < length {
            self.want_part();
        } else if let Some(fetch) = self.adoption.fetch.take() {
            match S::decode(&fetch.bytes) {
                // The registry may have given it meanwhile.
                _ if self.has_site() && fetch.generation <= self.generation() => {}
                Some((site, plan)) if fetch.is_right(&plan) => {
                    self.adoption.origin.get_or_insert(fetch.origin);
                    self.adopt(site, plan, cx);
                    self.meet(from); // The former site may not have had it.
                }
                _ => {
                    self.adoption.refused = fetch.generation;
                    self.counters.0.refused += 1;
                }
            }
        }
    }

    /// Takes the site that the registry has decided, if it is later than this node's.
    pub(crate) fn adopt_decided(&mut self, cx: &mut Context<'_, Self>) {
        let state = self.parts.get(&GroupId::REGISTRY);
        let registry = state.and_then(|it| it.replica.state()?.registry());
        let Some(registry) = registry.filter(|it| it.generation() > self.generation()) else {
            return;
        };
        let decoded = S::decode(registry.site());
        debug_assert!(decoded.is_some(), "a registry decides no other bytes");
        if let Some((site, plan)) = decoded {
            self.adopt(site, plan, cx);
        }
    }

    /// Takes a site of a later generation: leaves groups that it does not have, and looks for other
    /// members where it does not have a member.
    pub(crate) fn adopt(&mut self, site: S::Site, plan: Plan, cx: &mut Context<'_, Self>) {
        let was_in = self.has_site() && self.plan.names(self.me.id);
        let is_first = !core::mem::replace(&mut self.adoption.has_site, true);
        if !is_first {
            self.store_founded(cx);
        }
        // A part of the former site would be sent as one of this.
        let is_part =
            |it: &Item<S::Update, P>| matches!(it, Item::Site { bytes, .. } if !bytes.is_empty());
        self.posted.0.retain(|it| !is_part(&it.1));
        self.replace_site(site, plan);
        if self.awaits_place() {
            self.arm_site(cx);
        }
        // A site that is on its way and is no later would take this node back.
        let present = self.generation();
        (self.adoption.fetch).take_if(|it| it.generation <= present);
        let fact = self.site_fact();
        fact.into_iter().for_each(|it| cx.event(Event::Fact(it)));
        if is_first {
            let began = self.began();
            began.into_iter().for_each(|it| cx.event(Event::Fact(it)));
        }
        cx.event(Event::Site {
            generation: self.generation(),
        });
        self.note_decided(cx);
        let groups: Vec<GroupId> = self.parts.keys().copied().collect();
        for group in groups {
            if !S::exists(&self.site, group) && !self.rules.keeps_groups() {
                self.leave(group, cx);
                continue;
            }
            if let Some(part) = self.parts.get_mut(&group) {
                part.notified = 0; // Other nodes are asked for its place now.
            }
            self.look_for_change(group, cx);
        }
        self.look_for_births(cx);
        let site = &self.site;
        self.registrar.forget(|it| S::exists(site, it));
        if self.leads(GroupId::REGISTRY) {
            cx.arm(Timer::Ending, Span::ZERO);
        }
        // Others had no place for reports of a node that their site did not have.
        if self.leads(GroupId::REGISTRY) || !was_in {
            self.announce_site_to_all();
        }
    }

    /// Stores its part in each group that it has founded. A later plan does not name their founders:
    /// a later life that has the site alone would found them no more.
    fn store_founded(&mut self, cx: &mut Context<'_, Self>) {
        if self.is_founder_of_registry() {
            self.enter(GroupId::REGISTRY, cx);
        }
        let voting = self.parts.iter().filter(|it| it.1.replica.votes());
        let voting: Vec<GroupId> = voting.map(|it| *it.0).collect();
        for group in voting {
            self.begin_to_store(group, cx);
        }
    }

    /// Puts a site in the place of the present one.
    pub(crate) fn replace_site(&mut self, site: S::Site, plan: Plan) {
        let peers: Vec<Option<Peer>> = plan
            .known()
            .map(|it| *self.peers.get(self.plan.place(it)?)?)
            .collect();
        self.peers = peers;
        self.adoption.was_named |= plan.names(self.me.id);
        self.plan = Arc::new(plan);
        self.site = Arc::new(site);
        self.hint_at_all();
    }

    /// Makes room for hints of all groups of the site: a node may ask them all at once.
    pub(crate) fn hint_at_all(&mut self) {
        let groups = S::groups(&self.site).len();
        let hints = usize::from(self.config.leader_hints) + groups;
        self.leader_hints.raise(hints);
    }

    /// The site as a fact, where it can change.
    pub(crate) fn site_fact(&self) -> Option<Fact<S>> {
        let plan = self.adoption.origin?;
        (S::HAS_REGISTRY && self.has_site()).then(|| Fact::Site {
            plan,
            site: S::encode(&self.site).into_iter().collect(),
        })
    }

    /// Arms the timer of sites that are on their way to this node or to the registry.
    pub(crate) fn arm_site(&mut self, cx: &mut Context<'_, Self>) {
        if !core::mem::replace(&mut self.adoption.is_armed, true) {
            cx.arm(Timer::Site, self.config.patience);
        }
    }

    pub(crate) fn on_site_tick(&mut self, cx: &mut Context<'_, Self>) {
        self.adoption.is_armed = false;
        let is_prompt = self.registrar.on_tick();
        if is_prompt {
            // A part of this node's proposal has arrived.
        } else if let Some(fetch) = &mut self.adoption.fetch {
            fetch.asked += 1;
            if fetch.asked > ASKED {
                self.adoption.fetch = None; // Its sender is away. Others send the news, too.
            } else {
                self.want_part();
            }
        } else if !self.has_site() {
            self.want_any_site();
        } else if self.awaits_place() {
            self.adoption.waits = (self.adoption.waits + 1) % ASKS_EVERY;
            if self.adoption.waits == 0 {
                self.adoption.asks = false;
                self.want_any_site();
            }
        }
        self.propose_again(cx);
        // The next part of a proposal may follow at once: nothing else is overdue then.
        let finds = is_prompt || self.find_lost_again(cx);
        let reports = is_prompt || self.report_lost_again(cx);
        let awaits = self.adoption.is_open() || self.awaits_place();
        if finds || reports || awaits || self.registrar.is_proposing() {
            self.arm_site(cx);
        }
    }

    /// Has a node that the site does not have ask for the sites that follow.
    pub(crate) fn await_place(&mut self, cx: &mut Context<'_, Self>) {
        self.adoption.asks = true;
        self.arm_site(cx);
    }

    /// Returns true if this node joins or has a question, and its site does not name it. It may miss the news of the
    /// site that does.
    const fn awaits_place(&self) -> bool {
        let waits = !self.adoption.was_named || self.adoption.asks;
        S::HAS_REGISTRY && self.has_site() && waits
    }

    /// Asks the next node that is here for its site.
    pub(crate) fn want_any_site(&mut self) {
        let here = self.others_here();
        self.adoption.turn = self.adoption.turn.wrapping_add(1);
        let turn = self.adoption.turn.checked_rem(here.len());
        let asked = turn.and_then(|it| here.get(it)).copied();
        let wanted = asked.map(|to| (to, Item::WantSite { at: 0 }));
        self.posted.0.extend(wanted);
    }
}
