//! The effects of one hop on a message.

use core::num::NonZeroU64;

use selvedge_core::{Choose, Ratio, Span};

use super::NetworkError;
use super::routes::Route;

/// The delays, losses and duplicates of hops. Every hop of a path draws for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link {
    /// The shortest delay of a hop. Messages take at least 1 µs in all, so that time always moves.
    pub min_delay: Span,
    /// The longest delay of a hop; every whole microsecond from the shortest on is equally likely.
    /// Where the two differ, messages overtake each other.
    pub max_delay: Span,
    /// The chance that a hop loses a message.
    pub loss: Ratio,
    /// The chance that a second copy of a message sets out, with delays and losses of its own.
    pub duplicate: Ratio,
    /// The chance that a message takes [`slow_by`](Self::slow_by) longer: a second, coarser way to
    /// put messages out of order.
    pub slow: Ratio,
    /// The additional delay of a slow message.
    pub slow_by: Span,
    /// The bandwidth of a node in bit/s, shared by its neighbours: over each hop, `b` bytes take `b
    /// * 8 * neighbours / bandwidth`, in addition to the delay. Neighbours are those of the
    /// topology, up or not. Messages do not queue behind each other. `None` is without limit.
    pub bandwidth: Option<NonZeroU64>,
}

/// 1 to 5 ms a hop, nothing lost, nothing doubled, bandwidth without limit.
impl Default for Link {
    fn default() -> Self {
        Self {
            min_delay: Span::millis(1),
            max_delay: Span::millis(5),
            loss: Ratio::NEVER,
            duplicate: Ratio::NEVER,
            slow: Ratio::NEVER,
            slow_by: Span::ZERO,
            bandwidth: None,
        }
    }
}

/// The receivers of a multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Multicasts {
    /// The neighbours: one transmission, of which each may miss its copy.
    #[default]
    Neighbours,
    /// All nodes that a path leads to, as protocols assume that rest on a reliable multicast.
    /// Each copy takes its own way, with the delays of its hops; nothing is lost or doubled, and
    /// all hops of all copies are counted in bytes.
    Reliable,
}

/// The fate of a copy on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives {
        after: Span,
    },
    /// It was last seen on this hop, counted from 1.
    Lost {
        hop: u16,
    },
}

impl Link {
    pub(super) fn check(&self) -> Result<(), NetworkError> {
        if self.min_delay > self.max_delay {
            return Err(NetworkError::Delays {
                min: self.min_delay,
                max: self.max_delay,
            });
        }
        Ok(())
    }

    pub(super) fn travel(&self, route: Route, bytes: u64, choices: &mut impl Choose) -> Fate {
        let width = (self.max_delay - self.min_delay).0.saturating_add(1);
        let mut after = self.airtime(route, bytes);
        for hop in 1..=route.hops {
            if choices.chance(self.loss) {
                return Fate::Lost { hop };
            }
            after = after + self.min_delay + Span(choices.below(width));
        }
        if choices.chance(self.slow) {
            after = after + self.slow_by;
        }
        Fate::Arrives {
            after: after.max(Span::micros(1)),
        }
    }

    /// The time that the sender and all relays need to transmit, rounded up.
    fn airtime(&self, route: Route, bytes: u64) -> Span {
        let Some(bandwidth) = self.bandwidth else {
            return Span::ZERO;
        };
        let bit_micros = u128::from(bytes) * 8 * 1_000_000 * u128::from(route.sharers);
        let micros = bit_micros.div_ceil(u128::from(bandwidth.get()));
        Span(u64::try_from(micros).unwrap_or(u64::MAX))
    }
}
