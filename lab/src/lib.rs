//! The laboratory: every order of events within bounds is tried, and what the papers claim is
//! measured again.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod checks;
pub mod claims;
pub mod ricart_agrawala;
