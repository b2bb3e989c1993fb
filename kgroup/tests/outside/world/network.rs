//! The network: messages that are lost, doubled, late or blocked.

use std::collections::BTreeSet;

use selvedge_core::{Delta, Input, Member, NodeId, wire};
use selvedge_kgroup::Message;

use super::{Ev, World};
use crate::story::Break;

impl World {
    pub(super) fn send(&mut self, from: Member, to: NodeId, message: Message) {
        let length = wire::frame_len(from, &message);
        let (now, mut budget) = (self.now, self.budget);
        if self.broken == Some(Break::ShortFrames) {
            budget -= budget / 4;
        }
        self.oracle.expect(now, length <= usize::from(budget), || {
            format!("a frame of {length} bytes with a budget of {budget}: {message:?}")
        });
        let is_double = self.dice.percent(self.faults.double);
        let double = is_double.then(|| message.clone());
        for message in double.into_iter().chain([message]) {
            if let Some(after) = self.transit(from.id, to, &message) {
                let sent = now;
                self.after(
                    after,
                    Ev::Deliver {
                        from,
                        to,
                        sent,
                        message,
                    },
                );
            }
        }
    }

    /// The time until a message arrives; `None` if it is lost.
    fn transit(&mut self, from: NodeId, to: NodeId, message: &Message) -> Option<u64> {
        let is_lost = self.dice.percent(self.faults.loss) || (self.loses)(message);
        if is_lost || self.blocked.contains(&(from, to)) {
            return None;
        }
        let after = 100 + self.dice.below(self.faults.delay);
        if !self.dice.percent(self.faults.slow) {
            return Some(after);
        }
        let longest = match is_of_cluster(message) {
            true => self.faults.longest,
            false => self.faults.ages.max(self.faults.longest),
        };
        Some(after + self.dice.below(longest.saturating_sub(after).max(1)))
    }

    pub(super) fn deliver(&mut self, from: Member, to: NodeId, sent: u64, message: Message) {
        let Some(found) = self.nodes.get(&to) else {
            return;
        };
        if found.driver.is_none() || self.blocked.contains(&(from.id, to)) {
            return;
        }
        let asleep = found.asleep_until;
        if asleep > self.now {
            // A message in a socket is under way: none is for longer than a command may act.
            if asleep + 10 < sent + self.faults.longest {
                let at = asleep + self.dice.below(10);
                self.at(
                    at,
                    Ev::Deliver {
                        from,
                        to,
                        sent,
                        message,
                    },
                );
            }
            return;
        }
        self.trace_items(from, to, &message);
        let refused = self.input(to, Input::Message { from, message });
        if let Some(refused) = refused {
            self.note(|| format!("{to} refuses a message of {from}: {refused}"));
        }
    }

    /// Prints the items about the group of `OUTSIDE_GROUP`.
    fn trace_items(&self, from: Member, to: NodeId, message: &Message) {
        let Some(group) = self.traced_group.filter(|_| self.trace) else {
            return;
        };
        for item in message.items.iter() {
            let text = format!("{item:?}");
            if text.contains(&format!("GroupId({group})")) {
                self.note(|| format!("{from} -> {to}: {text}"));
            }
        }
    }

    /// Blocks messages between the nodes, one way each; they fail for each other.
    pub(crate) fn cut(&mut self, pairs: BTreeSet<(NodeId, NodeId)>, for_time: u64) {
        for (from, to) in &pairs {
            self.blocked.insert((*from, *to));
            if let (Some(a), Some(b)) = (self.nodes.get(from), self.nodes.get(to)) {
                let (subject, life) = (Member::new(from.0, a.life), b.life);
                if self.dice.percent(80) {
                    let within = self.faults.detection;
                    self.report(*to, life, Delta::Failed(subject), within);
                }
            }
        }
        self.after(for_time, Ev::Heal(pairs));
    }

    pub(super) fn heal(&mut self, pairs: &BTreeSet<(NodeId, NodeId)>) {
        for (from, to) in pairs {
            self.blocked.remove(&(*from, *to));
            self.refute(*from, *to);
        }
    }
}

/// Returns true if an item is of a cluster's group: it may be a message of a command.
fn is_of_cluster(message: &Message) -> bool {
    use selvedge_groups::Item;
    message.items.iter().any(|item| match item {
        Item::Replica { group, .. } | Item::Ask { group, .. } | Item::Answer { group, .. } => {
            crate::is_cluster(*group)
        }
        Item::Where { .. }
        | Item::Inquire { .. }
        | Item::Here { .. }
        | Item::Find { .. }
        | Item::Born { .. }
        | Item::WantSite { .. }
        | Item::Site { .. }
        | Item::Register { .. }
        | Item::Registered { .. } => false,
        _ => true,
    })
}
