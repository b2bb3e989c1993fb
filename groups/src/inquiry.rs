//! Inquiries: a leader names only nodes that answer.
//!
//! A node that a link names is a member from then on. A node that is down, or that has begun again
//! meanwhile, would be one of the f that may fail; an outdated list names several of them. So the
//! leader asks first, and names the life that answers.
//!
//! The question has the number of the link's configuration. A node that has promised to
//! [end](crate::ending) the group before that number would have no vote, so it does not answer.
//!
//! Nor does a leader propose a link while no quorum answers, or is taken for present: the link
//! would be decided when a quorum is back, and name outdated lives.

use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId};
use selvedge_replica::Voter;

use crate::GroupId;
use crate::state::Carried;
use crate::{Begins, Event, Groups, Item};

/// The number of questions to a node before it is passed over.
pub(crate) const ASKED: u8 = 3;

/// A leader's question to the nodes that it would name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inquiry {
    number: u64,
    /// The members that were chosen, in their order.
    chosen: Vec<NodeId>,
    /// The asked nodes that have answered.
    received: Vec<Member>,
    /// The asked nodes that have not answered for too long.
    silent: Vec<NodeId>,
    /// The number of questions to the nodes that have not answered.
    asked: u8,
    /// True if a quorum has answered since.
    is_confirmed: bool,
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Chooses members, at the leader, and asks if they are present, and if this node leads.
    pub(crate) fn inquire(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        self.inquiries = self.inquiries.wrapping_add(1);
        let number = self.inquiries;
        if let Some(part) = self.parts.get_mut(&group) {
            part.inquiry = Some(Inquiry {
                number,
                chosen: Vec::new(),
                received: Vec::new(),
                silent: Vec::new(),
                asked: 0,
                is_confirmed: false,
            });
        }
        self.confirm(group, cx); // Where it is a quorum by itself, it knows at once.
        let part = self.parts.get_mut(&group);
        if let Some(inquiry) = part.and_then(|it| it.inquiry.take()) {
            self.choose(group, inquiry, cx);
        }
    }

    fn choose(&mut self, group: GroupId, mut inquiry: Inquiry, cx: &mut Context<'_, Self>) {
        let here = self.plan.nodes().iter().map(|it| self.candidate(it));
        let here = here.filter(|it| self.is_here(it.id) && !inquiry.silent.contains(&it.id));
        let chosen = self
            .plan
            .choose::<S>(&self.site, self.epoch, here, [group])
            .pop();
        match chosen {
            Some((_, Ok(chosen))) => inquiry.chosen = chosen,
            Some((_, Err(why))) => return cx.event(Event::Unplaced { group, why }),
            None => return,
        }
        let Some(replica) = self.replica(group) else {
            return; // It was left.
        };
        let voters = self.named(group, &inquiry.chosen);
        if voters == replica.configuration().voters {
            return;
        }
        if inquiry.is_confirmed && self.open(&inquiry).is_empty() {
            return self.change(group, voters, cx);
        }
        self.ask_whether_here(group, inquiry, cx);
    }

    fn ask_whether_here(
        &mut self,
        group: GroupId,
        mut inquiry: Inquiry,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(replica) = self.replica(group) else {
            return; // It was left.
        };
        let ask = Item::Inquire {
            group,
            number: inquiry.number,
            configuration: replica.configuration().number + 1,
        };
        let asked = self.open(&inquiry).into_iter();
        let items = asked.map(|it| (it, ask.clone()));
        self.posted.0.extend(items);
        inquiry.asked += 1;
        if let Some(part) = self.parts.get_mut(&group) {
            part.inquiry = Some(inquiry);
        }
        self.arm_change(group, self.config.replica.resend, cx);
    }

    /// Asks again, or gives up: not all nodes have answered in time.
    pub(crate) fn inquire_again(
        &mut self,
        group: GroupId,
        mut inquiry: Inquiry,
        cx: &mut Context<'_, Self>,
    ) {
        if inquiry.asked < ASKED {
            return self.ask_whether_here(group, inquiry, cx);
        }
        if !inquiry.is_confirmed {
            return self.look_again(group, cx);
        }
        let silent = self.open(&inquiry);
        self.counters.0.silent += silent.len() as u64;
        inquiry.silent.extend(silent.iter().map(|it| it.id));
        inquiry.asked = 0;
        self.choose(group, inquiry, cx);
    }

    /// The chosen nodes that have not answered. A node that answered in a life that has ended is
    /// one of them.
    fn open(&self, inquiry: &Inquiry) -> Vec<Member> {
        let chosen = inquiry.chosen.iter().map(|it| self.latest(*it));
        let open = chosen.filter(|it| *it != self.me && !inquiry.received.contains(it));
        open.collect()
    }

    /// These nodes as members, each in its latest life: with or without its memory, it votes then.
    /// Members stay as they are named.
    fn named(&self, group: GroupId, chosen: &[NodeId]) -> Vec<Voter> {
        let present = self.replica(group).map(|it| it.configuration());
        let voter = |id: &NodeId| {
            let latest = self.latest(*id);
            let named = present.and_then(|it| it.voter(*id));
            let named = named.filter(|it| !latest.supersedes(it.member));
            named.unwrap_or_else(|| Voter::new(latest))
        };
        chosen.iter().map(voter).collect()
    }

    /// Answers the leader of a group that asks if this node is present. A node that has promised to take no
    /// part in the next configuration would be one of the f: it sends the place of the next beginning, if it
    /// knows one. The leader may be a node that the site has no more, and learn it from no other message.
    pub(crate) fn on_inquire(
        &mut self,
        from: Member,
        group: GroupId,
        (number, configuration): (u64, u64),
    ) {
        let ended = self.ended.get(&group).copied().unwrap_or_default();
        if configuration <= ended {
            let place = self.whereabouts(group);
            self.posted.0.extend(place.map(|it| (from, it)));
            return;
        }
        let has_room = self.parts.len() < self.config.groups.into();
        if !has_room && !self.parts.contains_key(&group) {
            self.counters.0.no_room += 1;
            return;
        }
        let here = Item::Here {
            group,
            life: from.incarnation.0,
            number,
        };
        self.posted.0.push((from, here));
    }

    /// Handles the answer of a node that was asked.
    pub(crate) fn on_here(
        &mut self,
        from: Member,
        group: GroupId,
        (life, number): (u32, u64),
        cx: &mut Context<'_, Self>,
    ) {
        if self.on_founder_here(from, (life, number), cx) {
            return;
        }
        let is_latest = self.latest(from.id) == from;
        let Some(part) = self.parts.get_mut(&group) else {
            return; // It was left.
        };
        let is_own = life == self.me.incarnation.0;
        let Some(mut inquiry) = part.inquiry.take_if(|it| is_own && it.number == number) else {
            return; // The answer to a question that has ended.
        };
        let is_asked = inquiry.chosen.contains(&from.id);
        if is_asked && is_latest && !inquiry.received.contains(&from) {
            inquiry.received.push(from);
        }
        self.go_on(group, inquiry, cx);
    }

    /// Goes on with an inquiry once a quorum of the group has answered.
    pub(crate) fn on_confirmed(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let part = self.parts.get_mut(&group);
        if let Some(mut inquiry) = part.and_then(|it| it.inquiry.take()) {
            inquiry.is_confirmed = true;
            self.go_on(group, inquiry, cx);
        }
    }

    fn go_on(&mut self, group: GroupId, inquiry: Inquiry, cx: &mut Context<'_, Self>) {
        let is_over = inquiry.is_confirmed && self.open(&inquiry).is_empty();
        if is_over && !inquiry.chosen.is_empty() {
            self.disarm_change(group, cx);
            self.choose(group, inquiry, cx); // The list may have changed meanwhile.
        } else if let Some(part) = self.parts.get_mut(&group) {
            part.inquiry = Some(inquiry);
        }
    }
}
