//! Functions in WebAssembly.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use selvedge_core::settings::OutOfRange;
use selvedge_pcm::Returned;

use super::{Executor, Job, STEP, Stop};
use crate::note::note;
use crate::{Call, Engine, Failure, Limits, Module, ModuleId, Outcome, Run};

/// The fuel that a function takes between two checks for a stop: some milliseconds of it.
const SLICE: u64 = 500_000;

/// Runs the [`Call`](crate::Call)s in the codes of functions. All followers need the same limits.
///
/// A module is compiled when a function first calls it, one at a time, and stays compiled;
/// functions of compiled modules do not wait for that. Until its module is compiled a function
/// counts as [waiting](Stop::set_waiting), so it does not fail by its own time.
#[derive(Debug)]
pub struct Wasm {
    limits: Limits,
    engine: Mutex<Engine>,
    /// Locked by the function that compiles.
    compiles: Mutex<()>,
    is_verbose: bool,
}

impl Wasm {
    /// An executor with these limits. With `is_verbose` it logs to the standard error why functions
    /// failed, and the functions' own logs.
    ///
    /// # Errors
    /// A limit that is out of its range.
    pub fn new(limits: Limits, is_verbose: bool) -> Result<Self, OutOfRange> {
        Ok(Self {
            limits,
            engine: Mutex::new(Engine::new(limits)?),
            compiles: Mutex::new(()),
            is_verbose,
        })
    }

    fn run(&self, job: &Job, stop: &Stop) -> Outcome {
        let call = Call::from_function(&job.function).map_err(|_| Failure::NoCall);
        stop.set_waiting(true);
        let found = call.and_then(|call| Ok((self.module(call.module(), job, stop)?, call)));
        stop.set_waiting(false);
        let (module, call) = match found {
            Ok(it) => it,
            Err(why) => {
                let outcome = Outcome::Failed(why);
                self.note(&outcome, &[]);
                return outcome;
            }
        };
        let mut run = Run::new(&module, &call, &self.limits);
        let Some(ran) = run.finish_unless(stop.flag(), SLICE) else {
            return Outcome::Failed(Failure::Host); // It was stopped: the outcome is ignored.
        };
        self.note(&ran.outcome, &ran.log);
        ran.outcome
    }

    /// The called module, compiled.
    fn module(&self, id: ModuleId, job: &Job, stop: &Stop) -> Result<Module, Failure> {
        if let Some(module) = self.engine().module(id) {
            return Ok(module);
        }
        let mut modules = job.modules.iter();
        let bytes = modules.find(|it| ModuleId::of(it) == id);
        let bytes = bytes.ok_or(Failure::NoModule)?;
        let _compiles = self.turn(stop).ok_or(Failure::Host)?;
        // Another function may have compiled it meanwhile.
        if let Some(module) = self.engine().module(id) {
            return Ok(module);
        }
        match Module::compile(bytes, &self.limits) {
            Ok(module) => {
                self.engine().keep(module.clone());
                Ok(module)
            }
            Err(why) => {
                if self.is_verbose {
                    note(&format!("refused a module: {why}"));
                }
                Err(Failure::NoModule)
            }
        }
    }

    /// Waits until no other function compiles; `None` after a stop.
    fn turn(&self, stop: &Stop) -> Option<MutexGuard<'_, ()>> {
        while !stop.is_stopped() {
            match self.compiles.try_lock() {
                Ok(turn) => return Some(turn),
                Err(TryLockError::Poisoned(turn)) => return Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) => thread::sleep(STEP),
            }
        }
        None
    }

    /// Locked for moments: neither compiling nor running functions hold it.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, outcome: &Outcome, log: &[u8]) {
        if !self.is_verbose {
            return;
        }
        if let Outcome::Failed(why) = outcome {
            note(&format!("a function failed: {why}"));
        }
        if !log.is_empty() {
            note(&format!("log of a function: {}", crate::text_of(log)));
        }
    }
}

impl Executor for Wasm {
    fn execute(&self, job: &Job, stop: &Stop) -> Returned {
        self.run(job, stop).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use selvedge_core::Span;
    use selvedge_pcm::Failure;

    use super::*;
    use crate::Argument;

    const GCD: &[u8] = include_bytes!("../../functions/gcd.wasm");

    fn job(module: &[u8], export: &str) -> Job {
        let arguments = [Argument::I64(84), Argument::I64(36)];
        let call = Call::new(ModuleId::of(GCD), export, arguments).unwrap();
        Job {
            function: call.to_function().unwrap(),
            modules: vec![Arc::from(module)],
            memory: 0,
            time: Span::secs(1),
            result: 256,
        }
    }

    #[test]
    fn a_call_runs_with_its_module_and_fails_without_it() {
        let wasm = || Wasm::new(Limits::new(), true).unwrap();
        let value = Returned::Value(b"12i64".iter().copied().collect());
        let once = wasm();
        assert_eq!(once.execute(&job(GCD, "gcd"), &Stop::default()), value);
        assert_eq!(once.execute(&job(GCD, "gcd"), &Stop::default()), value);
        let other = once.execute(&job(GCD, "other"), &Stop::default());
        assert_eq!(other, Returned::Failed(Failure::NoFunction));
        let without = wasm().execute(&job(b"no module", "gcd"), &Stop::default());
        assert_eq!(without, Returned::Failed(Failure::NoLibrary));
    }

    #[test]
    fn nothing_is_compiled_but_the_module_that_is_called() {
        let wasm = Wasm::new(Limits::new(), false).unwrap();
        let mut job = job(GCD, "gcd");
        job.modules.insert(0, Arc::from(*b"\0asm\x01\0\0\0"));
        assert!(matches!(
            wasm.execute(&job, &Stop::default()),
            Returned::Value(_)
        ));
        let kept: Vec<ModuleId> = wasm.engine().modules().collect();
        assert_eq!(kept, [ModuleId::of(GCD)]);
        let wasm = Wasm::new(Limits::new(), false).unwrap();
        job.function.code = b"zz".iter().copied().collect();
        let no_call = Returned::Failed(Failure::NoFunction);
        assert_eq!(wasm.execute(&job, &Stop::default()), no_call);
        assert_eq!(wasm.engine().modules().count(), 0);
    }

    #[test]
    fn a_function_that_waits_for_the_compiler_can_be_stopped_and_others_run() {
        let wasm = Wasm::new(Limits::new(), false).unwrap();
        let (job, never_began) = (job(GCD, "gcd"), Returned::Failed(Failure::Host));
        let turn = wasm.turn(&Stop::default()).unwrap();
        let stop = Stop::default();
        let waited = thread::scope(|scope| {
            let waits = scope.spawn(|| wasm.execute(&job, &stop));
            while !stop.is_waiting() {
                thread::sleep(STEP);
            }
            stop.stop();
            waits.join().unwrap()
        });
        assert_eq!((waited, stop.is_waiting()), (never_began.clone(), false));
        drop(turn);
        // It has not begun, even if no other function compiles.
        assert_eq!(wasm.execute(&job, &stop), never_began);
        assert_eq!(wasm.engine().modules().count(), 0);
        let value = wasm.execute(&job, &Stop::default());
        assert!(matches!(value, Returned::Value(_)));
        let _turn = wasm.turn(&Stop::default()).unwrap();
        assert_eq!(wasm.execute(&job, &Stop::default()), value);
    }
}
