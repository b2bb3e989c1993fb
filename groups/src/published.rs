//! Rules that do not hold up. No paper's: they show what ours are for. For tests and comparison only.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A node that is in a group no more keeps nothing of it, not even the number of its last
    /// configuration, and takes any when it is asked to take part again in the same life.
    NoMark,
}

selvedge_core::published_rules! {
    no_mark NoMark
}
