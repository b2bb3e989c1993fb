//! Facts that a host stores and a later life folds.

use alloc::boxed::Box;

use selvedge_core::durable::Durable;
use selvedge_replica::{Configuration, Replica, Stored};

use crate::GroupId;
use crate::part::Part;
use crate::state::Carried;
use crate::{Begins, Damage, Event, Fact, Groups};

impl<S: Begins, P: Carried> Groups<S, P> {
    /// The memory that must survive a crash, as of now: a host stores it in place of all earlier
    /// facts.
    ///
    /// [`base`](Self::base) has the part of one group only: a host that compacts group by group,
    /// when a group has many facts, writes less at once.
    ///
    /// O(g) with g groups that it is in or was in.
    pub fn stored(&self) -> impl Iterator<Item = Fact<S>> + '_ {
        let stored = self.parts.iter().filter(|it| it.1.is_stored);
        let parts = stored.map(|(group, part)| self.base_of(*group, part.replica.stored()));
        // For a group that it is in again, the part has the mark.
        let marks = self.marks.keys().filter(|it| !self.has_stored(**it));
        let ended = self.ended.keys().filter(|it| !self.has_stored(**it));
        let groups = parts.chain(marks.filter_map(|it| self.left(*it)));
        let groups = groups.chain(ended.filter_map(|it| self.end_fact(*it)));
        let site = self.site_fact();
        site.into_iter().chain(self.began()).chain(groups)
    }

    /// The digest under which it stores.
    fn origin(&self) -> u32 {
        self.adoption.origin.unwrap_or_default()
    }

    /// The life since which it stores. A node without a site has nothing to store, and does not know under which
    /// digest: later lives would refuse all others.
    pub(crate) fn began(&self) -> Option<Fact<S>> {
        let plan = self.adoption.origin?;
        let since = self.since;
        Some(Fact::Began { plan, since })
    }

    /// The memory of one [group](Fact::group), or of no group, that must survive a crash, as of
    /// now; nothing where the node has promised nothing there.
    #[must_use]
    pub fn base(&self, group: Option<GroupId>) -> Option<Fact<S>> {
        let Some(group) = group else {
            return self.began();
        };
        if S::HAS_REGISTRY && group == GroupId::SITE {
            return self.site_fact();
        }
        let part = self.parts.get(&group).filter(|it| it.is_stored);
        let base = part.map(|it| self.base_of(group, it.replica.stored()));
        base.or_else(|| self.end_fact(group))
            .or_else(|| self.left(group))
    }

    fn has_stored(&self, group: GroupId) -> bool {
        self.parts.get(&group).is_some_and(|it| it.is_stored)
    }

    pub(crate) fn base_of(&self, group: GroupId, stored: Stored<S>) -> Fact<S> {
        Fact::Base {
            group,
            plan: self.origin(),
            stored: Box::new(stored),
        }
    }

    fn end_fact(&self, group: GroupId) -> Option<Fact<S>> {
        let number = *self.ended.get(&group)?;
        let plan = self.origin();
        Some(Fact::Ended {
            group,
            plan,
            number,
        })
    }

    fn left(&self, group: GroupId) -> Option<Fact<S>> {
        let configuration = self.marks.get(&group)?.clone();
        Some(Fact::Left {
            group,
            plan: self.origin(),
            configuration,
        })
    }
}

impl<S: Begins, P: Carried> Durable for Groups<S, P> {
    type Fact = Fact<S>;
    type Damage = Damage;

    fn fact(event: &Event<S, P>) -> Option<&Fact<S>> {
        if let Event::Fact(fact) = event {
            return Some(fact);
        }
        None
    }

    fn fold(&mut self, fact: &Fact<S>) -> Result<(), Damage> {
        match fact {
            &Fact::Began { plan, .. }
            | &Fact::Site { plan, .. }
            | &Fact::Base { plan, .. }
            | &Fact::Left { plan, .. }
            | &Fact::Ended { plan, .. }
                if !self.adoption.accepts(plan) =>
            {
                let own = self.origin();
                Err(Damage::Plan { found: plan, own })
            }
            Fact::Site { site, .. } => {
                let (site, plan) = S::decode(site).ok_or(Damage::Site)?;
                self.replace_site(site, plan);
                self.adoption.has_site = true;
                // The program of this life may have another one.
                let founded = self.found_all();
                founded.map_err(|_| Damage::Site)
            }
            &Fact::Began { since, .. } => {
                self.since = since;
                Ok(())
            }
            &Fact::Base {
                group, ref stored, ..
            } => {
                let stored = (**stored).clone();
                let replica = Replica::restore(self.me, self.config.replica, stored);
                let replica = replica.map_err(|it| Damage::Replica(group, it))?;
                let part = Part::stored(replica);
                self.parts.insert(group, part);
                Ok(())
            }
            &Fact::Replica { group, ref fact } => {
                let part = self.parts.get_mut(&group).filter(|it| it.is_stored);
                let part = part.ok_or(Damage::Missing(group))?;
                let folded = part.replica.fold(fact);
                folded.map_err(|it| Damage::Replica(group, it.into()))
            }
            &Fact::Left {
                group,
                ref configuration,
                ..
            } => {
                self.parts.remove(&group);
                if configuration.number == 0 {
                    return Ok(()); // It left before it knew a configuration.
                }
                let checked = configuration.check();
                checked.map_err(|it| Damage::Replica(group, it.into()))?;
                self.marks.insert(group, configuration.clone());
                self.ended.remove(&group);
                Ok(())
            }
            &Fact::Ended { group, number, .. } => {
                let first = Configuration::of([self.me]);
                let checked = Configuration { number, ..first }.check();
                checked.map_err(|it| Damage::Replica(group, it.into()))?;
                self.parts.remove(&group);
                self.marks.remove(&group);
                self.ended.insert(group, number);
                Ok(())
            }
        }
    }
}
