//! The lock under lists of operations.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Effect, Member, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Step, Watch, run, shrink};

use crate::machine::{Command, Lock, Rules, Stage};

// ANCHOR: fuzz
/// Watches that one node is inside at a time, and counts entries.
struct OneInside(u64);

impl Watch<Lock> for OneInside {
    fn after(&mut self, step: &Step<'_, Lock>) -> Result<(), String> {
        self.0 += u64::from(step.effects.contains(&Effect::Event("entered")));
        let machines = step.seats.iter().filter_map(|seat| seat.machine());
        let inside = machines.filter(|lock| lock.stage == Stage::Inside);
        match inside.count() {
            0 | 1 => Ok(()),
            more => Err(format!("{more} nodes are inside together")),
        }
    }

    /// A crashed node of this lock stays down.
    fn restart(&mut self, _: usize, _: Member) -> Option<(Member, Lock)> {
        None
    }
}

/// Plays a list of operations with a server and two clients. Returns the number of entries.
pub(crate) fn play(rules: Rules, operations: &[Operation<Lock>]) -> Result<u64, Broken<Lock>> {
    let server = Member::new(0, 0);
    let mut mesh = Mesh::new(64);
    for id in 0..3 {
        let me = Member::new(id, 0);
        mesh.add(me, Lock::new(me, server, rules));
    }
    let mut watch = OneInside(0);
    let mut choices = Bytes::new(&[]); // This machine makes no random choice.
    run(
        &mut mesh,
        operations.iter().cloned(),
        &mut choices,
        &mut watch,
    )?;
    Ok(watch.0)
}
// ANCHOR_END: fuzz

// ANCHOR: lists
/// A list of 60 operations: half of them deliver a message, a tenth lose one.
fn list(seed: u64) -> Vec<Operation<Lock>> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |bound: usize| rng.next_u32() as usize % bound;
    let mut operation = || match below(10) {
        0..5 => Operation::Deliver(below(4)),
        5 | 6 => Operation::Command(1 + below(2), Command::Enter),
        7 => Operation::Command(1 + below(2), Command::Exit),
        8 => Operation::Lose(below(4)),
        _ => Operation::Wait(Span::secs(1)),
    };
    (0..60).map(|_| operation()).collect()
}

/// Plays 3,000 lists. Returns the number of entries, or the first list that breaks the promise: its
/// seed, and the operations that the break needs.
pub(crate) fn search(rules: Rules) -> Result<u64, (u64, Broken<Lock>)> {
    let mut entries = 0;
    for seed in 0..3_000 {
        let operations = list(seed);
        match play(rules, &operations) {
            Ok(count) => entries += count,
            Err(long) => {
                let short = shrink(&operations, |list| play(rules, list).err());
                return Err((seed, short.unwrap_or(long)));
            }
        }
    }
    Ok(entries)
}
// ANCHOR_END: lists

#[cfg(test)]
mod tests {
    use super::*;

    // ANCHOR: found
    #[test]
    fn random_lists_break_the_first_lock_and_not_the_last_one() {
        let (seed, broken) = search(Rules::First).unwrap_err();
        assert_eq!((seed, broken.played.len()), (7, 19));
        let entries = search(Rules::Reminds).unwrap_or_else(|(_, broken)| panic!("{broken}"));
        assert_eq!(entries, 6_356);
    }
    // ANCHOR_END: found
}
