//! The laboratory: tries every order of events within bounds, and measures the papers' claims
//! again.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod checks;
pub mod claims;
pub mod ricart_agrawala;
