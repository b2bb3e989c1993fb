//! Parts for a host of your own: a clock, a generator, sealed datagrams, counters, a thread, and with
//! the feature `store` a disk. `selvedge-udp` is built from them, too.

mod clock;
pub(crate) mod counters;
#[cfg(feature = "store")]
mod disk;
mod sealing;
mod thread;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;

pub use clock::Clock;
pub use counters::Counter;
#[cfg(feature = "store")]
pub use disk::Disk;
pub use sealing::Sealing;
pub use thread::in_thread;

/// A generator from this seed, or from the system's entropy.
///
/// # Errors
/// When the system gives no random numbers.
pub fn generator(seed: Option<u64>) -> Result<ChaCha12Rng, getrandom::Error> {
    if let Some(seed) = seed {
        return Ok(ChaCha12Rng::seed_from_u64(seed));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(ChaCha12Rng::from_seed(bytes))
}
