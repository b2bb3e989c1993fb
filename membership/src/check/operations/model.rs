//! The events of a node, and the conditions that follow from them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, Incarnation, Member, NodeId, serial_newer};

use crate::{Event, Membership, Phase};

/// The application's own list, made of deltas alone, and the last view of each member.
#[derive(Default)]
pub(super) struct Notified {
    identity: Option<Member>,
    live: BTreeMap<NodeId, Incarnation>,
    last: BTreeMap<NodeId, Last>,
    /// The members of which an end was reported since the last comparison.
    ended: BTreeSet<NodeId>,
    /// The number of tombstones that had given way for want of room at the last comparison.
    displaced: u64,
}

struct Last {
    incarnation: Incarnation,
    revision: u32,
    is_live: bool,
    has_left: bool,
}

impl Notified {
    /// Takes an event in; returns true if it was a delta.
    pub(super) fn event(&mut self, event: &Event) -> Result<bool, String> {
        match event {
            Event::Identified(me) => {
                if let Some(before) = self.identity.filter(|&before| !me.supersedes(before)) {
                    return Err(format!("the identity went from {before:?} to {me:?}"));
                }
                self.identity = Some(*me);
                Ok(false)
            }
            Event::Changed(delta) => self.delta(*delta).map(|()| true),
            Event::MetadataChanged(_) | Event::BroadcastReceived { .. } | Event::Left => Ok(false),
        }
    }

    fn delta(&mut self, delta: Delta) -> Result<(), String> {
        let Member { id, incarnation } = delta.member();
        let listed = self.live.get(&id).copied();
        let is_fitting = match delta {
            // A member that was declared failed and returns may be reported as either.
            Delta::Joined(_) => listed.is_none(),
            Delta::Refuted(_) => listed.is_none_or(|listed| listed == incarnation),
            Delta::Suspected(_) => listed == Some(incarnation),
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                listed.is_none_or(|listed| listed == incarnation)
            }
        };
        if !is_fitting {
            return Err(format!("{delta:?} where {id:?} was listed as {listed:?}"));
        }
        if matches!(delta, Delta::Failed(_) | Delta::Left(_)) {
            self.ended.insert(id);
        }
        match delta {
            Delta::Joined(_) | Delta::Refuted(_) => {
                self.live.insert(id, incarnation);
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                self.live.remove(&id);
            }
            Delta::Suspected(_) => {}
        }
        Ok(())
    }

    /// Compares the machine's list with its events.
    pub(super) fn compare(&mut self, machine: &Membership) -> Result<(), String> {
        let mut live = BTreeMap::new();
        let mut known = 0;
        let mut count = 0;
        let mut seen = BTreeMap::new();
        let mut back = Vec::new();
        for view in machine.members() {
            let Member { id, incarnation } = view.member;
            known += 1;
            count += usize::from(view.status.is_live());
            if id == machine.me().id {
                continue;
            }
            if view.status.is_live() {
                live.insert(id, incarnation);
            }
            let has_left = view.status == crate::Status::Left;
            let last = Last {
                incarnation,
                revision: view.revision,
                is_live: view.status.is_live(),
                has_left,
            };
            if let Some(before) = self.last.get(&id)
                && let Err(what) = last.check_after(before)
            {
                let broken = format!("{:?}: {what}", view.member);
                if before.is_live && !self.ended.contains(&id) {
                    return Err(broken);
                }
                back.push(broken);
            }
            seen.insert(id, last);
        }
        self.account_for(back, &seen, machine.counters().tombstones_displaced)?;
        // This node, and the others.
        let known_before = 1 + self.last.len();
        // A node that is not listed any more was forgotten, and may come again in any life.
        self.last = seen;
        self.ended.clear();
        let limit = machine.config().member_limit as usize;
        // Under settings that shrink the list, it shrinks as entries are removed; it must not grow
        // then.
        if known > limit.max(known_before) {
            return Err(format!("{known} members are known, {limit} allowed"));
        }
        if count != machine.live() {
            return Err(format!(
                "{count} members are live, and live() says {}",
                machine.live()
            ));
        }
        if machine.phase() != Phase::Idle && live != self.live {
            return Err(format!(
                "the list is {live:?}, and the events of the application give {:?}",
                self.live
            ));
        }
        Ok(())
    }

    /// A message may make a tombstone give way, and name the same member again: it is listed before
    /// and after, and was forgotten between. So each of the members that are `back` needs a
    /// tombstone that gave way in this step, apart from the tombstones of the members that were
    /// removed.
    fn account_for(
        &mut self,
        back: Vec<String>,
        seen: &BTreeMap<NodeId, Last>,
        displaced: u64,
    ) -> Result<(), String> {
        let gave_way = displaced.saturating_sub(self.displaced);
        self.displaced = displaced;
        let gone = self.last.keys().filter(|id| !seen.contains_key(id)).count();
        let forgotten = gave_way.saturating_sub(gone as u64);
        match back.into_iter().nth(forgotten as usize) {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }
}

impl Last {
    fn check_after(&self, before: &Self) -> Result<(), &'static str> {
        if before.incarnation.newer_than(self.incarnation) {
            return Err("its incarnation went back");
        }
        if before.incarnation != self.incarnation {
            return Ok(());
        }
        if serial_newer(before.revision, self.revision) {
            return Err("its revision went back");
        }
        if before.has_left && !self.has_left {
            return Err("it left and came back");
        }
        Ok(())
    }
}
