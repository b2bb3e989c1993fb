//! Lists of operations on a small home, with a watch on what becomes of it.
//!
//! Bytes become operations; so a fuzzer steers what happens, and a test draws it. Routines come and
//! are cancelled. Devices do their commands, refuse, keep silent, take too long, fail and restart;
//! they report a state before the outcome of its command is known, and act after a command was given
//! up. A hand changes them, and the hub is restarted from what it saved: on demand, or around every
//! single step. After every step the state must be one that a hub can come into. When the bytes run out
//! faults are over, and all routines have to finish. Then
//!
//! - the order that was told explains the end, and what each condition saw;
//! - some order of the committed routines and of the failures does, found by trying all, without a
//!   look at what was told;
//! - of those that set the same devices and ask for no state the last one comes last, if some device
//!   did commands of both;
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

/// How a saved state travels through storage.
pub type Storage = fn(Saved<u8>) -> Result<Saved<u8>, String>;

selvedge_sim::counts! {
    /// What a run did: for tests that want to know that it did something.
    pub struct Summary {
        /// Operations carried out.
        operations,
        /// Routines that finished.
        committed,
        /// Routines that were undone.
        aborted,
        /// Commands that were passed over.
        skipped,
        /// Commands of which it is unknown whether they were done.
        unknown,
        /// Failures and restarts that were noticed.
        failures,
        /// Changes by hand.
        by_hand,
        /// Devices that said what they had done before their commands had outcomes.
        echoes,
        /// Commands that acted after their outcome came back unknown.
        late,
        /// Rollbacks that were done.
        restored,
        /// Leases that ended too early.
        leases_over,
        /// Routines that later runs of their keys superseded.
        superseded,
        /// Routines that gave way to what is more urgent.
        preempted,
        /// Holds that were cut short.
        cut_short,
        /// Routines that were refused because of others of their keys.
        refused,
        /// Restarts of the hub.
        restarts,
        /// Inputs that were lost because the hub stopped before it saved.
        lost_inputs,
        /// Commands that were lost because the hub stopped before it issued them.
        lost_commands,
        /// Commands that were asked for after a restart, and had been done.
        found,
        /// Those that had not.
        not_found,
        /// Ends that were compared with all orders.
        tried,
        /// Those that no order explains: in weak homes only.
        unexplained,
        /// Whether the home is a weak one.
        is_weak: max bool,
    }
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[], Ok)
}

/// The same under rules that differ from ours, to see that it notices, and with a storage.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published], storage: Storage) -> Result<Summary, String> {
    let mut world = World::new(Bytes::new(bytes), rules, storage)?;
    let ran = world.run();
    ran.map_err(|broken| Broken::new(broken, &world.mesh).to_string())?;
    Ok(world.summary)
}

/// What happens in such a run, line by line: for a reader that wants to know why it breaks.
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
