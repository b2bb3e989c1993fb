//! The questions of a node that looks for a group, to the registry's leader.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};
use selvedge_replica::Configuration;

use crate::leader_hints::Hint;
use crate::propose::SiteError;
use crate::registry::{first_number, instance};
use crate::state::Carried;
use crate::{Begins, GroupId, Groups, Item, Reject};

/// The question for the present beginning, in the place of a last configuration: it begins nothing.
pub(crate) const PRESENT: u64 = Configuration::NUMBER_MAX;

/// The purpose of a search for a group. Each one includes those above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Wanted {
    /// Its place.
    Place,
    /// Another beginning, whichever is the present one: this node does not know it, and asks for it first.
    Anew,
    /// Another beginning after this configuration, unless there is one.
    After(u64),
}

impl Wanted {
    /// The last configuration as the registry's leader is asked, 0, or [`PRESENT`].
    const fn lost(self) -> u64 {
        match self {
            Self::Place => 0,
            Self::Anew => PRESENT,
            Self::After(number) => number,
        }
    }
}

/// The groups that a node looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Finding(BTreeMap<GroupId, Wanted>);

impl Finding {
    /// Adds a purpose of the search for a group. Returns the present one, or `None` if there are as many groups
    /// as `limit`.
    fn add(&mut self, group: GroupId, wanted: Wanted, limit: usize) -> Option<Wanted> {
        if !self.0.contains_key(&group) && self.0.len() >= limit {
            return None; // A place is asked for again: with the next question to the group, or in the next epoch.
        }
        let present = self.0.entry(group).or_insert(wanted);
        *present = wanted.max(*present);
        Some(*present)
    }

    /// Makes room for a command in place of a question for a place, which is asked again with the
    /// next question or hint, or in a later epoch. Returns false if
    /// there are only commands.
    fn make_room(&mut self, group: GroupId, limit: usize) -> bool {
        if self.0.contains_key(&group) || self.0.len() < limit {
            return true;
        }
        let mut places = self.0.iter().filter(|it| *it.1 == Wanted::Place);
        let place = places.next().map(|it| *it.0);
        place.is_some_and(|it| self.0.remove(&it).is_some())
    }

    /// The leader of a group is known.
    pub(crate) fn on_found(&mut self, group: GroupId) {
        if self.0.get(&group) == Some(&Wanted::Place) {
            self.0.remove(&group);
        }
    }

    /// A group has begun anew: perhaps by the same command at another node.
    pub(crate) fn on_begun(&mut self, group: GroupId) {
        (self.0).retain(|it, wanted| *it != group || *wanted != Wanted::Anew);
    }

    /// The first members of a group are known, at a node that remembers this configuration of its own. Returns
    /// the next purpose.
    pub(crate) fn on_born(&mut self, group: GroupId, number: u64, own: u64) -> Option<Wanted> {
        let next = match *self.0.get(&group)? {
            Wanted::Place => None,
            Wanted::Anew => Some(Wanted::After(number)),
            Wanted::After(lost) if instance(number) > instance(lost) => None,
            // A node sent a number that was not decided.
            Wanted::After(lost) if number.max(own) < first_number(instance(lost)) => {
                Some(Wanted::After(number))
            }
            Wanted::After(_) => return None,
        };
        self.0.remove(&group);
        next
    }

    /// An epoch has begun: groups that nodes still look for are asked for again.
    pub(crate) fn on_epoch(&mut self) {
        // The present beginning may be another one when an answer comes at last.
        self.0.retain(|_, wanted| *wanted > Wanted::Anew);
    }

    /// Forgets groups that the site does not have.
    pub(crate) fn forget(&mut self, exists: impl Fn(GroupId) -> bool) {
        self.0.retain(|it, _| exists(*it));
    }

    fn iter(&self) -> impl Iterator<Item = (GroupId, Wanted)> {
        self.0.iter().map(|it| (*it.0, *it.1))
    }

    /// The number of groups.
    #[cfg(feature = "check")]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<S: Begins, P: Carried> Groups<S, P> {
    /// Looks for a group, which begins if it has not begun.
    pub(crate) fn find(&mut self, group: GroupId, wanted: Wanted, cx: &mut Context<'_, Self>) {
        if !S::exists(&self.site, group) {
            return;
        }
        let limit = self.leader_hints.limit();
        let Some(present) = self.registrar.finding.add(group, wanted, limit) else {
            return;
        };
        let lost = present.lost();
        self.enter_registry(cx);
        if self.leads(GroupId::REGISTRY) {
            return self.on_find(self.me, group, lost, cx);
        }
        self.leader_hints.used(GroupId::REGISTRY).count();
        for to in self.likely(GroupId::REGISTRY) {
            self.posted
                .0
                .push((self.latest(to), Item::Find { group, lost }));
        }
    }

    /// Starts a group again after a loss of its memory.
    pub(crate) fn begin_anew(
        &mut self,
        group: GroupId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let limit = self.leader_hints.limit();
        if !self.registrar.finding.make_room(group, limit) {
            return Err(SiteError::Beginning(limit).into());
        }
        // A promise stands behind the beginning that has ended.
        let own = self.mark(group);
        let own = own - u64::from(self.ended.get(&group) == Some(&own));
        let hinted = self.leader_hints.get(group).map_or(0, Hint::last_number);
        let begun = self.registrar.begun.get(&group);
        let begun = begun.map_or(0, |it| first_number(*it));
        let wanted = match own.max(hinted).max(begun) {
            0 => Wanted::Anew,
            known => Wanted::After(known),
        };
        self.find(group, wanted, cx);
        self.arm_site(cx);
        Ok(())
    }

    /// Asks again for groups that are to begin anew. Returns true if there are some.
    pub(crate) fn find_lost_again(&mut self, cx: &mut Context<'_, Self>) -> bool {
        let lost = self.registrar.finding.iter();
        let lost: Vec<(GroupId, Wanted)> = lost.filter(|it| it.1 > Wanted::Place).collect();
        for &(group, wanted) in &lost {
            self.find(group, wanted, cx);
        }
        !lost.is_empty()
    }

    /// Sends the open questions to the registry's leader, of which this node has learned.
    pub(crate) fn find_again(&mut self, leader: NodeId) {
        let to = self.latest(leader);
        let open = self.registrar.finding.iter();
        let items = open.map(|(group, wanted)| {
            let lost = wanted.lost();
            (to, Item::Find { group, lost })
        });
        self.posted.0.extend(items);
        self.report_lost_to(leader);
    }
}
