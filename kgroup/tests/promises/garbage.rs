//! Messages that no correct peer sends.

use selvedge_core::{Input, Member, NodeId};
use selvedge_groups::{GroupId, Item, store::StoreRequest};
use selvedge_kgroup::{Message, Payload, Request, TriggerId, Update};
use selvedge_sim::histories::History;

use crate::world::World;

impl World {
    fn liar(&mut self) -> Member {
        let id = match self.below(8) {
            0 => 50 + self.below(100),
            1 => u64::MAX,
            _ => self.a_node(),
        };
        let life = self.nodes.get(&id).map_or(0, |it| it.life);
        let life = match self.below(8) {
            0 => life.wrapping_sub(1),
            1 => life.wrapping_add(1),
            2 => u32::MAX,
            _ => life,
        };
        Member::new(id, life)
    }

    /// A message that was sent, with some bytes changed, cut, or of another one; if it can be decoded.
    fn bent(&mut self) -> Option<(Member, Message)> {
        if self.old.is_empty() {
            return None;
        }
        let at = self.below(self.old.len() as u64) as usize;
        let (from, _, message) = self.old[at].clone();
        let mut bytes = postcard::to_allocvec(&message).unwrap();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() as u64) as usize;
            // The digest of the plan comes first.
            let at = if self.percent(80) { at.max(5) } else { at };
            let Some(byte) = bytes.get(at).copied() else {
                continue;
            };
            bytes[at] = match self.below(5) {
                0 => 0xff,
                1 => 0,
                2 => byte ^ (1 << self.below(8)),
                3 => byte.wrapping_add(1),
                _ => self.below(20) as u8,
            };
        }
        if self.percent(10) {
            let end = self.below(bytes.len() as u64) as usize;
            bytes.truncate(end);
        }
        if self.percent(10) {
            // The end of another one.
            let at = self.below(self.old.len() as u64) as usize;
            let other = postcard::to_allocvec(&self.old[at].2).unwrap();
            let cut = self.below(bytes.len().min(other.len()) as u64) as usize;
            bytes.truncate(cut);
            bytes.extend(&other[cut..]);
        }
        let from = if self.percent(60) { from } else { self.liar() };
        Some((from, postcard::from_bytes(&bytes).ok()?))
    }

    /// Peers lie to a node, some times.
    pub(crate) fn slander(&mut self, to: u64) {
        if self.percent(5) {
            self.flood(to);
        }
        let many = if self.percent(5) { 300 } else { 30 };
        for _ in 0..1 + self.below(many) {
            if let Some((from, message)) = self.bent() {
                self.lies += 1;
                self.input(to, Input::Message { from, message });
            }
        }
    }

    /// A member of the site asks for very many groups, names their places, and asks much of maps.
    fn flood(&mut self, to: u64) {
        let from = self.a_node();
        let Some(from) = self.me(from) else {
            return;
        };
        let plan = self.site.plan().unwrap().digest();
        for _ in 0..300 {
            let group = GroupId(self.below(u64::MAX));
            let group = if self.percent(30) {
                self.a_map()
            } else {
                group
            };
            let number = self.below(1 << 40);
            let item = match self.below(6) {
                0 => Item::Inquire {
                    group,
                    number,
                    configuration: self.below(1 << 40),
                },
                1 => Item::Where {
                    group,
                    number,
                    leader: Some(NodeId(1 + self.below(8))),
                    members: (0..self.below(70))
                        .map(|it| Member::new(1 + it % 8, 1))
                        .collect(),
                },
                2 => Item::Here {
                    group,
                    life: 0,
                    number,
                },
                3 => ask(group, Request::Trigger(TriggerId(number))),
                4 => ask(
                    group,
                    Request::Store(StoreRequest::Watch {
                        key: number.to_string(),
                        known: 0,
                    }),
                ),
                _ => ask(
                    group,
                    Request::Store(StoreRequest::Get {
                        number,
                        key: number.to_string(),
                    }),
                ),
            };
            let items = [item].into_iter().collect();
            let message = Message {
                plan,
                generation: 0,
                items,
            };
            self.lies += 1;
            self.input(to, Input::Message { from, message });
        }
    }
}

fn ask(group: GroupId, request: Request) -> Item<Update, Payload> {
    let asked = Payload::Request(request);
    Item::Ask { group, asked }
}
