//! Messages from node to node.

use selvedge_core::{Input, Member, wire};
use selvedge_groups::Item;
use selvedge_kgroup::Message;
use selvedge_sim::histories::History;

use crate::world::{World, is_accusation};

/// More messages in a second than any correct building sends: no answer causes its question again.
const BUSIEST: u64 = 20_000;

impl World {
    pub(crate) fn dispatch(&mut self, from: Member, to: u64, message: &Message) {
        self.last_sent = self.now;
        let in_second = self.count();
        if self.liars && self.sent > 20_000 {
            return; // Where peers lie, two nodes may answer each other for ever.
        }
        assert!(in_second < BUSIEST, "a storm");
        assert!(self.sent < 3_000_000, "a storm that does not end");
        let len = wire::frame_len(from, message);
        let budget = usize::from(self.site.frame_budget());
        assert!(len <= budget, "{len} of {budget}: {message:?}");
        if self.percent(1) {
            let bytes = postcard::to_allocvec(message).unwrap();
            let len = wire::Message::encoded_len(message);
            assert_eq!(bytes.len(), len, "{message:?}");
            assert_eq!(postcard::from_bytes::<Message>(&bytes).unwrap(), *message);
        }
        if self.echoes || self.liars || self.old.is_empty() || self.percent(2) {
            self.remember(from, to, message);
        }
        if self.nodes.contains_key(&to) {
            self.carry(from, to, message);
        }
    }

    /// A message of another site, of another generation, or of a node that the site does not name:
    /// a node refuses it as a whole.
    pub(crate) fn stray(&mut self) {
        let Some((mut from, to, mut message)) = self.old.last().cloned() else {
            return;
        };
        // A node without a place in any site may ask for the site.
        if self.percent(50) || self.sites.is_on {
            message.plan ^= 1 << self.below(32);
        } else {
            from = Member::new(1_000 + self.below(100), self.below(3) as u32);
        }
        // Any node may ask for the site, of whichever building.
        let mut items = message.items.iter();
        if !self.is_running(to) || items.all(|it| matches!(it, Item::WantSite { .. })) {
            return;
        }
        let is_waiting = |world: &Self| {
            let machine = world.machine(to);
            machine.is_some_and(|it| !it.groups().has_site())
        };
        // It would be the site of another building that has the sender, and of a later generation it cannot be refused.
        let has_site = (message.items.iter()).any(|it| matches!(it, Item::Site { .. }));
        if has_site && message.generation > 0 && is_waiting(self) {
            return;
        }
        let taken = self.step(to, Some(Input::Message { from, message }));
        // A node that does not know the site of the others takes nothing else from anyone.
        assert!(
            is_waiting(self) || is_accusation(&taken),
            "of {from:?}: {taken:?}"
        );
    }

    /// Cuts a node off, one way or both.
    pub(crate) fn cut_off(&mut self, id: u64) {
        let way = self.below(3);
        for other in self.ids() {
            if way != 0 {
                self.cuts.insert((id, other));
            }
            if way != 1 {
                self.cuts.insert((other, id));
            }
        }
    }

    /// Parts the nodes into two halves.
    pub(crate) fn part(&mut self) {
        let mask = self.below(1 << 16);
        let one_way = self.percent(30);
        for a in self.ids() {
            for b in self.ids() {
                let differ = (mask >> (a % 16) ^ mask >> (b % 16)) & 1 == 1;
                if differ && (!one_way || mask >> (a % 16) & 1 == 1) {
                    self.cuts.insert((a, b));
                }
            }
        }
    }
}
