//! A call that can be stepped.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};

use super::limits::Limits;
use super::machine::Machine;
use super::module::Module;
use super::outcome::{Failure, Outcome, Ran};
use crate::call::Call;

/// A call in progress. It runs when it is stepped; dropping it stops it. It may move to another
/// thread.
#[derive(Debug)]
pub struct Run {
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Runs(Box<Machine>),
    Over(Ran),
}

/// The result of a slice of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It has not ended.
    More,
    /// It has ended; later slices return the same.
    Finished(Ran),
}

impl Run {
    /// Begins a call of this module's export. A call that cannot be run ends at once.
    #[must_use]
    pub fn new(module: &Module, call: &Call, limits: &Limits) -> Self {
        let machine = Machine::new(module, call, limits);
        match machine {
            Ok(machine) => Self {
                progress: Progress::Runs(Box::new(machine)),
            },
            Err(failure) => Self::failed(failure),
        }
    }

    /// A call that ends before it begins.
    pub(super) const fn failed(failure: Failure) -> Self {
        let ran = Ran {
            outcome: Outcome::Failed(failure),
            fuel: 0,
            log: Vec::new(),
        };
        Self {
            progress: Progress::Over(ran),
        }
    }

    /// Runs for about this much fuel, of which 1,000,000 takes some milliseconds. A slice is longer
    /// if one block of instructions, or one copy of memory, takes more; each slice makes progress.
    pub fn step(&mut self, fuel: u64) -> Step {
        let machine = match &mut self.progress {
            Progress::Runs(machine) => machine,
            Progress::Over(ran) => return Step::Finished(ran.clone()),
        };
        let outcome = match machine.step(fuel) {
            Ok(None) => return Step::More,
            Ok(Some(value)) => Outcome::Value(value),
            Err(failure) => Outcome::Failed(failure),
        };
        let ran = Ran {
            fuel: machine.fuel_for(&outcome),
            log: machine.take_log(),
            outcome,
        };
        // Frees the module's memory now.
        drop(mem::replace(
            &mut self.progress,
            Progress::Over(ran.clone()),
        ));
        Step::Finished(ran)
    }

    /// Runs to the end.
    pub fn finish(mut self) -> Ran {
        loop {
            if let Step::Finished(ran) = self.step(u64::MAX) {
                return ran;
            }
        }
    }

    /// Runs to the end, in slices of this much fuel; returns `None` if it is stopped meanwhile.
    pub fn finish_unless(&mut self, stop: &AtomicBool, fuel: u64) -> Option<Ran> {
        while !stop.load(Ordering::Relaxed) {
            if let Step::Finished(ran) = self.step(fuel) {
                return Some(ran);
            }
        }
        None
    }

    /// The fuel that it has taken.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        match &self.progress {
            Progress::Runs(machine) => machine.fuel(),
            Progress::Over(ran) => ran.fuel,
        }
    }
}
