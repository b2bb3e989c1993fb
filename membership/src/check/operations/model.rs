//! What a node told its application, and what must follow from it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use selvedge_core::{Delta, Incarnation, Member, NodeId, serial_newer};

use crate::{Event, Membership, Phase};

/// The application's own list, made of deltas alone, and the last that was seen of each member.
#[derive(Default)]
pub(super) struct Told {
    identity: Option<Member>,
    live: BTreeMap<NodeId, Incarnation>,
    last: BTreeMap<NodeId, Last>,
}

struct Last {
    incarnation: Incarnation,
    revision: u32,
    has_left: bool,
}

impl Told {
    /// Takes an event in; says whether it was a delta.
    pub(super) fn event(&mut self, event: &Event) -> Result<bool, String> {
        match event {
            Event::Identity(me) => {
                if let Some(before) = self.identity.filter(|&before| !me.supersedes(before)) {
                    return Err(format!("the identity went from {before:?} to {me:?}"));
                }
                self.identity = Some(*me);
                Ok(false)
            }
            Event::Membership(delta) => self.delta(*delta).map(|()| true),
            Event::Metadata(_) | Event::Broadcast { .. } | Event::Left => Ok(false),
        }
    }

    fn delta(&mut self, delta: Delta) -> Result<(), String> {
        let Member { id, incarnation } = delta.member();
        let listed = self.live.get(&id).copied();
        let is_fitting = match delta {
            // A member that was declared failed and comes back may be reported as either.
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

    /// Holds the machine's list against what it told.
    pub(super) fn compare(&mut self, machine: &Membership) -> Result<(), String> {
        let mut live = BTreeMap::new();
        let mut known = 0;
        let mut count = 0;
        let mut seen = BTreeMap::new();
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
                has_left,
            };
            if let Some(before) = self.last.get(&id) {
                last.check_after(before)
                    .map_err(|what| format!("{:?}: {what}", view.member))?;
            }
            seen.insert(id, last);
        }
        // Itself, and the others.
        let known_before = 1 + self.last.len();
        // What is not listed any more was forgotten, and may come again as anything.
        self.last = seen;
        let limit = machine.config().member_limit as usize;
        // Settings that shrink the list leave it to its entries to go; it must not grow then.
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
                "the list is {live:?}, and the application was told {:?}",
                self.live
            ));
        }
        Ok(())
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
