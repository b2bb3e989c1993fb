//! Lists that are kept in order. They are short, or change seldom: a tree of members costs 3 KB of
//! flash.

use alloc::vec::Vec;

/// Puts `new` into a list in order, once. O(log n), and moves what lies behind.
pub(crate) fn insert<T: Ord>(list: &mut Vec<T>, new: T) {
    if let Err(at) = list.binary_search(&new) {
        list.insert(at, new);
    }
}

/// Takes `old` out of a list in order. Returns whether it was there.
pub(crate) fn remove<T: Ord>(list: &mut Vec<T>, old: &T) -> bool {
    let at = list.binary_search(old);
    at.is_ok_and(|at| {
        list.remove(at);
        true
    })
}
