//! Faults on purpose: which datagrams get lost.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use selvedge_core::{Choose, Ratio};

/// What happens to datagrams. Whoever runs several hosts shares one through a
/// [`watch`](tokio::sync::watch) channel and changes it while they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weather {
    /// How many datagrams get lost on arrival.
    pub loss: Ratio,
    /// The nodes that are cut off: these hear one another, the others hear one another, and
    /// nothing passes between. Empty for no cut.
    pub cut_off: BTreeSet<SocketAddr>,
}

impl Weather {
    /// Nothing gets lost.
    #[must_use]
    pub const fn fair() -> Self {
        Self::lossy(Ratio::NEVER)
    }

    /// So many datagrams get lost, and nobody is cut off.
    #[must_use]
    pub const fn lossy(loss: Ratio) -> Self {
        Self {
            loss,
            cut_off: BTreeSet::new(),
        }
    }

    /// Whether a datagram can pass between the two.
    #[must_use]
    pub fn passes(&self, one: SocketAddr, other: SocketAddr) -> bool {
        self.cut_off.contains(&one) == self.cut_off.contains(&other)
    }

    /// Draws whether a datagram gets lost on arrival.
    pub fn loses(&self, choices: &mut impl Choose) -> bool {
        choices.chance(self.loss)
    }
}
