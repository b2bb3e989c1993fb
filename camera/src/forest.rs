//! The trees of slow requests in which this node takes part.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Member, Span};

use crate::tree::Tree;

/// Our places in the trees of slow requests, our own included, by root; and the rounds in which
/// children are asked again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Forest {
    trees: BoundedMap<Member, Tree>,
    /// True if [`Timer::Tree`](crate::Timer::Tree) is armed.
    is_watched: bool,
    /// The number of ticks of that timer since all were asked again.
    rounds: u64,
}

impl Forest {
    pub(crate) const fn new() -> Self {
        Self {
            // `tree_limit` is checked where a tree of another root begins: it may change.
            trees: BoundedMap::new(u16::MAX as usize + 1),
            is_watched: false,
            rounds: 0,
        }
    }

    pub(crate) fn get(&self, root: Member) -> Option<&Tree> {
        self.trees.get(&root)
    }

    pub(crate) fn get_mut(&mut self, root: Member) -> Option<&mut Tree> {
        self.trees.get_mut(&root)
    }

    pub(crate) fn contains(&self, root: Member) -> bool {
        self.trees.contains(&root)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Member, &Tree)> {
        self.trees.iter().map(|(&root, tree)| (root, tree))
    }

    pub(crate) fn roots(&self) -> Vec<Member> {
        self.iter().map(|(root, _)| root).collect()
    }

    pub(crate) const fn len(&self) -> usize {
        self.trees.len()
    }

    /// Adds a tree, in place of the former tree of the same root.
    pub(crate) fn insert(&mut self, tree: Tree) {
        let is_there = self.trees.insert(tree.id.root, tree).is_ok();
        debug_assert!(is_there, "tree_limit is seen to before");
    }

    pub(crate) fn remove(&mut self, root: Member) -> Option<Tree> {
        self.trees.remove(&root)
    }

    /// Returns true if the timer has to be armed now: an answer is open, and it is not armed.
    pub(crate) fn begins_watch(&mut self) -> bool {
        let begins = !self.is_watched && self.trees.iter().any(|(_, tree)| tree.is_open());
        self.is_watched |= begins;
        begins
    }

    /// Handles a tick of the timer. Returns true if all children must be asked again, which is each
    /// time that `limit` has passed in rounds of `resend`.
    pub(crate) fn on_round(&mut self, resend: Span, limit: Span) -> bool {
        self.is_watched = false;
        self.rounds += 1;
        let asks_all = resend.0.saturating_mul(self.rounds) >= limit.0;
        if asks_all {
            self.rounds = 0;
        }
        asks_all
    }

    /// A copy without trees: only the rounds.
    pub(crate) fn cleared(&self) -> Self {
        Self {
            rounds: self.rounds,
            ..Self::new()
        }
    }
}
