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

/// What a run did: for tests that want to know that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations carried out.
    pub operations: u64,
    /// Routines that finished.
    pub committed: u64,
    /// Routines that were undone.
    pub aborted: u64,
    /// Commands that were passed over.
    pub skipped: u64,
    /// Commands of which it is unknown whether they were done.
    pub unknown: u64,
    /// Failures and restarts that were noticed.
    pub failures: u64,
    /// Changes by hand.
    pub by_hand: u64,
    /// Devices that said what they had done before their commands had outcomes.
    pub echoes: u64,
    /// Commands that acted after their outcome came back unknown.
    pub late: u64,
    /// Rollbacks that were done.
    pub restored: u64,
    /// Leases that ended too early.
    pub leases_over: u64,
    /// Routines that later runs of their keys superseded.
    pub superseded: u64,
    /// Routines that gave way to what is more urgent.
    pub preempted: u64,
    /// Holds that were cut short.
    pub cut_short: u64,
    /// Routines that were refused because of others of their keys.
    pub refused: u64,
    /// Restarts of the hub.
    pub restarts: u64,
    /// Inputs that were lost because the hub stopped before it saved.
    pub lost_inputs: u64,
    /// Commands that were lost because the hub stopped before it issued them.
    pub lost_commands: u64,
    /// Commands that were asked for after a restart, and had been done.
    pub found: u64,
    /// Those that had not.
    pub not_found: u64,
    /// Ends that were compared with all orders.
    pub tried: u64,
    /// Those that no order explains: in weak homes only.
    pub unexplained: u64,
    /// Whether the home is a weak one.
    pub is_weak: bool,
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
