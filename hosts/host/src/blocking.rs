//! Waiting in a thread.

use core::future::Future;

use selvedge_core::shared;

/// Blocks this thread until `future` is ready. For calls of a handle without a `blocking_` form:
///
/// ```
/// use selvedge::membership::{Config, Membership};
/// use selvedge_core::Member;
/// use selvedge_host::{Host, Setup, block_on};
///
/// let me = Member::new(7, 1);
/// let setup = Setup::new(me, "127.0.0.1:0".parse()?);
/// let node = Host::blocking_start(Membership::new(me, Config::default())?, setup)?;
/// block_on(node.stop())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// In a task of a tokio runtime, as tokio's own calls that block do: the host may run in the same
/// thread, and would never get to answer. Await `future` there, or call this in
/// [`spawn_blocking`](tokio::task::spawn_blocking).
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    // tokio checks before it blocks, and offers that check in no other way. This mutex is free.
    drop(tokio::sync::Mutex::new(()).blocking_lock());
    shared::block_on(future)
}
