//! A whole list at once.

use core::fmt;

use selvedge_core::{Choose, Machine};
use thiserror::Error;

use super::{Mesh, Operation, Watch};

/// So many of the last operations are shown.
const SHOWN: usize = 30;

/// A promise that broke, and the operations up to there.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("operation {}: {promise}\nafter {}", .played.len(), Tail(.played))]
pub struct Broken<M: Machine> {
    /// The promise, in the words of the [`Watch`].
    pub promise: String,
    /// What was played, the operation with which it broke last.
    pub played: Vec<Operation<M>>,
}

impl<M: Machine> Broken<M> {
    /// What broke in a mesh with the operation that was played last.
    #[must_use]
    pub fn new(promise: String, mesh: &Mesh<M>) -> Self {
        Self {
            promise,
            played: mesh.played().to_vec(),
        }
    }
}

// What `unwrap` shows: the story, not the fields.
impl<M: Machine> fmt::Debug for Broken<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The last operations of a list.
struct Tail<'a, M: Machine>(&'a [Operation<M>]);

impl<M: Machine> fmt::Display for Tail<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped = self.0.len().saturating_sub(SHOWN);
        if skipped > 0 {
            write!(f, "{skipped} others and ")?;
        }
        write!(f, "{:?}", self.0.get(skipped..).unwrap_or_default())
    }
}

/// Carries out a list of operations. Machines choose by `choices`.
///
/// # Errors
/// The first promise that broke, with the operations up to there.
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

/// Leaves out of a list that breaks a promise each operation without which it still breaks, the
/// last ones first. Calls `breaks` up to once for each operation in each of a few rounds, so
/// O(n^2) times in the worst case.
#[must_use]
pub fn shrink<M: Machine>(
    mut operations: Vec<Operation<M>>,
    mut breaks: impl FnMut(&[Operation<M>]) -> bool,
) -> Vec<Operation<M>> {
    loop {
        let before = operations.len();
        for at in (0..before).rev() {
            let left_out = operations.remove(at);
            if !breaks(&operations) {
                operations.insert(at, left_out);
            }
        }
        if operations.len() == before {
            return operations;
        }
    }
}
