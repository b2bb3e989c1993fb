//! The answer to an initiator.

use selvedge_core::wire::{MEMBER_MAX_LEN, Room};
use selvedge_core::{Context, Member};

use crate::message::{ASKED_MAX_LEN, Members, cut};
use crate::run::{EXCLUDED_MAX, first};
use crate::{Attribute, Celect};

impl<A: Attribute> Celect<A> {
    /// Returns the `x` lowest and the `y` most suspected nodes, for an initiator, and the room that
    /// is left. O(x + y + the nodes excluded), for any number of members.
    pub(crate) fn answer(&self, x: u8, y: u8, exclude: &[Member]) -> (Members, Members, Room) {
        let mut room = self.config.list_room(ASKED_MAX_LEN);
        let exclude = first(exclude, EXCLUDED_MAX);
        let mut unhealthy = Members::new();
        if y > 0 {
            let worst = self.peers.suspected().filter(|it| !exclude.contains(it));
            // Where a frame is short, both lists are short.
            unhealthy = cut(worst.take(y.into()), &mut room.halve());
        }
        let is_owner_left_out = self.rules.owner_left_out();
        let lowest = self.peers.by_rank().iter().copied().filter(|it| {
            let is_left_out = is_owner_left_out && *it == self.me;
            !is_left_out && !exclude.contains(it) && !unhealthy.contains(it)
        });
        let candidates = cut(lowest.take(x.into()), &mut room);
        (candidates, unhealthy, room)
    }

    /// Returns up to `want` other nodes, for an initiator that knows too few. Where more nodes exist
    /// than fit, they begin at a random place: else nodes that do not answer could hide the rest for
    /// ever. O(want + the nodes excluded).
    pub(crate) fn others(
        &self,
        want: u16,
        to: Member,
        exclude: &[Member],
        room: &mut Room,
        cx: &mut Context<'_, Self>,
    ) -> Members {
        let want = usize::from(want);
        if want == 0 {
            return Members::new();
        }
        let exclude = first(exclude, EXCLUDED_MAX);
        let list = self.peers.by_rank();
        let others = list.len() - 1 - usize::from(self.peers.is_listed(to));
        let start = if others > want.min(room.left() / MEMBER_MAX_LEN) {
            usize::try_from(cx.below(list.len() as u64)).unwrap_or_default()
        } else {
            0
        };
        let all = list.iter().skip(start).chain(list.iter().take(start));
        let others = all.copied();
        let others = others.filter(|it| *it != to && *it != self.me && !exclude.contains(it));
        cut(others.take(want), room)
    }
}
