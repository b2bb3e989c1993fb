//! Requests of other nodes: requests that have our OK, that wait for it, or that are over.

use selvedge_core::{BoundedMap, Full, Member};

use crate::{Request, Rival};

/// An OK that we gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    /// The number of the request.
    pub(crate) number: u64,
    /// The highest number of a token that it may enter with.
    pub(crate) up_to: u64,
    /// The number of copies of the OK that were sent last: 0 if the setting allows only one.
    pub(crate) copies: u8,
}

/// A node's report of its requests that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Released {
    /// The highest number of such a request.
    pub(crate) number: u64,
    /// The highest number of a token that such a request might have entered with.
    pub(crate) over: u64,
}

/// The OKs that we gave.
pub(crate) type Grants = BoundedMap<Member, Grant>;

/// The requests of other nodes, as far as this node knows. Each operation takes O(log n), and moves
/// the entries after the changed one.
///
/// Invariant: a node has one request at a time. So no node has our OK and waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Granted {
    /// The members whose requests have our OK and are not known to be over.
    grants: Grants,
    /// The members that wait for our OK.
    deferred: BoundedMap<Member, Request>,
    // A map and not a collection of high-water marks: the roster decides when a member is forgotten, and a
    // limit of its own would be one more way to forget.
    /// The requests of each member that are over.
    released: BoundedMap<Member, Released>,
}

impl Granted {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            grants: BoundedMap::new(limit),
            deferred: BoundedMap::new(limit),
            released: BoundedMap::new(limit),
        }
    }

    /// The OKs that were given.
    pub(crate) const fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The OK that this member has.
    pub(crate) fn grant(&self, member: Member) -> Option<Grant> {
        self.grants.get(&member).copied()
    }

    /// The requests that wait for our OK.
    pub(crate) const fn deferred(&self) -> &BoundedMap<Member, Request> {
        &self.deferred
    }

    /// The number of the request of this member that waits for our OK.
    pub(crate) fn deferred_number(&self, member: Member) -> Option<u64> {
        self.deferred.get(&member).map(|request| request.number)
    }

    /// The requests of this member that are over.
    pub(crate) fn released(&self, member: Member) -> Released {
        self.released.get(&member).copied().unwrap_or_default()
    }

    /// Returns true if this member has our OK or waits for it.
    pub(crate) fn has_open(&self, member: Member) -> bool {
        self.grants.contains(&member) || self.deferred.contains(&member)
    }

    /// Returns true if no member has our OK or waits for it.
    pub(crate) const fn has_none_open(&self) -> bool {
        self.grants.is_empty() && self.deferred.is_empty()
    }

    /// Returns true if the request of this rival is over.
    pub(crate) fn is_over(&self, rival: Rival) -> bool {
        let released = self.released.get(&rival.member);
        released.is_some_and(|it| rival.up_to <= it.over)
    }

    /// Stores that the member has our OK, and waits no longer.
    pub(crate) fn give(&mut self, member: Member, grant: Grant) -> Result<(), Full> {
        self.grants.insert(member, grant)?;
        self.deferred.remove(&member);
        self.check(member);
        Ok(())
    }

    /// Stores that the member waits for our OK, and that its former request is over.
    pub(crate) fn defer(&mut self, member: Member, request: Request) -> Result<(), Full> {
        self.grants.remove(&member);
        debug_assert!(
            self.deferred_number(member) <= Some(request.number),
            "a former request of {member} is over"
        );
        self.deferred.insert(member, request)?;
        self.check(member);
        Ok(())
    }

    /// Removes the OK of this member.
    pub(crate) fn take_back(&mut self, member: Member) {
        self.grants.remove(&member);
    }

    /// Stores that the member waits for our OK no longer.
    pub(crate) fn stop_deferring(&mut self, member: Member) {
        self.deferred.remove(&member);
    }

    /// Stores the member's report that requests of it are over.
    pub(crate) fn release(&mut self, member: Member, released: Released) -> Result<(), Full> {
        let is_over = |number: u64| number <= released.number;
        if self.grant(member).is_some_and(|it| is_over(it.number)) {
            self.take_back(member);
        }
        if self.deferred_number(member).is_some_and(is_over) {
            self.stop_deferring(member);
        }
        let before = self.released(member);
        let known = Released {
            number: before.number.max(released.number),
            over: before.over.max(released.over),
        };
        if known != before {
            self.released.insert(member, known)?;
        }
        Ok(())
    }

    /// Forgets the requests of this member that are over.
    pub(crate) fn forget_released(&mut self, member: Member) {
        self.released.remove(&member);
    }

    /// Forgets the member. Returns the OK that it had.
    pub(crate) fn forget(&mut self, member: Member) -> Option<Grant> {
        self.deferred.remove(&member);
        self.released.remove(&member);
        self.grants.remove(&member)
    }

    /// A copy with only the requests that are over.
    pub(crate) fn closed(&self) -> Self {
        Self {
            released: self.released.clone(),
            ..Self::new(self.grants.limit())
        }
    }

    fn check(&self, member: Member) {
        let is_twice = self.grants.contains(&member) && self.deferred.contains(&member);
        debug_assert!(!is_twice, "{member} has our OK and waits for it");
    }
}
