//! Finding the mesh, first and after a loss of all members.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::message::{Body, Key};

/// The seeds, the wait for their answers, and the list that is fetched from the mesh.
///
/// This node is not among its seeds. The list is fetched in order of keys, page by page.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Bootstrap {
    seeds: Vec<NodeId>,
    /// True after a whole period without an answer to our request to be let in. A node that then
    /// began a mesh still fetches the list of the first member that welcomes it.
    is_overdue: bool,
    /// The first key of the next page of the list that a joiner fetches.
    page: Option<Key>,
    /// Periods until a seed or a dead member is probed again.
    until_reconnect: u16,
}

impl Bootstrap {
    /// The longest list of seeds that is kept.
    pub(crate) const SEED_LIMIT: usize = 16;

    /// Begins to join the node `own` through these seeds.
    pub(crate) fn begin(&mut self, seeds: Vec<NodeId>, own: NodeId) {
        self.replace_seeds(seeds, own);
        self.is_overdue = false;
    }

    /// Replaces the seeds. The time without an answer continues to count.
    pub(crate) fn replace_seeds(&mut self, mut seeds: Vec<NodeId>, own: NodeId) {
        seeds.retain(|&seed| seed != own);
        seeds.truncate(Self::SEED_LIMIT);
        self.seeds = seeds;
    }

    /// Notes that a period without an answer is over.
    pub(crate) const fn note_silence(&mut self) {
        self.is_overdue = true;
    }

    /// Notes that a member lets this node in; its list continues at `next`.
    pub(crate) const fn on_welcome(&mut self, next: Option<Key>) {
        self.is_overdue = false;
        self.page = next;
    }

    /// Notes the arrival of the next page; the list continues at `next`, which from a correct peer
    /// is a later key.
    pub(crate) fn on_page(&mut self, next: Option<Key>) {
        self.page = next.filter(|&next| self.page.is_some_and(|first| next > first));
    }

    pub(crate) const fn stop_fetching(&mut self) {
        self.page = None;
    }

    /// Ends a period. Returns true if a seed or a dead member has to be probed: after `every`
    /// periods, and in each period where this node `is_alone`.
    pub(crate) fn is_reconnect_due(&mut self, every: u16, is_alone: bool) -> bool {
        self.until_reconnect = self.until_reconnect.saturating_sub(1);
        let is_due = self.until_reconnect == 0 || is_alone;
        if is_due {
            self.until_reconnect = every;
        }
        is_due
    }

    /// Begins to count, when the node is in.
    pub(crate) const fn wait_to_reconnect(&mut self, periods: u16) {
        self.until_reconnect = periods;
    }

    pub(crate) fn seeds(&self) -> &[NodeId] {
        &self.seeds
    }

    pub(crate) const fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    /// The start of the next page of the list, while it is fetched.
    pub(crate) const fn page(&self) -> Option<Key> {
        self.page
    }

    pub(crate) const fn is_fetching(&self) -> bool {
        self.page.is_some()
    }

    /// Returns true if this page is the next one of the list that is fetched.
    pub(crate) fn is_page(&self, body: &Body) -> bool {
        matches!(body, Body::Records { first, last, .. }
            if *last == Key(u64::MAX) && self.page == Some(*first))
    }
}
