//! The tokens, which a resource checks.

use selvedge_core::Member;
use selvedge_core::stamp::Stamp;

/// A fencing token: it comes with each entry, and rises strictly over the life of a section.
/// Compared by number, then by the member that enters with it.
///
/// A resource that keeps the highest token it has received, and refuses lower ones, is safe from a
/// holder that was wrongly taken for dead. A resource outside of the mesh gets it as a
/// [`FencingToken`](selvedge_core::FencingToken), in bytes or in text.
///
/// ```
/// use selvedge_camera::Token;
/// use selvedge_core::Member;
///
/// let late = Token { number: 7, by: Member::new(2, 0) };
/// assert!(Token { number: 8, by: Member::new(1, 0) } > late);
/// ```
pub type Token = Stamp<Member>;

/// The tokens that were used, as far as this node knows.
///
/// Invariant: a token that was certainly used may have been used, so `used` is at most `floor`.
///
/// Tokens of open requests do not count here: an OK names their owners as rivals, and the rival's own OK has
/// the rest. So contention alone does not raise the number that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Tokens {
    /// The highest token that was used, as far as we know.
    floor: Token,
    /// The highest token that was certainly used, for the nodes that were passed over. The floor
    /// may be higher, because no node knows the tokens of a life that has ended. The default
    /// without a takeover.
    used: Token,
}

impl Tokens {
    /// The highest token that may have been used.
    pub(crate) const fn floor(&self) -> Token {
        self.floor
    }

    /// The highest token that was certainly used; the default without a takeover.
    pub(crate) const fn used(&self) -> Token {
        self.used
    }

    /// Takes note that this token may have been used.
    pub(crate) fn raise(&mut self, token: Token) {
        self.floor = self.floor.max(token);
    }

    /// Takes note that this token was used. Stored as certainly used only if nodes may be passed over.
    pub(crate) fn note_used(&mut self, token: Token, has_takeover: bool) {
        self.raise(token);
        if has_takeover {
            self.used = self.used.max(token);
        }
        debug_assert!(self.used <= self.floor, "used above the floor: {self:?}");
    }
}
