//! Rules that break a promise, from no paper: they show the purpose of this crate's. For tests and
//! comparison only.

/// A rule that breaks a promise. Exists with the feature `check` only.
#[cfg(feature = "check")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Published {
    /// A node that has left a group keeps nothing of it, not even the number of its last
    /// configuration, and takes any when it is asked to take part again in the same life.
    NoMark,
    /// A group that the registry begins has founders that vote in any life, as those of generation 0
    /// of a site do.
    FoundersInAnyLife,
    /// Members of a group take messages of any of its beginnings.
    NoInstances,
    /// A node takes the site that it proposes at once, without a decision.
    TakesOwnSite,
    /// A node that takes a site keeps its parts in groups that the site does not have.
    KeepsGroups,
    /// A group begins anew once its latest known members are no quorum any more, and no node has
    /// promised anything.
    EndsUnasked,
}

selvedge_core::published_rules! {
    no_mark NoMark
    founders_in_any_life FoundersInAnyLife
    no_instances NoInstances
    takes_own_site TakesOwnSite
    keeps_groups KeepsGroups
    ends_unasked EndsUnasked
}
