//! Runs the shared handle and the gate of `selvedge-core` under [loom](https://docs.rs/loom), which
//! tries every order in which threads can take locks and wait:
//!
//! ```sh
//! RUSTFLAGS='--cfg loom' cargo test --release
//! ```
//!
//! A wake-up that can be lost is a deadlock in some order, and loom finds it. Without `--cfg loom`
//! there is nothing to test.
//!
//! `LOOM_LOG=trace LOOM_LOCATION=1` shows the steps of a run that fails. A test that bounds how
//! often a thread may be interrupted (`preemption_bound`) documents this; the others try
//! everything.
#![no_std]
