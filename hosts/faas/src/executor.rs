//! Executors of functions, and their thread.

mod wasm;

use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;
use std::{io, thread};

use selvedge_core::Span;
use selvedge_pcm::{Failure, Function, Returned, TaskId};
use sha2::{Digest as _, Sha256};

pub use wasm::Wasm;

/// A function with everything that it needs.
#[derive(Clone, Debug)]
pub struct Job {
    /// The function.
    pub function: Function,
    /// The modules that its `libraries` name, in their order. The first 64 bits of each one's
    /// SHA-256 are as named.
    pub modules: Vec<Arc<[u8]>>,
    /// The number of bytes of memory that it may take.
    pub memory: u32,
    /// The time for which it may run. After that it is stopped, and fails.
    pub time: Span,
    /// The number of bytes that it may return.
    pub result: u16,
}

/// Flags between host and executor: the host stops a function, and the executor reports that it has
/// not begun.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    stops: AtomicBool,
    waits: AtomicBool,
}

impl Stop {
    /// Stops the function.
    pub fn stop(&self) {
        self.0.stops.store(true, Ordering::Release);
    }

    /// Sets whether the function still waits for something of its host, such as a compiler. If its
    /// time ends while it waits, it fails as a fault of the host. Until this is called, it counts
    /// as begun.
    pub fn set_waiting(&self, waits: bool) {
        self.0.waits.store(waits, Ordering::Release);
    }

    /// The flag that is set to stop it.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0.stops
    }

    /// Returns true if it should stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0.stops.load(Ordering::Acquire)
    }

    /// Returns true if it has not begun.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.0.waits.load(Ordering::Acquire)
    }
}

/// An executor of functions.
pub trait Executor: Send + Sync + 'static {
    /// Runs a function to its end, on a separate thread. The implementation checks `stop` every few
    /// milliseconds; its result after a stop is ignored. A panic counts as a failure.
    fn execute(&self, job: &Job, stop: &Stop) -> Returned;
}

/// The interval at which a waiting function checks for a stop.
const STEP: Duration = Duration::from_millis(5);

/// Runs nothing: the value of a function is the SHA-256 of its code and its modules. Code that
/// begins with `wait N ` takes N milliseconds, and code that begins with `fail ` fails. For tests
/// and demonstrations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hash;

impl Hash {
    /// The value of this code without modules.
    #[must_use]
    pub fn value(code: &[u8]) -> Vec<u8> {
        Sha256::digest(code).to_vec()
    }
}

impl Executor for Hash {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn execute(&self, job: &Job, stop: &Stop) -> Returned {
        let code: &[u8] = &job.function.code;
        if code.starts_with(b"fail ") {
            return Returned::Failed(Failure::Trapped);
        }
        let words = code
            .strip_prefix(b"wait ")
            .and_then(|it| it.split(|it| *it == b' ').next());
        let number = words.and_then(|it| core::str::from_utf8(it).ok());
        let wait: u64 = number.and_then(|it| it.parse().ok()).unwrap_or_default();
        let (begun, wait) = (Instant::now(), Duration::from_millis(wait));
        while !stop.is_stopped() {
            // On a busy machine, a short sleep takes longer than requested.
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(STEP));
        }
        let mut hash = Sha256::new();
        hash.update(code);
        for module in &job.modules {
            hash.update(module);
        }
        Returned::Value(hash.finalize().into_iter().collect())
    }
}

/// Runs functions on threads, so that none blocks its follower.
pub(crate) struct Worker<W> {
    executor: Arc<dyn Executor>,
    wakes: mpsc::SyncSender<W>,
    /// The function that runs, unless it was stopped.
    present: Option<(TaskId, Stop)>,
    /// The number of runs until now. The result of an earlier run comes too late.
    pub(crate) number: u64,
}

impl<W: Send + 'static> Worker<W> {
    pub(crate) fn new(executor: Arc<dyn Executor>, wakes: mpsc::SyncSender<W>) -> Self {
        Self {
            executor,
            wakes,
            present: None,
            number: 0,
        }
    }

    /// Starts a function. Its result is sent as the wake that `wake` makes of it, with the number
    /// of the run.
    pub(crate) fn start(
        &mut self,
        task: TaskId,
        job: Job,
        wake: impl FnOnce(u64, TaskId, Returned) -> W + Send + 'static,
    ) -> io::Result<()> {
        let stop = Stop::default();
        self.number += 1;
        let (number, executor, wakes) =
            (self.number, Arc::clone(&self.executor), self.wakes.clone());
        let theirs = stop.clone();
        thread::Builder::new()
            .name("function".into())
            .spawn(move || {
                let returned = catch_unwind(AssertUnwindSafe(|| executor.execute(&job, &theirs)));
                let returned = returned.unwrap_or(Returned::Failed(Failure::Host));
                // The host may have ended.
                let _notified = wakes.send(wake(number, task, returned));
            })?;
        self.present = Some((task, stop));
        Ok(())
    }

    /// The task of the function that has not begun.
    pub(crate) fn waiting(&self) -> Option<TaskId> {
        let present = self.present.as_ref().filter(|it| it.1.is_waiting());
        present.map(|it| it.0)
    }

    /// Stops the function of a task, if it runs.
    pub(crate) fn stop(&mut self, task: TaskId) {
        if let Some((_, stop)) = self.present.take_if(|it| it.0 == task) {
            stop.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::Member;

    use super::*;

    fn job(code: &[u8]) -> Job {
        Job {
            function: Function::new(code),
            modules: Vec::new(),
            memory: 0,
            time: Span::secs(1),
            result: 256,
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a test reads the clock")]
    fn the_value_of_a_function_is_its_hash() {
        let value = Returned::Value(Hash::value(b"wait 1 x").into_iter().collect());
        assert_eq!(Hash.execute(&job(b"wait 1 x"), &Stop::default()), value);
        let begun = Instant::now();
        Hash.execute(&job(b"wait 50 x"), &Stop::default());
        assert!(begun.elapsed() >= Duration::from_millis(50));
        assert_eq!(
            Hash.execute(&job(b"fail x"), &Stop::default()),
            Returned::Failed(Failure::Trapped)
        );
        let mut with_module = job(b"wait 1 x");
        with_module.modules.push(Arc::from(*b"m"));
        assert_ne!(Hash.execute(&with_module, &Stop::default()), value);
    }

    struct Panics;

    impl Executor for Panics {
        fn execute(&self, _: &Job, _: &Stop) -> Returned {
            panic!("a defect of the executor");
        }
    }

    #[test]
    fn what_panics_has_failed_and_what_is_stopped_ends() {
        let task = TaskId {
            client: Member::new(1, 1),
            number: 1,
        };
        let (wake, wakes) = mpsc::sync_channel(1);
        let patience = Duration::from_secs(20);
        let mut worker = Worker::new(Arc::new(Panics), wake.clone());
        let notify = |number, _, returned| (number, returned);
        worker.start(task, job(b""), notify).unwrap();
        let failed = Returned::Failed(Failure::Host);
        assert_eq!(wakes.recv_timeout(patience), Ok((1, failed)));
        let mut worker = Worker::new(Arc::new(Hash), wake);
        // Without a stop it would take weeks.
        worker
            .start(task, job(b"wait 9999999999 x"), notify)
            .unwrap();
        worker.stop(task);
        let (number, returned) = wakes.recv_timeout(patience).unwrap();
        assert_eq!(number, 1);
        assert!(matches!(returned, Returned::Value(_)));
    }
}
