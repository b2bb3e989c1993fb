//! Ctrl-C, and other signals that ask a process to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, thread};

use super::Failure;

/// The number of requests to end since this was made. The process does not end by itself then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupts(Arc<AtomicU32>);

impl Interrupts {
    /// Counts Ctrl-C.
    pub(crate) fn by_ctrl_c() -> Result<Self, Failure> {
        Self::count(false).map_err(Failure::Signal)
    }

    /// Counts Ctrl-C, and SIGTERM, with which services and containers are ended.
    pub(crate) fn by_all() -> Result<Self, Failure> {
        Self::count(true).map_err(Failure::Signal)
    }

    pub(crate) fn count_so_far(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn count(all: bool) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // From here on the signals do not end the process.
        let mut signals = {
            let _inside = runtime.enter();
            Signals::new(all)?
        };
        let it = Self::default();
        let theirs = it.clone();
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                runtime.block_on(async {
                    while signals.next().await {
                        theirs.0.fetch_add(1, Ordering::Relaxed);
                    }
                });
            })?;
        Ok(it)
    }
}

#[cfg(unix)]
struct Signals {
    ctrl_c: tokio::signal::unix::Signal,
    end: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new(all: bool) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        let end = all.then(|| signal(SignalKind::terminate()));
        Ok(Self {
            ctrl_c: signal(SignalKind::interrupt())?,
            end: end.transpose()?,
        })
    }

    async fn next(&mut self) -> bool {
        let Some(end) = &mut self.end else {
            return self.ctrl_c.recv().await.is_some();
        };
        tokio::select! {
            it = self.ctrl_c.recv() => it.is_some(),
            it = end.recv() => it.is_some(),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new(_all: bool) -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
