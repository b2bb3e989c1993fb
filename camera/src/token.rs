//! What orders requests, and what a resource checks.

use selvedge_core::Member;
use selvedge_core::stamp::Stamp;

/// A fencing token: it comes with each entry, and rises strictly over the life of a section.
/// Compared by number, then by the member that enters with it.
///
/// A resource that keeps the highest token it has seen, and refuses lower ones, is safe from a
/// holder that was wrongly taken for dead.
///
/// ```
/// use selvedge_camera::Token;
/// use selvedge_core::Member;
///
/// let late = Token { number: 7, by: Member::new(2, 0) };
/// assert!(Token { number: 8, by: Member::new(1, 0) } > late);
/// ```
pub type Token = Stamp<Member>;
