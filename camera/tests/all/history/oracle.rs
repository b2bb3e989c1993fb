//! The checks, and counts of events.

use std::collections::BTreeSet;

use selvedge_camera::Token;
use selvedge_core::{Member, Span};

use super::Family;

selvedge_sim::counts! {
    /// Counts of events that must occur in some histories: without them they would prove little.
    pub(crate) struct Counts {
        entries,
        cancelled,
        too_few,
        /// Live nodes that were declared failed while they waited.
        false_failures_of_waiting,
        /// Live nodes that were declared failed while they were inside.
        false_failures_of_holders,
        crashes_inside,
        crashes_waiting,
        restarts,
        partitions,
        issued_again,
        lost,
        /// Nodes that had to take another incarnation while they took part.
        renamed: maybe,
        passed_over: maybe,
        two_inside: maybe,
        fenced: maybe,
        refused_writes: maybe,
        /// Entries of a node that was passed over and did not know it.
        late_entries: maybe,
        /// The longest time from the last fault until all were served.
        longest_settling: max Span,
    }
}

/// The node that is inside.
#[derive(Clone, Copy, Debug)]
struct Holder {
    token: Token,
    /// True if another node entered past it.
    passed: bool,
    /// True if it was notified, which happens once.
    notified: bool,
}

pub(crate) struct Oracle {
    family: Family,
    inside: Vec<Holder>,
    /// The highest token that was used.
    highest: Token,
    /// The highest token whose holder lived to release it: then others know of it.
    released: Token,
    passed: BTreeSet<Member>,
    resource: Resource,
    pub(crate) counts: Counts,
}

impl Oracle {
    pub(crate) fn new(family: Family) -> Self {
        Self {
            family,
            inside: Vec::new(),
            highest: Token::default(),
            released: Token::default(),
            passed: BTreeSet::new(),
            resource: Resource::default(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn entered(&mut self, who: Member, token: Token) {
        self.counts.entries += 1;
        assert_eq!(token.by, who, "a token of somebody else");
        let is_late = token <= self.highest;
        if is_late {
            assert!(
                self.passed.contains(&who),
                "{token:?} does not exceed {:?}",
                self.highest
            );
            self.counts.late_entries += 1;
        }
        for other in &mut self.inside {
            let (low, high) = (token.min(other.token), token.max(other.token));
            assert!(
                self.passed.contains(&low.by),
                "{low:?} and {high:?} are inside together"
            );
            self.counts.two_inside += 1;
            other.passed |= other.token < token;
        }
        self.highest = self.highest.max(token);
        self.inside.push(Holder {
            token,
            passed: is_late,
            notified: false,
        });
    }

    pub(crate) fn passed_over(&mut self, who: Member) {
        assert_eq!(self.family, Family::Takeover, "{who:?} was passed over");
        self.counts.passed_over += 1;
        self.passed.insert(who);
    }

    pub(crate) fn fenced(&mut self, who: Member, by: Token) {
        assert_eq!(self.family, Family::Takeover, "{who:?} was fenced");
        self.counts.fenced += 1;
        let holder = self
            .inside
            .iter_mut()
            .find(|holder| holder.token.by == who)
            .expect("told to somebody who is not inside");
        assert!(holder.token < by && by <= self.highest, "not by {by:?}");
        assert!(holder.passed, "{who:?} was told without cause");
        assert!(!holder.notified, "{who:?} was told twice");
        holder.notified = true;
    }

    pub(crate) fn released(&mut self, who: Member, token: Token) {
        assert!(self.out(who), "{who:?} was not inside");
        self.released = self.released.max(token);
    }

    /// Notes that it left, or died.
    pub(crate) fn out(&mut self, who: Member) -> bool {
        let before = self.inside.len();
        self.inside.retain(|holder| holder.token.by != who);
        before > self.inside.len()
    }

    /// Returns true if it was passed over, does not know it yet, and a live node knows it.
    pub(crate) fn is_unnotified(&self, who: Member) -> bool {
        let tokens = self.inside.iter().map(|holder| holder.token);
        let known = tokens.max().max(Some(self.released));
        let is_unnotified = |holder: &Holder| {
            let is_it = holder.token.by == who && !holder.notified;
            is_it && holder.passed && Some(holder.token) < known
        };
        self.inside.iter().any(is_unnotified)
    }

    pub(crate) fn write(&mut self, token: Token) {
        let was_passed = self.passed.contains(&token.by);
        if !self.resource.write(token) {
            assert!(was_passed, "{token:?}, never passed over, was refused");
            self.counts.refused_writes += 1;
        }
    }
}

/// The resource that the section guards.
#[derive(Default)]
struct Resource {
    highest: Token,
    accepted: Vec<Token>,
}

impl Resource {
    fn write(&mut self, token: Token) -> bool {
        if token < self.highest {
            return false;
        }
        self.highest = token;
        let last = self.accepted.last().copied().unwrap_or_default();
        assert!(last <= token, "{token:?} was accepted after {last:?}");
        if last < token {
            self.accepted.push(token);
        }
        true
    }
}
