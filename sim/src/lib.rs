//! Runs many machines together.
