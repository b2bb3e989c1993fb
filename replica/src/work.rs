//! What the application of this member waits for.

use alloc::collections::VecDeque;

use selvedge_core::{Member, NodeId};

use crate::{Proposal, Version};

/// A member gives 2^32 numbers at most before it drops its memory. Marks are below 2^28.
const NUMBERS_PER_MARK: u32 = 32;

/// A read of this member's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    /// The application's number.
    pub(crate) read: u64,
    /// This member's number.
    pub(crate) number: u64,
    /// From which version on it may be answered, once the leader has said it.
    pub(crate) at: Option<Version>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work<U> {
    /// In the order of each proposer.
    pub(crate) proposals: VecDeque<Proposal<U>>,
    pub(crate) reads: VecDeque<Asked>,
    next_number: u64,
    next_read: u64,
    /// The number with which this member began, and what it knew to be committed then.
    first: u64,
    since: Version,
    /// How often in a row it was asked in vain.
    pub(crate) attempts: u8,
    /// Which of the members is asked while no leader is known.
    pub(crate) turn: u8,
    /// Which node that is no member was asked last for a later configuration.
    pub(crate) sought: Option<NodeId>,
    pub(crate) is_unavailable: bool,
    pub(crate) is_armed: bool,
}

impl<U> Work<U> {
    /// Behind the numbers that a memory with a lower mark gave in this life: the group may remember
    /// them.
    pub(crate) const fn behind(mark: u64) -> Self {
        let first = 1 + (mark << NUMBERS_PER_MARK);
        Self {
            proposals: VecDeque::new(),
            reads: VecDeque::new(),
            next_number: first,
            next_read: 1,
            first,
            since: 0,
            attempts: 0,
            turn: 0,
            sought: None,
            is_unavailable: false,
            is_armed: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.proposals.is_empty() && self.reads.is_empty()
    }

    /// The number that this member's next proposal has.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// What this member knew to be committed when it began to count.
    pub(crate) const fn since(&self) -> Version {
        self.since
    }

    /// The proposal of this member that carries `update`, with its next number.
    /// It is the first one of a new row if the group has forgotten the others.
    pub(crate) const fn number(
        &self,
        me: Member,
        committed: Version,
        is_forgotten: bool,
        update: U,
    ) -> Proposal<U> {
        let begins = is_forgotten || self.next_number == self.first;
        Proposal {
            by: me,
            number: self.next_number,
            first: if begins { self.next_number } else { self.first },
            since: if begins { committed } else { self.since },
            update,
        }
    }

    /// This proposal has the number now.
    pub(crate) const fn take_number(&mut self, proposal: &Proposal<U>) {
        self.first = proposal.first;
        self.since = proposal.since;
        self.next_number += 1;
    }

    /// This member gave its proposals up: it begins again with its next number.
    pub(crate) fn begin_again(&mut self) {
        self.first = self.next_number;
    }

    /// The group has forgotten the row of proposals that began with `first`: this member begins again,
    /// if it has not done so.
    pub(crate) fn forget_row(&mut self, first: u64) {
        if self.first == first {
            self.begin_again();
        }
    }

    pub(crate) fn ask(&mut self, read: u64) -> u64 {
        let number = self.next_read;
        self.next_read += 1;
        let at = None;
        self.reads.push_back(Asked { read, number, at });
        number
    }

    /// Takes out a proposal that waits no more. Whether it waited.
    pub(crate) fn finish(&mut self, by: Member, number: u64) -> bool {
        let is_it = |it: &Proposal<U>| it.by == by && it.number == number;
        // Nearly always the first one.
        match self.proposals.iter().position(is_it) {
            Some(at) => self.proposals.remove(at).is_some(),
            None => false,
        }
    }
}
