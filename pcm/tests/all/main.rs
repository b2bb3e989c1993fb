//! All tests as one program.

mod histories;
#[cfg(feature = "check")]
mod model;
mod tables;
mod whole;
mod world;
