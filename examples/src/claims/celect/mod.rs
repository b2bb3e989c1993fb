//! What the thesis claims of elections.

pub mod e11;
