//! What orders requests, and what a resource checks.

use selvedge_core::Member;

/// A fencing token: it comes with each entry, and rises strictly over the life of a section.
///
/// A resource that keeps the highest token it has seen, and refuses lower ones, is safe from a
/// holder that was wrongly taken for dead. Compared by number, then by holder.
///
/// ```
/// use selvedge_camera::Token;
/// use selvedge_core::Member;
///
/// let late = Token { number: 7, holder: Member::new(2, 0) };
/// assert!(Token { number: 8, holder: Member::new(1, 0) } > late);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Token {
    /// From 1; 0 stands for "none yet".
    pub number: u64,
    /// The node that enters with it.
    pub holder: Member,
}
