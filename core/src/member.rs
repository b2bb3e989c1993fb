//! The members of a mesh: identifiers, lives of a node, and the news about them.

use core::cmp::Ordering;
use core::fmt;

use crate::Span;

/// A node's address for life, 64 bits wide like an EUI-64.
///
/// Any value is valid. Two nodes with the same id at the same time are a configuration error that
/// no protocol can repair; the membership crate counts it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct NodeId(pub u64);

/// The number of a node's life: it changes when, and only when, the node restarts and forgets.
///
/// Incarnations are compared by serial number arithmetic (RFC 1982), so they may wrap:
/// [`newer_than`](Self::newer_than) holds while two lives are less than 2^31 apart. That order is
/// not transitive, so this type has no `<`.
///
/// ```
/// use selvedge_core::Incarnation;
/// assert!(Incarnation(0).newer_than(Incarnation(u32::MAX)));
/// assert!(!Incarnation(7).newer_than(Incarnation(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// The duration of one number in [`from_clock`](Self::from_clock): 1/16 s.
    pub const TICK: Span = Span::micros(62_500);

    /// The life of a node that starts at this time since 1970 by its clock, and the time that the
    /// node waits before it sends anything under that life: up to one [`TICK`](Self::TICK), and up
    /// to two where the number would be 0.
    ///
    /// No life from a clock is 0: nodes that count their lives begin with 0, and a replicated group
    /// names its founders in life 0, whatever their actual lives are. The number wraps to 0 every
    /// 8.5 years.
    ///
    /// A life begins when the tick before its number ends. So a node that starts after the end of
    /// this life draws a later number, however soon that is: in the same second, or millisecond.
    /// Starts compare right while they are less than 2^31 ticks (4.2 years) apart.
    ///
    /// A clock that was set back gives a number that is earlier, or was used before. Members that
    /// remember the former life notice that, and the node takes a later number; where no member
    /// remembers it, no member confuses the two. A host with stable storage stores its life
    /// instead, and begins with the [`next`](Self::next) one.
    ///
    /// ```
    /// use selvedge_core::{Incarnation, Span};
    ///
    /// let start = Span::secs(1_800_000_000);
    /// let (first, wait) = Incarnation::from_clock(start);
    /// assert_eq!(wait, Incarnation::TICK);
    /// // That life begins, is killed a microsecond later, and the node starts again at once.
    /// let (second, _) = Incarnation::from_clock(start + wait + Span::micros(1));
    /// assert!(second.newer_than(first));
    /// ```
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "incarnations wrap")]
    pub const fn from_clock(since_1970: Span) -> (Self, Span) {
        // A finer count without a wait would wrap sooner (milliseconds in 50 days), and two starts within
        // one process could still get one number.
        let tick = Self::TICK.0;
        let number = (since_1970.0 / tick) as u32;
        let wait = tick - since_1970.0 % tick;
        match Self(number).next() {
            // Life 1, which begins a tick later.
            Self(0) => (Self(1), Span(wait + tick)),
            life => (life, Span(wait)),
        }
    }

    /// The life after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Returns true if it is one of the lives from `first` to `last`, of which the numbers may wrap in between.
    ///
    /// ```
    /// use selvedge_core::Incarnation;
    /// let (first, last) = (Incarnation(u32::MAX), Incarnation(3));
    /// assert!(Incarnation(0).is_within(first, last));
    /// assert!(!Incarnation(4).is_within(first, last));
    /// ```
    #[must_use]
    pub const fn is_within(self, first: Self, last: Self) -> bool {
        self.0.wrapping_sub(first.0) <= last.0.wrapping_sub(first.0)
    }

    /// Returns true if this life began after `other`.
    #[must_use]
    pub const fn newer_than(self, other: Self) -> bool {
        serial_newer(self.0, other.0)
    }
}

/// Compares two 32-bit counters that may wrap, by serial number arithmetic (RFC 1982).
#[must_use]
pub const fn serial_newer(a: u32, b: u32) -> bool {
    let ahead = a.wrapping_sub(b);
    ahead != 0 && ahead < 1 << 31
}

/// One life of one node: the identity that every protocol uses.
///
/// Two values with one id and different incarnations are different members: the later life does not
/// remember the promises of the earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Member {
    /// The node.
    pub id: NodeId,
    /// The life of the node.
    pub incarnation: Incarnation,
}

impl Member {
    /// The member with this id in this incarnation.
    #[must_use]
    pub const fn new(id: u64, incarnation: u32) -> Self {
        Self {
            id: NodeId(id),
            incarnation: Incarnation(incarnation),
        }
    }

    /// Returns true if this is a later life of the same node.
    #[must_use]
    pub fn supersedes(self, other: Self) -> bool {
        self.id == other.id && self.incarnation.newer_than(other.incarnation)
    }
}

/// Storage order, for sorted collections: by id, then by the incarnation's bare number. It is not
/// an order by age; for that use [`Member::supersedes`].
impl Ord for Member {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.id, self.incarnation.0).cmp(&(other.id, other.incarnation.0))
    }
}

impl PartialOrd for Member {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}{:?}", self.id, self.incarnation)
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.id, self.incarnation.0)
    }
}

/// News from the membership service about one member.
///
/// Protocols must stay safe when `Suspected` and `Failed` are wrong, in any order, at any moment.
/// Only `Left` and `Confirmed` are certain. The end of a life is reported even if its beginning was
/// not: a protocol may have received messages from that life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Delta {
    /// It is present, and was not on the list.
    Joined(Member),
    /// It may have failed; it has time to refute.
    Suspected(Member),
    /// It was suspected or declared failed, and reported that it is alive.
    Refuted(Member),
    /// It was declared failed. It may be alive.
    Failed(Member),
    /// It announced that it leaves. This life never comes back.
    Left(Member),
    /// This life is certainly over: a newer incarnation was seen, or an operator confirmed its end.
    Confirmed(Member),
}

impl Delta {
    /// The subject of the news.
    #[must_use]
    pub const fn member(self) -> Member {
        match self {
            Self::Joined(member)
            | Self::Suspected(member)
            | Self::Refuted(member)
            | Self::Failed(member)
            | Self::Left(member)
            | Self::Confirmed(member) => member,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Also across the wrap, for starts within the 4.2 years that compare right.
        #[test]
        fn who_starts_after_a_life_has_begun_draws_a_later_one(
            start in 0..u64::MAX / 4,
            later in 0..(Incarnation::TICK.0 << 31) - 2 * Incarnation::TICK.0,
        ) {
            check_next(Span(start), Span(later))?;
        }

        #[test]
        fn no_life_from_a_clock_is_0(
            turns in 1..8_u64,
            before in 0..4 * Incarnation::TICK.0,
            later in 0..4 * Incarnation::TICK.0,
        ) {
            let wraps = turns * (Incarnation::TICK.0 << 32) + Incarnation::TICK.0;
            check_next(Span(wraps - before), Span(later))?;
        }
    }

    /// Checks a node that starts, and starts again at this time after that life has begun.
    fn check_next(start: Span, later: Span) -> Result<(), TestCaseError> {
        let (life, wait) = Incarnation::from_clock(start);
        let most = match life == Incarnation(1) {
            true => 2 * Incarnation::TICK.0,
            false => Incarnation::TICK.0,
        };
        prop_assert!(life != Incarnation(0), "{start:?}");
        prop_assert!(wait > Span::ZERO && wait <= Span(most));
        let (next, _) = Incarnation::from_clock(start + wait + later);
        prop_assert!(
            next.newer_than(life),
            "{start:?}, then {later:?} after {wait:?}"
        );
        Ok(())
    }

    #[test]
    fn incarnations_wrap() {
        assert!(Incarnation(1).newer_than(Incarnation(0)));
        assert!(!Incarnation(0).newer_than(Incarnation(1)));
        assert!(
            Incarnation(u32::MAX)
                .next()
                .newer_than(Incarnation(u32::MAX))
        );
        assert!(Incarnation(5).newer_than(Incarnation(u32::MAX - 5)));
        // Exactly half the circle apart, neither is newer.
        assert!(!Incarnation(1 << 31).newer_than(Incarnation(0)));
        assert!(!Incarnation(0).newer_than(Incarnation(1 << 31)));
    }

    #[test]
    fn only_a_later_life_of_the_same_node_supersedes() {
        assert!(Member::new(1, 2).supersedes(Member::new(1, 1)));
        assert!(!Member::new(2, 2).supersedes(Member::new(1, 1)));
        assert!(!Member::new(1, 1).supersedes(Member::new(1, 1)));
    }
}
