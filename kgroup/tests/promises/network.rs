//! What goes from node to node: messages, and news of members.

use selvedge_core::{Choose, Delta, Input, Member, wire};
use selvedge_groups as groups;
use selvedge_kgroup::{Message, Reject};

use crate::world::{Real, What, World};

impl World {
    pub(crate) fn send(&mut self, from: Member, to: u64, message: Message) {
        self.last_sent = self.now;
        self.sent += 1;
        if self.weather.liars && self.sent > 20_000 {
            return; // Where peers lie, two nodes may answer each other for ever.
        }
        assert!(self.sent < 3_000_000, "a storm");
        let len = wire::frame_len(from, &message);
        let budget = usize::from(self.site.frame_budget());
        assert!(len <= budget, "{len} of {budget}: {message:?}");
        if self.percent(1) {
            let bytes = postcard::to_allocvec(&message).unwrap();
            assert_eq!(
                bytes.len(),
                wire::Message::encoded_len(&message),
                "{message:?}"
            );
            assert_eq!(postcard::from_bytes::<Message>(&bytes).unwrap(), message);
        }
        if self.weather.echoes || self.weather.liars || self.old.is_empty() || self.percent(2) {
            self.remember(from, to, &message);
        }
        if !self.nodes.contains_key(&to)
            || self.cuts.contains(&(from.id.0, to))
            || self.percent(self.weather.lost)
        {
            return;
        }
        let copies = 1 + u64::from(self.percent(self.weather.doubled));
        for _ in 0..copies {
            let mut delay = 500 + self.rng.below(self.weather.delay);
            if self.percent(self.weather.far) {
                delay += self.rng.below(self.weather.latest);
            }
            let what = What::Deliver {
                to,
                from,
                message: message.clone(),
                sent: self.now,
            };
            self.at(self.now + delay.min(self.weather.latest), what);
        }
    }

    /// Remembers a message: the network may deliver it again, however late.
    fn remember(&mut self, from: Member, to: u64, message: &Message) {
        const KEPT: usize = 1_000;
        if self.old.len() < KEPT {
            self.old.push((from, to, message.clone()));
            return;
        }
        let at = self.below(KEPT as u64 * 4) as usize;
        if let Some(slot) = self.old.get_mut(at) {
            *slot = (from, to, message.clone());
        }
    }

    /// Messages of any age come once more.
    pub(crate) fn echo(&mut self) {
        for _ in 0..1 + self.below(20) {
            if self.old.is_empty() {
                return;
            }
            let at = self.below(self.old.len() as u64) as usize;
            let (from, to, message) = self.old[at].clone();
            let sent = self.now;
            let what = What::Deliver {
                to,
                from,
                message,
                sent,
            };
            self.at(self.now, what);
        }
    }

    /// A message of another site, of another generation, or of a node that the site does not name:
    /// a node refuses it as a whole.
    pub(crate) fn stray(&mut self) {
        let Some((mut from, to, mut message)) = self.old.last().cloned() else {
            return;
        };
        if self.percent(50) {
            message.plan ^= 1 << self.below(32);
        } else {
            from = Member::new(1_000 + self.below(100), self.below(3) as u32);
        }
        let node = &self.nodes[&to];
        if node.asleep
            || node
                .host
                .as_ref()
                .is_none_or(|it| it.barrier.ready().is_err())
        {
            return;
        }
        let input = Input::Message { from, message };
        let taken = self.step(to, Some(input));
        let refused = matches!(&taken, Err(Reject::Groups(groups::Reject::Misbehaviour(_))));
        assert!(refused, "of {from:?}: {taken:?}");
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

    /// Tells a node of a change, now or later.
    pub(crate) fn tell(&mut self, to: u64, delta: Delta) {
        if to == delta.member().id.0 || self.percent(self.weather.deltas_lost) {
            return;
        }
        let after = self.below(300_000);
        let after = if self.percent(10) { after * 20 } else { after };
        self.at(self.now + after, What::Told(to, delta));
    }

    /// Tells all of it, or one.
    pub(crate) fn spread(&mut self, delta: Delta) {
        for to in self.ids() {
            if to != delta.member().id.0 {
                self.tell(to, delta);
            }
        }
    }

    /// The clocks of hosts tell of an epoch, each in its own time.
    pub(crate) fn begin_epoch(&mut self, epoch: u64, within: Real) {
        for id in self.ids() {
            let after = self.below(within + 1);
            self.at(self.now + after, What::Epoch(id, epoch));
        }
    }
}
