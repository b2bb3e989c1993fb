//! What must hold, and what was seen.

use std::collections::BTreeSet;

use selvedge_camera::Token;
use selvedge_core::{Member, Span};

use super::Family;

/// What happened in some histories: without it they would prove little.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) entries: u64,
    pub(crate) cancelled: u64,
    pub(crate) too_few: u64,
    /// Live nodes that somebody declared failed while they waited.
    pub(crate) false_failures_of_waiting: u64,
    /// The same, while they were inside.
    pub(crate) false_failures_of_holders: u64,
    pub(crate) crashes_inside: u64,
    pub(crate) crashes_waiting: u64,
    pub(crate) restarts: u64,
    /// Nodes that had to take another incarnation while they took part.
    pub(crate) renamed: u64,
    pub(crate) partitions: u64,
    pub(crate) issued_again: u64,
    pub(crate) lost: u64,
    pub(crate) passed_over: u64,
    pub(crate) two_inside: u64,
    pub(crate) fenced: u64,
    pub(crate) refused_writes: u64,
    /// Entries of a node that was passed over and had not heard of it.
    pub(crate) late_entries: u64,
    /// How long it took at most, after the last fault, until all were served.
    pub(crate) longest_settling: Span,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.cancelled += other.cancelled;
        self.too_few += other.too_few;
        self.false_failures_of_waiting += other.false_failures_of_waiting;
        self.false_failures_of_holders += other.false_failures_of_holders;
        self.crashes_inside += other.crashes_inside;
        self.crashes_waiting += other.crashes_waiting;
        self.restarts += other.restarts;
        self.renamed += other.renamed;
        self.partitions += other.partitions;
        self.issued_again += other.issued_again;
        self.lost += other.lost;
        self.passed_over += other.passed_over;
        self.two_inside += other.two_inside;
        self.fenced += other.fenced;
        self.refused_writes += other.refused_writes;
        self.late_entries += other.late_entries;
        self.longest_settling = self.longest_settling.max(other.longest_settling);
    }

    pub(crate) fn assert_each_happened(&self) {
        for (what, count) in [
            ("entries", self.entries),
            ("cancels", self.cancelled),
            ("refusals", self.too_few),
            (
                "false failures of waiting nodes",
                self.false_failures_of_waiting,
            ),
            ("false failures of holders", self.false_failures_of_holders),
            ("crashes inside", self.crashes_inside),
            ("crashes of waiting nodes", self.crashes_waiting),
            ("restarts", self.restarts),
            ("partitions", self.partitions),
            ("requests issued again", self.issued_again),
            ("losses", self.lost),
        ] {
            assert!(count > 0, "{what}: none in any history");
        }
    }
}

/// Who is inside.
#[derive(Clone, Copy, Debug)]
struct Holder {
    token: Token,
    /// Somebody entered past it.
    passed: bool,
    /// It was told, which is done once.
    told: bool,
}

pub(crate) struct Oracle {
    family: Family,
    inside: Vec<Holder>,
    /// The highest token that was used.
    highest: Token,
    /// The highest token whose holder lived to release it: then others have heard of it.
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
            told: false,
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
        assert!(!holder.told, "{who:?} was told twice");
        holder.told = true;
    }

    pub(crate) fn released(&mut self, who: Member, token: Token) {
        assert!(self.out(who), "{who:?} was not inside");
        self.released = self.released.max(token);
    }

    /// It left, or died.
    pub(crate) fn out(&mut self, who: Member) -> bool {
        let before = self.inside.len();
        self.inside.retain(|holder| holder.token.by != who);
        before > self.inside.len()
    }

    /// Whether it was passed over, does not know yet, and somebody who lives knows.
    pub(crate) fn is_untold(&self, who: Member) -> bool {
        let tokens = self.inside.iter().map(|holder| holder.token);
        let known = tokens.max().max(Some(self.released));
        let is_untold = |holder: &Holder| {
            let is_it = holder.token.by == who && !holder.told;
            is_it && holder.passed && Some(holder.token) < known
        };
        self.inside.iter().any(is_untold)
    }

    pub(crate) fn write(&mut self, token: Token) {
        let was_passed = self.passed.contains(&token.by);
        if !self.resource.write(token) {
            assert!(was_passed, "{token:?}, never passed over, was refused");
            self.counts.refused_writes += 1;
        }
    }
}

/// What the section guards.
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
