//! The way of questions to the leader of a group.
//!
//! The node that asks goes on itself, and no other node forwards: so a question makes no more
//! messages than its asker sends, for any beliefs of other nodes.

use alloc::vec::Vec;

use selvedge_core::wire::List;
use selvedge_core::{Context, Member, NodeId};
use selvedge_replica::{Configuration, Replica};

use crate::GroupId;
use crate::find_group::Wanted;
use crate::leader_hints::{Hint, UNANSWERED};
use crate::registry::instance;
use crate::state::{Carried, Posted};
use crate::{Begins, Event, Groups, Item};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Asks the leader of a group, for the application.
    pub(crate) fn ask(&mut self, group: GroupId, payload: P, cx: &mut Context<'_, Self>) {
        if !self.parts.contains_key(&group) && self.is_founder_of_new(group) {
            // A group that begins with its first question.
            self.enter(group, cx);
        }
        if self.leads(group) {
            let from = self.me;
            return cx.event(Event::Asked {
                group,
                from,
                payload,
            });
        }
        if self.has_site() && self.plan.place(self.me.id).is_none() {
            // Others refuse its questions until a site has it, so it asks for that site instead.
            return self.await_place(cx);
        }
        // Questions of one step are one round: none can be answered before the others are sent.
        let is_asked =
            |(_, it): &Posted<S, P>| matches!(it, Item::Ask { group: of, .. } if *of == group);
        let is_new_round = !self.posted.0.iter().rev().any(is_asked);
        self.leader_hints
            .used(group)
            .ask(payload.clone(), is_new_round);
        for to in self.likely(group) {
            let asked = payload.clone();
            self.posted
                .0
                .push((self.latest(to), Item::Ask { group, asked }));
        }
        let hint = self.leader_hints.get(group);
        let is_lost = hint.is_none_or(|it| it.leader.is_none() || it.unanswered() > UNANSWERED);
        if is_new_round && is_lost && self.is_by_registry(group) {
            self.find(group, Wanted::Place, cx);
        }
    }

    /// Sends the questions that wait to the founders of a group that has just begun.
    pub(crate) fn ask_founders(&mut self, group: GroupId, founders: &[Member]) {
        let hint = self.leader_hints.get(group);
        let asked: Vec<P> = hint.map_or_else(Vec::new, |it| it.asked().cloned().collect());
        for founder in founders.iter().filter(|it| it.id != self.me.id) {
            let to = self.latest(founder.id);
            let items = asked.iter().map(|asked| {
                let asked = asked.clone();
                (to, Item::Ask { group, asked })
            });
            self.posted.0.extend(items);
        }
    }

    /// Returns true if a group does not exist here yet, and this node would found it.
    pub(crate) fn is_founder_of_new(&self, group: GroupId) -> bool {
        if self.is_by_registry(group) {
            return false;
        }
        let is_notified = self
            .leader_hints
            .get(group)
            .is_some_and(|it| it.number() > 0);
        let is_new = !self.was_in(group) && !is_notified;
        is_new && self.may_found() && {
            S::begin(&self.site, group).is_some() && self.founders(group).contains(&self.me.id)
        }
    }

    /// The nodes to ask for the leader of a group.
    pub(crate) fn likely(&self, group: GroupId) -> Vec<NodeId> {
        let own = self.present(group);
        let leader = own.and_then(|it| it.leader()).map(|it| it.0);
        let members: Vec<NodeId> = own.map_or_else(Vec::new, |it| {
            let members = it.configuration().members();
            members.map(|it| it.member.id).collect()
        });
        let hint = self.leader_hints.get(group);
        let unanswered = hint.map_or(0, Hint::unanswered);
        let hinted = hint.and_then(|it| it.leader);
        let known = hint.into_iter().flat_map(|it| &it.members);
        let leader = leader.or(hinted).filter(|it| !self.has_ended(*it));
        let mut likely: Vec<NodeId> = leader.into_iter().collect();
        let mut knows_some = true;
        if leader.is_none() || unanswered > UNANSWERED {
            likely.extend(known.map(|it| it.id));
            likely.extend(members);
            likely.extend(self.successors(group, unanswered > UNANSWERED));
            knows_some = !likely.is_empty();
            if !knows_some || unanswered > UNANSWERED {
                let here = self.plan.nodes().iter().map(|it| self.candidate(it));
                let here = here.filter(|it| self.is_here(it.id));
                let chosen = self.plan.choose::<S>(&self.site, self.epoch, here, [group]);
                if let Some((_, Ok(chosen))) = chosen.into_iter().next() {
                    likely.extend(chosen);
                }
            }
        }
        // Founders begin a group at its first question, and leaders send them its place. Where room
        // for hints is short, unanswered rounds are not counted.
        if !knows_some || unanswered > 2 * UNANSWERED {
            likely.extend(self.founders(group));
        }
        let me = self.me.id;
        likely.retain(|it| *it != me);
        likely.sort_unstable();
        likely.dedup();
        if likely.is_empty() && own.is_none() {
            // It would be the only member and the only founder, and knows no other place.
            likely.extend(self.others_here().iter().map(|it| it.id));
        }
        likely
    }

    /// The members that this node knows to follow the configuration that it was in, unless others
    /// named later ones that it still hopes to find. A former member knows the next link, so from
    /// each of them the chain leads to the present one, also after wrong hints.
    fn successors(&self, group: GroupId, in_vain: bool) -> impl Iterator<Item = NodeId> + '_ {
        let mark = self.marks.get(&group);
        let hint = self.leader_hints.get(group);
        let is_latest = |number| !hint.is_some_and(|it| it.is_behind(number));
        let mark = mark.filter(|it| in_vain || is_latest(it.number));
        let members = mark.into_iter().flat_map(|it| it.members());
        members.map(|it| it.member.id)
    }

    /// This node's replica, unless others named later members: then it missed a link.
    fn present(&self, group: GroupId) -> Option<&Replica<S>> {
        let notified = self.leader_hints.get(group).map_or(0, Hint::number);
        let own = self.replica(group);
        own.filter(|it| it.configuration().number >= notified.max(1)) // A newcomer knows of none.
    }

    /// Handles another node's question.
    pub(crate) fn on_ask(
        &mut self,
        from: Member,
        group: GroupId,
        payload: P,
        cx: &mut Context<'_, Self>,
    ) {
        if !self.parts.contains_key(&group) && self.is_founder_of_new(group) {
            self.enter(group, cx);
        }
        if self.leads(group) {
            return cx.event(Event::Asked {
                group,
                from,
                payload,
            });
        }
        self.counters.0.elsewhere += 1;
        self.leader_hints.renew(group);
        if let Some(news) = self.whereabouts(group) {
            self.posted.0.push((from, news));
        }
    }

    /// The place of a group, as far as this node knows it.
    #[must_use]
    pub fn whereabouts(&self, group: GroupId) -> Option<Item<S::Update, P>> {
        let (number, leader, members): (u64, _, List<Member, 5>) =
            if let Some(replica) = self.present(group) {
                let configuration = replica.configuration();
                let leader = replica.leader().map(|it| it.0);
                let members = configuration.members().map(|it| it.member).collect();
                (configuration.number, leader, members)
            } else {
                let mark = self.marks.get(&group);
                let hint = self.leader_hints.get(group);
                let marked = mark.map_or(0, |it| it.number);
                match hint.filter(|it| it.is_behind(marked)) {
                    // From a former epoch it is sent as a guess, which gives way to any known
                    // place.
                    Some(hint) => {
                        let members = hint.members.iter().copied().collect();
                        (hint.number(), hint.leader, members)
                    }
                    None => {
                        let members = mark?.members().map(|it| it.member).collect();
                        (marked, None, members)
                    }
                }
            };
        (!members.is_empty()).then_some(Item::Where {
            group,
            number,
            leader,
            members,
        })
    }

    /// Handles the place of a group that another node sends.
    pub(crate) fn on_where(
        &mut self,
        group: GroupId,
        number: u64,
        leader: Option<NodeId>,
        members: &[Member],
        cx: &mut Context<'_, Self>,
    ) {
        let is_known = |it: NodeId| self.plan.place(it).is_some();
        if number > Configuration::NUMBER_MAX
            || !S::exists(&self.site, group)
            || members.is_empty()
            || members.len() > MEMBERS_MAX
            || !members.iter().map(|it| it.id).chain(leader).all(is_known)
        {
            self.counters.0.refused += 1;
            return;
        }
        self.note_begun(group, number, cx);
        let leader = leader.filter(|it| *it != self.me.id);
        let before = self.leader_hints.get(group).and_then(|it| it.leader);
        let is_news = leader != before;
        let asked = match self.leader_hints.get_mut(group) {
            Some(hint) => hint.notify(number, leader, members),
            None => self
                .leader_hints
                .used(group)
                .notify(number, leader, members),
        };
        let to = leader.map(|it| self.latest(it));
        let items = to.into_iter().flat_map(|to| {
            let ask = move |asked| (to, Item::Ask { group, asked });
            asked.iter().cloned().map(ask)
        });
        self.posted.0.extend(items);
        if let Some(leader) = leader {
            self.registrar.finding.on_found(group);
            // Two nodes that name each other would have it ask them for ever.
            if group == GroupId::REGISTRY && is_news && self.registrar.may_ask_at_once() {
                self.find_again(leader);
                self.propose_to(leader);
                self.arm_site(cx);
            }
        }
        let own = self.replica(group).filter(|_| S::HAS_REGISTRY);
        let own = own.map(|it| it.configuration().number);
        match own.filter(|it| *it > 0 && instance(*it) < instance(number)) {
            // The registry's leader knows if the group has begun anew.
            Some(_) => self.find(group, Wanted::Place, cx),
            None => self.on_later(group, number),
        }
    }

    /// Returns true if no part has grown beyond its limit, and nothing of this step is left.
    #[cfg(feature = "check")]
    pub(crate) fn is_bounded(&self) -> bool {
        self.parts.len() <= self.config.groups.into()
            && self.leader_hints.is_bounded(MEMBERS_MAX)
            && self
                .registrar
                .is_bounded(self.leader_hints.limit(), self.peers.len())
            && self.posted.0.is_empty()
    }

    /// Answers a node, for the application, as the leader of a group.
    pub(crate) fn notify(
        &mut self,
        to: Member,
        group: GroupId,
        payload: P,
        cx: &mut Context<'_, Self>,
    ) {
        if to.id == self.me.id {
            // A leader that goes on from its stored memory answers its former life as well: this
            // life numbers its questions from the start.
            if to == self.me {
                let from = self.me;
                cx.event(Event::Answered {
                    group,
                    from,
                    payload,
                });
            }
            return;
        }
        self.posted.0.push((
            to,
            Item::Answer {
                group,
                life: to.incarnation.0,
                notified: payload,
            },
        ));
    }

    /// Notes the leader of a group, of which this node learned from its question to another group.
    pub fn received(&mut self, group: GroupId, from: Member) {
        if from.id != self.me.id
            && self.plan.place(from.id).is_some()
            && let Some(hint) = self.leader_hints.get_mut(group)
        {
            hint.receive(from.id);
        }
    }

    /// Handles an answer of the leader of a group.
    pub(crate) fn on_tell(
        &mut self,
        from: Member,
        group: GroupId,
        (life, payload): (u32, P),
        cx: &mut Context<'_, Self>,
    ) {
        if life != self.me.incarnation.0 {
            return; // It is meant for a life that has ended.
        }
        self.received(group, from);
        cx.event(Event::Answered {
            group,
            from,
            payload,
        });
    }
}

/// The most members of a group.
pub(crate) const MEMBERS_MAX: usize = 64;
