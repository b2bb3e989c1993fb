//! Tests of a protocol crate's list of scenarios.

use core::sync::atomic::{AtomicUsize, Ordering};
use std::{panic, thread};

use thiserror::Error;

use super::{Expected, Rules, Scenario, Surprise};

/// The most states that a scenario should have to be verified in a debug build, which takes ten times
/// as long as a release build.
const DEBUG_STATES: usize = 10_000;

/// Verifies the quick scenarios under our rules, on as many threads as there are processors.
/// Returns their number. A debug build leaves scenarios with more than 10,000 expected states to
/// release builds, such as the build of `selvedge check`.
///
/// # Errors
/// An outcome that is not as expected.
pub fn verify_ours(list: &[Scenario]) -> Result<usize, Surprise> {
    let quick = |it: &&Scenario| !it.is_deep() && it.rules() == Rules::Ours;
    let quick: Vec<&Scenario> = list.iter().filter(quick).collect();
    let next = AtomicUsize::new(0);
    let verify = || -> Result<(), Surprise> {
        while let Some(scenario) = quick.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !is_left_to_release(scenario) {
                scenario.verify()?;
            }
        }
        Ok(())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(verify)).collect();
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|it| panic::resume_unwind(it))?;
        }
        Ok(quick.len())
    })
}

fn is_left_to_release(scenario: &Scenario) -> bool {
    let is_large =
        matches!(scenario.expected(), Expected::Holds { states } if states > DEBUG_STATES);
    cfg!(debug_assertions) && is_large
}

/// Verifies the quick scenarios under published rules: each breaks after the expected number of
/// steps. Each needs a quick scenario of the same name under our rules, which [`verify_ours`]
/// verifies. Returns their number.
///
/// # Errors
/// The first scenario that stands alone, or that has another outcome than expected.
pub fn verify_published(list: &[Scenario]) -> Result<usize, Flaw> {
    let quick = |it: &&Scenario| !it.is_deep();
    let of = |rules| move |it: &&Scenario| it.rules() == rules;
    let mut count = 0;
    for theirs in list.iter().filter(quick).filter(of(Rules::Published)) {
        let name = theirs.name();
        let mut ours = list.iter().filter(quick).filter(of(Rules::Ours));
        if !ours.any(|it| it.name() == name) {
            return Err(Flaw::Unpaired(name.into()));
        }
        theirs.verify()?;
        count += 1;
    }
    Ok(count)
}

/// A defect of a list of published rules.
#[derive(Clone, Debug, Error)]
pub enum Flaw {
    /// No scenario shows that our rules hold where the published rules break.
    #[error("{0:?} has only published rules: also add it with our rules, in the quick list")]
    Unpaired(String),
    /// A check with an unexpected outcome.
    #[error(transparent)]
    Surprise(#[from] Surprise),
}
