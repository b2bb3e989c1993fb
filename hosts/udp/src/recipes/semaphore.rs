//! A number of permits for all nodes together.

use selvedge_core::Span;

use super::line::Place;
use crate::{Error, Map, Session};

/// A semaphore of this name in a map.
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::semaphore::Semaphore;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// // Three nodes charge at a time.
/// let chargers = Semaphore::new(node.map("power"), "charge", 3, Span::secs(10));
/// let permit = chargers.acquire().await?;
/// # permit.release().await
/// # }
/// ```
///
/// An entry of the map for each permit and each that waits, and a session for each.
#[derive(Clone, Debug)]
pub struct Semaphore<'a> {
    map: Map<'a>,
    prefix: String,
    permits: usize,
    ttl: Span,
}

/// Has a permit until it is dropped, its node leaves, or its session ends.
#[derive(Debug)]
pub struct Permit(Place);

impl<'a> Semaphore<'a> {
    /// The semaphore of this name, with the number of permits, which all nodes give alike; none never gives one. A
    /// node that fails has its permit for this time to live, from a second to a day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, permits: usize, ttl: Span) -> Self {
        Self {
            map,
            prefix: format!("semaphore/{name}/"),
            permits,
            ttl,
        }
    }

    /// Waits for a permit: the one that asked first gets it first. A dropped future waits no longer.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn acquire(&self) -> Result<Permit, Error> {
        let place = Place::take(self.map, &self.prefix, &[], self.ttl).await?;
        place.comes(self.map, &self.prefix, self.permits).await?;
        Ok(Permit(place))
    }
}

impl Permit {
    /// Its session, which has the time until which this certainly lasts.
    pub const fn session(&self) -> &Session {
        &self.0.session
    }

    /// Returns true if it is certainly its own now, see [`Session::is_alive`](crate::Session::is_alive).
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.0.session.is_alive()
    }

    /// Waits until another node may have it.
    pub async fn lapsed(&self) {
        self.0.session.lapsed().await;
    }

    /// Gives it back. A drop does so, too.
    ///
    /// # Errors
    /// As [`Session::end`](crate::Session::end).
    pub async fn release(self) -> Result<(), Error> {
        self.0.session.end().await
    }
}
