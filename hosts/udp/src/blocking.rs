//! Waiting in a thread.

use core::future::Future;

use selvedge_core::shared;

/// Blocks this thread until `future` is ready. For calls without a `blocking_` form, such as
/// [`Map::put`](crate::Map::put):
///
/// ```
/// use selvedge_core::NodeId;
/// use selvedge_udp::{Host, Setup, block_on};
///
/// let node = Host::blocking_start(Setup::new(NodeId(7), "127.0.0.1:0".parse()?))?;
/// block_on(node.kill());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// In a task of a tokio runtime, as tokio's own calls that block do: the node may run in the same
/// thread, and would never get to answer. Await `future` there, or call this in
/// [`spawn_blocking`](tokio::task::spawn_blocking).
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    check();
    shared::block_on(future)
}

/// Panics if this thread must not be blocked.
#[track_caller]
pub(crate) fn check() {
    // tokio checks before it blocks, and offers that check in no other way. This mutex is free.
    drop(tokio::sync::Mutex::new(()).blocking_lock());
}
