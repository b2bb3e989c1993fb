//! A node's part in a group that the registry begins, or begins anew.
//!
//! A founder takes part only if the decision names it in a life that its memory covers: so a node that lost
//! its memory founds nothing twice.

use selvedge_core::{Context, Member};
use selvedge_replica::{Configuration, Replica, Voter};

use crate::leader_hints::Hint;
use crate::part::Part;
use crate::registry::{Birth, first_number, instance};
use crate::route::MEMBERS_MAX;
use crate::state::Carried;
use crate::{Begins, Event, GroupId, Groups, Item, Reject};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Handles the beginning of a group, by a decision of the registry.
    pub(crate) fn on_born(
        &mut self,
        from: Member,
        group: GroupId,
        birth: Birth,
        cx: &mut Context<'_, Self>,
    ) {
        let is_known = birth
            .founders
            .iter()
            .all(|it| self.plan.place(it.id).is_some());
        let is_possible = (1..=Configuration::NUMBER_MAX).contains(&birth.number)
            && birth.founders.len() <= MEMBERS_MAX
            && (!birth.founders.is_empty() || birth == Birth::before_all());
        if !is_possible || !is_known || !S::exists(&self.site, group) || group == GroupId::REGISTRY
        {
            self.counters.0.refused += 1;
            return;
        }
        self.received(GroupId::REGISTRY, from);
        let is_founder = birth.founders.iter().any(|it| self.is_own_life(*it));
        let is_new = self.mark(group) < birth.number && is_founder;
        if is_new {
            // Before a command of this node, which this beginning answers.
            self.note_begun(group, birth.number, cx);
        }
        let wanted = self
            .registrar
            .finding
            .on_born(group, birth.number, self.mark(group));
        if let Some(wanted) = wanted {
            self.find(group, wanted, cx);
            self.arm_site(cx);
        }
        if birth.founders.is_empty() {
            return; // The registry has decided no beginning.
        }
        let present = self.parts.get(&group);
        let present = present.map_or(0, |it| it.replica.configuration().number);
        if present > 0 && instance(present) < instance(birth.number) {
            self.leave(group, cx);
        }
        let own = self.mark(group);
        if own < birth.number && is_founder {
            self.begin_born(group, &birth, cx);
        } else if own < birth.number {
            self.on_where(group, birth.number, None, &birth.founders, cx);
            self.ask_founders(group, &birth.founders);
        }
        if is_founder && from.id != self.me.id {
            let place = self.last_place(group);
            self.posted.0.extend(place.map(|it| (from, it)));
        }
    }

    /// The place of a group for the registry's leader, which notifies founders until it knows that the group went
    /// on: a configuration of a former epoch is more than a guess there.
    fn last_place(&self, group: GroupId) -> Option<Item<S::Update, P>> {
        let hint = self.leader_hints.get(group);
        let is_old = |it: &&Hint<P>| it.number() < it.last_number();
        match hint.filter(|it| is_old(it) && it.last_number() > self.mark(group)) {
            Some(hint) => Some(Item::Where {
                group,
                number: hint.last_number(),
                leader: None,
                members: hint.last_members().iter().copied().collect(),
            }),
            None => self.whereabouts(group),
        }
    }

    /// Reports that a group has begun anew, if this number is the first one of its beginning that this life learns.
    pub(crate) fn note_begun(&mut self, group: GroupId, number: u64, cx: &mut Context<'_, Self>) {
        let before = instance(number);
        let is_later = S::HAS_REGISTRY && before > 0 && self.mark(group) < first_number(before);
        let is_it = is_later && group != GroupId::REGISTRY && S::exists(&self.site, group);
        if is_it && self.registrar.note_begun(group, before) {
            self.registrar.lost.remove(&group);
            cx.event(Event::BegunAnew(group));
        }
    }

    /// The number of the last configuration of a group that this node knows as a member, or of its
    /// promise to take part in no earlier one, or 0.
    pub(crate) fn mark(&self, group: GroupId) -> u64 {
        let part = self.parts.get(&group);
        let own = part.map_or(0, |it| it.replica.configuration().number);
        let mark = self.marks.get(&group).map_or(0, |it| it.number);
        let ended = self.ended.get(&group).copied().unwrap_or_default();
        own.max(mark).max(ended)
    }

    /// The highest number of a configuration of a group that this node knows, also from others.
    pub(crate) fn latest_number(&self, group: GroupId) -> u64 {
        let hinted = self.leader_hints.get(group).map_or(0, Hint::last_number);
        self.mark(group).max(hinted)
    }

    /// Returns true if it is this node in a life whose memory this life has.
    fn is_own_life(&self, named: Member) -> bool {
        let has_memory = named.incarnation.is_within(self.since, self.me.incarnation);
        named.id == self.me.id && (has_memory || self.rules.founders_in_any_life())
    }

    fn begin_born(&mut self, group: GroupId, birth: &Birth, cx: &mut Context<'_, Self>) {
        let Ok(Some(replica)) = self.born(group, birth) else {
            self.counters.0.refused += 1; // Its members are too many, or one twice.
            return;
        };
        // A part that knows of no configuration has voted nowhere.
        if let Some(part) = self.parts.remove(&group) {
            self.disarm(group, &part, cx);
        } else if self.parts.len() >= self.config.groups.into() {
            self.counters.0.no_room += 1;
            return;
        }
        self.parts.insert(group, Part::new(replica));
        self.begin_to_store(group, cx);
        self.introduce(group, cx);
        self.look_after(group, cx);
    }

    fn born(&self, group: GroupId, birth: &Birth) -> Result<Option<Replica<S>>, Reject> {
        let before = instance(birth.number);
        let Some(state) = S::begin_later(&self.site, group, before, birth.generation) else {
            return Ok(None);
        };
        let voters = birth.founders.iter().copied().map(Voter::new);
        let first = Configuration {
            number: birth.number,
            frame_budget: self.plan.replica_budget(),
            ..Configuration::new(voters)
        };
        let named = birth.founders.iter().find(|it| it.id == self.me.id);
        let in_any_life = named.filter(|_| self.rules.founders_in_any_life());
        let since = in_any_life.copied().unwrap_or(Member {
            incarnation: self.since,
            ..self.me
        });
        let replica = Replica::born(self.me, self.config.replica, since, first, state);
        replica.map(Some).map_err(|it| Reject::Founding(group, it))
    }
}
