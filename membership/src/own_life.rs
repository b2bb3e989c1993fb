//! This node's own life, and the later lives that it begins to give way to another.

use selvedge_core::{Incarnation, Member, NodeId, serial_newer};

/// The furthest that a revision from another member may be ahead of the known one. A node that
/// missed more changes of a member than this learns them from that member itself. A move of an
/// incarnation by more than this is a leap.
pub(crate) const LEAP: u32 = 1 << 20;

/// The furthest that a member moves its incarnation at once, to give way to a life that another
/// node names. Every list that has the former life can follow: numbers compare within 2^31.
const MOST: u32 = 1 << 30;

/// The present life of this node.
///
/// Its incarnation only goes forward, by [`MOST`] at a time at most.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct OwnLife {
    member: Member,
    /// True if we gave way to another life in this period.
    gave_way: bool,
    /// The number of periods until our last leap has reached all nodes. A node that missed one of
    /// two leaps could not compare.
    leaping: u16,
}

impl OwnLife {
    pub(crate) const fn new(member: Member) -> Self {
        Self {
            member,
            gave_way: false,
            leaping: 0,
        }
    }

    pub(crate) const fn end_period(&mut self) {
        self.gave_way = false;
        self.leaping = self.leaping.saturating_sub(1);
    }

    /// Continues above a life that another node names. With `once`, it does so once a period,
    /// because the node may be wrong; far ahead only when our last leap has reached all members,
    /// which takes `spread` periods. Returns true if it did.
    pub(crate) fn give_way(&mut self, life: Incarnation, once: bool, spread: u16) -> bool {
        let is_leap = life.0.wrapping_sub(self.member.incarnation.0) > LEAP;
        if self.gave_way || (is_leap && self.leaping > 0) {
            return false;
        }
        self.gave_way = once;
        if is_leap {
            self.leaping = spread;
        }
        self.go_beyond(life);
        true
    }

    /// Continues above `life`, or as far in its direction as one move allows.
    pub(crate) fn go_beyond(&mut self, life: Incarnation) {
        let before = self.member.incarnation;
        self.member.incarnation = beyond(before, life);
        debug_assert!(
            self.member.incarnation.newer_than(before),
            "an incarnation only goes forward"
        );
    }

    /// Begins another life, in which the node forgets its mesh and joins the next one.
    pub(crate) const fn begin_next(&mut self) {
        self.member.incarnation = self.member.incarnation.next();
    }

    pub(crate) const fn member(&self) -> Member {
        self.member
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.member.id
    }

    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.member.incarnation
    }

    /// Returns true if `life` is ahead of our present life, as in [`is_beyond`].
    pub(crate) const fn is_behind(&self, life: Incarnation) -> bool {
        is_beyond(life.0, self.member.incarnation.0)
    }
}

/// Returns true if a number of this node that another node states is ahead of its own: later, or
/// opposite on the circle, where neither is later. A list that has such a number for this node
/// cannot follow its own.
pub(crate) const fn is_beyond(notified: u32, own: u32) -> bool {
    notified != own && !serial_newer(own, notified)
}

/// Returns true if a revision of our life that another node states is so far above our own that it
/// never was ours.
pub(crate) const fn is_leap(notified: u32, own: u32) -> bool {
    is_beyond(notified, own) && notified.wrapping_sub(own) > LEAP
}

/// The number after `life`, or as far in its direction as one move allows.
fn beyond(own: Incarnation, life: Incarnation) -> Incarnation {
    let ahead = life.0.wrapping_sub(own.0).min(MOST - 1);
    Incarnation(own.0.wrapping_add(ahead + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_is_followed_in_steps_that_all_can_compare() {
        let notified = Incarnation(7_u32.wrapping_add((1 << 31) - 1));
        let mut own = Incarnation(7);
        let mut steps = 0;
        while !own.newer_than(notified) {
            let next = beyond(own, notified);
            assert!(next.newer_than(own));
            own = next;
            steps += 1;
        }
        assert_eq!((own, steps), (notified.next(), 2));
        assert_eq!(beyond(Incarnation(5), Incarnation(5)), Incarnation(6));
        assert_eq!(
            beyond(Incarnation(u32::MAX), Incarnation(3)),
            Incarnation(4)
        );
    }

    #[test]
    fn it_gives_way_once_a_period_and_leaps_when_the_last_leap_has_spread() {
        let mut own = OwnLife::new(Member::new(1, 7));
        let far = Incarnation(7 + LEAP + 1);
        assert!(own.give_way(far, true, 2));
        assert!(!own.give_way(own.incarnation(), true, 2), "once a period");
        for is_over in [false, true] {
            own.end_period();
            let near = own.incarnation();
            let far = Incarnation(near.0 + LEAP + 1);
            assert_eq!(own.clone().give_way(far, true, 2), is_over);
            assert!(own.give_way(near, true, 2), "a step is no leap");
        }
    }
}
