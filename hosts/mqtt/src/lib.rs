//! MQTT for hosts: a link to a broker, a broker inside of the process, names and passwords, TLS.
//!
//! | part | purpose |
//! |---|---|
//! | [`link`] | a connection to a broker, on a thread of its own, that reconnects |
//! | [`access`] | the address of a broker, and the name, password and certificates for it |
//! | `broker` | a broker inside of the process (feature `broker`) |
//! | [`users`] | the users of that broker: a file |
//! | `tls` | certificates (feature `tls`: rustls with ring, which has a few files in C) |
//!
//! Nothing is sent late: a link begins with an empty queue each time that it comes up.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

pub mod access;
#[cfg(feature = "broker")]
pub mod broker;
#[cfg(feature = "broker")]
mod front;
pub mod fuzz;
pub mod link;
#[cfg(all(feature = "broker", target_os = "linux"))]
mod nodelay;
#[cfg(feature = "tls")]
pub mod tls;
pub mod users;
