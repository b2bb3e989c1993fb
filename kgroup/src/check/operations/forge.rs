//! Messages that no node sent.

use alloc::string::String;

use selvedge_core::Member;
use selvedge_groups::{GroupId, Item};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation;

use super::World;
use crate::{Message, Payload, Update};

impl World {
    /// A message that no node sent: the next bytes as a message, or one in flight with other bytes in
    /// it, or about another group.
    pub(super) fn forge(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let from = Member::new(u64::from(bytes.take() % 8), u32::from(bytes.take() % 4));
        let letter = match self.mesh.in_flight().len() {
            0 => None,
            some => self.mesh.in_flight().get(bytes.pick(some)),
        };
        let message = letter.map(|it| &it.message);
        let frame = message.map(postcard::to_allocvec);
        let mut frame = frame.and_then(Result::ok).unwrap_or_default();
        let how = bytes.take();
        for _ in 0..how & 3 {
            let at = bytes.pick(frame.len() + 1);
            match frame.get_mut(at) {
                Some(byte) => *byte = bytes.take(),
                None => frame.push(bytes.take()),
            }
        }
        let Ok((mut message, _)) = postcard::take_from_bytes::<Message>(&frame) else {
            return Ok(());
        };
        if how & 4 == 4 {
            let group = GroupId(bytes.take().into());
            let named = message.items.iter_mut().filter_map(group_of);
            named.for_each(|it| *it = group);
        }
        if let (false, Ok(plan)) = (how & 0xf8 == 0, self.watch.settings.site.plan()) {
            message.plan = plan.digest();
        }
        self.watch.summary.hostile += 1;
        self.play(Operation::Forge(seat, from, message.into()), bytes)
    }
}

const fn group_of(item: &mut Item<Update, Payload>) -> Option<&mut GroupId> {
    match item {
        Item::Replica { group, .. }
        | Item::Ask { group, .. }
        | Item::Answer { group, .. }
        | Item::Where { group, .. }
        | Item::Inquire { group, .. }
        | Item::Here { group, .. }
        | Item::Find { group, .. }
        | Item::Born { group, .. }
        | Item::Lost { group, .. }
        | Item::End { group, .. }
        | Item::Ended { group, .. } => Some(group),
        Item::WantSite { .. }
        | Item::Site { .. }
        | Item::Register { .. }
        | Item::Registered { .. }
        | Item::Spared { .. } => None,
    }
}
