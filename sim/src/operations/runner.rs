//! A run of a whole list of operations.

use core::fmt;

use selvedge_core::{Choose, Machine};
use thiserror::Error;

use super::{Mesh, Operation, Watch};

/// A promise that broke, and the operations up to there.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("operation {}: {promise}\nafter{}", .played.len(), Tail(.played.len(), .story))]
pub struct Broken<M: Machine> {
    /// The promise, in the words of the [`Watch`], or a panic.
    pub promise: String,
    /// The operations up to the break, with the seats and messages that they hit.
    pub played: Vec<Operation<M>>,
    /// The last of these operations in words, with the messages that went from node to node.
    pub story: Vec<String>,
}

impl<M: Machine> Broken<M> {
    /// The break of `promise` in a mesh, at the last operation played.
    #[must_use]
    pub fn new(promise: String, mesh: &Mesh<M>) -> Self {
        Self {
            promise,
            played: mesh.played().to_vec(),
            story: mesh.story(),
        }
    }
}

// `unwrap` shows the story, not the fields.
impl<M: Machine> fmt::Debug for Broken<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The number of all operations, and the story of the last ones.
struct Tail<'a>(usize, &'a [String]);

impl fmt::Display for Tail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(played, story) = self;
        let skipped = played.saturating_sub(story.len());
        if skipped > 0 {
            write!(f, " {skipped} others and")?;
        }
        let numbers = skipped + 1..;
        numbers
            .zip(*story)
            .try_for_each(|(number, text)| write!(f, "\n{number:3}. {text}"))
    }
}

/// Plays a list of operations. Machines choose by `choices`.
///
/// # Errors
/// The first broken promise, with the operations up to there.
pub fn run<M: Machine, C: Choose>(
    mesh: &mut Mesh<M>,
    operations: impl IntoIterator<Item = Operation<M>>,
    choices: &mut C,
    watch: &mut impl Watch<M>,
) -> Result<(), Broken<M>> {
    for operation in operations {
        let played = mesh.play(operation, choices, watch);
        played.map_err(|promise| Broken::new(promise, mesh))?;
    }
    Ok(())
}

/// Shortens a list that breaks a promise: leaves out each operation without which the list still
/// breaks, from the last to the first. `play` plays a list and returns its break; it is called up
/// to once for each operation in each of a few rounds, so O(n^2) times in the worst case.
///
/// Returns the break of the short list, with the seats and messages that its operations hit, or
/// `None` if the list does not break.
pub fn shrink<M: Machine>(
    operations: &[Operation<M>],
    mut play: impl FnMut(&[Operation<M>]) -> Option<Broken<M>>,
) -> Option<Broken<M>> {
    let mut broken = play(operations)?;
    loop {
        let before = broken.played.len();
        for at in (0..before).rev() {
            let mut shorter = broken.played.clone();
            // A shorter list may break earlier.
            if at < shorter.len() {
                shorter.remove(at);
                broken = play(&shorter).unwrap_or(broken);
            }
        }
        if broken.played.len() == before {
            return Some(broken);
        }
    }
}
