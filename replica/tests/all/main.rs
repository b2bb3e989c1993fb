//! All tests as one program.

mod configuration;
mod group;
mod props;
mod wire;
