//! A thread for a host, where the application has no runtime.

use core::future::Future;
use std::io;
use std::sync::mpsc::sync_channel;
use std::thread;

/// Runs a host in its own thread, on its own runtime, and returns its handle. `prepare` makes the
/// handle and the task of the host; `failed` is the error where the system gives no thread.
///
/// # Errors
/// The error of `prepare`, or `failed`.
pub fn in_thread<P, H, T, E>(
    name: &str,
    prepare: impl FnOnce() -> P + Send + 'static,
    failed: fn(io::Error) -> E,
) -> Result<H, E>
where
    P: Future<Output = Result<(H, T), E>>,
    T: Future<Output = ()>,
    H: Send + 'static,
    E: Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let (started, outcome) = sync_channel(1);
    let host = move || {
        runtime.block_on(async {
            // A caller that has stopped waiting has dropped the handle, which ends the host.
            match prepare().await {
                Ok((handle, task)) => {
                    drop(started.send(Ok(handle)));
                    task.await;
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        // A name that is being looked up may take half a minute.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(host)
        .map_err(failed)?;
    let ended = |_| failed(io::Error::other("the thread ended"));
    outcome.recv().map_err(ended)?
}
