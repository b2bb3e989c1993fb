//! Messages of other nodes: a message is compared with this node's site, and each of its items goes to
//! its group.

use selvedge_core::{Context, Incarnation, Input, Member};
use selvedge_replica as replica;
use selvedge_replica::{Body, Configuration};

use crate::GroupId;
use crate::ending::Known;
use crate::leader_hints::Hint;
use crate::registry::instance;
use crate::state::{Carried, Peer};
use crate::{Begins, Groups, Item, Message, Misbehaviour, Reject};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Takes a message of another node, or the part of it that is of use here.
    pub(crate) fn receive(
        &mut self,
        from: Member,
        message: Message<S::Update, P>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        if message.items.is_empty() {
            self.compare_plans(message.plan)?;
            return Err(Misbehaviour::Empty.into());
        }
        let is_question = |it: &Item<S::Update, P>| matches!(it, Item::WantSite { .. });
        if !message.items.iter().all(is_question) {
            self.compare_sites(from, &message, cx)?;
            if self.plan.place(from.id).is_none() || !self.has_site() {
                // It is of another generation. Its site is of use.
                self.receive_site(from, message, cx);
                return Ok(());
            }
            self.meet(from);
        }
        for item in message.items {
            self.on_item((from, message.generation), item, cx);
        }
        Ok(())
    }

    fn compare_plans(&self, found: u32) -> Result<(), Misbehaviour> {
        let other = self.adoption.origin.filter(|own| *own != found);
        other.map_or(Ok(()), |own| Err(Misbehaviour::Plan { found, own }))
    }

    /// Compares the generations of the sites. The node with the later one sends it.
    fn compare_sites(
        &mut self,
        from: Member,
        message: &Message<S::Update, P>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let found = message.plan;
        self.compare_plans(found)?;
        let present = self.generation();
        if message.generation == present && self.has_site() {
            return match self.plan.place(from.id) {
                Some(_) => Ok(()),
                None => Err(Misbehaviour::Unplanned(from).into()),
            };
        }
        let is_site = |it: &Item<S::Update, P>| matches!(it, Item::Site { .. });
        if !self.has_site() || message.generation > present {
            self.on_generation(from, (found, message.generation), cx);
        } else if !message.items.iter().all(is_site) {
            self.announce_site(from);
        }
        Ok(())
    }

    /// Takes parts of a site alone.
    fn receive_site(
        &mut self,
        from: Member,
        message: Message<S::Update, P>,
        cx: &mut Context<'_, Self>,
    ) {
        for item in message.items {
            if let Item::Site { length, at, bytes } = item {
                self.on_site((from, message.generation), (length, at, &bytes), cx);
            }
        }
    }

    fn on_item(
        &mut self,
        (from, generation): (Member, u32),
        item: Item<S::Update, P>,
        cx: &mut Context<'_, Self>,
    ) {
        match item {
            Item::Replica { group, message } => self.on_replica(from, group, message, cx),
            Item::Ask { group, asked } => self.on_ask(from, group, asked, cx),
            Item::Answer {
                group,
                life,
                notified,
            } => self.on_tell(from, group, (life, notified), cx),
            Item::Where {
                group,
                number,
                leader,
                members,
            } => self.on_where(group, number, leader, &members, cx),
            Item::Inquire {
                group,
                number,
                configuration,
            } => self.on_inquire(from, group, (number, configuration)),
            Item::Here {
                group,
                life,
                number,
            } => self.on_here(from, group, (life, number), cx),
            Item::WantSite { at } => self.on_want_site(from, at),
            Item::Site { length, at, bytes } => {
                self.on_site((from, generation), (length, at, &bytes), cx);
            }
            Item::Find { .. }
            | Item::Born { .. }
            | Item::Register { .. }
            | Item::Registered { .. }
            | Item::Lost { .. }
            | Item::End { .. }
            | Item::Ended { .. }
                if !S::HAS_REGISTRY =>
            {
                self.counters.0.refused += 1;
            }
            Item::Find { group, lost } => self.on_find(from, group, lost, cx),
            Item::Born { group, birth } => self.on_born(from, group, birth, cx),
            Item::Register { registration } => self.on_register(from, registration, cx),
            Item::Registered {
                life,
                number,
                length,
                generation,
                is_decided,
            } => {
                if life == self.me.incarnation.0 {
                    self.received(GroupId::REGISTRY, from);
                    self.on_registered(number, length, (generation, is_decided), cx);
                }
            }
            Item::Lost { group, number } => self.on_lost(from, group, number, cx),
            Item::End {
                group,
                call,
                number,
                is_binding,
            } => self.on_end(from, group, (call, number, is_binding), cx),
            Item::Ended {
                group,
                life,
                since,
                call,
                mark,
                votes,
                number,
                members,
            } => {
                let known = Known {
                    life: from.incarnation,
                    since: Incarnation(since),
                    mark,
                    votes,
                    number,
                    members,
                };
                if life == self.me.incarnation.0 {
                    self.on_known(from.id, group, call, known);
                }
            }
            Item::Spared { number, is_spared } => self.on_spared(from, number, is_spared),
        }
    }

    fn on_replica(
        &mut self,
        from: Member,
        group: GroupId,
        message: replica::Message<S::Update>,
        cx: &mut Context<'_, Self>,
    ) {
        if self.is_of_other_instance(from, group, message.configuration, cx) {
            return;
        }
        if !self.parts.contains_key(&group) && !self.is_for_newcomer(from, group, &message) {
            return;
        }
        if !self.enter(group, cx) {
            return;
        }
        if self
            .step(group, Input::Message { from, message }, cx)
            .is_err()
        {
            self.counters.0.refused += 1;
        }
        if let Some(part) = self.parts.get_mut(&group) {
            let leader = part.replica.leader().map(|it| it.0);
            part.is_led |= leader == Some(from.id);
        }
    }

    /// Compares a message with the beginning of the group that this node knows. Returns true for one
    /// of a former beginning, with a number that cannot be, or of a group that the site does not have. A part of a former
    /// beginning is left: its versions are those of another history.
    fn is_of_other_instance(
        &mut self,
        from: Member,
        group: GroupId,
        number: u64,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        if !S::HAS_REGISTRY || self.rules.no_instances() {
            return false;
        }
        let is_right = number <= Configuration::NUMBER_MAX
            && (group != GroupId::REGISTRY || instance(number) == 0);
        if !is_right {
            self.counters.0.refused += 1;
            return true;
        }
        let own = self.mark(group);
        if own > 0 && number > 0 && instance(number) < instance(own) {
            let place = self.whereabouts(group);
            self.posted.0.extend(place.map(|it| (from, it)));
            return true;
        }
        // A part that knows no configuration has a state of none.
        let present = self.parts.get(&group);
        let present = present.map_or(0, |it| it.replica.configuration().number);
        let is_later = instance(number) > instance(present);
        if is_later {
            self.note_begun(group, number, cx);
        }
        if is_later && present > 0 {
            self.leave(group, cx);
        }
        !self.parts.contains_key(&group) && !S::exists(&self.site, group)
    }

    /// Returns true if a message of a group in which this node has no part gives it one. Members of
    /// a former configuration get the one that this node knows.
    fn is_for_newcomer(
        &mut self,
        from: Member,
        group: GroupId,
        message: &replica::Message<S::Update>,
    ) -> bool {
        let Some(mark) = self.marks.get(&group) else {
            let notified = self.leader_hints.get(group).map_or(0, Hint::number);
            if message.configuration < notified && asks(&message.body) {
                // It knows of later members, and nothing more.
                let news = self.whereabouts(group);
                self.posted.0.extend(news.map(|it| (from, it)));
                return false;
            }
            return is_for(self.me, message);
        };
        if message.configuration > mark.number {
            return is_for(self.me, message);
        }
        if message.configuration < mark.number && asks(&message.body) {
            let current = replica::Message {
                configuration: mark.number,
                body: Body::Current {
                    configuration: mark.clone(),
                    is_active: true,
                },
            };
            let message = current;
            self.posted.0.push((from, Item::Replica { group, message }));
        }
        false
    }

    /// Notes the life of a message's sender.
    pub(crate) fn meet(&mut self, from: Member) {
        let Some(at) = self.plan.place(from.id) else {
            return; // It is in no group.
        };
        if let Some(peer) = self.peers.get_mut(at) {
            let is_former = peer.is_some_and(|it| it.incarnation.newer_than(from.incarnation));
            let is_known = peer.is_some_and(|it| it.incarnation == from.incarnation);
            if !is_former && !is_known {
                *peer = Some(Peer::next(*peer, from.incarnation, false));
            }
        }
    }
}

/// Returns true if a message is of use to a node that knows nothing of the group: if it
/// names the node, or wants an answer, as the sender's configuration names the node then.
fn is_for<U>(me: Member, message: &replica::Message<U>) -> bool {
    if let Body::Current { configuration, .. } = &message.body {
        return configuration.voter(me.id).is_some();
    }
    asks(&message.body)
}

/// Returns true if a message wants an answer, so that two nodes that know nothing do not exchange
/// messages for ever.
const fn asks<U>(body: &Body<U>) -> bool {
    matches!(
        body,
        Body::Prepare { .. }
            | Body::Accept { .. }
            | Body::Missing { .. }
            | Body::Fetch { .. }
            | Body::Propose { .. }
            | Body::Read { .. }
            | Body::Rejoin { .. }
            | Body::Stand { .. }
    )
}
