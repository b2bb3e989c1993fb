//! Time, random numbers and lives, from the system.

use std::thread;
use std::time::{Instant, UNIX_EPOCH};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Incarnation, Member, NodeId, Span, Time};
use thiserror::Error;

/// An error: the system gives no random numbers.
#[derive(Debug, Error)]
#[error("the system gives no random numbers: {0}: run it in another environment")]
pub struct NoChance(#[from] getrandom::Error);

/// The time since the start of this process, as machines know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// A clock that was started this long ago.
    #[cfg(test)]
    #[allow(clippy::disallowed_methods, reason = "a test sets the clock")]
    pub(crate) fn started(before: core::time::Duration) -> Self {
        Self(Instant::now() - before)
    }

    pub(crate) fn now(self) -> Time {
        Time::since_start(self.0.elapsed())
    }
}

pub(crate) fn chance() -> Result<ChaCha12Rng, NoChance> {
    Ok(ChaCha12Rng::seed_from_u64(getrandom::u64()?))
}

/// A life that this node never had before, if the system's clock is right. It has begun when this
/// returns, which takes up to 1/8 s.
pub(crate) fn life(id: NodeId) -> Member {
    let since_1970 = UNIX_EPOCH.elapsed().unwrap_or_default();
    let micros = u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX);
    let (incarnation, wait) = Incarnation::from_clock(Span(micros));
    thread::sleep(wait.into());
    Member { id, incarnation }
}
