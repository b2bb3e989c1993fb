//! A lock that readers share and a writer has alone.

use selvedge_core::Span;
use selvedge_groups::store::Entry;

use super::line::{Place, READER, excludes};
use super::lock::Guard;
use crate::{Error, Map};

/// The value of a writer's entry.
const WRITER: &[u8] = b"w";

/// A read-write lock of this name in a map. All wait in one line: a reader for the writers before it, a writer for all
/// before it. So a writer that waits is passed by no reader.
///
/// ```no_run
/// use selvedge_udp::Span;
/// use selvedge_udp::recipes::rw_lock::RwLock;
///
/// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
/// let plan = RwLock::new(node.map("locks"), "plan", Span::secs(10));
/// let reads = plan.read().await?;
/// // Other readers are here, too.
/// reads.release().await?;
/// let writes = plan.write().await?;
/// // It is alone.
/// # writes.release().await
/// # }
/// ```
///
/// Guards have [tokens](Guard::token) of one order. A writer's is greater than those of all former holders, and a
/// reader's is greater than those of all former writers. The resource refuses a writer with a smaller token than any
/// that it has seen, and a reader with a smaller token than any writer's: readers that share the lock come in any
/// order.
///
/// An entry of the map for each holder and each that waits, and a session for each.
#[derive(Clone, Debug)]
pub struct RwLock<'a> {
    map: Map<'a>,
    prefix: String,
    ttl: Span,
}

impl<'a> RwLock<'a> {
    /// The read-write lock of this name. A holder whose node fails has it for this time to live, from a second to a
    /// day, or a little longer.
    #[must_use]
    pub fn new(map: Map<'a>, name: &str, ttl: Span) -> Self {
        let prefix = format!("rw-lock/{name}/");
        Self { map, prefix, ttl }
    }

    /// Waits until all writers that asked before have left, and shares the lock with other readers. A dropped future
    /// waits no longer.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn read(&self) -> Result<Guard, Error> {
        self.acquire(READER, excludes).await
    }

    /// Waits until all that asked before have left, and has the lock alone. A dropped future waits no longer.
    ///
    /// # Errors
    /// As [`Lock::acquire`](super::lock::Lock::acquire).
    pub async fn write(&self) -> Result<Guard, Error> {
        self.acquire(WRITER, |_| true).await
    }

    async fn acquire(&self, kind: &[u8], excludes: fn(&Entry) -> bool) -> Result<Guard, Error> {
        let place = Place::take(self.map, &self.prefix, kind, self.ttl).await?;
        let comes = place.comes_after(self.map, &self.prefix, 1, excludes);
        comes.await?;
        Ok(Guard(place))
    }
}
