//! The first members of groups that begin by a decision of the registry: nodes that answer.
//!
//! A node that is down is in the list until membership has detected it. A group with too many such
//! founders would be lost before its first decision. So the registry's leader asks first, as the
//! leader of a group does before a [change](crate::inquiry).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use selvedge_core::{Context, Member, NodeId, Span};

use crate::inquiry::ASKED;
use crate::registry::number_after;
use crate::state::Carried;
use crate::{Begins, GroupId, Groups, Item, Node, Timer};

/// A question to the nodes that would be founders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    number: u64,
    /// The nodes that have answered.
    received: BTreeSet<Member>,
    /// The nodes that were asked last, and have not answered.
    open: BTreeSet<NodeId>,
    /// The nodes that have not answered for too long.
    silent: BTreeSet<NodeId>,
    /// The number of questions to the open ones.
    asked: u8,
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Chooses founders among nodes that answer, and as many others as may fail where these are too
    /// few. Returns none while answers are missing, and none
    /// for groups for which too few nodes are here.
    pub(crate) fn choose_founders(&mut self, groups: &[GroupId]) -> Vec<(GroupId, Vec<NodeId>)> {
        let mut call = self.registrar.call.take().unwrap_or_else(|| {
            self.inquiries = self.inquiries.wrapping_add(1);
            let number = self.inquiries;
            Call {
                number,
                ..Call::default()
            }
        });
        loop {
            let nodes = self.plan.nodes().iter().map(|it| self.candidate(it));
            let is_member = groups.iter().all(|it| self.parts.contains_key(it));
            let is_full = self.parts.len() >= self.config.groups.into() && !is_member;
            let is_here = |it: &Node| {
                let has_room = it.id != self.me.id || !is_full;
                has_room && self.is_here(it.id) && !call.silent.contains(&it.id)
            };
            let (mut here, away): (Vec<Node>, Vec<Node>) = nodes.partition(is_here);
            // A group may begin without as many as may fail. They are replaced when others are here.
            let selection = self.plan.selection();
            let missing = selection.members().saturating_sub(here.len());
            let away = away.into_iter().take(missing);
            if missing <= selection.failures.into() {
                here.extend(away.clone());
            }
            let is_away = |id: NodeId| away.clone().any(|it| it.id == id);
            let all = groups.iter().copied();
            let chosen = self.plan.choose::<S>(&self.site, self.epoch, here, all);
            let chosen = chosen.into_iter().filter_map(|it| Some((it.0, it.1.ok()?)));
            let chosen: Vec<(GroupId, Vec<NodeId>)> = chosen.collect();
            let founders = chosen
                .iter()
                .flat_map(|(group, founders)| founders.iter().map(|it| (self.latest(*it), *group)));
            let open: BTreeMap<Member, GroupId> = founders
                .filter(|it| it.0 != self.me && !call.received.contains(&it.0))
                .filter(|it| !is_away(it.0.id))
                .collect();
            if open.is_empty() {
                return chosen;
            }
            if call.asked < ASKED {
                call.asked += 1;
                call.open = open.keys().map(|it| it.id).collect();
                let number = call.number;
                let items = open.into_iter().map(|(to, group)| {
                    let lost = self.registrar.due.get(&group);
                    let ask = Item::Inquire {
                        group,
                        number,
                        configuration: number_after(lost.copied().unwrap_or_default()),
                    };
                    (to, ask)
                });
                self.posted.0.extend(items);
                self.registrar.call = Some(call);
                return Vec::new();
            }
            self.counters.0.silent += open.len() as u64;
            call.silent.extend(open.keys().map(|it| it.id));
            call.asked = 0;
        }
    }

    /// Handles the answer of a node that was asked. Returns false for another question.
    pub(crate) fn on_founder_here(
        &mut self,
        from: Member,
        (life, number): (u32, u64),
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let is_latest = self.latest(from.id) == from;
        let call = self.registrar.call.as_mut();
        let is_own = life == self.me.incarnation.0;
        let Some(call) = call.filter(|it| is_own && it.number == number) else {
            return false;
        };
        if is_latest && call.open.remove(&from.id) {
            call.received.insert(from);
            if call.open.is_empty() {
                cx.arm(Timer::Registry, Span::ZERO);
            }
        }
        true
    }
}
