//! Lists of operations on a small home, with checks of the results.
//!
//! Bytes become operations, so a fuzzer steers the run, and a test draws it. Routines are submitted
//! and cancelled. Devices do their commands, refuse, stay silent, take too long, fail and restart;
//! they report a state before the outcome of its command is known, and act after a command was
//! given up. A person changes them, and the hub is restarted from its saved state: on demand, or
//! around every single step. After every step the state must be one that a hub can reach. At the
//! end of the bytes no more faults occur, and all routines have to finish. Then
//!
//! - the reported order explains the end, and the result of each condition;
//! - some order of the committed routines and of the failures explains it, found by trying all,
//!   without a look at the reported one;
//! - of routines that set the same devices and ask for no state the last one is last, if some
//!   device did commands of both;
//! - no command was done twice, and none of a committed routine was left out.

mod oracle;
mod settings;
mod world;

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_sim::Bytes;
use selvedge_sim::operations::Broken;

use crate::{Published, Saved};
use world::World;

/// The way of a saved state through storage.
pub type Storage = fn(Saved<u8>) -> Result<Saved<u8>, String>;

selvedge_sim::counts! {
    /// Counters of a run, for tests that check its coverage.
    pub struct Summary {
        /// Operations carried out.
        operations,
        /// Routines that finished.
        committed,
        /// Routines that were undone.
        aborted,
        /// Commands that were skipped.
        skipped,
        /// Commands with an unknown outcome.
        unknown,
        /// Failures and restarts that the hub learned of.
        failures,
        /// Manual changes.
        by_hand,
        /// Reports of a device's new state before the outcome of its command.
        echoes,
        /// Commands that acted after their outcome was reported as unknown.
        late,
        /// Rollbacks that were done.
        restored,
        /// Leases that ended too early.
        leases_over,
        /// Routines that later runs of their keys superseded.
        superseded,
        /// Routines that were preempted.
        preempted,
        /// Holds that were cut short.
        cut_short,
        /// Routines that were refused because of other runs of their keys.
        refused,
        /// Restarts of the hub.
        restarts,
        /// Inputs that were lost because the hub stopped before it saved.
        lost_inputs,
        /// Commands that were lost because the hub stopped before it issued them.
        lost_commands,
        /// Commands about which the hub asked after a restart, and that had been done.
        found,
        /// Commands about which it asked, and that had not been done.
        not_found,
        /// Ends that were compared with all orders.
        tried,
        /// Ends that no order explains: in weak homes only.
        unexplained,
        /// True if the home is weak.
        is_weak: max bool,
    }
}

/// Carries out the operations that `bytes` encode. Any bytes are valid.
///
/// # Errors
/// The broken promise, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[], Ok)
}

/// Does the same under published rules, to see that they are detected, and with a storage.
///
/// # Errors
/// The broken promise, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published], storage: Storage) -> Result<Summary, String> {
    let mut world = World::new(Bytes::new(bytes), rules, storage)?;
    let ran = world.run();
    ran.map_err(|broken| Broken::new(broken, &world.mesh).to_string())?;
    Ok(world.summary)
}

/// The events of such a run, line by line: to find the reason of a failure.
#[must_use]
pub fn story(bytes: &[u8], rules: &[Published], storage: Storage) -> Vec<String> {
    let mut world = match World::new(Bytes::new(bytes), rules, storage) {
        Ok(world) => world,
        Err(broken) => return vec![broken],
    };
    world.story = Some(Vec::new());
    let end = world.run().err();
    let mut story = world.story.unwrap_or_default();
    story.extend(end);
    story
}
