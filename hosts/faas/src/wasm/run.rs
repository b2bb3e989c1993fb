//! A call under way.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicBool, Ordering};

use super::limits::Limits;
use super::machine::Machine;
use super::module::Module;
use super::outcome::{Failure, Outcome, Ran};
use crate::call::Call;

/// A call under way. It runs when it is stepped; dropping it stops it. It may go to another thread.
#[derive(Debug)]
pub struct Run {
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    Runs(Box<Machine>),
    Over(Ran),
}

/// What a slice of a run comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is not over.
    More,
    /// It is over; later slices say the same.
    Finished(Ran),
}

impl Run {
    /// Begins a call of this module's export. A call that cannot be run is over at once.
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

    /// A call that is over before it begins.
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

    /// Runs for about so much fuel, of which 1,000,000 takes some milliseconds. A slice is longer
    /// where one block of instructions, or one copy of memory, takes more; it goes on in any case.
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
        // The module's memory goes now.
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

    /// Runs to the end, in slices of so much fuel, unless it is stopped meanwhile: `None` then.
    pub fn finish_unless(&mut self, stop: &AtomicBool, fuel: u64) -> Option<Ran> {
        while !stop.load(Ordering::Relaxed) {
            if let Step::Finished(ran) = self.step(fuel) {
                return Some(ran);
            }
        }
        None
    }

    /// How much fuel it has taken.
    #[must_use]
    pub fn fuel(&self) -> u64 {
        match &self.progress {
            Progress::Runs(machine) => machine.fuel(),
            Progress::Over(ran) => ran.fuel,
        }
    }
}
