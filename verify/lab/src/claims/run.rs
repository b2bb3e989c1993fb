//! Runs trials on all cores.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::{Fault, Plan, Sample, Samples, Unit};

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Trials that are over.
    pub done: usize,
    /// Trials in all.
    pub of: usize,
}

/// Runs `plan` on `threads` threads and puts the results into `samples`. Calls `notify` after every
/// trial. Once `stop` is set no further trial begins; running ones are waited for.
///
/// # Errors
/// The first trial that could not be run, with its setting. The results of the other trials are
/// kept.
pub fn run(
    plan: &Plan,
    threads: usize,
    stop: &AtomicBool,
    samples: &mut Samples,
    mut notify: impl FnMut(Progress),
) -> Result<(), (String, Fault)> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel::<(&Unit, Result<Sample, Fault>)>();
    let mut first_fault = None;
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            let send = send.clone();
            let next = &next;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(unit) = plan.units.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let seen = (unit.experiment.run)(unit.seed);
                    if send.send((unit, seen)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let of = plan.units.len();
        for ((unit, seen), done) in receive.into_iter().zip(1..) {
            match seen {
                Ok(sample) => samples.add(&unit.experiment.name, unit.trial, sample),
                Err(fault) => {
                    stop.store(true, Ordering::Relaxed);
                    let name = unit.experiment.name.clone();
                    first_fault.get_or_insert((name, fault));
                }
            }
            notify(Progress { done, of });
        }
    });
    first_fault.map_or(Ok(()), Err)
}
