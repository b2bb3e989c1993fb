//! Functions in WebAssembly.

use std::sync::{Mutex, PoisonError};

use selvedge_core::settings::OutOfRange;
use selvedge_pcm::{Failure, Returned};

use super::{Executor, Job, Stop};
use crate::{Engine, Limits, Outcome};

/// How much fuel a function takes before it is looked whether it is to stop: some milliseconds of it.
const SLICE: u64 = 500_000;

/// Runs the [`Call`](crate::Call)s that the codes of functions are. All followers need the same limits.
#[derive(Debug)]
pub struct Wasm {
    /// Modules stay compiled.
    engine: Mutex<Engine>,
    is_verbose: bool,
}

impl Wasm {
    /// Within these limits. With `is_verbose` it says on the standard error why functions failed, and what
    /// they wrote into their log.
    ///
    /// # Errors
    /// A limit that is out of its range.
    pub fn new(limits: Limits, is_verbose: bool) -> Result<Self, OutOfRange> {
        let engine = Mutex::new(Engine::new(limits)?);
        Ok(Self { engine, is_verbose })
    }

    fn note(&self, outcome: &Outcome, log: &[u8]) {
        if !self.is_verbose {
            return;
        }
        if let Outcome::Failed(why) = outcome {
            eprintln!("a function has failed: {why}");
        }
        if !log.is_empty() {
            eprintln!("a function says: {}", crate::text_of(log));
        }
    }
}

impl Executor for Wasm {
    fn execute(&self, job: &Job, stop: &Stop) -> Returned {
        let mut run = {
            let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            for module in &job.modules {
                // One that cannot be compiled is not found by the call.
                let inserted = engine.insert(module);
                if let (Err(why), true) = (inserted, self.is_verbose) {
                    eprintln!("a module is refused: {why}");
                }
            }
            engine.start_function(&job.function)
        };
        let Some(ran) = run.finish_unless(stop.flag(), SLICE) else {
            return Returned::Failed(Failure::Time); // It was stopped: nobody asks.
        };
        self.note(&ran.outcome, &ran.log);
        ran.outcome.into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use selvedge_core::Span;

    use super::*;
    use crate::{Argument, Call, ModuleId};

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
}
