//! The promises as properties, and the scenarios that check them.

pub mod operations;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::State;

/// A state that keeps each update: whatever is lost, doubled or reordered shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal(pub Vec<u16>);

impl State for Journal {
    type Update = u16;
    /// How many there are.
    type Outcome = usize;

    fn apply(&mut self, update: &u16) -> usize {
        self.0.push(*update);
        self.0.len()
    }
}
