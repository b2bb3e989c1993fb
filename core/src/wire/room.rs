//! The room that is left in a frame.

use super::{HEADER_LEN, MEMBER_MAX_LEN, member_len};
use crate::Member;

/// The bytes of a frame that its lists may still take.
///
/// ```
/// use selvedge_core::Member;
/// use selvedge_core::wire::{Room, member_len};
///
/// // A frame of 26 bytes, of which the message without its list takes 4.
/// let mut room = Room::new(26, 4);
/// let members = (1..).map(|id| Member::new(id, 0));
/// let (listed, next): (Vec<Member>, _) = room.fill(members, |it| member_len(*it));
/// assert_eq!((listed.len(), next, room.left()), (2, Some(Member::new(3, 0)), 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    left: usize,
}

impl Room {
    /// The room in a frame of `frame_budget` bytes when the message without its lists takes at most
    /// `fixed` bytes, for any sender.
    #[must_use]
    pub const fn new(frame_budget: u16, fixed: usize) -> Self {
        Self::of(frame_budget, MEMBER_MAX_LEN, fixed)
    }

    /// The room in a frame of `frame_budget` bytes when `from` sends it and the message without its
    /// lists takes at most `fixed` bytes.
    #[must_use]
    pub const fn from_sender(frame_budget: u16, from: Member, fixed: usize) -> Self {
        Self::of(frame_budget, member_len(from), fixed)
    }

    const fn of(frame_budget: u16, from_len: usize, fixed: usize) -> Self {
        let taken = HEADER_LEN + from_len + fixed;
        Self {
            left: (frame_budget as usize).saturating_sub(taken),
        }
    }

    /// Takes `len` bytes. Returns true if there was room for them; if not, it takes none.
    #[must_use]
    pub const fn take(&mut self, len: usize) -> bool {
        let fits = self.fits(len);
        if fits {
            self.left -= len;
        }
        fits
    }

    /// Takes as many of the first `items` as fit; `len_of` returns the length of each. Returns
    /// these items, and the first item that did not fit. O(items that fit).
    pub fn fill<T, L: FromIterator<T>>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        len_of: impl Fn(&T) -> usize,
    ) -> (L, Option<T>) {
        let mut next = None;
        let fitting = items.into_iter().map_while(|item| {
            if self.take(len_of(&item)) {
                return Some(item);
            }
            next = Some(item);
            None
        });
        let list = fitting.collect();
        (list, next)
    }

    /// Halves the room: returns one half for another list, and keeps the other. Of an odd number
    /// of bytes one is lost.
    #[must_use]
    pub const fn halve(&mut self) -> Self {
        self.left /= 2;
        *self
    }

    /// Returns true if `len` bytes are left.
    #[must_use]
    pub const fn fits(self, len: usize) -> bool {
        len <= self.left
    }

    /// The number of bytes left.
    #[must_use]
    pub const fn left(self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let me = Member::new(1, 0);
        let mut room = Room::from_sender(20, me, 6);
        assert_eq!(room.left(), 20 - HEADER_LEN - member_len(me) - 6);
        assert!(!room.take(11) && room.take(4) && !room.take(7) && room.take(6));
        assert!(room.take(0) && !room.take(1));
        assert_eq!(Room::new(20, 100).left(), 0);
    }

    #[test]
    fn a_list_ends_before_the_first_item_that_does_not_fit() {
        let mut room = Room::new(27, 0);
        let (list, next): (Vec<usize>, _) = room.fill([4, 3, 5, 1], |&len| len);
        assert_eq!((list, next, room.left()), (alloc::vec![4, 3], Some(5), 3));
        let (list, next): (Vec<usize>, _) = room.fill([1, 2], |&len| len);
        assert_eq!((list, next, room.left()), (alloc::vec![1, 2], None, 0));
    }

    #[test]
    fn two_halves_are_no_more_than_the_whole() {
        let mut room = Room::new(28, 0);
        let half = room.halve();
        assert_eq!((half.left(), room.left()), (5, 5));
    }
}
