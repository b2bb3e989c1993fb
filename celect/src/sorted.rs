//! Lists that are kept in order. They are short, or change seldom: a tree of members costs 3 KB of
//! flash.

use alloc::vec::Vec;

/// Inserts `new` into an ordered list, once. O(log n), and moves the items behind.
pub(crate) fn insert<T: Ord>(list: &mut Vec<T>, new: T) {
    if let Err(at) = list.binary_search(&new) {
        list.insert(at, new);
    }
}

/// Removes `old` from an ordered list. Returns true if the list had it.
pub(crate) fn remove<T: Ord>(list: &mut Vec<T>, old: &T) -> bool {
    let at = list.binary_search(old);
    at.is_ok_and(|at| {
        list.remove(at);
        true
    })
}
