//! Hosts for the Selvedge protocols over real transports, and what the `selvedge` command does.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

pub mod checks;
pub mod claims;
pub mod demo;
pub mod home;
pub mod mesh;
pub mod output;
pub mod ricart_agrawala;
pub mod seal;
pub mod term;
pub mod udp;
