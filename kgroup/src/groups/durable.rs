//! What a host stores, and what a later life folds.

use alloc::boxed::Box;

use selvedge_core::durable::Durable;
use selvedge_replica::{Replica, Stored};

use super::part::Part;
use super::state::Carried;
use super::{Begins, Damage, Event, Fact, Groups};
use crate::GroupId;

impl<S: Begins, P: Carried> Groups<S, P> {
    /// All that must survive a crash, as of now: a host stores it in place of all facts so far.
    ///
    /// Of one group only, [`base`](Self::base) has it: a host that compacts group by group, when one
    /// has many facts, writes less at once.
    pub fn stored(&self) -> impl Iterator<Item = Fact<S>> + '_ {
        let stored = self.parts.iter().filter(|it| it.1.is_stored);
        let parts = stored.map(|(group, part)| self.base_of(*group, part.replica.stored()));
        // Of a group that it is in again, the part has the mark.
        let marks = self.marks.keys().filter(|it| !self.has_stored(**it));
        parts.chain(marks.filter_map(|it| self.left(*it)))
    }

    /// All that must survive a crash of one group, as of now; nothing where the node has promised
    /// nothing there.
    #[must_use]
    pub fn base(&self, group: GroupId) -> Option<Fact<S>> {
        let part = self.parts.get(&group).filter(|it| it.is_stored);
        let base = part.map(|it| self.base_of(group, it.replica.stored()));
        base.or_else(|| self.left(group))
    }

    fn has_stored(&self, group: GroupId) -> bool {
        self.parts.get(&group).is_some_and(|it| it.is_stored)
    }

    pub(super) fn base_of(&self, group: GroupId, stored: Stored<S>) -> Fact<S> {
        Fact::Base {
            group,
            plan: self.plan.digest(),
            stored: Box::new(stored),
        }
    }

    fn left(&self, group: GroupId) -> Option<Fact<S>> {
        let configuration = self.marks.get(&group)?.clone();
        Some(Fact::Left {
            group,
            plan: self.plan.digest(),
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
        let group = fact.group();
        let own = self.plan.digest();
        match fact {
            &Fact::Base { plan, .. } | &Fact::Left { plan, .. } if plan != own => {
                Err(Damage::Plan { found: plan, own })
            }
            Fact::Base { stored, .. } => {
                let stored = (**stored).clone();
                let replica = Replica::restore(self.me, self.config.replica, stored);
                let replica = replica.map_err(|it| Damage::Replica(group, it))?;
                let part = Part::stored(replica);
                self.parts.insert(group, part);
                Ok(())
            }
            Fact::Replica { fact, .. } => {
                let part = self.parts.get_mut(&group).filter(|it| it.is_stored);
                let part = part.ok_or(Damage::Missing(group))?;
                let folded = part.replica.fold(fact);
                folded.map_err(|it| Damage::Replica(group, it.into()))
            }
            Fact::Left { configuration, .. } => {
                let checked = configuration.check();
                checked.map_err(|it| Damage::Replica(group, it.into()))?;
                self.parts.remove(&group);
                self.marks.insert(group, configuration.clone());
                Ok(())
            }
        }
    }
}
