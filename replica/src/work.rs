//! The proposals and reads for which this member's application waits.

use alloc::collections::VecDeque;

use selvedge_core::{Member, NodeId};

use crate::{Proposal, Version};

/// A member uses 2^32 numbers at most before it drops its memory. Marks are below 2^28.
const NUMBERS_PER_MARK: u32 = 32;

/// A read of this member's application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    /// The application's number.
    pub(crate) read: u64,
    /// This member's number.
    pub(crate) number: u64,
    /// The first version at which it may be answered, once the leader has sent it.
    pub(crate) at: Option<Version>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Work<U> {
    /// In the order of each proposer.
    pub(crate) proposals: VecDeque<Proposal<U>>,
    pub(crate) reads: VecDeque<Asked>,
    next_number: u64,
    next_read: u64,
    /// The number with which this member began, and the last version that it knew to be committed
    /// then.
    first: u64,
    since: Version,
    /// The number of attempts in a row without an answer.
    pub(crate) attempts: u8,
    /// The place of the member that is asked while no leader is known.
    pub(crate) turn: u8,
    /// The node outside the group that was asked last for a later configuration.
    pub(crate) sought: Option<NodeId>,
    pub(crate) is_unavailable: bool,
    pub(crate) is_armed: bool,
}

impl<U> Work<U> {
    /// Work whose numbers begin behind those of a memory with a lower mark in this life: the group
    /// may remember them.
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

    /// The last version that this member knew to be committed when it began to count.
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

    /// Uses up the number of this proposal.
    pub(crate) const fn take_number(&mut self, proposal: &Proposal<U>) {
        self.first = proposal.first;
        self.since = proposal.since;
        self.next_number += 1;
    }

    /// Begins a new row with the next number: this member gave its proposals up.
    pub(crate) fn begin_again(&mut self) {
        self.first = self.next_number;
    }

    /// Begins a new row, if this member has not done so: the group has forgotten the row that began
    /// with `first`.
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

    /// Removes a proposal that waits no more. Returns true if it waited.
    pub(crate) fn finish(&mut self, by: Member, number: u64) -> bool {
        let is_it = |it: &Proposal<U>| it.by == by && it.number == number;
        // Nearly always the first one.
        match self.proposals.iter().position(is_it) {
            Some(at) => self.proposals.remove(at).is_some(),
            None => false,
        }
    }
}
